"""Who watches a session's transitions: streams with a bounded backlog, and waiters for the end of one task."""
import asyncio
from collections import deque
from typing import AsyncIterator

from harness.errors import Closed
from harness.ledger import Transition
from harness.task import EXECUTION_END, Task
from venus_edge.metrics import METRICS

BACKLOG = 1024


class _Stream:
    """Transitions for one reader. Iterating ends when the session closes."""

    def __init__(self, watchers: "Watchers"):
        self._watchers = watchers
        self.waiting: deque[Transition] = deque()
        self.changed = asyncio.Event()
        self.closed = False

    def put(self, transition: Transition) -> None:
        if len(self.waiting) >= BACKLOG:
            self.waiting.popleft()
            METRICS.add("venus_harness_events_dropped_total")
        self.waiting.append(transition)
        self.changed.set()

    def __aiter__(self) -> AsyncIterator[Transition]:
        return self

    async def __anext__(self) -> Transition:
        while not self.waiting:
            if self.closed:
                raise StopAsyncIteration
            self.changed.clear()
            await self.changed.wait()
        return self.waiting.popleft()

    async def aclose(self) -> None:
        """Stop watching."""
        self.closed = True
        self._watchers.leave(self)
        self.changed.set()


class Watchers:
    """All watchers of one session; costs nothing while there is none."""

    __slots__ = ("_streams", "_ends")

    def __init__(self):
        self._streams: list[_Stream] | None = None
        self._ends: dict[str, list[asyncio.Future]] | None = None

    def stream(self) -> _Stream:
        stream = _Stream(self)
        self._streams = [*(self._streams or ()), stream]
        return stream

    def leave(self, stream: _Stream) -> None:
        self._streams = [s for s in self._streams or () if s is not stream] or None

    async def end_of(self, task_id: str) -> Task:
        """The task when its work ends; raises Closed when the session closes first."""
        waiter = asyncio.get_running_loop().create_future()
        self._ends = self._ends if self._ends is not None else {}
        self._ends.setdefault(task_id, []).append(waiter)
        return await waiter

    def saw(self, transition: Transition) -> None:
        for stream in self._streams or ():
            stream.put(transition)
        if self._ends and transition.machine == "execution" and transition.dst in EXECUTION_END:
            for waiter in self._ends.pop(transition.task.id, ()):
                if not waiter.done():
                    waiter.set_result(transition.task)

    def close(self) -> None:
        for stream in self._streams or ():
            stream.closed = True
            stream.changed.set()
        for waiters in (self._ends or {}).values():
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(Closed("the session was closed before the task ended"))
        self._streams = self._ends = None
