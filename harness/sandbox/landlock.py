"""Landlock by raw system calls: reads in the folders allowed, writes nowhere, no TCP, no signal or abstract socket to the outside.

What the kernel can refuse depends on its ABI (1: files; 2: moving between folders; 3: truncate; 4: TCP; 5: device ioctl; 6: signals and
abstract Unix sockets); everything it knows up to the ABI below is used. <linux/landlock.h>
"""
import ctypes
import os
import struct
from typing import Iterable

from harness.sandbox import kernel

_VERSION, _PATH_BENEATH = 1, 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, MAKE_REG, TRUNCATE = 1, 2, 4, 8, 1 << 8, 1 << 14
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: TRUNCATE, 5: 1 << 15}
"""Rights that each ABI added."""
_ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE
NET_FROM, SCOPES_FROM = 4, 6
_NET, _SCOPES = 3, 3


def abi() -> int:
    """The kernel's Landlock ABI; raises OSError where it has none or it is switched off."""
    return kernel.call("landlock_create_ruleset", None, 0, _VERSION)


def restrict(readable: Iterable[str], *, listable: Iterable[str] = (), writable: Iterable[str] = (), executable: Iterable[str] = ()) -> int:
    """Lock this process for good and return the ABI used; paths that don't exist are passed over. Needs no_new_privs.

    `listable`: folders whose names may be listed, with those of all folders below them."""
    version = abi()
    handled = sum(right for since, right in _FILE_RIGHTS.items() if version >= since)
    fields = [handled, _NET if version >= NET_FROM else 0, _SCOPES if version >= SCOPES_FROM else 0]
    attributes = struct.pack("<3Q", *fields)[:24 if version >= SCOPES_FROM else 16 if version >= NET_FROM else 8]
    ruleset = kernel.call("landlock_create_ruleset", ctypes.c_char_p(attributes), len(attributes), 0)
    try:
        for paths, rights in ((readable, READ_FILE | READ_DIR), (listable, READ_DIR), (executable, READ_FILE | READ_DIR | EXECUTE),
                              (writable, handled & ~EXECUTE)):
            for path in paths:
                _allow(ruleset, path, rights & handled)
        kernel.call("landlock_restrict_self", ruleset, 0)
    finally:
        os.close(ruleset)
    return version


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):
            rights &= _ON_FILES
        kernel.call("landlock_add_rule", ruleset, _PATH_BENEATH, ctypes.c_char_p(struct.pack("<Qi", rights, beneath)), 0)
    finally:
        os.close(beneath)
