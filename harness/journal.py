"""The journal: one record per transition, append-only, and the fold that rebuilds the tasks from it.

The in-memory journal is bounded because the ledger forgets: a forgotten task takes its records along, and no task can
make more than a fixed number of transitions. A durable journal replaces it behind the same protocol.
"""
import dataclasses
from dataclasses import dataclass
from typing import Iterable, Protocol

from harness.errors import CorruptJournal
from harness.task import Delivery, Execution, Task


@dataclass(frozen=True)
class Record:
    """One transition. `changes`: the task's fields that changed (for `accept`: all of them), JSON values."""

    n: int
    at: float
    task: str
    machine: str
    """accept | execution | delivery | link"""
    src: str
    dst: str
    reason: str
    changes: dict


class Journal(Protocol):
    def append(self, record: Record) -> None: ...

    def forget(self, task_id: str) -> None:
        """The ledger let a closed task go; its records may go too."""
        ...

    def records(self) -> Iterable[Record]:
        """In the order they were appended."""
        ...


class MemoryJournal:
    """Records in memory, by task."""

    def __init__(self):
        self._by_task: dict[str, list[Record]] = {}

    def append(self, record: Record) -> None:
        self._by_task.setdefault(record.task, []).append(record)

    def forget(self, task_id: str) -> None:
        self._by_task.pop(task_id, None)

    def records(self) -> list[Record]:
        return sorted((r for rows in self._by_task.values() for r in rows), key=lambda r: r.n)

    def __len__(self) -> int:
        return sum(map(len, self._by_task.values()))


def replay(journal: Journal) -> dict[str, Task]:
    """Fold the records into tasks, oldest first. Raises CorruptJournal where a record doesn't follow from the last."""
    tasks: dict[str, Task] = {}
    for record in journal.records():
        known = tasks.get(record.task)
        if record.machine == "accept":
            if known is not None:
                raise CorruptJournal(f"record {record.n}: task {record.task} was accepted before")
            tasks[record.task] = from_fields(record.changes)
            continue
        if known is None:
            raise CorruptJournal(f"record {record.n}: task {record.task} was never accepted")
        state = {"execution": known.execution, "delivery": known.delivery}.get(record.machine)
        if state is not None and state != record.src:
            raise CorruptJournal(f"record {record.n}: {record.machine} of {record.task} is {state}, not {record.src}")
        tasks[record.task] = from_fields({**to_fields(known), **record.changes})
    return tasks


def to_fields(task: Task) -> dict:
    """The task as JSON values."""
    return {f.name: getattr(task, f.name) for f in dataclasses.fields(task)}


def from_fields(fields: dict) -> Task:
    return Task(**{**fields, "execution": Execution(fields["execution"]), "delivery": Delivery(fields["delivery"])})
