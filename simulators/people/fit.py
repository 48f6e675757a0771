"""How well the recogniser understands a synthesised utterance: the share of its words that come back, numbers exactly."""
import re
from dataclasses import dataclass

import numpy as np
from rapidfuzz.distance import Levenshtein

from simulators.people.catalogue import hum_kind, spoken
from simulators.people.voices import RATE

GOOD = 0.999
"""A fit from which no further take is tried."""
HUM_S = (0.38, 0.62)
"""How long a listener's signal lasts."""
_HUM_HEARD = re.compile(r"(m+[\s,-]*h?m+|h+m+|u[hm]+[\s,-]*h[ua][hm]?m?|a+h+[\s,-]*h?a*h*)\W*", re.I)
_ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
         "eighteen nineteen").split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_SAME = {"ok": "okay"}


@dataclass(frozen=True)
class Fit:
    """`score` 0..1; `heard` what the recogniser wrote."""

    score: float
    heard: str


def _number(digits: str) -> str:
    value = int(digits)
    if value < 20:
        return _ONES[value]
    if value < 100:
        return _TENS[value // 10 - 2] + (f" {_ONES[value % 10]}" if value % 10 else "")
    return digits


def words(text: str) -> list[str]:
    """Lower-case words without punctuation; numbers below 100 in words."""
    text = re.sub(r"'s?\b", "", text.lower().replace("’", "'"))  # a possessive can't be heard
    text = text.replace("%", " percent ").replace("°", " degrees ")
    text = re.sub(r"\d+", lambda m: f" {_number(m[0])} ", text)
    return [_SAME.get(w, w) for w in re.findall(r"[^\W_]+", text)]


def score(text: str, heard: str) -> float:
    """1 minus the word error rate, not below 0."""
    wanted = words(spoken(text))
    if hum_kind(text) is not None:
        return 1.0 if _HUM_HEARD.fullmatch(heard.strip()) else 0.5
    return max(0.0, 1 - Levenshtein.distance(wanted, words(heard)) / max(1, len(wanted)))


def judge(text: str, samples: np.ndarray, recogniser) -> Fit:
    """Let `recogniser` (cloud_core.speech.Recogniser) hear the utterance with some silence around it."""
    quiet = np.zeros(RATE // 2, np.int16)
    heard = recogniser.transcribe(np.concatenate([quiet, samples, quiet])).text
    fit = score(text, heard)
    if hum_kind(text) is not None and not HUM_S[0] <= len(samples) / RATE <= HUM_S[1]:
        fit = min(fit, 0.5)
    return Fit(fit, heard)
