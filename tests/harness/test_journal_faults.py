"""A store that refuses, stalls or dies: everyone who waits is told, nothing hangs, nothing loses its place in the order."""
import asyncio
import sqlite3
import threading

import pytest

from harness.errors import JournalFault
from harness.journal.backend import Gone
from harness.journal.redis import RedisStore
from harness.journal.sqlite import SqliteStore
from harness.journal.testing import RedisServer
from harness.journal.writer import DurableStore
from journal_stores import record
from venus_edge.errors import ConfigError
from venus_edge.metrics import METRICS


class Backend:
    """A backend in memory whose `write` can be held up or made to fail."""

    name, rest_s = "double", None

    def __init__(self):
        self.free, self.error, self.rows, self.closed = threading.Event(), None, [], False
        self.free.set()

    def open(self):
        return []

    def write(self, ops):
        self.free.wait()
        if self.error is not None:
            raise self.error
        self.rows += [(op.journal.id, op.key, op.n) for op in ops if op.what == "record"]

    def records(self, journal):
        return []

    def notes(self, journal):
        return []

    def close(self):
        self.closed = True


async def eventually(condition, within_s=5.0):
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.005)


async def test_a_refusing_store_is_told_and_heals_in_order():
    """While it refuses: flush fails, new tasks are refused, transitions queue; afterwards all is written, in order, once."""
    backend = Backend()
    store = DurableStore(backend)
    await store.open()
    journal = store.session("s")
    journal.append(record(1, machine="accept"))
    await journal.flushed()
    backend.error = OSError(28, "No space left on device")
    journal.append(record(2))
    faults = METRICS.get("venus_harness_journal_faults_total")
    async with asyncio.timeout(5):
        results = await asyncio.gather(*(journal.flushed() for _ in range(20)), return_exceptions=True)
    assert all(isinstance(e, JournalFault) and e.retryable and "No space left" in e.message for e in results)
    assert METRICS.get("venus_harness_journal_faults_total") == faults + 1
    refused = METRICS.get("venus_harness_journal_refused_total")
    with pytest.raises(JournalFault):
        journal.append(record(3, "task-2", "accept"))
    assert METRICS.get("venus_harness_journal_refused_total") == refused + 1
    with pytest.raises(JournalFault):
        list(journal.records())
    with pytest.raises(JournalFault):
        await journal.flushed()
    journal.append(record(3))
    assert not journal.durable() and journal.durable(1)
    backend.error = None
    await eventually(journal.durable)
    journal.append(record(4, "task-2", "accept"))
    await journal.flushed()
    assert [n for _, _, n in backend.rows] == [1, 2, 3, 4]
    await store.close()
    assert backend.closed


async def test_a_single_refusal_is_not_noticed():
    """One failed transaction is tried again before anyone is told."""
    backend = Backend()
    store = DurableStore(backend)
    await store.open()
    backend.error = OSError(5, "hiccup")
    store.session("s").append(record(1, machine="accept"))
    waiter = asyncio.create_task(store.session("s").flushed())
    await asyncio.sleep(0.03)
    backend.error = None
    await waiter
    assert backend.rows == [("s", "task-1", 1)]
    await store.close()


async def test_a_store_that_answers_nothing_keeps_nobody_waiting():
    """A write that neither succeeds nor fails: a fault within the patience, and recovery once it went through."""
    backend = Backend()
    store = DurableStore(backend, patience_s=0.1)
    await store.open()
    journal = store.session("s")
    backend.free.clear()
    journal.append(record(1, machine="accept"))
    with pytest.raises(JournalFault, match="no answer for 0.1 s"):
        await asyncio.wait_for(journal.flushed(), 2)
    with pytest.raises(JournalFault):
        journal.append(record(2, "task-2", "accept"))
    journal.append(record(2))
    backend.free.set()
    await eventually(journal.durable)
    journal.append(record(3, "task-2", "accept"))
    await journal.flushed()
    assert [n for _, _, n in backend.rows] == [1, 2, 3]
    await store.close()


async def test_the_queue_is_bounded_and_new_tasks_go_first():
    """Behind a stalled store: accepted up to the limit, transitions up to a multiple, then refused; the ledger's drop never is."""
    backend = Backend()
    store = DurableStore(backend, queue_limit=100)
    await store.open()
    backend.free.clear()
    journal = store.session("s")
    taken = 0
    with pytest.raises(JournalFault, match="wait for the store"):
        for taken in range(1000):
            journal.append(record(taken + 1, machine="accept"))
    assert 90 <= taken <= 100
    with pytest.raises(JournalFault):
        for taken in range(taken, 1000):
            journal.append(record(taken + 1))
    assert 390 <= taken <= 400
    with pytest.raises(JournalFault):
        store.note("s", "k", 1)
    journal.forget("task-1")
    backend.free.set()
    await journal.flushed()
    assert [n for _, _, n in backend.rows] == list(range(1, taken + 1))
    await store.close()


@pytest.mark.parametrize("error", [Gone("another process has taken over this journal"), SystemExit(3)])
async def test_a_dead_writer_is_told_to_everyone(error):
    """The thread is gone: who waits, who asks later and who appends each get a JournalFault; closing says what is lost."""
    backend = Backend()
    store = DurableStore(backend)
    await store.open()
    journal = store.session("s")
    backend.error = error
    journal.append(record(1))
    with pytest.raises(JournalFault, match="taken over|writer ended"):
        await asyncio.wait_for(journal.flushed(), 2)
    await eventually(lambda: backend.closed)
    for attempt in (lambda: journal.append(record(2)), journal.records, lambda: store.notes("s"), lambda: store.note("s", "k", 1)):
        with pytest.raises(JournalFault):
            attempt()
    with pytest.raises(JournalFault):
        await journal.flushed()
    store.drop("s")
    with pytest.raises(JournalFault, match="2 operations unwritten"):
        await store.close()


async def test_closing_a_refusing_store_is_bounded():
    """It doesn't wait for a store that may never come back, and names how much is lost."""
    backend = Backend()
    store = DurableStore(backend)
    await store.open()
    backend.error = OSError(28, "No space left on device")
    store.session("s").append(record(1))
    waiter = asyncio.create_task(store.session("s").flushed())
    await asyncio.sleep(0.02)
    with pytest.raises(JournalFault, match="2 operations unwritten .*No space left"):
        await asyncio.wait_for(store.close(), 2)
    with pytest.raises(JournalFault):
        await waiter
    with pytest.raises(JournalFault):
        store.session("s").append(record(2))
    await store.close()


async def test_a_store_that_is_not_open_takes_nothing():
    """Before `open`, and a second `open`."""
    store = DurableStore(Backend())
    with pytest.raises(JournalFault, match="not open"):
        store.session("s").append(record(1))
    await store.open()
    with pytest.raises(ConfigError, match="once"):
        await store.open()
    await store.close()


async def test_closing_drains():
    """What was appended in the last moment before `close` is written."""
    backend = Backend()
    store = DurableStore(backend)
    await store.open()
    for n in range(1, 10_000):
        store.session("s").append(record(n))
    await store.close()
    assert [n for _, _, n in backend.rows] == list(range(1, 10_000))


async def test_a_locked_sqlite_file_is_a_fault_and_heals(tmp_path):
    """A foreign program holds the database's write lock: JournalFault within seconds; all is written once it lets go."""
    store = SqliteStore(tmp_path / "j.sqlite")
    await store.open()
    journal = store.session("s")
    journal.append(record(1))
    await journal.flushed()
    other = sqlite3.connect(tmp_path / "j.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for n in range(2, 6):
        journal.append(record(n))
    with pytest.raises(JournalFault, match="SQLITE_BUSY"):
        await asyncio.wait_for(journal.flushed(), 5)
    other.execute("ROLLBACK")
    other.close()
    await eventually(journal.durable)
    assert [r.n for r in journal.records()] == [1, 2, 3, 4, 5]
    await store.close()


async def test_a_paused_redis_server_is_a_fault_and_heals():
    """It holds its connections and answers nothing; when it goes on, what it may have seen already is not there twice."""
    with RedisServer() as server:
        store = RedisStore(server.url, patience_s=0.3)
        await store.open()
        journal = store.session("s")
        journal.append(record(1))
        await journal.flushed()
        server.pause()
        for n in range(2, 6):
            journal.append(record(n, f"task-{n}"))
        with pytest.raises(JournalFault, match="no answer"):
            await asyncio.wait_for(journal.flushed(), 5)
        server.resume()
        await eventually(journal.durable)
        assert [r.n for r in journal.records()] == [1, 2, 3, 4, 5]
        await store.close()


async def test_a_redis_server_that_comes_back_with_its_log_heals():
    """Killed and started again with what it had confirmed: the queue follows, in order."""
    with RedisServer(persistent=True) as server:
        store = RedisStore(server.url)
        await store.open()
        journal = store.session("s")
        journal.append(record(1))
        await journal.flushed()
        server.kill()
        journal.append(record(2))
        with pytest.raises(JournalFault, match="ConnectionError"):
            await asyncio.wait_for(journal.flushed(), 5)
        server.start()
        await eventually(journal.durable)
        assert [r.n for r in journal.records()] == [1, 2]
        await store.close()


async def test_a_redis_server_that_lost_its_records_is_the_end_of_the_store():
    """Without persistence a restarted server is empty: what was confirmed is gone, and a journal with a hole would lie."""
    with RedisServer() as server:
        store = RedisStore(server.url)
        await store.open()
        store.session("s").append(record(1))
        await store.flushed()
        server.kill()
        server.start()
        store.session("s").append(record(2))
        with pytest.raises(JournalFault, match="lost its records"):
            await asyncio.wait_for(store.flushed(), 5)
        with pytest.raises(JournalFault):
            await store.close()
