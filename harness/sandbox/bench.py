"""`venus bench sandbox`: what a locked skill process costs, warm, reused, idle and being killed.

`p95_ms`, `p50_ms`: a typed call through SkillRunner in a fresh one-shot process that waited ready and locked. `reused_p50_ms`: a typed
call to a reused process, message out to answer in; `reused_call_p50_ms` the same through the whole SkillRunner. `kill_max_ms`: SIGKILL
sent to pidfd readable, over processes busy in every way. `idle_mb`: private memory of an idle locked process.
"""
import argparse
import asyncio
import json
import os
import select
import signal
import sys
import time

from harness.execute import pipe
from harness.execute.pool import Process
from harness.execute.registry import RegistrySpec
from harness.execute.runner import SkillRunner
from harness.execute.testing import MemoryBus
from harness.sandbox.bench_skills import WAYS
from harness.sandbox.policy import Sandbox, Trust
from harness.task import SkillCall
from venus_edge import bench
from venus_edge.errors import ConfigError

MOST = 5000
REST_S = 0.03
"""Between one-shot calls, so that the pool is full again as it is in a car: people don't speak thirty times a second."""
WARM_UP = 5


def run(argv: list[str]) -> int:
    """Cost of locked skill processes: a warm call, a reused one, idle memory, and the time from SIGKILL to death."""
    parser = argparse.ArgumentParser(
        prog="venus bench sandbox", description=run.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n  venus bench sandbox --json\n  venus bench sandbox --calls 50 --kills 100\n"
               "exit status: 0 measured; 1 a process was not dead in time or a call failed; 2 bad input")
    parser.add_argument("--calls", type=int, default=200, help=f"one-shot calls, 10 to {MOST} (default 200)")
    parser.add_argument("--kills", type=int, default=105, help=f"kills, {len(WAYS)} to {MOST} (default 105, of every kind as many)")
    parser.add_argument("--reused", type=int, default=2000, help=f"calls to a reused process, 100 to {100 * MOST} (default 2000)")
    parser.add_argument("--trust", choices=("signed", "untrusted"), default="untrusted", help="of the one-shot processes (default untrusted)")
    parser.add_argument("--json", action="store_true", help="print one JSON line and nothing else")
    args = parser.parse_args(argv)
    for name, low, high in (("calls", 10, MOST), ("kills", len(WAYS), MOST), ("reused", 100, 100 * MOST)):
        if not low <= getattr(args, name) <= high:
            raise ConfigError(f"--{name}: {getattr(args, name)} is not {low} to {high}")
    before = bench.ref_ratio()
    figures = asyncio.run(_measure(args.calls, args.kills, args.reused, Trust(args.trust)))
    line = bench.line("sandbox", figures, ratio=max(before, bench.ref_ratio()))
    if args.json:
        print(json.dumps(line))
    else:
        for name, value in line.items():
            print(f"{name:20} {', '.join(value) if isinstance(value, list) else value}")
    return 0 if figures["failed"] == 0 else 1


def _runner(trust: Trust) -> SkillRunner:
    return SkillRunner(RegistrySpec(("harness.sandbox.bench_skills:SKILLS",)), lambda call: MemoryBus(), sandbox=Sandbox(trust))


def _call(skill: str, **arguments) -> SkillCall:
    return SkillCall(skill, arguments, "bench", 1, "en", "driver", {}, 0.0)


async def _measure(calls: int, kills: int, reused: int, trust: Trust) -> dict:
    runner = _runner(trust)
    await runner.start()
    try:
        times, failed = [], 0
        for number in range(calls + WARM_UP):
            await asyncio.sleep(REST_S)
            _progress("calls", number, calls)
            began = time.perf_counter()
            outcome = await runner.run(_call("bench.call", celsius=22.5))
            times.append((time.perf_counter() - began) * 1e3)
            failed += not outcome.ok
        deaths = {}
        for number in range(kills):
            _progress("kills", number, kills)
            way = WAYS[number % len(WAYS)]
            deaths.setdefault(way, []).append(await _kill(runner, way))
        await asyncio.sleep(10 * REST_S)
        idle = [_private_mb(process.pid) for process in runner._pool._zygote.idle]
        layers = runner.layers
    finally:
        await runner.close()
    runner = _runner(Trust.BUILTIN)
    await runner.start()
    try:
        direct = await _round_trips(runner, reused)
        through = []
        for _ in range(min(reused, 500)):
            began = time.perf_counter()
            failed += not (await runner.run(_call("bench.call", celsius=22.5))).ok
            through.append((time.perf_counter() - began) * 1e3)
        await asyncio.sleep(REST_S)
        reused_mb = [_private_mb(process.pid) for process in runner._pool._zygote.idle]
    finally:
        await runner.close()
    times = times[WARM_UP:]
    every = [ms for found in deaths.values() for ms in found]
    return {
        "p95_ms": bench.percentile(times, 95), "p50_ms": bench.percentile(times, 50), "max_ms": round(max(times), 3),
        "kill_max_ms": round(max(every), 3), "kill_p50_ms": bench.percentile(every, 50), "kills": len(every),
        "kill_max_by_way": {way: round(max(found), 3) for way, found in deaths.items()},
        "idle_mb": round(max(idle), 2), "reused_idle_mb": round(max(reused_mb), 2),
        "reused_p50_ms": bench.percentile(direct, 50), "reused_p95_ms": bench.percentile(direct, 95),
        "reused_call_p50_ms": bench.percentile(through, 50), "calls": calls, "failed": failed, "user": os.geteuid(),
        "layers": [layer.name for layer in layers if layer.active],
        "without": [f"{layer.name}: {layer.why}" for layer in layers if not layer.active]}


async def _round_trips(runner: SkillRunner, count: int) -> list[float]:
    """Milliseconds of typed calls to one reused process, from the message sent to its answer."""
    pool = runner._pool
    process = await pool.take()
    message = {"t": "call", "skill": "bench.call", "arguments": {"celsius": 22.5}, "task": "bench", "version": 1, "lang": "en",
               "zone": "driver", "memory": {}, "timeout_s": 3.0}
    times = []
    for _ in range(count + WARM_UP):
        began = time.perf_counter()
        process.channel.send(pipe.encode(message))
        while (await process.channel.read())["t"] != "done":
            pass
        times.append((time.perf_counter() - began) * 1e3)
    await pool.kill(process)
    return times[WARM_UP:]


async def _kill(runner: SkillRunner, way: str) -> float:
    """Milliseconds from SIGKILL sent to the pidfd readable, of a process that is busy in that way."""
    pool = runner._pool
    process: Process = await pool.take()
    pool.refill()
    process.channel.send(pipe.encode({"t": "call", "skill": "bench.stay", "arguments": {"way": way}, "task": "bench", "version": 1,
                                      "lang": "en", "zone": "driver", "memory": {}, "timeout_s": 10.0}))
    for _ in range(2 if way in ("memory", "output") else 1):
        await process.channel.read()
    await asyncio.sleep(0.05)  # well into its work
    poll = select.poll()
    poll.register(process.handle, select.POLLIN)
    began = time.perf_counter()
    signal.pidfd_send_signal(process.handle, signal.SIGKILL)
    poll.poll(1000)
    took = (time.perf_counter() - began) * 1e3
    await pool.kill(process)
    return took


def _private_mb(pid: int) -> float:
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_")) / 1024


def _progress(what: str, number: int, of: int) -> None:
    if number and number % 100 == 0:
        print(f"{what}: {number} of {of}", file=sys.stderr)
