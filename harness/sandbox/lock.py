"""Locks a freshly forked worker, layer by layer, and tells which layers hold: each is tried after the lock, not merely asked for."""
import os
import resource
import signal
import socket
from typing import Any, Callable

from harness.sandbox import kernel, landlock, privileges, seccomp
from harness.sandbox.policy import Layer, Sandbox

TEMPLATE_TASKS = 64
"""Room of a template for its copies, beside their threads."""
_KEPT = ("LANG", "LC_ALL", "TZ")


def close_others(keep: set[int]) -> None:
    """Close every descriptor above 2 but those."""
    last = 2
    for number in [*sorted(n for n in keep if n > 2), resource.getrlimit(resource.RLIMIT_NOFILE)[0]]:
        if number > last + 1:
            os.closerange(last + 1, number)
        last = number


def clear_environment() -> None:
    for name in [name for name in os.environ if name not in _KEPT]:
        del os.environ[name]


def limit(sandbox: Sandbox, size: int) -> None:
    """Set the resource limits; `size`: bytes of address space that the process began with.

    Processor time is limited in copies only (`tighten`): a template and a reused worker live on."""
    tasks = sandbox.threads if sandbox.preloads else sandbox.threads + TEMPLATE_TASKS
    address = size + (sandbox.memory_mb << 20)
    limits = [(resource.RLIMIT_AS, address), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NOFILE, sandbox.open_files),
              (resource.RLIMIT_CORE, 0), (resource.RLIMIT_NPROC, tasks), (resource.RLIMIT_MEMLOCK, 0),
              (resource.RLIMIT_MSGQUEUE, 0), (resource.RLIMIT_RTPRIO, 0), (resource.RLIMIT_SIGPENDING, 64)]
    for kind, value in limits:
        _, hard = resource.getrlimit(kind)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(kind, (value, value))


def tighten(sandbox: Sandbox, layers: list[Layer], *, readable: list[str], listable: list[str]) -> None:
    """The rest of the lock for a copy of a locked process: its own time and threads, its own Landlock domain, and no further copy."""
    active = {layer.name for layer in layers if layer.active}
    if "rlimits" in active:
        for kind, value in ((resource.RLIMIT_CPU, sandbox.cpu_s), (resource.RLIMIT_NPROC, sandbox.threads)):
            resource.setrlimit(kind, (value, value))
    if "landlock" in active:
        landlock.restrict(readable, listable=listable)
    if "seccomp" in active:
        seccomp.install()


def apply(sandbox: Sandbox, *, size: int, readable: list[str], listable: list[str], keep: set[int], found: list[Layer],
          install: Callable[[], Any] = seccomp.install, executable: tuple[str, ...] = ()) -> list[Layer]:
    """Lock this process for good. `found`: the layers that hold already; returns all of them, with those of this function.

    `install`: loads the filter of system calls; `executable`: folders whose programs may be started."""
    layers = list(found)

    def layer(name: str, put_on: Callable[[], None], proof: Callable[[], bool]) -> None:
        if not sandbox.wants(name):
            layers.append(Layer(name, False, "switched off"))
            return
        try:
            put_on()
            layers.append(Layer(name, proof(), "" if proof() else "asked for, and without effect"))
        except (OSError, ValueError) as err:
            layers.append(Layer(name, False, str(err)))

    layer("env", clear_environment, lambda: set(os.environ) <= set(_KEPT))
    layer("fds", lambda: close_others(keep), lambda: True)
    user = os.getuid()
    if user == 0 and sandbox.wants("uid") and not any(layer.active for layer in layers if layer.name == "view"):
        layers.append(Layer("uid", False, "without the view, another user could not read the code"))
    else:
        layer("uid", privileges.leave_user, lambda: user != 0 or os.getuid() != 0)
    layer("rlimits", lambda: limit(sandbox, size), lambda: resource.getrlimit(resource.RLIMIT_CORE) == (0, 0))
    layer("caps", privileges.drop_capabilities, lambda: privileges.capabilities() == 0)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # after the rights are gone: the kernel forgets it when they change
    layer("no_new_privs", lambda: kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1), lambda: kernel.prctl(kernel.PR_GET_NO_NEW_PRIVS) == 1)
    layer("landlock", lambda: landlock.restrict(readable, listable=listable, executable=executable), _root_is_closed)
    layer("seccomp", install, _sockets_are_refused)
    return layers


def _root_is_closed() -> bool:
    try:
        os.listdir("/")
    except PermissionError:
        return True
    return False


def _sockets_are_refused() -> bool:
    try:
        socket.socket(socket.AF_UNIX).close()
    except PermissionError:
        return True
    return False
