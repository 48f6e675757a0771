"""The task ledger: two state machines, each one table and one function that applies it.

    execution  QUEUED → RUNNING → COMPLETED | FAILED | CANCELLING → CANCELLED; or EXPIRED, SUPERSEDED
    delivery   NONE → PENDING → DELIVERING → DELIVERED | INTERRUPTED (→ PENDING, once); or UNSPOKEN, MERGED, DROPPED

Beyond the tables, GUARDS hold what a table can't say: nothing superseded, cancelled or expired is admitted, and nothing
is spoken twice. Every transition is journalled first, then visible, then told to the observer.
"""
import dataclasses
import logging
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Callable, Iterable

from harness.errors import IllegalTransition, UnknownTask
from harness.journal import Journal, MemoryJournal, Record, replay, to_fields
from harness.task import DELIVERY_END, EXECUTION_END, Delivery, Execution, Task
from venus_edge.clock import Clock
from venus_edge.ids import new_id

log = logging.getLogger("harness.ledger")
E, D = Execution, Delivery

EXECUTION_MOVES: dict[Execution, frozenset[Execution]] = {
    E.QUEUED: frozenset({E.RUNNING, E.FAILED, E.CANCELLED, E.EXPIRED, E.SUPERSEDED}),
    E.RUNNING: frozenset({E.COMPLETED, E.FAILED, E.CANCELLING, E.SUPERSEDED}),
    E.CANCELLING: frozenset({E.CANCELLED}),
    **{end: frozenset() for end in EXECUTION_END},
}
DELIVERY_MOVES: dict[Delivery, frozenset[Delivery]] = {
    D.NONE: frozenset({D.PENDING, D.DROPPED}),
    D.PENDING: frozenset({D.DELIVERING, D.UNSPOKEN, D.MERGED, D.DROPPED}),
    D.DELIVERING: frozenset({D.DELIVERED, D.INTERRUPTED, D.PENDING, D.UNSPOKEN, D.MERGED, D.DROPPED}),
    D.INTERRUPTED: frozenset({D.PENDING, D.DELIVERED, D.UNSPOKEN, D.MERGED, D.DROPPED}),
    **{end: frozenset() for end in DELIVERY_END},
}
CLOCKS_AGREE_S = 1.0
"""A recorded time that is off by less is of the same clock."""
TIMES = ("accepted_at", "started_at", "ended_at")
"""Fields of a task that hold the clock's seconds."""
MOST_DECLINES = 3
"""However the settings stand, a reply is offered to the front end at most once more than this."""
WITHDRAWN = "floor_taken"
"""Reason of DELIVERING → PENDING for a reply that never reached the front end: no decline."""
TELLS: dict[Execution, frozenset[str]] = {
    E.COMPLETED: frozenset({"result", "notice", "question"}),
    E.FAILED: frozenset({"notice", "question"}),
    E.CANCELLED: frozenset({"notice"}),
    E.EXPIRED: frozenset({"notice"}),
}
"""What may be told of each end of the work. Of cancelled and expired work only that it was not done; of superseded
work, and of work that goes on, nothing."""


def _kind(task: Task, to: Delivery, now: float) -> str:
    if to in (D.PENDING, D.DELIVERING) and task.kind not in TELLS.get(task.execution, ()):
        return f"a {task.execution} task tells no '{task.kind}'"
    return ""


def _superseded(task: Task, to: Delivery, now: float) -> str:
    return f"superseded by {task.superseded_by}" if to in (D.PENDING, D.DELIVERING) and task.superseded_by else ""


def _fresh(task: Task, to: Delivery, now: float) -> str:
    if to is D.DELIVERING and task.ended_at is not None and now - task.ended_at > task.ttl_s:
        return f"ended {now - task.ended_at:.1f} s ago, fresh for {task.ttl_s:.1f} s"
    return ""


def _declined(task: Task, to: Delivery, now: float) -> str:
    return f"declined {MOST_DECLINES} times before" if to is D.PENDING and task.declines > MOST_DECLINES else ""


def _resumed(task: Task, to: Delivery, now: float) -> str:
    return "already resumed once" if to is D.PENDING and task.delivery is D.INTERRUPTED and task.resumes > 1 else ""


def _rest(task: Task, to: Delivery, now: float) -> str:
    if to in (D.PENDING, D.DELIVERING) and not task.rest:
        return "nothing left to say"
    return ""


GUARDS: dict[str, Callable[[Task, Delivery, float], str]] = {
    "kind": _kind, "superseded": _superseded, "fresh": _fresh, "declined": _declined, "resumed": _resumed, "rest": _rest}
"""Conditions of a delivery move, by name; each returns why not, or ''. The task is given as it would become, its
`delivery` as it is."""


ALL_GUARDS = tuple(GUARDS.values())


@dataclass(frozen=True)
class Transition:
    """What an observer is told. `machine`: execution | delivery; `src` is '' for an acceptance."""

    machine: str
    task: Task
    src: str
    dst: str
    reason: str

    @property
    def event(self) -> str:
        """Name of the trace event."""
        return f"task.{self.machine}"

    def fields(self) -> dict:
        """Fields of the trace event: ids and states, no words."""
        return {"task": self.task.id, "version": self.task.version, "capability": self.task.capability,
                "from": self.src, "to": self.dst, "reason": self.reason}


class Ledger:
    """The tasks of one session. `history` closed ones are kept; live and untold ones always."""

    __slots__ = ("clock", "observer", "journal", "_history", "_max_keys", "_guards", "_tasks", "_open", "_closed", "_keys",
                 "_counts", "_n")

    def __init__(self, clock: Clock, *, journal: Journal | None = None,
                 observer: Callable[[Transition], None] | None = None, history: int = 256, remembered_keys: int = 1024,
                 guards: Iterable[str] = tuple(GUARDS)):
        self.clock, self.observer = clock, observer
        self.journal: Journal = journal if journal is not None else MemoryJournal()
        self._history, self._max_keys = history, remembered_keys
        self._guards = ALL_GUARDS if guards == tuple(GUARDS) else tuple(GUARDS[name] for name in guards)
        self._tasks: dict[str, Task] = {}
        self._open: dict[str, None] = {}
        self._closed: OrderedDict[str, None] = OrderedDict()
        self._keys: OrderedDict[str, str] = OrderedDict()
        self._counts: Counter[str] = Counter()
        self._n = 0

    @classmethod
    def restore(cls, journal: Journal, clock: Clock, **options) -> "Ledger":
        """The ledger as its journal tells it; goes on writing to the same journal. Raises CorruptJournal.

        Times of a clock that this one doesn't go on from (the machine was restarted) are brought over by the wall clock.
        """
        ledger = cls(clock, journal=journal, **options)
        now, offsets, last = clock.now(), {}, 0
        for record in journal.records():
            last = max(last, record.n)
            for name in TIMES:  # each was written at its own time, perhaps by another process with another clock
                if record.changes.get(name) is not None:
                    offsets[record.task, name] = record.at - record.changes[name]
        for task in replay(journal).values():
            times = {}
            for name in TIMES:
                shift = offsets.get((task.id, name), 0.0) - (clock.wall() - now)
                if (value := getattr(task, name)) is not None and abs(shift) > CLOCKS_AGREE_S:
                    times[name] = min(value + shift, now)
            if times:
                task = dataclasses.replace(task, **times)
            ledger._tasks[task.id] = task
            ledger._keys[task.key] = task.id
            (ledger._closed if task.closed else ledger._open)[task.id] = None
        ledger._n = last
        return ledger

    def mend(self) -> None:
        """After a restore: finish corrections that a crash cut off between the records of the new task and of the old one."""
        for task in self.tasks():
            old = self._tasks.get(task.replaces)
            if old is not None and (not old.superseded_by or old.live):
                self._supersede(old, task)

    # -- moving

    def accept(self, *, key: str, capability: str, arguments: dict, prose: str = "", turn: int = 0, lang: str = "en",
               zone: str = "driver", group: str = "", evidence: str = "", timeout_s: float = 0.0,
               ttl_s: float = 60.0, provenance: str = "live_speech", supersedes: str = "", continues: str = "") -> Task:
        """Enter a request, QUEUED. A known key returns its task unchanged.

        `supersedes`: id of the task it corrects; `continues`: of the task it goes on with, which stays as it is. Raises UnknownTask for a
        known key whose task left the history (the request was answered long ago), and JournalFault; then nothing has changed.
        """
        if key in self._keys:
            self._counts["duplicate_keys"] += 1
            return self.get(self._keys[key])
        old = self.get(supersedes) if supersedes else None
        task_id = new_id("task")
        lineage, version = self._lineage(task_id, supersedes or continues)
        task = Task(id=task_id, key=key, lineage=lineage, version=version,
                    capability=capability, arguments=arguments, prose=prose, turn=turn, lang=lang, zone=zone,
                    group=group, evidence=evidence, accepted_at=self.clock.now(), timeout_s=timeout_s, ttl_s=ttl_s,
                    provenance=provenance, replaces=old.id if old else "")
        self._write(task, "accept", "", task.execution, "", to_fields(task))
        self._keys[key] = task_id
        self._open[task_id] = None
        self._trim_keys()
        self._counts["accepted"] += 1
        self._tell("execution", task, "", task.execution, "")
        if old:
            self._supersede(old, task)
        return self._tasks[task_id]

    def _trim_keys(self) -> None:
        """Bounded, but a task that is remembered keeps its key: it must not be made again."""
        while len(self._keys) > self._max_keys:
            key = next((k for k, task_id in self._keys.items() if task_id not in self._tasks), None)
            if key is None:
                return
            del self._keys[key]

    def bind(self, task_id: str, *, capability: str, arguments: dict, group: str = "", timeout_s: float = 0.0,
             ttl_s: float = 60.0, supersedes: str = "", continues: str = "") -> Task:
        """A planner found out what a queued request asks for. No transition: observers see it with the next one. Raises IllegalTransition
        when it isn't queued any more."""
        task = self.get(task_id)
        if task.execution is not E.QUEUED:
            raise IllegalTransition(f"{task_id} is {task.execution}: only a queued task can be bound", task=task_id)
        changes: dict = {"capability": capability, "arguments": arguments, "group": group, "timeout_s": timeout_s, "ttl_s": ttl_s}
        old = self.get(supersedes) if supersedes else None
        if supersedes or continues:
            changes["lineage"], changes["version"] = self._lineage(task_id, supersedes or continues)
        if old:
            changes["replaces"] = old.id
        task = dataclasses.replace(task, **changes)
        self._write(task, "link", "", "", "planned", changes)
        if old:
            self._supersede(old, task)
        return self._tasks[task_id]

    def _lineage(self, task_id: str, of: str) -> tuple[str, int]:
        """Lineage and version of a task that goes on from task `of` ("" for none)."""
        if not of:
            return task_id, 1
        lineage = self.get(of).lineage
        return lineage, 1 + max(t.version for t in self._tasks.values() if t.lineage == lineage)

    def execute(self, task_id: str, to: Execution, reason: str = "", *, kind: str = "", text: str = "") -> Task:
        """Move the work of a task. Raises IllegalTransition, and then nothing has changed.

        `kind` and `text`: what is to be told of an end. In the same record as the end itself, so that no crash parts them.
        """
        task = self.get(task_id)
        if to not in EXECUTION_MOVES[task.execution]:
            raise IllegalTransition(f"execution of {task_id}: {task.execution} → {to}", task=task_id)
        changes: dict = {"execution": to, "execution_reason": reason}
        if to is E.RUNNING:
            changes["started_at"] = self.clock.now()
        if to in EXECUTION_END:
            changes["ended_at"] = self.clock.now()
            if kind:
                changes |= {"kind": kind, "text": text, "rest": text}
        return self._move(task, "execution", to, reason, changes)

    def deliver(self, task_id: str, to: Delivery, reason: str = "", *, kind: str | None = None,
                text: str | None = None, rest: str | None = None) -> Task:
        """Move the telling of a task. `kind` and `text` come with the first PENDING, `rest` with INTERRUPTED.

        Raises IllegalTransition (by table or by guard), and then nothing has changed.
        """
        task = self.get(task_id)
        changes: dict = {"delivery": to, "delivery_reason": reason}
        if to is D.PENDING and task.delivery is D.NONE:
            changes |= {"kind": kind or "", "text": text or "", "rest": text or ""}
        elif to is D.PENDING and reason != WITHDRAWN:
            changes |= {"declines": task.declines + 1} if task.delivery is D.DELIVERING else {"resumes": task.resumes + 1}
        elif to is D.INTERRUPTED and rest is not None:
            changes["rest"] = rest
        elif to is D.DELIVERING and reason:
            changes["reply"] = reason
        heard = self._heard(task, to, rest)
        if heard:
            changes["heard"] = [*task.heard, heard]
        why = "" if to in DELIVERY_MOVES[task.delivery] else "not in the table"
        if to is D.INTERRUPTED and rest is not None and len(rest) > len(task.rest):
            why = "the rest grew"
        after = dataclasses.replace(task, **{**changes, "delivery": task.delivery})
        now = self.clock.now()
        why = why or next(filter(None, (guard(after, to, now) for guard in self._guards)), "")
        if why:
            raise IllegalTransition(f"delivery of {task_id}: {task.delivery} → {to}: {why}", task=task_id)
        return self._move(task, "delivery", to, reason, changes)

    def reword(self, task_id: str, *, kind: str | None = None, text: str | None = None, rest: str | None = None) -> Task:
        """Other words for an outcome that is not in the air: `text` is all of it, `rest` what is still to be said (default: `text`).

        Raises IllegalTransition when it is being told or was told already, and for empty words.
        """
        task = self.get(task_id)
        changes = {k: v for k, v in {"kind": kind, "text": text, "rest": text if rest is None else rest}.items() if v is not None}
        if task.delivery not in (D.PENDING, D.INTERRUPTED) or not all(changes.values()):
            raise IllegalTransition(f"{task_id} is {task.delivery}: its words can't be changed", task=task_id)
        task = dataclasses.replace(task, **changes)
        self._write(task, "link", "", "", "reworded", changes)
        return task

    def unwanted(self, task_id: str, reason: str) -> Task:
        """What is being told of the task is not to be taken up again, also not after a restart. Raises IllegalTransition when it isn't
        in the air: what waits is simply dropped."""
        task = self.get(task_id)
        if task.delivery is not D.DELIVERING:
            raise IllegalTransition(f"{task_id} is {task.delivery}, not {D.DELIVERING}", task=task_id)
        task = dataclasses.replace(task, unwanted=reason)
        self._write(task, "link", "", "", "unwanted", {"unwanted": reason})
        return task

    @staticmethod
    def _heard(task: Task, to: Delivery, rest: str | None) -> list | None:
        """[from, to] in characters of `text`: what was heard of it between the last move and this one."""
        if task.delivery is not D.DELIVERING or to not in (D.DELIVERED, D.MERGED, D.INTERRUPTED) or not task.text.endswith(task.rest):
            return None
        start = len(task.text) - len(task.rest)
        end = len(task.text) - len(rest if to is D.INTERRUPTED and rest is not None else "")
        return [start, end] if end > start else None

    def durable(self) -> bool:
        """Everything written so far is where a crash can't take it."""
        return self.journal.durable()

    def late_return(self, task_id: str) -> None:
        """A run came back after its task had ended otherwise: counted, never applied."""
        self._counts["late_returns"] += 1

    def _supersede(self, old: Task, new: Task) -> None:
        old = dataclasses.replace(old, superseded_by=new.id)
        self._write(old, "link", "", "", "superseded", {"superseded_by": new.id})
        if E.SUPERSEDED in EXECUTION_MOVES[old.execution]:
            old = self.execute(old.id, E.SUPERSEDED, f"by {new.id}")
        if not old.live and old.delivery in (D.NONE, D.PENDING, D.INTERRUPTED):  # what is in the air ends by report
            self.deliver(old.id, D.DROPPED, "superseded")

    def _move(self, task: Task, machine: str, to: str, reason: str, changes: dict) -> Task:
        src = getattr(task, machine)
        after = dataclasses.replace(task, **changes)
        self._write(after, machine, src, to, reason, changes)
        self._counts[f"{machine}.{to}"] += 1
        if after.closed and task.id in self._open:
            del self._open[task.id]
            self._closed[task.id] = None
            while len(self._closed) > self._history:
                gone, _ = self._closed.popitem(last=False)
                del self._tasks[gone]
                self.journal.forget(gone)
            self._trim_keys()
        self._tell(machine, after, src, to, reason)
        return after

    def _write(self, task: Task, machine: str, src: str, dst: str, reason: str, changes: dict) -> None:
        self._n += 1
        self.journal.append(Record(self._n, self.clock.wall(), task.id, machine, src, dst, reason, changes))
        self._tasks[task.id] = task

    def _tell(self, machine: str, task: Task, src: str, dst: str, reason: str) -> None:
        if self.observer is None:
            return
        try:
            self.observer(Transition(machine, task, src, dst, reason))
        except Exception as error:  # an observer only looks on: its fault must not stop a transition half-way
            log.error("observer failed on %s of %s: %s", machine, task.id, type(error).__name__)

    # -- looking

    def get(self, task_id: str) -> Task:
        """Raises UnknownTask."""
        try:
            return self._tasks[task_id]
        except KeyError:
            raise UnknownTask(f"task '{task_id}' is not in this session's ledger", task=task_id) from None

    def knows(self, task_id: str) -> bool:
        return task_id in self._tasks

    def seen(self, key: str) -> str | None:
        """The task that an idempotency key already made, also if it left the history since; counted as a duplicate."""
        if key in self._keys:
            self._counts["duplicate_keys"] += 1
        return self._keys.get(key)

    def tasks(self) -> list[Task]:
        """All that are remembered, oldest first."""
        return list(self._tasks.values())

    def open(self) -> list[Task]:
        """Those that are live or untold, oldest first."""
        return [self._tasks[task_id] for task_id in self._open]

    def live(self) -> list[Task]:
        return [t for t in self.open() if t.live]

    def untold(self) -> list[Task]:
        return [t for t in self.open() if t.untold]

    def counters(self) -> dict[str, int]:
        """Since this object was made: accepted, duplicate_keys, late_returns, and one per state entered; now: live, untold."""
        return {"accepted": 0, "duplicate_keys": 0, "late_returns": 0, **self._counts,
                "live": len(self.live()), "untold": len(self.untold())}
