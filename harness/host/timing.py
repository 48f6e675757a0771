"""Deadlines on an injected clock."""

import asyncio
from typing import Any, Coroutine

from venus_edge.clock import Clock


async def within(clock: Clock, seconds: float, work: Coroutine) -> Any:
    """The result of `work`; raises TimeoutError and cancels it when it takes longer than `seconds` on the clock."""
    task = asyncio.ensure_future(work)
    timer = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise TimeoutError
    finally:
        for part in (task, timer):
            if not part.done():
                part.cancel()
        await asyncio.gather(task, timer, return_exceptions=True)
