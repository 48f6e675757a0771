"""Starts the product's processes, waits until they serve, restarts the dead, stops all; leaves nothing behind.

A child says on standard output: `READY {json}` once, `METRICS {json}` every 2 s, `DONE {json}` before a planned end.
One that has told its metrics and then falls silent hangs: it is ended, and started again like one that died.
"""
import asyncio
import json
import os
import signal
from dataclasses import dataclass, field
from typing import Awaitable, Callable

from venus_edge.clock import Clock, SystemClock
from venus_edge.errors import VenusError
from venus_edge.metrics import METRICS

STOP_S = 2.0
KILL_S = 1.0
DRAIN_S = 0.5
MAX_RESTARTS = 5
RESTART_WINDOW_S = 60.0
HUNG_S = 20.0
HUNG_CHECK_S = 2.0
LOG_MAX_BYTES = 16 << 20
"""A log that grows beyond this becomes `<name>.1`, and the one before it is gone."""
SECRET_ENDINGS = ("_SECRET", "_TOKEN", "_TOKENS", "VENUS_LLM_KEY")
"""VENUS_* variables with these endings are not inherited: each process gets by its Spec the ones that it needs."""


class StartError(VenusError):
    """A process did not come up; the message is its own last words."""

    code = "start"
    advice = "Read the message; it names the file, port or setting."


@dataclass(frozen=True)
class Spec:
    """One process. `probe` replaces the READY line for programs that aren't ours: awaited until it returns True."""

    name: str
    argv: tuple[str, ...]
    env: dict | Callable[[], dict] = field(default_factory=dict)
    """Variables on top of ours; a function is asked at each start, so that a restart gets a token that is still good."""
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
        self.told_at: float | None = None
        """When this run last told its metrics; None before it first did."""
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

    @staticmethod
    def environment(spec: Spec) -> dict:
        """What the process gets: our own environment without secrets, and the Spec's."""
        ours = {k: v for k, v in os.environ.items() if not (k.startswith("VENUS_") and k.endswith(SECRET_ENDINGS))}
        more = spec.env() if callable(spec.env) else spec.env
        return {**ours, "PYTHONUNBUFFERED": "1", "VENUS_SUPERVISED": str(os.getpid()), **more}

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
        child.serving.clear()
        child.state, child.done, child.told_at = "starting", None, None
        try:
            child.proc = await asyncio.create_subprocess_exec(
                *spec.argv, env=self.environment(spec), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE, limit=1 << 20, start_new_session=True)
        except OSError as err:
            child.state = "failed"
            raise StartError(f"{spec.name}: {spec.argv[0]} can't be started ({err.strerror})") from err
        child.pumps = [asyncio.create_task(self._stdout(child, child.proc)), asyncio.create_task(self._stderr(child, child.proc))]
        deadline = self.clock.now() + spec.ready_s
        while not child.serving.is_set():
            if child.proc.returncode is not None:
                await self._end(child)
                await asyncio.gather(*child.pumps, return_exceptions=True)
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
        async for raw in _lines(proc.stdout):
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
                child.metrics, child.told_at = data, self.clock.now()
            else:
                child.done = data

    async def _stderr(self, child: Child, proc) -> None:
        path, out = child.spec.log, None
        try:
            async for raw in _lines(proc.stderr):
                child.tail.append(raw.decode(errors="replace").rstrip()[:2000])
                del child.tail[:-50]
                try:  # a full disk must not end the reader: the child would stop at its next word
                    if path and out is None:
                        out = open(path, "ab", buffering=0)
                    if out and out.tell() > LOG_MAX_BYTES:
                        out.close()
                        os.replace(path, f"{path}.1")
                        out = open(path, "ab", buffering=0)
                    if out:
                        out.write(raw)
                except OSError:
                    METRICS.add("venus_supervisor_log_lines_lost")
        finally:
            if out:
                out.close()

    async def _watch(self, child: Child) -> None:
        recent: list[float] = []
        while True:
            await self._over(child)
            await self._end(child)  # what it left behind in its group: it may hold the pipes, or the port
            await asyncio.gather(*child.pumps, return_exceptions=True)
            if not child.spec.restart:
                self._ended(child)
                return
            child.state = "starting"
            self._on_event("died", child)
            while True:
                recent = [t for t in recent if self.clock.now() - t < RESTART_WINDOW_S] + [self.clock.now()]
                if len(recent) > MAX_RESTARTS:
                    child.state = "failed"
                    child.exited.set()
                    self._on_event("failed", child)
                    return
                await self.clock.sleep(min(5.0, 0.1 * 2 ** (len(recent) - 1)))
                child.restarts += 1
                try:
                    await self._launch(child)
                    break
                except VenusError:
                    continue

    def _ended(self, child: Child) -> None:
        if child.exited.is_set():
            return
        child.exited.set()
        if child.state != "failed":
            child.state = "ended"
            self._on_event("ended", child)

    async def _over(self, child: Child) -> None:
        """Wait until the process has ended; one that hangs (only looked for where it would be started again) is ended."""
        over = asyncio.ensure_future(child.proc.wait())
        try:
            while not over.done() and child.proc.returncode is None:  # wait() also waits for who else holds the pipes
                begin = self.clock.now()
                tick = asyncio.ensure_future(self.clock.sleep(HUNG_CHECK_S))
                await asyncio.wait({over, tick}, return_when=asyncio.FIRST_COMPLETED)
                tick.cancel()
                now = self.clock.now()
                if now - begin > 2 * HUNG_CHECK_S or not child.spec.restart or child.told_at is None:
                    continue  # a late tick: we ourselves stood still, and its words may wait unread
                if now - child.told_at > HUNG_S and child.proc.returncode is None:
                    METRICS.add("venus_supervisor_hung_children")
                    self._on_event("hung", child)
                    await self._end(child)
        finally:
            over.cancel()

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
        """Stop every child, newest first. The watchers go first, so that none starts a process that nobody would stop."""
        watchers = list(self._watchers)
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)
        for child in reversed(list(self.children.values())):
            await self._end(child)
            self._ended(child)
        pumps = [pump for child in self.children.values() for pump in child.pumps]
        if pumps:  # the last words come to an end by themselves, as nobody holds the pipes any more
            await asyncio.wait(pumps, timeout=DRAIN_S)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _lines(stream):
    """The lines of a child's output; one that is longer than the reader's limit is skipped instead of ending the reading."""
    while True:
        try:
            raw = await stream.readline()
        except ValueError:
            METRICS.add("venus_supervisor_lines_skipped")
            continue
        if not raw:
            return
        yield raw
