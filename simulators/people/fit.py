"""How well the recogniser understands a synthesised utterance: the share of its words that come back, numbers exactly."""
import re
from dataclasses import dataclass
from functools import cache

import numpy as np
from rapidfuzz.distance import Levenshtein

from simulators.car.acoustics import CabinSettings, RoadNoise, Seats
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


@cache
def _road(seed: int) -> np.ndarray:
    """Ten seconds of the cabin at 50 km/h."""
    noise = RoadNoise(CabinSettings(), seed)
    return np.concatenate([noise(50.0) for _ in range(1000)])


def _driving(samples: np.ndarray, seed: int) -> np.ndarray:
    """The utterance as the cabin's microphone has it on the road."""
    sound = Seats(CabinSettings()).at_microphone(samples, "driver")
    sound = sound + np.resize(_road(seed), len(sound))
    return np.clip(sound, -32768, 32767).astype(np.int16)


def judge(text: str, samples: np.ndarray, recogniser) -> Fit:
    """Let `recogniser` (cloud_core.speech.Recogniser) hear the utterance: by itself, and in the cabin on five stretches of road: two are
    too few to tell an utterance that is always understood from one that is lucky.

    The score is the mean of all; `heard` is the worst of them.
    """
    quiet = np.zeros(RATE // 2, np.int16)
    alone = np.concatenate([quiet, samples, quiet])
    if hum_kind(text) is not None:  # what a canceller and the road leave of a hum is nobody's words
        tries = [alone]
    else:
        tries = [alone, *(_driving(alone, seed) for seed in range(1, 6))]
    heard = [recogniser.transcribe(sound).text for sound in tries]
    fits = [score(text, words_) for words_ in heard]
    fit = sum(fits) / len(fits)
    if hum_kind(text) is not None and not HUM_S[0] <= len(samples) / RATE <= HUM_S[1]:
        fit = min(fit, 0.5)
    return Fit(fit, heard[int(np.argmin(fits))])
