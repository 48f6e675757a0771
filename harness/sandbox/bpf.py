"""Makes the seccomp filters: a small assembler for classic BPF, and the program over the tables of syscalls.py.

    python -m harness.sandbox.bpf        writes seccomp_bytes.py anew

Filters are made when the project is built, not when a skill starts: what runs is the committed bytes, and a test compares them with
what this module makes. Offsets and values: struct seccomp_data and <linux/bpf_common.h>.
"""
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path

from harness.sandbox.syscalls import ABSENT, ALLOWED, CHECKED, PROCESS, TEMPLATE

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH_*: a 64-bit kernel also takes 32-bit calls, whose numbers mean something else."""
PROFILES = {"worker": {}, "template": TEMPLATE, "process": PROCESS}
"""worker: runs a call; template: loads foreign code and forks when its supervisor agrees; process: a whole program."""
ALLOW, ASK, KILL, ERRNO = 0x7FFF0000, 0x7FC00000, 0x80000000, 0x00050000
EPERM, ENOSYS = 1, 38
X32_BIT = 0x40000000
_LOAD, _JEQ, _JGE, _JSET, _AND, _RET = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCH = 0, 4

CLONE_THREAD = 0x00010000
FORK_FLAGS = 0x01200011
"""CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD: how the C library forks."""
CLONE_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
IOCTLS = (0x5401, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS (isatty), FIONREAD, FIONBIO, FIONCLEX, FIOCLEX."""
FCNTLS = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030)
"""Duplicate, flags, record locks; not F_SETOWN, F_SETSIG, leases or notifications."""
PAIRS = (1, 1 | 0x800, 1 | 0x80000, 1 | 0x80800)
"""SOCK_STREAM, with and without SOCK_NONBLOCK and SOCK_CLOEXEC: connected for good, unlike datagram sockets."""
PRCTLS = (15, 16, 0x53564D41)
"""Set and read the thread's name, name a mapping."""


def _low(argument: int) -> int:
    return 16 + 8 * argument


def _high(argument: int) -> int:
    return 20 + 8 * argument


@dataclass
class Assembler:
    """Instructions with jumps to labels further on; `assemble()` gives the bytes of struct sock_filter[]."""

    _lines: list = field(default_factory=list)
    _labels: dict = field(default_factory=dict)

    def load(self, offset: int) -> None:
        self._lines.append((_LOAD, offset, None, None))

    def mask(self, value: int) -> None:
        self._lines.append((_AND, value, None, None))

    def answer(self, value: int) -> None:
        self._lines.append((_RET, value, None, None))

    def equal(self, value: int, then: str | None = None, other: str | None = None) -> None:
        """Jump to a label when the accumulator is the value, to another when not; None goes on with the next line."""
        self._lines.append((_JEQ, value, then, other))

    def at_least(self, value: int, then: str | None = None, other: str | None = None) -> None:
        self._lines.append((_JGE, value, then, other))

    def any_bit(self, value: int, then: str | None = None, other: str | None = None) -> None:
        self._lines.append((_JSET, value, then, other))

    def label(self, name: str) -> None:
        if name in self._labels:
            raise ValueError(f"label {name} stands twice")
        self._labels[name] = len(self._lines)

    def assemble(self) -> bytes:
        out = bytearray()
        for at, (code, value, then, other) in enumerate(self._lines):
            out += struct.pack("<HBBI", code, self._jump(at, then), self._jump(at, other), value)
        return bytes(out)

    def _jump(self, at: int, name: str | None) -> int:
        distance = 0 if name is None else self._labels[name] - at - 1
        if not 0 <= distance <= 255:
            raise ValueError(f"label {name} is {distance} lines away from line {at}; allowed: 0 to 255")
        return distance


def filter_bytes(architecture: str, profile: str = "worker") -> bytes:
    """The whole filter of a processor: foreign architecture ends the process, allowed calls pass, others fail with EPERM."""
    column = list(ARCHITECTURES).index(architecture)
    allowed = ALLOWED | PROFILES[profile]
    code = Assembler()
    code.load(_ARCH)
    code.equal(ARCHITECTURES[architecture], "ours")
    code.answer(KILL)
    code.label("ours")
    code.load(_NUMBER)
    if architecture == "x86_64":
        code.at_least(X32_BIT, None, "numbered")
        code.answer(ERRNO | ENOSYS)
        code.label("numbered")
    for name, numbers in CHECKED.items():
        code.equal(numbers[column], None, f"not {name}")
        _CHECKS[name](code, profile)
        code.label(f"not {name}")
    for number in sorted({numbers[column] for numbers in ABSENT.values()}):
        code.equal(number, None, f"not {number}")
        code.answer(ERRNO | ENOSYS)
        code.label(f"not {number}")
    for first, last in _ranges(sorted({n[column] for n in allowed.values()} - {None})):
        if first == last:
            code.equal(first, None, f"after {first}")
        else:
            code.at_least(first, None, f"after {first}")
            code.at_least(last + 1, f"after {first}")
        code.answer(ALLOW)
        code.label(f"after {first}")
    code.answer(ERRNO | EPERM)
    return code.assemble()


def _ranges(numbers: list[int]) -> list[tuple[int, int]]:
    """Neighbours together: (first, last)."""
    out: list[tuple[int, int]] = []
    for number in numbers:
        if out and out[-1][1] == number - 1:
            out[-1] = (out[-1][0], number)
        else:
            out.append((number, number))
    return out


def _one_of(code: Assembler, argument: int, values: tuple[int, ...], name: str) -> None:
    code.load(_low(argument))
    for value in values:
        code.equal(value, f"{name} ok")
    code.answer(ERRNO | EPERM)
    code.label(f"{name} ok")
    code.answer(ALLOW)


def _zero(code: Assembler, arguments: tuple[int, ...], name: str) -> None:
    for offset in [at for argument in arguments for at in (_low(argument), _high(argument))]:
        code.load(offset)
        code.equal(0, None, f"{name} not zero")
    code.answer(ALLOW)
    code.label(f"{name} not zero")
    code.answer(ERRNO | EPERM)


def _clone(code: Assembler, profile: str) -> None:
    """A thread of this process, and no namespace; a whole program may also fork, a template may ask for it."""
    code.load(_low(0))
    code.any_bit(CLONE_NAMESPACES, "clone no")
    if profile == "template":
        code.equal(FORK_FLAGS, "clone ask")
    if profile != "process":
        code.any_bit(CLONE_THREAD, None, "clone no")
    code.answer(ALLOW)
    code.label("clone no")
    code.answer(ERRNO | EPERM)
    if profile == "template":
        code.label("clone ask")
        code.answer(ASK)


def _prlimit(code: Assembler, profile: str) -> None:
    """Its own limits; to read them only, but for a template, whose copies lower theirs."""
    code.load(_low(0))
    code.equal(0, None, "prlimit no")
    for offset in () if profile == "template" else (_low(2), _high(2)):
        code.load(offset)
        code.equal(0, None, "prlimit no")
    code.answer(ALLOW)
    code.label("prlimit no")
    code.answer(ERRNO | EPERM)


def _socketpair(code: Assembler, profile: str) -> None:
    """Connected stream sockets (the self-pipe of an event loop), which lead nowhere else."""
    code.load(_low(0))
    code.equal(1, None, "socketpair no")
    code.load(_low(1))
    for kind in PAIRS:
        code.equal(kind, "socketpair ok")
    code.label("socketpair no")
    code.answer(ERRNO | EPERM)
    code.label("socketpair ok")
    code.answer(ALLOW)


_CHECKS = {
    "clone": _clone, "prlimit64": _prlimit, "socketpair": _socketpair,
    "ioctl": lambda code, profile: _one_of(code, 1, IOCTLS, "ioctl"),
    "fcntl": lambda code, profile: _one_of(code, 1, FCNTLS, "fcntl"),
    "prctl": lambda code, profile: _one_of(code, 0, PRCTLS, "prctl"),
    "sendto": lambda code, profile: _zero(code, (4,), "sendto"),  # no address: to the other end of its own socket
}


def module_text() -> str:
    """The text of seccomp_bytes.py."""
    lines = ['"""Seccomp filters as bytes, made by bpf.py from syscalls.py; change those and run `python -m harness.sandbox.bpf`."""', "",
             "FILTERS = {"]
    for architecture in ARCHITECTURES:
        for profile in PROFILES:
            text = filter_bytes(architecture, profile).hex()
            lines.append(f'    ("{architecture}", "{profile}"): bytes.fromhex(')
            lines += [f'        "{text[at:at + 128]}"' for at in range(0, len(text), 128)]
            lines[-1] += "),"
    return "\n".join([*lines, "}", ""])


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("seccomp_bytes.py")).write_text(module_text(), encoding="ascii")
