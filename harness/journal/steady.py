"""A session's journal as its ledger uses it: what was accepted goes on, whatever the store does.

Only a new task can be refused (JournalFault). A transition or a note that the store doesn't take now is held here, in order, and given
to it before anything else; until then nothing counts as durable, so no result is admitted on the strength of it. What is held is
bounded without a limit of its own: while something is held no task is accepted, and each open one makes only so many transitions.
"""
from collections import deque
from typing import Any, Iterable

from harness.errors import JournalFault
from harness.journal import Record, Store, note_text, record_text
from venus_edge.metrics import METRICS

_HELD = 1 << 62
"""Position of whatever the store has not taken yet: later than all that it has."""


class SteadyJournal:
    """The `Journal` of one session of a store, and its notes."""

    __slots__ = ("_store", "_id", "_journal", "_held", "_notes", "_fault")

    def __init__(self, store: Store, session_id: str, tenant: str = ""):
        self._store, self._id = store, session_id
        self._journal = store.session(session_id, tenant)
        self._held: deque[Record] | None = None
        self._notes: dict[str, Any] | None = None
        self._fault: JournalFault | None = None

    @property
    def last(self) -> int:
        return _HELD if self._held else self._journal.last

    def append(self, record: Record) -> None:
        """Raises JournalFault for a new task only, BadRequest for a record that no store can keep, Closed after the session's end."""
        new = record.machine == "accept"
        if self.catch_up():
            try:
                self._journal.append(record)
                return
            except JournalFault as fault:
                if new:
                    raise
                self._fault = fault
        elif new:
            raise self._behind()
        record_text(record)  # what no store can keep must not wait at the head of the queue
        METRICS.add("venus_harness_journal_held_total")
        self._held = self._held if self._held is not None else deque()
        self._held.append(record)

    def note(self, key: str, value: Any) -> None:
        """Remember a JSON value of the session; the last write wins, None removes it. Raises BadRequest for what can't be kept."""
        try:
            if self.catch_up():
                self._store.note(self._id, key, value)
                return
        except JournalFault as fault:
            self._fault = fault
        note_text(key, value)
        self._notes = {**(self._notes or {}), key: value}

    def catch_up(self) -> bool:
        """Give the store what is held; whether nothing is any more."""
        try:
            while self._held:
                self._journal.append(self._held[0])
                self._held.popleft()
            for key in list(self._notes or ()):
                self._store.note(self._id, key, self._notes[key])
                del self._notes[key]
        except JournalFault as fault:
            self._fault = fault
            return False
        self._held = self._notes = self._fault = None
        return True

    def forget(self, task_id: str) -> None:
        if self._held:
            self._held = deque(r for r in self._held if r.task != task_id)
        self._journal.forget(task_id)

    def records(self) -> Iterable[Record]:
        return [*self._journal.records(), *(self._held or ())]

    def durable(self, n: int | None = None) -> bool:
        return self.catch_up() and self._journal.durable(None if n == _HELD else n)

    async def flushed(self, n: int | None = None) -> None:
        if not self.catch_up():
            raise self._behind()
        await self._journal.flushed(None if n == _HELD else n)

    def drop(self) -> None:
        """The session was closed: its records and notes go, also those that are held."""
        self._held = self._notes = None
        self._store.drop(self._id)

    def _behind(self) -> JournalFault:
        return JournalFault(self._fault.message if self._fault else "journal: records wait for the store")
