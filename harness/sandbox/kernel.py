"""System calls that Python has no function for, by number on x86-64 and aarch64. Each raises OSError with the kernel's reason."""
import ctypes
import os
import platform

MACHINE = platform.machine()
_NUMBERS = {
    "x86_64": {"seccomp": 317, "pivot_root": 155, "capset": 126, "capget": 125},
    "aarch64": {"seccomp": 277, "pivot_root": 41, "capset": 91, "capget": 90},
}.get(MACHINE, {}) | {"landlock_create_ruleset": 444, "landlock_add_rule": 445, "landlock_restrict_self": 446, "mount_setattr": 442}

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = (
    0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS, PR_CAP_AMBIENT = (
    1, 4, 24, 36, 38, 39, 47)
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def call(name: str, *arguments) -> int:
    """One system call; integers and ctypes pointers."""
    number = _NUMBERS.get(name)
    if number is None:
        raise OSError(38, f"{name}: not known on {MACHINE}")
    passed = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return _checked(_libc.syscall(ctypes.c_long(number), *passed), name)


def prctl(option: int, *arguments: int) -> int:
    return _checked(_libc.prctl(option, *arguments, *[0] * (4 - len(arguments))), f"prctl {option}")


def unshare(flags: int) -> None:
    _checked(_libc.unshare(flags), "unshare")


def setns(descriptor: int, kind: int) -> None:
    _checked(_libc.setns(descriptor, kind), "setns")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    _checked(_libc.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]), f"mount {target}")


def unmount(target: str, flags: int) -> None:
    _checked(_libc.umount2(os.fsencode(target), flags), f"umount {target}")
