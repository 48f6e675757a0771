"""A memory store that refuses what it is told to refuse, as a durable one does whose server or disk is away."""
from harness.errors import JournalFault
from harness.journal import MemoryJournal, MemoryStore, checked_id


class FaultyJournal(MemoryJournal):
    __slots__ = ("store", "n", "stored")

    def __init__(self, store):
        super().__init__()
        self.store, self.stored = store, 0

    def append(self, record):
        self.store.operation(record.machine)
        super().append(record)

    def durable(self, n=None):
        if not self.store.dead:
            self.stored = self.last
        return (self.last if n is None else n) <= self.stored

    async def flushed(self, n=None):
        if not self.durable(n):
            raise JournalFault("journal double: no answer")


class FaultyStore(MemoryStore):
    """`refuse(number, machine)`: whether the operation of that number (from 0; machine as in Record, or `note`) is refused. `dead`: nothing
    is taken or flushed."""

    def __init__(self, refuse=lambda number, machine: False):
        super().__init__()
        self.refuse, self.operations, self.refused, self.dead = refuse, 0, 0, False

    def operation(self, machine):
        self.operations += 1
        if self.dead or self.refuse(self.operations - 1, machine):
            self.refused += 1
            raise JournalFault("journal double: refused")

    def session(self, session_id, tenant=""):
        if session_id not in self._journals:
            self._journals[checked_id("session_id", session_id)] = (tenant, FaultyJournal(self))
        return self._journals[session_id][1]

    def note(self, session_id, key, value):
        self.operation("note")
        super().note(session_id, key, value)
