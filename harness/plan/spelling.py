"""Ids and telephone numbers as people spell them: "A 7 three K", "double four oh", "B as in Bravo", "幺三八杠二"."""
import re
from dataclasses import dataclass

from harness.plan.numerals import HAN, TENS, UNITS, han_value

_TOKEN = re.compile(r"[A-Za-z]+|\d+|[零〇一二两三四五六七八九幺十百]+|杠|横杠|横线|[^\sA-Za-z\d]")
_NATO = ("alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike november oscar papa quebec romeo sierra "
         "tango uniform victor whiskey xray yankee zulu").split()
_SILENT = frozenset("dash hyphen minus slash dot space - . / _ 杠 横杠 横线".split())
_TIMES = {"double": 2, "triple": 3, "treble": 3}


@dataclass(frozen=True)
class Spelled:
    """A run of characters said one by one or in groups, in text[start:end], joined and in upper case."""

    start: int
    end: int
    chars: str


def spelled(text: str) -> list[Spelled]:
    """Every maximal run, however short. Plain numbers are runs too: what is an id, the caller knows by its place."""
    tokens = [(m.start(), m.end(), m.group()) for m in _TOKEN.finditer(text)]
    runs: list[Spelled] = []
    i = 0
    while i < len(tokens):
        j, chars, start, end = i, "", -1, -1
        while j < len(tokens):
            word = tokens[j][2].lower()
            if word in _SILENT or word == "," and chars:
                if not chars and word != "dash":
                    break
                j += 1
                continue
            if end >= 0 and not re.fullmatch(r"[\s,\-./_杠横线a-z]*", text[end:tokens[j][0]].lower()):
                break
            got, used = _atom(text, tokens, j)
            if not used:
                break
            start = tokens[j][0] if start < 0 else start
            chars, j = chars + got, j + used
            end = tokens[j - 1][1]
        if chars:
            runs.append(_trim(text, Spelled(start, end, chars)))
        i = max(j, i + 1)
    return [r for r in runs if r.chars]


def _trim(text: str, run: Spelled) -> Spelled:
    """An article "a" or the pronoun "I" at the edge of a run is no character of it: "a 7" is no id, "A 7" is."""
    said = text[run.start:run.end]
    if re.match(r"a\s", said):
        cut = re.match(r"a\s+", said).end()
        rest = run.chars[1:]
        # Lower case throughout (a recogniser's habit) leaves it open; a letter elsewhere in the run says that letters count.
        if not re.search(r"[A-Z]", rest):
            return Spelled(run.start + cut, run.end, rest)
    if said.lower() in ("a", "i", "o", "oh"):
        return Spelled(run.start, run.end, "")
    return run


def _atom(text: str, tokens: list, i: int) -> tuple[str, int]:
    """(characters, tokens used) of what is said at token `i`; used is 0 where nothing is spelled."""
    word = tokens[i][2]
    low = word.lower()
    if low in _TIMES:
        if i + 1 < len(tokens):
            got, used = _atom(text, tokens, i + 1)
            if used and len(got) == 1:
                return got * _TIMES[low], used + 1
        return "", 0
    if low.isdigit():
        return low, 1
    if low in TENS:
        behind = [t[2].lower() for t in tokens[i + 1:i + 3]]
        used = 2 if behind[:1] == ["-"] else 1  # "forty-two"
        if 0 < UNITS.get("".join(behind[used - 1:used]), 0) < 10:
            return str(TENS[low] + UNITS[behind[used - 1]]), used + 1
        return str(TENS[low]), 1
    if low in UNITS:
        if i + 1 < len(tokens) and tokens[i + 1][2].lower() == "hundred":
            return f"{UNITS[low]}00", 2
        return str(UNITS[low]), 1
    if low in ("oh", "o"):
        return "0", 1
    if word[0] in HAN or word[0] in "十百":
        if all(c in HAN for c in word):
            return "".join(str(HAN[c]) for c in word), 1
        return f"{int(han_value(word))}", 1
    if len(word) == 1 and word.isalpha() and word.isascii():
        rest = [t[2].lower() for t in tokens[i + 1:i + 4]]
        if rest[:2] in (["as", "in"], ["like", "in"]) and len(rest) == 3 and rest[2][0] == low:
            return word.upper(), 4
        if rest[:1] in (["for"], ["like"]) and len(rest) > 1 and rest[1][0] == low and len(rest[1]) > 2:
            return word.upper(), 3
        return word.upper(), 1
    if low in _NATO and (i + 1 < len(tokens) or i > 0):
        return low[0].upper(), 1
    if len(word) <= 3 and word.isupper():
        return word, 1
    return "", 0
