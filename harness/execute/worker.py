"""Inside a skill process: wait for the one call, run the skill, answer, end (locked.py: in a sandbox, and call after call).

Nothing of the system is reachable from here but the socket: vehicle, position and progress are messages to the session worker;
maps and places were opened before the fork. Printed text goes nowhere, so that no word of a user reaches a log.
"""
import asyncio
import math
import os
import resource
import socket
import threading
import traceback
from typing import Any, AsyncIterator

from harness.execute import pipe
from harness.execute.registry import Registry
from harness.host import errors as host_errors
from harness.host.providers import Effect, Point, Signal
from harness.skill import Result, SkillContext, SkillError
from venus_edge.errors import VenusError

MEMORY_LIMIT = 256 << 20
"""Bytes of address space that a skill may add to what it was forked with."""
FILES_LIMIT = 64
HOST_CALLS_LIMIT = 16


def serve(sock: socket.socket, registry: Registry, providers: dict[str, Any]) -> None:
    """Serve exactly one call on `sock`."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.close(null)
    with open("/proc/self/statm", encoding="ascii") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    for limit, value in ((resource.RLIMIT_AS, size + MEMORY_LIMIT), (resource.RLIMIT_NOFILE, FILES_LIMIT),
                         (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(limit, (value, value))
    loop = asyncio.new_event_loop()  # made while idle, not when the call comes
    asyncio.set_event_loop(loop)
    call = pipe.read_blocking(sock)
    if call is None:
        return
    seconds = int(call["timeout_s"]) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    serve_one(sock, loop, registry, providers, call)


def serve_one(sock: socket.socket, loop: asyncio.AbstractEventLoop, registry: Registry, providers: dict[str, Any], call: dict) -> None:
    """Run one call to its answer."""
    line = _Line(sock, loop)
    loop.run_until_complete(_Session(line, registry, providers, call).run())
    line.flush()


def serve_many(sock: socket.socket, loop: asyncio.AbstractEventLoop, registry: Registry, providers: dict[str, Any]) -> None:
    """Serve call after call, one at a time, until the socket closes or a call left something behind."""
    line = _Line(sock, loop)

    def begin(call: dict) -> None:
        session = _Session(line, registry, providers, call, before=asyncio.all_tasks(loop), threads=threading.active_count())
        task = loop.create_task(session.run())
        task.add_done_callback(lambda _: None if session.again else loop.stop())

    line.on_call = begin
    loop.run_forever()
    line.flush()


class _Line:
    """The socket of this process on its event loop, without the cost of streams: what is sent is gone when send() returns."""

    def __init__(self, sock: socket.socket, loop: asyncio.AbstractEventLoop):
        self._sock, self._loop = sock, loop
        self._frames, self._unsent = pipe.Frames(), bytearray()
        self.on_call = self.on_message = None
        sock.setblocking(False)
        loop.add_reader(sock.fileno(), self._arrived)

    def _arrived(self) -> None:
        try:
            data = self._sock.recv(65536)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            os._exit(1)  # the session worker is gone: nobody waits for us
        self._frames.feed(data)
        for message in self._frames.messages():
            taker = self.on_call if message["t"] == "call" else self.on_message
            if taker is not None:
                taker(message)

    def send(self, message: dict) -> None:
        """Raises FrameTooLarge, TypeError or ValueError for what doesn't fit a message; nothing is sent then."""
        data = pipe.encode(message)
        if not self._unsent:
            try:
                data = data[self._sock.send(data):]
            except BlockingIOError:
                pass
        if data:
            if not self._unsent:  # once: to register again would cancel the turn that the loop has given it
                self._loop.add_writer(self._sock.fileno(), self._writable)
            self._unsent += data

    def _writable(self) -> None:
        try:
            del self._unsent[:self._sock.send(self._unsent)]
        except BlockingIOError:
            return
        if not self._unsent:
            self._loop.remove_writer(self._sock.fileno())

    def flush(self) -> None:
        """Send the rest, waiting for it."""
        self._sock.setblocking(True)
        self._sock.sendall(self._unsent)


class _Undeclared:
    """Stands for a provider that the manifest does not name."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, method):
        raise host_errors.NotPermitted(f"the manifest does not declare the use of {self._name}", provider=self._name)


class _Session:
    """One call. `again`: once it is over, whether this process may serve another (nothing of the call is left in it)."""

    def __init__(self, line: _Line, registry: Registry, providers: dict, call: dict, *, before: set = frozenset(), threads: int = 1):
        self._line, self._registry, self._providers, self._call = line, registry, providers, call
        self._before, self._threads = before, threads
        self._pending: dict[int, asyncio.Future] = {}
        self._count = 0
        self._running: asyncio.Task | None = None
        self.again = False
        line.on_message = self._take

    def _send(self, message: dict) -> None:
        self._line.send(message)

    async def ask(self, op: str, **fields) -> Any:
        """One host call; raises the host's error."""
        if len(self._pending) >= HOST_CALLS_LIMIT:
            raise host_errors.Unavailable(f"more than {HOST_CALLS_LIMIT} host calls at once")
        self._count += 1
        number, future = self._count, asyncio.get_running_loop().create_future()
        self._pending[number] = future
        try:
            self._send({"t": "host", "id": number, "op": op, **fields})
            answer = await future
        finally:
            self._pending.pop(number, None)
        if not answer["ok"]:
            raise host_errors.from_dict(answer["error"])
        return answer["value"]

    def _take(self, message: dict) -> None:
        if message["t"] == "cancel":
            if self._running is not None:
                self._running.cancel()
        elif message["t"] == "answer":
            future = self._pending.get(message["id"])
            if future and not future.done():
                future.set_result(message)

    async def run(self) -> None:
        call = self._call
        memory = dict(call["memory"])
        self._running = asyncio.current_task()
        try:
            answer = {"t": "done", **await self._skill(memory), "memory": memory}
        except asyncio.CancelledError:
            answer = {"t": "failed", "code": "cancelled", "message": "cancelled", "data": {}, "memory": memory}
        except VenusError as err:
            answer = {"t": "failed", "code": err.code, "message": err.message, "data": err.data, "memory": memory}
        except BaseException as err:  # a skill's own fault: its kind and place are told, never its words
            frame = traceback.extract_tb(err.__traceback__)[-1] if err.__traceback__ else None
            place = f" at {os.path.basename(frame.filename)}:{frame.lineno}" if frame else ""
            answer = {"t": "failed", "code": "internal", "message": type(err).__name__ + place, "data": {}, "memory": None}
        self.again = answer["t"] == "done" and threading.active_count() <= self._threads and not (
            asyncio.all_tasks() - self._before - {self._running})
        answer["again"] = self.again
        try:
            self._send(answer)
        except (TypeError, ValueError, RecursionError) as err:  # not JSON, or too large
            self.again = False
            self._send({"t": "failed", "code": "internal", "message": f"result refused: {err}"[:300], "data": {}, "memory": None})

    async def _skill(self, memory: dict) -> dict:
        call = self._call
        skill = self._registry.get(call["skill"])
        arguments = self._registry.validate(call["skill"], call["arguments"])
        context = SkillContext(
            task_id=call["task"], task_version=call["version"], lang=call["lang"], zone=call["zone"],
            position=self._position, vehicle=_RemoteBus(self), progress=self._progress, memory=memory,
            **{name: self._providers[name] if name in skill.effects.uses else _Undeclared(name) for name in ("maps", "places")})
        self._send({"t": "started"})
        result = await skill().run(arguments, context)
        if not isinstance(result, Result):
            raise SkillError("internal", f"{call['skill']} returned {type(result).__name__}, not a Result")
        return {"outcome": result.outcome, "fields": result.spoken(call["lang"]), "result": result.model_dump(mode="json")}

    async def _position(self) -> Point:
        return Point(**await self.ask("position"))

    def _progress(self, outcome: str, **fields) -> None:
        self._send({"t": "progress", "outcome": outcome, "fields": fields})


class _RemoteBus:
    """harness.host.providers.VehicleBus by messages to the session worker."""

    def __init__(self, session: _Session):
        self._session = session

    async def get(self, *paths: str) -> dict[str, Signal]:
        signals = await self._session.ask("get", paths=list(paths))
        return {path: _signal(path=path, **fields) for path, fields in signals.items()}

    async def actuate(self, path: str, value: Any, *, timeout_s: float = 3.0) -> Effect:
        return Effect(**await self._session.ask("actuate", path=path, value=value, timeout_s=timeout_s))

    async def subscribe(self, *paths: str) -> AsyncIterator[Signal]:
        number = await self._session.ask("subscribe", paths=list(paths))
        try:
            while True:  # asked for one by one: a slow skill holds up nobody
                signal = await self._session.ask("next", subscription=number)
                if signal is None:
                    return
                yield _signal(**signal)
        finally:
            await self._session.ask("unsubscribe", subscription=number)


def _signal(path: str, value: Any, age_s: float | None) -> Signal:
    return Signal(path, value, math.inf if age_s is None else age_s)
