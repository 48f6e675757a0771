"""Weak points of scale, each measured as it was there: convoys, commits, what turns, tasks, sessions and readers leave behind (Peer 14, 21, 22).

Counts, bytes, virtual seconds and CPU time of this thread; no wall clock.
"""
import asyncio
import gc
import statistics
import threading
import time
import weakref

import pytest
from points_world import FIND, SPECS, Instant, accept, cpu, moment, traced

from harness import Evidence, Harness, HarnessSettings, Moment, SchedulerLimits, SkillBackend, SkillOutcome
from harness.capture import Audio, EvidenceRing, Picture
from harness.deliver.gate import RATE
from harness.journal.sqlite import SqliteStore
from harness.oral import spoken
from harness.testing import ListedCatalog, Script, scripted
from venus_edge.clock import SystemClock
from venus_edge.metrics import METRICS
from venus_edge.testing import VirtualClock

SMALL = HarnessSettings(history=8, remembered_keys=8)


def instant(clock, **options):
    catalog = ListedCatalog(*SPECS)
    return Harness(SkillBackend(catalog, Instant()), catalog, clock, **options)


class Staged(SkillBackend):
    """Each task is planned, executed and worded, 100 ms a stage."""

    def __init__(self, catalog, clock):
        super().__init__(catalog, None)
        self.clock, self.ends = clock, []

    async def execute(self, call, context):
        for _ in range(2):
            await self.clock.sleep(0.1)
        return SkillOutcome(True, text="Done.")

    async def oralize(self, task, outcome):
        await self.clock.sleep(0.1)
        self.ends.append(self.clock.now())
        return outcome.text


async def test_of_256_tasks_of_several_stages_the_first_tenth_is_done_in_a_tenth_of_the_time():
    """Peer 14, Scale 4, Scale 12: eight places, three stages: their first tenth came at 99 % of the time, for first stages all went first."""
    clock, catalog = VirtualClock(), ListedCatalog(*SPECS)
    backend = Staged(catalog, clock)
    harness = Harness(backend, catalog, clock, limits=SchedulerLimits(max_running=8, max_running_per_tenant=8, reserved_for_waiting=0))
    sessions = [harness.open_session(f"s{n}", settings=HarnessSettings(max_queued=64)) for n in range(8)]
    for n in range(256):
        accept(sessions[n % 8], 1, key=f"k{n}")
    await clock.advance(20)
    assert len(backend.ends) == 256
    assert backend.ends[25] <= 0.15 * backend.ends[-1] and abs(backend.ends[127] / backend.ends[-1] - 0.5) < 0.05
    assert abs(backend.ends[-1] - 256 / 8 * 0.3) < 0.35


async def test_the_median_of_a_thousand_sessions_is_half_of_the_time_and_not_all_of_it():
    """Scale 4, Scale 5: 1,000 sessions with one task each, 100 places (their median was the last: 12.8 of 12.9 s)."""
    clock, catalog = VirtualClock(), ListedCatalog(*SPECS)
    backend = Staged(catalog, clock)
    harness = Harness(backend, catalog, clock, limits=SchedulerLimits(max_running=100, max_running_per_tenant=100))
    for n in range(1000):
        accept(harness.open_session(f"s{n}"), 1)
    await clock.advance(6)
    assert len(backend.ends) == 1000 and statistics.median(backend.ends) <= 0.6 * backend.ends[-1]


async def test_no_commit_is_on_the_event_loop_and_tasks_share_them(tmp_path, monkeypatch):
    """Peer 21, Scale 7: 200 delegations on the durable journal: 0 of their 9 commits each on the loop, far fewer in all, one record a transition."""
    import sqlite3
    threads, connect = set(), sqlite3.connect

    def traced_connect(*args, **kwargs):
        db = connect(*args, **kwargs)
        db.set_trace_callback(lambda sql: threads.add(threading.get_ident()))
        return db
    monkeypatch.setattr(sqlite3, "connect", traced_connect)
    store = SqliteStore(str(tmp_path / "j"))
    harness = instant(SystemClock(), store=store, limits=SchedulerLimits(max_running=64))
    await harness.start()
    seen = []
    sessions = [harness.open_session(f"s{n}", observer=seen.append) for n in range(100)]
    before = METRICS.get("venus_harness_journal_commits_total"), METRICS.get("venus_harness_journal_operations_total")
    tasks = [(s, accept(s, k)) for k in (1, 2) for s in sessions]
    for session, task in tasks:
        await session.result(task)
    await store.flushed()
    commits, operations = (METRICS.get(f"venus_harness_journal_{name}_total") - was for name, was in zip(("commits", "operations"), before))
    records = sum(len(store.session(s.id).records()) for s in sessions)
    assert threads and threading.get_ident() not in threads
    assert records == len(seen) == 4 * 200 and operations == records + 100 and commits <= 200
    await harness.close()


async def turns(session, clock, count, first=1):
    """So many spoken turns: asked, answered, heard to the end. CPU microseconds of each."""
    spent = []
    for turn in range(first, first + count):
        begin = time.thread_time_ns()
        accept(session, turn, key=f"turn-{turn}")
        assert session.next_reply(moment(clock, turn)) is None  # it runs: what is said of that is noted
        for _ in range(8):
            await asyncio.sleep(0)
        reply = session.next_reply(moment(clock, turn))
        session.reply_started(reply.id, f"seg-{turn}")
        session.reply_speech(reply.id, f"seg-{turn}", [(reply.text, 24_000)])
        clock._now += 1.0  # without the rounds of the loop that `advance` makes: only this session is measured
        session.next_reply(moment(clock, turn, assistant_speaking=True))
        session.reply_finished(reply.id, heard=reply.text, unheard="", completed=True, confirmed=True)
        clock._now += 1.0
        assert session.next_reply(moment(clock, turn)) is None
        spent.append((time.thread_time_ns() - begin) / 1e3)
        if turn % 25 == 0:
            await clock.advance(120.0)  # the clock's own sleepers of cancelled timers go
    return spent


async def test_a_spoken_turn_leaves_nothing_and_the_thousandth_costs_what_the_first_did():
    """Peer 22, Scale 14, Scale 15: theirs kept 623 B of every turn, and a turn cost 4.7 times as much in the end."""
    clock = VirtualClock()
    session = instant(clock, settings=SMALL).open_session("a")
    await turns(session, clock, 100)
    with traced() as grown:
        await turns(session, clock, 250, 101)
        first = grown()
        await turns(session, clock, 400, 351)
        assert grown() - first < 400 * 62, (first, grown())  # a tenth; it is the interpreter warming up, and ends at 0.4 B a turn
    await turns(session, clock, 700, 751)
    other, young, old = instant(clock, settings=SMALL).open_session("b"), [], []
    await turns(other, clock, 20)
    for block in range(8):  # in turn, so that a busy machine is busy for both
        young += await turns(other, clock, 25, 21 + 25 * block)
        old += await turns(session, clock, 25, 1451 + 25 * block)
    assert statistics.median(old) < 1.5 * statistics.median(young), (statistics.median(old), statistics.median(young))
    assert len(session.status()) == 8


async def test_a_task_that_ended_keeps_none_of_its_media():
    """Peer 22, Scale 16: twelve seconds of sound and twelve frames each (theirs kept 1.12 MB until the session ended): 0 bytes stay."""
    clock = VirtualClock()
    world = scripted({"poi.find": [Script("Two."), Script(error=KeyError()), Script("No.", ok=False, code="not_found"), Script("Two.", 500)]},
                     specs=[FIND], clock=clock, settings=HarnessSettings(history=8, remembered_keys=8))
    session, ring, buffers = world.session, EvidenceRing(), []

    def snapshot(n):
        for k in range(12):
            at = n * 12 + k
            buffers.append(bytearray(b"s" * 32_000))
            ring.received(Audio(at * RATE, buffers[-1], at))
            ring.received(Picture(at * RATE, bytes(60_000), "image/jpeg", at))
            ring.consumed((at + 1) * RATE, at)
        return ring_again(n)

    def ring_again(n):
        pos = (n + 1) * 12 * RATE
        return Evidence.freeze(pos, n * 12 + 11, media=ring.freeze(pos, n * 12 + 11, 12.0))
    with traced() as grown:
        for n in range(8):
            evidence = snapshot(n)
            task = accept(session, n + 1, evidence=evidence, key=f"k{n}", repair="update" if n == 5 else "new")
            assert accept(session, n + 1, evidence=ring_again(n), key=f"k{n}") == task  # asked twice: the second snapshot goes at once
            await clock.advance(0.5)
            held = sum(s.holders for s in ring._audio + ring._frames)
            if n >= 3:
                session.cancel(task)
            await clock.advance(3)
            assert not session.ledger.get(task).live and sum(s.holders for s in ring._audio + ring._frames) == 0
            assert held == (24 if n >= 3 else 0)
            with pytest.raises(ValueError):
                bytes(evidence.media[0].view)
        ring.close()
        assert session.ledger.live() == [] and not any(map(any, buffers)), "what was ours is zeroed"
        buffers.clear()
        del evidence
        assert grown() < 20_000 * 8, grown()


async def test_a_closed_session_leaves_no_byte_no_task_no_thread_and_no_file():
    """Peer 22, Scale 13, Case 11: open, one task heard, close, again and again (theirs kept 2.4 kB of each): nothing grows."""
    clock = VirtualClock()
    harness = instant(clock, settings=SMALL)

    async def cycle(count, at):
        for n in range(count):
            session = harness.open_session(f"s{at + n}", tenant=f"t{n % 7}")
            await turns(session, clock, 1)
            await harness.close(session.id)
        await clock.advance(120.0)
        return weakref.ref(session)
    await cycle(40, 0)
    threads = threading.active_count()
    with traced() as grown:
        gone = await cycle(100, 100)
        first = grown()
        await cycle(200, 200)
        assert grown() - first < 40_000, (first, grown())  # of theirs 478,000; what is left are warm-ups of the interpreter
    gc.collect()
    assert gone() is None and harness.sessions() == [] and threading.active_count() == threads
    assert asyncio.all_tasks() == {asyncio.current_task()} and harness._shared.scheduler.snapshot().tenants == {}


async def test_closed_sessions_leave_nothing_in_a_durable_store(tmp_path):
    """Peer 22, Case 11: 100 sessions on SQLite: no row, no journal object, and the process's memory of them is gone."""
    store = SqliteStore(str(tmp_path / "j"))
    harness = instant(SystemClock(), store=store)
    await harness.start()

    async def cycle(count, at):
        for n in range(count):
            session = harness.open_session(f"s{at + n}")
            await session.result(accept(session, 1))
            await harness.close(session.id)
        await store.flushed()
    await cycle(40, 0)
    with traced() as grown:
        await cycle(80, 40)
        first = grown()
        await cycle(150, 120)
        assert grown() - first < 40_000, (first, grown())  # of theirs 358,000; what comes and goes are the loop's cancelled timers
    assert store.sessions() == [] and store._journals == {}
    await harness.close()


async def test_readers_and_waiters_that_went_away_are_forgotten():
    """Peer 22: a thousand clients look at a session for a moment and leave without a word: none of them is kept, nor fed."""
    world = scripted({"poi.find": Script("Two.", 500)}, specs=[FIND])
    session = world.session
    task = accept(session, 1)
    await world.clock.advance(0.1)
    with traced() as grown:
        for n in range(300):
            waiting = asyncio.ensure_future(session.result(task))
            stream = session.events()
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait({waiting})
        del stream, waiting
        accept(session, 2)
        await world.clock.advance(0.1)
        assert grown() < 300 * 100, grown()
    assert not session._watchers._ends and not session._watchers._streams
    kept = session.events()
    accept(session, 3)
    assert (await anext(kept)).dst == "queued"


async def test_an_idle_session_costs_a_few_kilobytes():
    """Scale 1, Scale 2: 500 idle sessions: at most 4 kB each (theirs 8 to 10), and status copies its own tasks only."""
    clock = VirtualClock()
    harness = instant(clock, max_sessions=600)
    with traced() as grown:
        sessions = [harness.open_session(f"s{n}") for n in range(500)]
        each = grown() / 500
    accept(sessions[0], 1)
    assert each <= 4_000 and [len(s.status()) for s in sessions[:3]] == [1, 0, 0]


async def test_a_minute_of_media_is_held_once():
    """Scale 8: 60 s of sound and a 60 KB frame a second: the ring holds what it was handed (4.8 MB), and a snapshot of it costs views alone."""
    ring = EvidenceRing()
    with traced() as grown:
        for n in range(90):
            ring.received(Audio(n * RATE, bytearray(32_000), n))
            ring.received(Picture(n * RATE, bytes(60_000), "image/jpeg", n))
            ring.consumed((n + 1) * RATE, n)
        held = grown()
        snapshots = [ring.freeze(90 * RATE, 89, 12.0) for _ in range(20)]
        shared = grown() - held
    assert ring.nbytes <= 61 * 32_000 + 48 * 60_000 and held <= ring.nbytes + 100_000
    assert shared <= 20 * 24 * 500 and all(len(s.items) == 24 for s in snapshots)


async def test_asking_for_a_reply_costs_microseconds_whatever_is_remembered():
    """Scale 9, Scale 10, Scale 11: the probe of every unit, with 256 tasks remembered: theirs cost 0.41 ms a chunk for the loudness alone."""
    clock = VirtualClock()
    session = instant(clock).open_session("a")
    await turns(session, clock, 300)
    now = moment(clock, 300)

    def probes():
        for n in range(500):
            session.next_reply(Moment(now.pos + n * 640, n % 50 < 10, False, False, 300))
    assert cpu(probes) / 500 < 100e-6
    assert len(session.status()) == 256


def test_20_kb_of_nested_tokens_are_cleaned_in_a_moment():
    """Peer 5, Odd 17: 2,000 levels of split tokens in 20 KB blocked the loop there for 0.21 s; here it is linear, in CPU time."""
    def nested(levels):
        return "a" + "<|tts_" * levels + "<|listen|>" + "bos|>" * levels + " done."
    assert len(nested(2000)) > 20_000
    small, large = (cpu(lambda: spoken(nested(levels), 600)) for levels in (1000, 4000))
    assert cpu(lambda: spoken(nested(2000), 600)) < 0.06 and large < 8 * small + 0.005
    assert spoken(nested(2000), 600) == "a done."


async def test_at_two_per_cent_more_than_it_can_do_the_wait_stays_bounded():
    """Case 34: half an hour of requests 2 % faster than they are worked off: the wait never passes the queue's own limit, nobody is forgotten."""
    world = scripted({"poi.find": Script("Two.", 1.0)}, specs=[FIND], settings=HarnessSettings(max_running=1, max_queued=8, history=64))
    session, clock, waits = world.session, world.clock, []
    session.observer = lambda t: waits.append(t.task.started_at - t.task.accepted_at) if (t.machine, t.dst) == ("execution", "running") else None
    for n in range(1836):
        accept(session, n + 1, key=f"k{n}")
        await clock.advance(1 / 1.02)
    await clock.advance(30)
    counts = session.ledger.counters()
    assert max(waits) <= 9.0 and statistics.median(waits[1500:]) <= statistics.median(waits[600:900]) + 1.0
    assert counts["accepted"] == 1836 == counts["execution.completed"] + counts.get("execution.failed", 0) + counts.get("execution.expired", 0)
    assert counts["execution.completed"] >= 1780 and counts["live"] == 0
