"""Whisper base, int8, on CTranslate2, with an audio window shorter than the model's 30 s.

Whisper encodes 30 s whatever it hears. CTranslate2 accepts fewer frames; 8 s cost a quarter and make the same word errors,
if there are some seconds of silence behind the words. On rare inputs the decoder then runs away: the guard sees it (token cap
by duration, a repeated trigram, a very low score) and decodes once more with a window twice as long.

A `prompt` of a few sentences in the domain's own style is worth more than any window: accented commands in road noise were
understood 62 of 72 times with one, 46 of 72 without. It leaks, though: name no places and nothing dangerous in it.
"""
import difflib
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import ctranslate2
import numpy as np
import tokenizers

from cloud_core.speech.errors import BadAudio, BadText, Cancelled
from cloud_core.speech.log_mel import RATE, log_mel
from venus_edge.models import model_dir

LANGUAGES = ("en", "zh")
WINDOW_S, PAD_S, AGAIN_S, FULL_S = 8.0, 4.0, 16.0, 30.0
TOKENS_PER_S = {"en": 7, "zh": 12}
MIN_SCORE = -1.6
"""Mean log-probability below which a short-window result is decoded again: mumbling in noise scores -1 either way."""


@dataclass(frozen=True)
class Transcript:
    """What was heard. `confidence` = exp(mean token log-probability), 0..1; `no_speech` = the model's own probability."""

    text: str
    confidence: float
    no_speech: float
    lang: str = "en"
    redecoded: bool = False
    """The guard fired: the text comes from the longer window."""


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[^\W\d_]+", text.casefold()))


def once(text: str) -> str:
    """A decoder at the end of its sound may say everything twice ("Set it. Set it."): once is enough."""
    words = text.split()
    half = len(words) // 2
    return " ".join(words[:half]) if half and len(words) % 2 == 0 and _plain(" ".join(words[:half])) == _plain(" ".join(words[half:])) else text


def leaked(text: str, prompt: str) -> bool:
    """Whether `text` is (but for its numbers) a sentence of the prompt or the beginning of one, three words or more."""
    said = _plain(text)
    return len(said.split()) >= 3 and any(_plain(sentence).startswith(said) or alike(sentence, text, 0.85) for sentence in re.split(r"[.?!]", prompt))


def alike(a: str, b: str, ratio: float = 0.6) -> bool:
    return difflib.SequenceMatcher(None, _plain(a), _plain(b)).ratio() >= ratio


def as_float(samples: np.ndarray) -> np.ndarray:
    """Mono int16 or float32 to float32 in -1..1; raises BadAudio."""
    if not isinstance(samples, np.ndarray) or samples.ndim != 1:
        raise BadAudio("samples: expected a one-dimensional array (mono)")
    if samples.dtype == np.int16:
        return samples.astype(np.float32) / 32768.0
    if samples.dtype == np.float32:
        if not np.isfinite(samples).all():
            raise BadAudio("samples: NaN or infinite values")
        return samples
    raise BadAudio(f"samples: dtype {samples.dtype}, allowed: int16, float32")


class Recogniser:
    """Loads once, is warmed up, and may be called from several threads (`workers` of them run at the same time)."""

    def __init__(self, path: Path | None = None, threads: int = 1, workers: int = 1):
        path = str(path or model_dir("whisper-base"))
        self._model = ctranslate2.models.Whisper(path, device="cpu", compute_type="int8", intra_threads=threads,
                                                 inter_threads=workers)
        self._tokens = tokenizers.Tokenizer.from_file(f"{path}/tokenizer.json")
        self._tokens_lock = threading.Lock()
        self.transcribe(np.zeros(RATE, np.float32))

    def _id(self, token: str) -> int:
        return self._tokens.token_to_id(token)

    def transcribe(self, samples: np.ndarray, lang: str = "en", prompt: str = "", *, window_s: float = WINDOW_S,
                   max_tokens: int | None = None, guard: bool = True,
                   cancelled: Callable[[], bool] | None = None) -> Transcript:
        """Samples (mono, 16 kHz, int16 or float32, ≤ 30 s) to text.

        `prompt`: words that came before or names to favour. `window_s`: seconds encoded at least; a partial that only
        has to be classified may use less, with few `max_tokens`. `cancelled` is asked between the steps; raises Cancelled.
        """
        if lang not in LANGUAGES:
            raise BadText(f"lang: {lang!r}, allowed: {', '.join(LANGUAGES)}")
        sound = as_float(samples)
        if len(sound) > FULL_S * RATE:
            raise BadAudio(f"samples: {len(sound) / RATE:.1f} s, allowed: at most {FULL_S:.0f} s")
        if not len(sound):
            return Transcript("", 0.0, 1.0, lang)
        seconds = len(sound) / RATE
        pad_s = min(PAD_S, max(0.0, window_s - 1.0))
        result, runaway = self._decode(sound, lang, prompt, min(FULL_S, max(window_s, seconds + pad_s)), max_tokens, cancelled)
        if guard and (runaway or result.confidence < np.exp(MIN_SCORE)):
            again, _ = self._decode(sound, lang, "", min(FULL_S, max(AGAIN_S, 2 * seconds)), max_tokens, cancelled)
            return Transcript(again.text, again.confidence, again.no_speech, lang, True)
        return result

    def _decode(self, sound, lang, prompt, window_s, max_tokens, cancelled) -> tuple[Transcript, bool]:
        features = log_mel(sound, int(window_s * RATE))
        if cancelled is not None and cancelled():
            raise Cancelled("recognition")
        encoded = self._model.encode(ctranslate2.StorageView.from_array(np.ascontiguousarray(features[None])))
        if cancelled is not None and cancelled():
            raise Cancelled("recognition")
        result, ids, cap = self._words(encoded, lang, prompt, max_tokens, len(sound))
        if prompt and leaked(result.text, prompt):
            # The prompt's own sentence came out: believe it only if the sound alone says about the same. Costs a decoding, no encoding.
            plain, plain_ids, _ = self._words(encoded, lang, "", max_tokens, len(sound))
            if not alike(result.text, plain.text):
                result, ids = plain, plain_ids
        looped = any(ids[k:k + 3] == ids[k + 3:k + 6] for k in range(len(ids) - 5))
        runaway = looped or (max_tokens is None and len(ids) >= cap)
        return result, runaway

    def _words(self, encoded, lang, prompt, max_tokens, samples) -> tuple[Transcript, list[int], int]:
        """Encoded sound to words: the transcript, its tokens, and how many were allowed."""
        start = [self._id("<|startoftranscript|>"), self._id(f"<|{lang}|>"), self._id("<|transcribe|>"),
                 self._id("<|notimestamps|>")]
        if prompt:
            with self._tokens_lock:
                words = self._tokens.encode(" " + prompt.strip(), add_special_tokens=False).ids[-64:]
            start = [self._id("<|startofprev|>"), *words, *start]
        cap = max_tokens or int(8 + TOKENS_PER_S[lang] * samples / RATE)
        out = self._model.generate(encoded, [start], beam_size=1, max_length=len(start) + cap, return_scores=True,
                                   return_no_speech_prob=True)[0]
        ids = out.sequences_ids[0]
        with self._tokens_lock:
            text = once(self._tokens.decode(ids).strip())
        return Transcript(text, float(np.exp(out.scores[0])), float(out.no_speech_prob), lang), ids, cap
