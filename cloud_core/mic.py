"""Turns stamped microphone packets and gate marks into units of exact length on the device's sample clock.

While the gate is closed nobody sends, so units of zeros are paced by the estimated device clock. Pre-roll that arrives for
positions already handed out goes along with the next unit as `AudioPatch`. Memory is bounded: RING_S seconds, oldest dropped.
"""
from collections import deque

import numpy as np

from cloud_core.front_end import MIC_RATE, AudioPatch
from venus_edge.clock import Clock
from venus_edge.metrics import METRICS

RING_S = 6.0
MARGIN_S = 0.02
"""How far behind the estimated device clock a closed gate's units are formed: a gate that opens now is not yet passed."""
STALL_S = 0.4
"""An open gate without packets for this long: the missing samples are filled with zeros and counted."""
HOLE_S = 0.25
"""Delivery is ordered: a hole with this much behind it will not be filled any more."""
CLOCK_WINDOW_S = 10.0
AHEAD_S = 5.0
"""No device is further ahead of its estimated clock than this: such a position is an error, and would silence it for ever."""
BEHIND_S = 2.0
"""Live samples this far behind what was handed out, for this long: the device's clock stood still and will not catch up."""


class DeviceClock:
    """Estimates the device's sample position from packet arrivals: the least delayed arrival of the last 10 s is the truth."""

    def __init__(self, clock: Clock):
        self.clock = clock
        self._seen: deque[tuple[float, float]] = deque(maxlen=512)
        self._offset: float | None = None

    def saw(self, pos: int) -> None:
        """A message that was true at device sample `pos` arrived now."""
        if not self.possible(pos):
            return
        now = self.clock.now()
        offset = now - pos / MIC_RATE
        self._seen.append((now, offset))
        while self._seen and now - self._seen[0][0] > CLOCK_WINDOW_S:
            self._seen.popleft()
        self._offset = min(o for _, o in self._seen) if self._seen else offset

    def possible(self, pos: int) -> bool:
        """Whether the device can be at `pos` by now; an impossible position is counted."""
        if self._offset is None or pos - self.pos() <= AHEAD_S * MIC_RATE:
            return True
        METRICS.add("venus_cloud_mic_positions_refused")
        return False

    def pos(self) -> int:
        """The device sample being captured now (late by the shortest transport delay seen)."""
        return 0 if self._offset is None else int((self.clock.now() - self._offset) * MIC_RATE)


class MicAssembler:
    """Feed `gate()` and `packet()`; take units with `take()` until it returns None."""

    def __init__(self, clock: Clock, unit_ms: int, start_pos: int):
        self.clock = clock
        self.device = DeviceClock(clock)
        self.unit = unit_ms * MIC_RATE // 1000
        self.cursor = start_pos
        self._ring = np.zeros(int(RING_S * MIC_RATE), np.int16)
        self._have = np.zeros(len(self._ring), bool)
        self._open = False
        self._closed_at = start_pos
        self._patches: list[AudioPatch] = []
        self._newest = start_pos
        self._last_packet = clock.now()
        self._behind_since: float | None = None
        self.lost_sync = False
        """The device fell behind for good: only a new session hears it again."""

    def gate(self, is_open: bool, pos: int) -> None:
        """The device's audio gate opened or closed at `pos`: nothing is sent beyond a closing until the next opening."""
        if not self.device.possible(pos):
            return
        self._open = is_open
        if is_open:
            self._last_packet = self.clock.now()
            begin = max(self.cursor, self._closed_at)
            if begin < pos <= begin + len(self._ring):
                self._have[np.arange(begin, min(pos, self.cursor + len(self._ring))) % len(self._ring)] = True
        else:
            self._closed_at = pos
            self.device.saw(pos)

    def packet(self, pos: int, samples: np.ndarray, *, live: bool = True) -> None:
        """int16 samples at `pos`. The part before the cursor becomes a patch, the rest waits for its unit."""
        end = pos + len(samples)
        if not self.device.possible(end):
            return
        if live:
            self.device.saw(end)
            self._last_packet = self.clock.now()
            self._watch_lag(end)
        self._newest = max(self._newest, end)
        if pos < self.cursor:
            late = min(len(samples), self.cursor - pos)
            self._patches.append(AudioPatch(pos, samples[:late].copy()))
            if len(self._patches) > 64:
                self._patches.pop(0)
                METRICS.add("venus_cloud_mic_patches_dropped")
            samples, pos = samples[late:], pos + late
        if not len(samples):
            return
        if end - self.cursor > len(self._ring):
            skip = end - self.cursor - len(self._ring)
            METRICS.add("venus_cloud_mic_samples_dropped", skip)
            self._skip(-(-skip // self.unit) * self.unit)
            return self.packet(pos, samples, live=False) if end > self.cursor else None
        at = (pos + np.arange(len(samples))) % len(self._ring)
        self._ring[at] = samples
        self._have[at] = True

    def _watch_lag(self, end: int) -> None:
        """A burst after a stalled link is late for a moment; a clock that stood still is late in every packet."""
        if self.cursor - end < BEHIND_S * MIC_RATE:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = self.clock.now()
        elif self.clock.now() - self._behind_since >= BEHIND_S:
            self.lost_sync = True

    def _skip(self, n: int) -> None:
        at = (self.cursor + np.arange(min(n, len(self._ring)))) % len(self._ring)
        self._ring[at] = 0
        self._have[at] = False
        self.cursor += n

    def take(self) -> tuple[int, np.ndarray, bool, tuple[AudioPatch, ...]] | None:
        """The next unit as (pos, int16 samples, gated, patches), or None if it isn't complete yet."""
        at = (self.cursor + np.arange(self.unit)) % len(self._ring)
        have = self._have[at]
        end = self.cursor + self.unit
        gated = False
        if not have.all():
            now_pos = self.device.pos()
            if self._open:
                quiet = self.clock.now() - self._last_packet >= STALL_S and now_pos >= end + int(MARGIN_S * MIC_RATE)
                if not quiet and self._newest - end < int(HOLE_S * MIC_RATE):
                    return None
                METRICS.add("venus_cloud_mic_samples_lost", int((~have).sum()))
            elif now_pos < end + int(MARGIN_S * MIC_RATE):
                return None
            gated = not have.any()
        unit = np.where(have, self._ring[at], 0).astype(np.int16)
        pos = self.cursor
        self._skip(self.unit)
        patches, self._patches = tuple(self._patches), []
        return pos, unit, gated, patches
