"""Closed-mouth and open listener's signals ("mm-hmm", "uh-huh") by source and filter, in the pitch of a given voice.

Kokoro reads letters and can't hum: Whisper hears "Muhammad" or "ma'am" in its tries. Two short pulse trains with a breath
between them, falling then rising, through the resonances of a nasal tract (or of an open vowel), are heard as what they are.
"""
import numpy as np
from scipy.signal import lfilter

RATE = 16_000
FIRST_S = 0.17
LOW_S, HIGH_S = (0.06, 0.25), (0.10, 0.31)
"""Breath and second part, of low voices and of high ones with the mouth closed: what the recogniser best understands through an echo canceller."""
NASAL = ((270, 60), (1100, 180), (2200, 250), (3000, 300))
"""Resonances (Hz, bandwidth) of a closed mouth; the mouth's side branch takes out ZERO."""
OPEN = ((640, 90), (1190, 110), (2390, 170), (3300, 250))
"""Resonances of the vowel in "huh"."""
HIGH_HZ, SHORT_TRACT = 170, 1.1
"""Above this pitch the voice is a high one: its vocal tract is shorter, its open resonances higher by this factor."""
ZERO = (750, 200)


def _poles(frequency: float, bandwidth: float) -> np.ndarray:
    radius = np.exp(-np.pi * bandwidth / RATE)
    return np.array([1.0, -2 * radius * np.cos(2 * np.pi * frequency / RATE), radius * radius])


def _envelope(samples: int, attack_s: float, release_s: float) -> np.ndarray:
    shape = np.ones(samples)
    attack, release = int(attack_s * RATE), int(release_s * RATE)
    shape[:attack] = np.sin(np.linspace(0, np.pi / 2, attack))
    shape[-release:] *= np.cos(np.linspace(0, np.pi / 2, release))
    return shape


def hum(pitch_hz: float, *, closed: bool = True, seed: int = 0) -> np.ndarray:
    """About half a second of float32 at 16 kHz, peak 0.5: "mm-hmm" (`closed`) or "uh-huh", at a speaker's usual pitch."""
    noise = np.random.default_rng(seed)
    parts = (FIRST_S, *(HIGH_S if closed and pitch_hz > HIGH_HZ else LOW_S))
    first, breath, second = (int(s * RATE) for s in parts)
    total = first + breath + second
    pitch = pitch_hz * np.concatenate([
        np.linspace(1.0, 0.9, first), np.linspace(0.9, 1.04, breath),
        1.04 + 0.22 * np.sin(np.linspace(0, 0.6 * np.pi, second))])
    pitch *= 1 + 0.008 * np.clip(np.cumsum(noise.normal(0, 0.03, total)), -1, 1)  # no voice holds a pitch exactly
    phase = np.cumsum(pitch) / RATE % 1
    opening = np.where(phase < 0.6, 0.5 - 0.5 * np.cos(np.pi * phase / 0.6),
                       np.where(phase < 0.75, np.cos(np.pi * (phase - 0.6) / 0.3), 0.0))  # Rosenberg's glottal pulse
    voiced = np.concatenate([_envelope(first, 0.03, 0.04), np.full(breath, 0.03), 1.1 * _envelope(second, 0.03, 0.12)])
    airy = np.zeros(total)
    airy[first - 400:first + breath + 400] = np.hanning(breath + 800)
    sound = np.diff(opening, prepend=0.0) * voiced + noise.normal(0, 0.02, total) * airy * (1.0 if closed else 2.0)
    scale = SHORT_TRACT if pitch_hz > HIGH_HZ and not closed else 1.0
    for frequency, bandwidth in NASAL if closed else OPEN:
        poles = _poles(scale * frequency, bandwidth)
        sound = lfilter([poles.sum()], poles, sound)
    if closed:
        zeros = _poles(*ZERO)
        sound = lfilter(zeros / zeros.sum(), [1.0], sound)
    return (0.5 * sound / np.abs(sound).max()).astype(np.float32)
