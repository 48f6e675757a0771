"""The journal: one record per transition, append-only, and the fold that rebuilds the tasks from it.

A `Store` is the process's; each session has a `Journal` in it. `MemoryStore` is here; `SqliteStore` (journal_sqlite.py) and
`RedisStore` (journal_redis.py) survive the process. Records and notes hold what the user said and was told: whoever can read the
store can read that, so a store's file is its owner's alone, and nothing of a session stays there once it is dropped.

    store = SqliteStore(path)
    await store.open()
    for session_id, tenant in store.sessions():       # what a process that died left over
        Ledger.restore(store.session(session_id, tenant), clock)
    journal = store.session("s-1", tenant="acme")
    journal.append(record)
    await journal.flushed()                           # it survives now what the store survives
    store.drop("s-1")
    await store.close()

A journal is bounded because the ledger forgets: a forgotten task takes its records along, and no task can make more than a fixed
number of transitions. All methods are for the event loop that opened the store; only those marked so wait for the store.
"""
import dataclasses
import json
from dataclasses import dataclass
from typing import Any, Iterable, Protocol

from harness.errors import BadRequest, Closed, CorruptJournal
from harness.task import Delivery, Execution, Task

MAX_RECORD_BYTES = 1 << 20
MAX_NOTE_BYTES = 1 << 16
MAX_ID_BYTES = 256


@dataclass(frozen=True)
class Record:
    """One transition. `changes`: the task's fields that changed (for `accept`: all of them), JSON values."""

    n: int
    """Counts up within the session; one number is one record, whatever is appended again under it."""
    at: float
    """Seconds of the wall clock: the monotonic ones in `changes` mean nothing after the machine was restarted."""
    task: str
    machine: str
    """accept | execution | delivery | link"""
    src: str
    dst: str
    reason: str
    changes: dict


class Journal(Protocol):
    """The records of one session."""

    @property
    def last(self) -> int:
        """Position of the newest append, in the order of the store; 0 before the first."""
        ...

    def append(self, record: Record) -> None:
        """Never waits. Raises JournalFault where the record can't be taken, and then nothing has changed.

        While the store is away, or too far behind, new tasks (machine `accept`) are refused first: the transitions of tasks that were
        accepted are still taken, in memory and in order, up to a bound of their own. Raises BadRequest for a record that is no JSON
        or larger than MAX_RECORD_BYTES, and Closed after the session was dropped.
        """
        ...

    def forget(self, task_id: str) -> None:
        """The ledger let a closed task go, and no record of it follows: its records go."""
        ...

    def records(self) -> Iterable[Record]:
        """All that is in the store and all that was appended since, oldest first. Waits for the store; meant for recovery.

        Raises JournalFault where the store can't be read.
        """
        ...

    def durable(self, n: int | None = None) -> bool:
        """Whether everything appended up to position `n` (default: `last`) is in the store."""
        ...

    async def flushed(self, n: int | None = None) -> None:
        """Wait until `durable(n)`. Raises JournalFault, and never hangs, where the store refuses or doesn't answer.

        The records are then still queued and kept in order; they may yet reach the store.
        """
        ...


class Store(Protocol):
    """The journals of one process. Only one process may have a store open: two would tell the same result twice."""

    async def open(self) -> None:
        """Once in the store's life. Raises ConfigError naming the file or server that can't be used."""
        ...

    def session(self, session_id: str, tenant: str = "") -> Journal:
        """The session's journal, the same object each time. Costs the store nothing until something is appended."""
        ...

    def sessions(self) -> list[tuple[str, str]]:
        """(session id, tenant) of every session that has anything in the store; right after `open`: of those left over."""
        ...

    def note(self, session_id: str, key: str, value: Any) -> None:
        """Remember a JSON value of a session, at most MAX_NOTE_BYTES; the last write wins, None removes it. Never waits.

        Raises BadRequest for what can't be kept, and JournalFault as `append` does for transitions.
        """
        ...

    def notes(self, session_id: str) -> dict[str, Any]:
        """Waits for the store, as `records` does."""
        ...

    def drop(self, session_id: str) -> None:
        """The session was closed: its records and notes are deleted. Never waits."""
        ...

    async def flushed(self) -> None:
        """Wait until everything asked of the store so far is in it. Raises JournalFault."""
        ...

    async def close(self) -> None:
        """Write what is queued (bounded) and let the store go. Raises JournalFault naming how much could not be written."""
        ...


class MemoryJournal:
    """Records in memory, by task."""

    __slots__ = ("_by_task", "_dropped", "last")

    def __init__(self):
        self._by_task: dict[str, dict[int, Record]] = {}
        self._dropped = False
        self.last = 0

    def append(self, record: Record) -> None:
        if self._dropped:
            raise Closed("this session's journal was dropped")
        self._by_task.setdefault(record.task, {})[record.n] = record
        self.last += 1

    def forget(self, task_id: str) -> None:
        self._by_task.pop(task_id, None)

    def records(self) -> list[Record]:
        return sorted((r for rows in self._by_task.values() for r in rows.values()), key=lambda r: r.n)

    def durable(self, n: int | None = None) -> bool:
        return True

    async def flushed(self, n: int | None = None) -> None:
        pass

    def drop(self) -> None:
        self._by_task.clear()
        self._dropped = True

    def __len__(self) -> int:
        return sum(map(len, self._by_task.values()))


class MemoryStore:
    """Journals that live as long as this object: closing and opening it again is a restart that lost nothing."""

    def __init__(self):
        self._journals: dict[str, tuple[str, MemoryJournal]] = {}
        self._notes: dict[str, dict[str, str]] = {}

    async def open(self) -> None:
        pass

    def session(self, session_id: str, tenant: str = "") -> MemoryJournal:
        known, journal = self._journals.get(session_id) or ("", MemoryJournal())
        if tenant and not known or session_id not in self._journals:
            known = checked_id("tenant", tenant, empty=True)
        self._journals[checked_id("session_id", session_id)] = (known, journal)
        return journal

    def sessions(self) -> list[tuple[str, str]]:
        return [(session, tenant) for session, (tenant, journal) in self._journals.items()
                if len(journal) or self._notes.get(session)]

    def note(self, session_id: str, key: str, value: Any) -> None:
        text = note_text(key, value)
        self.session(session_id)
        notes = self._notes.setdefault(session_id, {})
        notes.pop(key, None)
        if text is not None:
            notes[key] = text

    def notes(self, session_id: str) -> dict[str, Any]:
        return {key: json.loads(text) for key, text in self._notes.get(session_id, {}).items()}

    def drop(self, session_id: str) -> None:
        self._notes.pop(session_id, None)
        _, journal = self._journals.pop(session_id, (None, None))
        if journal is not None:
            journal.drop()

    async def flushed(self) -> None:
        pass

    async def close(self) -> None:
        pass


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
    return Task(**{**fields, "execution": Execution(fields["execution"]), "delivery": Delivery(fields["delivery"]),
                   "heard": fields.get("heard") or ()})


# -- what durable stores keep of a record

# ASCII: lone surrogates, which a recogniser or a planner can produce, would otherwise be refused by the store, not by us.
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=True).encode


def record_text(record: Record) -> str:
    """All of a record but `n` and `task`, as ASCII JSON. Raises BadRequest."""
    checked_id("task", record.task)
    try:
        text = _encode([record.at, record.machine, record.src, record.dst, record.reason, record.changes])
    except (TypeError, ValueError) as error:
        raise BadRequest(f"record {record.n} of {record.task}: changes: JSON values are needed ({error})", field="changes") from None
    if len(text) > MAX_RECORD_BYTES:
        raise BadRequest(f"record {record.n} of {record.task}: {len(text)} bytes, at most {MAX_RECORD_BYTES}", field="changes")
    return text


def record_from(n: int, task: str, text: str) -> Record:
    """Raises CorruptJournal."""
    try:
        at, machine, src, dst, reason, changes = json.loads(text)
    except (TypeError, ValueError) as error:
        raise CorruptJournal(f"record {n}: task {task}: unreadable ({type(error).__name__})") from None
    return Record(n, at, task, machine, src, dst, reason, changes)


def note_text(key: str, value: Any) -> str | None:
    """A note's value as ASCII JSON, None for None. Raises BadRequest."""
    checked_id("key", key)
    if value is None:
        return None
    try:
        text = _encode(value)
    except (TypeError, ValueError) as error:
        raise BadRequest(f"note {key}: JSON values are needed ({error})", field="value") from None
    if len(text) > MAX_NOTE_BYTES:
        raise BadRequest(f"note {key}: {len(text)} bytes, at most {MAX_NOTE_BYTES}", field="value")
    return text


def checked_id(field: str, value: str, empty: bool = False) -> str:
    """The id, if every store can keep it: 1 to MAX_ID_BYTES bytes of UTF-8 (or "" where `empty`). Raises BadRequest."""
    try:
        size = len(value.encode())
    except (AttributeError, UnicodeEncodeError):
        raise BadRequest(f"{field}: text that can be written as UTF-8 is needed", field=field) from None
    if not (size or empty) or size > MAX_ID_BYTES or "\0" in value:
        raise BadRequest(f"{field}: {size} bytes, {0 if empty else 1} to {MAX_ID_BYTES} without NUL are allowed", field=field)
    return value
