"""The skill zygote: `python -m harness.execute.worker_main CONTROL_FD SPEC CACHE_DIR`.

It imports every skill and opens the maps and places once, in a single thread, then forks a ready skill process whenever the
session worker asks for one and hands over its socket and its pidfd. A forked process serves one call (worker.py). It ends when
the session worker closes the control socket or dies, and takes every skill process with it.
"""
import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path

from harness.execute.registry import Registry, RegistrySpec, open_providers
from venus_edge.errors import VenusError

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4


def _reap(workers: set[int]) -> None:
    """Collect what ended, and end what a skill left behind: its children fall to us, as we are the subreaper."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            break
        workers.discard(pid)
    for child in _children() - workers:
        os.kill(child, signal.SIGKILL)


def _children() -> set[int]:
    try:
        return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))
    except OSError:  # a kernel without that file: only the workers themselves are known
        return set()


def _fork(registry, providers, control: socket.socket) -> int:
    """Fork one ready skill process and hand it over; returns its pid."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            control.close()
            ours.close()
            from harness.execute.worker import serve

            serve(theirs, registry, providers)
            status = 0
        finally:
            os._exit(status)
    theirs.close()
    handle = os.pidfd_open(pid)
    socket.send_fds(control, [json.dumps({"pid": pid}).encode()], [ours.fileno(), handle])
    ours.close()
    os.close(handle)
    return pid


def main(argv: list[str]) -> int:
    control = socket.socket(fileno=int(argv[0]))
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole terminal group; the session worker decides
    try:
        registry = Registry.from_spec(RegistrySpec.from_json(argv[1]))
        providers = open_providers(registry, Path(argv[2]))
        import harness.execute.worker  # noqa: F401  imported here, so that each fork has it already
    except VenusError as err:
        control.send(json.dumps({"error": err.as_dict()}).encode())
        return 2
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # a handler of any kind makes the wake-up descriptor readable
    gc.collect()
    gc.freeze()  # a collection in a child must not copy the parent's pages
    control.send(json.dumps({"ready": True, "threads": len(os.listdir("/proc/self/task"))}).encode())
    workers: set[int] = set()
    while True:
        ready, _, _ = select.select([control, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _reap(workers)
        if control in ready:
            try:
                if not control.recv(64):
                    break
                workers.add(_fork(registry, providers, control))
            except ConnectionError:  # the session worker is gone
                break
    for pid in _children() | workers:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
