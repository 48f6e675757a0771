"""Attacks on the kernel's rarely needed doors."""
import ctypes
import os

from simulators.sandbox_attacks import ARM, Target, attack

_NEWUSER, _NEWNS, _NEWNET = 0x10000000, 0x00020000, 0x40000000


def _call(number: int, *arguments) -> int:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    return call(ctypes.c_long(number), *arguments)


@attack
def namespace(target: Target) -> str:
    """Get the capabilities of a new user namespace."""
    return "a user namespace" if ctypes.CDLL(None, use_errno=True).unshare(_NEWUSER) == 0 else ""


@attack
def mount(target: Target) -> str:
    """Lay a file system of one's own over the machine's folders."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEWUSER | _NEWNS) != 0:
        return ""
    return "a mount" if libc.mount(b"x", b"/tmp" if os.path.isdir("/tmp") else b"/usr", b"tmpfs", ctypes.c_ulong(0), None) == 0 else ""


@attack
def io_uring(target: Target) -> str:
    """Set up a ring, by which calls are made without making them."""
    handle = _call(425, 4, ctypes.create_string_buffer(120))
    if handle >= 0:
        os.close(handle)
        return "a ring"
    return ""


@attack
def keys(target: Target) -> str:
    """Keep something in the kernel's key ring, beyond this process's life."""
    key = _call(217 if ARM else 248, b"user", b"venus-attack", b"x", ctypes.c_size_t(1), ctypes.c_int(-1))  # the thread's own ring
    return "a key" if key > 0 else ""


@attack
def counters(target: Target) -> str:
    """Watch this processor's events, the base of many side channels."""
    attributes = ctypes.create_string_buffer(128)
    ctypes.memmove(attributes, (ctypes.c_uint32 * 2)(1, 128), 8)  # a software event
    ctypes.memmove(ctypes.addressof(attributes) + 40, (ctypes.c_uint64 * 1)(1 | 1 << 5 | 1 << 6), 8)  # disabled, no kernel
    handle = _call(241 if ARM else 298, attributes, 0, -1, -1, 0)
    if handle >= 0:
        os.close(handle)
        return "a counter"
    return ""


@attack
def memory_file(target: Target) -> str:
    """Run a program that lies in no file system."""
    handle = os.memfd_create("x")
    os.write(handle, b"#!/bin/sh\n")
    os.close(handle)
    return "a file in memory"
