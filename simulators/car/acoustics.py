"""The cabin as sound: who and what reaches the microphone how loud, how late and with which reverberation.

A shoebox of a saloon's size (image sources, pyroomacoustics) gives one impulse response from each seat's mouth and from the
loudspeaker to the microphone; they are computed once and cached. People are convolved before they speak, the loudspeaker block by
block. Levels: normal speech of the driver arrives at SPEECH_AT_MIC_DBFS; noise and echo are set in dB against that.
"""
import hashlib
import json
import os
from dataclasses import dataclass

import numpy as np

from device_sdk import Resampler
from venus_edge.paths import cache_dir

MIC_RATE, SPEAKER_RATE = 16_000, 24_000
BLOCK, SPEAKER_BLOCK = MIC_RATE // 100, SPEAKER_RATE // 100
SPEECH_AT_MIC_DBFS = -26.0
"""The driver's normal speech at the microphone: root mean square of its active frames."""
LOUDSPEAKER_DBFS = -24.6
"""The assistant's speech as it is sent, at full volume (measured on its voice: -24.4 to -24.9)."""

SIZE_M = (2.7, 1.45, 1.2)
ABSORPTION = {"ceiling": 0.6, "floor": 0.75, "east": 0.5, "west": 0.5, "north": 0.4, "south": 0.5}
"""Headliner, carpet, windscreen and rear (east, west), side windows and doors (north, south)."""
ORDER = 8
SEATS = {"driver": (1.45, 0.40, 0.95), "passenger": (1.45, 1.05, 0.95), "rear_left": (0.60, 0.40, 0.95),
         "rear_right": (0.60, 1.05, 0.95)}
LOUDSPEAKER = (2.20, 0.72, 0.45)
MICROPHONE = (2.00, 0.72, 1.12)
LENGTH = MIC_RATE * 12 // 100
"""Samples kept of a response: 120 ms, more than the cabin rings."""
_FRACTION = 40
"""pyroomacoustics puts every path this many samples late (half of its fractional-delay filter)."""


@dataclass(frozen=True)
class CabinSettings:
    """`noise_db_at_50`: road noise at 50 km/h against the driver's speech at the microphone; `echo_db`: the assistant's voice
    against it at full volume; `dac_delay_ms`: from handing a block to the DAC until it sounds."""

    noise_db_at_50: float = -13.0
    echo_db: float = 0.0
    dac_delay_ms: float = 20.0


NOISE_FILTERS = {"rumble": (1, 60, "low"), "tyres": (2, (200, 1500), "band"), "cut": (1, 40, "high")}
"""Order, corner frequencies (Hz) and kind of what shapes the road noise; no cabin microphone passes less than `cut`."""
NOISE_LENGTH = MIC_RATE // 8


def _compute() -> dict[str, np.ndarray]:
    import pyroomacoustics as pra
    from scipy import signal

    room = pra.ShoeBox(SIZE_M, fs=MIC_RATE, max_order=ORDER, air_absorption=True,
                       materials={wall: pra.Material(absorption, 0.1) for wall, absorption in ABSORPTION.items()})
    for place in (*SEATS.values(), LOUDSPEAKER):
        room.add_source(list(place))
    room.add_microphone(list(MICROPHONE))
    room.compute_rir()
    responses = {}
    for name, response in zip((*SEATS, "loudspeaker"), room.rir[0]):
        kept = np.zeros(LENGTH, np.float32)
        cut = np.asarray(response, np.float32)[_FRACTION:_FRACTION + LENGTH]
        kept[:len(cut)] = cut
        responses[name] = kept
    impulse = np.zeros(NOISE_LENGTH)
    impulse[0] = 1.0
    for name, (order, corners, kind) in NOISE_FILTERS.items():
        shape = signal.sosfilt(signal.butter(order, corners, kind, fs=MIC_RATE, output="sos"), impulse)
        responses[name] = (shape / np.sqrt(np.sum(shape ** 2))).astype(np.float32)  # white noise of unit power keeps it
    return responses


def responses() -> dict[str, np.ndarray]:
    """float32[LENGTH] at 16 kHz from each seat and from "loudspeaker" to the microphone, and float32[NOISE_LENGTH] of each of
    NOISE_FILTERS; cached under `<cache>/cabin`, so that a start needs neither the room model nor the filter design."""
    key = json.dumps([SIZE_M, ABSORPTION, ORDER, SEATS, LOUDSPEAKER, MICROPHONE, LENGTH, NOISE_FILTERS, NOISE_LENGTH, 2])
    path = cache_dir() / "cabin" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.npz"
    try:
        with np.load(path) as stored:
            return {name: stored[name] for name in (*SEATS, "loudspeaker", *NOISE_FILTERS)}
    except (OSError, ValueError, KeyError):
        found = _compute()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.npz")
    np.savez(partial, **found)
    os.replace(partial, path)
    return found


def _speech_gain(response: np.ndarray) -> float:
    """Amplitude gain of a response for speech: weighted with its long-term spectrum (flat from 120 to 550 Hz, then -9 dB an octave)."""
    hertz = np.fft.rfftfreq(8192, 1 / MIC_RATE)
    weight = np.where(hertz < 120, 0.0, (550 / np.maximum(hertz, 550)) ** 3.0)
    return float(np.sqrt((np.abs(np.fft.rfft(response, 8192)) ** 2 * weight).sum() / weight.sum()))


class Seats:
    """People at the microphone: whole utterances, convolved before they are spoken."""

    def __init__(self, settings: CabinSettings):
        found = responses()
        gain = 10 ** ((SPEECH_AT_MIC_DBFS + 26.0) / 20) / _speech_gain(found["driver"])  # utterances come at -26 dBFS
        self._responses = {seat: found[seat] * gain for seat in SEATS}

    def at_microphone(self, samples: np.ndarray, seat: str) -> np.ndarray:
        """int16 at the mouth in, float32 at the microphone out (int16 scale), longer by the cabin's tail."""
        length = len(samples) + LENGTH - 1
        size = 1 << (length - 1).bit_length()
        spectrum = np.fft.rfft(samples.astype(np.float32), size) * np.fft.rfft(self._responses[seat], size)
        return np.fft.irfft(spectrum, size)[:length].astype(np.float32)


class Loudspeaker:
    """What the loudspeaker plays, as it arrives at the microphone: 240 samples at 24 kHz in, 160 at 16 kHz out, block by block.

    A little saturation, then the cabin. Overlap-add: the tails of earlier blocks ring into the later ones.
    """

    SATURATION = 0.6
    """Full scale comes out 1 dB weaker; 0 would be a perfect loudspeaker."""

    def __init__(self, settings: CabinSettings):
        response = responses()["loudspeaker"]
        wanted_db = SPEECH_AT_MIC_DBFS + settings.echo_db - LOUDSPEAKER_DBFS
        response = response * 10 ** (wanted_db / 20) / _speech_gain(response)
        self._size = 1 << (LENGTH + BLOCK - 2).bit_length()
        self._spectrum = np.fft.rfft(response.astype(np.float32), self._size)
        self._tail = np.zeros(self._size, np.float32)
        self._resample = Resampler(SPEAKER_RATE, MIC_RATE)
        self._ringing = 0

    def __call__(self, block: np.ndarray) -> np.ndarray:
        quiet = not block.any()
        self._ringing = max(0, self._ringing - 1) if quiet else LENGTH // BLOCK + 2
        sound = self._resample(block)
        if quiet and not self._ringing:
            return np.zeros(BLOCK, np.float32)
        level = self.SATURATION / 32768.0
        pressed = np.tanh(sound.astype(np.float32) * level) / level
        self._tail += np.fft.irfft(np.fft.rfft(pressed, self._size) * self._spectrum, self._size).astype(np.float32)
        out = self._tail[:BLOCK].copy()
        self._tail[:-BLOCK] = self._tail[BLOCK:]
        self._tail[-BLOCK:] = 0
        return out


class RoadNoise:
    """Rumble, tyres, engine and a little hiss, seeded; the level follows the speed by 30·log10(v), above a fan's floor."""

    FLOOR_DB = -22.0
    """The parked car (fan, electronics) against the noise at 50 km/h."""
    _CHUNK = MIC_RATE // 10

    def __init__(self, settings: CabinSettings, seed: int = 0):
        self._random = np.random.default_rng(seed)
        self._rms = 32768 * 10 ** ((SPEECH_AT_MIC_DBFS + settings.noise_db_at_50) / 20)
        shapes = responses()
        self._size = 1 << (NOISE_LENGTH + self._CHUNK - 2).bit_length()
        self._spectra = {name: np.fft.rfft(shapes[name], self._size) for name in NOISE_FILTERS}
        self._tails = {name: np.zeros(self._size) for name in NOISE_FILTERS}
        self._phase, self._time, self._gain = 0.0, 0, None
        self._chunk, self._at = np.zeros(0, np.float32), 0

    def _filtered(self, name: str, noise: np.ndarray) -> np.ndarray:
        """Overlap-add: a chunk's tail rings into the next ones."""
        tail = self._tails[name]
        tail += np.fft.irfft(np.fft.rfft(noise, self._size) * self._spectra[name], self._size)
        out = tail[:self._CHUNK].copy()
        tail[:-self._CHUNK] = tail[self._CHUNK:]
        tail[-self._CHUNK:] = 0
        return out

    def _next_chunk(self, kmh: float) -> np.ndarray:
        """100 ms of about unit power."""
        n = self._CHUNK
        t = (self._time + np.arange(n)) / MIC_RATE
        self._time += n
        engine_hz = 28 + 0.5 * kmh + 1.5 * np.sin(2 * np.pi * 0.13 * t)
        phase = self._phase + 2 * np.pi * np.cumsum(engine_hz) / MIC_RATE
        self._phase = float(phase[-1] % (2 * np.pi))
        engine = sum(np.sin(k * phase) / k for k in range(1, 7))
        swell = 1 + 0.3 * np.sin(2 * np.pi * 0.4 * t + 1)
        rumble, tyres, hiss = self._random.standard_normal((3, n))
        mixed = self._filtered("rumble", rumble) + 0.5 * swell * self._filtered("tyres", tyres) + 0.25 * engine + 0.06 * hiss
        return (self._filtered("cut", mixed) / 0.95).astype(np.float32)

    def level(self, kmh: float) -> float:
        """Root mean square (int16 scale) at a speed."""
        road = (max(kmh, 0.0) / 50.0) ** 3.0  # 30·log10 of the speed is the third power of it in power
        return self._rms * float(np.sqrt(road + 10 ** (self.FLOOR_DB / 10)))

    def __call__(self, kmh: float) -> np.ndarray:
        """The next 10 ms: float32[160], int16 scale."""
        if self._at >= len(self._chunk):
            self._chunk, self._at = self._next_chunk(kmh), 0
        target = self.level(kmh)
        ramp = np.linspace(target if self._gain is None else self._gain, target, BLOCK, dtype=np.float32)
        self._gain = target
        out = self._chunk[self._at:self._at + BLOCK] * ramp
        self._at += BLOCK
        return out
