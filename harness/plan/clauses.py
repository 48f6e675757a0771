"""Several requests in one breath: where a sentence may be cut. Whether a cut makes sense, the planner decides by what each part asks for."""
import re
from dataclasses import dataclass

from harness.plan.spelling import spelled
from harness.plan.times import times_said

_STRONG = re.compile(
    r"[ ,.;]*(?<![a-z])(?:and then|and also|and after that|after that|and while you're at it|and|then|plus|also)(?= )(?! (?:a half|half"
    r"|a quarter|three quarters)\b)"
    r"|[ ,.;]*(?:然后再?|接着|顺便|并且|另外|同时|完了|再然后|之后再|and then|then|and)[ ,]*|[ ,.;]+(?:再|也|还有)|(?<=[㐀-鿿])再(?=帮我|给|把|打|放|找|开|关|调|设|提醒|带|发)", re.I)
_WEAK = re.compile(r"[,.;] |(?<=[㐀-鿿]) (?=[㐀-鿿A-Za-z])|(?<=[A-Za-z]) (?=[㐀-鿿]{2})")


_NEGATED = re.compile(r"别(?!忘)|不要|不用|\bdon't\b|\bnot\b|\bdoesn't\b", re.I)


@dataclass(frozen=True)
class Cut:
    """Two parts of a sentence; `weak` where only a comma or a pause stands between them."""

    left: str
    right: str
    weak: bool
    at: int = 0
    """Where the joint starts."""


def cuts(text: str) -> list[Cut]:
    """Every place where the sentence may be cut, the strong joints first; never inside an id, a number or a time."""
    spans = [(s.start, s.end) for s in spelled(text) if len(s.chars) > 1] + [(t.start, t.end) for t in times_said(text)]
    found, seen = [], set()
    for weak, pattern in ((False, _STRONG), (True, _WEAK)):
        for m in pattern.finditer(text):
            left, right = text[:m.start()].strip(" ,.;"), text[m.end():].strip(" ,.;")
            if _NEGATED.search(left) or re.match(r"not\b|不是", right, re.I) or len(left) < 2 or len(right) < 2 or (left, right) in seen:
                continue
            if any(s < m.end() and m.start() < e for s, e in spans):
                continue
            seen.add((left, right))
            found.append(Cut(left, right, weak, m.start()))
    return found
