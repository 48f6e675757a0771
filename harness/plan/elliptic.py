"""Fragments that mean something only together with a request before: "no, the museum", "make that four people", "at half past six"."""
import re

from harness.plan import scales
from harness.plan.compile import BODY, CHOICE, CLOCK, DATE, FLAG, NAME, NUMBER, PERSON, SPELL, WHEN, WHOLE, Compiled
from harness.plan.numerals import numbers_said
from harness.plan.people import VAGUE
from harness.plan.residue import reference_in, residue
from harness.plan.amounts import no_amount
from harness.plan.filled import Filled
from harness.plan.slots import choose, fill
from harness.plan.spelling import spelled
from harness.plan.text import asked, folded
from harness.plan.times import DAY, HOUR, SPAN, times_said

_MARKS = re.compile(
    r"^(?:(?:oh|ah|um|hey|ok|okay|well|please|then|and|so|yes|yeah|just|only|in fact|it was|no wait|no+|nope|nah|actually|sorry|wait|hang on"
    r"|hold on|i meant? to say|i meant?|i said|i want(?:ed)?(?: it| that| you)?(?: to be)?|rather|let's (?:make|do|say|go with|change)(?: it"
    r"| that)?(?: to)?|make (?:it|that|them|those)(?: to)?|(?:can|could) (?:we|you) (?:make|change|move|switch|push) (?:it|that"
    r"|the \w+) ?(?:to|for)?|change (?:it|that|this|them|the \w+|my \w+|of plans?)(?: to)?|switch (?:it|that|the \w+)? ?to"
    r"|move (?:it|that|the \w+) (?:to|back to|forward to)|push (?:it|that|the \w+) (?:to|back to)|set (?:it|that) (?:to|at)|correction|instead"
    r"|on second thoughts?|better|scratch that|it(?:'s| is)(?: actually| really)?(?: for| at| on| to| going to)?|it should (?:be|say|go to)"
    r"|that should (?:be|say|have been)|should be|the \w+ should be|my mistake|oops|i'd (?:rather|like|prefer)(?: have)?|i would (?:rather|like"
    r"|prefer)|i prefer|we(?:'re| are)(?: actually| now)?(?: going to)?|use|try|say|what about|how about|maybe|perhaps"
    r"|不是|不对|不|错了|我?说错了|搞错了|弄错了|哦|啊|嗯|那|哎|诶|要不|那个|等等|等一下|应该是|我(?:是)?说的?(?:是)?|我的意思是?|还是|改成|改到|改为|换成|换到|改|换|是|就|算了|给我|帮我|请|麻烦|把.{1,8}?(?:改成|改到"
    r"|换成|改为|调成|设成)|.{1,6}?(?:改成|改到|换成|改为|改)|要|我要|我想要?|到|定在|定|用|设成|调到|调成)(?![a-z])[ ,.]*)+", re.I)
_TAIL = re.compile(r"[ ,.]*(?:(?<![a-z])(?:instead|please|then|actually|in fact|rather|i mean|i meant|sorry|thanks)|吧|好了|才对|啊|呀|哦|谢谢|的)$", re.I)
_CONTRAST = (
    re.compile(r"^(?:.*?\b(?:i said|i meant|make it|i want(?:ed)?|it's|to|for|at)? )?(?P<new>[^,]+?),? not (?:the |a |an |for |to |at "
               r"|on )?(?P<old>[\w' -]+)$", re.I),
    re.compile(r"^not (?:the |a |an |for |to |at |on )?(?P<old>[\w' ]+?)(?:,| but| -|\.) ?(?:but |i (?:want|said|meant|mean) |rather |it's "
               r"|make it )?(?P<new>.+)$", re.I),
    re.compile(r"^(?:.*?\b)?(?:did|didn't) i say (?P<old>.+?)[ ,?]+(?:well |but |sorry )?i (?:meant?|want(?:ed)?)(?: to say)? (?P<new>.+)$", re.I),
    re.compile(r"^(?P<new>.+?) (?:instead of|rather than) (?:the |a |an )?(?P<old>.+)$", re.I),
    re.compile(r"^(?:哦|啊|嗯)?[ ,]*(?:不是|不要|别|不去|不给)(?:给|去|到|放|找)? ?(?P<old>.+?)[ ,]*(?:我说的是|应该是|而是|要的是|我要的?是?|我要|要|是|改成|换成|去|给|找|放)(?:给|去"
               r"|到)? ?(?P<new>.+?)(?:吧|啊|的)?$"),
    re.compile(r"^(?P<new>[^吗呢?]+?)[ ,]*(?<!是)(?:而不是|不是|不要|别)(?:去|给|打给|发给|到|放|找|订)? ?(?P<old>(?!了)[^吗呢?了,]{1,12}?)(?:吧|啊|的)?$"),
)


_SOFT = re.compile(r"^(?:(?:no|wait|sorry|actually|oh|um|nope|hey|please|well|hang on|hold on|哦|啊|嗯|等等)[ ,.]+)+(?=.*\S)", re.I)


def contrast(text: str) -> tuple[str, str] | None:
    """(what is meant, what is not) of "twenty-three, not twenty" and its kin."""
    text = _SOFT.sub("", text)
    for pattern in _CONTRAST:
        m = pattern.match(text)
        if m and m["new"].strip() and m["old"].strip():
            return m["new"].strip(" ,"), m["old"].strip(" ,")
    return None


def bare(text: str) -> str:
    """Without the words that only say that something is corrected or answered."""
    while True:
        shorter = _TAIL.sub("", _MARKS.sub("", text, count=1)).strip(" ,.")
        if not shorter or shorter == text:
            return text
        text = shorter


def changes(c: Compiled, text: str, base: dict, wanted: tuple[str, ...] = (), free: bool = True) -> dict:
    """The arguments that a fragment gives for a request whose arguments were `base`; {} where it gives none.

    `wanted`: the arguments asked for, those first. `free`: words that fit no typed slot may fill a free one.
    """
    pair = contrast(text)
    old = ""
    if pair:
        text, old = pair
    words = bare(text)
    spelled_change = _spelled_change(c, text, old, base)
    if spelled_change is not None:
        return spelled_change
    out: dict = {}
    times = times_said(words, bare_hours=True)
    roles = {s.role: s for s in c.slots.values()}
    used: list[tuple[int, int]] = []
    numbers = [n for n in numbers_said(words) if not no_amount(c, words, n)]
    number_slots = [s for s in c.slots.values() if s.role == NUMBER]
    filled = fill(c, asked(words)) if not c.whole else Filled()
    if SPELL in roles:
        runs = [r for r in spelled(words) if re.search(r"\d", r.chars)]
        if runs:
            best = max(runs, key=lambda r: len(r.chars))
            value = best.chars
            before = str(base.get(roles[SPELL].name, ""))
            if not before or len(value) >= max(2, len(before) - 1):
                return {roles[SPELL].name: value}
            return {}
    clock, date, when = roles.get(CLOCK), roles.get(DATE), roles.get(WHEN)
    people = next((s for s in number_slots if clock and s), None)
    for n in numbers:
        for slot in number_slots:
            if any(t.start <= n.start < t.end for t in times) and not _counts(words, n, slot):
                continue
            if clock and not _counts(words, n, slot) and slot.name not in wanted:
                continue
            way = 0 if re.search(r"\b(?:less|more)\b(?! (?:warm|cool|cold|hot))|少|多", words, re.I) and slot.name in base else scales.direction(words)
            value = n.value * (-1 if slot.signed and (way or (1 if base.get(slot.name, 1) >= 0 else -1)) < 0 and n.value > 0 else 1)
            if slot.signed and any(not s.signed for s in number_slots) and not scales.direction(words) and base.get(slot.name) is None:
                continue
            if slot.low is not None and not slot.low <= value <= slot.high:
                continue
            if n.ordinal or not float(value).is_integer() and slot.schema.get("type") == "integer":
                continue
            out[slot.name] = int(value) if float(value).is_integer() else value
            used.append((n.start, n.end))
            break
    times = [t for t in times if not any(t.start <= s < t.end for s, _ in used)]
    if when and times:
        last = times[-1]
        whole = words[times[0].start:last.end] if re.fullmatch(r"[\w\s,:'.㐀-鿿-]*", words[times[0].start:last.end]) else words[last.start:last.end]
        out[when.name] = whole
        used.append((times[0].outer, last.end))
    for t in times:
        if clock and t.kind in (HOUR, SPAN):
            out[clock.name] = words[t.start:t.end]
            used.append((t.outer, t.end))
        elif date and t.kind in (DAY, SPAN):
            out[date.name] = words[t.start:t.end]
            used.append((t.outer, t.end))
    if clock and not clock.name in out and not out and numbers and (clock.name in wanted or "people" not in text):
        n = numbers[-1]
        if clock.name in wanted or clock.name in base:
            out[clock.name] = words[n.start:n.end]
            used.append((n.start, n.end))
    for slot in c.slots.values():
        if slot.role == CHOICE:
            said = Filled()
            choose(said, text, slot)
            if slot.name in said.arguments and said.arguments[slot.name] != base.get(slot.name, slot.default):
                out[slot.name] = said.arguments[slot.name]
        elif slot.role == FLAG and slot.name in filled.arguments and filled.arguments[slot.name] != base.get(slot.name, slot.default):
            out[slot.name] = filled.arguments[slot.name]
        elif slot.role == NUMBER and slot.name not in out and all(not float(n.value).is_integer() for n in numbers):
            value = filled.arguments.get(slot.name)
            if value is not None and value != base.get(slot.name):
                out[slot.name] = value
    if not free or c.whole and not wanted:
        return out
    name = _free_slot(c, text, base, old, wanted)
    if not name:
        return out
    slot = c.slots[name]
    if slot.role == WHOLE:
        return out | {name: words}
    value = _free_value(c, slot, words, used, asked(words), filled, out, old, str(base.get(name, "")))
    if value and folded(value) != folded(str(base.get(name, ""))):
        out[name] = value
    return out


def _spelled_change(c: Compiled, text: str, old: str, base: dict) -> dict | None:
    """A change inside an id: "it ends in eight", "the last two are four four", "K, not Q"; None where it is none."""
    slot = next((s for s in c.slots.values() if s.role == SPELL or s.role == PERSON and re.fullmatch(r"\d{3,}", str(base.get(s.name, "")))), None)
    before = str(base.get(slot.name, "")) if slot else ""
    if not before:
        return None
    m = re.search(r"\b(?:ends (?:in|with|on)|(?:the )?last (?:digit|one|two|three|letter|character|number|bit)s?(?: (?:digits|letters"
                  r"|characters|numbers))?(?: is| are| should be)?|at the end(?: is| it's)?)\b|最后(?:一|两|二|三)?(?:位|个)(?:数字?)?(?:是|应该是)?|尾号(?:是)?"
                  r"|末尾(?:是)?", text, re.I)
    if m:
        runs = [r for r in spelled(text) if r.start >= m.end() - 1]
        if runs:
            return {slot.name: before[:-len(runs[0].chars)] + runs[0].chars}
    m = re.search(r"\b(?:starts with|begins with|the first (?:digit|letter|one)(?: is)?)\b|开头是|第一(?:位|个)是", text, re.I)
    if m:
        runs = [r for r in spelled(text) if r.start >= m.end() - 1]
        if runs:
            return {slot.name: runs[0].chars + before[len(runs[0].chars):]}
    m = _ONE_CHARACTER.search(text)
    gone, new = ((m["old"] or m["old2"]).upper(), (m["new"] or m["new2"]).upper()) if m else ("", "")
    if gone and before.count(gone) == 1:
        return {slot.name: before.replace(gone, new)}
    if old:
        gone, new = [r.chars for r in spelled(old)] or [old.strip().upper()], [r.chars for r in spelled(text)] or [bare(text).strip().upper()]
        if gone and new and len(gone[-1]) < len(before) and before.count(gone[-1]) == 1 and len(new[-1]) <= 3:
            return {slot.name: before.replace(gone[-1], new[-1])}
    return None


_ONE_CHARACTER = re.compile(
    r"\b(?:the )?(?P<old>[A-Za-z0-9]) (?:was|is|should|needs to|has to|must)(?: \w+){0,3}? (?:a |an )?(?P<new>[A-Za-z0-9])$"
    r"|(?<![A-Za-z0-9])(?P<old2>[A-Za-z0-9]) ?(?:应该|其实)是 ?(?P<new2>[A-Za-z0-9])$", re.I)
"""One character of an id for another: "the B should be a D"."""


def _counts(words: str, n, slot) -> bool:
    """Whether the number counts people (or another unit that the slot's examples use)."""
    after, before = words[n.end:].lower().lstrip(" -"), words[:n.start].lower()
    if slot.name in ("people", "guests", "persons", "seats"):
        leads = re.search(r"(?:for|party of|table for|there(?:'ll be| will be| are|'s)|we(?:'re| are|'ll be)) $", before)
        return bool(re.match(r"people|persons?|guests?|of us|个?人|位|个(?!小时|钟|月)|adults|seats|diners", after) or leads
                    and not re.match(r"(?:thirty|fifteen|forty|o'clock|pm|am|in the|点)", after))
    return any(after.startswith(u) for u in slot.units) or not slot.units


_ABOUT_BODY = re.compile(r"\b(?:say|tell (?:him|her|them)|write|that it|the (?:message|text) should)\b|内容|说(?:成)?(?!错)", re.I)


def _free_slot(c: Compiled, text: str, base: dict, old: str, wanted: tuple[str, ...]) -> str:
    """Which free argument a fragment is about."""
    frees = [s for s in c.slots.values() if s.free]
    named = [s.name for s in frees if s.name in wanted]
    if named:
        return named[0]
    if c.whole and c.whole.name in wanted:
        return c.whole.name
    if not frees:
        return ""
    if old:
        for s in frees:
            if folded(old) and folded(old) in folded(str(base.get(s.name, ""))):
                return s.name
    persons, bodies = [s for s in frees if s.role == PERSON], [s for s in frees if s.role == BODY]
    if persons and bodies:
        if _ABOUT_BODY.search(text) and not re.search(r"我(?:是)?说的是?", text):
            return bodies[0].name
        return persons[0].name
    return (persons or [s for s in frees if s.role == NAME] or bodies)[0].name


def _free_value(c: Compiled, slot, words: str, used: list, plain: str, filled: Filled, out: dict, old: str = "", before: str = "") -> str:
    if slot.role == PERSON:
        runs = [r for r in spelled(words) if len(re.sub(r"\D", "", r.chars)) >= 3]
        if runs:
            return max(runs, key=lambda r: len(r.chars)).chars
    if slot.role == BODY and old and len(folded(old)) < len(folded(before)) and before.lower().count(old.lower()) == 1:
        new = re.sub(r"^(?:say|write|put|it's|i mean|说|写)[ ,:]+", "", re.split(r"[,，] ?", words)[-1], flags=re.I)
        at = before.lower().find(old.lower())
        return before[:at] + new + before[at + len(old):]  # a part of the text for another
    if slot.role == BODY:
        if out and not re.match(r"(?:say|saying|that|tell|write|to (?=[a-z]+ )|the (?:text|message)|说|就说|内容|写)", words, re.I):
            return ""
        body = re.sub(r"^(?:(?:say|saying|that|tell (?:him|her|them)(?: that)?|write|just|it's|to|说|就说|告诉[他她]|写|内容是)[ ,:]*)+", "", words, flags=re.I)
        for s, e in sorted(used, reverse=True):
            if not s and slot.name in filled.arguments:
                return str(filled.arguments[slot.name])
        if used and _covered(words, used):
            return ""
        return body.strip(" ,.")
    start, end = residue(c, words)
    start, end = _strip_person(words, start, end) if slot.role == PERSON else (start, end)
    edges = [start, *(x for span in sorted(used) for x in span), end]
    gaps = [residue(c, words, (max(a, start), min(b, end))) for a, b in zip(edges[::2], edges[1::2]) if min(b, end) > max(a, start)]
    start, end = max(gaps, key=lambda g: g[1] - g[0], default=(start, start))
    value = words[start:end].strip(" ,.")
    if slot.role != PERSON and (not value or value.lower() in VAGUE):
        point = reference_in(words)
        value = words[point[0]:point[1]] if point else ""
    if out and slot.role == NAME and not re.search(r"(?:\b(?:at|in|to|with)(?: the)?|在|去|到) ?$", words[:start], re.I):
        return ""  # "Sunday is better" changes the day alone
    return "" if value.lower() in VAGUE and not (c.refers and value) else value


def _covered(words: str, used: list) -> bool:
    """Whether nothing but little words is left beside what typed slots took."""
    rest = words
    for s, e in sorted(used, reverse=True):
        rest = rest[:s] + " " + rest[e:]
    return not re.sub(r"\b(?:at|on|for|in|by|the|to|it's|is|please|and|make|it|that)\b|[ ,.]|吧|的|在", "", rest, flags=re.I)


def _strip_person(words: str, start: int, end: int) -> tuple[int, int]:
    """"to Bob", "给王姐发", "call Paula": the person alone; "my" belongs to it."""
    m = re.match(r"(?:(?:send it|send|call|ring|text|message|tell|to|dial|phone|打电话|打|发|拨)?\s*(?:给|到|to|for)?\s*)", words, re.I)
    own = re.search(r"(?:\b(?:my|our)|我|咱) ?$", words[:start], re.I)
    if own:
        start = own.start()
    elif m and m.end() > start:
        start = m.end()
    tail = re.search(r"(?:发(?:过去|消息|短信|吧)?|打(?:过去|电话|吧)?|说|的)$", words[start:end])
    return start, start + tail.start() if tail and tail.start() else end


def complete(c: Compiled, arguments: dict) -> bool:
    return all(name in arguments for name in c.required)


_ASKS_FOR = {
    WHEN: r"\bwhen\b|\bwhat time\b|什么时候|几点|时间",
    DATE: r"\bwhen\b|\bwhich day\b|\bwhat day\b|\bdate\b|哪天|哪一天|什么时候|日期|几号",
    CLOCK: r"\bwhat time\b|\bwhen\b|几点|时间|什么时候",
    PERSON: r"\bwho\b|谁|哪位|\bwhich number\b|号码",
    BODY: r"\bwhat should (?:it|i|the)\b|\bsay\b|\bwrite\b|\babout what\b|什么内容|说什么|内容|写什么|提醒.*什么|记什么",
    NUMBER: r"\bhow many\b|\bhow much\b|\bwhat (?:temperature|level|percent\w*)\b|多少|几[度个位人档]",
    SPELL: r"\bnumber\b|\bid\b|\bcode\b|号",
    NAME: r"\bwhere\b|\bwhich\b|\bwhat (?:kind|place|would|do you want)\b|哪里|哪儿|哪家|什么|哪个",
    CHOICE: r"\bwhich\b|哪",
    FLAG: r"\bopen or\b|\bon or\b|还是"}
"""How an open question asks for an argument of each role."""


def wanted_by(c: Compiled, base: dict, question: str) -> tuple[str, ...]:
    """The arguments that an open question is about: those it names and that are missing, else all that are missing."""
    missing = tuple(n for n in c.required if n not in base)
    low = question.lower()
    if missing:
        named = tuple(n for n in missing if re.search(_ASKS_FOR.get(c.slots[n].role, "$^"), low))
        return (*named, *(n for n in missing if n not in named))
    return tuple(n for n, s in c.slots.items() if s.role in _ASKS_FOR and re.search(_ASKS_FOR[s.role], low) and (s.role == CHOICE or n in low))
