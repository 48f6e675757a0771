"""The delegation service over a Harness: authorisation, limits, and one client's fault that never touches another.

    service = await serve(harness, "127.0.0.1:0", Access.load("tokens.json"))
    ...
    await service.stop()          # sessions are left to the next process, with a durable journal

`stop` ends every stream with a retryable error; sessions whose clients come back to the next process go on there.
"""
import asyncio
import contextlib
import functools
import logging
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from harness.errors import BadRequest, UnknownTask
from harness.harness import Harness
from harness.service import convert
from harness.service import delegation_pb2 as pb
from harness.service import delegation_pb2_grpc as rpc
from harness.service.access import Access, Grant
from harness.service.book import Book, Held
from harness.service.errors import ERROR_KEY, ServiceUnavailable, status_of, to_message
from harness.service.limits import ServiceLimits
from harness.service.returns import ReturnPath
from harness.service.within import within
from venus_edge.bind import check_bind
from venus_edge.errors import ConfigError, VenusError
from venus_edge.metrics import METRICS

log = logging.getLogger("harness.service")
SERVICE = "venus.harness.v1.Delegation"
GRACE_S = 0.5
MAX_RPCS = 8192
"""Calls and streams of all clients at once; gRPC refuses further ones."""
CONNECTION_STREAMS = 256


def _answered(method):
    """Unary calls: whatever is raised becomes a status with the typed error in the trailing metadata."""
    @functools.wraps(method)
    async def call(self, request, context):
        try:
            return await method(self, request, self._grant(context))
        except asyncio.CancelledError:
            raise
        except Exception as err:
            await self._fail(context, err, method.__name__)
    return call


def _streamed(method):
    """The same for streams."""
    @functools.wraps(method)
    async def stream(self, request, context):
        try:
            async with contextlib.aclosing(method(self, request, self._grant(context))) as messages:
                async for message in messages:
                    yield message
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except Exception as err:
            await self._fail(context, err, method.__name__)
    return stream


class DelegationService(rpc.DelegationServicer):
    def __init__(self, harness: Harness, access: Access, limits: ServiceLimits):
        self._harness, self._access, self._limits = harness, access, limits
        self.book = Book(harness, access, limits)
        self.stopping = False

    def _grant(self, context) -> Grant:
        if self.stopping:
            raise ServiceUnavailable("the server is stopping")
        return self._access.grant(str(dict(context.invocation_metadata() or ()).get("authorization", "")))

    async def _fail(self, context, err: Exception, method: str) -> None:
        message = to_message(err)
        if isinstance(err, VenusError):
            METRICS.add(f"venus_harness_service_errors_{message.code}_total")
        else:
            METRICS.add("venus_harness_service_faults_total")
            log.error("%s failed: %s", method, type(err).__name__)
        await context.abort(status_of(message), message.message, ((ERROR_KEY, message.SerializeToString()),))

    # -- sessions

    @_answered
    async def OpenSession(self, request, grant):
        if request.tenant and request.tenant != grant.tenant:
            raise convert.bad("tenant", "not the one of this token", "nothing, or the token's tenant")
        name = convert.session_name(request.session_id) if request.session_id else ""
        held, existed = await self.book.open(grant.tenant, name, convert.lang_from(request.lang, ""))
        return pb.SessionInfo(session_id=held.name, tenant=held.tenant, lang=held.lang, existed=existed, idle_ttl_s=self._limits.idle_ttl_s)

    @_answered
    async def CloseSession(self, request, grant):
        await self.book.close(self._held(request, grant), "closed")
        await self._harness.store.flushed()
        return pb.CloseSessionReply()

    def _held(self, request, grant: Grant) -> Held:
        return self.book.get(grant.tenant, convert.session_name(request.session_id))

    # -- requests

    @_answered
    async def Submit(self, request, grant):
        grant.need("submit")
        held = self._held(request, grant)
        wait_s = convert.wait_from(request.wait_ms)
        requests, evidence = convert.requests_from(request.request, held.lang)
        with held.waiting(self._limits) if wait_s else contextlib.nullcontext():
            ids = await asyncio.gather(*(held.session.submit(one, evidence) for one in requests))
            METRICS.add("venus_harness_service_requests_total", len(requests))
            if wait_s:
                await self._ended(held, ids, wait_s)
        return pb.SubmitReply(tasks=[self._task(held, task_id, grant) for task_id in ids])

    async def _ended(self, held: Held, ids: list[str], wait_s: float) -> None:
        async def one(task_id: str) -> None:
            try:
                await held.session.result(task_id)
            except UnknownTask:  # answered long ago
                pass
        try:
            await within(self._harness.clock, wait_s, asyncio.gather(*map(one, ids)))
        except TimeoutError:
            pass

    def _task(self, held: Held, task_id: str, grant: Grant) -> pb.Task:
        ledger = held.session.ledger
        if not ledger.knows(task_id):
            return pb.Task(id=task_id, forgotten=True)
        return convert.task_to(ledger.get(task_id), self._harness.clock.now(), "speak" in grant.rights)

    @_answered
    async def Cancel(self, request, grant):
        grant.need("submit")
        held = self._held(request, grant)
        if not 0 < len(request.task_id) <= 64:
            raise convert.bad("task_id", f"{len(request.task_id)} characters", "the id of a task of this session")
        stopping, durable = held.session.cancel(request.task_id), True
        try:  # the promise is to stop at once: whether the store is quick enough is told, not waited for
            await within(self._harness.clock, self._limits.cancel_flush_s, held.session.ledger.journal.flushed())
        except (TimeoutError, VenusError):
            durable = False
        return pb.CancelReply(stopping=stopping, durable=durable, task=self._task(held, request.task_id, grant))

    @_answered
    async def List(self, request, grant):
        held = self._held(request, grant)
        if len(request.after) > 64:
            raise convert.bad("after", f"{len(request.after)} characters", "`next` of the page before")
        return next(self._pages(held, grant, request.after))

    def _pages(self, held: Held, grant: Grant, after: str = ""):
        tasks = [task for task in held.session.status() if task.id > after]  # ids are ordered by time
        return convert.pages(tasks, self._harness.clock.now(), "speak" in grant.rights, self._limits.max_message_bytes // 2)

    @_answered
    async def Capabilities(self, request, grant):
        return pb.CapabilitiesReply(capabilities=[convert.capability_to(*pair) for pair in self._harness.capabilities()])

    # -- streams

    @_streamed
    async def Watch(self, request, grant):
        held = self._held(request, grant)
        words = "speak" in grant.rights
        with held.watching(self._limits) as backlog:
            for event in self._snapshot(held, grant, backlog):
                yield event
            while True:
                transition = await backlog.next()
                if transition is not None:
                    yield pb.WatchEvent(dropped=backlog.dropped, transition=pb.Transition(
                        machine=transition.machine, src=transition.src, dst=transition.dst, reason=transition.reason,
                        task=convert.task_to(transition.task, self._harness.clock.now(), words)))
                elif backlog.gap:
                    for event in self._snapshot(held, grant, backlog):
                        yield event
                else:
                    yield pb.WatchEvent(dropped=backlog.dropped, closed=pb.Closed(reason=backlog.ended))
                    return

    def _snapshot(self, held: Held, grant: Grant, backlog) -> list[pb.WatchEvent]:
        """Made in one go, so that no transition is missed or told twice."""
        backlog.caught_up()
        return [pb.WatchEvent(dropped=backlog.dropped, snapshot=page) for page in self._pages(held, grant)]

    @_streamed
    async def Deliver(self, requests, grant):
        grant.need("speak")
        incoming = aiter(requests)
        try:
            first = await within(self._harness.clock, self._limits.open_wait_s, anext(incoming, None))
        except TimeoutError:
            first = None
        if first is None or first.WhichOneof("kind") != "open":
            raise BadRequest("kind: the first message must be `open`", field="kind", allowed="open")
        held = self._held(first.open, grant)
        if len(first.open.holds) > 64:
            raise convert.bad("open.holds", f"{len(first.open.holds)} characters", "the id of a reply of this session")
        path = ReturnPath(held, self._limits)
        path.take(first.open)
        reading = asyncio.ensure_future(path.read(incoming))
        try:
            failed = None
            try:
                async for message in path.messages():
                    yield message
            except Exception as err:
                failed = err
                yield pb.FromDelivery(failed=to_message(err))
            path.leave()
            # A client whose write meets a stream that has ended gets an error of gRPC's own instead of our last message.
            with contextlib.suppress(TimeoutError):
                await within(self._harness.clock, self._limits.linger_s, asyncio.wait({reading}))
            if failed is not None:
                raise failed
        finally:
            reading.cancel()
            path.leave()


class Serving:
    """A server that runs. `addr`: its address with the real port."""

    def __init__(self, server: grpc.aio.Server, addr: str, service: DelegationService, alive: health.aio.HealthServicer, sweeping: asyncio.Task):
        self.addr, self.service = addr, service
        self._server, self._alive, self._sweeping = server, alive, sweeping

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """Take no more calls, let those under way end within `grace_s`, and cut the streams. The harness stays as it is."""
        self.service.stopping = True
        await self._alive.enter_graceful_shutdown()
        self._sweeping.cancel()
        await asyncio.gather(self._sweeping, return_exceptions=True)
        await self._server.stop(grace_s)


async def serve(harness: Harness, addr: str = "127.0.0.1:0", access: Access | None = None, *, limits: ServiceLimits | None = None,
                left: dict[str, str] | None = None, cert: str = "", key: str = "", setting: str = "listen") -> Serving:
    """Serve a started harness. `left`: what `Harness.start` returned; those sessions are taken up at once.

    Raises ConfigError naming `setting` for an address beyond loopback without TLS (`cert` and `key` files) and tokens.
    """
    access, limits = access or Access(), limits or ServiceLimits()
    host, port = check_bind(addr, setting, tls=bool(cert and key), token=access.guarded)
    server = grpc.aio.server(maximum_concurrent_rpcs=MAX_RPCS, options=(
        ("grpc.keepalive_time_ms", 10_000), ("grpc.keepalive_timeout_ms", 5_000), ("grpc.so_reuseport", 0),
        ("grpc.max_concurrent_streams", CONNECTION_STREAMS), ("grpc.max_receive_message_length", limits.max_message_bytes)))
    service = DelegationService(harness, access, limits)
    rpc.add_DelegationServicer_to_server(service, server)
    alive = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(alive, server)
    real = _bind(server, f"[{host}]:{port}" if ":" in host else f"{host}:{port}", addr, setting, cert, key)
    service.book.take_up(left or {})
    await server.start()
    for name in ("", SERVICE):
        await alive.set(name, health_pb2.HealthCheckResponse.SERVING)
    return Serving(server, f"[{host}]:{real}" if ":" in host else f"{host}:{real}", service, alive, asyncio.ensure_future(service.book.sweep()))


def _bind(server: grpc.aio.Server, target: str, addr: str, setting: str, cert: str, key: str) -> int:
    try:
        if cert and key:
            pair = (Path(key).read_bytes(), Path(cert).read_bytes())
            real = server.add_secure_port(target, grpc.ssl_server_credentials([pair]))
        else:
            real = server.add_insecure_port(target)
    except OSError as err:
        raise ConfigError(f"TLS certificate and key: {err.filename} can't be read ({err.strerror})") from err
    except RuntimeError as err:
        raise ConfigError(f"{setting}: {addr} is busy or not an address of this machine") from err
    if not real:
        raise ConfigError(f"{setting}: {addr} is busy or not an address of this machine")
    return real
