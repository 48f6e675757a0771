"""Virtual time for many short sessions: an event loop that knows when nothing is left to run, and clocks that disagree."""
import asyncio

from venus_edge.testing import VirtualClock


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts what is scheduled to run, so that "everything has run" is seen, not waited for."""

    scheduled = 0

    def call_soon(self, callback, *args, context=None):
        self.scheduled += 1
        return super().call_soon(callback, *args, context=context)


class WorldClock(VirtualClock):
    """True time. On a CountingLoop a step costs as many rounds as it needs, on any other the usual number."""

    async def settle(self) -> None:
        """Let everything run that can run now."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop, CountingLoop):
            await VirtualClock._settle()
            return
        while True:
            before = loop.scheduled
            await asyncio.sleep(0)
            if loop.scheduled - before <= 1:  # ourselves
                return

    async def _settle(self) -> None:
        await self.settle()


class ProcessClock:
    """The clock of one process: `mono_s` and `wall_s` ahead of true time."""

    def __init__(self, true: WorldClock, mono_s: float = 0.0, wall_s: float = 0.0):
        self._true, self.mono_s, self.wall_s = true, mono_s, wall_s

    def now(self) -> float:
        return self._true.now() + self.mono_s

    def wall(self) -> float:
        return self._true.wall() + self.wall_s

    async def sleep(self, seconds: float) -> None:
        await self._true.sleep(seconds)
