"""How well a text fits each contract: framing words, likeness to its examples, and whether its arguments were said."""
from dataclasses import dataclass

import numpy as np

from harness.plan.compile import ACTIONS, BODY, CLOCK, DATE, FREE, NUMBER, PERSON, SPELL, WHEN, Compiled, CompiledSet
from harness.plan.lexicon import lexicon
from harness.plan.filled import Filled
from harness.plan.slots import fill
from harness.plan.text import is_question
from harness.plan.times import DAY, SPAN, times_said

STRONG = 2.1
"""A match with this score is a request whatever its surroundings look like, unless the words say it isn't meant for us."""
LIKELY = 1.35
"""Below this no capability is meant."""
_TYPED = (WHEN, DATE, CLOCK, NUMBER, SPELL)
_MASKED = (*FREE, SPELL, WHEN, DATE, CLOCK)
WEIGHTS = {"frame": 0.87, "strength": 0.95, "example": 0.85, "near": 3.5, "probe": 1.55, "complete": 0.7, "outside": -0.2, "mood": -1.6, "core": -0.8,
           "head": 0.6, "typed": 0.25, "time": -0.35, "note": 0.9}
"""How much each clue counts; fitted on the development split."""


@dataclass(frozen=True)
class Match:
    """One contract against one text. `frame`: share of the text's telling words that are the contract's (0..1); `likeness`: of
    the nearest example (cosine); `score`: all together, comparable between contracts of one text."""

    contract: Compiled
    filled: Filled
    clues: dict
    likeness: float
    score: float


def matches(found: CompiledSet, text: str, vector: np.ndarray) -> list[Match]:
    """Every contract's match, best first."""
    times = times_said(text)
    hits = [h for h in lexicon().hits(text) if h.name in found.weight and not any(t.start <= h.start and h.end <= t.end for t in times)]
    days = [t for t in times if t.kind in (DAY, SPAN) and t.of(text).lower() not in ("today", "今天", "this", "一会儿")]
    nearest = [float((c.vectors @ vector).max()) if len(c.vectors) else 0.0 for c in found.contracts]
    middle = float(np.mean(nearest)) if nearest else 0.0
    probed = found.probe.scores(vector)
    asking = is_question(text)
    out = []
    for k, (c, cos) in enumerate(zip(found.contracts, nearest)):
        filled = fill(c, text)
        masked = [filled.spans[n] for n in filled.spans if c.slots[n].role in _MASKED]
        seen = {h.name for h in hits if h.name == "#near" or not any(s <= h.start and h.end <= e for s, e in masked)}
        total = sum(found.weight[w] for w in seen)
        got = sum(found.weight[w] * c.words[w] for w in seen)
        note = _is_note(c, filled)
        names = {h.name for h in hits}
        core = c.core - names - ({"#cancel"} if "#off" in names else set())
        clues = {"frame": 1.0 if note and not total else got / total if total else 0.0, "strength": 1.0 if note else min(1.0, got / 3.0),
                 "example": _example(found, c, seen), "near": cos - middle,
                 "probe": float(probed[k]), "complete": float(filled.complete), "outside": float(len(filled.outside)), "mood": _mood(asking, c.asks),
                 "core": (len(core) / len(c.core) if c.core else 0.0) * (1.0 if c.slots else 4.0), "note": float(note),
                 "head": _head(c, hits, masked),
                 "time": float(bool(days) and not c.whole and not any(s.role in (WHEN, DATE, CLOCK) for s in c.slots.values())
                               and not any(a <= t.start and t.end <= b for t in days for a, b in masked)),
                 "typed": min(2.0, sum(c.slots[n].role in _TYPED for n in filled.spans))}
        out.append(Match(c, filled, clues, cos, sum(WEIGHTS[n] * v for n, v in clues.items())))
    return sorted(out, key=lambda m: -m.score)


_NO_HEAD = ACTIONS - {"#cancel", "#find", "#go"} | {"#where", "#when", "#how_much"}


def _head(c: Compiled, hits: list, masked: list) -> float:
    """How much the first telling word of the sentence, its verb most of the time, belongs to the contract."""
    first = next((h for h in hits if h.name.startswith("#") and h.name not in _NO_HEAD), None)
    same = [h for h in hits if first and h.start == first.start and h.name.startswith("#")]
    return max((c.words[h.name] for h in same), default=0.0)


def _mood(asking: bool, asks: float) -> float:
    """1 where no example has the sentence's mood (a question, or a wish), 0.4 where few have."""
    share = asks if asking else 1.0 - asks
    if asking and share < 0.05:
        return 1.4  # "are the windows shut" is no wish to shut them
    return 1.0 if share < 0.05 else 0.4 if share < 0.2 else 0.0


def _is_note(c: Compiled, filled: Filled) -> bool:
    """The form of a message was found: who and what."""
    return all(n in filled.spans for n, s in c.slots.items() if s.role in (PERSON, BODY)) and {PERSON, BODY} <= {s.role for s in c.slots.values()}


def _example(found: CompiledSet, c: Compiled, seen: set[str]) -> float:
    """Weighted overlap of the text's telling words with those of the example that has most in common with it."""
    best = 0.0
    for e in c.examples:
        both = sum(found.weight[w] for w in seen if w in e.frame)
        if both:
            either = sum(found.weight[w] for w in seen | set(e.frame))
            best = max(best, both / either)
    return best
