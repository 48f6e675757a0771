"""Numbers as people say them, with where they stand: digits, English number words, Chinese numerals.

Halves, quarters and decimals are read whole ("twenty-one and a half", "两个半"); fixed words that only contain a numeral
("一下", "千万别") are not numbers.
"""
import re
from dataclasses import dataclass, replace

UNITS = {w: i for i, w in enumerate(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen".split())}
TENS = {w: 10 * i for i, w in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)}
ORDINALS = {w: i for i, w in enumerate(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth "
    "seventeenth eighteenth nineteenth twentieth".split(), start=1)} | {"thirtieth": 30}
HAN = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"两": 2, "俩": 2, "〇": 0, "幺": 1}
_SCALE = {"hundred": 100, "thousand": 1000, "million": 1_000_000}
_HAN_SCALE = {"十": 10, "百": 100, "千": 1000}
_WORD = re.compile(r"\d+(?:[.,:]\d+)*|[a-z]+")
_NOT_A_NUMBER = (r"一(?=下|些|会|起|样|直|定|路|般|边|共|旦|概|切|律|家|条|点儿|点(?![零一二三四五六七八九两半十钟整]))|百分之|千万(?=别|不|要|记)|万一"
                 r"|(?<=统|唯|第)一|(?<=[有大小高低热冷凉暖快慢])一点|(?<=周)[一二三四五六](?!个)|(?<=星期)[一二三四五六]|(?<=礼拜)[一二三四五六]")
_HAN_NUMBER = re.compile(
    rf"(?P<not>{_NOT_A_NUMBER})|百分(?P<all>百)|(?P<whole>\d+(?:\.\d+)?[百千万亿]?[零〇一二两三四五六七八九十百千]*|[零〇一二两俩三四五六七八九幺十百千万亿]+)"
    r"(?:点(?P<tenths>[零〇一二三四五六七八九]+)(?![十百千万分点刻个位人名口]))?(?P<half>半|(?:个|度)半)?|(?P<onlyhalf>半)(?!天|夜)")
_GAP = re.compile(r"[ \-]*")
_TIME_UNITS = (("second", 1), ("minute", 60), ("hour", 3600), ("秒", 1), ("分钟", 60), ("个小时", 3600), ("小时", 3600), ("个钟头", 3600))


@dataclass(frozen=True)
class Number:
    """A number said in text[start:end]."""

    start: int
    end: int
    value: float
    ordinal: bool = False
    other: tuple[float, ...] = ()
    """What else the same words can mean: half is also fifty per cent."""
    converted: tuple[float, ...] = ()
    """The same duration in seconds, minutes and hours, where a unit of time follows."""

    @property
    def readings(self) -> tuple[float, ...]:
        return (self.value, *self.other, *self.converted)


def numbers_said(text: str) -> list[Number]:
    """Every number of `text` in order, each as its longest reading. Case is ignored."""
    low = text.lower() if len(text.lower()) == len(text) else text
    found = _unit_and_a_half(low) + _english(low) + _chinese(low)
    found.sort(key=lambda n: (n.start, -n.end))
    kept: list[Number] = []
    for n in found:
        if not kept or n.start >= kept[-1].end:
            kept.append(_with_duration(low, n))
    return kept


def _with_duration(text: str, n: Number) -> Number:
    """An hour said is also sixty minutes: the schema decides which unit is wanted."""
    rest = text[n.end:].lstrip(" -")
    rest = re.sub(r"^(?:of )?an? ", "", rest)
    for unit, seconds in _TIME_UNITS:
        if rest.startswith(unit):
            base = n.value * seconds
            return replace(n, converted=tuple({base, base / 60, base / 3600} - {n.value}))
    return n


def _english(text: str) -> list[Number]:
    words = [(m.start(), m.end(), m.group()) for m in _WORD.finditer(text)]
    found, i = [], 0
    while i < len(words):
        n, used = _english_at(text, words, i)
        if used:
            found.append(n)
        i += used or 1
    return found


def _joined(text: str, words: list, i: int) -> bool:
    """Whether nothing but a space or hyphen stands before word `i`."""
    return i < len(words) and bool(_GAP.fullmatch(text[words[i - 1][1]:words[i][0]]))


def _english_at(text: str, words: list, i: int) -> tuple[Number | None, int]:
    start, end, word = words[i]
    after = text[end:]
    if word[0].isdigit():
        if re.match(r"(?:st|nd|rd|th)\b", after):
            return Number(start, end, float(word) if word.isdigit() else 0.0, True), 1
        if ":" in word:
            parts = [float(p) for p in re.split(r"[:]", word) if p.replace(".", "").isdigit()]
            return (Number(start, end, parts[0], other=tuple(parts[1:])), 1) if parts else (None, 0)
        plain = re.sub(r",(?=\d{3}(?:\D|$))", "", word)
        plain = plain.replace(",", ".")
        if plain.count(".") > 1:
            return None, 0
        value, j = float(plain), i + 1
        while _joined(text, words, j) and words[j][2] in _SCALE:
            value, j = value * _SCALE[words[j][2]], j + 1
        return _tail(text, words, i, j, value)
    if word in ORDINALS:
        return (None, 0) if word == "second" and re.match(r" ?(?:hand|thoughts?)\b", after) else (Number(start, end, float(ORDINALS[word]), True), 1)
    if word in ("half", "halfway"):
        return Number(start, end, 0.5, other=(50.0,)), 1
    if word == "quarter" or word == "quarters":
        return Number(start, end, 0.25, other=(25.0, 15.0)), 1
    if word == "hundred" and re.search(r"\b(?:the|full|whole) $", text[:start]):
        return Number(start, end, 100.0), 1
    if word == "dozen":
        return Number(start, end, 12.0), 1
    if word in ("couple", "pair") and re.match(r" of\b", after):
        return Number(start, end, 2.0), 1
    j, total, current, last = i, 0.0, 0.0, ""
    while j < len(words) and (j == i or _joined(text, words, j)):
        w = words[j][2]
        if w in TENS and current % 100 == 0 and last in ("", "hundred", "thousand", "and"):
            current, last = current + TENS[w], "tens"
        elif w in UNITS and (last in ("", "hundred", "thousand", "and") and current % 100 == 0 or last == "tens" and 0 < UNITS[w] < 10):
            current, last = current + UNITS[w], "units"
        elif w in ORDINALS and last in ("tens", "hundred", "and") and ORDINALS[w] < 10:
            return Number(start, words[j][1], total + current + ORDINALS[w], True), j + 1 - i
        elif w in ("a", "an") and last == "" and _joined(text, words, j + 1) and words[j + 1][2] in _SCALE:
            current, last = 1.0, "units"
        elif w == "hundred" and last in ("units", "tens") and 0 < current < 100:
            current, last = current * 100, "hundred"
        elif w in ("thousand", "million") and last in ("units", "tens", "hundred") and current:
            total, current, last = total + current * _SCALE[w], 0.0, "thousand"
        elif w == "and" and last in ("hundred", "thousand") and _joined(text, words, j + 1) and words[j + 1][2] in (UNITS | TENS):
            last = "and"
        else:
            break
        j += 1
    if j == i:
        return None, 0
    return _tail(text, words, i, j, total + current)


def _unit_and_a_half(text: str) -> list[Number]:
    """"a degree and a half" is 1.5, "two hours and a half" 2.5: the half stands behind the unit."""
    found = []
    for m in re.finditer(r"\b(an?|one|two|three|four|five|six) ([a-z]+) and a half\b", text):
        if m[2] not in UNITS and m[2] not in TENS and m[2] not in _SCALE and m[2] not in ("quarter", "point"):
            found.append(Number(m.start(), m.end(), UNITS.get(m[1], 1) + 0.5))
    return found


def _tail(text: str, words: list, i: int, j: int, value: float) -> tuple[Number, int]:
    """Decimals and fractions after the whole number that ends before word `j`."""
    if j + 1 < len(words) and words[j][2] == "point" and _joined(text, words, j) and _joined(text, words, j + 1):
        digits, k = "", j + 1
        while k < len(words) and _joined(text, words, k):
            w = words[k][2]
            if UNITS.get(w, 10) < 10 or w == "oh":
                digits += str(UNITS.get(w, 0))
            elif w.isdigit():
                digits += w
            else:
                break
            k += 1
        if digits:
            value, j = float(f"{int(value)}.{digits}"), k
    rest = [w for _, _, w in words[j:j + 3]]
    if rest[:1] == ["and"] and len(rest) > 1:
        for words_of, part in ((["a", "half"], 0.5), (["a", "quarter"], 0.25), (["three", "quarters"], 0.75), (["half"], 0.5)):
            if rest[1:1 + len(words_of)] == words_of:
                value, j = value + part, j + 1 + len(words_of)
                break
    if value == 3 and rest[:1] == ["quarters"]:
        return Number(words[i][0], words[j][1], 0.75, other=(75.0, 45.0)), j + 1 - i
    return Number(words[i][0], words[j - 1][1], value), j - i


def _chinese(text: str) -> list[Number]:
    found = []
    for m in _HAN_NUMBER.finditer(text):
        if m["not"]:
            continue
        start, end = m.span()
        ordinal = start > 0 and text[start - 1] == "第"
        if m["all"]:
            found.append(Number(start, end, 100.0))
        elif m["onlyhalf"]:
            found.append(Number(start, end, 0.5, other=(50.0, 30.0)))
        elif text[start:end] == "一" and text[end:end + 1] == "半":
            found.append(Number(start, end + 1, 0.5, other=(50.0,)))
        elif m["whole"] == "一" and m["half"] == "半":
            found.append(Number(start, end, 0.5, other=(50.0,)))
        else:
            if m["whole"].isascii() and not m["half"]:
                continue  # the digits are found with the English ones
            value = han_value(m["whole"])
            if m["tenths"]:
                value = float(f"{int(value)}." + "".join(str(HAN[c]) for c in m["tenths"]))
            other = ()
            if m["half"]:
                value, other = value + 0.5, (value, 0.5, 30.0)
            found.append(Number(start, end, value, ordinal, other))
    return found


def han_value(numeral: str) -> float:
    """Value of a Chinese numeral, also with leading digits: "两百五" 250, "三千零二" 3002, "3万" 30000, "四四一九" 4419."""
    lead = re.match(r"\d+(?:\.\d+)?", numeral)
    if lead:
        value, rest = float(lead.group()), numeral[lead.end():]
        for scale, size in (("亿", 1e8), ("万", 1e4), ("千", 1e3), ("百", 1e2)):
            if rest.startswith(scale):
                value, rest = value * size, rest[1:]
                break
        return value + (han_value(rest) if rest else 0.0)
    for scale, size in (("亿", 100_000_000), ("万", 10_000)):
        if scale in numeral:
            head, _, tail = numeral.partition(scale)
            return (han_value(head) if head else 1.0) * size + _below(tail, size)
    if not any(c in _HAN_SCALE for c in numeral):
        digits = "".join(str(HAN[c]) for c in numeral if c in HAN)
        return float(digits) if digits else 0.0
    value, current, last = 0.0, 0.0, 10
    for c in numeral:
        if c in _HAN_SCALE:
            value, current, last = value + (current or 1) * _HAN_SCALE[c], 0.0, _HAN_SCALE[c]
        elif c in "零〇":
            last = 10
        else:
            current = HAN[c]
    return value + current * (last // 10 if last > 10 else 1)


def _below(tail: str, size: int) -> float:
    if not tail:
        return 0.0
    return HAN[tail] * size / 10 if tail in HAN and tail not in "零〇" else han_value(tail.lstrip("零〇"))
