"""Arguments out of the user's words, driven by a contract's schema and examples: what is said fills slots, nothing is guessed."""
import json
import re

from harness.plan import scales
from harness.plan.amounts import numbers_of
from harness.plan.compile import ACTIONS, BODY, CHOICE, CLOCK, DATE, FLAG, NAME, PERSON, SPELL, WHEN, Compiled, Slot
from harness.plan.filled import Filled, inside
from harness.plan.lexicon import lexicon
from harness.plan.names import body_of, lead_end, name_of
from harness.plan.people import addressed_note
from harness.plan.spelling import spelled
from harness.plan.times import DAY, HOUR, SPAN, Time, times_said


def fill(c: Compiled, text: str) -> Filled:
    """All arguments that `text` (cleaned, without politeness) gives for `c`."""
    out = Filled()
    slots = list(c.slots.values())
    whole = c.whole
    if whole:
        out.arguments[whole.name] = text
        out.spans[whole.name] = (0, len(text))
        return out
    person, body = _first(slots, PERSON), _first(slots, BODY)
    taken: list[tuple[int, int]] = []
    if person and body:
        note = addressed_note(text)
        if note:
            out.put(text, person.name, note.who)
            if note.text:
                out.put(text, body.name, note.text)
        return _finish(c, out)
    for slot in slots:
        if slot.role == SPELL:
            _spell(out, text, slot, taken, c)
    _times(out, text, c, taken)
    numbers_of(out, text, c, taken)
    for slot in slots:
        if slot.role == CHOICE:
            choose(out, text, slot)
        elif slot.role == FLAG:
            _flag(out, text, slot)
    if body:
        body_of(out, text, c, body, taken)
    name = person or _first(slots, NAME)
    if name:
        name_of(out, text, c, name, taken)
    return _finish(c, out)


def _first(slots: list[Slot], role: str) -> Slot | None:
    return next((s for s in slots if s.role == role), None)


def _finish(c: Compiled, out: Filled) -> Filled:
    out.missing = [name for name in c.required if name not in out.arguments and name not in out.outside]
    if c.one_of and not any(set(option) <= set(out.arguments) for option in ([n] for n in c.one_of[0])) and not out.outside:
        out.missing.append(sorted(c.one_of[0])[0])
    return out


def _spell(out: Filled, text: str, slot: Slot, taken: list, c: Compiled) -> None:
    """The longest spelled run; it needs a digit, or to stand behind a word that leads to it."""
    runs = [r for r in spelled(text) if re.search(r"\d", r.chars) and len(r.chars) >= 2 or len(r.chars) >= 4]
    times = times_said(text)
    runs = [r for r in runs if not any(t.start <= r.start and r.end <= t.end for t in times)] or runs
    if runs:
        best = max(runs, key=lambda r: (len(r.chars), r.start))
        out.arguments[slot.name], out.spans[slot.name] = best.chars, (best.start, best.end)
        taken.append((best.start, best.end))


def _merged(text: str, times: list[Time]) -> list[Time]:
    """Neighbouring days and hours as one span: "tomorrow" "at nine"."""
    out: list[Time] = []
    for t in times:
        if out and re.fullmatch(r"[ ,]*(?:(?:at|on|in|around|about|的|这) ?)?", text[out[-1].end:t.start].lower()):
            out[-1] = Time(out[-1].start, t.end, SPAN if SPAN in (out[-1].kind, t.kind) else DAY + HOUR, out[-1].outer)
        else:
            out.append(t)
    return out


def _times(out: Filled, text: str, c: Compiled, taken: list) -> None:
    slots = {s.role: s for s in c.slots.values() if s.role in (WHEN, DATE, CLOCK)}
    if not slots:
        return
    free = [t for t in times_said(text, bare_hours=CLOCK in slots or WHEN in slots) if not inside((t.start, t.end), taken)]
    if WHEN in slots:
        merged = _merged(text, free)
        best = _when(text, merged, c)
        if best:
            out.put(text, slots[WHEN].name, (best.start, best.end))
            taken.append((best.outer, best.end))
        return
    if CLOCK in slots:
        hours = [t for t in free if t.kind in (HOUR, SPAN)]
        if hours:
            out.put(text, slots[CLOCK].name, (hours[-1].start, hours[-1].end))
            taken.append((hours[-1].outer, hours[-1].end))
    if DATE in slots:
        days = [t for t in free if t.kind in (DAY, SPAN) and not inside((t.start, t.end), taken)]
        if days:
            out.put(text, slots[DATE].name, (days[-1].start, days[-1].end))
            taken.append((days[-1].outer, days[-1].end))


def _when(text: str, merged: list[Time], c: Compiled) -> Time | None:
    """The time that the request names for itself: at its edge or before its body rather than inside the body."""
    if not merged:
        return None
    lead = lead_end(c, text, [])
    marker = re.compile(r"\b(?:to|that|about)\b", re.I).search(text, lead) if lead else None
    before = [t for t in merged if marker and t.end <= marker.start()]
    if before:
        return before[-1]
    first, last = merged[0], merged[-1]
    if first.start <= 1 or lead and first.start < lead:
        return first
    if last.end >= len(text) - 1:
        return last
    return first


def choose(out: Filled, text: str, slot: Slot) -> None:
    """The enum value whose words are said, the most telling one; nothing where none is."""
    hits = {h.name for h in lexicon().hits(text)}
    best, best_score = None, 0.0
    for value, said in slot.values.items():
        names = {w for w, k in said.items() if k >= 2} or set(said)
        got = sum(1.0 if w in names else 0.4 for w in said if w in hits)
        lacking = sum(0.6 for w in names if w not in hits and w.startswith("#") and len(names) > 1)
        score = got - 0.5 * lacking
        if json.loads(value) == slot.default:
            score *= 0.6  # "my" stands in many a sentence that names another one
        if score > best_score:
            best, best_score = value, score
    if '"all"' in slot.values and best_score < 1.0 and re.search(rf"\b{re.escape(slot.name)}s\b", text, re.I):
        best, best_score = '"all"', 1.0
    if best is not None and best_score >= (0.35 if slot.required else 0.7):
        out.arguments[slot.name] = json.loads(best)


def _flag(out: Filled, text: str, slot: Slot) -> None:
    hits = [h.name for h in lexicon().hits(text)]
    true, false = slot.values.get("true", {}), slot.values.get("false", {})
    polar = [w for w in hits if w in ACTIONS | {"#lock", "#unlock"} and (w in true) != (w in false)]
    hits = polar or hits
    yes = sum(w in true and w not in false for w in hits)
    no = sum(w in false and w not in true for w in hits)
    if slot.default is not None:
        telling = {w for w, k in true.items() if w.startswith("#")} - {"#find", "#near", "#where"}
        if telling & set(hits):
            out.arguments[slot.name] = not slot.default
        return
    if not yes and not no or "#open" in true and re.search(r"\b(?:raise|lift|up)\b|升起|抬", text, re.I) and not no:
        said = scales.levels(text)
        yes, no = int("open" in said or "on" in said), int("shut" in said or "off" in said)
        if "#open" in true and re.search(r"\b(?:down|lower)\b|降|放下", text, re.I):
            yes, no = 0, 1
        if "#open" in true and re.search(r"\b(?:up|raise|lift)\b|升|抬", text, re.I):
            yes, no = 1, 0  # a lid goes up to open, a window down: what is opened by example decides
    if yes != no:
        out.arguments[slot.name] = yes > no
    elif yes:
        last = max((i for i, w in enumerate(hits) if w in true or w in false), default=0)
        out.arguments[slot.name] = hits[last] in true
