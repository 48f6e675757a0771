"""The contract of a store, the same for memory, SQLite and Redis (a real server)."""
import asyncio
import sys
import tracemalloc

import pytest

from harness.errors import BadRequest, Closed
from harness.journal import MAX_NOTE_BYTES, MAX_RECORD_BYTES, replay
from harness.journal.bench import measure
from harness.ledger import Ledger
from harness.task import Execution
from journal_stores import a_conversation, a_ledger, durable_place, place, record, redis_server  # noqa: F401 (fixtures)
from venus_edge.metrics import METRICS
from venus_edge.testing import VirtualClock


async def test_a_ledger_restored_after_a_restart_is_the_same(place):
    """What was flushed comes back as equal tasks, in order, with the session's tenant; the restored ledger goes on in the store."""
    store = place.store()
    await store.open()
    ledger = a_ledger(store.session("s 1/é", "acme"))
    _, second = a_conversation(ledger)
    await ledger.journal.flushed()
    tasks = ledger.tasks()
    await store.close()

    again = place.store()
    await again.open()
    assert again.sessions() == [("s 1/é", "acme")]
    restored = Ledger.restore(again.session("s 1/é"), VirtualClock(1000.0))
    assert restored.tasks() == tasks
    restored.execute(second, Execution.FAILED, "internal")
    await restored.journal.flushed()
    assert replay(again.session("s 1/é"))[second].execution is Execution.FAILED
    numbers = [r.n for r in again.session("s 1/é").records()]
    assert numbers == list(range(1, len(numbers) + 1))
    await again.close()


async def test_flushed_means_durable(place):
    """`last` counts up; nothing flushed is not durable, and an earlier position is durable no later than a newer one."""
    store = place.store()
    await store.open()
    one, two = store.session("one"), store.session("two")
    assert (one.last, one.durable()) == (0, True)
    positions = []
    for n in range(1, 50):
        journal = (one, two)[n % 2]
        journal.append(record(n))
        positions.append((journal, journal.last))
        if n % 7 == 0:
            await journal.flushed(journal.last)
            assert journal.durable() and journal.durable(journal.last)
    await asyncio.gather(*(journal.flushed(at) for journal, at in reversed(positions)))
    assert all(journal.durable(at) for journal, at in positions)
    for journal in (one, two):
        mine = [at for j, at in positions if j is journal]
        assert mine == sorted(set(mine)) and journal.last == mine[-1]
    await store.close()


async def test_an_append_is_read_back_without_a_flush(place):
    """`records` tells what was appended a moment ago too, sorted by number, each as it was."""
    store = place.store()
    await store.open()
    rows = [record(1, "task-a", "accept", text="a\0b \ud800 \U0001f600 \"' 不", floats=[0.1, 1e300, -0.0], big=2 ** 70, none=None),
            record(2, "task-b"), record(3, "task-a"), record(10, "task-b"), record(9, "task-c:t/%")]
    for row in rows:
        store.session("s").append(row)
    assert list(store.session("s").records()) == sorted(rows, key=lambda r: r.n)
    assert list(store.session("other").records()) == []
    await store.close()


async def test_the_same_number_is_the_same_record(place):
    """A record appended again under its number doesn't make two."""
    store = place.store()
    await store.open()
    for _ in range(2):
        store.session("s").append(record(1))
        await store.flushed()
    assert len(list(store.session("s").records())) == 1
    await store.close()


async def test_forgetting_a_task_takes_its_records_only(place):
    """Of two sessions with tasks of the same id, one task of one goes; also where it was never in the store yet."""
    store = place.store()
    await store.open()
    for session in ("a", "b"):
        for n, task in enumerate(["t1", "t2", "t1"], 1):
            store.session(session).append(record(n, task))
    store.session("a").forget("t1")
    await store.flushed()
    store.session("b").forget("t2")
    store.session("b").forget("t9")
    store.session("idle").forget("t1")
    assert [r.task for r in store.session("a").records()] == ["t2"]
    assert [r.task for r in store.session("b").records()] == ["t1", "t1"]
    await store.close()


async def test_the_journal_forgets_with_the_ledger(place):
    """A session of hundreds of tasks leaves the records of its history only."""
    store = place.store()
    await store.open()
    ledger = a_ledger(store.session("s"), history=10)
    for n in range(300):
        task = ledger.accept(key=f"k{n}", capability="x.y", arguments={})
        ledger.execute(task.id, Execution.CANCELLED, "cancelled")
        ledger.deliver(task.id, "dropped", "cancelled")
    assert list(replay(store.session("s")).values()) == ledger.tasks()
    assert len(list(store.session("s").records())) == 30
    await store.close()


async def test_notes_last_write_wins_and_outlive_a_restart(place):
    """A note is a JSON value by key and session; None removes it."""
    store = place.store()
    await store.open()
    store.note("s", "memory", {"place": "港口"})
    store.note("s", "gone", 1)
    store.note("s", "memory", {"place": "port", "n": [1, 2.5, None]})
    await store.flushed()
    store.note("s", "gone", None)
    store.note("s", "mark", "seg-4")
    store.note("t", "memory", 5)
    assert store.notes("s") == {"memory": {"place": "port", "n": [1, 2.5, None]}, "mark": "seg-4"}
    await store.close()
    again = place.store()
    await again.open()
    assert again.notes("s") == {"memory": {"place": "port", "n": [1, 2.5, None]}, "mark": "seg-4"}
    assert again.notes("t") == {"memory": 5} and again.notes("unknown") == {}
    assert sorted(again.sessions()) == [("s", ""), ("t", "")]
    await again.close()


async def test_a_note_before_the_session_costs_it_no_tenant(place):
    """Whichever comes first, the tenant is known after a restart."""
    store = place.store()
    await store.open()
    store.note("s", "memory", 1)
    await store.flushed()
    store.session("s", "acme").append(record(1))
    assert store.sessions() == [("s", "acme")]
    await store.close()
    again = place.store()
    await again.open()
    assert again.sessions() == [("s", "acme")]
    await again.close()


async def test_a_dropped_session_leaves_nothing(place):
    """No record, note or name of it is left, in this run or the next; its journal takes nothing more; the id can be used anew."""
    store = place.store()
    await store.open()
    for session in ("s", "stays"):
        store.note(session, "memory", 1)
        store.session(session).append(record(1))
    await store.flushed()
    old = store.session("s")
    old.append(record(2, "task-2"))
    store.drop("s")
    store.drop("never was")
    with pytest.raises(Closed):
        old.append(record(3))
    assert store.sessions() == [("stays", "")] and list(old.records()) == []
    fresh = store.session("s", "other tenant")
    assert fresh is not old and list(fresh.records()) == [] and store.notes("s") == {}
    fresh.append(record(7))
    await store.flushed()
    assert [r.n for r in fresh.records()] == [7]
    store.drop("s")
    await store.close()
    again = place.store()
    await again.open()
    assert again.sessions() == [("stays", "")]
    assert list(again.session("s").records()) == [] and again.notes("s") == {}
    again.drop("stays")
    await again.close()


async def test_a_session_left_over_can_be_dropped_unopened(durable_place):
    """What a process that died left behind goes, without its journal having been asked for."""
    for expected in ([("s", "acme")], []):
        store = durable_place.store()
        await store.open()
        if expected:
            store.session("s", "acme").append(record(1))
            store.note("s", "k", 1)
        else:
            assert store.sessions() == [("s", "acme")]
            store.drop("s")
        await store.close()
        again = durable_place.store()
        await again.open()
        assert again.sessions() == expected
        await again.close()


async def test_what_no_store_can_keep_is_refused_at_once(durable_place):
    """The error names the field, nothing of it is queued, and the store goes on."""
    store = durable_place.store()
    await store.open()
    journal = store.session("s")
    for changes in ({"x": object()}, {"x": float("nan")}, {"x": "y" * MAX_RECORD_BYTES}):
        with pytest.raises(BadRequest, match="changes|bytes"):
            journal.append(record(1, **changes))
    with pytest.raises(BadRequest, match="key"):
        store.note("s", "", 1)
    with pytest.raises(BadRequest, match="note k"):
        store.note("s", "k", "y" * MAX_NOTE_BYTES)
    for wrong in ("", "a\0b", "\ud800", "x" * 300, None):
        with pytest.raises(BadRequest, match="session_id"):
            store.session(wrong)
    with pytest.raises(BadRequest, match="task"):
        journal.append(record(1, "task-\ud800"))
    assert list(journal.records()) == [] and store.sessions() == []
    journal.append(record(1))
    await journal.flushed()
    await store.close()


async def test_an_idle_session_costs_less_than_a_kilobyte(place):
    """A thousand sessions that said nothing: no thread, no task, nothing in the store."""
    store = place.store()
    await store.open()
    tasks = len(asyncio.all_tasks())
    names = [f"session-{n:06}" for n in range(1000)]
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for name in names:
        store.session(name)
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert used / 1000 < 1024, f"{used / 1000:.0f} bytes a session"
    assert len(asyncio.all_tasks()) == tasks and store.sessions() == []
    for name in names:
        store.drop(name)
    await store.close()


async def test_many_sessions_share_group_commits(durable_place):
    """Two hundred sessions that append at once take a handful of transactions, and each sees its own records only."""
    store = durable_place.store()
    await store.open()
    commits = METRICS.get("venus_harness_journal_commits_total")
    journals = [store.session(f"s{n}") for n in range(200)]
    for n in range(1, 11):
        for journal in journals:
            journal.append(record(n, f"task-{journal.id}"))
    await asyncio.gather(*(journal.flushed() for journal in journals))
    assert METRICS.get("venus_harness_journal_commits_total") - commits < 400
    for journal in journals[::40]:
        assert [(r.n, r.task) for r in journal.records()] == [(n, f"task-{journal.id}") for n in range(1, 11)]
    await store.close()


async def test_ten_thousand_records_a_second(place):
    """Loose: the figure is some ten times that where nobody else works."""
    figures = await measure(place.store, 2000)
    assert figures["records_per_s"] > 10_000 * (1 if sys.gettrace() is None else 0.1), figures
    assert 0 <= figures["p50_ms"] <= figures["p95_ms"] < 100, figures
    after = place.store()
    await after.open()
    assert after.sessions() == []
    await after.close()
