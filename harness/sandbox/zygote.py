"""The sandboxed half of the skill zygote: its namespaces, what its workers may read, and the lock that each of them puts on."""
import os
import resource
from typing import Any, Callable

from harness.sandbox import kernel, lock, namespaces, seccomp, view
from harness.sandbox.policy import Layer, Sandbox


class SandboxedZygote:
    """`enter()` first of all, `close_view()` when code and data are loaded, then `fork()` as often as workers are needed."""

    def __init__(self, sandbox: Sandbox, modules: tuple[str, ...], *, bwrap: Layer, executable: tuple[str, ...] = ()):
        """`modules`: whose code may be read; `executable`: folders whose programs may be started (a whole program only)."""
        self.sandbox, self._bwrap, self._executable = sandbox, bwrap, executable
        self._readable = view.readable(modules, (*sandbox.data, *executable))
        self._listable = view.listable(self._readable)
        self._before: set[int] = set()
        self._kept: set[int] = set()
        self._size = 0
        self.layers: list[Layer] = []

    def enter(self, control: int, tell: Callable[[int], None] = lambda pid: None) -> None:
        """Become the first process of our own namespaces; the process that called tells our pid and waits for us."""
        self.layers = [self._bwrap, *namespaces.enter(self.sandbox)]
        if self._active("pidns"):
            namespaces.become_first(control, tell)
        if self.sandbox.wants("no_new_privs"):
            kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        self._before = descriptors()

    def close_view(self) -> None:
        """Leave the machine's file tree; what was opened since `enter()` stays open in the workers."""
        self._kept = descriptors() - self._before
        with open("/proc/self/statm", encoding="ascii") as file:
            self._size = int(file.read().split()[0]) * resource.getpagesize()
        self._nursery = namespaces.Nursery(self._active("pidns"), self._why("pidns"))
        if self._active("view"):
            try:
                view.enter(self._readable)
            except OSError as err:
                self.layers = [layer if layer.name != "view" else Layer("view", False, str(err)) for layer in self.layers]

    def fork(self, keep: int, begin: Callable[[], None], prepare: Callable[[], Any], serve: Callable[[Any, list[Layer]], None],
             install: Callable[[], Any] = seccomp.install) -> int:
        """Fork a worker that keeps no descriptor but `keep`, the providers' and those that `prepare()` opens; returns its pid.

        In the worker: `begin()`, which may close some, `prepare()`, the lock, then `serve(what prepare returned, the layers)`; when that
        returns, the worker ends. `install` loads its filter of system calls."""
        def inside(pidns: Layer) -> None:
            begin()
            before = descriptors()
            prepared = prepare()
            kept = {keep, *self._kept, *(descriptors() - before)}
            found = [pidns if layer.name == "pidns" else layer for layer in self.layers]
            serve(prepared, lock.apply(self.sandbox, size=self._size, readable=self._readable, listable=self._listable, keep=kept,
                                       found=found, install=install))
            os._exit(0)

        return self._nursery.fork(inside)

    def lock(self, keep: set[int], install: Callable[[], Any]) -> list[Layer]:
        """Lock this very process instead of a fork of it; returns the layers."""
        return lock.apply(self.sandbox, size=self._size, readable=self._readable, listable=self._listable, keep=keep, found=self.layers,
                          install=install, executable=self._executable)

    def tighten(self, layers: list[Layer]) -> None:
        """In a copy of a locked process with those layers: the rest of its lock."""
        lock.tighten(self.sandbox, layers, readable=self._readable, listable=self._listable)

    def _active(self, name: str) -> bool:
        return any(layer.active for layer in self.layers if layer.name == name)

    def _why(self, name: str) -> str:
        return next((layer.why for layer in self.layers if layer.name == name), "")


def descriptors() -> set[int]:
    """The descriptors open here. By trying, as the view has no /proc: up to the first hundred free ones in a row."""
    found, free, number = set(), 0, 0
    while free < 100:
        try:
            os.fstat(number)
            found.add(number)
            free = 0
        except OSError:
            free += 1
        number += 1
    return found
