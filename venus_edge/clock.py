"""Time, injected: logic asks a Clock and never the operating system."""
import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Monotonic seconds and a sleep. Wall time exists only for what is shown or spoken to people."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...

    def wall(self) -> float:
        """Seconds since the epoch, for people only."""
        ...


class SystemClock:
    """CLOCK_MONOTONIC: one time base for every process of one machine."""

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))

    def wall(self) -> float:
        return time.time()
