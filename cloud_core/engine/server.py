"""The engine server: one front end behind gRPC.  python -m cloud_core.engine.server

VENUS_ENGINE_ADDR (127.0.0.1:50551; port 0 takes a free one), VENUS_ENGINE_TOKEN (bearer token, optional on loopback),
VENUS_ENGINE_RUNTIME (cascade), VENUS_ENGINE_SESSIONS (4), VENUS_ENGINE_TLS_CERT and _KEY (files; needed beyond loopback).
"""
import asyncio
import hmac
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from cloud_core.engine import convert
from cloud_core.engine import engine_pb2 as pb
from cloud_core.engine import engine_pb2_grpc as rpc
from cloud_core.engine.errors import ERROR_KEY, STATUS, EngineBusy, NotAuthorised, UnitRefused, to_message
from cloud_core.engine.runtimes import load
from cloud_core.front_end import FrontEnd
from venus_edge import logs, process
from venus_edge.bind import check_bind
from venus_edge.errors import ConfigError
from venus_edge.metrics import METRICS

SERVICE = "venus.engine.v1.Engine"
GRACE_S = 0.5
OPEN_S = 5.0
"""How long a stream may stay silent before its `open`."""
KEEPALIVE = (("grpc.keepalive_time_ms", 10_000), ("grpc.keepalive_timeout_ms", 5_000), ("grpc.so_reuseport", 0),
             ("grpc.max_receive_message_length", 8 << 20))


class EngineService(rpc.EngineServicer):
    """Each stream is one session; its steps run in a thread so that a slow one delays no other."""

    def __init__(self, front_end: FrontEnd, token: str = "", max_sessions: int = 4):
        self._front_end, self._token, self._max = front_end, token, max_sessions
        self._sessions = 0
        self._pool = ThreadPoolExecutor(max_sessions, "step")
        self._log = logs.logging.getLogger("engine")

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _authorise(self, context) -> None:
        if self._token:
            given = dict(context.invocation_metadata()).get("authorization", "")
            if not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
                await self._fail(context, NotAuthorised("authorization: a bearer token is needed"))

    @staticmethod
    async def _fail(context, err: Exception) -> None:
        message = to_message(err)
        await context.abort(STATUS.get(message.code, grpc.StatusCode.INTERNAL), message.message,
                            ((ERROR_KEY, message.SerializeToString()),))

    def _info(self) -> pb.InfoReply:
        return convert.info_to(self._front_end.info, self._sessions, self._max)

    async def Info(self, request, context):
        await self._authorise(context)
        return self._info()

    async def Session(self, requests, context):
        await self._authorise(context)
        if self._sessions >= self._max:
            METRICS.add("venus_engine_sessions_refused_total")
            await self._fail(context, EngineBusy(f"sessions: {self._sessions} open, allowed: {self._max}"))
        self._sessions += 1
        METRICS.set("venus_engine_sessions", self._sessions)
        session, name = None, ""
        loop = asyncio.get_running_loop()
        try:
            first = await asyncio.wait_for(anext(aiter(requests), None), OPEN_S)
            if first is None or first.WhichOneof("kind") != "open":
                raise UnitRefused("kind: the first message must be `open`")
            name = first.open.session
            session = await loop.run_in_executor(self._pool, self._front_end.open, convert.options_from(first.open))
            yield pb.FromEngine(opened=self._info())
            async for message in requests:
                try:
                    if message.WhichOneof("kind") != "unit":
                        raise UnitRefused("kind: allowed after `open`: `unit`")
                    unit = convert.unit_from(message.unit)
                    decision = await loop.run_in_executor(self._pool, session.step, unit)
                except Exception as err:
                    if getattr(err, "code", "") != UnitRefused.code:
                        raise
                    METRICS.add("venus_engine_units_refused_total")
                    yield pb.FromEngine(refused=to_message(err))
                else:
                    yield pb.FromEngine(decision=convert.decision_to(decision))
        except asyncio.CancelledError:
            raise
        except Exception as err:  # whatever a front end raises ends this session only
            METRICS.add("venus_engine_sessions_failed_total")
            self._log.error("session %s failed: %s", name, getattr(err, "code", type(err).__name__))
            await self._fail(context, err)
        finally:
            self._sessions -= 1
            METRICS.set("venus_engine_sessions", self._sessions)
            if session is not None:
                session.close()


async def serve(front_end: FrontEnd, addr: str = "127.0.0.1:0", token: str = "", max_sessions: int = 4,
                cert: str = "", key: str = "") -> tuple[grpc.aio.Server, str, EngineService]:
    """Start serving; returns the server, its address with the real port, and the service. Raises ConfigError for a bad bind."""
    host, port = check_bind(addr, "VENUS_ENGINE_ADDR", tls=bool(cert and key), token=bool(token))
    server = grpc.aio.server(options=KEEPALIVE)
    service = EngineService(front_end, token, max_sessions)
    rpc.add_EngineServicer_to_server(service, server)
    alive = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(alive, server)
    try:
        if cert and key:
            credentials = grpc.ssl_server_credentials([(Path(key).read_bytes(), Path(cert).read_bytes())])
            real = server.add_secure_port(f"{host}:{port}", credentials)
        else:
            real = server.add_insecure_port(f"{host}:{port}")
    except OSError as err:
        raise ConfigError(f"VENUS_ENGINE_TLS_CERT, VENUS_ENGINE_TLS_KEY: {err.filename} can't be read ({err.strerror})") from err
    except RuntimeError as err:
        raise ConfigError(f"VENUS_ENGINE_ADDR: {addr} is busy or not an address of this machine") from err
    if not real:
        raise ConfigError(f"VENUS_ENGINE_ADDR: {addr} is busy or not an address of this machine")
    await server.start()
    for name in ("", SERVICE):
        await alive.set(name, health_pb2.HealthCheckResponse.SERVING)
    return server, f"{host}:{real}", service


async def main() -> None:
    logs.setup("engine")
    env = os.environ.get
    addr, token = env("VENUS_ENGINE_ADDR", "127.0.0.1:50551"), env("VENUS_ENGINE_TOKEN", "")
    cert, key = env("VENUS_ENGINE_TLS_CERT", ""), env("VENUS_ENGINE_TLS_KEY", "")
    check_bind(addr, "VENUS_ENGINE_ADDR", tls=bool(cert and key), token=bool(token))  # before loading for seconds
    sessions = env("VENUS_ENGINE_SESSIONS", "4")
    if not sessions.isdigit() or not 1 <= int(sessions) <= 64:
        raise ConfigError(f"VENUS_ENGINE_SESSIONS: {sessions!r}, allowed: 1 to 64")
    try:
        options = json.loads(env("VENUS_ENGINE_OPTIONS", "") or "{}")
    except ValueError:
        raise ConfigError("VENUS_ENGINE_OPTIONS: allowed: a JSON object of the runtime's settings") from None
    front_end = load(env("VENUS_ENGINE_RUNTIME", "cascade"), options)
    server, real, service = await serve(front_end, addr, token, int(sessions), cert, key)
    beat = asyncio.ensure_future(process.heartbeat())
    process.ready(addr=real, runtime=front_end.info.name, unit_ms=front_end.info.unit_ms)
    try:
        await process.until_stopped(beat)
    finally:
        beat.cancel()
        await server.stop(GRACE_S)
        service.close()
        front_end.close()


if __name__ == "__main__":
    process.run(main)
