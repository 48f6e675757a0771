"""The audio gate: which microphone samples are sent, with a pre-roll, exact positions and a count of what was withheld."""

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from device_sdk.gates.speech import FRAME, SpeechDetector, SpeechOff, SpeechOn
from device_sdk.wire.topics import MIC_PACKET_MAX_SAMPLES, MIC_RATE

BLOCK = 160
HISTORY_BLOCKS = 70
"""700 ms: the pre-roll and the time an onset takes to be noticed."""


class GateMode(StrEnum):
    VAD = "vad"
    """Open while somebody speaks."""
    ALWAYS = "always"
    PUSH_TO_TALK = "push_to_talk"
    """Open while `talking` is set."""


class FrameJudge(Protocol):
    """What the gate needs of a voice-activity model."""

    def __call__(self, frame: np.ndarray) -> float: ...

    def skip(self, frame: np.ndarray) -> None: ...

    def reset(self) -> None: ...


@dataclass(frozen=True)
class Opened:
    """`pos`: first sample that follows; `withheld`: samples not sent since the last close."""

    pos: int
    withheld: int


@dataclass(frozen=True)
class Closed:
    """`pos`: the position after the last sample sent."""

    pos: int


@dataclass(frozen=True, eq=False)
class Audio:
    """Samples to send, starting at `pos`."""

    pos: int
    samples: np.ndarray
    gap: bool = False
    preroll: bool = False


CALM = 0.2
"""Below this probability a frame is certainly no speech."""
REFRESH_FRAMES = 94
"""After 3 s of calm the model forgets the past: its state drifts in long noise and residual echo until it hears nothing any more
(the same words score 0.95 with a state of 3 s and 0.1 with one of 20 s)."""

GateOutput = Opened | Closed | Audio | SpeechOn | SpeechOff


class AudioGate:
    """`feed` every 10 ms block in order. Each device position is sent at most once, in order."""

    def __init__(self, vad: FrameJudge, detector: SpeechDetector | None = None, *, mode: GateMode = GateMode.VAD,
                 preroll_s: float = 0.3, packet_ms: int = 20, floor_dbfs: float = -70.0):
        self._vad = vad
        self.detector = detector or SpeechDetector()
        self.mode = mode
        self.talking = False
        self.enabled = True
        """False holds everything back (nobody is there to hear it)."""
        self.packet = packet_ms * MIC_RATE // 1000
        self._preroll = min(round(preroll_s * MIC_RATE), MIC_PACKET_MAX_SAMPLES)
        self._floor = (32768 * 10 ** (floor_dbfs / 20)) ** 2 * FRAME
        self.open = False
        self._history: deque[np.ndarray] = deque(maxlen=HISTORY_BLOCKS)
        self._end = 0  # position after the last block
        self._sent = 0  # position after the last sample handed out
        self._gap = True
        self._frame = np.zeros(FRAME, np.int16)
        self._filled = 0
        self.probability = 0.0
        self._calm = 0

    @property
    def speaking(self) -> bool:
        return self.detector.speaking

    def feed(self, block: np.ndarray, pos: int, strict: bool = False) -> list[GateOutput]:
        """One block of 160 samples at `pos`; `strict` while an onset needs strong evidence (echo guard)."""
        if not self._history:
            self._end = self._sent = pos
        self._history.append(block)
        self._end = pos + len(block)
        out: list[GateOutput] = []
        onset = self._judge(block, strict, out)
        want = self.enabled and (self.mode is GateMode.ALWAYS or (self.talking if self.mode is GateMode.PUSH_TO_TALK else self.speaking))
        if want and not self.open:
            self._open(self._end if onset is None else onset, out)
        elif self.open and not want:
            self._send(out, self._end - self._sent)
            self.open = False
            out.append(Closed(self._sent))
        elif self.open:
            while self._end - self._sent >= self.packet:
                self._send(out, self.packet)
        return out

    def _judge(self, block: np.ndarray, strict: bool, out: list[GateOutput]) -> int | None:
        """Run the model when a frame is full; the onset of speech that began, else None."""
        take = min(FRAME - self._filled, len(block))
        self._frame[self._filled:self._filled + take] = block[:take]
        self._filled += take
        if self._filled < FRAME:
            return None
        rest = len(block) - take
        start = self._end - rest - FRAME
        if not self.speaking and float(np.dot(self._frame.astype(np.float32), self._frame.astype(np.float32))) < self._floor:
            self._vad.skip(self._frame)
            self.probability = 0.0
        else:
            self.probability = self._vad(self._frame)
            self._refresh()
        self._frame[:rest] = block[take:]
        self._filled = rest
        change = self.detector.feed(self.probability, start, strict)
        if change is None:
            return None
        out.append(change)
        return change.pos if isinstance(change, SpeechOn) and not change.again else None

    def _refresh(self) -> None:
        self._calm = self._calm + 1 if self.probability < CALM and not self.speaking else 0
        if self._calm >= REFRESH_FRAMES:
            self._vad.reset()
            self._calm = 0

    def _open(self, onset: int, out: list[GateOutput]) -> None:
        """Open at `onset`: the pre-roll as one burst, then what has come since in ordinary packets."""
        oldest = self._end - sum(len(b) for b in self._history)
        start = max(self._sent, oldest, onset - self._preroll)
        onset = max(onset, start)
        self.open = True
        out.append(Opened(start, start - self._sent))
        self._gap = start > self._sent or self._gap
        self._sent = start
        if onset > start:
            self._send(out, onset - start, preroll=True)
        while self._end - self._sent >= self.packet:
            self._send(out, self.packet)

    def _send(self, out: list[GateOutput], count: int, preroll: bool = False) -> None:
        """Hand out the next `count` samples from the history."""
        if count <= 0:
            return
        first = self._sent - self._end  # negative index into the joined history
        blocks = -(-(-first) // BLOCK)
        tail = np.concatenate(list(self._history)[-blocks:])
        samples = tail[len(tail) + first:len(tail) + first + count]
        out.append(Audio(self._sent, samples, self._gap, preroll))
        self._gap = False
        self._sent += count
