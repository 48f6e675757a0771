"""The return path of one session over one stream: moments and marks in, admitted replies out.

Marks are applied in order, then the newest moment is put to the harness: when a client was held up, moments that have passed don't
admit anything. What becomes of a reply when its stream breaks:

    its stream broke before it was started, and the client remembers and doesn't hold it   offered again
    the client holds it                                                                     its marks come over the new stream
    the client can't tell                                                                   the harness waits, then closes it: never twice
"""
import asyncio
import logging
from collections import deque
from typing import AsyncIterator

from harness.deliver.desk import PreparedReply
from harness.errors import BadRequest
from harness.deliver.gate import Moment
from harness.service import convert
from harness.service import delegation_pb2 as pb
from harness.service.book import Held
from harness.service.errors import Replaced, to_message
from harness.service.limits import ServiceLimits
from venus_edge.errors import BusyError
from venus_edge.metrics import METRICS

log = logging.getLogger("harness.service")
MARKS = ("started", "finished", "declined")
REFUSALS_BACKLOG = 16


class ReturnPath:
    """One Deliver stream. `held.returns` is the newest of its session; the one before it ends with Replaced."""

    def __init__(self, held: Held, limits: ServiceLimits):
        self._held, self._session, self._limits = held, held.session, limits
        self._marks: deque[tuple[str, object]] = deque()
        self._moment: Moment | None = None
        self._out: deque[pb.FromDelivery] = deque()
        self._changed = asyncio.Event()
        self._fault: Exception | None = None
        self._over = False
        self._pos: int | None = None
        self._shift = 0
        self._noting: set[asyncio.Task] = set()
        self._awaits, self._awaits_until = "", 0.0
        """A reply that the client held when it came: nothing is admitted before its last mark, so that no doubt is settled without it."""

    def take(self, opening: pb.OpenDelivery) -> None:
        """Become the session's return path."""
        before, self._held.returns = self._held.returns, self
        if before is not None:
            before._fail(Replaced("a newer stream delivers for this session"))
        if opening.remembers:
            self._session.reply_returned(opening.holds)
        if opening.holds:
            self._awaits, self._awaits_until = opening.holds, self._session.clock.now() + self._limits.held_reply_s

    def leave(self) -> None:
        for task in self._noting:
            task.cancel()
        if self._held.returns is self:
            self._held.returns = None

    def end(self, reason: str) -> None:
        """The session was closed."""
        self._out.append(pb.FromDelivery(closed=pb.Closed(reason=reason)))
        self._finish()

    def _finish(self) -> None:
        self._over = True
        self._changed.set()

    def _fail(self, fault: Exception) -> None:
        self._fault = self._fault or fault
        self._finish()

    # -- in

    async def read(self, requests: AsyncIterator[pb.ToDelivery]) -> None:
        """Take what the client sends until it ends the stream; after our last message only to see it end."""
        try:
            async for message in requests:
                if not self._over:
                    self._take(message)
            self._finish()
        except asyncio.CancelledError:
            raise
        except Exception as err:
            self._fail(err)

    def _take(self, message: pb.ToDelivery) -> None:
        kind = message.WhichOneof("kind") or ""
        try:
            if kind == "moment":
                self._moment = self._at(convert.moment_from(message.moment))
            elif kind in MARKS:
                mark = getattr(message, kind)
                convert.check_mark(mark, kind)
                if len(self._marks) >= self._limits.marks_backlog:
                    raise BusyError(f"{len(self._marks)} marks wait for this client to read; at most {self._limits.marks_backlog}")
                self._marks.append((kind, mark))
            else:
                raise convert.bad("kind", f"'{kind}'" if kind else "none", f"moment, {', '.join(MARKS)}")
        except BadRequest as err:
            METRICS.add("venus_harness_service_messages_refused_total")
            if len(self._out) < REFUSALS_BACKLOG:
                self._out.append(pb.FromDelivery(refused=to_message(err)))
        self._changed.set()

    def _at(self, moment: Moment) -> Moment:
        """The moment on the session's own time: a device that was started anew counts from 0 again, the session goes on."""
        if self._pos is None:
            self._shift = max(0, self._held.last_pos - moment.pos)
        elif moment.pos < self._pos:
            raise convert.bad("moment.pos", f"{moment.pos} after {self._pos}", "positions that never go back within a stream")
        self._pos = moment.pos
        pos = self._held.last_pos = moment.pos + self._shift
        return Moment(pos, moment.user_speaking, moment.turn_open, moment.assistant_speaking, moment.turn)

    # -- out

    async def messages(self) -> AsyncIterator[pb.FromDelivery]:
        """What goes to the client, until the stream or the session ends. Raises what ended it."""
        yield pb.FromDelivery(opened=pb.DeliveryOpened(session_id=self._held.name))
        while True:
            while self._out:
                yield self._out.popleft()
            if self._fault is not None:
                raise self._fault
            while self._marks:
                self._apply(*self._marks.popleft())
            moment, self._moment = self._moment, None
            if moment is not None and (reply := self._admit(moment)) is not None:
                yield pb.FromDelivery(reply=convert.reply_to(reply))
                continue
            if self._out or self._fault is not None or self._marks or self._moment is not None:
                continue
            if self._over:
                if self._noting:
                    await asyncio.wait(self._noting, return_when=asyncio.FIRST_COMPLETED)
                    continue
                return
            self._changed.clear()
            await self._changed.wait()

    def _admit(self, moment: Moment) -> PreparedReply | None:
        self._session.user_turn(moment.turn)
        if self._awaits and self._session.clock.now() < self._awaits_until:
            return None
        return self._session.next_reply(moment)

    def _apply(self, kind: str, mark) -> None:
        session, reply = self._session, mark.reply_id
        if kind == "started":
            session.reply_started(reply, mark.seg)
            return
        if kind == "declined":
            session.reply_declined(reply)
        else:
            session.reply_finished(reply, heard=mark.heard, unheard=mark.unheard, completed=mark.completed, confirmed=mark.confirmed,
                                   stopped=mark.stopped)
        if reply == self._awaits:  # perhaps one of the process before this one
            self._awaits, declined = "", kind == "declined"
            session.reattach(reply, heard="" if declined else mark.heard, unheard="" if declined else mark.unheard,
                             completed=not declined and mark.completed)
        noting = asyncio.ensure_future(self._note(reply))
        self._noting.add(noting)
        noting.add_done_callback(self._noting.discard)

    async def _note(self, reply_id: str) -> None:
        """Tell the client that the end of a reply is recorded: from here on it need not remember it."""
        try:
            await self._session.ledger.journal.flushed()
        except Exception as err:
            self._fail(err)
            return
        self._out.append(pb.FromDelivery(noted=pb.Noted(reply_id=reply_id)))
        self._changed.set()
