"""The client's side of the return path: moments out, replies in, marks back; over one stream after another if need be.

    async with client.deliver(session.id) as delivery:
        delivery.moment(Moment(pos, user_speaking, turn_open, assistant_speaking, turn))     # every 20 to 200 ms
        async for reply in delivery:                     # in a task of its own: PreparedReply, to be spoken now
            delivery.started(reply.id, "seg-1")
            delivery.finished(reply.id, heard=reply.text, unheard="", completed=True)

A reply comes at most once. Its last mark is kept until the server has noted it, and sent again after a reconnection, so that neither
side ever has to guess. One object lives as long as the conversation; a program that was restarted begins with a new one.
"""
import asyncio
from collections import deque
from typing import AsyncIterator, Callable, Protocol

import grpc

from harness.deliver.desk import PreparedReply
from harness.errors import BadRequest
from harness.deliver.gate import Moment
from harness.service import convert
from harness.service import delegation_pb2 as pb
from harness.service.errors import ServiceUnavailable, from_message, from_rpc
from venus_edge.errors import VenusError

MARKS_BACKLOG = 64
SEEN = 1024


class _Pauses(Protocol):
    def reset(self) -> None: ...

    async def wait(self) -> None: ...


class Deliveries:
    def __init__(self, connect: Callable[[], grpc.aio.StreamStreamCall], session_id: str, pauses: _Pauses):
        self._connect, self.session_id, self._pauses = connect, session_id, pauses
        self._marks: deque[pb.ToDelivery] = deque()
        self._final: dict[str, pb.ToDelivery] = {}
        """Last marks that the server has not noted."""
        self._holds = ""
        """The reply that came last, until its last mark is noted."""
        self._begun: pb.ToDelivery | None = None
        """That it is being spoken."""
        self._moment: pb.ToDelivery | None = None
        self._replies: deque[PreparedReply] = deque()
        self._seen: deque[str] = deque(maxlen=SEEN)
        self._wake, self._came = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task | None = None
        self._opened_once = False
        self.connected = asyncio.Event()
        """Set while a stream is open."""
        self.refused: deque[BadRequest] = deque(maxlen=16)
        """Messages that the server refused, newest last."""

    async def __aenter__(self) -> "Deliveries":
        self._task = asyncio.ensure_future(self._run())
        opened = asyncio.ensure_future(self.connected.wait())
        await asyncio.wait({self._task, opened}, return_when=asyncio.FIRST_COMPLETED)
        opened.cancel()
        if self._task.done():
            self._task.result()
        return self

    async def __aexit__(self, *_) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    # -- what the front end tells

    def moment(self, moment: Moment) -> None:
        """The state of the floor now. While the connection is down only the newest is kept."""
        self._moment = pb.ToDelivery(moment=convert.moment_to(moment))
        self._wake.set()

    def started(self, reply_id: str, seg: str = "") -> None:
        mark = pb.ToDelivery(started=pb.Started(reply_id=reply_id, seg=seg))
        if reply_id == self._holds:
            self._begun = mark
        self._mark(mark)

    def finished(self, reply_id: str, *, heard: str, unheard: str = "", completed: bool, confirmed: bool = True, stopped: bool = False) -> None:
        """The reply's speech ended. `confirmed` False: an estimate; `stopped`: the user asked for silence."""
        self._last(reply_id, pb.ToDelivery(finished=pb.Finished(reply_id=reply_id, heard=heard, unheard=unheard, completed=completed,
                                                                confirmed=confirmed, stopped=stopped)))

    def declined(self, reply_id: str) -> None:
        """It won't be spoken now: it comes again a little later, under another id, and then no more."""
        self._last(reply_id, pb.ToDelivery(declined=pb.Declined(reply_id=reply_id)))

    def _last(self, reply_id: str, mark: pb.ToDelivery) -> None:
        self._final[reply_id] = mark
        self._mark(mark)

    def _mark(self, mark: pb.ToDelivery) -> None:
        if len(self._marks) >= MARKS_BACKLOG:  # what matters of them is kept besides, for the next stream
            self._marks.popleft()
        self._marks.append(mark)
        self._wake.set()

    async def settled(self) -> None:
        """Wait until the server has noted every last mark."""
        while self._final and not self._task.done():
            self._came.clear()
            await self._came.wait()
        if self._final:
            self._task.result()

    # -- what comes

    def __aiter__(self) -> AsyncIterator[PreparedReply]:
        return self

    async def __anext__(self) -> PreparedReply:
        """The next reply; ends when the session is closed. Raises Replaced, UnknownSession and what else ended the stream for good."""
        while not self._replies:
            if self._task.done():
                if not self._task.cancelled():
                    self._task.result()
                raise StopAsyncIteration
            self._came.clear()
            await self._came.wait()
        return self._replies.popleft()

    # -- the streams

    async def _run(self) -> None:
        try:
            while True:
                try:
                    await self._one_stream()
                    return
                except ServiceUnavailable:
                    pass
                except VenusError as err:
                    if not err.retryable:
                        raise
                self.connected.clear()
                await self._pauses.wait()
        finally:
            self.connected.clear()
            asyncio.get_running_loop().call_soon(self._came.set)

    async def _one_stream(self) -> None:
        """One stream from its opening to the end of the session. Raises the typed error that broke it."""
        call = self._connect()
        writing = None
        try:
            await call.write(pb.ToDelivery(open=pb.OpenDelivery(session_id=self.session_id, holds=self._holds, remembers=self._opened_once)))
            self._marks = deque([*([self._begun] if self._begun else []), *self._final.values()])
            while (message := await call.read()) is not grpc.aio.EOF:
                if self._took(message):
                    return
                if writing is None:
                    writing = asyncio.ensure_future(self._write(call))
            code = await call.code()
            if code is not grpc.StatusCode.OK:
                raise grpc.aio.AioRpcError(code, await call.initial_metadata(), await call.trailing_metadata(), await call.details())
            raise ServiceUnavailable("delegation service: the stream ended")
        except grpc.RpcError as err:
            raise from_rpc(err) from None
        except asyncio.InvalidStateError:
            raise ServiceUnavailable("delegation service: the stream broke") from None
        finally:
            if writing is not None:
                writing.cancel()
                await asyncio.gather(writing, return_exceptions=True)
            call.cancel()

    def _took(self, message: pb.FromDelivery) -> bool:
        """Apply what the server says; True at the end of the session."""
        kind = message.WhichOneof("kind")
        if kind == "opened":
            self._opened_once = True
            self._pauses.reset()
            self.connected.set()
        elif kind == "reply" and message.reply.id not in self._seen:
            self._seen.append(message.reply.id)
            self._holds, self._begun = message.reply.id, None
            self._replies.append(convert.reply_from(message.reply))
        elif kind == "noted":
            self._final.pop(message.noted.reply_id, None)
            if self._holds == message.noted.reply_id:
                self._holds, self._begun = "", None
        elif kind == "refused":
            self.refused.append(from_message(message.refused))
        elif kind == "failed":
            raise from_message(message.failed)
        self._came.set()
        return kind == "closed"

    async def _write(self, call) -> None:
        try:
            while True:
                while self._marks:
                    await call.write(self._marks.popleft())
                moment, self._moment = self._moment, None
                if moment is not None:
                    await call.write(moment)
                elif not self._marks:
                    self._wake.clear()
                    await self._wake.wait()
        except (grpc.RpcError, asyncio.InvalidStateError):
            pass  # the reading side says why
