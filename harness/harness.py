"""The harness of one session: requests in, prepared replies out. The session worker talks to this and nothing else here.

    task_id = harness.accept(request, evidence)        # a delegate opened
    reply = harness.next_reply(Moment(...))            # every unit
    harness.reply_started / reply_finished / reply_declined(reply.id, ...)
    harness.user_turn(turn)                            # a new user turn was understood
    await harness.close()

All methods run on the session's event loop and none of them blocks.
"""
import asyncio
import copy
import json
import logging
from typing import Callable

from harness import phrases
from harness.delivery import DeliveryDesk, PreparedReply
from harness.dispatch import ASK, CANCEL, OWN, REPEAT, STATUS, Call, Control, Dispatcher, Planner, Say
from harness.errors import Closed
from harness.evidence import DelegateRequest, Evidence
from harness.gate import Moment
from harness.journal import Journal
from harness.late import LatePolicy
from harness.ledger import Ledger, Transition
from harness.oral import spoken
from harness.phrases import Words
from harness.scheduler import Job, Scheduler, failed
from harness.settings import HarnessSettings
from harness.task import Delivery as D
from harness.task import Execution as E
from harness.task import SkillCall, SkillCatalog, SkillOutcome, SkillRunner, SkillSpec, Task
from venus_edge.clock import Clock
from venus_edge.metrics import METRICS

log = logging.getLogger("harness")
MAX_PROGRESS_CHARS = 200


class Harness:
    def __init__(self, catalog: SkillCatalog, runner: SkillRunner, clock: Clock, settings: HarnessSettings | None = None,
                 observer: Callable[[Transition], None] | None = None, *, planner: Planner | None = None,
                 journal: Journal | None = None):
        self.settings = settings or HarnessSettings()
        self.clock = clock
        self.memory: dict = {}
        """What this session's skills share (JSON values)."""
        self.ledger = Ledger(clock, journal=journal, observer=observer, history=self.settings.history,
                             remembered_keys=self.settings.remembered_keys)
        self._runner = runner
        self._dispatcher = Dispatcher(catalog, planner)
        self._words = Words(catalog)
        self._late = LatePolicy(self.settings, self._words)
        self._desk = DeliveryDesk(self.ledger, clock, self.settings, self._late, self._words, self._spec)
        self._scheduler = Scheduler(clock, self.settings, self._settle, self.ledger.late_return)
        self._evidence: dict[str, Evidence] = {}
        self._sent_memory: dict[str, dict] = {}
        self._turn = 0
        self._closed = False

    # -- requests

    def accept(self, request: DelegateRequest, evidence: Evidence) -> str:
        """Take a request; its task id. The same key again is the same task. A skill starts within one turn of the loop.

        What can't be done is answered by voice, so the only error is Closed.
        """
        if self._closed:
            raise Closed("this session's harness is closed")
        known = self.ledger.seen(request.key)
        if known is not None:
            METRICS.add("venus_harness_duplicate_requests_total")
            return known
        self.user_turn(request.turn)
        METRICS.add("venus_harness_requests_total")
        decision = self._dispatcher.decide(request)
        if isinstance(decision, Control):
            return self._control(request, evidence, decision)
        if isinstance(decision, Say):
            capability = request.capability if self._spec(request.capability or "") else ASK
            task = self._enter(request, evidence, capability, request.arguments)
            return self._answer(task.id, E.FAILED, decision.reason, decision.kind, decision.text)
        return self._call(request, evidence, decision)

    def cancel(self, task_id: str, reason: str = "cancelled") -> bool:
        """Stop a task, or drop what is untold of it. False when it was closed already. Raises UnknownTask."""
        task = self.ledger.get(task_id)
        if task.execution is E.QUEUED:
            self._scheduler.stop(task_id)
            self.ledger.execute(task_id, E.CANCELLED, reason)
            self._release(task_id)
            self._desk.abandon(task_id, reason)
        elif task.execution is E.RUNNING:
            self.ledger.execute(task_id, E.CANCELLING, reason)
            self._scheduler.stop(task_id)
        elif task.untold:
            self._desk.abandon(task_id, reason)
        else:
            return False
        return True

    def user_turn(self, turn: int) -> None:
        """A user turn was understood. Tasks of earlier turns whose skill says so are cancelled."""
        if turn <= self._turn:
            return
        self._turn = turn
        for task in self.ledger.live():
            spec = self._spec(task.capability)
            if spec is not None and spec.on_interrupt == "cancel" and task.turn < turn:
                self.cancel(task.id, "user_took_the_floor")

    # -- replies

    def next_reply(self, moment: Moment) -> PreparedReply | None:
        """The reply to admit at this instant, or None. Call it every unit."""
        for task_id in self._scheduler.expire():
            self.ledger.execute(task_id, E.EXPIRED, "queued_too_long")
            self._tell_end(task_id, "notice", "late.expired")
        return self._desk.next(moment, max(self._turn, moment.turn))

    def reply_started(self, reply_id: str, seg: str) -> None:
        """The front end began to speak the reply as segment `seg`."""
        self._desk.started(reply_id)

    def reply_finished(self, reply_id: str, *, heard: str, unheard: str, completed: bool, confirmed: bool,
                       stopped: bool = False) -> None:
        """The reply's segment ended: `heard` and `unheard` words by the device's report; `confirmed` False for an estimate.

        `stopped`: the user asked for silence, so the rest is not taken up again.
        """
        self._desk.finished(reply_id, heard=heard, unheard=unheard, completed=completed, confirmed=confirmed,
                            stopped=stopped)

    def reply_declined(self, reply_id: str) -> None:
        """The front end won't speak the reply."""
        self._desk.declined(reply_id)

    async def close(self) -> None:
        """Cancel what runs (bounded), close every task, free the session's memory."""
        if self._closed:
            return
        self._closed = True
        for task in self.ledger.live():
            self.cancel(task.id, "session_closed")
        await self._scheduler.close()
        self._desk.close()
        self.memory.clear()

    # -- dispatching

    def _call(self, request: DelegateRequest, evidence: Evidence, call: Call) -> str:
        old = self._corrected(call.spec.supersedes) if call.corrects else None
        self._desk.overtake(call.spec.supersedes)
        if old is not None and old.execution in (E.QUEUED, E.RUNNING):
            self._scheduler.stop(old.id)
        refused = self._scheduler.full
        task = self._enter(request, evidence, call.spec.id, call.arguments, call.spec, old)
        if old is not None and old.execution is E.QUEUED:  # a running one is released when its run has ended
            self._release(old.id)
        if refused:
            return self._refuse(task)
        limit = min(call.spec.timeout_s + self.settings.deadline_grace_s, self.settings.give_up_after_s)
        self._scheduler.submit(Job(task.id, lambda: self._begin(task.id), lambda: self._run(task, call), limit,
                                   self.clock.now(), after=old.id if old else ""))
        return task.id

    def _enter(self, request: DelegateRequest, evidence: Evidence, capability: str, arguments: dict,
               spec: SkillSpec | None = None, old: Task | None = None) -> Task:
        task = self.ledger.accept(
            key=request.key, capability=capability, arguments=arguments, prose=request.prose, turn=request.turn,
            lang=request.lang, zone=request.zone, group=spec.supersedes if spec else "", evidence=evidence.hash,
            timeout_s=spec.timeout_s if spec else 0.0, ttl_s=spec.result_ttl_s if spec else 60.0,
            supersedes=old.id if old else "")
        self._evidence[task.id] = evidence
        if old:
            self._desk.forget(old.id)
        return task

    def _corrected(self, group: str) -> Task | None:
        """The task that a correction is about: the newest of the group that is live, untold or just told, else of all."""
        now = self.clock.now()
        recent = [t for t in reversed(self.ledger.tasks()) if t.capability not in (ASK, *OWN.values())
                  and not t.superseded_by and (t.ended_at is None or t.untold
                                               or now - t.ended_at <= self.settings.correct_within_s)]
        return next((t for t in recent if group and t.group == group), recent[0] if recent else None)

    def _refuse(self, task: Task) -> str:
        said = next((t for t in self.ledger.untold() if t.execution_reason == "busy" and t.delivery is D.PENDING), None)
        self._answer(task.id, E.FAILED, "busy", "notice", phrases.say("refuse.busy", task.lang))
        if said is not None:
            self._desk.merge(task.id, said.id)
        return task.id

    def _answer(self, task_id: str, to: E, reason: str, kind: str, text: str) -> str:
        """End a task at once, with something to say."""
        if to is E.COMPLETED:
            self.ledger.execute(task_id, E.RUNNING)
        self.ledger.execute(task_id, to, reason)
        self._release(task_id)
        self._desk.tell(task_id, kind, text)
        return task_id

    # -- control of other tasks

    def _control(self, request: DelegateRequest, evidence: Evidence, control: Control) -> str:
        task = self._enter(request, evidence, OWN[control.operation], request.arguments)
        text = {CANCEL: self._cancel_newest, STATUS: self._status, REPEAT: self._repeat}[task.capability](task, control)
        return self._answer(task.id, E.COMPLETED, "", "result", text)

    def _cancel_newest(self, task: Task, control: Control) -> str:
        others = [t for t in reversed(self.ledger.open()) if t.id != task.id and t.execution is not E.CANCELLING]
        named = [t for t in others if t.capability == control.capability]
        live = [t for t in named or others if t.live]
        target = next(iter(live or named or [t for t in others if self._spec(t.capability)]), None)
        if target is None:
            return phrases.say("control.nothing_to_cancel", task.lang)
        self.cancel(target.id)
        return self._words.about("control.cancelled" if target.live else "control.left", target, task.lang)

    def _status(self, task: Task, control: Control) -> str:
        others = [t for t in reversed(self.ledger.open()) if t.id != task.id and self._spec(t.capability)]
        said = []
        for other in [t for t in others if t.execution in (E.QUEUED, E.RUNNING)][:3]:
            if other.execution is E.QUEUED:
                said.append(self._words.about("control.status_queued", other, task.lang))
                continue
            seconds = max(1, round(self.clock.now() - other.accepted_at))
            said.append(self._words.about("control.status_running", other, task.lang, seconds=seconds))
            said.append(self._late.latest(other.id))
        if not said:
            ready = next((t for t in others if t.untold), None)
            said = [self._words.about("control.status_ready", ready, task.lang) if ready
                    else phrases.say("control.status_idle", task.lang)]
        return phrases.join(said, task.lang)

    def _repeat(self, task: Task, control: Control) -> str:
        last = self._desk.last_told()
        if last is None:
            return phrases.say("control.nothing_to_repeat", task.lang)
        self._desk.merge(last[0].id, task.id)
        return last[1]

    # -- running

    def _begin(self, task_id: str) -> None:
        self.ledger.execute(task_id, E.RUNNING)

    async def _run(self, task: Task, call: Call) -> SkillOutcome:
        self._sent_memory[task.id] = memory = copy.deepcopy(self.memory)
        return await self._runner.run(
            SkillCall(skill_id=call.spec.id, arguments=call.arguments, task_id=task.id, task_version=task.version,
                      lang=task.lang, zone=task.zone, memory=copy.deepcopy(memory), timeout_s=call.spec.timeout_s),
            lambda outcome, text: self._progress(task.id, outcome, text))

    def _progress(self, task_id: str, outcome: str, text: str) -> None:
        text = spoken(text, MAX_PROGRESS_CHARS)
        if text and self.ledger.knows(task_id) and self.ledger.get(task_id).execution is E.RUNNING:
            self._late.progress(task_id, outcome, text)

    def _settle(self, task_id: str, outcome: SkillOutcome | None, how: str) -> None:
        """A run ended; `how` as the scheduler tells it."""
        task = self.ledger.get(task_id)
        sent = self._sent_memory.pop(task_id, {})
        if task.execution is not E.RUNNING:
            if how == "done":
                self.ledger.late_return(task_id)
            if task.execution is E.CANCELLING:
                self.ledger.execute(task_id, E.CANCELLED, "unresponsive" if how == "unresponsive" else task.execution_reason)
                self._desk.abandon(task_id, "superseded" if task.superseded_by else task.execution_reason)
            self._release(task_id)
            return
        spec = self._spec(task.capability)
        if how == "deadline" and spec and spec.timeout_s + self.settings.deadline_grace_s > self.settings.give_up_after_s:
            self.ledger.execute(task_id, E.CANCELLING, "took_too_long")
            self.ledger.execute(task_id, E.CANCELLED, "took_too_long")
            self._tell_end(task_id, "notice", "late.apology")
            return
        outcome = outcome or failed("timeout" if how == "deadline" else "internal")
        self._remember(outcome.memory, sent)
        text = spoken(outcome.text, self.settings.max_text_chars)
        if outcome.ok and text:
            self.ledger.execute(task_id, E.COMPLETED, outcome.outcome)
            kind = "result"
        else:
            code = outcome.code or "internal"
            self.ledger.execute(task_id, E.FAILED, code)
            text = text or self._words.failure(task, code)
            kind = "question" if code in ("needs_input", "needs_confirmation") else "notice"
        self._release(task_id)
        self._desk.tell(task_id, kind, text)

    def _tell_end(self, task_id: str, kind: str, key: str) -> None:
        task = self.ledger.get(task_id)
        self._release(task_id)
        self._desk.tell(task_id, kind, self._words.about(key, task))

    def _remember(self, memory: dict | None, sent: dict) -> None:
        """Take over what a skill changed in the shared memory, and only that: others may have changed the rest."""
        if memory is None:
            return
        merged = {k: v for k, v in self.memory.items() if k in memory or k not in sent}
        merged |= {k: v for k, v in memory.items() if k not in sent or sent[k] != v}
        merged = {k: v for k, v in merged.items() if v is not None}  # a key set to None is forgotten
        try:
            size = len(json.dumps(merged))
        except (TypeError, ValueError):
            size = -1
        if 0 <= size <= self.settings.max_memory_bytes:
            self.memory = merged
        else:
            METRICS.add("venus_harness_memory_refused_total")
            log.warning("a skill's memory was refused: %s", "no JSON" if size < 0 else f"{size} bytes")

    def _release(self, task_id: str) -> None:
        """The work has ended: its evidence and progress are not needed any more."""
        self._evidence.pop(task_id, None)
        self._late.forget(task_id)

    def _spec(self, capability: str) -> SkillSpec | None:
        return self._dispatcher.spec(capability)
