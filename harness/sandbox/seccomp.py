"""Loads the seccomp filter of this processor: committed bytes, no library and no compilation at start."""
import ctypes
import errno
import fcntl
import os
import struct

from harness.sandbox import kernel
from harness.sandbox.seccomp_bytes import FILTERS

_SET_MODE_FILTER, _NEW_LISTENER = 1, 8
_NOTIF_RECV, _NOTIF_SEND = 0xC0502100, 0xC0182101


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def install(profile: str = "worker", *, listen: bool = False) -> int:
    """Filter this thread and all that it starts; needs no_new_privs or CAP_SYS_ADMIN. Raises OSError with the reason.

    `listen`: return a descriptor at which another process answers what the filter asks (`Listener`)."""
    code = FILTERS.get((kernel.MACHINE, profile))
    if code is None:
        raise OSError(38, f"no filter for {kernel.MACHINE}")
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    return kernel.call("seccomp", _SET_MODE_FILTER, _NEW_LISTENER if listen else 0, ctypes.byref(program))


class Listener:
    """The supervisor's end of a filter that asks: each question is one fork of the filtered process."""

    def __init__(self, descriptor: int):
        self.descriptor = descriptor

    def answer(self, agree: bool) -> None:
        """Answer one question that waits: the call goes on, or fails with EPERM. One that was withdrawn is passed over."""
        question = bytearray(80)
        try:
            fcntl.ioctl(self.descriptor, _NOTIF_RECV, question, True)
            number, = struct.unpack_from("<Q", question)
            fcntl.ioctl(self.descriptor, _NOTIF_SEND, bytearray(struct.pack("<QqiI", number, 0, 0 if agree else -errno.EPERM, int(agree))), True)
        except OSError as err:
            if err.errno not in (errno.ENOENT, errno.EINTR):
                raise

    def close(self) -> None:
        os.close(self.descriptor)
