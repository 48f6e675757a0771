"""The ready skill processes of one session worker: a zygote (worker_main.py) and the processes it forks.

Two wait idle; more are forked when more are asked for. A process serves one call and is then killed through its pidfd, which
names that very process even after its number was used again. In a sandbox that reuses them (built-in skills), a process whose call
ended well goes back to the idle ones instead, up to REUSED_LIMIT times.
"""
import asyncio
import json
import logging
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
from harness.sandbox import bubblewrap, view
from harness.sandbox.errors import SandboxMissing
from harness.sandbox.policy import Layer, Sandbox
from venus_edge.errors import ConfigError, VenusError
from venus_edge.metrics import METRICS

IDLE = 2
START_S = 20.0
READY_S = 10.0
"""A locked process that has not loaded its skills by then is killed."""
DEATH_S = 1.0
REUSED_LIMIT = 1000
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "HOME", "LD_LIBRARY_PATH")
"""All that a skill process gets of our environment: no key and no token. A locked one keeps less (harness.sandbox.lock)."""
_FOREIGN_PASSED_ON = ("LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH")
log = logging.getLogger(__name__)


@dataclass
class Process:
    """One ready skill process."""

    pid: int
    handle: int
    """pidfd"""
    channel: pipe.Channel
    layers: tuple[Layer, ...] = ()
    served: int = 0


@dataclass
class _Zygote:
    popen: subprocess.Popen
    control: socket.socket
    ready: asyncio.Future
    spawning: int = 0
    idle: deque = field(default_factory=deque)


class ProcessPool:
    """All methods belong to one event loop and none of them blocks it."""

    def __init__(self, spec: RegistrySpec, cache_dir: Path | None, sandbox: Sandbox | None = None):
        """Without a sandbox, processes have limits of memory and files, and nothing else holds them: for code of one's own."""
        self._spec, self._cache_dir, self._sandbox = spec, cache_dir, sandbox
        self._told = False
        self.layers: tuple[Layer, ...] = ()
        """As the first locked process reported them."""
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
        environment = {name: os.environ[name] for name in self._passed_on() if name in os.environ}
        environment |= {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)), "MALLOC_ARENA_MAX": "1",
                        "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "harness.execute.worker_main", str(theirs.fileno()), self._spec.to_json(),
                   str(self._cache_dir or "")]
        if self._sandbox is not None:
            environment["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"  # 100 MB in huge pages die in 1 ms, in small ones in 20
            bwrap, layer = await asyncio.to_thread(bubblewrap.find, self._sandbox)
            command += [self._sandbox.to_json(), json.dumps([layer.name, layer.active, layer.why])]
            if bwrap:
                paths = [*view.readable(self._spec.skills, self._sandbox.data), os.path.dirname(sys.executable), sys.base_prefix]
                command = bubblewrap.arguments(bwrap, paths, environment) + command
        popen = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment)
        theirs.close()
        zygote = _Zygote(popen, ours, loop.create_future())
        loop.add_reader(ours.fileno(), self._on_control, zygote)
        try:
            await asyncio.wait_for(asyncio.shield(zygote.ready), START_S)
        except BaseException:
            await self._end_zygote(zygote)
            raise
        return zygote

    def _passed_on(self) -> tuple[str, ...]:
        if self._sandbox is None or self._sandbox.preloads:
            return _PASSED_ON if self._sandbox is None or self._sandbox.wants("env") else tuple(os.environ)
        return _FOREIGN_PASSED_ON if self._sandbox.wants("env") else tuple(os.environ)

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
            asyncio.ensure_future(self._welcome(zygote, message["pid"], *fds))
        elif error := message.get("unready"):
            METRICS.add("venus_harness_skill_unready_total")
            zygote.spawning -= 1
            self._refuse(_error_from(error))
        elif not zygote.ready.done():
            if error := message.get("error"):
                zygote.ready.set_exception(_error_from(error))
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
        _, channel = await asyncio.get_running_loop().create_connection(pipe.Channel, sock=sock)
        process = Process(_pid_of(handle) or pid, handle, channel)
        try:
            if self._sandbox is not None:
                await asyncio.wait_for(self._locked(process), READY_S)
        except (VenusError, ConnectionError, ValueError, TimeoutError) as err:
            METRICS.add("venus_harness_skill_unready_total")
            zygote.spawning -= 1
            self._refuse(err)
            await self.kill(process)
            return
        zygote.spawning -= 1
        if zygote is not self._zygote:
            await self.kill(process)
        else:
            self._give_back(process)

    async def _locked(self, process: Process) -> None:
        """Wait until a process is locked and ready; raises SandboxMissing or ConfigError when it never will be."""
        message = await process.channel.read()
        if message.get("t") != "locked":
            raise ValueError("a process did not tell its layers")
        process.layers = tuple(Layer(*fields) for fields in message["layers"])
        self.layers = self.layers or process.layers
        self._sandbox.check(process.layers)
        if not self._told:
            self._told = True
            missing = [f"{layer.name} ({layer.why})" for layer in process.layers if not layer.active]
            log.log(logging.WARNING if self._sandbox.allow_missing or self._sandbox.off else logging.INFO,
                    "skills (%s) are locked by %s; without %s", self._sandbox.trust,
                    ", ".join(layer.name for layer in process.layers if layer.active) or "nothing", "; ".join(missing) or "none")

    def _refuse(self, err: Exception) -> None:
        """A process that could not be made ready: the longest waiting call gets to know why."""
        error = err if isinstance(err, VenusError) else ConfigError(f"a skill process did not become ready: {type(err).__name__}")
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_exception(error)
                return

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

    def take_back(self, process: Process) -> bool:
        """Keep a process whose call ended well for the next one, if the sandbox reuses it; False: it has to be killed."""
        process.served += 1
        if (self._sandbox is None or not self._sandbox.reuses or process.served >= REUSED_LIMIT or self._zygote is None
                or len(self._zygote.idle) > IDLE):
            return False
        self._give_back(process)
        return True

    async def kill(self, process: Process) -> None:
        """SIGKILL by pidfd, and wait until the process is really dead."""
        loop, dead = asyncio.get_running_loop(), asyncio.Event()
        process.channel.abort()
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


def _error_from(error: dict) -> VenusError:
    """An error that the zygote met, as its own kind here."""
    kind = SandboxMissing if error.get("code") == SandboxMissing.code else ConfigError
    return kind(error.get("message", "no reason given"), **error.get("data", {}))


def _pid_of(handle: int) -> int | None:
    """The number that a process has here, from its pidfd: a zygote in a pid namespace of its own knows another."""
    try:
        with open(f"/proc/self/fdinfo/{handle}", encoding="ascii") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("Pid:")), None)
    except OSError:
        return None
