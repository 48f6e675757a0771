"""Test doubles for users of the cascade: a pool that works at once, a device that plays what it is given, a cabin's noise."""
import os
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field

import numpy as np

from cloud_core.front_end import MIC_RATE, AdmittedReply, Decision, PlayoutMark, UnitInput
from cloud_core.speech.kokoro import KokoroVoice
from venus_edge.paths import cache_dir


class InlinePool(Executor):
    """Runs each job inside submit, so that a virtual stream is deterministic. A job given up before it ran can't happen."""

    def submit(self, fn, /, *args, **kwargs) -> Future:
        future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as err:
            future.set_exception(err)
        return future


class HeldPool(Executor):
    """Keeps jobs until `run()`: for tests of what happens while a recognition is under way."""

    def __init__(self):
        self.jobs: list = []

    def submit(self, fn, /, *args, **kwargs) -> Future:
        future = Future()
        self.jobs.append((future, fn, args, kwargs))
        return future

    def run(self) -> None:
        jobs, self.jobs = self.jobs, []
        for future, fn, args, kwargs in jobs:
            future.set_result(fn(*args, **kwargs))


def cabin_noise(samples: int, seed: int = 0) -> np.ndarray:
    """Road noise of unit deviation: rumble falling from 60 Hz, a tyre band at 200-1500 Hz, a little hiss. float32, 16 kHz."""
    rng = np.random.default_rng(seed)
    freq = np.fft.rfftfreq(samples, 1 / MIC_RATE)

    def shaped(gain: np.ndarray) -> np.ndarray:
        wave = np.fft.irfft(np.fft.rfft(rng.standard_normal(samples)) * gain, samples)
        return wave / (wave.std() + 1e-9)

    rumble = shaped(1 / np.sqrt(1 + (freq / 60) ** 2))
    tyre = shaped(((freq > 200) & (freq < 1500)).astype(float))
    swell = 1 + 0.35 * np.sin(2 * np.pi * 0.4 * np.arange(samples) / MIC_RATE + seed)
    noise = rumble + 0.5 * swell * tyre + 0.06 * rng.standard_normal(samples)
    return (noise / noise.std()).astype(np.float32)


def speech_level(wave: np.ndarray) -> float:
    """Root mean square of the active part."""
    frames = wave[:len(wave) // 160 * 160].reshape(-1, 160).astype(np.float64)
    energy = (frames ** 2).mean(1)
    return float(np.sqrt(energy[energy > energy.max() * 1e-3].mean()))


def in_cabin(wave: np.ndarray, snr_db: float = 10.0, lead_s: float = 0.6, tail_s: float = 2.0, seed: int = 0, level: float = 0.05) -> np.ndarray:
    """The speech at `level` (active part, of full scale) in road noise, with silence around it: int16."""
    sound = np.concatenate([np.zeros(int(lead_s * MIC_RATE)), wave, np.zeros(int(tail_s * MIC_RATE))])
    sound = sound / speech_level(wave) * level + cabin_noise(len(sound), seed) * level * 10 ** (-snr_db / 20)
    return (np.clip(sound, -1, 1) * 32767).astype(np.int16)


class SpokenPhrases:
    """Phrases in a voice that isn't the assistant's, as 16 kHz waves; made once and kept in the cache (about 1 s each)."""

    def __init__(self, voice: str = "jm_kumo"):
        self._voice, self._path = voice, cache_dir() / "bench" / f"phrases-{voice}.npz"
        self._kept = dict(np.load(self._path)) if self._path.exists() else {}
        self._speaker: KokoroVoice | None = None

    def wave(self, *parts: str, pause_s: float = 0.7) -> np.ndarray:
        """The parts with a pause between them; all but the last are spoken as if more followed."""
        waves = []
        for k, part in enumerate(parts):
            text = part if k == len(parts) - 1 else part + ","
            if text not in self._kept:
                self._speaker = self._speaker or KokoroVoice(self._voice)
                wave = self._speaker.say(text)
                size = len(wave) * 2 // 3  # 24 to 16 kHz by spectrum
                self._kept[text] = (np.fft.irfft(np.fft.rfft(wave)[:size // 2 + 1], size) * (size / len(wave))).astype(np.float32)
            waves += [self._kept[text], np.zeros(int(pause_s * MIC_RATE), np.float32)]
        return np.concatenate(waves[:-1])

    def keep(self) -> None:
        """Write what was made since to the cache, whole or not at all."""
        if self._speaker is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            partial = self._path.with_suffix(f".{os.getpid()}.npz")
            np.savez(partial, **self._kept)
            os.replace(partial, self._path)


@dataclass
class VirtualDevice:
    """A microphone and a loudspeaker on one clock: numbers units, plays segments after `latency_ms`, reports the playout."""

    session: object
    unit_ms: int = 20
    pos: int = 0
    seq: int = -1
    latency_ms: float = 50.0
    queue: list = field(default_factory=list)
    """[seg, samples held, rate, begins at pos, last seen]"""
    marks: list = field(default_factory=list)
    segments: dict = field(default_factory=dict)
    """seg -> list of SegmentChunk"""

    @property
    def unit(self) -> int:
        return self.unit_ms * MIC_RATE // 1000

    def step(self, audio: np.ndarray, gated: bool = False, replies: tuple[AdmittedReply, ...] = (), **more) -> Decision:
        self.seq += 1
        marks, self.marks = tuple(self.marks), []
        decision = self.session.step(UnitInput(self.seq, self.pos, audio, gated, playout=marks, replies=replies, **more))
        self.pos += self.unit
        self._play(decision)
        return decision

    @property
    def playing(self) -> bool:
        return bool(self.queue)

    def _play(self, decision: Decision) -> None:
        for chunk in decision.segments:
            self.segments.setdefault(chunk.seg, []).append(chunk)
            for entry in self.queue:
                if entry[0] == chunk.seg:
                    entry[1] += len(chunk.samples)
                    entry[4] = chunk.last
                    break
            else:
                self.queue.append([chunk.seg, len(chunk.samples), chunk.rate, self.pos + int(self.latency_ms * MIC_RATE / 1000), chunk.last])
        for overlap in decision.overlaps:
            if overlap.verdict == "flush":
                for entry in [e for e in self.queue if e[0] == overlap.seg]:
                    self.marks.append(PlayoutMark(entry[0], self._played(entry), entry[2], "flushed"))
                    self.queue.remove(entry)
        if self.queue:
            entry = self.queue[0]
            played = self._played(entry)
            done = entry[4] and played >= entry[1]
            self.marks.append(PlayoutMark(entry[0], played, entry[2], "ended" if done else "playing" if played else "queued"))
            if done:
                self.queue.pop(0)

    def _played(self, entry) -> int:
        return min(entry[1], max(0, int((self.pos - entry[3]) * entry[2] / MIC_RATE)))

    def spoken(self) -> list[str]:
        """The text of every segment, in order."""
        return ["".join(s.text for c in chunks for s in c.spans) for chunks in self.segments.values()]
