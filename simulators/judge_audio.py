"""What the recogniser hears in the recording of the loudspeaker, segment by segment."""
import wave
from collections.abc import Callable
from math import gcd
from pathlib import Path

import numpy as np
from scipy.signal import resample_poly

from simulators.judge_evidence import Segment
from simulators.timeline import MIC_RATE
from venus_edge.errors import ConfigError

Recognise = Callable[[np.ndarray], str]
"""float32 mono at 16 kHz in -1..1 -> the words in it."""
_MARGIN = MIC_RATE // 10
"""Context on both sides of a segment."""
_MAX_S, _MIN_S = 25.0, 0.15
"""A recogniser's window is 30 s; less than 0.15 s of sound holds no word."""
_SILENT = 10 ** (-60 / 20)
"""Peak (of 1.0) below which there is nothing to hear: a recogniser makes words up in silence."""


def read_wav(path: Path | str) -> tuple[np.ndarray, int]:
    """(int16 mono samples, rate). Raises ConfigError for anything but 16-bit mono PCM."""
    try:
        with wave.open(str(path), "rb") as stream:
            if (stream.getnchannels(), stream.getsampwidth()) != (1, 2):
                raise ConfigError(f"{path}: {stream.getnchannels()} channel(s) of {8 * stream.getsampwidth()} bits; "
                                  "allowed: 1 channel of 16 bits")
            return np.frombuffer(stream.readframes(stream.getnframes()), "<i2"), stream.getframerate()
    except (wave.Error, EOFError, FileNotFoundError) as err:
        raise ConfigError(f"{path}: not a readable WAV file ({err})") from err


def resample(samples: np.ndarray, rate: int, wanted: int = MIC_RATE) -> np.ndarray:
    """int16 at `rate` to float32 in -1..1 at `wanted`."""
    x = samples.astype(np.float32) / 32768.0
    if rate != wanted and len(x):
        common = gcd(rate, wanted)
        x = resample_poly(x, wanted // common, rate // common).astype(np.float32)
    return x


def real_recogniser() -> Recognise:
    """The product's own recogniser, as a tool; loading it takes about half a second."""
    from cloud_core.speech import Recogniser

    model = Recogniser(threads=2)
    return lambda samples: model.transcribe(samples).text


class Hearing:
    """The recording with a recogniser in front of it. `speaker`: int16 at `rate`, its first sample at device sample 0."""

    def __init__(self, speaker: np.ndarray, rate: int, recognise: Recognise):
        self._speaker, self._rate, self._recognise = speaker, rate, recognise
        self._known: dict[tuple[int, int], str] = {}

    def clip(self, first: int, last: int) -> np.ndarray:
        """Device samples [first, last) of the recording: float32 at 16 kHz."""
        low, high = (round(max(0, p) * self._rate / MIC_RATE) for p in (first, last))
        return resample(self._speaker[low:high], self._rate)

    def text(self, first: int, last: int) -> str:
        """The words in device samples [first, last), recognised once."""
        key = (first, last)
        if key not in self._known:
            clip = self.clip(first, last)
            parts = [self._recognise(part).strip() for part in _pieces(clip) if _audible(part)]
            self._known[key] = " ".join(p for p in parts if p)
        return self._known[key]

    def segment(self, segment: Segment) -> str:
        """The words of one played segment."""
        return self.text(segment.first - _MARGIN, segment.last + _MARGIN)


def _audible(clip: np.ndarray) -> bool:
    return len(clip) >= _MIN_S * MIC_RATE and float(np.abs(clip).max()) > _SILENT


def _pieces(clip: np.ndarray) -> list[np.ndarray]:
    """Cut a long clip at the quietest 100 ms of the last third of each window, so that no word is torn."""
    window, step, pieces = int(_MAX_S * MIC_RATE), MIC_RATE // 10, []
    while len(clip) > window:
        tail = np.abs(clip[window * 2 // 3:window])
        energy = tail[:len(tail) // step * step].reshape(-1, step).mean(axis=1)
        cut = window * 2 // 3 + int(energy.argmin()) * step + step // 2
        pieces.append(clip[:cut])
        clip = clip[cut:]
    return [*pieces, clip]
