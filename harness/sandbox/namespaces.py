"""Namespaces of the zygote and of each worker, as root and as an ordinary user.

The zygote is process 1 of a pid namespace of its own: when it ends, whatever was started below it ends. Each worker is process 1 of one
more. Namespaces are asked for together and, where that is refused, as few as the kernel gives; what is missing is reported.
"""
import os
import signal
from typing import Callable

from harness.sandbox import kernel, privileges
from harness.sandbox.policy import Layer, Sandbox

_KINDS = (("pidns", kernel.CLONE_NEWPID), ("netns", kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS),
          ("view", kernel.CLONE_NEWNS))


def enter(sandbox: Sandbox) -> list[Layer]:
    """Move this single-threaded process into its namespaces (the pid namespace holds from the next fork on)."""
    layers = []
    if not sandbox.wants("userns"):
        layers.append(Layer("userns", False, "switched off"))
    elif privileges.may(privileges.CAP_SYS_ADMIN):
        layers.append(Layer("userns", False, "not needed: started as root, which each worker gives up"))
    else:
        try:
            _own_user(os.geteuid(), os.getegid())
            layers.append(Layer("userns", True))
        except OSError as err:
            layers.append(Layer("userns", False, str(err)))
    for name, flags in _KINDS:
        if not sandbox.wants(name):
            layers.append(Layer(name, False, "switched off"))
            continue
        try:
            kernel.unshare(flags)
            layers.append(Layer(name, True))
        except OSError as err:
            layers.append(Layer(name, False, str(err)))
    return layers


def _own_user(user: int, group: int) -> None:
    """A user namespace in which we are who we are, with every capability over what is made in it."""
    kernel.unshare(kernel.CLONE_NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def become_first(control: int, tell: Callable[[int], None] = lambda pid: None) -> None:
    """Go on as the first process of the pid namespace entered; the outer process calls `tell(its pid)`, waits, and ends as that one did."""
    pid = os.fork()
    if pid == 0:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        return
    tell(pid)
    os.close(control)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


class Nursery:
    """Forks children, each as the first process of a pid namespace of its own where that is possible."""

    def __init__(self, wanted: bool, why: str):
        self.why = why
        self._home = -1
        if wanted:
            try:
                self._home = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
            except OSError as err:
                self.why = str(err)

    def fork(self, inside: Callable[[Layer], None]) -> int:
        """Run `inside(the pid layer)` in a child that never returns; returns its pid here."""
        layer = Layer("pidns", False, self.why)
        if self._home >= 0:
            try:
                kernel.unshare(kernel.CLONE_NEWPID)
                layer = Layer("pidns", True)
            except OSError as err:
                layer = Layer("pidns", False, str(err))
        try:
            pid = os.fork()
            if pid == 0:
                try:
                    inside(layer)
                finally:
                    os._exit(1)
            return pid
        finally:
            if layer.active:
                kernel.setns(self._home, kernel.CLONE_NEWPID)
