"""The player and its playout clock: segments in, DAC blocks out, and the exact count of samples that left the loudspeaker.

Pull model: the DAC side calls `render(n, pos, now)` once per audio block. A sample handed over at output index i leaves the
loudspeaker `dac_delay_s` later, so at a call with W samples handed over, everything below W - delay has been heard.
`played` is counted from that alone: nothing received, queued or handed over counts before its DAC time.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field

import numpy as np

from device_sdk.errors import AudioFormatError
from device_sdk.wire.playout_report import PlayState
from device_sdk.wire.topics import MIC_RATE
from venus_edge.metrics import METRICS

FADE_S = 0.005
RESTORE_RAMP_S = 0.05
KEEP_FINAL = 64
"""Finished segments that are remembered: late pushes to them are ignored and a repeated flush is answered."""
MAX_QUEUED = 32
LONG_GAP_S = 0.1


@dataclass(eq=False)
class Segment:
    """One speech segment on the device; counts are samples of its own rate."""

    id: str
    meta: object = None
    chunks: deque = field(default_factory=deque)
    """(start, int16 samples) not yet handed over, in order."""
    buffered: int = 0
    """Samples in `chunks`."""
    rx: int = 0
    written: int = 0
    played: int = 0
    state: PlayState = PlayState.QUEUED
    complete: bool = False
    """The sender ended it: no more samples come."""
    abandoned: bool = False  # its sender is gone
    closing: PlayState | None = None
    """How it will end as soon as the last handed-over sample has left the loudspeaker."""
    fading: bool = False
    """Flushed: only the fade is left to play."""
    why: str = ""
    first_pos: int = -1
    last_pos: int = -1
    gaps: list = field(default_factory=list)
    lost: list = field(default_factory=list)
    gap_open: bool = False
    gap_told: bool = False
    starved_since: float = 0.0

    @property
    def started(self) -> bool:
        return self.first_pos >= 0


@dataclass(frozen=True)
class PlayoutEvent:
    """Something that happened to a segment: kind is first | gap | last; `pos` is a DAC position."""

    kind: str
    seg: str
    pos: int
    played: int = 0
    start: int = 0
    length: int = 0
    state: str = ""


class Player:
    """Plays segments one after the other. All methods belong to one thread.

    `edges`: ids of segments with something new that must not be lost (start, long gap, end), in order, drained by the reporter.
    `events`: for the trace. Both bounded.
    """

    def __init__(self, out_rate: int = 24_000, dac_delay_s: float = 0.04, *, start_s: float = 0.04, buffer_s: float = 30.0,
                 lost_after_s: float = 5.0):
        self.out_rate = out_rate
        self._start = round(start_s * out_rate)
        self._capacity = round(buffer_s * out_rate)
        self._lost_after_s = lost_after_s
        self.delay = round(dac_delay_s * out_rate)
        self.volume = 1.0
        self._duck = 1.0
        self._gain = 1.0
        self._out = 0  # samples handed to the DAC so far, silence included
        self._passed = 0  # of these, how many have left the loudspeaker
        self._marks: deque = deque()  # (output index, count, segment, first sample) handed over and not yet heard
        self._queue: deque[Segment] = deque()
        self._all: OrderedDict[str, Segment] = OrderedDict()
        self.edges: deque[str] = deque(maxlen=256)
        self.events: deque[PlayoutEvent] = deque(maxlen=256)
        self.pos, self.now = 0, 0.0
        self.dropped = 0

    # ---- what comes in -----------------------------------------------------------------------------------------------

    def open(self, seg: str, meta: object = None) -> bool:
        """Queue a segment behind the others (at first sight of it). False if it is over already or the queue is full."""
        known = self._all.get(seg)
        if known is not None:
            return known.closing is None and not known.state.final
        if len(self._queue) >= MAX_QUEUED:
            METRICS.add("venus_device_segments_refused")
            return False
        segment = self._remember(Segment(seg, meta))
        self._queue.append(segment)
        return True

    def push(self, seg: str, start: int, samples: np.ndarray) -> None:
        """Samples of `seg` from `start`. What is there already is skipped; a hole is `lost`; so is what exceeds the buffer."""
        if samples.dtype != np.int16 or samples.ndim != 1:
            raise AudioFormatError("samples: must be one row of int16")
        if not self.open(seg) or len(samples) == 0:
            METRICS.add("venus_device_speech_ignored_samples", len(samples))
            return
        segment = self._all[seg]
        if segment.complete:
            METRICS.add("venus_device_speech_ignored_samples", len(samples))
            return
        if start < segment.rx:
            samples = samples[segment.rx - start:]
            start = segment.rx
            if len(samples) == 0:
                return
        if start > segment.rx:
            self._lose(segment, segment.rx, start - segment.rx)
        end = start + len(samples)
        room = max(0, self._capacity - self.buffered)
        if len(samples) > room:
            self.dropped += len(samples) - room
            METRICS.add("venus_device_speech_dropped_samples", len(samples) - room)
            self._lose(segment, start + room, len(samples) - room)
            samples = samples[:room]
        if len(samples):
            segment.chunks.append((start, samples))
            segment.buffered += len(samples)
        segment.rx = end

    def end(self, seg: str) -> None:
        """The sender has sent all of `seg`."""
        if self.open(seg):
            self._all[seg].complete = True

    def abandon(self) -> None:
        """Whoever sent the segments that are not complete is gone: they play what is there and are lost without a wait."""
        for segment in self._queue:
            segment.abandoned = not segment.complete

    def flush(self, seg: str | None = None, why: str = "cloud") -> list[str]:
        """Stop `seg` (None: everything) within one block, with a fade of 5 ms; what has left can't be recalled and counts.

        A segment that is unknown yet is remembered as flushed, so its samples are ignored when they come.
        Returns the ids that this call stopped.
        """
        if seg is not None and seg not in self._all:
            segment = self._remember(Segment(seg, why=why))
            self._close(segment, PlayState.FLUSHED)
            return [seg]
        stopped = []
        for segment in [self._all[seg]] if seg is not None else list(self._queue):
            if segment.closing is not None or segment.fading:
                if segment.state.final:
                    self.edges.append(segment.id)  # the teller may have missed how it ended
                continue
            segment.why = why
            stopped.append(segment.id)
            if segment.state is PlayState.PLAYING and segment.chunks:
                self._fade_out(segment)
            else:
                self._queue.remove(segment)
                self._drop_open_gap(segment)
                self._close(segment, PlayState.FLUSHED)
        return stopped

    def _fade_out(self, segment: Segment) -> None:
        """Leave 5 ms to play, with a falling ramp that stays above zero: each of these samples is heard, and counts."""
        length = round(FADE_S * self.out_rate)
        first, parts, have = segment.chunks[0][0], [], 0
        for start, samples in segment.chunks:
            if start != first + have or have >= length:
                break
            parts.append(samples[:length - have])
            have += len(parts[-1])
        tail = np.concatenate(parts)
        ramp = np.arange(have, 0, -1, dtype=np.float32) / (have + 1)
        segment.chunks = deque([(first, np.rint(tail * ramp).astype(np.int16))])
        segment.buffered = have
        segment.fading = segment.complete = True

    # ---- what comes out ----------------------------------------------------------------------------------------------

    def render(self, n: int, pos: int = 0, now: float = 0.0) -> np.ndarray:
        """The next `n` samples for the DAC. `pos`: device sample at which this block is handed over; `now`: the clock."""
        self.pos, self.now = pos, now
        self._advance()
        block = np.zeros(n, np.int16)
        i = 0
        while i < n and self._queue:
            segment = self._queue[0]
            if not self._ready(segment):
                self._starve(segment, n - i)
                if segment.closing is None:
                    break
                continue
            i += self._take(segment, block, i)
            if not segment.chunks and segment.complete:
                self._finish_writing(segment)
        block = self._apply_gain(block)
        self._out += n
        return block

    def _ready(self, segment: Segment) -> bool:
        if not segment.chunks:
            if segment.complete:
                self._finish_writing(segment)
            return False
        if segment.state is PlayState.PLAYING:
            return True
        return segment.complete or segment.abandoned or segment.buffered >= self._start

    def _take(self, segment: Segment, block: np.ndarray, i: int) -> int:
        """Hand over up to the rest of the block from the segment's first chunk; returns how many samples."""
        start, samples = segment.chunks[0]
        count = min(len(block) - i, len(samples))
        block[i:i + count] = samples[:count]
        if count == len(samples):
            segment.chunks.popleft()
        else:
            segment.chunks[0] = (start + count, samples[count:])
        segment.buffered -= count
        if not segment.started:
            segment.first_pos = self._dac_pos(i)
        segment.last_pos = self._dac_pos(i + count)
        segment.state = PlayState.PLAYING
        if segment.gap_open:
            self._end_gap(segment)
        segment.written = start + count
        self._marks.append((self._out + i, count, segment, start))
        return count

    def _dac_pos(self, i: int) -> int:
        """Device position at which sample `i` of the present block leaves the loudspeaker."""
        return self.pos + round((i + self.delay) * MIC_RATE / self.out_rate)

    def _finish_writing(self, segment: Segment) -> None:
        self._queue.popleft()
        self._drop_open_gap(segment)
        self._close(segment, PlayState.FLUSHED if segment.fading else PlayState.ENDED)

    def _starve(self, segment: Segment, missing: int) -> None:
        """Nothing to play of the segment whose turn it is: a gap if it has begun, lost if that lasts."""
        if segment.closing is not None:
            return
        if not segment.started:
            segment.starved_since = segment.starved_since or self.now
        elif not segment.gap_open:
            segment.gap_open, segment.gap_told = True, False
            segment.starved_since = self.now
            segment.state = PlayState.UNDERRUN
            segment.gaps.append([segment.written, missing])
            del segment.gaps[:-8]
        else:
            segment.gaps[-1][1] += missing
            if not segment.gap_told and segment.gaps[-1][1] > LONG_GAP_S * self.out_rate:
                segment.gap_told = True
                self.edges.append(segment.id)
        if segment.abandoned or self.now - segment.starved_since > self._lost_after_s:
            METRICS.add("venus_device_segments_lost")
            self._queue.remove(segment)
            self._drop_open_gap(segment)
            self._close(segment, PlayState.LOST)

    @staticmethod
    def _drop_open_gap(segment: Segment) -> None:
        """No sample came after it: the silence followed the segment, it was no gap in it."""
        if segment.gap_open:
            segment.gap_open = False
            segment.gaps.pop()

    def _end_gap(self, segment: Segment) -> None:
        segment.gap_open = False
        METRICS.add("venus_device_underruns")
        start, length = segment.gaps[-1]
        self.events.append(PlayoutEvent("gap", segment.id, self.pos, segment.played, start, length, segment.state))
        if segment.gap_told:
            self.edges.append(segment.id)

    # ---- the playout clock -------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Count what has left the loudspeaker by now; close what has nothing left in the DAC."""
        self._passed = max(self._passed, self._out - self.delay)
        while self._marks:
            at, count, segment, first = self._marks[0]
            heard = min(count, self._passed - at)
            if heard <= 0:
                break
            begun = segment.played == 0
            segment.played = max(segment.played, first + heard)
            if begun:
                self.edges.append(segment.id)
                self.events.append(PlayoutEvent("first", segment.id, segment.first_pos, segment.played))
            if heard < count:
                break
            self._marks.popleft()
            if segment.closing is not None:
                self._settle(segment)

    def _close(self, segment: Segment, how: PlayState) -> None:
        segment.closing = how
        segment.chunks.clear()
        segment.buffered = 0
        self._settle(segment)

    def _settle(self, segment: Segment) -> None:
        """Final as soon as no handed-over sample of it is still on its way to the loudspeaker."""
        if segment.state.final or any(mark[2] is segment for mark in self._marks):
            return
        if segment.closing is PlayState.ENDED:
            segment.played = segment.rx  # a lost tail is passed over, and listed in `lost`
        segment.state = segment.closing
        self.edges.append(segment.id)
        self.events.append(PlayoutEvent("last", segment.id, segment.last_pos, segment.played, length=segment.rx, state=segment.state))

    def set_dac_delay(self, seconds: float) -> None:
        """The delay changed (route change, another buffer size); `played` never goes back."""
        self.delay = max(0, round(seconds * self.out_rate))

    # ---- loudness ----------------------------------------------------------------------------------------------------

    def duck(self, level_db: float = -15.0) -> None:
        self._duck = float(10 ** (level_db / 20))

    def restore(self) -> None:
        self._duck = 1.0

    @property
    def ducked(self) -> bool:
        return self._duck < 1.0

    def _apply_gain(self, block: np.ndarray) -> np.ndarray:
        target = self.volume * self._duck
        if self._gain == target:
            if target == 1.0:
                return block
            return np.rint(block * np.float32(target)).astype(np.int16)
        ramp_s = FADE_S if target < self._gain else RESTORE_RAMP_S
        step = np.float32(1.0 / (ramp_s * self.out_rate))
        way = np.arange(1, len(block) + 1, dtype=np.float32) * step
        gains = np.maximum(target, self._gain - way) if target < self._gain else np.minimum(target, self._gain + way)
        self._gain = float(gains[-1]) if abs(gains[-1] - target) > 1e-6 else target
        return np.rint(block * gains).astype(np.int16)

    # ---- what it looks like ------------------------------------------------------------------------------------------

    @property
    def buffered(self) -> int:
        return sum(segment.buffered for segment in self._queue)

    @property
    def sounding(self) -> bool:
        """Speech is leaving the loudspeaker, or will within the DAC delay."""
        return bool(self._marks) or bool(self._queue and self._queue[0].started)

    def playing(self) -> tuple[str, int]:
        """Id and `played` of the segment that is being heard (else the next one), ("", 0) when there is none."""
        segment = self._marks[0][2] if self._marks else self._queue[0] if self._queue else None
        return (segment.id, segment.played) if segment else ("", 0)

    def get(self, seg: str) -> Segment | None:
        return self._all.get(seg)

    def segments(self) -> list[Segment]:
        """Known segments, oldest first (at most 64 finished ones)."""
        return list(self._all.values())

    @property
    def live(self) -> list[Segment]:
        """Segments that are not final yet."""
        return [s for s in self._all.values() if not s.state.final]

    def _lose(self, segment: Segment, start: int, length: int) -> None:
        if segment.lost and sum(segment.lost[-1]) == start:
            segment.lost[-1][1] += length
        else:
            segment.lost.append([start, length])
            del segment.lost[:-4]

    def _remember(self, segment: Segment) -> Segment:
        self._all[segment.id] = segment
        over = [s.id for s in self._all.values() if s.state.final]
        for old in over[:max(0, len(over) - KEEP_FINAL)]:
            del self._all[old]
        return segment
