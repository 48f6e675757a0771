"""The ready skill processes of one session worker: a zygote (worker_main.py) and the processes it forks.

Two wait idle; more are forked when more are asked for. A process serves one call and is then killed through its pidfd, which
names that very process even after its number was used again.
"""
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from harness.execute import pipe
from harness.execute.registry import RegistrySpec
from venus_edge.errors import ConfigError
from venus_edge.metrics import METRICS

IDLE = 2
START_S = 20.0
DEATH_S = 1.0
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "HOME", "LD_LIBRARY_PATH")
"""All that a skill process gets of our environment: no key and no token."""


@dataclass
class Process:
    """One ready skill process."""

    pid: int
    handle: int
    """pidfd"""
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


@dataclass
class _Zygote:
    popen: subprocess.Popen
    control: socket.socket
    ready: asyncio.Future
    spawning: int = 0
    idle: deque = field(default_factory=deque)


class ProcessPool:
    """All methods belong to one event loop and none of them blocks it."""

    def __init__(self, spec: RegistrySpec, cache_dir: Path | None):
        self._spec, self._cache_dir = spec, cache_dir
        self._zygote: _Zygote | None = None
        self._starting = asyncio.Lock()
        self._waiting: deque[asyncio.Future] = deque()
        self._closed = False

    async def start(self) -> None:
        """Start the zygote and have one process ready; raises ConfigError with what stopped it (a missing map names its file)."""
        self._give_back(await self.take())

    async def close(self) -> None:
        """End the idle processes and the zygote, and with it whatever still runs."""
        self._closed = True
        zygote, self._zygote = self._zygote, None
        self._give_up("the skill processes were closed")
        if zygote:
            await self._end_zygote(zygote)

    async def _ensure_zygote(self) -> None:
        async with self._starting:
            if self._closed:
                raise ConnectionError("the skill processes were closed")
            if self._zygote is None:
                self._zygote = await self._start_zygote()

    async def _start_zygote(self) -> _Zygote:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment |= {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "MALLOC_ARENA_MAX": "1",
                        "PYTHONDONTWRITEBYTECODE": "1"}
        popen = subprocess.Popen(
            [sys.executable, "-m", "harness.execute.worker_main", str(theirs.fileno()), self._spec.to_json(),
             str(self._cache_dir or "")], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            env=environment)
        theirs.close()
        zygote = _Zygote(popen, ours, loop.create_future())
        loop.add_reader(ours.fileno(), self._on_control, zygote)
        try:
            await asyncio.wait_for(asyncio.shield(zygote.ready), START_S)
        except BaseException:
            await self._end_zygote(zygote)
            raise
        return zygote

    def _on_control(self, zygote: _Zygote) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(zygote.control, 65536, 4)
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        if not data:
            self._lost(zygote)
            return
        message = json.loads(data)
        if "pid" in message:
            zygote.spawning -= 1
            asyncio.ensure_future(self._welcome(zygote, message["pid"], *fds))
        elif not zygote.ready.done():
            if error := message.get("error"):
                zygote.ready.set_exception(ConfigError(error.get("message", "no reason given"), **error.get("data", {})))
            else:
                zygote.ready.set_result(None)

    def _lost(self, zygote: _Zygote) -> None:
        """The zygote ended by itself: its processes go with it, the next call starts another."""
        asyncio.get_running_loop().remove_reader(zygote.control.fileno())
        if not zygote.ready.done():
            zygote.ready.set_exception(ConfigError("the skill processes could not start; see the log above"))
        if self._zygote is zygote:
            METRICS.add("venus_harness_skill_zygote_lost_total")
            self._zygote = None
            asyncio.ensure_future(self._end_zygote(zygote))
            self._give_up("the skill processes ended")

    def _give_up(self, why: str) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_exception(ConnectionError(why))

    async def _welcome(self, zygote: _Zygote, pid: int, sock_fd: int, handle: int) -> None:
        sock = socket.socket(fileno=sock_fd)
        sock.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=sock, limit=2 * pipe.FRAME_LIMIT)
        process = Process(pid, handle, reader, writer)
        if zygote is not self._zygote:
            await self.kill(process)
        else:
            self._give_back(process)

    def _give_back(self, process: Process) -> None:
        """Hand a ready process to the longest waiting call, else keep it for the next."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(process)
                return
        if self._zygote is None:
            asyncio.ensure_future(self.kill(process))
        else:
            self._zygote.idle.append(process)

    async def take(self) -> Process:
        """A ready process, at once when one is idle; raises ConfigError or ConnectionError when none can be made."""
        await self._ensure_zygote()
        zygote = self._zygote
        if zygote.idle:
            process = zygote.idle.popleft()
            if not zygote.idle:
                self.refill()
            return process
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self.refill()
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and not waiter.exception():
                self._give_back(waiter.result())
            raise

    def refill(self) -> None:
        """Ask for as many processes as the waiting calls and the pool need."""
        zygote = self._zygote
        if zygote is None or self._closed:
            return
        waiting = sum(not waiter.done() for waiter in self._waiting)
        for _ in range(IDLE + waiting - len(zygote.idle) - zygote.spawning):
            try:
                zygote.control.send(b"spawn")
                zygote.spawning += 1
            except OSError:  # full or gone: the end of the next call tries again, and a lost zygote is noticed by its reader
                break

    async def kill(self, process: Process) -> None:
        """SIGKILL by pidfd, and wait until the process is really dead."""
        loop, dead = asyncio.get_running_loop(), asyncio.Event()
        process.writer.transport.abort()
        try:
            signal.pidfd_send_signal(process.handle, signal.SIGKILL)
        except ProcessLookupError:
            pass
        loop.add_reader(process.handle, dead.set)
        try:
            await asyncio.wait_for(dead.wait(), DEATH_S)
        except TimeoutError:
            METRICS.add("venus_harness_skill_undead_total")
        finally:
            loop.remove_reader(process.handle)
            os.close(process.handle)

    async def _end_zygote(self, zygote: _Zygote) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(zygote.control.fileno())
        for process in zygote.idle:
            await self.kill(process)
        zygote.idle.clear()
        zygote.control.close()
        handle, dead = os.pidfd_open(zygote.popen.pid), asyncio.Event()
        loop.add_reader(handle, dead.set)
        try:
            await asyncio.wait_for(dead.wait(), DEATH_S)
        except TimeoutError:
            zygote.popen.kill()
            await dead.wait()
        finally:
            loop.remove_reader(handle)
            os.close(handle)
        zygote.popen.wait()
