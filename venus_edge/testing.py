"""Test doubles that users of the product may use too: a virtual clock."""
import asyncio
import heapq
import itertools


class VirtualClock:
    """Time that moves only when told to. `await advance(s)` wakes every sleeper that is due, in order."""

    def __init__(self, start: float = 0.0, wall: float = 1_700_000_000.0):
        self._now, self._wall0, self._start = start, wall, start
        self._sleepers: list = []
        self._order = itertools.count()

    def now(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._wall0 + self._now - self._start

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        fut = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), fut))
        await fut

    async def advance(self, seconds: float) -> None:
        """Move time forward by `seconds`, letting everything that became runnable run at each wake-up."""
        end = self._now + seconds
        await self._settle()
        while self._sleepers and self._sleepers[0][0] <= end + 1e-12:
            due, _, fut = heapq.heappop(self._sleepers)
            self._now = max(self._now, due)
            if not fut.done():
                fut.set_result(None)
            await self._settle()
        self._now = end
        await self._settle()

    @staticmethod
    async def _settle() -> None:
        for _ in range(20):
            await asyncio.sleep(0)
