"""Starts the product's processes, waits until they serve, restarts the dead, stops all; leaves nothing behind.

A child says on standard output: `READY {json}` once, `METRICS {json}` every 2 s, `DONE {json}` before a planned end.
"""
import asyncio
import json
import os
import signal
from dataclasses import dataclass, field
from typing import Awaitable, Callable

from venus_edge.clock import Clock, SystemClock
from venus_edge.errors import VenusError

STOP_S = 2.0
KILL_S = 1.0
MAX_RESTARTS = 5
RESTART_WINDOW_S = 60.0


class StartError(VenusError):
    """A process did not come up; the message is its own last words."""

    code = "start"
    advice = "Read the message; it names the file, port or setting."


@dataclass(frozen=True)
class Spec:
    """One process. `probe` replaces the READY line for programs that aren't ours: awaited until it returns True."""

    name: str
    argv: tuple[str, ...]
    env: dict = field(default_factory=dict)
    ready_s: float = 40.0
    restart: bool = False
    probe: Callable[[], Awaitable[bool]] | None = None
    log: str = ""
    """File for standard error; empty keeps it in a bounded tail only."""


class Child:
    """A running process and what it has said."""

    def __init__(self, spec: Spec):
        self.spec, self.proc = spec, None
        self.info: dict = {}
        self.done: dict | None = None
        self.metrics: dict = {}
        self.tail: list[str] = []
        self.state = "starting"
        self.restarts = 0
        self.exited = asyncio.Event()
        self.serving = asyncio.Event()
        self.pumps: list[asyncio.Task] = []

    @property
    def name(self) -> str:
        return self.spec.name


class Supervisor:
    """Owns a set of children. Use as `async with Supervisor() as sup: await sup.start(spec)`."""

    def __init__(self, clock: Clock | None = None, on_event: Callable[[str, Child], None] | None = None):
        self.clock = clock or SystemClock()
        self.children: dict[str, Child] = {}
        self._on_event = on_event or (lambda what, child: None)
        self._watchers: set[asyncio.Task] = set()
        self._stopping = False

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exc):
        await self.stop()

    async def start(self, spec: Spec) -> Child:
        """Start and wait until it serves; raises StartError with the child's last words."""
        child = self.children[spec.name] = Child(spec)
        await self._launch(child)
        watcher = asyncio.create_task(self._watch(child))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)
        return child

    async def _launch(self, child: Child) -> None:
        spec = child.spec
        env = {**os.environ, "PYTHONUNBUFFERED": "1", "VENUS_SUPERVISED": "1", **spec.env}
        child.exited, child.serving, child.state, child.done = asyncio.Event(), asyncio.Event(), "starting", None
        child.proc = await asyncio.create_subprocess_exec(
            *spec.argv, env=env, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, limit=1 << 20, start_new_session=True)
        child.pumps = [asyncio.create_task(self._stdout(child, child.proc)), asyncio.create_task(self._stderr(child, child.proc))]
        deadline = self.clock.now() + spec.ready_s
        while not child.serving.is_set():
            if child.proc.returncode is not None:
                await asyncio.gather(*child.pumps)
                child.state = "failed"
                raise StartError(f"{spec.name}: {self._last_words(child) or f'ended with status {child.proc.returncode}'}")
            if self.clock.now() > deadline:
                await self._end(child)
                child.state = "failed"
                raise StartError(f"{spec.name}: not ready after {spec.ready_s:.0f} s. {self._last_words(child)}")
            if spec.probe is not None and await spec.probe():
                break
            await self.clock.sleep(0.02)
        child.state = "serving"
        self._on_event("serving", child)

    @staticmethod
    def _last_words(child: Child) -> str:
        return next((line for line in reversed(child.tail) if line.strip()), "")[:400]

    async def _stdout(self, child: Child, proc) -> None:
        async for raw in proc.stdout:
            word, _, rest = raw.decode(errors="replace").strip().partition(" ")
            if word not in ("READY", "METRICS", "DONE"):
                continue
            try:
                data = json.loads(rest)
            except ValueError:
                continue
            if word == "READY":
                child.info = data
                child.serving.set()
            elif word == "METRICS":
                child.metrics = data
            else:
                child.done = data

    async def _stderr(self, child: Child, proc) -> None:
        out = open(child.spec.log, "ab", buffering=0) if child.spec.log else None
        try:
            async for raw in proc.stderr:
                child.tail.append(raw.decode(errors="replace").rstrip())
                del child.tail[:-50]
                if out:
                    out.write(raw)
        finally:
            if out:
                out.close()

    async def _watch(self, child: Child) -> None:
        recent: list[float] = []
        while True:
            await child.proc.wait()
            await asyncio.gather(*child.pumps, return_exceptions=True)
            if self._stopping or not child.spec.restart:
                child.state = "ended"
                child.exited.set()
                self._on_event("ended", child)
                return
            self._on_event("died", child)
            while True:
                recent = [t for t in recent if self.clock.now() - t < RESTART_WINDOW_S] + [self.clock.now()]
                if len(recent) > MAX_RESTARTS:
                    child.state = "failed"
                    child.exited.set()
                    self._on_event("failed", child)
                    return
                await self.clock.sleep(min(5.0, 0.1 * 2 ** (len(recent) - 1)))
                if self._stopping:
                    return
                child.restarts += 1
                try:
                    await self._launch(child)
                    break
                except StartError:
                    continue

    async def _end(self, child: Child) -> None:
        """SIGTERM, then SIGKILL to what is left of its process group after STOP_S."""
        proc = child.proc
        if proc is None:
            return
        if proc.returncode is None:
            proc.terminate()
            try:
                await asyncio.wait_for(proc.wait(), STOP_S)
            except asyncio.TimeoutError:
                pass
        try:
            os.killpg(proc.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if proc.returncode is None:
            try:
                await asyncio.wait_for(proc.wait(), KILL_S)
            except asyncio.TimeoutError:
                pass

    async def stop(self) -> None:
        """Stop every child, newest first."""
        self._stopping = True
        for child in reversed(list(self.children.values())):
            await self._end(child)
        for watcher in list(self._watchers):
            watcher.cancel()
        for child in self.children.values():
            for pump in child.pumps:
                pump.cancel()
            await asyncio.gather(*child.pumps, return_exceptions=True)
