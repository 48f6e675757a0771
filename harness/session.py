"""One conversation's harness: requests in, prepared replies out. `Harness.open_session` makes it.

    task_id = session.accept(request, evidence)        # a delegate opened
    reply = session.next_reply(Moment(...))            # every unit
    session.reply_started / reply_finished / reply_declined(reply.id, ...)
    session.user_turn(turn)                            # a new user turn was understood
    await session.close()

All methods run on one event loop and none of them blocks.
"""
import asyncio
import copy
import json
import logging
from dataclasses import dataclass, replace
from typing import AsyncIterator, Callable

from harness import phrases
from harness.backend import DelegateBackend, ExecuteContext
from harness.control import Controls
from harness.deliver.desk import DeliveryDesk, PreparedReply
from harness.dispatch import ASK, CANCEL, HARNESS_OWN, KEEP, OWN, PLAN, Call, Control, Dispatcher, PlanFirst, Say
from harness.errors import Closed
from harness.evidence import DelegateRequest, Evidence
from harness.deliver.gate import Moment
from harness.journal import MemoryJournal, Store
from harness.deliver.late import LatePolicy
from harness.ledger import Ledger, Transition
from harness.schedule.limits import LaneLimits
from harness.deliver.offers import Resolution
from harness.oral import spoken
from harness.phrases import Words
from harness.plan.contracts import Ask, Aside, Plan, Planned
from harness.planning import plan_request, plan_within, words_of
from harness.schedule.scheduler import Job, RetryPolicy, Scheduler, failed
from harness.deliver.screen import ScreenItem
from harness.settings import HarnessSettings
from harness.task import Delivery as D
from harness.task import Execution as E
from harness.task import SkillCall, SkillCatalog, SkillOutcome, SkillSpec, Task
from harness.watch import Watchers
from venus_edge.clock import Clock
from venus_edge.errors import BusyError, VenusError
from venus_edge.metrics import METRICS

log = logging.getLogger("harness")
MAX_PROGRESS_CHARS = 200


@dataclass(frozen=True)
class Shared:
    """What the sessions of one process have in common."""

    clock: Clock
    catalog: SkillCatalog
    backend: DelegateBackend
    dispatcher: Dispatcher
    words: Words
    scheduler: Scheduler
    store: Store


class Session:
    __slots__ = ("id", "tenant", "settings", "clock", "memory", "ledger", "observer", "_shared", "_late", "_desk", "_lane", "_controls",
                 "_evidence", "_sent_memory", "_planning", "_watchers", "_turn", "_closed", "_air_before", "__weakref__")

    def __init__(self, shared: Shared, session_id: str, *, tenant: str = "", settings: HarnessSettings,
                 observer: Callable[[Transition], None] | None = None, on_screen: Callable[[ScreenItem], None] | None = None,
                 ledger: Ledger | None = None):
        self.id, self.tenant, self.settings, self.clock = session_id, tenant, settings, shared.clock
        self.memory: dict = {}
        """What this session's skills share (JSON values)."""
        self.observer = observer
        self._shared, self._watchers = shared, Watchers()
        self.ledger = ledger or Ledger(shared.clock, journal=shared.store.session(session_id, tenant), history=settings.history,
                                       remembered_keys=settings.remembered_keys)
        self.ledger.observer = self._observe
        self._late = LatePolicy(settings, shared.words)
        self._desk = DeliveryDesk(self.ledger, shared.clock, settings, self._late, shared.words, self._spec, on_screen)
        self._lane = shared.scheduler.lane(session_id, tenant, self._settle, self.ledger.late_return,
                                           **{name: getattr(settings, name) for name in LaneLimits.model_fields})
        self._controls = Controls(self)
        self._evidence: dict[str, Evidence] = {}
        self._sent_memory: dict[str, dict] = {}
        self._planning: dict[str, asyncio.Task] = {}
        self._turn = 0
        self._closed = False
        self._air_before: dict | None = None

    # -- requests

    def accept(self, request: DelegateRequest, evidence: Evidence) -> str:
        """Take a request; its task id. The same key again is the same task. A skill starts within one turn of the loop.

        What can't be done is answered by voice, so the only errors are Closed, and JournalFault where nothing can be recorded.
        """
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
        if answer.action == "cancel":
            self.cancel(answer.task_id)
        task = self._enter(request, evidence, CANCEL if answer.action == "cancel" else KEEP, {})
        return self._answer(task.id, E.COMPLETED, "", "result", answer.text)

    async def submit(self, request: DelegateRequest, evidence: Evidence | None = None) -> str:
        """`accept`, and wait until the request is where a crash of this process can't take it. Raises Closed, JournalFault."""
        task_id = self.accept(request, evidence or Evidence.freeze(request.opened_pos, request.opened_seq))
        await self.ledger.journal.flushed()
        return task_id

    async def result(self, task_id: str) -> Task:
        """The task once its work has ended and that is recorded durably. Raises UnknownTask."""
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
            self.ledger.execute(task_id, E.CANCELLED, reason)
            self._release(task_id)
            self._desk.abandon(task_id, reason)
        elif task.execution is E.RUNNING:
            spec = self._spec(task.capability)
            if spec is not None and not spec.cancellable and reason != "session_closed":
                return False
            self.ledger.execute(task_id, E.CANCELLING, reason)
            self._lane.stop(task_id)
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
        """The outcome is told with that of task `into`, in one reply's words (`replace`). False when it does not wait to be told."""
        return self.ledger.get(into).untold and self._desk.merge(task_id, into)

    def screen(self) -> tuple[ScreenItem, ...]:
        """Outcomes that were not spoken and may be shown, oldest first."""
        return self._desk.screen()

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
        self._give_up_on_late()
        return self._desk.next(moment, max(self._turn, moment.turn))

    def _give_up_on_late(self) -> None:
        now = self.clock.now()
        for task in self.ledger.live():
            spec = self._spec(task.capability)
            if spec and spec.cancellable and task.execution is E.RUNNING and now >= self._late.give_up_at(task, spec):
                self.cancel(task.id, "took_too_long")

    def reply_started(self, reply_id: str, seg: str) -> None:
        """The front end began to speak the reply as segment `seg`."""
        self._desk.started(reply_id)

    def reply_finished(self, reply_id: str, *, heard: str, unheard: str, completed: bool, confirmed: bool,
                       stopped: bool = False) -> None:
        """The reply's segment ended: `heard` and `unheard` words by the device's report; `confirmed` False for an estimate.

        `stopped`: the user asked for silence, so the rest is not taken up again.
        """
        self._desk.finished(reply_id, heard=heard, unheard=unheard, completed=completed, confirmed=confirmed, stopped=stopped)

    def reply_speech(self, reply_id: str, seg: str, spans: list[tuple[str, int]]) -> None:
        """What segment `seg` speaks of the reply, so far: (words, sample at which they end). Kept for a restart."""
        self._shared.store.note(self.id, "air", {"reply": reply_id, "seg": seg, "spans": spans})

    def doubtful(self, seg: str) -> tuple[str, list[tuple[str, int]]]:
        """(reply, spans) of a segment that an earlier process had in the air; ("", []) for every other."""
        air = self._air_before
        return (air["reply"], air["spans"]) if air and air["seg"] == seg else ("", [])

    def reattach(self, reply_id: str, *, heard: str, unheard: str, completed: bool) -> None:
        """What the device played of a reply that an earlier process had in the air."""
        self._air_before = None
        self._desk.reattach(reply_id, heard=heard, unheard=unheard, completed=completed)

    def reply_declined(self, reply_id: str) -> None:
        """The front end won't speak the reply."""
        self._desk.declined(reply_id)

    def reply_returned(self, holds: str) -> None:
        """The front end came back, and of the replies given out it has none but `holds` ("": none at all)."""
        self._desk.returned(holds)

    async def close(self) -> None:
        """Cancel what runs (bounded), close every task, free the session's memory, and remove its records from the store."""
        if self._closed:
            return
        self._closed = True
        for task in self.ledger.live():
            self.cancel(task.id, "session_closed")
        await self._lane.close()
        self._desk.close()
        self.memory.clear()
        self._evidence.clear()
        self._watchers.close()
        self._shared.store.drop(self.id)

    async def leave(self) -> None:
        """Stop working without ending anything: the records stay, so that another process can take the session up."""
        if self._closed:
            return
        self._closed = True
        for planning in self._planning.values():
            planning.cancel()
        self.ledger.journal = MemoryJournal()  # what ends now ends for this process only
        await self._lane.close()
        self._watchers.close()

    # -- planning

    def _plan_first(self, request: DelegateRequest, evidence: Evidence) -> str:
        if len(self._planning) >= self.settings.max_queued:
            return self._refuse(self._enter(request, evidence, PLAN, {}))
        task = self._enter(request, evidence, PLAN, {})
        self._start_planning(task.id, request, evidence)
        return task.id

    def _start_planning(self, task_id: str, request: DelegateRequest, evidence: Evidence) -> None:
        planning = asyncio.get_running_loop().create_task(self._plan(task_id, request, evidence))
        self._planning[task_id] = planning
        planning.add_done_callback(lambda done: self._planned_out(task_id, done))

    def _planned_out(self, task_id: str, done: asyncio.Task) -> None:
        self._planning.pop(task_id, None)
        if not done.cancelled() and done.exception() is not None:
            log.error("planning of task %s failed: %s", task_id, type(done.exception()).__name__)
            METRICS.add("venus_harness_planner_faults_total")
            task = self.ledger.get(task_id)
            if task.execution is E.QUEUED:
                self._answer(task_id, E.FAILED, "internal", "notice", self._shared.words.failure(task, "internal"))

    async def _plan(self, task_id: str, request: DelegateRequest, evidence: Evidence) -> None:
        question = self._desk.last_question(self.settings.answer_within_s)
        asked = plan_request(request, evidence, self._shared.backend.contracts(), self.ledger, self.clock.now(), self.memory, question,
                             exclude=task_id)
        planned = await plan_within(self._shared.backend, asked, self.clock, self.settings.plan_timeout_s)
        if self._closed or self.ledger.get(task_id).execution is not E.QUEUED:
            return  # cancelled meanwhile
        self._apply(task_id, request, evidence, planned, words_of(asked))

    def _apply(self, task_id: str, request: DelegateRequest, evidence: Evidence, planned: Planned, words: str) -> None:
        if isinstance(planned, Ask):
            text = spoken(planned.text, self.settings.max_text_chars) or phrases.say("ask.rephrase", request.lang)
            self._answer(task_id, E.FAILED, planned.reason, "question", text)
        elif isinstance(planned, Aside):
            self.ledger.execute(task_id, E.RUNNING)
            self.ledger.execute(task_id, E.COMPLETED, "aside")
            self._release(task_id)
            self.ledger.deliver(task_id, D.DROPPED, "aside")
        else:
            plans = planned[:self.settings.max_plans]
            for _ in plans[1:]:
                evidence.retain()
            for i, plan in enumerate(plans):
                decision = self._shared.dispatcher.planned(request, self._known(plan), words)
                if i == 0:
                    self._carry_out(request, evidence, decision, task_id)
                else:
                    self._carry_out(replace(request, key=f"{request.key}#{i}"), evidence, decision)

    def _known(self, plan: Plan) -> Plan:
        """A target that isn't a task of this session is none."""
        return plan if plan.target is None or self.ledger.knows(plan.target) else replace(plan, target=None)

    # -- dispatching

    def _carry_out(self, request: DelegateRequest, evidence: Evidence, decision: Call | Control | Say, task_id: str = "") -> str:
        """Do what was decided, as task `task_id` where the request has one already."""
        if isinstance(decision, Call):
            return self._call(request, evidence, decision, task_id)
        if isinstance(decision, Control):
            capability = OWN[decision.operation]
            if task_id:
                task = self.ledger.bind(task_id, capability=capability, arguments={})
            else:
                task = self._enter(request, evidence, capability, request.arguments)
            return self._answer(task.id, E.COMPLETED, "", "result", self._controls.answer(task, decision))
        if not task_id:
            capability = request.capability if self._spec(request.capability or "") else ASK
            task_id = self._enter(request, evidence, capability, request.arguments).id
        return self._answer(task_id, E.FAILED, decision.reason, decision.kind, decision.text)

    def _call(self, request: DelegateRequest, evidence: Evidence, call: Call, task_id: str) -> str:
        old = before = None
        if call.corrects:
            old = self._target(call.target, task_id) or self._corrected(call.spec.supersedes, task_id, request.turn)
        elif call.continues:
            before = self._target(call.target, task_id)
        self._desk.overtake(call.spec.supersedes)
        if old is not None and old.execution in (E.QUEUED, E.RUNNING):
            self._stop(old.id)
        refused = bool(self._lane.refusal(call.spec.id, call.spec.max_running))
        if task_id:
            task = self.ledger.bind(task_id, capability=call.spec.id, arguments=call.arguments, group=call.spec.supersedes,
                                    timeout_s=call.spec.timeout_s, ttl_s=call.spec.result_ttl_s, supersedes=old.id if old else "",
                                    continues=before.id if before else "")
            if old:
                self._desk.forget(old.id)
        else:
            task = self._enter(request, evidence, call.spec.id, call.arguments, call.spec, old, before)
        if old is not None and old.execution is E.QUEUED:  # a running one is released when its run has ended
            self._release(old.id)
        return self._refuse(task) if refused else self._start(task, call.spec, after=old.id if old else "")

    def _start(self, task: Task, spec: SkillSpec, *, after: str = "", again: bool = False) -> str:
        """Give the task's work to the scheduler. `again`: it ran before, in a process that is gone."""
        if again:
            self._late.taken_up(task.id)
        job = Job(task.id, lambda: self._begin(task.id), lambda: self._run(task, spec),
                  spec.timeout_s + self.settings.deadline_grace_s, self.clock.now(), after=after, capability=spec.id,
                  priority=spec.priority, turn=task.turn, max_running=spec.max_running, started=again, idempotent=spec.idempotent,
                  retry=RetryPolicy(spec.retries) if spec.retries else None)
        try:
            self._lane.submit(job)
        except BusyError:
            return self._refuse(task)
        return task.id

    def _enter(self, request: DelegateRequest, evidence: Evidence, capability: str, arguments: dict, spec: SkillSpec | None = None,
               old: Task | None = None, before: Task | None = None) -> Task:
        task = self.ledger.accept(
            key=request.key, capability=capability, arguments=arguments, prose=request.prose, turn=request.turn,
            lang=request.lang, zone=request.zone, group=spec.supersedes if spec else "", evidence=evidence.hash,
            timeout_s=spec.timeout_s if spec else 0.0, ttl_s=spec.result_ttl_s if spec else 60.0, provenance=request.provenance,
            supersedes=old.id if old else "", continues=before.id if before else "")
        self._evidence[task.id] = evidence
        if old:
            self._desk.forget(old.id)
        return task

    def _target(self, target: str, itself: str) -> Task | None:
        task = self.ledger.get(target) if target and target != itself and self.ledger.knows(target) else None
        return task if task and not task.superseded_by and task.capability not in HARNESS_OWN else None

    def _corrected(self, group: str, itself: str, turn: int) -> Task | None:
        """The task that a correction is about: what the same turn asked first and was not understood yet, else the newest of the
        group that is live, untold or just told, else of all."""
        now = self.clock.now()
        unclear = next((t for t in reversed(self.ledger.open()) if t.turn == turn and t.capability in (PLAN, ASK) and t.id != itself), None)
        if unclear is not None:
            return unclear
        recent = [t for t in reversed(self.ledger.tasks()) if t.capability not in HARNESS_OWN and t.id != itself
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
        self.ledger.execute(task_id, to, reason, kind=kind, text=text)
        self._release(task_id)
        self._desk.tell(task_id, kind, text)
        return task_id

    def _stop(self, task_id: str) -> None:
        """Stop what is queued, running or being planned for a task."""
        planning = self._planning.get(task_id)
        if planning is not None and planning is not asyncio.current_task():
            planning.cancel()
        self._lane.stop(task_id)

    # -- running

    def _begin(self, task_id: str) -> None:
        if self.ledger.get(task_id).execution is E.QUEUED:  # one that a restart or a retry takes up again runs already
            self.ledger.execute(task_id, E.RUNNING)

    async def _run(self, task: Task, spec: SkillSpec) -> SkillOutcome:
        if not spec.idempotent:  # after a crash it must be known that it may have had its effect
            await self.ledger.journal.flushed()
        task = self.ledger.get(task.id)
        self._sent_memory[task.id] = memory = copy.deepcopy(self.memory)
        call = SkillCall(skill_id=spec.id, arguments=task.arguments, task_id=task.id, task_version=task.version, lang=task.lang,
                         zone=task.zone, memory=copy.deepcopy(memory), timeout_s=spec.timeout_s, session=self.id,
                         provenance=task.provenance, key=task.key)
        evidence = self._evidence.get(task.id) or Evidence.freeze(0, 0)
        outcome = await self._shared.backend.execute(
            call, ExecuteContext(evidence, lambda outcome, text: self._progress(task.id, outcome, text), task.prose))
        return replace(outcome, text=await self._oralize(task, outcome))

    async def _oralize(self, task: Task, outcome: SkillOutcome) -> str:
        """The backend's words; the outcome's own where it fails."""
        try:
            return await self._shared.backend.oralize(task, outcome)
        except Exception as error:
            log.error("words for task %s failed: %s", task.id, type(error).__name__)
            METRICS.add("venus_harness_oralize_faults_total")
            return outcome.text

    def _progress(self, task_id: str, outcome: str, text: str) -> None:
        text = spoken(text, MAX_PROGRESS_CHARS)
        if text and self.ledger.knows(task_id) and self.ledger.get(task_id).execution is E.RUNNING:
            self._late.progress(task_id, outcome, text)

    def _settle(self, task_id: str, outcome: SkillOutcome | None, how: str) -> None:
        """A run ended; `how` as the scheduler tells it."""
        task = self.ledger.get(task_id)
        sent = self._sent_memory.pop(task_id, {})
        if how == "expired":
            self.ledger.execute(task_id, E.EXPIRED, "queued_too_long")
            self._tell_end(task_id, "notice", "late.expired")
            return
        if task.execution is not E.RUNNING:
            if how == "done":
                self.ledger.late_return(task_id)
            if task.execution is E.CANCELLING:
                self._cancelled(task, how)
            self._release(task_id)
            return
        outcome = outcome or failed("timeout" if how == "deadline" else "internal")
        self._remember(outcome.memory, sent)
        text = spoken(outcome.text, self.settings.max_text_chars)
        if outcome.ok and text:
            to, reason, kind = E.COMPLETED, outcome.outcome, "result"
        else:  # a result of which nothing may be said is a failure too
            to, reason = E.FAILED, outcome.code or "internal"
            text = text or self._shared.words.failure(task, reason)
            kind = "question" if reason in ("needs_input", "needs_confirmation") else "notice"
        self.ledger.execute(task_id, to, reason, kind=kind, text=text)
        self._release(task_id)
        self._desk.tell(task_id, kind, text, brief=spoken(outcome.brief, self.settings.max_text_chars))

    def _cancelled(self, task: Task, how: str) -> None:
        self.ledger.execute(task.id, E.CANCELLED, "unresponsive" if how == "unresponsive" else task.execution_reason)
        if task.superseded_by:
            self._desk.abandon(task.id, "superseded")
        elif task.execution_reason == "took_too_long":
            self._tell_end(task.id, "notice", "late.apology")
        elif how == "unresponsive" and task.execution_reason == "cancelled":
            self._tell_end(task.id, "notice", "control.unresponsive")  # the user was told that it stopped, and it did not
        else:
            self._desk.abandon(task.id, task.execution_reason)

    def _tell_end(self, task_id: str, kind: str, key: str) -> None:
        task = self.ledger.get(task_id)
        self._release(task_id)
        self._desk.tell(task_id, kind, self._shared.words.about(key, task))

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
        if not 0 <= size <= self.settings.max_memory_bytes:
            METRICS.add("venus_harness_memory_refused_total")
            log.warning("a skill's memory was refused: %s", "no JSON" if size < 0 else f"{size} bytes")
        elif merged != self.memory:
            self.memory = merged
            self._shared.store.note(self.id, "memory", merged)

    def _release(self, task_id: str) -> None:
        """The work has ended: its evidence and progress are not needed any more."""
        evidence = self._evidence.pop(task_id, None)
        if evidence is not None:
            evidence.release()
        self._late.forget(task_id)

    def _observe(self, transition: Transition) -> None:
        self._watchers.saw(transition)
        if self.observer is not None:
            self.observer(transition)

    def _spec(self, capability: str) -> SkillSpec | None:
        return self._shared.dispatcher.spec(capability)
