"""A journal store on the virtual clock that loses what it had not written when its process dies: the evaluation's stand-in for a disk.

    store = LossyStore(clock, rng)
    store.tick()                       # every unit: writes what is due
    store.stall(until)                 # the device under it stops answering
    store = store.killed(clock)        # kill -9: what the next process finds; store.lost tells how many operations were not there

It keeps the words of `harness.journal.Store`: records are JSON on the way, `durable` and `flushed` follow the writes, a store that does
not answer for PATIENCE_S is away. Writes lag behind by nothing or by up to a second, and a kill cuts the queue anywhere.
"""
import asyncio
import json
import random
from typing import Any

from harness.errors import Closed, JournalFault
from harness.journal import Record, checked_id, note_text, record_from, record_text
from venus_edge.clock import Clock

PATIENCE_S = 3.0
FULL = 40
"""Operations that wait in a store that is away, beyond which it takes no record at all."""
LAGS_S = (0.0, 0.0, 0.0, 0.0, 0.05, 0.2, 1.0)


class _Disk:
    """Sessions as the store holds them: tenant, records and notes of each."""

    def __init__(self):
        self.sessions: dict[str, tuple[str, dict[int, tuple[str, str]], dict[str, str]]] = {}

    def apply(self, op: tuple) -> None:
        what, session, tenant, *rest = op
        if what == "drop":
            self.sessions.pop(session, None)
            return
        _, records, notes = self.sessions.setdefault(session, (tenant, {}, {}))
        if what == "record":
            n, task, text = rest
            records[n] = (task, text)
        elif what == "forget":
            for n in [n for n, (task, _) in records.items() if task == rest[0]]:
                del records[n]
        elif rest[1] is None:
            notes.pop(rest[0], None)
        else:
            notes[rest[0]] = rest[1]


class LossyJournal:
    def __init__(self, store: "LossyStore", session_id: str, tenant: str):
        self._store, self.id, self.tenant = store, session_id, tenant
        self.last, self.dropped = 0, False

    def append(self, record: Record) -> None:
        if self.dropped:
            raise Closed(f"session {self.id}: its journal was dropped")
        text = record_text(record)
        if record.machine == "accept" and self._store.away:
            raise JournalFault("the store does not answer")
        if self._store.full:
            raise JournalFault("the store does not answer, and too much waits for it")
        self._store.put("record", self.id, self.tenant, record.n, record.task, text)
        self.last = self._store.queued

    def forget(self, task_id: str) -> None:
        if not self.dropped:
            self._store.put("forget", self.id, self.tenant, task_id)

    def records(self) -> list[Record]:
        _, records, _ = self._store.view.sessions.get(self.id, ("", {}, {}))
        return [record_from(n, task, text) for n, (task, text) in sorted(records.items())]

    def durable(self, n: int | None = None) -> bool:
        return (self.last if n is None else n) <= self._store.committed

    async def flushed(self, n: int | None = None) -> None:
        await self._store.reached(self.last if n is None else n)


class LossyStore:
    def __init__(self, clock: Clock, rng: random.Random, disk: _Disk | None = None):
        self._clock, self._rng = clock, rng
        self.disk = disk or _Disk()
        self.view = _Disk()
        """What its process sees: the disk and all that is queued."""
        for session, (tenant, records, notes) in self.disk.sessions.items():
            self.view.sessions[session] = (tenant, dict(records), dict(notes))
        self.queued = self.committed = self.lost = self.refused = 0
        self.away = False
        self._queue: list[tuple] = []
        self._journals: dict[str, LossyJournal] = {}
        self._waiting: list[tuple[int, float, asyncio.Future]] = []
        self._due: float | None = None
        self._stalled_until = 0.0

    # -- what the harness asks for

    async def open(self) -> None:
        pass

    def session(self, session_id: str, tenant: str = "") -> LossyJournal:
        if session_id not in self._journals:
            self._journals[session_id] = LossyJournal(self, checked_id("session_id", session_id), tenant)
        return self._journals[session_id]

    def sessions(self) -> list[tuple[str, str]]:
        return [(session, tenant) for session, (tenant, records, notes) in self.view.sessions.items() if records or notes]

    def note(self, session_id: str, key: str, value: Any) -> None:
        if self.full:
            raise JournalFault("the store does not answer, and too much waits for it")
        self.put("note", session_id, self.session(session_id).tenant, key, note_text(key, value))

    def notes(self, session_id: str) -> dict[str, Any]:
        _, _, notes = self.view.sessions.get(session_id, ("", {}, {}))
        return {key: json.loads(text) for key, text in notes.items()}

    def drop(self, session_id: str) -> None:
        journal = self._journals.pop(session_id, None)
        if journal is not None:
            journal.dropped = True
        self.put("drop", session_id, "")

    async def flushed(self) -> None:
        await self.reached(self.queued)

    async def close(self) -> None:
        self._commit()

    # -- how it writes

    @property
    def full(self) -> bool:
        """Too far behind for anything new: transitions and notes are refused too."""
        if self.away and len(self._queue) >= FULL:
            self.refused += 1
            return True
        return False

    def put(self, *op: Any) -> None:
        self.view.apply(op)
        self._queue.append(op)
        self.queued += 1
        if self._due is None:
            lag = self._rng.choice(LAGS_S)
            self._due = max(self._clock.now() + lag, self._stalled_until)
            if self._due <= self._clock.now():
                asyncio.get_running_loop().call_soon(self.tick)

    def tick(self) -> None:
        """Write what is due; who has waited too long is told that the store is away."""
        now = self._clock.now()
        if self._due is not None and now >= max(self._due, self._stalled_until):
            self._commit()
        if self._waiting and now - self._waiting[0][1] > PATIENCE_S:
            self.away = True
            waiting, self._waiting = self._waiting, []
            for _, _, future in waiting:
                if not future.done():
                    future.set_exception(JournalFault("the store does not answer"))

    def stall(self, until: float) -> None:
        self._stalled_until = until

    async def reached(self, position: int) -> None:
        if position <= self.committed:
            return
        if self.away:
            raise JournalFault("the store does not answer")
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((position, self._clock.now(), future))
        await future

    def _commit(self) -> None:
        for op in self._queue:
            self.disk.apply(op)
        self._queue.clear()
        self.committed, self.away, self._due = self.queued, False, None
        left = []
        for entry in self._waiting:
            if entry[0] > self.committed:
                left.append(entry)
            elif not entry[2].done():
                entry[2].set_result(None)
        self._waiting = left

    # -- how it dies

    def killed(self, clock: Clock) -> "LossyStore":
        """The store as the next process finds it: a part of the queue, in order, had been written."""
        kept = self._rng.randint(0, len(self._queue))
        for op in self._queue[:kept]:
            self.disk.apply(op)
        after = LossyStore(clock, self._rng, self.disk)
        after.lost = len(self._queue) - kept
        self.disk = _Disk()  # what the dead process may still do reaches nobody
        return after
