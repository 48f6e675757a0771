"""Voice activity on the unit stream: when the user began, how long they have been silent, what was said (the ring)."""
from collections import deque
from dataclasses import dataclass

import numpy as np

from cloud_core.front_end import MIC_RATE, AudioPatch
from device_sdk.gates import SileroVad

WINDOW = 512
"""Samples of one judgement of the voice-activity model: 32 ms."""
ON, OFF = 0.5, 0.35
CONFIRM_WINDOWS = 2
"""Voiced windows in a row that make an onset (or end a pause): one alone is a click."""
RING_S = 30


class Ring:
    """The last 30 s of microphone samples by position; what was never sent is zeros."""

    def __init__(self, pos: int):
        self._data = np.zeros(RING_S * MIC_RATE, np.int16)
        self.begin = self.end = pos

    def write(self, pos: int, samples: np.ndarray) -> None:
        """Store `samples` at `pos`; what is older than the ring or lies ahead of the last unit is dropped."""
        size = len(self._data)
        if pos == self.end:
            self.end = pos + len(samples)
            self.begin = max(self.begin, self.end - size)
        first, last = max(pos, self.begin), min(pos + len(samples), self.end)
        if last > first:
            where = np.arange(first, last) % size
            self._data[where] = samples[first - pos:last - pos]

    def __len__(self) -> int:
        return len(self._data)

    def jump(self, pos: int) -> None:
        """Forget everything and go on at `pos`."""
        self.wipe()
        self.begin = self.end = pos

    def wipe(self) -> None:
        """Overwrite what was heard."""
        self._data[:] = 0

    def read(self, start: int, end: int) -> np.ndarray:
        start, end = max(start, self.begin), min(end, self.end)
        return self._data[np.arange(start, max(start, end)) % len(self._data)]


@dataclass(frozen=True)
class Window:
    """One judged window: where it began, the probability of speech, and whether it counts as voiced."""

    start: int
    probability: float
    voiced: bool


class VoiceActivity:
    """Feeds units to the model and keeps the user's voice as positions.

    `onset`: where the present stretch of speech began, or None. `last_voice`: end of its last voiced window; the model's
    probability falls 60 to 150 ms after the sound, so `last_strong`, the end of the last window at or above ON, is nearer.
    `voiced`: samples of the stretch in windows at or above ON.
    """

    def __init__(self, vad: SileroVad, pos: int):
        self._vad = vad
        self.ring = Ring(pos)
        self.pos = pos
        self._rest = np.zeros(0, np.float32)
        self._gated = True
        self._run: list[Window] = []
        self._was_voiced = False
        self.windows: deque[Window] = deque(maxlen=64)
        self.onset: int | None = None
        self.last_voice = pos
        self.last_strong = pos
        self.voiced = 0
        self.in_pause = True

    def feed(self, pos: int, audio: np.ndarray, gated: bool, backfill: tuple[AudioPatch, ...] = ()) -> None:
        """One unit. A gated one is silence and costs nothing; the first one after it may bring what the gate held back."""
        self.ring.write(pos, audio)
        self.pos = pos + len(audio)
        for patch in backfill:
            self.ring.write(patch.pos, patch.samples)
        if gated:
            if not self._gated:
                self._vad.reset()
                self._rest = np.zeros(0, np.float32)
                self._run, self._was_voiced = [], False
            self._gated = True
            self.in_pause = True
            return
        start = pos
        if self._gated:
            early = [p.pos for p in backfill if p.pos + len(p.samples) <= pos]
            start = max(self.ring.begin, min([pos, *early]))
            start = max(start, pos - MIC_RATE)
        self._gated = False
        sound = self.ring.read(start, self.pos).astype(np.float32) / 32768.0
        sound = np.concatenate([self._rest, sound])
        at = start - len(self._rest)
        whole = len(sound) // WINDOW * WINDOW
        for k in range(0, whole, WINDOW):
            self._judge(at + k, float(self._vad(sound[k:k + WINDOW])))
        self._rest = sound[whole:]

    def _judge(self, start: int, probability: float) -> None:
        voiced = probability >= (OFF if self._was_voiced else ON)
        self._was_voiced = voiced
        window = Window(start, probability, voiced)
        self.windows.append(window)
        if not voiced:
            self._run = []
            if self.onset is not None:
                self.in_pause = self.in_pause or start + WINDOW - self.last_voice >= CONFIRM_WINDOWS * WINDOW
            return
        self._run.append(window)
        if self.onset is None or self.in_pause:
            if len(self._run) < CONFIRM_WINDOWS:
                return
            if self.onset is None:
                self.onset, self.voiced = self._run[0].start, 0
            self.in_pause = False
            fresh = self._run
        else:
            fresh = [window]
        self.last_voice = start + WINDOW
        for one in fresh:
            if one.probability >= ON:
                self.voiced += WINDOW
                self.last_strong = one.start + WINDOW

    @property
    def speaking(self) -> bool:
        return self.onset is not None and not self.in_pause

    @property
    def silence(self) -> int:
        """Samples since the last strong voice of the present stretch."""
        return max(0, self.pos - self.last_strong)

    def clear(self) -> None:
        """The stretch is dealt with: the next voice is a new onset."""
        self.onset, self.voiced, self.in_pause = None, 0, True
        self._run = []
