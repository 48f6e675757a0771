"""VehicleBus over kuksa.val.v2 gRPC: the simulator's signal server, or a real databroker at the same address.

The broker answers an actuation when a provider has taken it, not when anything moved, so `actuate` subscribes to the
current value first and waits until it arrives.
"""

import asyncio
import math
from typing import Any, AsyncIterator

import grpc
from kuksa.val.v2 import types_pb2 as t2
from kuksa.val.v2 import val_pb2 as v2
from kuksa.val.v2 import val_pb2_grpc as g2

from harness.host.errors import DeadlinePassed, HostError, InvalidArgs, NotFound, NotPermitted, Unavailable
from harness.host.paths import STOP, mover, proof, reached
from harness.host.providers import Effect, Signal
from harness.host.timing import within
from venus_edge.clock import Clock, SystemClock

CALL_S = 2.0
"""Deadline of one unary call: 0.7 ms is usual on loopback."""
STOP_S = 0.3

# DataType -> (our name, Value field)
_TYPES = {
    1: ("string", "string"), 2: ("boolean", "bool"), 3: ("int8", "int32"), 4: ("int16", "int32"), 5: ("int32", "int32"),
    6: ("int64", "int64"), 7: ("uint8", "uint32"), 8: ("uint16", "uint32"), 9: ("uint32", "uint32"),
    10: ("uint64", "uint64"), 11: ("float", "float"), 12: ("double", "double"),
}  # fmt: skip
_ERRORS = {
    grpc.StatusCode.NOT_FOUND: NotFound, grpc.StatusCode.INVALID_ARGUMENT: InvalidArgs,
    grpc.StatusCode.UNAVAILABLE: Unavailable, grpc.StatusCode.DATA_LOSS: Unavailable, grpc.StatusCode.ABORTED: Unavailable,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Unavailable, grpc.StatusCode.DEADLINE_EXCEEDED: DeadlinePassed,
    grpc.StatusCode.UNAUTHENTICATED: NotPermitted, grpc.StatusCode.PERMISSION_DENIED: NotPermitted,
}  # fmt: skip


def host_error(err: grpc.aio.AioRpcError) -> HostError:
    """The typed error of a gRPC status; data["status"] keeps its name."""
    return _ERRORS.get(err.code(), HostError)(err.details() or err.code().name, status=err.code().name)


def decode(value: t2.Value) -> Any:
    """The plain value; None where the datapoint is empty. A 32-bit float is rounded to the 7 digits it holds."""
    field = value.WhichOneof("typed_value")
    if field is None:
        return None
    found = getattr(value, field)
    if field.endswith("_array"):
        return [_short(item) if field == "float_array" else item for item in found.values]
    return _short(found) if field == "float" else found


def _short(value: float) -> float:
    return float(f"{value:.7g}")


def encode(meta: t2.Metadata, value: Any) -> t2.Value:
    """The Value of `value` for this signal; raises InvalidArgs where it can't be one. The broker checks the range."""
    name, field = _TYPES.get(meta.data_type, ("", ""))
    if not name:
        raise InvalidArgs(f"{meta.path} has a datatype that can't be actuated", field="path")
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if name == "boolean":
        ok = isinstance(value, bool)
    elif name == "string":
        ok = isinstance(value, str)
    elif name in ("float", "double"):
        ok = number and math.isfinite(value)
    else:
        ok = number and float(value).is_integer()
        value = int(value) if ok else value
    if ok:
        try:
            return t2.Value(**{field: value})
        except ValueError:
            pass  # outside the field's 32 bits
    raise InvalidArgs(f"{meta.path} takes a {name}, got {value!r}", field="value")


class KuksaBus:
    """One channel to the broker. `token`: bearer token; `ca`: PEM root certificates, else the channel is not encrypted."""

    def __init__(self, addr: str, token: str = "", *, ca: bytes | None = None, clock: Clock | None = None):
        self.addr, self.clock = addr, clock or SystemClock()
        options = [("grpc.initial_reconnect_backoff_ms", 200), ("grpc.max_reconnect_backoff_ms", 2000)]
        if ca:
            self._channel = grpc.aio.secure_channel(addr, grpc.ssl_channel_credentials(ca), options)
        else:
            self._channel = grpc.aio.insecure_channel(addr, options)
        self._stub = g2.VALStub(self._channel)
        self._auth = (("authorization", f"Bearer {token}"),) if token else ()
        self._metadata: dict[str, t2.Metadata] = {}

    async def close(self) -> None:
        await self._channel.close()

    async def _call(self, method, request, timeout_s: float = CALL_S):
        try:
            return await method(request, metadata=self._auth, timeout=timeout_s)
        except grpc.aio.AioRpcError as err:
            raise host_error(err) from None

    async def server(self) -> str:
        """Name and version of the broker; raises NotPermitted with a wrong token, Unavailable when it isn't there."""
        info = await self._call(self._stub.GetServerInfo, v2.GetServerInfoRequest())
        return f"{info.name} {info.version}"

    async def metadata(self, path: str) -> t2.Metadata:
        """The signal's metadata, asked for once; raises NotFound for a branch or nothing."""
        if path not in self._metadata:
            answer = await self._call(self._stub.ListMetadata, v2.ListMetadataRequest(root=path))
            if len(answer.metadata) != 1 or answer.metadata[0].path != path:
                raise NotFound(f"no signal {path}", path=path)
            self._metadata[path] = answer.metadata[0]
        return self._metadata[path]

    def _signal(self, path: str, point: t2.Datapoint) -> Signal:
        if not point.HasField("value"):
            return Signal(path, None, math.inf)
        age_s = self.clock.wall() - (point.timestamp.seconds + point.timestamp.nanos / 1e9)
        return Signal(path, decode(point.value), age_s)

    async def get(self, *paths: str) -> dict[str, Signal]:
        """Current values. A signal that nobody has published has value None and an infinite age.

        `age_s` may be negative when the broker's clock is ahead; the policy takes more than a second of it as stale.
        """
        request = v2.GetValuesRequest(signal_ids=[t2.SignalID(path=path) for path in paths])
        answer = await self._call(self._stub.GetValues, request)
        return {path: self._signal(path, point) for path, point in zip(paths, answer.data_points)}

    async def subscribe(self, *paths: str) -> AsyncIterator[Signal]:
        """Current values at once, then every change; a slow reader gets the newest value of each signal."""
        call = self._stub.Subscribe(v2.SubscribeRequest(signal_paths=paths), metadata=self._auth)
        try:
            async for answer in call:
                for path, point in answer.entries.items():
                    yield self._signal(path, point)
        except grpc.aio.AioRpcError as err:
            raise host_error(err) from None
        finally:
            call.cancel()

    async def actuate(self, path: str, value: Any, *, timeout_s: float = 3.0) -> Effect:
        """Set an actuator and wait until its current value is there; `reached` is False when it isn't after `timeout_s`."""
        start = self.clock.now()
        meta = await self.metadata(path)
        if meta.entry_type != t2.ENTRY_TYPE_ACTUATOR:
            raise InvalidArgs(f"{path} is not an actuator", field="path")
        command = encode(meta, value)
        watched, goal = await self._proof(path, value)
        goal_meta = await self.metadata(watched)
        datatype = _TYPES.get(goal_meta.data_type, ("", ""))[0]
        seen = {path: None, watched: None}

        async def arrive() -> bool:
            async for signal in self._changes(path, value=command, watch=seen):
                seen[signal.path] = signal.value
                if reached(seen[watched], goal, datatype, goal_meta.unit):
                    return True
            return False

        try:
            done = await within(self.clock, timeout_s, arrive())
        except TimeoutError:
            done = False
        shown = seen[path] if seen[path] is not None else seen[watched]
        return Effect(path, value, shown, done, self.clock.now() - start)

    async def _proof(self, path: str, value: Any) -> tuple[str, Any]:
        """Where to see that it happened: the position for an opening lid, where the car has one."""
        watched, goal = proof(path, value)
        if watched != path:
            try:
                if (await self.get(watched))[watched].value is None:
                    return path, value
            except NotFound:
                return path, value
        return watched, goal

    async def _changes(self, path: str, value: t2.Value, watch: dict) -> AsyncIterator[Signal]:
        """Subscribe, then actuate, then yield what the signals are: no change can slip through between."""
        stream = self.subscribe(*watch)
        try:
            first = True
            async for signal in stream:
                if first:
                    first = False
                    request = v2.ActuateRequest(signal_id=t2.SignalID(path=path), value=value)
                    await self._call(self._stub.Actuate, request)
                yield signal
        finally:
            await stream.aclose()

    async def stop(self, path: str) -> Effect:
        """Halt what `path` moves at its present position; raises InvalidArgs where nothing travels.

        The switch's INACTIVE halts it; without a switch, its present position is made the target.
        """
        start, branch = self.clock.now(), mover(path)
        if not branch:
            raise InvalidArgs(f"{path} doesn't travel: stop takes a Position, IsOpen or Switch", field="path")
        position, switch = f"{branch}.Position", f"{branch}.Switch"
        try:
            halted = await self._actuate_fresh(switch, STOP)
        except (NotFound, Unavailable):
            now_at = (await self.get(position))[position].value
            if now_at is None:
                raise Unavailable(f"{branch} reports no position to stop at") from None
            halted = (await self.actuate(position, now_at, timeout_s=STOP_S)).reached
        at = (await self.get(position))[position].value
        return Effect(path, "stop", at, halted, self.clock.now() - start)

    async def _actuate_fresh(self, path: str, value: Any) -> bool:
        """Actuate and wait for the next publication of that very signal, so that an old equal value doesn't count."""
        command = encode(await self.metadata(path), value)

        async def acknowledged() -> bool:
            count = 0
            async for signal in self._changes(path, command, {path: None}):
                count += 1
                if count > 1 and signal.value == value:
                    return True
            return False

        try:
            return await within(self.clock, STOP_S, acknowledged())
        except TimeoutError:
            return False
