"""The client of the delegation service, for front ends and other programs of third parties.

    async with DelegationClient("127.0.0.1:50561", token) as client:
        session = await client.open("glasses-7")
        task, = await client.submit(session.id, Delegate("find a charger", turn=1), wait_s=5)
        async for item in client.watch(session.id): ...
        async with client.deliver(session.id) as delivery: ...        # harness/service/deliveries.py

Streams come back by themselves after a lost connection or a restart of the server. Errors: harness/service/errors.py.
"""
import random
from pathlib import Path
from typing import AsyncIterator

import grpc

from harness.service import convert
from harness.service import delegation_pb2 as pb
from harness.service import delegation_pb2_grpc as rpc
from harness.service.deliveries import Deliveries
from harness.service.errors import ServiceUnavailable, from_rpc
from harness.service.views import CapabilityView, Change, Delegate, SessionClosed, SessionView, Snapshot, TaskView, WatchItem
from venus_edge.bind import is_loopback, split_addr
from venus_edge.clock import Clock, SystemClock
from venus_edge.errors import ConfigError, VenusError

CALL_S = 10.0
MAX_MESSAGE_BYTES = 16 << 20
FIRST_PAUSE_S, MOST_PAUSE_S = 0.05, 2.0


class Pauses:
    """Growing waits between tries, with jitter so that many clients don't come back in step."""

    def __init__(self, clock: Clock):
        self._clock, self._next = clock, FIRST_PAUSE_S

    def reset(self) -> None:
        self._next = FIRST_PAUSE_S

    async def wait(self) -> None:
        pause, self._next = self._next, min(2 * self._next, MOST_PAUSE_S)
        await self._clock.sleep(pause * random.uniform(0.5, 1.0))


class DelegationClient:
    """Connects on first use; one client serves any number of sessions. Beyond loopback it insists on TLS (`ca` file) and a token."""

    def __init__(self, addr: str, token: str = "", *, ca: str = "", call_s: float = CALL_S, clock: Clock | None = None):
        host, _ = split_addr(addr, "addr")
        if not is_loopback(host) and not (ca and token):
            raise ConfigError(f"addr: {addr} is beyond loopback and needs a CA file and a token")
        self.clock, self._call_s = clock or SystemClock(), call_s
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        options = (("grpc.max_receive_message_length", MAX_MESSAGE_BYTES), ("grpc.initial_reconnect_backoff_ms", 100),
                   ("grpc.min_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 1000), ("grpc.keepalive_time_ms", 10_000),
                   ("grpc.keepalive_timeout_ms", 5_000))
        self._channel = (grpc.aio.secure_channel(addr, grpc.ssl_channel_credentials(Path(ca).read_bytes()), options) if ca
                         else grpc.aio.insecure_channel(addr, options))
        self._stub = rpc.DelegationStub(self._channel)

    async def __aenter__(self) -> "DelegationClient":
        return self

    async def __aexit__(self, *_) -> None:
        await self.close()

    async def close(self) -> None:
        """Let the connection go; sessions stay open at the server until they are idle for too long."""
        await self._channel.close()

    async def _ask(self, method, request, more_s: float = 0.0):
        try:
            return await method(request, metadata=self._metadata, timeout=self._call_s + more_s)
        except grpc.RpcError as err:
            raise from_rpc(err) from None

    async def open(self, session_id: str = "", *, tenant: str = "", lang: str = "") -> SessionView:
        """A new session, or the one of that name as it stands. Raises BusyError, BadRequest, JournalFault."""
        request = pb.OpenSessionRequest(session_id=session_id, tenant=tenant, lang=lang)
        return convert.session_from(await self._ask(self._stub.OpenSession, request))

    async def close_session(self, session_id: str) -> None:
        """End it for good. Raises UnknownSession."""
        await self._ask(self._stub.CloseSession, pb.CloseSessionRequest(session_id=session_id))

    async def submit(self, session_id: str, delegate: Delegate, *, wait_s: float = 0.0) -> tuple[TaskView, ...]:
        """The tasks of the request, recorded durably; after their work has ended if that takes no longer than `wait_s` (60 at most).

        Raises BadRequest naming the field, UnknownSession, BusyError, JournalFault; after ServiceUnavailable or ServiceTimeout
        submit the same object again.
        """
        request = pb.SubmitRequest(session_id=session_id, request=convert.request_to(delegate), wait_ms=round(wait_s * 1000))
        answer = await self._ask(self._stub.Submit, request, wait_s)
        return tuple(map(convert.task_from, answer.tasks))

    async def cancel(self, session_id: str, task_id: str) -> bool:
        """Stop a task, or drop what is untold of it; False where there is nothing to stop. Raises UnknownSession, UnknownTask."""
        return (await self._ask(self._stub.Cancel, pb.CancelRequest(session_id=session_id, task_id=task_id))).stopping

    async def tasks(self, session_id: str) -> tuple[TaskView, ...]:
        """All that the session remembers, oldest first."""
        found: list[TaskView] = []
        after = ""
        while True:
            page = await self._ask(self._stub.List, pb.ListRequest(session_id=session_id, after=after))
            found += map(convert.task_from, page.tasks)
            if not page.next:
                return tuple(found)
            after = page.next

    async def capabilities(self) -> tuple[CapabilityView, ...]:
        """What can be asked for, with the JSON schema of the arguments."""
        answer = await self._ask(self._stub.Capabilities, pb.CapabilitiesRequest())
        return tuple(map(convert.capability_from, answer.capabilities))

    async def watch(self, session_id: str, *, resume: bool = True) -> AsyncIterator[WatchItem]:
        """A Snapshot, then every Change; after a loss or a reconnection a Snapshot again; SessionClosed at the end.

        With `resume` a server that is away is waited for; else ServiceUnavailable is raised. Close the iterator to stop.
        """
        pauses = Pauses(self.clock)
        while True:
            call = self._stub.Watch(pb.WatchRequest(session_id=session_id), metadata=self._metadata)
            gathered: list[TaskView] = []
            try:
                async for event in call:
                    pauses.reset()
                    kind = event.WhichOneof("kind")
                    if kind == "snapshot":
                        gathered += map(convert.task_from, event.snapshot.tasks)
                        if not event.snapshot.next:
                            yield Snapshot(tuple(gathered), event.dropped)
                            gathered = []
                    elif kind == "transition":
                        t = event.transition
                        yield Change(t.machine, convert.task_from(t.task), t.src, t.dst, t.reason, event.dropped)
                    elif kind == "closed":
                        yield SessionClosed(event.closed.reason)
                        return
                raise ServiceUnavailable("delegation service: the stream ended")
            except grpc.RpcError as err:
                failed = from_rpc(err)
            except VenusError as err:
                failed = err
            finally:
                call.cancel()
            if not (resume and isinstance(failed, ServiceUnavailable)):
                raise failed
            await pauses.wait()

    def deliver(self, session_id: str) -> Deliveries:
        """The return path: `async with client.deliver(session_id) as delivery`. One a session: a newer one takes its place."""
        return Deliveries(lambda: self._stub.Deliver(metadata=self._metadata), session_id, Pauses(self.clock))
