"""A second family of voices (Kokoro-82M, int8): the simulated people's, unlike the assistant's. A tool, too slow for an answer.

Fed with English phonemes of the assistant's own text front end, which shares Kokoro's alphabet; the speakers are Japanese, so
the English has an accent. About half of real time on one core.
"""
import json
import threading
from pathlib import Path

import numpy as np
import onnxruntime
from hibari.g2p import G2P

from cloud_core.speech.errors import BadText
from venus_edge.models import model_dir

RATE = 24_000
VOICES = ("jm_kumo", "jf_alpha", "jf_gongitsune", "jf_nezumi", "jf_tebukuro")
MAX_TOKENS = 508


class KokoroVoice:
    """`say(text)` -> float32 mono at 24 kHz, with the model's silence around it cut off."""

    rate = RATE

    def __init__(self, voice: str = "jm_kumo", threads: int = 1, path: Path | None = None):
        if voice not in VOICES:
            raise BadText(f"voice: {voice!r}, allowed: {', '.join(VOICES)}")
        path = path or model_dir("kokoro")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
        self._net = onnxruntime.InferenceSession(str(path / "model.onnx"), options, providers=["CPUExecutionProvider"])
        self._vocab = json.loads((path / "vocab.json").read_text(encoding="utf-8"))["vocab"]
        self._styles = np.load(path / "voices_ja.npz")[voice]
        self._g2p = G2P(british=False)
        self._lock = threading.Lock()

    def say(self, text: str, speed: float = 1.0) -> np.ndarray:
        """Raises BadText for a text with no sounds or longer than the model takes (about 40 s of speech)."""
        return self.say_phonemes(self._g2p(" ".join(text.split())), speed)

    def say_phonemes(self, phonemes: str, speed: float = 1.0) -> np.ndarray:
        """The same from phonemes (misaki's alphabet): for sounds that no spelling gives, such as a hummed "mm-hmm"."""
        tokens = [self._vocab[c] for c in phonemes if c in self._vocab]
        if not 0 < len(tokens) <= MAX_TOKENS:
            raise BadText(f"text: {len(tokens)} phonemes, allowed: 1 to {MAX_TOKENS}")
        with self._lock:
            wave = self._net.run(None, {"tokens": np.asarray([[0, *tokens, 0]], np.int64),
                                        "style": self._styles[len(tokens)].astype(np.float32).reshape(1, 256),
                                        "speed": np.asarray([speed], np.float32)})[0].reshape(-1)
        loud = np.flatnonzero(np.abs(wave) > 0.01 * np.abs(wave).max())
        return np.ascontiguousarray(wave[loud[0]:loud[-1] + 1], np.float32)
