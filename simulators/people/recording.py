"""A recording of a real person as utterances: any usual WAV in, speech at 16 kHz out, cut at long pauses."""
import warnings
from pathlib import Path

import numpy as np
from scipy.io import wavfile
from scipy.signal import resample_poly

from simulators.people.catalogue import RATE
from venus_edge.errors import ConfigError

ALLOWED = "PCM WAV (8, 16, 24 or 32 bit integer, or 32 or 64 bit float), mono or stereo, 8000 to 96000 Hz, 0.2 s to 15 min"
MAX_BYTES = 400 * 1024 * 1024
MIN_S, MAX_S = 0.2, 900.0
PAUSE_S = 1.2
"""Silence longer than this parts two utterances."""
EDGE_S = 0.12
"""Sound kept around an utterance: soft first and last sounds lie below the threshold."""
MIN_UTTERANCE_S = 0.15
_FRAME = RATE // 50


def read(path: Path | str) -> np.ndarray:
    """The whole recording as int16 mono at 16 kHz (loudness as it is; float beyond full scale is brought down to it).

    Raises ConfigError that names the file, what is wrong and what is allowed.
    """
    path = Path(path)

    def refuse(why: str) -> ConfigError:
        return ConfigError(f"{path}: {why}; allowed: {ALLOWED}")

    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise refuse(f"{size // 2**20} MiB is too long")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", wavfile.WavFileWarning)
            rate, data = wavfile.read(path)
    except OSError as err:
        raise ConfigError(f"{path}: can't be read: {err.strerror or err}") from None
    except Exception as err:  # a broken file fails in many ways inside the reader
        raise refuse(f"not readable as WAV ({' '.join(str(err).split())[:120] or type(err).__name__})") from None
    if not 8000 <= rate <= 96_000:
        raise refuse(f"{rate} Hz")
    if data.ndim == 2 and data.shape[1] > 2:
        raise refuse(f"{data.shape[1]} channels")
    seconds = len(data) / rate
    if not MIN_S <= seconds <= MAX_S:
        raise refuse(f"{seconds:.2f} s long")
    if data.dtype == np.uint8:
        sound = (data.astype(np.float32) - 128) / 128
    elif np.issubdtype(data.dtype, np.integer):
        sound = data.astype(np.float32) / -float(np.iinfo(data.dtype).min)
    else:
        sound = data.astype(np.float32)
        if not np.isfinite(sound).all():
            raise refuse("it holds values that are no numbers")
    if sound.ndim == 2:
        sound = sound.mean(axis=1)
    if rate != RATE:
        common = np.gcd(rate, RATE)
        sound = resample_poly(sound, RATE // common, rate // common)
    peak = float(np.abs(sound).max())
    return np.round(sound * (32767 / max(1.0, peak))).astype(np.int16)


def _speech_frames(samples: np.ndarray) -> np.ndarray:
    """bool per 20 ms: louder than the recording's own floor, and not far below its speech."""
    frames = samples[:len(samples) // _FRAME * _FRAME].astype(np.float32).reshape(-1, _FRAME)
    level = 10 * np.log10((frames ** 2).mean(axis=1) + 1e-3)
    loud, floor = np.percentile(level, 95), np.percentile(level, 10)
    return level > min(max(floor + 8, loud - 35), loud - 12)


def split(samples: np.ndarray, pause_s: float = PAUSE_S) -> list[np.ndarray]:
    """int16 at 16 kHz cut at silences longer than `pause_s`; each utterance at the level of normal speech."""
    from simulators.people.voices import levelled

    active = np.flatnonzero(_speech_frames(samples))
    if not len(active):
        return []
    parts = np.split(active, np.flatnonzero(np.diff(active) * _FRAME > pause_s * RATE) + 1)
    edge, out = round(EDGE_S * RATE), []
    for part in parts:
        if len(part) * _FRAME < MIN_UTTERANCE_S * RATE:
            continue  # a click, a door
        first, last = max(0, part[0] * _FRAME - edge), min(len(samples), (part[-1] + 1) * _FRAME + edge)
        out.append(levelled(samples[first:last]))
    return out


def utterances(path: Path | str, pause_s: float = PAUSE_S) -> list[np.ndarray]:
    """What the person in a WAV file says, one array for each utterance. Raises ConfigError, also where nobody speaks."""
    samples = read(path)
    found = split(samples, pause_s) if np.abs(samples).max(initial=0) > 30 else []
    if not found:
        raise ConfigError(f"{path}: no speech in it; allowed: {ALLOWED}, with a person speaking")
    return found
