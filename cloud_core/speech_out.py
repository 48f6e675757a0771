"""Sends speech segments to the device as stamped streams, at most 1.5 s ahead of what the device has played.

One writer task, segments in order. The credit window keeps a flush cheap and bridges gaps of the link; what is queued here is bounded.
"""
import asyncio
import logging
from collections import OrderedDict
from typing import Awaitable, Callable, Protocol

import numpy as np

from cloud_core.front_end import SegmentChunk
from venus_edge.metrics import METRICS

log = logging.getLogger("venus.speech")

AHEAD_S = 1.5
FIRST_MS, NEXT_MS = 40, 100
MAX_QUEUED_S = 60.0
STALL_S = 5.0
"""A stream that takes no data for this long is given up: the segments behind it must not wait for ever."""
CLOSE_S = 0.5


class SpeechStream(Protocol):
    async def write(self, data: bytes) -> None: ...

    async def close(self) -> None: ...


class _Outgoing:
    def __init__(self, seg: str, rate: int):
        self.seg, self.rate = seg, rate
        self.parts: list[np.ndarray] = []
        self.waiting = 0
        self.sent = 0
        self.last = False
        self.aborted = False


class SpeechSender:
    """`open_stream(seg, rate)` gives the device's stream; `played(seg)` the confirmed samples of a segment."""

    def __init__(self, open_stream: Callable[[str, int], Awaitable[SpeechStream]], played: Callable[[str], int],
                 on_lost: Callable[[str], None] = lambda seg: None):
        self._open, self._played, self._on_lost = open_stream, played, on_lost
        self._queue: OrderedDict[str, _Outgoing] = OrderedDict()
        self._wake = asyncio.Event()

    def push(self, chunk: SegmentChunk) -> bool:
        """Queue more of a segment; False if the bound is reached (the segment is then cut and reported lost)."""
        out = self._queue.get(chunk.seg)
        if out is None:
            out = self._queue[chunk.seg] = _Outgoing(chunk.seg, chunk.rate)
        if out.aborted:
            return False
        if sum(o.waiting / o.rate for o in self._queue.values()) > MAX_QUEUED_S:
            METRICS.add("venus_cloud_speech_segments_dropped")
            self.abort(chunk.seg)
            self._on_lost(chunk.seg)
            return False
        if len(chunk.samples):
            out.parts.append(chunk.samples)
            out.waiting += len(chunk.samples)
        out.last = out.last or chunk.last
        self._wake.set()
        return True

    def abort(self, seg: str | None = None) -> list[str]:
        """Send nothing more of `seg` (None: of any); returns the segments that this cut."""
        cut = [s for s, o in self._queue.items() if (seg is None or s == seg) and not o.aborted]
        for s in cut:
            self._queue[s].aborted = True
            self._queue[s].parts.clear()
            self._queue[s].waiting = 0
        self._wake.set()
        return cut

    def progress(self) -> None:
        """The device reported: there may be credit again."""
        self._wake.set()

    async def run(self) -> None:
        """Write for ever; cancel to stop. A stream that breaks or stalls loses its own segment and no other."""
        while True:
            if not self._queue:
                self._wake.clear()
                await self._wake.wait()
                continue
            out, broken = next(iter(self._queue.values())), False
            try:
                if not out.aborted:
                    await self._send(out)
            except Exception as err:
                METRICS.add("venus_cloud_speech_streams_failed")
                log.warning("speech stream of %s failed: %s", out.seg, type(err).__name__)
                broken = not out.aborted
            self._queue.pop(out.seg, None)
            if broken:
                self._on_lost(out.seg)

    async def _send(self, out: _Outgoing) -> None:
        async with asyncio.timeout(STALL_S):
            stream = await self._open(out.seg, out.rate)
        try:
            while not out.aborted:
                if out.parts and out.sent - self._played(out.seg) <= AHEAD_S * out.rate:
                    async with asyncio.timeout(STALL_S):
                        await stream.write(self._next(out).astype("<i2").tobytes())
                elif out.last and not out.parts:
                    break
                else:
                    await self._wait()
        finally:  # also when the conversation ends in mid-sentence: the device must not wait for the rest
            async with asyncio.timeout(CLOSE_S):
                await stream.close()

    async def _wait(self) -> None:
        self._wake.clear()
        try:
            await asyncio.wait_for(self._wake.wait(), 0.25)
        except asyncio.TimeoutError:
            pass

    @staticmethod
    def _next(out: _Outgoing) -> np.ndarray:
        want = out.rate * (FIRST_MS if out.sent == 0 else NEXT_MS) // 1000
        taken, n = [], 0
        while out.parts and n < want:
            part = out.parts.pop(0)
            if n + len(part) > want:
                out.parts.insert(0, part[want - n:])
                part = part[:want - n]
            taken.append(part)
            n += len(part)
        out.waiting -= n
        out.sent += n
        if out.last and not out.parts and n % (out.rate // 50):
            taken.append(np.zeros(-n % (out.rate // 50), np.int16))
        return np.concatenate(taken)
