"""What a worker gives up of its rights: the user id, every capability, and that any program could give some back."""
import ctypes
import errno
import os
import random
import struct

from harness.sandbox import kernel

_UIDS = (1_880_000_000, 2_000_000_000)
"""Ids that neither users nor containers get; each worker takes one at random, so that its thread limit counts its own threads only."""
_CAPABILITY_3 = 0x20080522
_PR_CAP_AMBIENT_CLEAR_ALL = 4
CAP_SETPCAP, CAP_SYS_ADMIN = 8, 21


def leave_user() -> None:
    """As root: become a user who owns nothing. As an ordinary user: one more user namespace, so that limits count this worker alone."""
    if os.geteuid() == 0:
        _empty_bounding_set()
        user = random.SystemRandom().randrange(*_UIDS)
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    else:
        kernel.unshare(kernel.CLONE_NEWUSER)


def drop_capabilities() -> None:
    """Every set of capabilities is emptied; raises OSError when one can't be."""
    if may(CAP_SETPCAP):
        _empty_bounding_set()
    kernel.prctl(kernel.PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header, data = struct.pack("<Ii", _CAPABILITY_3, 0), bytes(24)
    kernel.call("capset", ctypes.c_char_p(header), ctypes.c_char_p(data))


def _empty_bounding_set() -> None:
    for number in range(64):
        try:
            kernel.prctl(kernel.PR_CAPBSET_DROP, number)
        except OSError as err:
            if err.errno == errno.EINVAL:  # past the last capability of this kernel
                return
            raise


def may(capability: int) -> bool:
    return bool(capabilities() >> capability & 1)


def capabilities() -> int:
    """The effective capabilities of this process, as bits."""
    header, data = ctypes.create_string_buffer(struct.pack("<Ii", _CAPABILITY_3, 0), 8), ctypes.create_string_buffer(24)
    kernel.call("capget", header, data)
    low, _, _, high, _, _ = struct.unpack("<6I", data.raw)
    return low | high << 32
