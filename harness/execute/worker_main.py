"""The skill zygote: `python -m harness.execute.worker_main CONTROL_FD SPEC CACHE_DIR [SANDBOX BWRAP]`.

It imports the skills and opens the maps and places once, in a single thread, then forks a ready skill process whenever the
session worker asks for one and hands over its socket and its pidfd. A forked process serves one call (worker.py), or with a
sandbox that reuses it, call after call. It ends when the session worker closes the control socket or dies, and takes every skill
process with it. Skills that are not trusted are imported only in the forked process, when that is locked.
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

import harness.execute.worker
from harness.execute.registry import Registry, RegistrySpec, load, open_providers
from venus_edge.errors import ConfigError, VenusError

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4


def _reap(workers: set[int], strays: bool) -> None:
    """Collect what ended, and end what a skill left behind: its children fall to us, as we are the subreaper."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            break
        workers.discard(pid)
    if strays:
        for child in _children() - workers:
            os.kill(child, signal.SIGKILL)


def _children() -> set[int]:
    try:
        return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))
    except OSError:  # a kernel without that file: only the workers themselves are known
        return set()


def _fork(registry, providers, control: socket.socket, sandboxed) -> int:
    """Fork one ready skill process and hand it over; returns its pid, or 0 when it could not be made and the session worker was told."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    parent = os.getpid()

    def begin() -> None:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        control.close()
        ours.close()

    try:
        if sandboxed is not None:
            pid = sandboxed.fork(ours, theirs, begin, registry, providers)
        else:
            pid = os.fork()
            if pid == 0:
                try:
                    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                    if os.getppid() == parent:
                        begin()
                        harness.execute.worker.serve(theirs, registry, providers)
                        os._exit(0)
                finally:
                    os._exit(1)
        theirs.close()
        handle = os.pidfd_open(pid)
    except (VenusError, OSError) as err:
        theirs.close()
        ours.close()
        error = err if isinstance(err, VenusError) else ConfigError(f"a skill process could not be made: {err}")
        control.send(json.dumps({"unready": error.as_dict()}).encode())
        return 0
    socket.send_fds(control, [json.dumps({"pid": pid}).encode()], [ours.fileno(), handle])
    ours.close()
    os.close(handle)
    return pid


def main(argv: list[str]) -> int:
    control = socket.socket(fileno=int(argv[0]))
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole terminal group; the session worker decides
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)  # before the sandbox: what is opened in it stays open in its workers
    spec = RegistrySpec.from_json(argv[1])
    sandboxed = None
    try:
        if len(argv) > 3:
            from harness.execute.locked import LockedZygote

            sandboxed = LockedZygote(argv[3], json.loads(argv[4]), spec)
            sandboxed.enter(control)
        if sandboxed is None or sandboxed.sandbox.preloads:
            registry = Registry.from_spec(spec)
            providers = open_providers(registry, Path(argv[2]))
        else:
            registry, providers = None, {name: load(opener)(Path(argv[2])) for name, opener in sorted(spec.providers.items())}
    except VenusError as err:
        control.send(json.dumps({"error": err.as_dict()}).encode())
        return 2
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # a handler of any kind makes the wake-up descriptor readable
    if sandboxed is not None:
        sandboxed.warm()
    gc.collect()
    gc.freeze()  # a collection in a child must not copy the parent's pages
    threads = len(os.listdir("/proc/self/task"))
    if sandboxed is not None:
        sandboxed.close_view()
    control.send(json.dumps({"ready": True, "threads": threads}).encode())
    workers: set[int] = set()
    while True:
        asked = sandboxed.descriptors() if sandboxed is not None else []
        ready, _, _ = select.select([control, woken, *asked], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _reap(workers, sandboxed is None)
        if set(asked) & set(ready):
            sandboxed.attend()
        if control in ready:
            try:
                if not control.recv(64):
                    break
                workers.add(_fork(registry, providers, control, sandboxed))
                workers.discard(0)
            except ConnectionError:  # the session worker is gone
                break
    for pid in workers | (_children() if sandboxed is None else set()):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
