"""Who watches a session's transitions: streams with a bounded backlog, and waiters for the end of one task.

Whoever stops reading or waiting is forgotten, also without a word: nothing is kept for a reader that is gone.
"""
import asyncio
import weakref
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
        """Stop watching; what was not read is gone."""
        self.closed = True
        self.waiting.clear()
        self._watchers.leave(self)
        self.changed.set()


class Watchers:
    """All watchers of one session; costs nothing while there is none."""

    __slots__ = ("_streams", "_ends", "_over")

    def __init__(self):
        self._streams: weakref.WeakSet[_Stream] | None = None
        self._ends: dict[str, set[asyncio.Future]] | None = None
        self._over = False

    def stream(self) -> _Stream:
        """A reader of what comes from now on; after the session's end, of nothing."""
        stream = _Stream(self)
        if self._over:
            stream.closed = True
            return stream
        self._streams = self._streams if self._streams is not None else weakref.WeakSet()
        self._streams.add(stream)
        return stream

    def leave(self, stream: _Stream) -> None:
        if self._streams is not None:
            self._streams.discard(stream)

    async def end_of(self, task_id: str) -> Task:
        """The task when its work ends; raises Closed when the session ends first, or has."""
        if self._over:
            raise _ended()
        waiter = asyncio.get_running_loop().create_future()
        self._ends = self._ends if self._ends is not None else {}
        self._ends.setdefault(task_id, set()).add(waiter)
        try:
            return await waiter
        finally:
            if self._ends and task_id in self._ends:
                self._ends[task_id].discard(waiter)
                if not self._ends[task_id]:
                    del self._ends[task_id]

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
                    waiter.set_exception(_ended())
        self._streams, self._ends, self._over = None, None, True


def _ended() -> Closed:
    return Closed("the session ended before the task did")
