"""Delivery: which prepared reply enters the conversation now, and what became of the ones that did.

One reply is in the air at a time. Freshness and relevance are checked at the instant of admission; the answer to the newest
question comes first; an older one is introduced; what was interrupted goes on from the first unheard word, or in short, once.
What is not spoken after all is offered on the screen. With a durable journal a reply leaves only after its admission is stored.
"""
import logging
from typing import Callable

from harness import phrases
from harness.deliver.admission import asked_elsewhere, awaited, pieces, revive
from harness.deliver.affirm import yes_no
from harness.errors import HarnessError
from harness.deliver.gate import Gate, Moment
from harness.deliver.late import LatePolicy, Notice, Stage
from harness.ledger import Ledger
from harness.deliver.offers import Offer, Offers, Resolution
from harness.oral import heard_chars
from harness.deliver.outcomes import Outcomes
from harness.phrases import Words
from harness.deliver.replies import InAir, PreparedReply, compose
from harness.deliver.screen import ScreenItem
from harness.settings import HarnessSettings
from harness.task import Delivery as D
from harness.task import Execution as E
from harness.task import SkillSpec, Task
from venus_edge.clock import Clock
from venus_edge.ids import new_id
from venus_edge.metrics import METRICS

__all__ = ["DeliveryDesk", "PreparedReply"]
log = logging.getLogger("harness.deliver.desk")

SLOWEST_CHARS_PER_S = 6.0
"""Slower than any voice here speaks: for the latest end of a reply whose final report is missing."""


class DeliveryDesk(Outcomes):
    """One session's desk: outcomes and notices in, replies out one at a time, reports of what was heard back in."""

    __slots__ = ("_late", "_words", "_spec_of", "_gate", "_offers", "_air", "_held", "_sorry", "_turn")

    def __init__(self, ledger: Ledger, clock: Clock, settings: HarnessSettings, late: LatePolicy, words: Words,
                 spec_of: Callable[[str], SkillSpec | None], on_screen: Callable[[ScreenItem], None] | None = None):
        super().__init__(ledger, clock, settings, on_screen)
        self._late, self._words, self._spec_of = late, words, spec_of
        self._gate = Gate(settings)
        self._offers = Offers(settings.offer_open_s)
        self._air: InAir | None = None
        self._held: InAir | None = None
        """Chosen, and waiting for the store to have its admission."""
        self._sorry: tuple[str, str] | None = None
        """Words and language for what could not be taken."""
        self._turn = 0

    # -- what is to be told

    def tell(self, task_id: str, kind: str, text: str, brief: str = "") -> None:
        """Something is to be told of a task whose work has ended. `brief`: a short form, should a long one be interrupted."""
        self._ledger.deliver(task_id, D.PENDING, kind=kind, text=text)
        self._waiting_since[task_id] = self._clock.now()
        if brief and len(text) > self._settings.summarise_over_chars:
            self._briefs[task_id] = brief
        self._offers.close(task_id)
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
            self._ledger.unwanted(task_id, reason)
            self._waiting(task_id)

    def replace(self, task_id: str, text: str, kind: str | None = None) -> bool:
        """Other words for an outcome that waits to be told; what was heard already is not said again.

        False when it is in the air or its telling has ended: nothing has changed then.
        """
        task = self._waiting(task_id)
        if task is None or not text:
            return False
        self._reworded(task, text, kind)
        return True

    def merge(self, task_id: str, into: str) -> bool:
        """The task's outcome is told by another reply instead. False when it does not wait to be told."""
        task = self._waiting(task_id)
        if task is None:
            return False
        self._close(task, D.MERGED, f"told with {into}")
        return True

    def overtake(self, group: str) -> None:
        """A new request of the group came: what was interrupted of its older ones is not taken up again."""
        for task in self._ledger.untold():
            if group and task.group == group and (task.resumes or self._air is not None and self._air.holds(task.id)):
                self.abandon(task.id, "overtaken")

    def regret(self, text: str, lang: str) -> None:
        """Say at the next good moment that a request could not be taken. Nothing of it is recorded; of several only the newest is said."""
        self._sorry = (text, lang)

    def _waiting(self, task_id: str) -> Task | None:
        """The task if its outcome waits to be told; one that was chosen and has not left is taken back first."""
        if self._held is not None and self._held.holds(task_id):
            self._withdraw()
        task = self._ledger.get(task_id)
        return task if task.delivery in (D.PENDING, D.INTERRUPTED) else None

    # -- questions whether to go on

    def open_offer(self, now: float, turn: int | None = None) -> Offer | None:
        """The yes/no question of ours that an utterance of turn `turn` (default: the newest) may answer, or None."""
        offer = self._offers.open(now, self._turn if turn is None else turn)
        if offer is None:
            return None
        if not self._ledger.knows(offer.task_id) or self._ledger.get(offer.task_id).execution not in (E.QUEUED, E.RUNNING):
            self._offers.close()
            return None
        return offer

    def answer(self, text: str, lang: str, turn: int | None = None) -> Resolution | None:
        """What an utterance asks for if it does nothing but answer the open question; the question is closed then."""
        now = self._clock.now()
        offer = self.open_offer(now, turn)
        if offer is None:
            return None
        task = self._ledger.get(offer.task_id)
        yes = yes_no(text, lang, yes_means=offer.kind, topic=self._words.topic(task))
        if yes is None:
            return None
        self._offers.close()
        action = offer.on_yes if yes else offer.on_no
        if action == "keep":
            self._late.kept(task.id, now)
            return Resolution(task.id, action, offer.kind, phrases.say("offer.kept", lang))
        return Resolution(task.id, action, offer.kind, self._words.about("control.cancelled", task, lang))

    def reopen(self, answer: Resolution) -> None:
        """The answer to our question could not be taken: it is open again."""
        self._offers.heard(answer.task_id, answer.kind, self._clock.now(), self._turn)

    @property
    def holding(self) -> bool:
        """A reply is chosen, and its admission is not in the store yet."""
        return self._held is not None

    @property
    def in_air(self) -> str:
        """Id of the reply that was given out and has not ended, if outcomes are told by it; else ""."""
        return self._air.reply.id if self._air is not None and self._air.parts else ""

    @property
    def in_doubt(self) -> bool:
        """Nobody has told yet what was heard of a reply of an earlier process or front end."""
        return bool(self._doubtful)

    # -- admission

    def next(self, moment: Moment, newest_turn: int) -> PreparedReply | None:
        """The reply to admit at this instant, or None. Called every unit; each reply is given out once.

        A chosen reply whose admission is not in the store yet is kept, and given out by a later call if it is still right then.
        """
        self._gate.see(moment)
        self._turn = newest_turn
        now = self._clock.now()
        self._expire(now)
        if self._held is None and self._air is None and not self._doubtful and self._gate.free(after_user_s=0.0, after_assistant_s=0.0):
            self._choose(newest_turn, now)
        return self._release(now) if self._held is not None else None

    def _choose(self, newest_turn: int, now: float) -> None:
        if self._sorry is not None:
            (text, lang), self._sorry = self._sorry, None
            self._held = InAir(PreparedReply(new_id("reply"), "", 0, text, "notice", lang, newest_turn), (), now, newest_turn)
            return
        ready = [t for t in self._ledger.untold() if t.delivery is D.PENDING and self._not_before.get(t.id, 0) <= now]
        ready.sort(key=lambda t: -t.turn)  # stable: within a turn, in the order asked
        notices = self._notices(newest_turn, now)
        acks = [n for n in notices if n.kind == "ack"]
        if ready and not (acks and acks[0].task.turn > ready[0].turn):
            if self._may_be_told(ready[0], newest_turn, now):
                said = pieces(ready, newest_turn, self._words, self._settings)
                self._admit(compose(new_id("reply"), ready[0], said, now, newest_turn))
        elif notices:
            self._say((acks or notices)[0], newest_turn, now)

    def _notices(self, newest_turn: int, now: float) -> list[Notice]:
        found = []
        for task in self._ledger.live():
            spec = self._spec_of(task.capability)
            if spec is None:
                continue
            matters = spec.on_interrupt == "ask" or spec.on_topic_change == "drop"
            elsewhere = matters and task.turn < newest_turn and asked_elsewhere(self._ledger, task)
            notice = self._late.due(task, spec, now, newest_turn, elsewhere=elsewhere)
            if notice is not None:
                found.append(notice)
        if found and self.open_offer(now) is not None:  # the user is to answer that first
            found = [n for n in found if n.kind == "ack"]
        if any(n.stage is Stage.GO_ON for n in found) and awaited(self._ledger, newest_turn, now - self._settings.hold_older_s):
            found = [n for n in found if n.stage is not Stage.GO_ON]
        return sorted(found, key=lambda n: -n.task.turn)

    def _may_be_told(self, task: Task, newest_turn: int, now: float) -> bool:
        """Whether this is the moment: after the usual quiet, or after a long wait the best that comes."""
        s = self._settings
        over = now - self._waiting_since.get(task.id, now) - s.max_wait_s
        if task.turn < newest_turn and over < 0 and awaited(self._ledger, newest_turn, now - s.hold_older_s):
            return False
        quiet = s.resume_quiet_s if task.resumes else s.quiet_s
        if self._gate.free(after_user_s=0.0 if task.turn >= newest_turn and not task.resumes else quiet, after_assistant_s=quiet):
            return True
        return over >= 0 and self._gate.risk <= (over / s.best_moment_s if s.best_moment_s else 1.0)

    def _say(self, notice: Notice, newest_turn: int, now: float) -> None:
        task, quiet = notice.task, self._settings.quiet_s
        fresh = task.turn >= newest_turn
        if not self._gate.free(after_user_s=0.0 if fresh else quiet, after_assistant_s=quiet):
            return
        lead = self._words.about("reply.introduce", task) if notice.own and not fresh else ""
        self._late.said(notice, now)
        reply = PreparedReply(new_id("reply"), task.id, task.version, lead + notice.text, notice.kind, task.lang, task.turn)
        self._held = InAir(reply, (), now, newest_turn, notice)  # of a notice nothing is recorded: it leaves at once

    def _admit(self, air: InAir) -> None:
        moved = 0
        try:
            for part in air.parts:
                self._ledger.deliver(part.task_id, D.DELIVERING, air.reply.id)
                moved += 1
        except HarnessError as error:  # the store took no more: what has moved is taken back, and all is tried again later
            log.error("admission of reply %s failed: %s", air.reply.id, error.code)
            METRICS.add("venus_harness_admissions_failed_total")
            for part in air.parts:
                self._not_before[part.task_id] = self._clock.now() + self._settings.retry_after_s
            air.parts, air.newest_turn = air.parts[:moved], -1
        air.recorded = self._ledger.journal.last
        self._held = air

    def _release(self, now: float) -> PreparedReply | None:
        """Give out the chosen reply, once it is stored; take it back where it is not right any more."""
        air = self._held
        gone = self._turn != air.newest_turn or not self._gate.free(after_user_s=0.0, after_assistant_s=0.0)
        if gone or any(self._unwanted(self._ledger.get(part.task_id)) for part in air.parts):
            self._withdraw()
            return None
        if air.parts and not self._ledger.journal.durable(air.recorded):
            return None
        self._held, self._air = None, air
        air.admitted_at = now
        return air.reply

    def _withdraw(self) -> None:
        self._withdrawn(part.task_id for part in self._held.parts)
        self._held = None

    def _expire(self, now: float) -> None:
        for task in self._ledger.untold():
            if task.delivery is not D.PENDING:
                continue
            if reason := self._unwanted(task):
                self._close(task, D.DROPPED, reason)
            elif task.turn < self._turn and (spec := self._spec_of(task.capability)) and spec.on_topic_change == "drop" \
                    and asked_elsewhere(self._ledger, task):
                self._close(task, D.DROPPED, "topic_changed")
        air = self._air
        if air is not None and air.started_at is None:
            if now - air.admitted_at > self._settings.start_timeout_s:
                METRICS.add("venus_harness_replies_not_started_total")
                self._land(D.UNSPOKEN, "not_started")
        elif air is not None and now - air.started_at > len(air.reply.text) / SLOWEST_CHARS_PER_S + self._settings.report_grace_s:
            METRICS.add("venus_harness_replies_unreported_total")
            self._land(D.DELIVERED, "estimated")
        if self._doubtful and now >= self._doubt_until:
            self._unconfirmed("restart_unconfirmed")

    # -- what became of it

    def started(self, reply_id: str) -> None:
        """The front end began to speak the reply."""
        if self._is_air(reply_id):
            self._air.started_at = self._clock.now()

    def declined(self, reply_id: str) -> None:
        """The front end won't speak the reply: offered again a little later, `max_declines` times, then closed as unspoken."""
        if not self._is_air(reply_id):
            return
        air, self._air = self._air, None
        METRICS.add("venus_harness_replies_declined_total")
        if air.notice is not None:
            self._late.declined(air.notice)
        self._refused(air)

    def returned(self, holds: str) -> None:
        """A front end that came back has no reply but `holds` ("": none): what was given out besides never reached it, and waits again."""
        air = self._air
        if air is not None and air.started_at is None and air.reply.id != holds:
            METRICS.add("venus_harness_replies_returned_total")
            self._air = None
            if air.notice is not None:
                self._late.declined(air.notice)
            self._withdrawn(part.task_id for part in air.parts)
        if self._doubtful and self._ledger.get(self._doubtful[0]).reply != holds:
            doubtful, self._doubtful = self._doubtful, ()
            self._withdrawn(doubtful)

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
        if confirmed and reached >= self._settings.enough_heard * len(air.reply.text):
            self._asked(air)
        self._cut(air, reached, stopped=stopped, confirmed=confirmed)

    def _land(self, to: D, reason: str) -> None:
        """The reply in the air ended whole, one way or the other."""
        air, self._air = self._air, None
        if reason == "confirmed":
            self._asked(air)
        self._landed(air, to, reason)

    def _asked(self, air: InAir) -> None:
        """The reply was heard: if it asks for a yes or no, that is an open question now."""
        if air.notice is not None and air.notice.offer:
            self._offers.heard(air.notice.task.id, air.notice.offer, self._clock.now(), self._turn)

    def _is_air(self, reply_id: str) -> bool:
        if self._air is not None and self._air.reply.id == reply_id:
            return True
        METRICS.add("venus_harness_stale_reports_total")
        return False

    # -- across a restart, of this process or of the front end

    def lost(self) -> None:
        """The front end is gone. What it had begun to speak is in doubt, as after a restart of this process; the rest waits again."""
        if self._held is not None:
            self._withdraw()
        air, self._air = self._air, None
        if air is not None and air.notice is not None:
            self._late.declined(air.notice)
        if air is not None and air.started_at is None:  # not a word of it had left
            self._withdrawn(part.task_id for part in air.parts)
        for part in air.parts if air is not None and air.started_at is not None else ():
            self.doubt(self._ledger.get(part.task_id))

    def leave(self) -> None:
        """This process lets go of the session: what had not left yet waits for the next, what is in the air is its to settle."""
        if self._held is not None:
            self._withdraw()
        self._air, self._doubtful = None, ()

    def reattach(self, reply_id: str, *, heard: str, unheard: str, completed: bool) -> bool:
        """The device's own report of a reply that was in the air when the process before this one died.

        All heard: delivered; a part: it goes on from there; nothing: it is told again. False when it is not in doubt.
        """
        tasks = [self._ledger.get(task_id) for task_id in self._doubtful]
        if not tasks or reply_id != tasks[0].reply:
            METRICS.add("venus_harness_stale_reports_total")
            return False
        self._doubtful = ()
        air = revive(tasks, heard + " " + unheard, self._words, self._settings, self._clock.now())
        if completed:
            self._landed(air, D.DELIVERED, "confirmed")
        else:
            self._cut(air, heard_chars(air.reply.text, heard, unheard), stopped=False, confirmed=True)
        return True

    def close(self) -> None:
        """The session ended: nothing will be told any more."""
        if self._held is not None:
            self._withdraw()
        self._air, self._doubtful = None, ()
        for task in self._ledger.untold():
            self._close(task, D.UNSPOKEN if task.delivery is D.DELIVERING else D.DROPPED, "session_closed")
