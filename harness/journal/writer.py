"""The one thread that writes the journals of a durable store: group commit, bounded queue, and what happens when the store is away.

The event loop only appends to a queue. The thread takes all that is queued, gives it to the backend as one transaction, and
wakes the loop once per commit. A batch that the backend refuses stays where it is and is tried again for as long as the store is
open, so the order of a session's records never has a gap; after RETRIES in a row the store is *away*: who waits is told with a
JournalFault, new tasks are refused, transitions of accepted tasks are queued up to a bound, until a commit succeeds.
"""
import asyncio
import heapq
import itertools
import json
import logging
import queue
import threading
from typing import Any, Callable, NamedTuple

from harness.errors import Closed, JournalFault
from harness.journal import Record, checked_id, note_text, record_from, record_text
from harness.journal.backend import Backend, Gone, Op
from venus_edge.errors import ConfigError
from venus_edge.metrics import METRICS

log = logging.getLogger("harness.journal")
QUEUE_LIMIT = 10_000
"""Operations that may wait for the store before new tasks are refused; transitions and notes: HARD_FACTOR times as many."""
HARD_FACTOR = 4
MAX_BATCH = 4096
FIRST_RETRY_S = 0.01
MAX_RETRY_S = 0.5
RETRIES = 7
"""Refusals of one batch in a row, with pauses of 0.6 s together, until the store counts as away."""
PATIENCE_S = 3.0
"""How long waiters wait for a commit that neither succeeds nor fails."""
READ_S = 5.0
CLOSE_S = 5.0


class _Read(NamedTuple):
    ask: Callable[[], Any]
    answer: queue.SimpleQueue


class DurableJournal:
    """One session's journal. No thread, task or queue of its own: an idle one is this object."""

    __slots__ = ("_store", "id", "tenant", "number", "last", "known", "dropped")

    def __init__(self, store: "DurableStore", session_id: str, tenant: str, number: int, known: bool = False):
        self._store, self.id, self.tenant, self.number = store, session_id, tenant, number
        self.last = 0
        self.known = known
        """The store holds, or will hold, something of it."""
        self.dropped = False

    def append(self, record: Record) -> None:
        text = record_text(record)
        self._store._put(Op("record", self, record.task, record.n, text), new=record.machine == "accept")
        self.last = self._store._queued

    def forget(self, task_id: str) -> None:
        if self.known and not self.dropped:
            self._store._put(Op("forget", self, checked_id("task", task_id)), always=True)

    def records(self) -> list[Record]:
        if not self.known or self.dropped:
            return []
        backend = self._store._backend
        return [record_from(n, task, text) for n, task, text in self._store._read(lambda: backend.records(self))]

    def durable(self, n: int | None = None) -> bool:
        return (self.last if n is None else n) <= self._store._committed

    async def flushed(self, n: int | None = None) -> None:
        await self._store._reached(self.last if n is None else n)


class DurableStore:
    """The writer thread and what the event loop knows of it. `queue_limit`: operations that may wait before new tasks are refused."""

    def __init__(self, backend: Backend, *, queue_limit: int = QUEUE_LIMIT, patience_s: float = PATIENCE_S):
        self._backend, self._limit, self._patience_s = backend, queue_limit, patience_s
        self._journals: dict[str, DurableJournal] = {}
        self._numbers = itertools.count(1)
        self._queue: queue.SimpleQueue = queue.SimpleQueue()
        self._queued = 0
        """Operations ever queued: the position of the newest. Changed by the event loop only."""
        self._committed = 0
        """Position up to which everything is in the store. Changed by the writer only."""
        self._refused: tuple[int, str] | None = None
        """The position at which the store went away, and why: over as soon as `_committed` has moved on."""
        self._gone = "the store is not open"
        """Why nothing can be written any more (or yet)."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[tuple[int, int, asyncio.Future]] = []
        self._order = itertools.count()
        self._watch: asyncio.TimerHandle | None = None
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    # -- the store's life

    async def open(self) -> None:
        if self._loop is not None:
            raise ConfigError(f"journal {self._backend.name}: a store is opened once")
        self._loop = asyncio.get_running_loop()
        opened = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, args=(opened,), name="venus-journal", daemon=True)
        self._thread.start()
        try:
            left = await opened
        except Exception:
            self._thread.join()
            self._thread = None
            raise
        self._gone = ""
        self._journals = {session: DurableJournal(self, session, tenant, number, True) for number, session, tenant in left}
        self._numbers = itertools.count(1 + max((number for number, _, _ in left), default=0))

    async def close(self) -> None:
        if self._thread is None:
            return
        self._closing.set()
        self._queue.put(None)
        thread, self._thread = self._thread, None
        await asyncio.to_thread(thread.join, CLOSE_S)
        lost = self._queued - self._committed
        self._gone = self.away or "the store was closed"
        self._refuse()
        if self._watch is not None:
            self._watch.cancel()
        self._journals.clear()
        if lost:
            raise JournalFault(f"journal {self._backend.name}: closed with {lost} operations unwritten ({self._gone})")

    # -- sessions

    def session(self, session_id: str, tenant: str = "") -> DurableJournal:
        journal = self._journals.get(session_id)
        if journal is None:
            checked_id("session_id", session_id)
            journal = DurableJournal(self, session_id, checked_id("tenant", tenant, empty=True), next(self._numbers))
            self._journals[session_id] = journal
        elif tenant and not journal.tenant:  # a note may have come before the session was opened
            journal.tenant = checked_id("tenant", tenant)
            if journal.known:
                self._put(Op("session", journal), always=True)
        return journal

    def sessions(self) -> list[tuple[str, str]]:
        return [(journal.id, journal.tenant) for journal in self._journals.values() if journal.known]

    def note(self, session_id: str, key: str, value: Any) -> None:
        self._put(Op("note", self.session(session_id), key, 0, note_text(key, value)))

    def notes(self, session_id: str) -> dict[str, Any]:
        journal = self._journals.get(session_id)
        if journal is None or not journal.known:
            return {}
        return {key: json.loads(text) for key, text in self._read(lambda: self._backend.notes(journal))}

    def drop(self, session_id: str) -> None:
        journal = self._journals.pop(session_id, None)
        if journal is None:
            return
        if journal.known:
            self._put(Op("drop", journal), always=True)
        journal.dropped = True

    async def flushed(self) -> None:
        await self._reached(self._queued)

    @property
    def away(self) -> str:
        """Why the store can't be waited for now; "" while it can."""
        refused = self._refused
        return self._gone or (refused[1] if refused and refused[0] == self._committed else "")

    # -- event loop side

    def _put(self, op: Op, new: bool = False, always: bool = False) -> None:
        """`new`: may be refused while the store is away; `always`: takes no room that was not taken before, so it is never refused."""
        journal = op.journal
        if journal.dropped:
            raise Closed(f"session {journal.id}: its journal was dropped")
        if always and self._gone:
            return
        waiting = self._queued - self._committed
        if not always and (self._gone or (new and self.away) or waiting >= self._limit * (1 if new else HARD_FACTOR)):
            METRICS.add("venus_harness_journal_refused_total")
            raise JournalFault(f"journal {self._backend.name}: {self.away or f'{waiting} operations wait for the store'}")
        if not journal.known:
            journal.known = True
            self._queued += 1
            self._queue.put(Op("session", journal))
        self._queued += 1
        self._queue.put(op)

    async def _reached(self, position: int) -> None:
        if position <= self._committed:
            return
        if self.away:
            raise self._fault()
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (position, next(self._order), future))
        # The writer stores its position first and looks for waiters after: what it committed in between is seen here.
        if position <= self._committed:
            self._advance()
        if self._watch is None:
            self._look_again(self._committed)
        await future

    def _advance(self) -> None:
        """Wake who waited for what is in the store now."""
        while self._waiting and self._waiting[0][0] <= self._committed:
            future = heapq.heappop(self._waiting)[2]
            if not future.done():
                future.set_result(None)

    def _refuse(self) -> None:
        """Tell all who wait that the store is away, if it still is."""
        self._advance()
        if not self.away:
            return
        waiting, self._waiting = self._waiting, []
        for _, _, future in waiting:
            if not future.done():
                future.set_exception(self._fault())

    def _look_again(self, seen: int) -> None:
        # The loop's own timer: this bounds how long a real device or server may take, whatever clock the harness lives by.
        self._watch = self._loop.call_later(self._patience_s, self._stalled, seen)

    def _stalled(self, seen: int) -> None:
        self._watch = None
        if not self._waiting:
            return
        if self._committed == seen:
            self._went_away(seen, f"no answer for {self._patience_s:g} s")
            self._refuse()
        if self._waiting:
            self._look_again(self._committed)

    def _went_away(self, position: int, why: str) -> None:
        first, self._refused = not self.away, (position, why)
        if first:
            METRICS.add("venus_harness_journal_faults_total")
            log.error("journal %s: %s, %d operations wait", self._backend.name, why, self._queued - position)

    def _fault(self) -> JournalFault:
        return JournalFault(f"journal {self._backend.name}: {self.away}")

    def _read(self, ask: Callable[[], Any]) -> Any:
        """Have the writer ask the backend, after all that is queued; waits for it."""
        if self.away:
            raise self._fault()
        answer: queue.SimpleQueue = queue.SimpleQueue()
        self._queue.put(_Read(ask, answer))
        try:
            result = answer.get(timeout=READ_S)
        except queue.Empty:
            raise JournalFault(f"journal {self._backend.name}: not readable within {READ_S:g} s") from None
        if isinstance(result, Exception):
            raise JournalFault(f"journal {self._backend.name}: not readable ({_why(result)})") from result
        return result

    # -- writer thread

    def _run(self, opened: asyncio.Future) -> None:
        try:
            left = self._backend.open()
        except Exception as error:
            self._backend.close()
            self._call(_resolve, opened, None, error)
            return
        self._call(_resolve, opened, left, None)
        try:
            while self._step():
                pass
        except Gone as error:
            self._die(str(error))
        except BaseException as error:  # whatever it is: those who wait must be told
            self._die(f"the writer ended ({_why(error)})")
        finally:
            self._backend.close()
            while not self._queue.empty():
                item = self._queue.get()
                if isinstance(item, _Read):
                    item.answer.put(JournalFault("the store was closed"))

    def _step(self) -> bool:
        """One batch, and the reads behind it; False when the store is being closed and nothing is left."""
        try:
            item = self._queue.get(timeout=self._backend.rest_s)
        except queue.Empty:
            self._backend.rest()
            return True
        batch: list[Op] = []
        while isinstance(item, Op):
            batch.append(item)
            if len(batch) == MAX_BATCH:
                item = None
                break
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                item = None
                break
        if batch and not self._commit(batch):
            return False
        if isinstance(item, _Read):
            try:
                item.answer.put(item.ask())
            except Exception as error:
                item.answer.put(error)
        return not (self._closing.is_set() and self._queue.empty())

    def _commit(self, batch: list[Op]) -> bool:
        """Write the batch, however long that takes; False where the store is being closed and refuses."""
        delay = FIRST_RETRY_S
        for refusals in itertools.count(1):
            try:
                self._backend.write(batch)
                break
            except Gone:
                raise
            except Exception as error:
                METRICS.add("venus_harness_journal_refusals_total")
                if refusals >= RETRIES or self._closing.is_set():
                    self._went_away(self._committed, f"refused ({_why(error)})")
                    self._call(self._refuse)
                if self._closing.is_set():
                    return False
                self._closing.wait(delay)
                delay = min(2 * delay, MAX_RETRY_S)
        self._committed += len(batch)
        if self._refused:
            log.warning("journal %s: writes again", self._backend.name)
            self._refused = None
        METRICS.add("venus_harness_journal_commits_total")
        METRICS.add("venus_harness_journal_operations_total", len(batch))
        METRICS.peak("venus_harness_journal_batch_peak", len(batch))
        if self._waiting:
            self._call(self._advance)
        return True

    def _die(self, why: str) -> None:
        self._gone = why
        METRICS.add("venus_harness_journal_faults_total")
        log.error("journal %s: %s", self._backend.name, why)
        self._call(self._refuse)

    def _call(self, callback: Callable, *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:  # the loop was closed before the store: nobody waits any more
            pass


def _resolve(future: asyncio.Future, result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


def _why(error: BaseException) -> str:
    """What went wrong, without the words that a driver's message may quote."""
    name = getattr(error, "sqlite_errorname", "") or type(error).__name__
    reason = getattr(error, "strerror", None)
    return f"{name}: {reason}" if isinstance(reason, str) else name
