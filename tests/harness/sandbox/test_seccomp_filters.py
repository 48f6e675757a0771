"""The seccomp filters: the committed bytes are those of the tables, and do what the tables say, on both processors."""
import re
import struct
from pathlib import Path

import pytest

from harness.sandbox import bpf, syscalls
from harness.sandbox.seccomp_bytes import FILTERS

HEADERS = {"x86_64": (Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), "__NR_"),
           "aarch64": (Path("/usr/include/asm-generic/unistd.h"), "__NR_|__NR3264_")}
COLUMN = {"x86_64": 0, "aarch64": 1}
ALL = [(architecture, profile) for architecture in bpf.ARCHITECTURES for profile in bpf.PROFILES]
EPERM, ENOSYS = bpf.ERRNO | bpf.EPERM, bpf.ERRNO | bpf.ENOSYS


def decide(code, architecture, number, *arguments):
    """What a filter answers: an interpreter of the few instructions that filters use, by the kernel's documentation of them."""
    arguments = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<iIQ6Q", number, architecture, 0, *[a & (1 << 64) - 1 for a in arguments])
    at, accumulator = 0, 0
    for _ in range(4096):
        kind, then, other, value = struct.unpack_from("<HBBI", code, 8 * at)
        at += 1
        if kind == 0x20:
            accumulator, = struct.unpack_from("<I", data, value)
        elif kind == 0x06:
            return value
        else:
            true = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[kind]
            at += then if true else other
    raise AssertionError("the filter does not end")


def ask(architecture, profile, name, *arguments):
    tables = syscalls.ALLOWED | syscalls.CHECKED | syscalls.ABSENT | syscalls.PROCESS | syscalls.TEMPLATE | syscalls.DENIED
    return decide(FILTERS[architecture, profile], bpf.ARCHITECTURES[architecture], tables[name][COLUMN[architecture]], *arguments)


def test_the_committed_bytes_are_those_of_the_tables():
    """Who changes a table and forgets `python -m harness.sandbox.bpf` is told here."""
    assert Path(bpf.__file__).with_name("seccomp_bytes.py").read_text() == bpf.module_text()
    assert set(FILTERS) == set(ALL) and all(FILTERS[key] == bpf.filter_bytes(*key) for key in ALL)
    assert all(len(code) % 8 == 0 and len(code) // 8 < 4096 for code in FILTERS.values())


@pytest.mark.parametrize("architecture", HEADERS)
def test_the_numbers_are_the_kernels(architecture):
    """Each number stands in the kernel's header under its name."""
    path, prefix = HEADERS[architecture]
    if not path.exists():
        pytest.skip(f"{path} is not installed")
    known = {m[1]: int(m[2]) for m in re.finditer(rf"#define (?:{prefix})(\w+)\s+(\d+)", path.read_text())}
    if architecture == "aarch64":
        known["newfstatat"] = known["fstatat"]
    for table in (syscalls.ALLOWED, syscalls.CHECKED, syscalls.ABSENT, syscalls.PROCESS, syscalls.TEMPLATE, syscalls.DENIED):
        for name, numbers in table.items():
            number = numbers[COLUMN[architecture]]
            if number is not None and name in known:
                assert number == known[name], name
            elif number is None:
                assert architecture == "aarch64" and name not in known, name


@pytest.mark.parametrize("architecture,profile", ALL)
def test_what_is_allowed_passes_and_all_else_is_refused(architecture, profile):
    """Every number up to 600 that stands in no table of the profile is refused, and every one that does is not."""
    column = COLUMN[architecture]
    allowed = {n[column] for n in (syscalls.ALLOWED | bpf.PROFILES[profile]).values()} - {None}
    checked = {n[column] for n in syscalls.CHECKED.values()} - {None}
    absent = {n[column] for n in syscalls.ABSENT.values()}
    code, number_of = FILTERS[architecture, profile], bpf.ARCHITECTURES[architecture]
    for number in sorted(set(range(600)) - checked):
        wanted = bpf.ALLOW if number in allowed else ENOSYS if number in absent else EPERM
        assert decide(code, number_of, number, 1 << 40, 1 << 40, 1 << 40) == wanted, number


@pytest.mark.parametrize("architecture,profile", ALL)
def test_a_foreign_architecture_ends_the_process(architecture, profile):
    """32-bit calls, whose numbers mean something else, and the other processor's."""
    others = {0x40000003, 0x40000028, *bpf.ARCHITECTURES.values()} - {bpf.ARCHITECTURES[architecture]}
    assert all(decide(FILTERS[architecture, profile], other, 0) == bpf.KILL for other in others)
    if architecture == "x86_64":
        assert all(decide(FILTERS[architecture, profile], bpf.ARCHITECTURES[architecture], 0x40000000 | n) == ENOSYS for n in (0, 41, 56))


@pytest.mark.parametrize("architecture", bpf.ARCHITECTURES)
def test_what_a_worker_may_not_do(architecture):
    for name, numbers in syscalls.DENIED.items():
        if numbers[COLUMN[architecture]] is not None:
            assert ask(architecture, "worker", name) == EPERM, name
    assert ask(architecture, "worker", "clone3") == ENOSYS


@pytest.mark.parametrize("architecture", bpf.ARCHITECTURES)
def test_clone_makes_threads_only(architecture):
    """The C library's thread passes; a fork is refused to a worker, asked about for a template, and allowed to a whole program."""
    thread, fork = 0x3D0F00, bpf.FORK_FLAGS
    for profile in bpf.PROFILES:
        assert ask(architecture, profile, "clone", thread) == bpf.ALLOW
        for namespace in (0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
            assert ask(architecture, profile, "clone", namespace | thread) == EPERM
            assert ask(architecture, profile, "clone", namespace | fork) == EPERM
    assert [ask(architecture, profile, "clone", fork) for profile in ("worker", "template", "process")] == [EPERM, bpf.ASK, bpf.ALLOW]
    assert [ask(architecture, profile, "clone", 17) for profile in ("worker", "template", "process")] == [EPERM, EPERM, bpf.ALLOW]


@pytest.mark.parametrize("architecture", bpf.ARCHITECTURES)
def test_arguments_are_looked_at_where_they_matter(architecture):
    def worker(name, *arguments):
        return ask(architecture, "worker", name, *arguments)

    assert worker("ioctl", 1, 0x5421) == bpf.ALLOW and worker("ioctl", 1, 0x5412) == EPERM  # not TIOCSTI
    assert worker("fcntl", 1, 3) == bpf.ALLOW and worker("fcntl", 1, 8) == EPERM  # not F_SETOWN
    assert worker("prctl", 15) == bpf.ALLOW and worker("prctl", 4) == EPERM  # not PR_SET_DUMPABLE
    assert worker("sendto", 3, 1, 1, 0, 0, 0) == bpf.ALLOW
    assert worker("sendto", 3, 1, 1, 0, 0x1000, 16) == EPERM and worker("sendto", 3, 1, 1, 0, 1 << 40, 16) == EPERM
    assert worker("prlimit64", 0, 7, 0, 0x1000) == bpf.ALLOW
    assert worker("prlimit64", 0, 7, 0x1000, 0) == EPERM and worker("prlimit64", 5, 7, 0, 0x1000) == EPERM
    assert worker("socketpair", 1, 1 | 0x80000) == bpf.ALLOW
    assert worker("socketpair", 1, 2) == EPERM and worker("socketpair", 2, 1) == EPERM


def test_the_assembler_refuses_what_it_can_not_encode():
    """A jump backwards, too far, or to nowhere is an error of the table's author, not a filter with a hole."""
    code = bpf.Assembler()
    code.label("back")
    code.equal(1, "back")
    with pytest.raises(ValueError, match="back"):
        code.assemble()
    code = bpf.Assembler()
    code.equal(1, "far")
    for _ in range(256):
        code.answer(0)
    code.label("far")
    code.answer(0)
    with pytest.raises(ValueError, match="256 lines"):
        code.assemble()
    with pytest.raises(ValueError, match="twice"):
        code.label("far")
