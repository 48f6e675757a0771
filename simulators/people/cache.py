"""Utterances made once: WAV and verdict by hash of text, voice and version under `<cache>/voices`; bounded, oldest use first out.

A drive takes its utterances from here; `prepare.py` fills it beforehand, so that nobody synthesises while the clock runs.
"""
import hashlib
import json
import os
import wave
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from simulators.people import catalogue
from venus_edge.metrics import METRICS
from venus_edge.paths import cache_dir

MAX_FILES = 2000
"""Utterances kept (about 100 kB each)."""


@dataclass(frozen=True)
class Verdict:
    """How an utterance turned out: `take` of the voice that was chosen, what the recogniser heard, `score` 0..1."""

    text: str
    voice: str
    take: int
    heard: str
    score: float
    seconds: float


class VoiceCache:
    """`get` gives an utterance, made now if it isn't there (needs the models; the recogniser is loaded at the first miss)."""

    def __init__(self, folder: Path | None = None, synthesiser=None, recogniser=None, max_files: int = MAX_FILES):
        self.folder = folder or cache_dir() / "voices"
        self._synthesiser, self._recogniser, self._max = synthesiser, recogniser, max_files

    def _path(self, text: str, voice: str) -> Path:
        key = json.dumps([catalogue.VERSION, voice, " ".join(text.split())])
        return self.folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.wav"

    def has(self, text: str, voice: str) -> bool:
        path = self._path(text, voice)
        return path.is_file() and path.with_suffix(".json").is_file()

    def get(self, text: str, voice: str) -> np.ndarray:
        """int16 mono at 16 kHz. Raises ConfigError for an unknown voice or a text that can't be said."""
        catalogue.voice(voice), catalogue.pieces(text)
        found = self._read(self._path(text, voice))
        if found is None:
            self.make(text, voice)
            found = self._read(self._path(text, voice))
        return found

    def verdict(self, text: str, voice: str) -> Verdict | None:
        try:
            return Verdict(**json.loads(self._path(text, voice).with_suffix(".json").read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def _read(self, path: Path) -> np.ndarray | None:
        if not path.with_suffix(".json").is_file():
            return None
        try:
            with wave.open(str(path), "rb") as f:
                if (f.getframerate(), f.getsampwidth(), f.getnchannels()) != (catalogue.RATE, 2, 1):
                    return None
                samples = np.frombuffer(f.readframes(f.getnframes()), "<i2").astype(np.int16)
                if len(samples) != f.getnframes():
                    return None
        except (OSError, EOFError, wave.Error, ValueError):  # torn by a crash: made anew
            return None
        os.utime(path)
        return samples

    def make(self, text: str, voice: str) -> Verdict:
        """Synthesise with the voice's takes in turn until the recogniser hears every word; the best one is kept."""
        from simulators.people import fit, voices  # models and their runtimes: only where something is missing

        if self._synthesiser is None:
            self._synthesiser = voices.shared()
        if self._recogniser is None:
            from cloud_core.speech import Recogniser
            self._recogniser = Recogniser(threads=2)
        who, best = catalogue.voice(voice), None
        for number, take in enumerate(who.takes):
            samples = self._synthesiser.say(text, who, take)
            verdict = fit.judge(text, samples, self._recogniser)
            if best is None or verdict.score > best[0].score:
                best = (verdict, number, samples)
            if verdict.score >= fit.GOOD:
                break
        verdict, number, samples = best
        kept = Verdict(text, voice, number, verdict.heard, round(verdict.score, 3), round(len(samples) / catalogue.RATE, 3))
        self._write(self._path(text, voice), samples, kept)
        METRICS.add("venus_people_synthesised_total")
        return kept

    def _write(self, path: Path, samples: np.ndarray, verdict: Verdict) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.part")
        with wave.open(str(partial), "wb") as f:
            f.setparams((1, 2, catalogue.RATE, 0, "NONE", ""))
            f.writeframes(samples.astype("<i2").tobytes())
        os.replace(partial, path)
        partial.write_text(json.dumps(asdict(verdict), ensure_ascii=False), encoding="utf-8")
        os.replace(partial, path.with_suffix(".json"))
        self._trim(keep=path)

    def _trim(self, keep: Path) -> None:
        files = sorted(self.folder.glob("*.wav"), key=lambda p: p.stat().st_mtime)
        for old in files[:max(0, len(files) - self._max)]:
            if old != keep:
                old.unlink(missing_ok=True)
                old.with_suffix(".json").unlink(missing_ok=True)
                METRICS.add("venus_people_cache_evicted_total")


def synthesise(text: str, voice: str) -> np.ndarray:
    """An occupant's utterance: int16 mono at 16 kHz, from the cache where it is there."""
    return VoiceCache().get(text, voice)
