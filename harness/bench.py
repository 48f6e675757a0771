"""`venus bench harness`: what the delegate runtime itself costs, with an instant in-process skill and the durable journal on.

    p50_ms, p95_ms         from calling submit() to result() returning: accepted, run, and the result recorded durably
    full_p50_ms            the same where the journal also survives a power cut (synchronous=FULL); memory_p50_ms: with no journal at all
    loop_block_max_ms      longest time the event loop did not come round, under LOAD_PER_S submissions a second over LOAD_SESSIONS sessions
    first_tenth_share      of 256 tasks of 20 ms on 8 places: when the first tenth had finished, as a share of the time of all
    idle_session_kb        what one of 1,000 open sessions that nothing was asked of holds (tracemalloc); used_session_kb: after one round trip
    rss_mb_per_1000_sessions  growth of the process over 2,000 sessions, each opened, used and closed, after 500 to warm up
    journal_*              an append confirmed on its own, and records a second in bursts

Times are medians over RUNS runs; `loop_block_cpu_max_ms` is the part of the block that was this process's own work.
"""
import argparse
import asyncio
import gc
import json
import os
import statistics
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any, Awaitable, Callable

from harness.backend_skills import SkillBackend
from harness.deliver.gate import RATE, Moment
from harness.evidence import DelegateRequest
from harness.harness import Harness
from harness.journal import MemoryStore, Store
from harness.journal.bench import measure as measure_journal
from harness.journal.sqlite import SqliteStore
from harness.schedule.limits import SchedulerLimits
from harness.session import Session
from harness.settings import HarnessSettings
from harness.task import SkillCall, SkillOutcome, SkillSpec
from harness.testing import ListedCatalog
from venus_edge import bench
from venus_edge.clock import SystemClock
from venus_edge.errors import ConfigError

RUNS = 3
LOAD_PER_S, LOAD_SESSIONS = 200, 20
TASKS, TASK_S, PLACES = 256, 0.02, 8
IDLE_SESSIONS = 1000
CYCLES, WARM_UP = 2000, 500
SAMPLE_S = 0.001
BARS = {"p50_ms": 1.0, "p95_ms": 3.0, "loop_block_max_ms": 5.0, "first_tenth_share": 0.20, "idle_session_kb": 10.0, "rss_mb_per_1000_sessions": 1.0}
"""What the figures are to be at most."""


def run(argv: list[str]) -> int:
    """Latency, fairness, event-loop blocks and memory of the delegate runtime."""
    parser = argparse.ArgumentParser(
        prog="venus bench harness", description=run.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n  venus bench harness --json\n  venus bench harness --n 2000\n  venus bench harness --load-s 20\n"
               "exit status: 0; 2 bad input (the figures are judged by whoever reads them: machines are shared)")
    parser.add_argument("--n", type=int, default=500, help="round trips of each of the three runs, 20 to 100000 (default 500)")
    parser.add_argument("--load-s", type=float, default=5.0, help="seconds of load of each of the three runs, 0.5 to 600 (default 5)")
    parser.add_argument("--json", action="store_true", help="print one JSON line and nothing else")
    args = parser.parse_args(argv)
    if not 20 <= args.n <= 100_000:
        raise ConfigError(f"--n: {args.n} is not 20 to 100000")
    if not 0.5 <= args.load_s <= 600:
        raise ConfigError(f"--load-s: {args.load_s} is not 0.5 to 600")
    ratio = bench.ref_ratio()
    figures = figures_of(args.n, args.load_s, lambda what: None if args.json else print(what, "...", file=sys.stderr))
    ratio = max(ratio, bench.ref_ratio())
    if args.json:
        print(json.dumps(bench.line("harness", figures, ratio=ratio)))
    else:
        for name, value in figures.items():
            bar = f"   at most {BARS[name]:g}" if name in BARS else ""
            print(f"{name:28} {value}{bar}")
    return 0


def figures_of(n: int, load_s: float, say: Callable[[str], Any] = lambda what: None) -> dict[str, float]:
    """All figures, those with a bar first."""
    with tempfile.TemporaryDirectory(prefix="venus-bench-") as folder:
        return _figures(n, load_s, Stores(folder), say)


class Stores:
    """Makes SQLite stores, each in a file of its own in `folder`."""

    def __init__(self, folder: str):
        self._folder, self._count = folder, 0

    def __call__(self, synchronous: str = "NORMAL") -> Store:
        self._count += 1
        return SqliteStore(Path(self._folder, f"journal-{self._count}.sqlite"), synchronous)


def _figures(n: int, load_s: float, stores: Stores, say: Callable[[str], Any]) -> dict[str, float]:
    say("round trips")
    normal, full, memory = ([asyncio.run(with_harness(lambda h: round_trips(h, n), make())) for _ in range(RUNS)]
                            for make in (stores, lambda: stores("FULL"), MemoryStore))
    say("event loop under load")
    blocks = [asyncio.run(with_harness(lambda h: loop_block(h, load_s), stores())) for _ in range(RUNS)]
    say("fairness")
    shares = [asyncio.run(with_harness(first_tenth, stores(), takes_s=TASK_S, places=PLACES)) for _ in range(RUNS)]
    say("memory of closed sessions")
    growth = asyncio.run(with_harness(lambda h: growth_mb(h, CYCLES, WARM_UP), stores()))
    say("journal")
    journals = {level.lower(): asyncio.run(measure_journal(lambda: stores(level))) for level in ("NORMAL", "FULL")}
    say("memory of open sessions")
    idle, used = asyncio.run(with_harness(lambda h: session_kb(h, IDLE_SESSIONS), stores()))
    median = statistics.median
    return {
        "p50_ms": round(median(bench.percentile(times, 50) for times in normal), 3),
        "p95_ms": round(median(bench.percentile(times, 95) for times in normal), 3),
        "loop_block_max_ms": round(median(block for block, _, _ in blocks), 3), "first_tenth_share": round(median(shares), 3),
        "idle_session_kb": round(idle, 2), "rss_mb_per_1000_sessions": round(growth, 3),
        "full_p50_ms": round(median(bench.percentile(times, 50) for times in full), 3),
        "full_p95_ms": round(median(bench.percentile(times, 95) for times in full), 3),
        "memory_p50_ms": round(median(bench.percentile(times, 50) for times in memory), 3),
        "loop_block_cpu_max_ms": round(median(cpu for _, cpu, _ in blocks), 3), "load_done": sum(done for _, _, done in blocks),
        "used_session_kb": round(used, 2),
        **{f"journal_{level}_{name}": value for level, got in journals.items() for name, value in got.items()}, "n": n, "runs": RUNS}


async def with_harness(work: Callable[[Harness], Awaitable[Any]], store: Store, *, takes_s: float = 0.0, places: int = 64) -> Any:
    """What `work(harness)` returns, on a harness of its own with one skill that takes `takes_s` seconds and runs `places` times at once."""
    catalog = ListedCatalog(SkillSpec("bench.do", timeout_s=30.0))
    harness = Harness(SkillBackend(catalog, _Instant(takes_s)), catalog, SystemClock(), store=store, max_sessions=4096,
                      settings=HarnessSettings(max_running=min(8, places), max_queued=TASKS, queue_ttl_s=60.0),
                      limits=SchedulerLimits(max_running=places))
    await harness.start()
    try:
        return await work(harness)
    finally:
        await harness.close()


class _Instant:
    def __init__(self, takes_s: float):
        self._takes_s = takes_s

    async def run(self, call: SkillCall, on_progress) -> SkillOutcome:
        if self._takes_s:
            await asyncio.sleep(self._takes_s)
        return SkillOutcome(True, "done", "It is done.")


class _Talk:
    """One session and the user who asks and listens."""

    def __init__(self, harness: Harness, session: Session | None = None):
        self.harness, self.session, self.turn = harness, session or harness.open_session(), 0

    def request(self) -> DelegateRequest:
        self.turn += 1
        return DelegateRequest("", self.turn, self.turn * RATE, self.turn, "do it please", "bench.do", {"what": "it"})

    async def hear(self) -> None:
        """The outcome is told and heard, so that the session is as one that is used."""
        for _ in range(8):
            reply = self.session.next_reply(Moment(self.turn * RATE, False, False, False, self.turn))
            if reply is not None:
                self.session.reply_started(reply.id, f"seg-{self.turn}")
                self.session.reply_finished(reply.id, heard=reply.text, unheard="", completed=True, confirmed=True)
                return
            await self.session.settled()


async def round_trips(harness: Harness, n: int) -> list[float]:
    """Milliseconds of each of `n` round trips, one after the other."""
    talk, times = _Talk(harness), []
    for _ in range(n):
        request = talk.request()
        begin = time.perf_counter()
        task_id = await harness.submit(talk.session.id, request)
        await harness.result(talk.session.id, task_id)
        times.append((time.perf_counter() - begin) * 1e3)
        await talk.hear()
    return times


async def loop_block(harness: Harness, seconds: float) -> tuple[float, float, int]:
    """(longest block in ms, the part of it that was our own work, round trips done) under load."""
    talks = [_Talk(harness) for _ in range(LOAD_SESSIONS)]
    for talk in talks:  # what is made once is not made under load
        await _round_trip(talk)
    worst, own, done = 0.0, 0.0, 0

    async def watch() -> None:
        nonlocal worst, own
        loop = asyncio.get_running_loop()
        while True:
            due, cpu = loop.time() + SAMPLE_S, time.process_time()
            await asyncio.sleep(SAMPLE_S)
            late = (loop.time() - due) * 1e3
            worst, own = max(worst, late), max(own, min(late, (time.process_time() - cpu) * 1e3))

    async def trip(talk: _Talk) -> None:
        nonlocal done
        await _round_trip(talk)
        done += 1

    watching, running = asyncio.ensure_future(watch()), set()
    begin = time.perf_counter()
    for k in range(round(seconds * LOAD_PER_S)):
        running.add(task := asyncio.ensure_future(trip(talks[k % LOAD_SESSIONS])))
        task.add_done_callback(running.discard)
        await asyncio.sleep(max(0.0, begin + (k + 1) / LOAD_PER_S - time.perf_counter()))
    await asyncio.gather(*running)
    watching.cancel()
    return worst, own, done


async def _round_trip(talk: _Talk) -> None:
    task_id = await talk.harness.submit(talk.session.id, talk.request())
    await talk.harness.result(talk.session.id, task_id)
    await talk.hear()


async def first_tenth(harness: Harness) -> float:
    """Share of the whole time after which the first tenth of the tasks had finished."""
    talks = [_Talk(harness) for _ in range(16)]
    ends: list[float] = []

    async def one(talk: _Talk) -> None:
        task_id = await talk.harness.submit(talk.session.id, talk.request())
        task = await talk.harness.result(talk.session.id, task_id)
        assert task.execution == "completed", f"a task of the fairness run ended {task.execution}: {task.execution_reason}"
        ends.append(time.perf_counter())

    begin = time.perf_counter()
    await asyncio.gather(*(one(talks[k % len(talks)]) for k in range(TASKS)))
    ends.sort()
    return (ends[-(-TASKS // 10) - 1] - begin) / (ends[-1] - begin)


async def growth_mb(harness: Harness, cycles: int, warm_up: int) -> float:
    """Slope of the resident size in MB per 1,000 sessions that were opened, used and closed."""
    points = []
    for k in range(warm_up + cycles):
        talk = _Talk(harness)
        await _round_trip(talk)
        await harness.close(talk.session.id)
        if k >= warm_up and (k - warm_up) % max(1, cycles // 40) == 0:
            points.append((k, _rss_mb()))
    xs, ys = zip(*points)
    x0, y0 = statistics.fmean(xs), statistics.fmean(ys)
    return 1000 * sum((x - x0) * (y - y0) for x, y in points) / sum((x - x0) ** 2 for x in xs)


async def session_kb(harness: Harness, sessions: int) -> tuple[float, float]:
    """kB of one open session: that nothing was asked of, and after one round trip that was heard."""
    warm = _Talk(harness)
    await _round_trip(warm)
    await harness.close(warm.session.id)
    tracemalloc.start()
    try:
        before = _traced()
        opened = [harness.open_session(f"bench-{k}") for k in range(sessions)]
        await harness.store.flushed()
        idle = _traced() - before
        for session in opened:
            await _round_trip(_Talk(harness, session))
        used = _traced() - before
    finally:
        tracemalloc.stop()
    return idle / sessions / 1024, used / sessions / 1024


def _traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _rss_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

