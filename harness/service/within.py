"""Waiting with an end, on the injected clock."""
import asyncio
from typing import Awaitable, TypeVar

from venus_edge.clock import Clock

T = TypeVar("T")


async def within(clock: Clock, seconds: float, work: Awaitable[T]) -> T:
    """What `work` gives; raises TimeoutError and cancels it where that takes longer than `seconds`."""
    task, timer = asyncio.ensure_future(work), asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        timer.cancel()
        task.cancel()
