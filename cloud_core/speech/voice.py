"""The assistant's English voice: hibari-tts, 24 kHz, with the exact samples of every word.

The alignment is the synthesiser's own: the network sums its phoneme durations before it draws the spectrum, and we ask for
that sum as one more output (a protobuf message appended to another is merged into it, so no model tool is needed). A
release of hibari whose graph names it otherwise still speaks: words then share their clause in proportion to their phonemes.
"""
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

import hibari
import numpy as np
import onnxruntime
from hibari import dsp

from cloud_core.speech.errors import BadText

RATE = hibari.SAMPLE_RATE
_DURATION_SUM = b"/CumSum_output_0"
_INPUTS = ("ids", "speed")
LEVEL = 0.5
"""Peak of the loudest sample, of full scale: head room for the device's own volume."""
SILENCE = 0.004
LEAD = RATE * 15 // 1000
TAILS = {".": RATE * 220 // 1000, ",": RATE * 120 // 1000, "": RATE * 30 // 1000}
"""Samples kept before the first and behind the last one that is louder than SILENCE: after a sentence, a comma, a mere cut."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)")
_CLAUSE = re.compile(r"(?<=[,;:])\s+(?=\S)")
_JOINT = re.compile(r"\s+(?=(?:and|but|or|because|which|with|on|in|at|from|for|to|into|after|before|until)\b)")
_TITLES = ("Mr.", "Mrs.", "Ms.", "Dr.", "St.", "Av.", "No.", "Bd.")
_INITIAL = re.compile(r"\b[A-Z]\.$")
"""The dot behind a person's initial ("John F. Kennedy") ends no sentence."""
FIRST_CHARS, REST_CHARS, MIN_CHARS = 48, 160, 12


@dataclass(frozen=True)
class TextSpan:
    """A word as written (with its punctuation and the space behind it) and its samples [start, end)."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Speech:
    """int16 mono samples at `rate`; the spans' texts joined are the text, their samples tile [0, len)."""

    samples: np.ndarray
    rate: int
    spans: tuple[TextSpan, ...]


def split_clauses(text: str, first_chars: int = FIRST_CHARS, rest_chars: int = REST_CHARS) -> list[str]:
    """Pieces to synthesise one after the other; joined with a space they are the text (white space normalised).

    Whole sentences where they are short. The first piece is kept short, cut at a comma or before a joining word, so that
    it can be heard while the rest is made.
    """
    sentences: list[str] = []
    for part in _SENTENCE.split(" ".join(text.split())):
        if sentences and (sentences[-1].endswith(_TITLES) or _INITIAL.search(sentences[-1])):
            sentences[-1] += " " + part
        elif part:
            sentences.append(part)
    pieces: list[str] = []
    for sentence in sentences:
        while sentence:
            limit = rest_chars if pieces else first_chars
            if len(sentence) <= limit:
                pieces.append(sentence)
                break
            cut = _cut(sentence, limit)
            pieces.append(sentence[:cut].rstrip())
            sentence = sentence[cut:].lstrip()
    return pieces


def _cut(sentence: str, limit: int) -> int:
    """The last good place to cut at or below `limit`; else the first one beyond, else the end."""
    for pattern in (_CLAUSE, _JOINT):
        places = [m.start() for m in pattern.finditer(sentence) if MIN_CHARS <= m.start() <= len(sentence) - MIN_CHARS]
        below = [p for p in places if p <= limit]
        if below:
            return below[-1]
        if pattern is _JOINT and places and places[0] <= 2 * limit:
            return places[0]
    space = sentence.rfind(" ", MIN_CHARS, 2 * limit)
    return space if len(sentence) > 2 * limit and space > 0 else len(sentence)


def _sound(wave: np.ndarray, text: str) -> tuple[int, int]:
    """The part to keep of a sentence: the model puts about 300 ms of silence before and 450 ms behind, which is only delay."""
    loud = np.flatnonzero(np.abs(wave) > SILENCE)
    if not len(loud):
        return 0, len(wave)
    end = text[-1:]
    tail = TAILS["." if end in ".!?" else "," if end in ",;:" else ""]
    return max(0, int(loud[0]) - LEAD), min(len(wave), int(loud[-1]) + tail)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _with_output(model: bytes, name: bytes) -> bytes:
    """The ONNX model with one more graph output: ModelProto.graph (7) { GraphProto.output (12) { ValueInfoProto.name (1) } }."""
    for field in (0x0A, 0x62, 0x3A):
        name = bytes([field]) + _varint(len(name)) + name
    return model + name


class Voice:
    """Loads once and is warmed up; one synthesis at a time (a lock keeps others waiting, about 30 ms each)."""

    rate = RATE
    languages = ("en",)

    def __init__(self, threads: int = 1):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = threads
        options.log_severity_level = 3
        self._hibari = hibari.Hibari(threads=threads)
        model = Path(self._hibari.model_path).read_bytes()
        try:
            self._net = onnxruntime.InferenceSession(_with_output(model, _DURATION_SUM), options, providers=["CPUExecutionProvider"])
            self.exact_alignment = True
        except Exception:  # onnxruntime raises its own types, by release
            self._net, self.exact_alignment = self._hibari.sess, False
        self._lock = threading.Lock()
        self.say("Okay, warming up the voice now.")

    def say(self, text: str, lang: str = "en") -> Speech:
        """One piece of text to speech; use `stream` for the first clause sooner. Raises BadText for another language."""
        if lang not in self.languages:
            raise BadText(f"lang: {lang!r}, allowed: {', '.join(self.languages)}")
        with self._lock:
            return self._say(" ".join(text.split()))

    def stream(self, text: str, lang: str = "en") -> Iterator[Speech]:
        """Clause by clause; each Speech numbers its samples from 0. All but the last text end with a space."""
        clauses = split_clauses(text)
        for k, clause in enumerate(clauses):
            speech = self.say(clause, lang)
            if k < len(clauses) - 1 and speech.spans:
                last = speech.spans[-1]
                speech = Speech(speech.samples, speech.rate, (*speech.spans[:-1], TextSpan(last.text + " ", last.start, last.end)))
            yield speech

    def _say(self, text: str) -> Speech:
        sounds, spans, start = [], [], 0
        sentences = hibari.Hibari.split_sentences(text)
        for k, sentence in enumerate(sentences):
            phonemes = self._hibari.g2p(sentence)
            if not phonemes:
                continue
            ids = self._hibari.ids(phonemes)
            out = self._net.run(None, {"ids": np.asarray([ids], np.int64), "speed": np.ones(1, np.float32)})
            wave = dsp.synth(*(o[0] for o in out[:6]), np.random.default_rng(len(ids)))
            ends = out[6].reshape(-1) if self.exact_alignment else np.arange(1, len(ids) + 1)
            ends = (ends * (len(wave) / ends[-1])).astype(int)  # durations count frames of their own
            first, last = _sound(wave, sentence)
            wave, ends = wave[first:last], np.clip(ends - first, 0, last - first)
            spans += self._align(sentence + (" " if k < len(sentences) - 1 else ""), phonemes, ends, start, len(wave))
            sounds.append(wave)
            start += len(wave)
        wave = np.concatenate(sounds) if sounds else np.zeros(0, np.float32)
        peak = float(np.abs(wave).max()) if len(wave) else 0.0
        gain = LEVEL / peak if peak > LEVEL else 1.0
        return Speech((np.clip(wave * gain, -1, 1) * 32767).astype(np.int16), RATE, tuple(spans))

    def _align(self, text: str, phonemes: str, ends: np.ndarray, start: int, length: int) -> list[TextSpan]:
        """Words of `text` on the samples of their phoneme groups. `ends[i]` = last sample of id i (pads at both ends)."""
        words = re.findall(r"\S+\s*", text)
        groups, at = [], 1  # ids: pad, one for each known phoneme, pad
        for group in phonemes.split(" "):
            at += sum(c in self._hibari.vocab for c in group)
            groups.append(at - 1)  # id of the group's last phoneme
            at += " " in self._hibari.vocab
        counts = [len([g for g in self._hibari.g2p(w.strip()).split(" ") if g]) for w in words] if len(words) != len(groups) else [1] * len(words)
        if sum(counts) != len(groups):  # numbers, abbreviations that read differently alone: by share of letters
            counts = None
        bounds, seen = [], 0
        letters = np.cumsum([len(w) for w in words])
        for k in range(len(words)):
            if counts:
                seen += counts[k]
                bounds.append(int(ends[groups[seen - 1]]) if seen else 0)
            else:
                bounds.append(int(length * letters[k] / letters[-1]))
        bounds[-1] = length  # the tail of the sentence belongs to its last word
        out, last = [], 0
        for word, end in zip(words, bounds):
            end = max(last, min(length, end))
            out.append(TextSpan(word, start + last, start + end))
            last = end
        return out
