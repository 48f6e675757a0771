"""Many timers on an injected clock, with one asyncio task for all of them and none while nothing is due.

Two tasks for each running job (its work and a watch) would double the cost of a job; here a timer is a heap entry.
"""
import asyncio
import heapq
import itertools
from typing import Any, Callable

from venus_edge.clock import Clock

COMPACT_ABOVE = 64
"""Cancelled entries stay in the heap until they are due, or until they are more than half of a heap larger than this."""
EARLY_S = 1e-9
"""A sleep may end this much early by rounding."""


class Timer:
    """One call to come. `cancel()` is harmless at any time."""

    __slots__ = ("when", "_call", "_args", "_owner")

    def __init__(self, owner: "Timers", when: float, call: Callable[..., None], args: tuple):
        self.when, self._call, self._args, self._owner = when, call, args, owner

    def cancel(self) -> None:
        if self._call is not None:
            self._call, self._args = None, ()
            self._owner._cancelled()


class Timers:
    """`at(when, call, *args)`: call on the event loop once `clock.now()` is `when` (seconds)."""

    def __init__(self, clock: Clock):
        self._clock = clock
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._live = 0
        self._sleeper: asyncio.Task | None = None
        self._wakes_at = 0.0

    def __len__(self) -> int:
        return self._live

    def at(self, when: float, call: Callable[..., None], *args: Any) -> Timer:
        timer = Timer(self, when, call, args)
        heapq.heappush(self._heap, (when, next(self._order), timer))
        self._live += 1
        if self._sleeper is None or when < self._wakes_at:
            self._sleep_until(self._heap[0][0])
        return timer

    def _cancelled(self) -> None:
        self._live -= 1
        if self._live == 0:
            self._heap.clear()
            self._rest()
        elif len(self._heap) > COMPACT_ABOVE and len(self._heap) > 2 * self._live:
            self._heap = [entry for entry in self._heap if entry[2]._call is not None]
            heapq.heapify(self._heap)

    def _rest(self) -> None:
        if self._sleeper is not None:
            self._sleeper.cancel()
            self._sleeper = None

    def _sleep_until(self, when: float) -> None:
        self._rest()
        self._wakes_at = when
        self._sleeper = asyncio.get_running_loop().create_task(self._sleep(when))

    async def _sleep(self, when: float) -> None:
        await self._clock.sleep(when - self._clock.now())
        self._sleeper = None  # what is called may set timers, and so start the next sleeper
        self._fire()

    def _fire(self) -> None:
        loop = asyncio.get_running_loop()
        while self._heap and (self._heap[0][2]._call is None or self._heap[0][0] <= self._clock.now() + EARLY_S):
            timer = heapq.heappop(self._heap)[2]
            if timer._call is None:
                continue
            call, args, timer._call, timer._args = timer._call, timer._args, None, ()
            self._live -= 1
            try:
                call(*args)
            except Exception as err:  # one caller's fault must not take the others' timers along
                loop.call_exception_handler({"message": "a timer's callback failed", "exception": err})
        if self._heap and self._sleeper is None:
            self._sleep_until(self._heap[0][0])
