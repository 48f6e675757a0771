"""The numbers in a sentence, written as digits or as words: "22.5", "twenty-two and a half" and "2 1/2" alike."""
import re

_UNITS = {w: i for i, w in enumerate(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen".split())}
_TENS = {w: 10 * i for i, w in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}
_TOKEN = re.compile(r"\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?(?:st|nd|rd|th\b)?|[^\W\d_]+|[-−](?=\d)")


def _tokens(text: str) -> list[str]:
    # A hyphen joins number words ("twenty-two"); before a digit, and not inside a word or range, it is a minus.
    text = re.sub(r"(?<=[^\W_])[-–](?=[^\W_])", " ", text.casefold())
    return _TOKEN.findall(text)


class _Run:
    """One number being read word by word; `add` refuses a word that begins another number."""

    def __init__(self):
        self.total, self.part, self.decimals, self.last, self.used = 0, 0, None, None, False

    def add(self, word: str) -> bool:
        if self.decimals is not None:
            if word in _UNITS and _UNITS[word] < 10:
                self.decimals += str(_UNITS[word])
                return True
            return False
        if word in _UNITS:
            value = _UNITS[word]
            fits = self.last is None or self.last == "scale" or (self.last == "tens" and 0 < value < 10)
            kind = "unit"
        elif word in _TENS:
            value, kind = _TENS[word], "tens"
            fits = self.last in (None, "scale")
        elif word in _SCALES and self.used:
            scale = _SCALES[word]
            if scale == 100:
                self.part *= 100
            else:
                self.total, self.part = self.total + self.part * scale, 0
            self.last = "scale"
            return True
        else:
            return False
        if fits:
            self.part, self.last, self.used = self.part + value, kind, True
        return fits

    def value(self) -> float:
        whole = float(self.total + self.part)
        return float(f"{int(whole)}.{self.decimals}") if self.decimals else whole


def numbers_in(text: str) -> list[float]:
    """The cardinal numbers of an English sentence in order; "1,250" is one number, "12:40" is two, ordinals are none."""
    words, found, i, sign = _tokens(text), [], 0, 1
    while i < len(words):
        word = words[i]
        if word in ("-", "−", "minus"):
            sign, i = -1, i + 1
            continue
        if word[0].isdigit():
            if word[-1].isdigit():
                value, i = float(word.replace(",", "")), i + 1
                while i < len(words) and words[i] in _SCALES:  # "2 hundred", "1.5 million"
                    value, i = value * _SCALES[words[i]], i + 1
                value, i = _half(value, words, i)
                found.append(sign * value)
            else:
                i += 1
            sign = 1
            continue
        start, run = i, _Run()
        if word == "a" and i + 1 < len(words) and words[i + 1] in ("hundred", "thousand", "million"):
            run.add("one")
            i += 1
        while i < len(words):
            if run.add(words[i]):
                i += 1
            elif run.used and words[i] == "and" and run.last == "scale" and i + 1 < len(words) \
                    and words[i + 1] in (_UNITS | _TENS):
                i += 1
            elif run.used and words[i] == "point" and run.decimals is None and i + 1 < len(words) \
                    and _UNITS.get(words[i + 1], 10) < 10:
                run.decimals, i = "", i + 1
            else:
                break
        if run.used:
            value, i = _half(run.value(), words, i)
            found.append(sign * value)
        i, sign = max(i, start + 1), 1
    return found


def _half(value: float, words: list[str], i: int) -> tuple[float, int]:
    return (value + 0.5, i + 3) if words[i:i + 3] == ["and", "a", "half"] else (value, i)


def has_number(text: str, wanted: float) -> bool:
    """Whether `wanted` was said, exactly."""
    return any(abs(found - wanted) < 1e-9 for found in numbers_in(text))
