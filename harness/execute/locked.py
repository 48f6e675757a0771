"""Skill processes in the sandbox: the zygote's part (LockedZygote), and what a locked worker does until it is killed.

A worker tells its layers when it is locked and ready; only then it is given calls.
"""
import asyncio
import gc
import os
import socket
from typing import Any

from harness.execute import pipe
from harness.execute.describe import manifest
from harness.execute.registry import Registry, RegistrySpec
from harness.execute.worker import serve_many, serve_one
from harness.sandbox import privileges
from harness.sandbox.policy import Layer, Sandbox
from harness.sandbox.template import Template
from harness.sandbox.zygote import SandboxedZygote, descriptors

WALKS = 3
"""CPython 3.11 rewrites a function's code while it runs it the first few times."""

class LockedZygote:
    """A SandboxedZygote whose workers serve skill calls."""

    def __init__(self, sandbox: str, bwrap: list, spec: RegistrySpec):
        self.sandbox, self._spec = Sandbox.from_json(sandbox), spec
        self._zygote = SandboxedZygote(self.sandbox, spec.skills, bwrap=Layer(*bwrap))
        self._template: Template | None = None

    def enter(self, control: socket.socket) -> None:
        self._zygote.enter(control.fileno())

    def close_view(self) -> None:
        self._zygote.close_view()

    def warm(self) -> None:
        """Walk the way that every worker walks first, so that its pages are written here, once, and shared."""
        for _ in range(WALKS):
            loop = asyncio.new_event_loop()
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()
            pipe.encode({"t": "locked", "layers": [["layer", True, ""]]})
            privileges.capabilities()
            descriptors()

    def descriptors(self) -> list[int]:
        """What the zygote should wait for beside its own; `attend()` when one is ready."""
        return self._template.descriptors() if self._template else []

    def attend(self) -> None:
        self._template.refuse()

    def fork(self, ours: socket.socket, theirs: socket.socket, begin, registry: Registry | None, providers: dict[str, Any]) -> int:
        """One more worker that serves `theirs`; `begin()` is called in it before anything else. Returns its pid, or raises VenusError.

        Foreign skills: a copy of the template, which serves a socket of its own: `ours` is made its other end."""
        if self.sandbox.preloads:
            return self._zygote.fork(theirs.fileno(), begin, lambda: _prepare() or _loop(),
                                     lambda loop, layers: self._serve(theirs, loop, layers, registry, providers))
        if self._template is None:
            self._template = Template(self._zygote, lambda: Registry.from_spec(self._spec),
                                      lambda sock, layers, loaded: self._serve(sock, _loop(), layers, loaded, providers))
        return self._template.copy(ours, begin, _prepare)

    def _serve(self, sock, loop, layers: list[Layer], registry: Registry, providers: dict[str, Any]) -> None:
        sock.sendall(pipe.encode({"t": "locked", "layers": [[layer.name, layer.active, layer.why] for layer in layers]}))
        if self.sandbox.reuses:
            gc.enable()
            serve_many(sock, loop, registry, providers)
            return
        call = pipe.read_blocking(sock)
        gc.enable()
        if call is not None and call["t"] == "describe":
            sock.sendall(pipe.encode({"t": "described", "skills": [manifest(registry.get(name)) for name in registry.ids()]}))
        elif call is not None:
            serve_one(sock, loop, registry, providers, call)


def _prepare() -> None:
    """No words of a skill reach a terminal or a log, and no page is written without need while the worker waits."""
    gc.disable()
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.close(null)


def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    return loop
