"""The timeline of a run: all traces of one directory in one order, every event with its device-sample position.

    merge(run_dir)            writes timeline.jsonl
    load(run_dir)             the events of a run, merged now if that has not happened
    Follow(run_dir, clock)    new events while the run goes on

A trace may still be written to: a last line without its newline is left alone, a broken line is skipped and counted.
"""
import asyncio
import bisect
import json
import os
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from venus_edge.clock import Clock
from venus_edge.metrics import METRICS

MIC_RATE = 16_000
"""Samples per second of every `pos`."""
TIMELINE = "timeline.jsonl"
POLL_S = 0.05
READ_MAX = 1 << 20
"""Bytes read from one trace in one poll: a burst is spread over polls instead of held in memory."""
_LATE_S = 10.0


@dataclass(frozen=True)
class Event:
    """One line of a trace. `t`: CLOCK_MONOTONIC seconds when it was recorded; `pos`: device sample, None before the merge
    for events that have none of their own; `estimated`: the position was worked out from `t`."""

    src: str
    t: float
    pos: int | None
    ev: str
    fields: dict[str, Any]
    estimated: bool = False

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.fields.get(name, default)

    def row(self) -> dict[str, Any]:
        head = {"src": self.src, "t": self.t, "pos": self.pos, "ev": self.ev}
        return head | ({"pos_estimated": True} if self.estimated else {}) | self.fields


def parse(line: str | bytes) -> Event | None:
    """One trace line as an event; None (and a count) when it is not one."""
    try:
        row = json.loads(line)
        pos = row.pop("pos", None)
        return Event(str(row.pop("src")), float(row.pop("t")), None if pos is None else int(pos), str(row.pop("ev")),
                     row, bool(row.pop("pos_estimated", False)))
    except (ValueError, KeyError, TypeError, AttributeError):
        METRICS.add("venus_simulators_trace_lines_broken_total")
        return None


class DeviceClock:
    """Maps CLOCK_MONOTONIC seconds to device samples, from the events of the device that carry both.

    An event is recorded at or after the moment its `pos` names (an onset is known only once it was judged), never before.
    So the latest position seen for a time, over 10 s to both sides, is the true one; the others were merely recorded late.
    """

    def __init__(self, pairs: Iterable[tuple[float, int]]):
        self._pairs = sorted(pairs)
        self._times = [t for t, _ in self._pairs]
        offsets = [pos - t * MIC_RATE for t, pos in self._pairs]
        self._offset = [max(offsets[self._index(t - _LATE_S):self._index(t + _LATE_S) + 1]) for t in self._times]

    def _index(self, t: float) -> int:
        return min(bisect.bisect_left(self._times, t), len(self._times) - 1)

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def pos(self, t: float) -> int:
        """The device sample at `t`; interpolated between known offsets, extrapolated at the microphone's rate."""
        if not self._pairs:
            return 0
        i = bisect.bisect_left(self._times, t)
        if i == 0 or i == len(self._times):
            offset = self._offset[0 if i == 0 else -1]
        else:
            (t0, t1), (a, b) = self._times[i - 1:i + 1], self._offset[i - 1:i + 1]
            offset = a + (b - a) * ((t - t0) / (t1 - t0) if t1 > t0 else 1.0)
        return max(0, round(offset + t * MIC_RATE))


def device_clock(events: Iterable[Event]) -> DeviceClock:
    """From the device's own `clock` events when it writes any, else from whatever it positioned."""
    known = [e for e in events if e.src == "device" and e.pos is not None]
    ticks = [e for e in known if e.ev == "clock"]
    return DeviceClock((e.t, e.pos) for e in (ticks or known))


def ordered(events: Iterable[Event]) -> list[Event]:
    """Every event with a position, by position; events at the same sample in the order they were recorded."""
    events = list(events)
    clock = device_clock(events)
    placed = [e if e.pos is not None else Event(e.src, e.t, clock.pos(e.t), e.ev, e.fields, True) for e in events]
    return sorted(placed, key=lambda e: (e.pos, e.t, e.src))


def read_traces(directory: Path | str) -> list[Event]:
    """The events of all `<src>.trace.jsonl` in `directory`, file by file; a half-written last line is left out."""
    events = []
    for path in sorted(Path(directory).glob("*.trace.jsonl")):
        data = path.read_bytes()
        for line in data[:data.rfind(b"\n") + 1].splitlines():
            event = parse(line) if line.strip() else None
            if event is not None:
                events.append(event)
    return events


def merge(run_dir: Path | str) -> list[Event]:
    """Write `timeline.jsonl` from the traces of `run_dir` (whole or not at all) and return its events."""
    events = ordered(read_traces(run_dir))
    target = Path(run_dir) / TIMELINE
    partial = target.with_name(f".{TIMELINE}.{os.getpid()}")
    partial.write_text("".join(json.dumps(e.row(), ensure_ascii=False) + "\n" for e in events), encoding="utf-8")
    os.replace(partial, target)
    return events


def load(run_dir: Path | str) -> list[Event]:
    """The timeline of a run. Raises FileNotFoundError when the directory holds neither a timeline nor traces."""
    path = Path(run_dir) / TIMELINE
    if not path.is_file():
        if not any(Path(run_dir).glob("*.trace.jsonl")):
            raise FileNotFoundError(f"{run_dir}: no {TIMELINE} and no *.trace.jsonl")
        return merge(run_dir)
    events = (parse(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    return [event for event in events if event is not None]


class _Tail:
    """One growing file: whole lines as they are completed."""

    def __init__(self, path: Path):
        self.path, self.offset = path, 0

    def lines(self) -> list[bytes]:
        with self.path.open("rb") as stream:
            stream.seek(self.offset)
            data = stream.read(READ_MAX)
        whole = data[:data.rfind(b"\n") + 1]
        if not whole and len(data) == READ_MAX:  # one line longer than the limit can't be an event
            METRICS.add("venus_simulators_trace_lines_broken_total")
            whole = data
        self.offset += len(whole)
        return whole.splitlines()


class Follow:
    """New events of a run directory, in the order they were recorded within one poll: `async for event in Follow(...)`.

    Starts with what is already there. `stop()` ends the iteration after everything written until then was given out.
    """

    def __init__(self, directory: Path | str, clock: Clock, poll_s: float = POLL_S):
        self._directory, self._clock, self._poll_s = Path(directory), clock, poll_s
        self._tails: dict[str, _Tail] = {}
        self._ready: deque[Event] = deque()
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    def poll(self) -> list[Event]:
        """What was appended since the last call, at most 1 MiB of each trace."""
        for path in self._directory.glob("*.trace.jsonl"):
            self._tails.setdefault(path.name, _Tail(path))
        events = [parse(line) for tail in self._tails.values() for line in tail.lines() if line.strip()]
        return sorted((e for e in events if e is not None), key=lambda e: e.t)

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            stopped = self._stopped  # read before the poll: nothing written before stop() is missed
            self._ready.extend(self.poll())
            more = bool(self._ready)
            while self._ready:
                yield self._ready.popleft()
            if more:
                await asyncio.sleep(0)
            elif stopped:
                return
            else:
                await self._clock.sleep(self._poll_s)
