"""The session worker's side of the engine protocol: open a session, then one decision for each unit."""
import asyncio
from pathlib import Path

import grpc

from cloud_core.engine import convert
from cloud_core.engine import engine_pb2 as pb
from cloud_core.engine import engine_pb2_grpc as rpc
from cloud_core.engine.errors import EngineTimeout, EngineUnavailable, SessionFailed, from_message, from_rpc
from cloud_core.front_end import Decision, FrontEndInfo, SessionOptions, UnitInput
from venus_edge.bind import is_loopback, split_addr
from venus_edge.errors import ConfigError

STEP_S = 2.0
OPEN_S = 10.0


class EngineSession:
    """One conversation. Strict alternation: `step` may not be called again before it has returned."""

    def __init__(self, call, info: FrontEndInfo, step_s: float = STEP_S):
        self._call, self.info, self._step_s = call, info, step_s
        self._lock = asyncio.Lock()
        self._dead: Exception | None = None

    async def step(self, unit: UnitInput) -> Decision:
        """Raises UnitRefused (the session lives on), and EngineTimeout, EngineUnavailable or SessionFailed (it is over)."""
        if self._lock.locked():
            raise SessionFailed("step: the previous unit has no decision yet")
        async with self._lock:
            if self._dead is not None:
                raise self._dead
            message = pb.ToEngine(unit=convert.unit_to(unit))
            try:
                async with asyncio.timeout(self._step_s):
                    answer = await _exchange(self._call, message)
            except BaseException as err:
                self._dead = err if isinstance(err, Exception) else SessionFailed("step: cancelled")
                self._call.cancel()
                if isinstance(err, TimeoutError):
                    self._dead = EngineTimeout(f"step: no decision within {self._step_s} s", seq=unit.seq)
                    raise self._dead from None
                raise
            if answer.WhichOneof("kind") == "refused":
                raise from_message(answer.refused)
            return convert.decision_from(answer.decision)

    async def close(self) -> None:
        """End the session; never raises."""
        self._dead = self._dead or SessionFailed("step after close")
        try:
            async with asyncio.timeout(1.0):
                await self._call.done_writing()
                while await self._call.read() is not grpc.aio.EOF:
                    pass
        except (grpc.RpcError, TimeoutError, asyncio.InvalidStateError):
            self._call.cancel()


async def _exchange(call, message: pb.ToEngine) -> pb.FromEngine:
    """Write one message and read its answer; gRPC's errors become ours."""
    try:
        await call.write(message)
        answer = await call.read()
    except grpc.RpcError as err:
        raise from_rpc(err) from None
    except asyncio.InvalidStateError:
        answer = grpc.aio.EOF
    if answer is grpc.aio.EOF:
        try:
            code = await call.code()
            if code is grpc.StatusCode.OK:
                raise EngineUnavailable("engine: the server ended the session")
            raise from_rpc(grpc.aio.AioRpcError(code, await call.initial_metadata(), await call.trailing_metadata(), await call.details()))
        except grpc.RpcError as err:
            raise from_rpc(err) from None
    return answer


class EngineClient:
    """Connects on first use; one client may hold many sessions. Beyond loopback it insists on TLS (`ca` file)."""

    def __init__(self, addr: str, token: str = "", ca: str = ""):
        host, _ = split_addr(addr, "VENUS_ENGINE_ADDR")
        if not is_loopback(host) and not (ca and token):
            raise ConfigError(f"VENUS_ENGINE_ADDR: {addr} is beyond loopback and needs a CA file and a token")
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        options = (("grpc.max_receive_message_length", 16 << 20),)
        self._channel = (grpc.aio.secure_channel(addr, grpc.ssl_channel_credentials(Path(ca).read_bytes()), options) if ca
                         else grpc.aio.insecure_channel(addr, options))
        self._stub = rpc.EngineStub(self._channel)

    async def info(self) -> FrontEndInfo:
        try:
            return convert.info_from(await self._stub.Info(pb.InfoRequest(), metadata=self._metadata, timeout=OPEN_S))
        except grpc.RpcError as err:
            raise from_rpc(err) from None

    async def open(self, options: SessionOptions, step_s: float = STEP_S) -> EngineSession:
        """`step_s`: deadline of one decision. Raises OptionsRefused, EngineBusy, NotAuthorised, EngineUnavailable."""
        call = self._stub.Session(metadata=self._metadata)
        try:
            async with asyncio.timeout(OPEN_S):
                answer = await _exchange(call, pb.ToEngine(open=convert.options_to(options)))
        except TimeoutError:
            call.cancel()
            raise EngineTimeout(f"open: no answer within {OPEN_S} s") from None
        return EngineSession(call, convert.info_from(answer.opened), step_s)

    async def close(self) -> None:
        await self._channel.close()
