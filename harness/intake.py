"""From a request to a task of the ledger: planned first, or entered, corrected, started, answered at once.

The record comes first and nothing is done before it: where the store refuses a new task, nothing has changed. The plans of one sentence
are noted before the first of them is recorded, so that neither a crash nor a refusal in between costs any of them.
"""
import asyncio
import dataclasses
import logging
from typing import Sequence

from harness import phrases
from harness.control import Controls
from harness.dispatch import ASK, HARNESS_OWN, OWN, PLAN, Call, Control, Say
from harness.errors import BadRequest, JournalFault
from harness.evidence import DelegateRequest, Evidence
from harness.oral import spoken
from harness.plan.contracts import Ask, Aside, Plan, Planned
from harness.planning import plan_request, plan_within, words_of
from harness.runs import Runs
from harness.task import Delivery as D
from harness.task import Execution as E
from harness.task import SkillSpec, Task
from venus_edge.metrics import METRICS

log = logging.getLogger("harness")
PLANS_NOTE = "plans/"
"""Notes that begin so: by task, the plans of a sentence that held several requests, until all of them are recorded."""


@dataclasses.dataclass(frozen=True, slots=True)
class Further:
    """A request after the first of one sentence, on its way into the ledger. `note`: the sentence's, where it is the last."""

    request: DelegateRequest
    evidence: Evidence
    decision: Call | Control | Say
    note: str


class Intake(Runs):
    """The part of a session that makes tasks of requests (session.py has the whole)."""

    __slots__ = ("_controls", "_further")

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self._controls = Controls(self)
        self._further: tuple[Further, ...] = ()

    # -- planning

    def _plan_first(self, request: DelegateRequest, evidence: Evidence) -> str:
        busy = len(self._planning) >= max(1, self.settings.max_queued)
        task = self._enter(request, evidence, PLAN, {"repair": request.repair} if request.repair != "new" else {})
        if busy:
            return self._refuse(task)
        self._start_planning(task.id, request, evidence)
        return task.id

    def _start_planning(self, task_id: str, request: DelegateRequest, evidence: Evidence) -> None:
        planning = asyncio.get_running_loop().create_task(self._plan(task_id, request, evidence))
        self._planning[task_id] = planning
        planning.add_done_callback(lambda done: self._planned_out(task_id, done))

    def _planned_out(self, task_id: str, done: asyncio.Task) -> None:
        self._planning.pop(task_id, None)
        if not done.cancelled() and done.exception() is not None:
            self._plan_failed(task_id, done.exception())

    def _plan_failed(self, task_id: str, error: Exception) -> None:
        log.error("planning of task %s failed: %s", task_id, type(error).__name__)
        METRICS.add("venus_harness_planner_faults_total")
        if self._wanted(task_id):
            self._answer(task_id, E.FAILED, "internal", "notice", self._shared.words.failure(self.ledger.get(task_id), "internal"))

    def _wanted(self, task_id: str) -> bool:
        """It still waits for its plan: nobody has cancelled or corrected it meanwhile, and the session is open."""
        return not self._closed and self.ledger.knows(task_id) and self.ledger.get(task_id).execution is E.QUEUED

    async def _plan(self, task_id: str, request: DelegateRequest, evidence: Evidence) -> None:
        question = self._desk.last_question(self.settings.answer_within_s)
        asked = plan_request(request, evidence, self._shared.backend.contracts(), self.ledger, self.clock.now(), self.memory, question,
                             exclude=task_id)
        planned = await plan_within(self._shared.backend, asked, self.clock, self.settings.plan_timeout_s)
        if self._wanted(task_id):
            self._apply(task_id, request, evidence, planned, words_of(asked))

    def _apply(self, task_id: str, request: DelegateRequest, evidence: Evidence, planned: Planned, words: str) -> None:
        if isinstance(planned, Ask):
            text = spoken(planned.text, self.settings.max_text_chars) or phrases.say("ask.rephrase", request.lang)
            self._answer(task_id, E.FAILED, planned.reason, "question", text)
        elif isinstance(planned, Aside):
            self.ledger.execute(task_id, E.RUNNING)
            self._end(task_id, E.COMPLETED, "aside")
        else:
            plans = tuple(planned[:self.settings.max_plans])
            decisions = [self._shared.dispatcher.planned(request, self._known(plan), words) for plan in plans]
            note = self._note_plans(task_id, request, plans, words) if len(plans) > 1 else ""
            self._carry_out(request, evidence, decisions[0], task_id)
            self._take_further(request, evidence, decisions, note)

    def _take_further(self, request: DelegateRequest, evidence: Evidence, decisions: Sequence[Call | Control | Say], note: str) -> None:
        """The requests after the first of one sentence: tasks of their own, whatever becomes of the others. What the store doesn't take
        now waits (`_catch_up`)."""
        for i, decision in enumerate(decisions[1:], start=1):
            evidence.retain()
            one = dataclasses.replace(request, key=f"{request.key}#{i}")
            self._further = (*self._further, Further(one, evidence, decision, note if i == len(decisions) - 1 else ""))
        self._catch_up()

    def _catch_up(self) -> None:
        """Give the store what it did not take before."""
        while self._journal.catch_up() and self._further:
            one = self._further[0]
            try:
                if self.ledger.seen(one.request.key) is None:  # else of before a restart
                    self._carry_out(one.request, one.evidence, one.decision)
                else:
                    one.evidence.release()
            except JournalFault:
                return
            except Exception as error:
                log.error("request %s failed: %s", one.request.key, type(error).__name__)
                one.evidence.release()
                self.regret(one.request.lang)
            self._further = self._further[1:]
            if one.note:
                self._journal.note(one.note, None)

    def regret(self, lang: str) -> None:
        raise NotImplementedError

    def _known(self, plan: Plan) -> Plan:
        """A target that isn't a task of this session is none."""
        return plan if plan.target is None or self.ledger.knows(plan.target) else dataclasses.replace(plan, target=None)

    def _note_plans(self, task_id: str, request: DelegateRequest, plans: tuple[Plan, ...], words: str) -> str:
        """Key of the note; "" where there is none."""
        names = ("key", "turn", "opened_pos", "opened_seq", "prose", "repair", "lang", "zone", "provenance")
        fields = {name: getattr(request, name) for name in names}
        try:
            self._journal.note(PLANS_NOTE + task_id, {"request": fields, "plans": [dataclasses.asdict(plan) for plan in plans], "words": words})
            return PLANS_NOTE + task_id
        except BadRequest as error:  # too much for a note: what a crash in this instant would cost is asked for again
            log.warning("plans of request %s are not noted: %s", request.key, error.code)
            return ""

    def _resume_plans(self, note: str, noted: dict) -> None:
        """Carry out what a process that was killed in the middle of a sentence had not recorded."""
        request, plans = DelegateRequest(**noted["request"]), [Plan(**plan) for plan in noted["plans"]]
        known = self.ledger.seen(request.key)
        if known is None or self.ledger.knows(known) and self.ledger.get(known).capability == PLAN:
            self._journal.note(note, None)  # it is planned anew
            return
        decisions = [self._shared.dispatcher.planned(request, self._known(plan), noted["words"]) for plan in plans]
        self._take_further(request, Evidence.freeze(0, 0), decisions, note)

    # -- carrying out

    def _carry_out(self, request: DelegateRequest, evidence: Evidence, decision: Call | Control | Say, task_id: str = "") -> str:
        """Do what was decided, as task `task_id` where the request has one already."""
        if isinstance(decision, Call):
            return self._call(request, evidence, decision, task_id)
        if isinstance(decision, Control):
            capability, about = OWN[decision.operation], {"capability": decision.capability, "target": decision.target}
            if decision.operation == "repeat":
                about = {"target": self._desk.last_origin()}
            arguments = {name: value for name, value in about.items() if value}
            if task_id:
                task = self.ledger.bind(task_id, capability=capability, arguments=arguments)
            else:
                task = self._enter(request, evidence, capability, arguments)
            return self._answer(task.id, E.COMPLETED, "", "result", self._controls.answer(task, decision))
        if not task_id:
            capability = request.capability if self._spec(request.capability or "") else ASK
            task_id = self._enter(request, evidence, capability, request.arguments).id
        return self._answer(task_id, E.FAILED, decision.reason, decision.kind, decision.text)

    def _call(self, request: DelegateRequest, evidence: Evidence, call: Call, task_id: str) -> str:
        spec, old, before = call.spec, None, None
        if call.corrects:
            old = self._target(call.target, task_id) or self._corrected(spec.supersedes, task_id, request.turn)
        elif call.continues:
            before = self._target(call.target, task_id)
        else:
            twin = self._twin(call, task_id, request.zone)
            if twin is not None:  # asked again because it takes its time: it is on its way, and must not happen twice
                return self._carry_out(request, evidence, Control("status", target=twin.id), task_id)
        if old is not None and old.execution is E.RUNNING and not self._cancellable(old):
            say = Say(self._shared.words.about("control.cannot_cancel", old, request.lang), "notice", "not_cancellable")
            return self._carry_out(request, evidence, say, task_id)
        if task_id:
            task = self.ledger.bind(task_id, capability=spec.id, arguments=call.arguments, group=spec.supersedes, timeout_s=spec.timeout_s,
                                    ttl_s=spec.result_ttl_s, supersedes=old.id if old else "", continues=before.id if before else "")
        else:
            task = self._enter(request, evidence, spec.id, call.arguments, spec, old, before)
        self._desk.overtake(spec.supersedes)
        if old is not None:
            self._desk.forget(old.id)
            if not self._stop(old.id):  # else it is released when its run has ended
                self._release(old.id)
        if before is not None:
            self._confirmed(before, task)
        return self._start(task, spec, after=old.id if old else "")

    def _twin(self, call: Call, itself: str, zone: str) -> Task | None:
        """The very same work under way, where it must not be done twice."""
        if call.spec.idempotent:
            return None
        return next((t for t in self.ledger.live() if t.id != itself and t.execution is not E.CANCELLING and not t.superseded_by
                     and (t.capability, t.arguments, t.zone) == (call.spec.id, call.arguments, zone)), None)

    def _cancellable(self, task: Task) -> bool:
        spec = self._spec(task.capability)
        return spec is None or spec.cancellable

    def _enter(self, request: DelegateRequest, evidence: Evidence, capability: str, arguments: dict, spec: SkillSpec | None = None,
               old: Task | None = None, before: Task | None = None) -> Task:
        task = self.ledger.accept(
            key=request.key, capability=capability, arguments=arguments, prose=request.prose, turn=request.turn,
            lang=request.lang, zone=request.zone, group=spec.supersedes if spec else "", evidence=evidence.hash,
            timeout_s=spec.timeout_s if spec else 0.0, ttl_s=spec.result_ttl_s if spec else 60.0, provenance=request.provenance,
            supersedes=old.id if old else "", continues=before.id if before else "")
        self._evidence[task.id] = evidence
        return task

    def _target(self, target: str, itself: str) -> Task | None:
        """The task that is meant, in its newest version."""
        task = self.ledger.get(target) if target and self.ledger.knows(target) else None
        while task is not None and task.superseded_by:
            task = self.ledger.get(task.superseded_by) if self.ledger.knows(task.superseded_by) else None
        return task if task and task.id != itself and task.capability not in HARNESS_OWN else None

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
