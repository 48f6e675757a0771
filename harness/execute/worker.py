"""Inside a skill process: wait for the one call, run the skill, answer, end.

Nothing of the system is reachable from here but the socket: vehicle, position and progress are messages to the session worker;
maps and places were opened before the fork. Printed text goes nowhere, so that no word of a user reaches a log.
"""
import asyncio
import math
import os
import resource
import socket
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
    loop.run_until_complete(_Session(sock, registry, providers, call).run())


class _Undeclared:
    """Stands for a provider that the manifest does not name."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, method):
        raise host_errors.NotPermitted(f"the manifest does not declare the use of {self._name}", provider=self._name)


class _Session:
    def __init__(self, sock: socket.socket, registry: Registry, providers: dict, call: dict):
        self._sock, self._registry, self._providers, self._call = sock, registry, providers, call
        self._pending: dict[int, asyncio.Future] = {}
        self._count = 0
        self._writer: asyncio.StreamWriter | None = None

    def _send(self, message: dict) -> None:
        self._writer.write(pipe.encode(message))

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

    async def _listen(self, reader: asyncio.StreamReader, skill: asyncio.Task) -> None:
        while True:
            try:
                message = await pipe.read(reader)
            except (asyncio.IncompleteReadError, ConnectionError):
                os._exit(1)  # the session worker is gone: nobody waits for us
            if message["t"] == "cancel":
                skill.cancel()
            elif message["t"] == "answer":
                future = self._pending.get(message["id"])
                if future and not future.done():
                    future.set_result(message)

    async def run(self) -> None:
        call = self._call
        reader, self._writer = await asyncio.open_connection(sock=self._sock, limit=2 * pipe.FRAME_LIMIT)
        memory = dict(call["memory"])
        skill = asyncio.ensure_future(self._skill(memory))
        listener = asyncio.ensure_future(self._listen(reader, skill))
        try:
            answer = {"t": "done", **await skill, "memory": memory}
        except asyncio.CancelledError:
            answer = {"t": "failed", "code": "cancelled", "message": "cancelled", "data": {}, "memory": memory}
        except VenusError as err:
            answer = {"t": "failed", "code": err.code, "message": err.message, "data": err.data, "memory": memory}
        except BaseException as err:  # a skill's own fault: its kind and place are told, never its words
            frame = traceback.extract_tb(err.__traceback__)[-1] if err.__traceback__ else None
            place = f" at {os.path.basename(frame.filename)}:{frame.lineno}" if frame else ""
            answer = {"t": "failed", "code": "internal", "message": type(err).__name__ + place, "data": {}, "memory": None}
        listener.cancel()
        try:
            self._send(answer)
        except (TypeError, ValueError) as err:  # not JSON, or too large
            self._send({"t": "failed", "code": "internal", "message": f"result refused: {err}"[:300], "data": {}, "memory": None})
        await self._writer.drain()

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
