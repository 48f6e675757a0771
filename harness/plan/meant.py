"""When words are a request in spite of signs against it: "I'm so tired, find me a hotel", "don't let me forget …"."""
import re
from typing import TYPE_CHECKING

from harness.plan import repairs
from harness.plan.address import ABOUT_PEOPLE, BROADCAST, NOT_WANTED, OTHER_PERSON, SMALL_TALK, SUPPOSED, THINKING, aside_reason
from harness.plan.correct import corrected
from harness.plan.lexicon import lexicon
from harness.plan.match import STRONG, Match
from harness.plan.mood import COMMAND, QUESTION, STATEMENT, WISH, mood
from harness.plan.text import asked

if TYPE_CHECKING:
    from harness.plan.decision import Decision


_NEGATION = re.compile(r"n't\b|\b(?:no|not|never)\b|不|别", re.I)


def asked_anyway(d: "Decision", reason: str) -> bool:
    """Whether the words ask a capability for something in spite of signs against it: the sign lies inside a framing phrase, or
    only introduces the wish ("I'm so tired, find me a hotel")."""
    final, _ = corrected(d.text, d.last_value)
    best = d.best(asked(final))
    if best is None or not best.filled.complete or best.contract.whole and reason != ABOUT_PEOPLE:
        return False
    if reason == NOT_WANTED and best.score >= STRONG and positive_end(d, best):
        return True
    if mood(d.whole) == STATEMENT and reason != NOT_WANTED:
        return False
    clear = best.score >= STRONG + 0.6 and best.clues["example"] >= 0.4 and best.clues["frame"] >= 0.7
    if reason == NOT_WANTED:
        if best.score >= STRONG and repairs.ender(d.found, d.text, best) or best.score >= STRONG and _covered(d, best):
            return True
        return clear and positive_end(d, best)
    if reason in (SMALL_TALK, SUPPOSED, OTHER_PERSON):
        return False
    if reason == BROADCAST:
        return clear and _commands(d, best) and d.probe_aside(d.text) < -0.3 and mood(d.whole) in (COMMAND, WISH, QUESTION)
    if reason == THINKING:
        return clear and d.probe_aside(d.text) < 0.1 and _commands(d, best) and mood(d.whole) in (COMMAND, WISH)
    return clear and d.probe_aside(d.text) < -0.2 and (_commands(d, best) or best.contract.asks >= 0.4)


def _covered(d: "Decision", best: Match) -> bool:
    """The negation is part of a phrase of the capability's own ("don't let me forget", "别超过")."""
    return any(h.name in best.contract.words and re.search(r"don't|do not|别|不要", d.text[h.start:h.end], re.I) for h in lexicon().hits(d.text))


def positive_end(d: "Decision", best: Match) -> bool:
    """"… doesn't want it any more, off with it": what follows the negation asks for something by itd."""
    parts = re.split(r"[,.;]\s*", d.text)
    if len(parts) < 2 or not _NEGATION.search(parts[0]) or _NEGATION.search(parts[-1]) or aside_reason(parts[-1]):
        return False
    return bool({h.name for h in lexicon().hits(parts[-1])} & best.contract.frames)


def _commands(d: "Decision", best: Match) -> bool:
    """An imperative or a polite request somewhere: a framing word of the capability opens a clause."""
    hits = [h for h in lexicon().hits(d.text) if h.name in best.contract.frames and h.name.startswith("#")]
    return any(h.start == 0 or d.text[:h.start].rstrip()[-1:] in ",.;" for h in hits)
