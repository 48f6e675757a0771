"""Attacks on other processes, and attempts to be more than one process."""
import ctypes
import os
import signal
import subprocess
import sys
import time

from simulators.sandbox_attacks import ARM, Target, attack

CHILDREN = 8


@attack
def fork_bomb(target: Target) -> str:
    """Start children (eight of them: enough to show that nothing stops it)."""
    children = []
    try:
        for _ in range(CHILDREN):
            pid = os.fork()
            if pid == 0:
                time.sleep(1.0)
                os._exit(0)
            children.append(pid)
    except OSError:
        pass
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return f"{len(children)} children" if children else ""


@attack
def raw_fork(target: Target) -> str:
    """Fork by a system call's number, past the C library."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    pid = call(ctypes.c_long(220 if ARM else 56), ctypes.c_long(signal.SIGCHLD), None, None, None, None)
    if pid == 0:
        os._exit(0)
    if pid > 0:
        os.waitpid(pid, 0)
        return "a child"
    return ""


@attack
def execute(target: Target) -> str:
    """Become or start another program."""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", "print('ran')"], capture_output=True, text=True, timeout=10, check=False)
    return done.stdout.strip()


@attack
def grandchild(target: Target) -> str:
    """Leave a process behind in a session of its own, to go on after the call."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        grandchild_pid = os.fork()
        if grandchild_pid == 0:
            time.sleep(3.0)
            os._exit(0)
        os.write(writer, str(grandchild_pid).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    return f"process {os.read(reader, 16).decode()} goes on"


@attack
def signal_other(target: Target) -> str:
    """End another process of the same user, and the one that started us."""
    sent = []
    for pid in {target.victim, os.getppid()} - {target.host, 0, 1}:
        try:
            os.kill(pid, signal.SIGTERM if pid == target.victim else 0)
            sent.append(str(pid))
        except OSError:
            continue
    return f"signalled {', '.join(sent)}" if sent else ""


@attack
def census(target: Target) -> str:
    """Find out which processes there are, by asking for each number whether it could be signalled."""
    there = []
    for pid in {target.host, target.victim, os.getppid()} - {0, 1}:  # 1: every namespace has one
        try:
            os.kill(pid, 0)
            there.append(pid)
        except ProcessLookupError:
            continue
        except PermissionError:  # refused, and so known to be there
            there.append(pid)
    return f"{len(there)} processes" if there else ""


@attack
def ptrace(target: Target) -> str:
    """Take over another process of the same user."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(0x4206, target.victim, None, None) == 0:  # PTRACE_SEIZE: it runs on
        libc.ptrace(17, target.victim, None, None)
        return "attached"
    return ""


@attack
def memory_of_other(target: Target) -> str:
    """Read another process's memory without stopping it."""
    class Piece(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    with open(f"/proc/{target.victim}/maps", encoding="ascii") as file:
        start = int(file.readline().split("-")[0], 16)
    buffer = ctypes.create_string_buffer(16)
    ours, theirs = Piece(ctypes.addressof(buffer), 16), Piece(start, 16)
    count = ctypes.CDLL(None, use_errno=True).process_vm_readv(target.victim, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0)
    return f"{count} bytes" if count > 0 else ""
