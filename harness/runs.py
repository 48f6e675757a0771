"""A session's work: what runs for its tasks, on what evidence and memory, and how each end of it comes into the ledger.

Whatever ends a task goes through `_end`: one record holds the end and the words for it, and then it is told, or dropped with a reason.
"""
import asyncio
import copy
import json
import logging
from dataclasses import dataclass, replace
from typing import Callable

from harness.backend import DelegateBackend, ExecuteContext
from harness.deliver.desk import DeliveryDesk
from harness.deliver.late import LatePolicy
from harness.deliver.screen import ScreenItem
from harness.dispatch import Dispatcher
from harness.errors import JournalFault
from harness.evidence import Evidence
from harness.journal import Store
from harness.journal.steady import SteadyJournal
from harness.ledger import TELLS, Ledger, Transition
from harness.oral import spoken
from harness.phrases import Words
from harness.schedule.limits import LaneLimits
from harness.schedule.scheduler import Job, RetryPolicy, Scheduler, failed
from harness.settings import HarnessSettings
from harness.task import Delivery as D
from harness.task import Execution as E
from harness.task import SkillCall, SkillCatalog, SkillOutcome, SkillSpec, Task
from harness.watch import Watchers
from venus_edge.clock import Clock
from venus_edge.errors import BusyError
from venus_edge.metrics import METRICS

log = logging.getLogger("harness")
MAX_PROGRESS_CHARS = 200
MAX_REASON_CHARS = 64
MOST_CONFIRMABLE = 4
"""Questions whether to do it after all whose yes is still understood."""


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


@dataclass(frozen=True, slots=True)
class Confirmable:
    """An effect that the host does after a yes: for exactly this task and version, with this token."""

    task_id: str
    version: int
    token: str


class Runs:
    """The part of a session that runs its tasks (session.py has the whole)."""

    __slots__ = ("id", "tenant", "settings", "clock", "memory", "ledger", "observer", "_shared", "_journal", "_late", "_desk", "_lane",
                 "_evidence", "_sent_memory", "_confirmable", "_planning", "_watchers", "_closed", "_leaving", "__weakref__")

    def __init__(self, shared: Shared, session_id: str, *, tenant: str, settings: HarnessSettings, journal: SteadyJournal | None,
                 observer: Callable[[Transition], None] | None, on_screen: Callable[[ScreenItem], None] | None, ledger: Ledger | None):
        self.id, self.tenant, self.settings, self.clock = session_id, tenant, settings, shared.clock
        self.memory: dict = {}
        """What this session's skills share (JSON values)."""
        self.observer = observer
        self._shared, self._watchers = shared, Watchers()
        self._journal = journal or SteadyJournal(shared.store, session_id, tenant)
        self.ledger = ledger or Ledger(shared.clock, journal=self._journal, history=settings.history, remembered_keys=settings.remembered_keys)
        self.ledger.observer = self._observe
        self._late = LatePolicy(settings, shared.words)
        self._desk = DeliveryDesk(self.ledger, shared.clock, settings, self._late, shared.words, self._spec, on_screen)
        self._lane = shared.scheduler.lane(session_id, tenant, self._settle, self.ledger.late_return,
                                           **{name: getattr(settings, name) for name in LaneLimits.model_fields})
        self._evidence: dict[str, Evidence] = {}
        self._sent_memory: dict[str, dict] = {}
        self._confirmable: dict[str, Confirmable] | None = None
        """By task: of those that ended with such a question, the newest; and of those that run after a yes."""
        self._planning: dict[str, asyncio.Task] = {}
        self._closed = self._leaving = False

    # -- starting and stopping

    def _start(self, task: Task, spec: SkillSpec, *, after: str = "", again: bool = False) -> str:
        """Give the task's work to the scheduler. `again`: it ran before, in a process that is gone."""
        if again:
            self._late.taken_up(task.id)
        try:
            self._lane.submit(Job(
                task.id, lambda: self._begin(task.id), lambda: self._run(task, spec), spec.timeout_s + self.settings.deadline_grace_s,
                self.clock.now(), after=after, capability=spec.id, priority=spec.priority, turn=task.turn, max_running=spec.max_running,
                started=again, idempotent=spec.idempotent, retry=RetryPolicy(spec.retries) if spec.retries else None))
        except BusyError:
            return self._refuse(task)
        except Exception as error:  # a spec that the scheduler can't take: the task must have its end all the same
            log.error("task %s can't be started: %s", task.id, type(error).__name__)
            METRICS.add("venus_harness_start_faults_total")
            self._end(task.id, E.FAILED, "internal", "notice", self._shared.words.failure(task, "internal"))
        return task.id

    def _refuse(self, task: Task) -> str:
        raise NotImplementedError

    def _stop(self, task_id: str) -> bool:
        """Stop what is queued, running or being planned for a task. Whether a run of it still has to end: `_settle` is told then."""
        planning = self._planning.get(task_id)
        if planning is not None and planning is not asyncio.current_task():
            planning.cancel()
        self._lane.stop(task_id)
        return task_id in (self._lane.runs or ())

    def _begin(self, task_id: str) -> None:
        if self.ledger.get(task_id).execution is E.QUEUED:  # one that a restart or a retry takes up again runs already
            self.ledger.execute(task_id, E.RUNNING)

    # -- running

    async def _run(self, task: Task, spec: SkillSpec) -> SkillOutcome:
        if not spec.idempotent:  # after a crash it must be known that it may have had its effect
            try:
                await self.ledger.journal.flushed()
            except JournalFault:
                return SkillOutcome(False, "unavailable", code="unavailable", started=False)
        task = self.ledger.get(task.id)
        self._sent_memory[task.id] = memory = copy.deepcopy(self.memory)
        yes = (self._confirmable or {}).get(task.id)
        call = SkillCall(skill_id=spec.id, arguments=task.arguments, task_id=yes.task_id if yes else task.id,
                         task_version=yes.version if yes else task.version, lang=task.lang, zone=task.zone, memory=copy.deepcopy(memory),
                         timeout_s=spec.timeout_s, session=self.id, provenance=task.provenance, key=task.key, confirm=yes.token if yes else "")
        evidence = self._evidence.get(task.id) or Evidence.freeze(0, 0)
        outcome = await self._shared.backend.execute(
            call, ExecuteContext(evidence, lambda outcome, text: self._progress(task.id, outcome, text), task.prose))
        return replace(outcome, text=await self._oralize(task, outcome))

    async def _oralize(self, task: Task, outcome: SkillOutcome) -> str:
        """The backend's words; the outcome's own where it fails."""
        try:
            text = await self._shared.backend.oralize(task, outcome)
            if isinstance(text, str):
                return text
            why = f"{type(text).__name__} instead of str"
        except Exception as error:
            why = type(error).__name__
        log.error("words for task %s failed: %s", task.id, why)
        METRICS.add("venus_harness_oralize_faults_total")
        return outcome.text

    def _progress(self, task_id: str, outcome: str, text: str) -> None:
        text = spoken(text, MAX_PROGRESS_CHARS)
        if text and self.ledger.knows(task_id) and self.ledger.get(task_id).execution is E.RUNNING:
            self._late.progress(task_id, outcome, text)

    # -- ending

    def _settle(self, task_id: str, outcome: SkillOutcome | None, how: str) -> None:
        """A run ended; `how` as the scheduler tells it."""
        sent = self._sent_memory.pop(task_id, {})
        if self._leaving and how != "done" or not self.ledger.knows(task_id):  # the next process takes it up; or it ended long ago
            self._release(task_id)
            return
        task, words = self.ledger.get(task_id), self._shared.words
        if how == "expired" and task.execution in (E.QUEUED, E.RUNNING):  # running: in a process before this one
            to = E.EXPIRED if task.execution is E.QUEUED else E.FAILED
            self._end(task_id, to, "queued_too_long", "notice", words.about("late.expired", task))
        elif task.execution is E.RUNNING:
            outcome = outcome or failed("timeout" if how == "deadline" else "internal")
            self._remember(outcome.memory, sent)
            self._ended(task, outcome)
        else:
            if how == "done":
                self.ledger.late_return(task_id)
            if task.execution is E.CANCELLING:
                self._cancelled(task, how)
            self._release(task_id)

    def _ended(self, task: Task, outcome: SkillOutcome) -> None:
        text = spoken(outcome.text, self.settings.max_text_chars)
        if outcome.ok and text:
            to, reason, kind = E.COMPLETED, outcome.outcome, "result"
        else:  # a result of which nothing may be said is a failure too
            to, reason = E.FAILED, outcome.code or "internal"
            text = text or self._shared.words.failure(task, reason)
            kind = "question" if reason in ("needs_input", "needs_confirmation") else "notice"
        yes = (self._confirmable or {}).get(task.id)
        self._end(task.id, to, reason[:MAX_REASON_CHARS], kind, text, brief=spoken(outcome.brief, self.settings.max_text_chars))
        token = outcome.fields.get("confirm") if isinstance(outcome.fields, dict) else None
        if reason == "needs_confirmation" and token and isinstance(token, str):
            self._confirm_later(task.id, Confirmable(yes.task_id if yes else task.id, yes.version if yes else task.version, token))

    def _cancelled(self, task: Task, how: str) -> None:
        """A cancellation came to its end. Told only where the user does not know it already, or was told wrongly."""
        key, reason = "", task.execution_reason
        if reason == "took_too_long":
            key = "late.apology"
        elif how == "unresponsive" and reason == "cancelled":
            key = "control.unresponsive"  # the user was told that it stopped, and it did not
        self._end(task.id, E.CANCELLED, "unresponsive" if key == "control.unresponsive" else reason, "notice" if key else "",
                  self._shared.words.about(key, task) if key else "")

    def _answer(self, task_id: str, to: E, reason: str, kind: str, text: str) -> str:
        """End a task at once, with something to say."""
        if to is E.COMPLETED and self.ledger.get(task_id).execution is E.QUEUED:
            self.ledger.execute(task_id, E.RUNNING)
        return self._end(task_id, to, reason, kind, text)

    def _end(self, task_id: str, to: E, reason: str, kind: str = "", text: str = "", *, brief: str = "") -> str:
        """The one way in which work ends."""
        task = self.ledger.execute(task_id, to, reason, kind=kind, text=text)
        self._release(task_id)
        self._conclude(task, brief)
        return task_id

    def _conclude(self, task: Task, brief: str = "") -> None:
        """What has ended is told, or dropped with a reason; also by the process after one that was killed between the two."""
        if task.delivery is not D.NONE:
            return
        if task.text and not task.superseded_by and task.kind in TELLS.get(task.execution, ()):
            self._desk.tell(task.id, task.kind, task.text, brief)
        else:
            self._desk.abandon(task.id, "superseded" if task.superseded_by else task.execution_reason or "nothing_to_tell")

    def _release(self, task_id: str) -> None:
        """The work has ended: its evidence, progress and confirmation are not needed any more."""
        evidence = self._evidence.pop(task_id, None)
        if evidence is not None:
            evidence.release()
        self._late.forget(task_id)
        if self._confirmable:
            self._confirmable.pop(task_id, None)

    # -- what a yes is for

    def _confirm_later(self, task_id: str, what: Confirmable) -> None:
        kept = {**(self._confirmable or {}), task_id: what}
        while len(kept) > MOST_CONFIRMABLE:
            del kept[next(iter(kept))]
        self._confirmable = kept

    def _confirmed(self, before: Task, task: Task) -> None:
        """`task` goes on with `before`: where that only wanted a yes, and nothing else has changed, it now has it."""
        what = (self._confirmable or {}).pop(before.id, None)
        if what is not None and (task.capability, task.arguments, task.zone) == (before.capability, before.arguments, before.zone):
            self._confirm_later(task.id, what)

    def _unconfirmed(self, task_id: str) -> bool:
        """The user does not want it done after all. Whether that was still open."""
        return bool(self._confirmable) and self._confirmable.pop(task_id, None) is not None

    # -- shared memory

    def _remember(self, memory: dict | None, sent: dict) -> None:
        """Take over what a skill changed in the shared memory, and only that: others may have changed the rest."""
        if memory is None:
            return
        merged = {k: v for k, v in self.memory.items() if k in memory or k not in sent}
        merged |= {k: v for k, v in memory.items() if k not in sent or sent[k] != v}
        merged = {k: v for k, v in merged.items() if v is not None}  # a key set to None is forgotten
        try:
            size = len(json.dumps(merged, allow_nan=False))
        except (TypeError, ValueError, RecursionError):
            size = -1
        if not 0 <= size <= self.settings.max_memory_bytes:
            METRICS.add("venus_harness_memory_refused_total")
            log.warning("a skill's memory was refused: %s", "no JSON" if size < 0 else f"{size} bytes")
        elif merged != self.memory:
            self.memory = merged
            self._journal.note("memory", merged)

    # -- small parts

    def _observe(self, transition: Transition) -> None:
        self._watchers.saw(transition)
        if self.observer is not None:
            self.observer(transition)

    def _spec(self, capability: str) -> SkillSpec | None:
        return self._shared.dispatcher.spec(capability)
