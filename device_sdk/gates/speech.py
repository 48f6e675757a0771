"""Speech on and off from voice-activity probabilities: hysteresis, dating back, hang-over."""

from dataclasses import dataclass

FRAME = 512
"""Samples of one judgement (32 ms at 16 kHz)."""


@dataclass(frozen=True)
class SpeechOn:
    """Speech began at `pos` (dated back to its first frame). `again`: it went on after a pause within the hang-over."""

    pos: int
    probability: float
    again: bool = False


@dataclass(frozen=True)
class SpeechOff:
    """Speech ended at `pos`: the end of its last frame, a hang-over ago."""

    pos: int


class SpeechDetector:
    """`feed` one probability per 512-sample frame.

    On: `on_frames` frames in a row at or above `on`. Off: nothing at or above `off` for `hangover_s`. Frames between the two
    thresholds keep speech alive and begin none.
    """

    PAUSE_FRAMES = 5
    """Frames of silence (160 ms) after which speech that goes on counts as a new onset for ducking."""

    def __init__(self, on: float = 0.5, off: float = 0.35, on_frames: int = 2, hangover_s: float = 0.48, strong: float = 0.85):
        self.on, self.off, self.on_frames, self.strong = on, off, on_frames, strong
        self.hangover = round(hangover_s * 16_000)
        self.speaking = False
        self._run = 0
        self._run_start = 0
        self._voice_end = 0
        self._quiet = 0

    def feed(self, probability: float, start: int, strict: bool = False) -> SpeechOn | SpeechOff | None:
        """The frame at `start` has this probability of speech; `strict` asks for strong evidence of an onset (echo guard)."""
        threshold = self.strong if strict else self.on
        if probability >= threshold:
            if self._run == 0:
                self._run_start = start
            self._run += 1
        else:
            self._run = 0
        if self.speaking:
            if probability >= self.off:
                self._voice_end = start + FRAME
                if self._run == self.on_frames and self._quiet >= self.PAUSE_FRAMES:
                    self._quiet = 0
                    return SpeechOn(self._run_start, probability, again=True)
                if self._run == 0 or self._run >= self.on_frames:
                    self._quiet = 0
                return None
            self._quiet += 1
            if start + FRAME - self._voice_end >= self.hangover:
                self.speaking = False
                self._quiet = 0
                return SpeechOff(self._voice_end)
            return None
        if self._run >= self.on_frames:
            self.speaking = True
            self._voice_end = start + FRAME
            self._quiet = 0
            return SpeechOn(self._run_start, probability)
        return None

