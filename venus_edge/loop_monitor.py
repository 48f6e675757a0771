"""Measures how long the event loop was blocked: a 20 ms heartbeat whose lateness is the block. Costs about 0.1 % of a core."""
import asyncio
import time

from venus_edge.metrics import METRICS

PERIOD_S = 0.02


async def watch(name: str, trace=None, report_ms: float = 100.0) -> None:
    """Run for ever; keeps `venus_<name>_loop_block_max_ms` and records a trace event for each block above `report_ms`.

    Uses the thread's CPU clock too: a process that merely waited for a core isn't blocked by its own code,
    so both figures are kept (`..._max_ms` wall, `..._cpu_max_ms` own work).
    """
    wall, cpu = time.monotonic(), time.thread_time()
    while True:
        await asyncio.sleep(PERIOD_S)
        now, now_cpu = time.monotonic(), time.thread_time()
        late_ms = max(0.0, (now - wall - PERIOD_S) * 1e3)
        cpu_ms = (now_cpu - cpu) * 1e3
        METRICS.peak(f"venus_{name}_loop_block_max_ms", late_ms)
        METRICS.peak(f"venus_{name}_loop_block_cpu_max_ms", min(late_ms, cpu_ms))
        if late_ms > report_ms and trace is not None:
            trace.event("loop.block", late_ms=round(late_ms, 1), cpu_ms=round(cpu_ms, 1))
        wall, cpu = now, now_cpu
