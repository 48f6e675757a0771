"""One conversation's harness: requests in, prepared replies out. `Harness.open_session` makes it.

    task_id = session.accept(request, evidence)        # a delegate opened
    reply = session.next_reply(Moment(...))            # every unit
    session.reply_started / reply_finished / reply_declined(reply.id, ...)
    session.user_turn(turn)                            # a new user turn was understood
    await session.close()

All methods run on one event loop and none of them blocks it. How tasks are made of requests is in intake.py, how they run and end in
runs.py. While the journal's store is away, new requests are refused and nothing is admitted but what needs no record; everything
accepted goes on.
"""
import asyncio
from typing import AsyncIterator, Awaitable, Callable

from harness import phrases
from harness.deliver.desk import PreparedReply
from harness.deliver.gate import Moment
from harness.deliver.offers import Resolution
from harness.deliver.screen import ScreenItem
from harness.dispatch import CANCEL, KEEP, PlanFirst
from harness.errors import Closed, JournalFault
from harness.evidence import DelegateRequest, Evidence
from harness.intake import Intake
from harness.journal.steady import SteadyJournal
from harness.ledger import Ledger, Transition
from harness.oral import spoken
from harness.runs import Shared
from harness.settings import HarnessSettings
from harness.task import Delivery as D
from harness.task import Execution as E
from harness.task import Task
from venus_edge.metrics import METRICS

__all__ = ["Session", "Shared"]
LEAVE_WAIT_S, LEAVE_LOOK_S = 10.0, 0.05
"""So long does a session that is let go wait for a store that is away, looking so often."""
AIR = "air"
"""Note: which segment speaks the reply that is in the air, and which words end at which of its samples."""


class Session(Intake):
    __slots__ = ("_turn", "_ending", "_on_end", "_air", "_air_before")

    def __init__(self, shared: Shared, session_id: str, *, tenant: str = "", settings: HarnessSettings, journal: SteadyJournal | None = None,
                 observer: Callable[[Transition], None] | None = None, on_screen: Callable[[ScreenItem], None] | None = None,
                 ledger: Ledger | None = None, on_end: Callable[["Session"], None] | None = None):
        super().__init__(shared, session_id, tenant=tenant, settings=settings, journal=journal, observer=observer, on_screen=on_screen,
                         ledger=ledger)
        self._turn = 0
        self._ending: asyncio.Task | None = None
        self._on_end = on_end
        self._air: dict | None = None
        """What AIR holds of a reply of this process."""
        self._air_before: dict | None = None
        """What it held of the reply that is in doubt."""

    # -- requests

    def accept(self, request: DelegateRequest, evidence: Evidence) -> str:
        """Take a request and, whatever comes, its evidence; the task id. The same key again is the same task. A skill starts within one
        turn of the loop.

        What can't be done is answered by voice, so the only errors are Closed, JournalFault where nothing can be recorded (`regret` says
        so to the user), and BadRequest for what no journal can keep. Nothing has changed then.
        """
        try:
            return self._accept(request, evidence)
        except BaseException:
            if all(held is not evidence for held in self._evidence.values()):
                evidence.release()
            raise

    def _accept(self, request: DelegateRequest, evidence: Evidence) -> str:
        if self._closed:
            raise Closed("this session's harness is closed", session=self.id)
        known = self.ledger.seen(request.key)
        if known is not None:
            METRICS.add("venus_harness_duplicate_requests_total")
            evidence.release()
            return known
        METRICS.add("venus_harness_requests_total")
        # Before the turn counts: "no, keep going" must not end the very task it is about.
        answer = self._desk.answer(request.prose, request.lang, request.turn) if request.capability is None else None
        self.user_turn(request.turn)
        if answer is not None:
            return self._answered(request, evidence, answer)
        self._interrupt(request.turn)
        decision = self._shared.dispatcher.decide(request)
        if isinstance(decision, PlanFirst):
            return self._plan_first(request, evidence)
        return self._carry_out(request, evidence, decision)

    def _answered(self, request: DelegateRequest, evidence: Evidence, answer: Resolution) -> str:
        """The user said yes or no to a question of ours whether to go on."""
        try:
            task = self._enter(request, evidence, CANCEL if answer.action == "cancel" else KEEP, {"target": answer.task_id})
        except JournalFault:
            self._desk.reopen(answer)
            raise
        if answer.action == "cancel":
            self.cancel(answer.task_id)
        return self._answer(task.id, E.COMPLETED, "", "result", answer.text)

    def regret(self, lang: str) -> None:
        """Tell the user that what they asked for could not be taken, after `accept` raised JournalFault. Nothing of that is recorded."""
        self._desk.regret(phrases.say("refuse.unrecorded", lang), lang)

    async def submit(self, request: DelegateRequest, evidence: Evidence | None = None) -> str:
        """`accept`, and wait until the request is where a crash of this process can't take it. Raises what `accept` does, and JournalFault
        where the store doesn't answer; the request may then have been taken: the same key tells."""
        task_id = self.accept(request, evidence or Evidence.freeze(request.opened_pos, request.opened_seq))
        await self.ledger.journal.flushed()
        return task_id

    async def result(self, task_id: str) -> Task:
        """The task once its work has ended and that is recorded durably. Raises UnknownTask, Closed (the session was left), JournalFault."""
        task = self.ledger.get(task_id)
        while task.live:
            task = await self._watchers.end_of(task_id)
        await self.ledger.journal.flushed()
        return self.ledger.get(task_id) if self.ledger.knows(task_id) else task

    def events(self) -> AsyncIterator[Transition]:
        """Every transition from now on, until the session closes. A reader that is 1,024 behind loses the oldest."""
        return self._watchers.stream()

    def cancel(self, task_id: str, reason: str = "cancelled") -> bool:
        """Stop a task, or drop what is untold of it. False when there is nothing to stop: it is closed, or running and not
        cancellable. Raises UnknownTask."""
        task = self.ledger.get(task_id)
        if task.execution is E.QUEUED:
            self._stop(task_id)
            self._end(task_id, E.CANCELLED, reason)
        elif task.execution is E.RUNNING:
            if not self._cancellable(task) and reason != "session_closed":
                return False
            self.ledger.execute(task_id, E.CANCELLING, reason)
            if not self._stop(task_id):  # taken up after a restart, and still without a place
                self._settle(task_id, None, "cancelled")
        elif task.untold:
            self._desk.abandon(task_id, reason)
        else:
            return False
        return True

    def status(self) -> tuple[Task, ...]:
        """Every task this session remembers, oldest first."""
        return tuple(self.ledger.tasks())

    def replace(self, task_id: str, text: str) -> bool:
        """Other words for an outcome that waits to be told; what was heard already is not said again. False when it is being told
        or was. Raises UnknownTask."""
        return self._desk.replace(task_id, spoken(text, self.settings.max_text_chars))

    def merge(self, task_id: str, into: str) -> bool:
        """The outcome is told with that of task `into`, in one reply's words (`replace`). False when one of the two does not wait to be
        told. Raises UnknownTask."""
        waits = self.ledger.get(into).delivery in (D.PENDING, D.INTERRUPTED)
        return waits and task_id != into and self._desk.merge(task_id, into)

    def screen(self) -> tuple[ScreenItem, ...]:
        """Outcomes that were not spoken and may be shown, oldest first."""
        return self._desk.screen()

    @property
    def turn(self) -> int:
        """The newest user turn so far. A front end that begins to count anew goes on from it."""
        return self._turn

    def user_turn(self, turn: int) -> None:
        """A user turn was understood. Tasks of earlier turns whose skill says so are cancelled, or asked about."""
        if turn <= self._turn:
            return
        self._turn = turn
        self._lane.user_turn(turn)
        offer = self._desk.open_offer(self.clock.now(), turn)
        self._interrupt(turn, spared=offer.task_id if offer else "")

    def _interrupt(self, turn: int, spared: str = "") -> None:
        """End what the user's new turn ends by its skill's policy; not the task of an open question, which the turn may answer."""
        for task in self.ledger.live():
            spec = self._spec(task.capability)
            if spec is not None and spec.on_interrupt == "cancel" and task.turn < turn and task.id != spared:
                self.cancel(task.id, "user_took_the_floor")

    @property
    def question_open(self) -> bool:
        """We asked whether to go on, and the user heard it: a mere yes or no answers that, and is no backchannel."""
        return self._desk.open_offer(self.clock.now()) is not None

    @property
    def holding(self) -> bool:
        """A reply is chosen and waits for the journal; `await settled()` and ask again."""
        return self._desk.holding

    async def settled(self) -> None:
        """Everything up to now is recorded. Raises JournalFault where the store doesn't answer."""
        await self.ledger.journal.flushed()

    # -- replies

    def next_reply(self, moment: Moment) -> PreparedReply | None:
        """The reply to admit at this instant, or None. Call it every unit."""
        if self._closed:
            return None
        self._catch_up()
        self._give_up_on_late()
        reply = self._desk.next(moment, max(self._turn, moment.turn))
        self._tidy()
        return reply

    def _give_up_on_late(self) -> None:
        now = self.clock.now()
        for task in self.ledger.live():
            spec = self._spec(task.capability)
            if spec and spec.cancellable and task.execution is E.RUNNING and now >= self._late.give_up_at(task, spec):
                self.cancel(task.id, "took_too_long")

    def reply_started(self, reply_id: str, seg: str) -> None:
        """The front end began to speak the reply, as segment `seg` (`reply_speech` tells which words)."""
        self._desk.started(reply_id)

    def reply_finished(self, reply_id: str, *, heard: str, unheard: str, completed: bool, confirmed: bool,
                       stopped: bool = False) -> None:
        """The reply's segment ended: `heard` and `unheard` words by the device's report; `confirmed` False for an estimate.

        `stopped`: the user asked for silence, so the rest is not taken up again.
        """
        self._desk.finished(reply_id, heard=heard, unheard=unheard, completed=completed, confirmed=confirmed, stopped=stopped)
        self._tidy()

    def reply_declined(self, reply_id: str) -> None:
        """The front end won't speak the reply."""
        self._desk.declined(reply_id)
        self._tidy()

    def reply_returned(self, holds: str) -> None:
        """The front end came back, and of the replies given out it has none but `holds` ("": none at all)."""
        self._desk.returned(holds)
        self._tidy()

    # -- replies across a restart of this process or of the front end

    def reply_speech(self, reply_id: str, seg: str, spans: list[tuple[str, int]], complete: bool = True) -> None:
        """What segment `seg` speaks of the reply, so far: (words, sample at which they end). `complete`: there is no more of it. Kept
        until the reply has ended, for whoever has to settle it."""
        if self._desk.in_air == reply_id:
            self._air = {"reply": reply_id, "seg": seg, "spans": spans, "complete": complete}
            self._journal.note(AIR, self._air)

    def _tidy(self) -> None:
        """The note goes when its reply has ended, or is in doubt no more."""
        if self._air is not None and self._desk.in_air != self._air["reply"]:
            self._air = None
            self._journal.note(AIR, None)
        if self._air_before is not None and not self._desk.in_doubt:
            self._air_before = None
            self._journal.note(AIR, None)

    def attach(self) -> None:
        """Another front end speaks for this session from here on. What the one before it was given and has not ended is in doubt, until
        the device tells what it played, for `reattach_wait_s`."""
        before = self._air
        self._desk.lost()
        if before is not None:
            self._air, self._air_before = None, before

    def doubtful(self, seg: str) -> tuple[str, list[tuple[str, int]]]:
        """(reply, spans) of a segment that an earlier front end had in the air; ("", []) for every other."""
        air = self._air_before
        return (air["reply"], air["spans"]) if air and air["seg"] == seg else ("", [])

    def played(self, seg: str, played: int, ended: bool) -> bool:
        """The device's last word on a segment that an earlier front end had in the air: `played` samples of it were heard; `ended`: nothing
        that had arrived is missing. Settles its reply; False for a segment that is not in doubt."""
        reply, spans = self.doubtful(seg)
        if not reply:
            return False
        heard, unheard = (" ".join(text for text, end in spans if (end <= played) is so).strip() for so in (True, False))
        self.reattach(reply, heard=heard, unheard=unheard, completed=ended and not unheard and self._air_before.get("complete", True))
        return True

    def reattach(self, reply_id: str, *, heard: str, unheard: str, completed: bool) -> None:
        """What the device played of a reply that an earlier front end had in the air."""
        self._desk.reattach(reply_id, heard=heard, unheard=unheard, completed=completed)
        self._tidy()

    # -- the end

    async def close(self) -> None:
        """Cancel what runs (bounded), close every task, free the session's memory, and remove its records from the store. Whoever calls
        it again waits for the same end; after `leave` there is nothing to remove."""
        await self._end_by(self._close)

    async def leave(self) -> None:
        """Stop working without ending anything: the records stay, so that another process can take the session up. What comes to its own
        end meanwhile is recorded."""
        self._leaving = self._leaving or not self._closed
        await self._end_by(self._leave)

    async def _end_by(self, how: Callable[[], Awaitable[None]]) -> None:
        if self._ending is None:
            self._closed = True
            self._ending = asyncio.ensure_future(how())
        await asyncio.shield(self._ending)  # whoever is called off meanwhile must not leave it half closed

    async def _close(self) -> None:
        for task in self.ledger.live():
            self.cancel(task.id, "session_closed")
        await self._rest()
        for task in self.ledger.live():  # nothing of it runs, so nobody else will end it
            self._settle(task.id, None, "cancelled")
        self._desk.close()
        self._over()
        try:
            self._journal.drop()
        finally:
            if self._on_end is not None:
                self._on_end(self)

    async def _leave(self) -> None:
        for planning in self._planning.values():
            planning.cancel()
        await self._rest()
        self._desk.leave()
        until = self.clock.now() + LEAVE_WAIT_S
        while not self._journal.catch_up() and self.clock.now() < until:  # what the store has not taken would be lost with this process
            await self.clock.sleep(LEAVE_LOOK_S)
        self._over()
        if self._on_end is not None:
            self._on_end(self)

    async def _rest(self) -> None:
        """Until nothing of the session runs, or what does has ignored its cancellation for `cancel_wait_s`."""
        await self._lane.close()
        await asyncio.gather(*self._planning.values(), return_exceptions=True)

    def _over(self) -> None:
        for task_id in list(self._evidence):
            self._release(task_id)
        for one in self._further:
            one.evidence.release()
        self._further = ()
        self.memory.clear()
        self._watchers.close()
