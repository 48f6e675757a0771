"""Free words out of a sentence: names, places and queries, and the bodies of notes and reminders."""
import re

from harness.plan.compile import ACTIONS, PERSON, Compiled, Slot
from harness.plan.filled import Filled
from harness.plan.lexicon import lexicon
from harness.plan.people import VAGUE
from harness.plan.residue import is_reference, reference_in, residue
from harness.plan.spelling import spelled

_MARKER = re.compile(r"^(?:[ ,:.]*(?:me|us|myself|我们?|一下|下)(?![a-z]))?(?:[ ,:]*(?:that(?! (?:one|thing)\b)|to|about|of|saying|says|this|down"
                     r"|with|for|说|内容是|内容|是(?=[ ,:])|关于|要(?=[㐀-鿿]{3})|记得|别忘了?)(?![a-z])[:,]?)*[ ,:]*", re.I)
_LEAD_WORDS = frozenset("a an the me us for of my our this in to i i'd we need want please quick can you make take set put add write new down "
                        "up on it into like".split())


def lead_end(c: Compiled, text: str, taken: list) -> int:
    """Where the words that announce a body end: the last framing concept before the body's own words begin."""
    hits = [h for h in lexicon().hits(text) if h.name in c.frames]
    pos = end = 0
    while pos < len(text):
        if text[pos] in " ,:.":
            if text[pos] == ":" and end:
                return pos
            pos += 1
            continue
        span = next((e for s, e in taken if s <= pos < e), 0)
        if span:
            pos = span
            if end:
                end = pos
            continue
        hit = max((h.end for h in hits if h.start == pos), default=0)
        if hit:
            pos = end = hit
            continue
        m = re.match(r"[a-z']+", text[pos:], re.I)
        if m:
            word = m.group().lower()
            goes_on = any(0 < h.start - pos < 14 and h.name.startswith("#") for h in hits)  # "add to my notes that …"
            if end and word in ("that", "to", "saying", "about") and not goes_on:
                return end
            if word not in _LEAD_WORDS:
                return end
            pos += m.end()
            continue
        m = re.match(r"我想|我要|我们?|帮|给|请|一个|个|一下|条|一条|在|把|里|上|的|中", text[pos:])
        if not m:
            return end
        pos += m.end()
    return end


def body_of(out: Filled, text: str, c: Compiled, slot: Slot, taken: list) -> None:
    lead = lead_end(c, text, taken)
    start, end = lead, len(text)
    hits = [h for h in lexicon().hits(text) if h.name in c.frames and h.name.startswith("#") and h.name != "#speaker"]
    if not text[lead:].strip(" ,.") or text[lead:].strip(" ,.").lower() in ("me", "us", "我"):
        _body_before(out, text, c, slot, taken)
        return
    if not lead and taken and taken[0][0] == 0:
        return
    if not lead:
        late = next((h for h in hits if h.start > 0), None)  # words before the announcement: "oh and by the way, note that ..."
        if not late:
            return
        start = late.end
    for s, e in sorted(taken, reverse=True):
        if e >= end - 1 and s > start:
            end = s
    for s, e in taken:
        if s <= start + 1 < e or start <= s <= start + 4 and not text[start:s].strip(" ,:我"):
            start = max(start, e)
    start += _MARKER.match(text[start:end]).end()
    for s, e in taken:
        if start <= s <= start + 1:
            start = e + _MARKER.match(text[e:end]).end()
    while start < end and text[start] in " ,:.的":
        start += 1
    while end > start and text[end - 1] in " ,:.;":
        end -= 1
    tail = re.search(r"(?:[ ,]*(?:in|to|into|on) (?:my|the) (?:notes?|list|notebook|memo))$", text[start:end], re.I)
    if tail:
        end = start + tail.start()
    if end > start and text[start:end].lower() not in VAGUE:
        out.put(text, slot.name, (start, end))
    elif end <= start and not lead:
        _body_before(out, text, c, slot, taken)


def _body_before(out: Filled, text: str, c: Compiled, slot: Slot, taken: list) -> None:
    """"I have to send the parcel on Monday, remind me": the body stands before its announcement."""
    hit = next((h for h in lexicon().hits(text) if h.name in c.frames and h.name.startswith("#") and h.start > 0), None)
    if not hit:
        return
    end = hit.start
    for s, e in sorted(taken, reverse=True):
        if s < end and not text[e:end].strip(" ,."):
            end = s
    lead = re.match(r"(?:(?:i|we)(?:'ve| have)?(?: got)? (?:to|need to|must|have to|should|mustn't forget to)|i'm supposed to|我(?:要|得|需要|还要)|得"
                    r"|要) ?", text[:end], re.I)
    start = lead.end() if lead else 0
    words = text[start:end].strip(" ,.")
    if lead and words:
        start = text.find(words, start)
        out.put(text, slot.name, (start, start + len(words)))


def name_of(out: Filled, text: str, c: Compiled, slot: Slot, taken: list) -> None:
    if slot.role == PERSON:
        runs = [r for r in spelled(text) if len(r.chars) >= 3 and len(re.sub(r"\D", "", r.chars)) >= 3]
        if runs:
            best = max(runs, key=lambda r: len(r.chars))
            out.arguments[slot.name], out.spans[slot.name] = best.chars, (best.start, best.end)
            return
    start, end = _name_span(c, text, slot, taken)
    if slot.role == PERSON:
        own = re.search(r"(?:我|咱|我们)$", text[:start])
        if own and own.start() > 0:
            start = own.start()
    if not slot.required:
        tail = re.search(r"\b(?:in|at|near|around|for|over) (?=\S)(?!the (?:morning|evening|afternoon))", text[start:end], re.I)
        start += tail.end() if tail else 0
    value = text[start:end].strip()
    if _only_actions(value):
        value = ""
    if not slot.required and value and not _placed(c, text, (start, end)):
        return
    if not value or value.lower() in VAGUE and not (c.refers and is_reference(value)):
        point = reference_in(text) if c.refers else None
        if point:
            out.put(text, slot.name, point)
        elif c.refers and re.search(r"\bit\b", text, re.I) and re.search(r"(?:take|bring|drive|get|go|navigate)\b.*\bit\b", text, re.I):
            at = re.search(r"\bit\b", text, re.I)
            out.put(text, slot.name, at.span())
        return
    if slot.role == PERSON and not _plausible_person(value) or _only_amount(value):
        return
    out.put(text, slot.name, (start, end))


def _name_span(c: Compiled, text: str, slot: Slot, taken: list) -> tuple[int, int]:
    """Where a free name stands: what is left of the clause it is announced in; between other slots, the best of the gaps."""
    if not taken:
        start, end = residue(c, text, _region(c, text, taken))
        return _announced(c, text, start, end)
    edges = [0, *(x for span in sorted(taken) for x in span), len(text)]
    best = (0, 0)
    for a, b in zip(edges[::2], edges[1::2]):
        if a >= b or not text[a:b].strip(" ,.;"):
            continue
        start, end = residue(c, text, _region(c, text, [], (a, b)))
        at = re.search(r"(?<!\w)at (?=\S)", text[start:end], re.I)
        led = bool(at and "at" in slot.leads)
        if led:
            start += at.end()
        if text[start:end].strip() and (led or best == (0, 0) or end - start > best[1] - best[0]):
            best = (start, end)
            if led:
                break
    return best


def _announced(c: Compiled, text: str, start: int, end: int) -> tuple[int, int]:
    """Words before the announcement are no part of the value: "my head hurts is there a drugstore"."""
    hits = [h for h in lexicon().hits(text) if h.name in c.frames and h.name.startswith("#") and h.name != "#speaker"]
    if not any(h.end <= start for h in hits):
        inner = [h for h in hits if h.end < end and len(text[start:h.start].split()) >= 3 or start < h.start < end and text[start:h.start].isspace()]
        if inner:
            return residue(c, text, (inner[0].start, end))
    return start, end


def _only_kind(c: Compiled, value: str) -> bool:
    """Nothing but what kind of name it is ("餐厅" where a restaurant's name is asked for)."""
    hits = [h for h in lexicon().hits(value.strip()) if h.name in c.kinds]
    return any(h.start == 0 and h.end == len(value.strip()) for h in hits)


def _only_actions(value: str) -> bool:
    """Nothing but words of doing ("off", "关掉") is no name."""
    rest = value
    for h in sorted((h for h in lexicon().hits(value) if h.name in ACTIONS), key=lambda h: -h.start):
        rest = rest[:h.start] + " " * (h.end - h.start) + rest[h.end:]
    return bool(value) and not re.sub(r"[\s,.]|\b(?:it|that|the|start|up|down)\b|一下|了|可以", "", rest, flags=re.I)


def _only_amount(value: str) -> bool:
    """A number with its unit is no name."""
    return bool(re.fullmatch(r"百分之[零一二三四五六七八九十百\d]+|[\d.]+ ?(?:percent|degrees|度)?", value.strip(), re.I))


def _plausible_person(value: str) -> bool:
    return (value.lower() not in VAGUE and len(value.split()) <= 5
            and not re.search(r"\b(?:that|which|after|before|place|thing|is|are|was|it)\b", value, re.I))


def _region(c: Compiled, text: str, taken: list, inside: tuple[int, int] | None = None) -> tuple[int, int]:
    """The part of the sentence where the value is to be looked for: the clause that the framing words stand in."""
    hits = [h for h in lexicon().hits(text) if h.name in c.frames and h.name.startswith("#") and h.name != "#speaker"]
    cuts = [m.start() for m in re.finditer(r"[,.;!?]\s|(?<=[㐀-鿿]) (?=[㐀-鿿])", text)]
    low, high = inside or (0, len(text))
    bounds = [low, *(cut for cut in cuts if low < cut < high), high]
    parts = [(a, b) for a, b in zip(bounds, bounds[1:]) if text[a:b].strip(" ,.;!?")]
    if len(parts) < 2 or not hits:
        return low, high
    framed = [p for p in parts if any(p[0] <= h.start < p[1] for h in hits)]
    for part in framed:
        start, end = residue(c, text, part)
        while True:
            covered = next(((s, e) for s, e in taken if s <= start < e), None)
            if not covered or covered[1] >= end:
                break
            start, end = residue(c, text, (covered[1], end))
        free = "" if _only_kind(c, text[start:end]) else text[start:end].strip()
        if free and not any(s <= start and end <= e for s, e in taken):
            return part
    named = any(re.search(r"\b(?:be at|be in|get to|go to|going to)\b", text[a:b], re.I) for a, b in parts if (a, b) not in framed)
    if c.refers and not named and any(reference_in(text[a:b]) for a, b in framed):
        return framed[-1]
    rest = [p for p in parts if p not in framed]
    for part in rest:
        start, end = residue(c, text, part)
        if text[start:end].strip() and not any(s <= start and end <= e for s, e in taken):
            return part
    return low, high


_NO_PLACE_ZH = re.compile(r"[要不会用出带穿洗我你是有没这哪么吗呢适可能得]|外面|那里|今天|现在|最近|气温|多少|几度|情况|外套|衣服")


def _placed(c: Compiled, text: str, span: tuple[int, int]) -> bool:
    """Whether words left over for an optional name really name something: a preposition leads to them, or they are capitalised."""
    value, before = text[span[0]:span[1]], text[:span[0]]
    if re.search(r"[㐀-鿿]", value):
        return len(value) >= 2 and not _NO_PLACE_ZH.search(value)
    if any(h.name.startswith("#") for h in lexicon().hits(value)) and not value[:1].isupper():
        return False
    if value[:1].isupper() and span[0] > 0:
        return True
    return bool(re.search(r"\b(?:in|at|for|around|over|near|to)(?: the)? $", before, re.I)) and len(value.split()) <= 4
