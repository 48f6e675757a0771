"""Amounts out of a sentence: which number is meant for which slot, levels and steps that no number says."""
import json
import re
from dataclasses import replace

from harness.plan import scales
from harness.plan.compile import CLOCK, DATE, NUMBER, Compiled, Slot
from harness.plan.filled import Filled, inside
from harness.plan.lexicon import lexicon
from harness.plan.numerals import Number, numbers_said

_GUESTS = re.compile(r"^[ -]?(?:people|persons?|guests?|of us|diners|adults|pax|(?:个|口)?人|位|个(?!小时|月|半)|名)", re.I)
_BELOW_ZERO = re.compile(r"(?:\bto|\bat) (?:minus|negative) $|(?:到|成)(?:负|零下)$", re.I)
_TO_NUMBER = re.compile(r"(?:\bto|\bat|=|到|至|为|成|设|调到|改到|改成)\s*(?:about |around |大概|百分之)?$", re.I)
_BY_NUMBER = re.compile(r"(?:\bby|\banother|再|多|少)\s*(?:百分之)?$", re.I)


def numbers_of(out: Filled, text: str, c: Compiled, taken: list) -> None:
    slots = [s for s in c.slots.values() if s.role == NUMBER]
    if not slots:
        return
    numbers = [n for n in numbers_said(text) if not inside((n.start, n.end), taken) and not n.ordinal and not no_amount(c, text, n)]
    numbers = [replace(n, value=-n.value) if _BELOW_ZERO.search(text[:n.start]) else n for n in numbers]
    signed, plain = [s for s in slots if s.signed], [s for s in slots if not s.signed]
    way = scales.direction(text)
    if signed and plain:
        _level_or_step(out, text, signed[0], plain[0], numbers, way)
        return
    for slot in plain:
        n = _best_number(text, slot, numbers, len(slots) + len([s for s in c.slots.values() if s.role in (CLOCK, DATE)]) > 1)
        if n:
            numbers.remove(n)
            _number(out, slot, n, n.value)
            guests = _GUESTS.match(text[n.end:])
            lead = re.search(r"(?:\b(?:a )?table for|\bfor|\bparty of) $", text[:n.start], re.I)
            taken.append((lead.start() if lead else n.start, n.end + (guests.end() if guests else 0)))
        else:
            value = scales.level_value(slot, text)
            if value is None and (scales.complains(text) or re.search(r"\b(?:want|need|like|have|please)\b|来|要", text, re.I)):
                value = scales.switched_on(slot)
            if value is not None:
                _number(out, slot, None, value)
    for slot in signed:
        if not way:
            continue
        n = _best_number(text, slot, numbers, False)
        if n and not _TO_NUMBER.search(text[:n.start]):
            _number(out, slot, n, way * n.value)
        elif (n and _integral(slot, n.value) is not None and slot.high is not None and n.value <= slot.high
              and not re.search(r"(?:\bto|到|至)\s*$", text[:n.start], re.I)):
            _number(out, slot, n, way * n.value)
        elif not n:
            size = scales.step(slot)
            if size:
                _number(out, slot, None, way * size)


def no_amount(c: Compiled, text: str, n: Number) -> bool:
    """A number word that tells no amount: the pronoun "one", or how many things there are ("all four windows")."""
    said, before, after = text[n.start:n.end].lower(), text[:n.start].lower(), text[n.end:]
    if said == "one" and re.search(r"\b(?:the|that|this|which|another|other|right|left|first|second|third|fourth|fifth|last|next|any|no|some"
                                   r"|each|every|back|front"
                                   r"|rear|good|cheap|new)\s$", before):
        return True
    if said == "一" and re.match(r"[个家条首位]", after) and not re.match(r"个(?:人|小时)|位", after):
        return True
    first = re.match(r" ?([a-z]+|[个扇㐀-鿿]{1,3})", after, re.I)
    names = {h.name for h in lexicon().hits(first[1])} if first else set()
    return bool(names & c.frames & {"#window", "#door", "#seat"})


def _level_or_step(out: Filled, text: str, signed: Slot, plain: Slot, numbers: list[Number], way: int) -> None:
    """One capability that takes a level or a step of it, not both."""
    n = numbers[-1] if numbers else None
    if n and text[n.start:n.end].lower() in ("half", "halfway", "一半", "半"):
        _number(out, plain, n, (plain.low or 0) + ((plain.high or 100) - (plain.low or 0)) / 2)
    elif n and n.value < 0:
        _number(out, plain, n, n.value)
    elif n and way and (_BY_NUMBER.search(text[:n.start]) or not _TO_NUMBER.search(text[:n.start])):
        _number(out, signed, n, way * n.value)
    elif n:
        _number(out, plain, n, n.value)
    else:
        value = scales.level_value(plain, text) if set(scales.levels(text)) & {"full", "half", "mute", "off", "high", "low"} else None
        if value is not None and not (way and not set(scales.levels(text)) & {"full", "half", "mute", "off"}):
            _number(out, plain, None, value)
        elif way and scales.step(signed):
            _number(out, signed, None, way * scales.step(signed))


def _number(out: Filled, slot: Slot, n: Number | None, value: float) -> None:
    for reading in (value, *(n.readings[1:] if n else ())):
        fitting = _integral(slot, reading)
        if fitting is not None and (slot.low is None or fitting >= slot.low) and (slot.high is None or fitting <= slot.high):
            out.arguments[slot.name] = fitting
            if n:
                out.spans[slot.name] = (n.start, n.end)
            return
    out.outside.append(slot.name)


def _integral(slot: Slot, value: float):
    types = json.dumps(slot.schema)
    if '"integer"' in types and '"number"' not in types:
        return int(value) if float(value).is_integer() else None
    return int(value) if float(value).is_integer() else value


def _best_number(text: str, slot: Slot, numbers: list[Number], crowded: bool) -> Number | None:
    """The number meant for `slot`: by the unit behind it, else the last in range, else the last."""
    if not numbers:
        return None
    counts_people = any(_GUESTS.match(u) for u in slot.units) or slot.name in ("people", "guests", "persons", "seats", "passengers")
    def score(n: Number) -> tuple:
        after, before = text[n.end:].lower(), text[:n.start].lower()
        unit = re.match(r"[ -]*(个?人|[a-z]+|[㐀-鿿])", after)
        points = 0
        if counts_people:
            points += 4 if _GUESTS.match(after) or re.search(r"(?:party of|group of|there(?:'s| are| will be)|we are|we're|us) $", before) else 0
            points += 2 if re.search(r"(?:table for|\bfor|seats) $", before) else 0
        elif unit and unit[1] in slot.units:
            points += 2
        inside = slot.low is None or slot.high is None or any(slot.low <= v <= slot.high for v in n.readings)
        return points, inside, n.start
    best = max(numbers, key=score)
    if counts_people and crowded and score(best)[0] == 0:
        return None
    return best
