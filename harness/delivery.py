"""Delivery: which prepared reply enters the conversation now, and what became of the ones that did.

One reply is in the air at a time. Freshness and relevance are checked at the instant of admission; the answer to the newest
question comes first; an older one is introduced; what was interrupted goes on from the first unheard word, once.
"""
from collections import deque
from dataclasses import dataclass
from typing import Callable

from harness import phrases
from harness.gate import Gate, Moment
from harness.late import LatePolicy, Notice
from harness.ledger import Ledger
from harness.oral import heard_chars
from harness.phrases import Words
from harness.settings import HarnessSettings
from harness.task import Delivery as D
from harness.task import SkillSpec, Task
from venus_edge.clock import Clock
from venus_edge.ids import new_id
from venus_edge.metrics import METRICS

SLOWEST_CHARS_PER_S = 6.0
"""Slower than any voice here speaks: for the latest end of a reply whose final report is missing."""


@dataclass(frozen=True)
class PreparedReply:
    """A reply admitted into the conversation: the words are final. `kind`: result | ack | progress | notice | question."""

    id: str
    task_id: str
    task_version: int
    text: str
    kind: str
    lang: str
    turn: int


@dataclass(frozen=True)
class _Part:
    """One task's share of a reply: `lead` (an introduction) and then the task's `rest`."""

    task_id: str
    lead: str
    rest: str


@dataclass
class _InAir:
    reply: PreparedReply
    parts: tuple[_Part, ...]
    admitted_at: float
    started_at: float | None = None


class DeliveryDesk:
    def __init__(self, ledger: Ledger, clock: Clock, settings: HarnessSettings, late: LatePolicy, words: Words,
                 spec_of: Callable[[str], SkillSpec | None]):
        self._ledger, self._clock, self._settings = ledger, clock, settings
        self._late, self._words, self._spec_of = late, words, spec_of
        self._gate = Gate(settings)
        self._air: _InAir | None = None
        self._not_before: dict[str, float] = {}
        self._waiting_since: dict[str, float] = {}
        self._abandoned: dict[str, str] = {}
        self._told: deque[tuple[str, str]] = deque(maxlen=8)

    # -- what is to be told

    def tell(self, task_id: str, kind: str, text: str) -> None:
        """Something is to be told of a task whose work has ended."""
        self._ledger.deliver(task_id, D.PENDING, kind=kind, text=text)
        self._waiting_since[task_id] = self._clock.now()
        waiting = [t for t in self._ledger.untold() if t.delivery is D.PENDING]
        if len(waiting) > self._settings.max_untold:
            METRICS.add("venus_harness_untold_overflow_total")
            self._close(waiting[0], D.UNSPOKEN, "too_many")

    def abandon(self, task_id: str, reason: str) -> None:
        """What is untold of the task is not wanted any more; what is in the air is not taken up again."""
        task = self._ledger.get(task_id)
        if task.delivery in (D.NONE, D.PENDING, D.INTERRUPTED):
            self._close(task, D.DROPPED, reason)
        elif task.delivery is D.DELIVERING:
            self._abandoned[task_id] = reason

    def overtake(self, group: str) -> None:
        """A new request of the group came: what was interrupted of its older ones is not taken up again."""
        for task in self._ledger.untold():
            if group and task.group == group and (task.delivery is D.DELIVERING or task.resumes):
                self.abandon(task.id, "overtaken")

    def last_told(self) -> tuple[Task, str] | None:
        """The newest outcome of which something was heard, that no correction or cancellation has made wrong."""
        for task_id, text in reversed(self._told):
            if self._ledger.knows(task_id) and not (task := self._ledger.get(task_id)).superseded_by:
                return task, text
        return None

    # -- admission

    def next(self, moment: Moment, newest_turn: int) -> PreparedReply | None:
        """The reply to admit at this instant, or None. Called every unit; each reply is given out once."""
        self._gate.see(moment)
        now = self._clock.now()
        self._expire(now)
        if self._air is not None:
            return None
        ready = [t for t in self._ledger.untold() if t.delivery is D.PENDING and self._not_before.get(t.id, 0) <= now]
        ready.sort(key=lambda t: -t.turn)  # stable: within a turn, in the order asked
        notices = [n for t in self._ledger.live() if (spec := self._spec_of(t.capability))
                   and (n := self._late.due(t, spec, now, newest_turn))]
        notices.sort(key=lambda n: -n.task.turn)
        acks = [n for n in notices if n.kind == "ack"]
        if ready and not (acks and acks[0].task.turn > ready[0].turn):
            return self._outcome(ready, newest_turn, now)
        return self._notice((acks or notices)[0], newest_turn, now) if notices else None

    def _outcome(self, ready: list[Task], newest_turn: int, now: float) -> PreparedReply | None:
        first = ready[0]
        waited = now - self._waiting_since.get(first.id, now)
        urgent = waited >= self._settings.max_wait_s
        if first.turn < newest_turn and not urgent and any(
                t.turn == newest_turn and now - t.accepted_at < self._settings.hold_older_s for t in self._ledger.live()):
            return None
        quiet = 0.0 if urgent else self._settings.resume_quiet_s if first.resumes else self._settings.quiet_s
        if not self._gate.free(after_user_s=0.0 if first.turn >= newest_turn and not first.resumes else quiet,
                               after_assistant_s=quiet):
            return None
        parts = [self._part(first, newest_turn)]
        size = len(parts[0].lead + parts[0].rest)
        for other in ready[1:]:
            part = self._part(other, newest_turn)
            size += len(part.lead + part.rest) + 1
            if (size <= self._settings.max_join_chars and first.kind != "question" and other.kind != "question"
                    and other.lang == first.lang and not first.resumes and not other.resumes):
                parts.append(part)
                break
        return self._admit(first, first.kind, parts, now)

    def _notice(self, notice: Notice, newest_turn: int, now: float) -> PreparedReply | None:
        fresh = notice.task.turn >= newest_turn
        if not self._gate.free(after_user_s=0.0 if fresh else self._settings.quiet_s,
                               after_assistant_s=self._settings.quiet_s):
            return None
        lead = self._introduction(notice.task) if notice.own and not fresh else ""
        self._late.said(notice, now)
        reply = PreparedReply(new_id("reply"), notice.task.id, notice.task.version, lead + notice.text, notice.kind,
                              notice.task.lang, notice.task.turn)
        self._air = _InAir(reply, (), now)
        return reply

    def _admit(self, first: Task, kind: str, parts: list[_Part], now: float) -> PreparedReply:
        for part in parts:
            self._ledger.deliver(part.task_id, D.DELIVERING)
        text = phrases.join([part.lead + part.rest for part in parts], first.lang)
        reply = PreparedReply(new_id("reply"), first.id, first.version, text, kind, first.lang, first.turn)
        self._air = _InAir(reply, tuple(parts), now)
        return reply

    def _part(self, task: Task, newest_turn: int) -> _Part:
        if task.resumes and task.rest != task.text:
            return _Part(task.id, phrases.say("reply.resume", task.lang), task.rest)
        lead = self._introduction(task) if task.turn < newest_turn and task.kind != "question" else ""
        return _Part(task.id, lead, task.rest)

    def _introduction(self, task: Task) -> str:
        return self._words.about("reply.introduce", task)

    def _expire(self, now: float) -> None:
        for task in self._ledger.untold():
            if task.delivery is D.PENDING and task.ended_at is not None and now - task.ended_at > task.ttl_s:
                self._close(task, D.DROPPED, "expired")
        air = self._air
        if air is None:
            return
        if air.started_at is None and now - air.admitted_at > self._settings.start_timeout_s:
            METRICS.add("venus_harness_replies_not_started_total")
            self._land(D.UNSPOKEN, "not_started")
        elif air.started_at is not None:
            limit = len(air.reply.text) / SLOWEST_CHARS_PER_S + self._settings.report_grace_s
            if now - air.started_at > limit:
                METRICS.add("venus_harness_replies_unreported_total")
                self._land(D.DELIVERED, "estimated")

    # -- what became of it

    def started(self, reply_id: str) -> None:
        """The front end began to speak the reply."""
        if self._is_air(reply_id):
            self._air.started_at = self._clock.now()

    def declined(self, reply_id: str) -> None:
        """The front end won't speak the reply: offered once more, then closed as unspoken."""
        if not self._is_air(reply_id):
            return
        air, self._air = self._air, None
        now = self._clock.now()
        for part in air.parts:
            task = self._ledger.get(part.task_id)
            reason = "superseded" if task.superseded_by else self._abandoned.pop(task.id, "")
            if reason:
                self._close(task, D.DROPPED, reason)
            elif task.declines:
                self._close(task, D.UNSPOKEN, "declined")
            else:
                self._ledger.deliver(task.id, D.PENDING, "declined")
                self._not_before[task.id] = now + self._settings.retry_after_s

    def finished(self, reply_id: str, *, heard: str, unheard: str, completed: bool, confirmed: bool,
                 stopped: bool) -> None:
        """The reply's segment ended: what the device confirmed heard, and what not."""
        if not self._is_air(reply_id):
            return
        if completed:
            self._land(D.DELIVERED, "confirmed" if confirmed else "estimated")
            return
        air, self._air = self._air, None
        reached = heard_chars(air.reply.text, heard, unheard)
        start = 0
        for index, part in enumerate(air.parts):
            start = air.reply.text.index(part.lead + part.rest, start)
            spoken = max(0, reached - start - len(part.lead))
            self._interrupted(part, part.rest[spoken:].strip(), index, air, stopped, confirmed)
            start += len(part.lead + part.rest)

    def _interrupted(self, part: _Part, rest: str, index: int, air: _InAir, stopped: bool, confirmed: bool) -> None:
        task = self._ledger.get(part.task_id)
        share = 1.0 - len(rest) / len(task.text)
        if rest != task.text:
            self._told.append((task.id, task.text))
        if not rest:
            self._heard(task, index, air, "confirmed" if confirmed else "estimated")
            return
        task = self._ledger.deliver(task.id, D.INTERRUPTED, f"heard {share:.0%}", rest=rest)
        unwanted = "superseded" if task.superseded_by else self._abandoned.pop(task.id, "")
        if unwanted:
            self._close(task, D.DROPPED, unwanted)
        elif share >= self._settings.enough_heard:
            self._close(task, D.DELIVERED, f"heard {share:.0%}")
        elif stopped:
            self._close(task, D.DROPPED, "stopped")
        elif task.kind == "question":  # whoever talks over a question has understood it
            self._close(task, D.UNSPOKEN, "interrupted")
        elif task.resumes:
            self._close(task, D.UNSPOKEN, "interrupted_again")
        else:
            self._ledger.deliver(task.id, D.PENDING, "to_resume")
            self._waiting_since[task.id] = self._clock.now()

    def _land(self, to: D, reason: str) -> None:
        """The reply in the air ended whole, one way or the other."""
        air, self._air = self._air, None
        for index, part in enumerate(air.parts):
            task = self._ledger.get(part.task_id)
            self._told.append((task.id, task.text))
            if to is D.DELIVERED:
                self._heard(task, index, air, reason)
            else:
                self._close(task, to, reason)

    def _heard(self, task: Task, index: int, air: _InAir, reason: str) -> None:
        if index == 0:
            self._close(task, D.DELIVERED, reason)
        else:
            self._close(task, D.MERGED, f"told with {air.parts[0].task_id}")

    def _is_air(self, reply_id: str) -> bool:
        if self._air is not None and self._air.reply.id == reply_id:
            return True
        METRICS.add("venus_harness_stale_reports_total")
        return False

    def _close(self, task: Task, to: D, reason: str) -> None:
        self._ledger.deliver(task.id, to, reason)
        self.forget(task.id)

    def forget(self, task_id: str) -> None:
        """Its delivery has ended, here or by a correction: no notes about it are needed."""
        for notes in (self._not_before, self._waiting_since, self._abandoned):
            notes.pop(task_id, None)

    def merge(self, task_id: str, into: str) -> None:
        """The task's outcome is told by another reply instead."""
        task = self._ledger.get(task_id)
        if task.delivery in (D.PENDING, D.INTERRUPTED):
            self._close(task, D.MERGED, f"told with {into}")

    def close(self) -> None:
        """The session ended: nothing will be told any more."""
        if self._air is not None:
            self._land(D.UNSPOKEN, "session_closed")
        for task in self._ledger.untold():
            self._close(task, D.DROPPED, "session_closed")
