"""Locks itself and becomes a program: `python -m harness.sandbox.launch CONTROL_FD SANDBOX BWRAP EXECUTABLE PROGRAM...` (process.py)."""
import json
import os
import socket
import sys

from harness.sandbox import seccomp
from harness.sandbox.policy import Layer, Sandbox
from harness.sandbox.zygote import SandboxedZygote


def main(argv: list[str]) -> int:
    control = socket.socket(fileno=int(argv[0]))
    environment = dict(os.environ)
    zygote = SandboxedZygote(Sandbox.from_json(argv[1]), (), bwrap=Layer(*json.loads(argv[2])), executable=tuple(json.loads(argv[3])))
    zygote.enter(control.fileno(), lambda pid: _tell(control, pid))
    if os.getpid() != 1:
        _tell(control, os.getpid())
    zygote.close_view()
    layers = zygote.lock({control.fileno()}, lambda: seccomp.install("process"))
    control.send(json.dumps([[layer.name, layer.active, layer.why] for layer in layers]).encode())
    if control.recv(8) != b"go":  # the supervisor refuses to run it with these layers
        return 1
    control.close()
    os.execve(argv[4], argv[4:], environment)


def _tell(control: socket.socket, pid: int) -> None:
    """Hand over the pidfd of the process that becomes the program."""
    handle = os.pidfd_open(pid)
    socket.send_fds(control, [b"pid"], [handle])
    os.close(handle)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
