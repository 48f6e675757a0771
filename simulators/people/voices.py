"""The occupants' voices: Kokoro-82M (int8), another family than the assistant's, fed English phonemes from hibari's G2P.

A text may hold hesitations: "Find me [pause 0.7] a pharmacy" has 0.7 s of silence inside. What comes back is trimmed to the
words (first and last sample are above the trim threshold) and has one speech level, so that positions and levels are exact.
"""
import json
import threading

import numpy as np
import onnxruntime
from scipy.signal import resample_poly

from simulators.people.catalogue import RATE, Take, Voice, hum_kind, pieces
from simulators.people.hum import hum
from venus_edge.models import model_dir

MODEL_RATE = 24_000
LEVEL_DBFS = -26.0
"""Active speech level of every utterance (root mean square over the frames that hold speech)."""
TRIM_DB = -40.0
"""Samples quieter than this below the peak are not part of the words."""

MAX_GAP_S, GAP_DB = 0.16, -38.0
"""The model rests up to 0.35 s at a joint ("nearby | and take me there"), as nobody does who has more to say. Silence: below GAP_DB."""


def trimmed(samples: np.ndarray) -> np.ndarray:
    """Without what is quieter than TRIM_DB below the peak at both ends."""
    loud = np.flatnonzero(np.abs(samples) > np.abs(samples).max(initial=0) * 10 ** (TRIM_DB / 20))
    return samples[loud[0]:loud[-1] + 1] if len(loud) else samples[:0]


def tightened(samples: np.ndarray, longest_s: float = MAX_GAP_S) -> np.ndarray:
    """float at 16 kHz with every silence inside cut down to `longest_s`, in its middle, where there is nothing to hear."""
    frame = RATE // 100
    rows = np.asarray(samples, np.float64)[:len(samples) // frame * frame].reshape(-1, frame)
    if not len(rows):
        return samples
    level = (rows ** 2).mean(axis=1)
    quiet = np.concatenate([[False], level < level.max() * 10 ** (GAP_DB / 10), [False]])
    begins, ends = np.flatnonzero(~quiet[:-1] & quiet[1:]), np.flatnonzero(quiet[:-1] & ~quiet[1:])
    keep = np.ones(len(samples), bool)
    for begin, end in zip(begins * frame, ends * frame):
        surplus = end - begin - round(longest_s * RATE)
        if surplus > 0:
            middle = (begin + end) // 2
            keep[middle - surplus // 2:middle - surplus // 2 + surplus] = False
    return samples[keep]


def active_rms(samples: np.ndarray) -> float:
    """Root mean square over the 20 ms frames that hold speech (within 25 dB of the loudest); 0 for silence."""
    frames = np.asarray(samples, np.float64)[:len(samples) // 320 * 320].reshape(-1, 320)
    power = (frames ** 2).mean(1) if len(frames) else np.array([np.mean(np.square(samples, dtype=np.float64))] if len(samples) else [0.0])
    return float(np.sqrt(power[power >= power.max() * 10 ** -2.5].mean()))


def levelled(samples: np.ndarray) -> np.ndarray:
    """float, any scale, to int16 at LEVEL_DBFS; peaks are kept below full scale."""
    rms, peak = active_rms(samples), float(np.abs(samples).max(initial=0))
    if not rms:
        return np.zeros(len(samples), np.int16)
    gain = min(10 ** (LEVEL_DBFS / 20) / rms, 0.98 / peak)
    return np.round(np.asarray(samples, np.float64) * gain * 32767).astype(np.int16)


class Synthesiser:
    """Loads the model once (about 0.6 s, 300 MB); one utterance takes 0.2-0.8 of its own length. Thread-safe."""

    def __init__(self, threads: int = 2):
        import hibari

        folder = model_dir("kokoro")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        self._net = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
        self._vocab = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))["vocab"]
        with np.load(folder / "voices_ja.npz") as styles:
            self._styles = {name: styles[name][:, 0, :] for name in styles.files}
        self._g2p = hibari.Hibari(threads=1)
        self._lock = threading.Lock()

    def _style(self, take: Take, tokens: int) -> np.ndarray:
        def blend(parts):
            return sum(weight * self._styles[name][min(tokens, 509)] for name, weight in parts)

        style = np.array(blend(take.timbre), np.float32)
        if take.prosody:
            style[128:] = blend(take.prosody)[128:]
        return style[None]

    def _say(self, text: str, take: Take) -> np.ndarray:
        """float32 at 24 kHz, as the model gives it."""
        phonemes = " ".join(self._g2p.phonemize(text))
        ids = [self._vocab[c] for c in phonemes if c in self._vocab][:508]
        with self._lock:
            return self._net.run(None, {"tokens": np.array([[0, *ids, 0]], np.int64), "style": self._style(take, len(ids)),
                                        "speed": np.array([take.speed], np.float32)})[0]

    def say(self, text: str, who: Voice, take: Take) -> np.ndarray:
        """int16 mono at 16 kHz, trimmed and at LEVEL_DBFS; pauses inside are silent to the sample."""
        parts = pieces(text)
        closed = hum_kind(text)
        if closed is not None:
            return levelled(trimmed(hum(who.pitch_hz, closed=closed)))
        sounds = []
        for k, part in enumerate(parts):
            if isinstance(part, float):
                sounds.append(np.zeros(round(part * RATE), np.float32))
                continue
            if k < len(parts) - 1 and part[-1] not in ",.;:?!…":
                part += ","  # an unfinished phrase keeps its voice up
            sounds.append(tightened(trimmed(resample_poly(self._say(part, take), 2, 3).astype(np.float32))))
        return levelled(trimmed(np.concatenate(sounds)))


_shared: Synthesiser | None = None


def shared() -> Synthesiser:
    """The process's one synthesiser, loaded at the first use."""
    global _shared
    if _shared is None:
        _shared = Synthesiser()
    return _shared
