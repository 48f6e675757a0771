"""Self-corrections inside one sentence: "to Nice, no, Menton" keeps Menton alone.

What is corrected is found by likeness: the same word before it ("to … no, to …"), the same kind of value (a number, a time, an
id), else the value that the sentence so far ends in.
"""
import re
from typing import Callable

from harness.plan.numerals import numbers_said
from harness.plan.spelling import spelled
from harness.plan.times import times_said

_EN = (r"(?:oh |ah |um |uh |er )?(?:no wait|wait no|wait,? no|no,? no|no sorry|sorry no|no,? i mean|no,? make (?:that|it)|no,? actually"
       r"|no,? rather|nope|nah|no|wait|sorry|i mean(?:t)?(?: to say)?|actually|or rather"
       r"|make that|make it|scratch that|correction|i should say|rather|let's say|i said|hold on|hang on|my mistake|excuse me|strike that|better)")
_MARK_EN = re.compile(rf"(?:(?<=[\w'])[ ,.]+|^){_EN}(?:[ ,.]+(?:{_EN}|that's (?:too \w+|wrong|not (?:it|right)))(?=[ ,.]))*[ ,.]+", re.I)
_MARK_ZH = re.compile(
    r"[ ,.]*(?:(?:哦|啊|呃|额|嗯|噢|诶|欸)?[ ,]*(?:不对不对|不是不是|不对|不是|哦不|啊不|不不|说错了|错了|搞错了|我是说|我的意思是|应该是|应该|算了|等等|等一下|(?<![a-z])(?:sorry|no no|no|wait"
    r"|actually)(?![a-z])|(?<=[ ,])不|更正|改成)[ ,.]*)+(?:我(?:是)?说的?是?|应该是?|还是|是|改成|换成)?[ ,]*|[ ,]+还是(?=[㐀-鿿\d])")
_WEAK = re.compile(r"[ ,]+(?:u+m+|u+h+|e+r+m*|嗯+|呃+)[ ,]+(?=(a|an|the|to|in|at|for|on) )", re.I)
_VERBS = re.compile(r"^(?:take|go|find|call|send|text|message|play|set|make|turn|open|close|book|reserve|remind|navigate|drive|bring|put|tell"
                    r"|look|search|show|ring|write|note|lock|unlock|cancel|check|get|check"
                    r"|找|去|导航|打|给|发|放|播|设|调|开|关|订|提醒|带|查|搜|听|记|锁|取消|把)", re.I)
_PREPOSITIONS = frozenset("to at in on for by from with the a an my 到 去 给 在 是 找 放 听 订 打 带".split())
LastValue = Callable[[str], tuple[int, int] | None]


def without_hesitations(prose: str) -> str:
    """"an Italian, uh, a Greek restaurant" before the "uh" is lost to cleaning: what is begun anew replaces what was begun."""
    weak = _WEAK.search(prose)
    if not weak:
        return prose
    word = weak[1].lower()
    same = ("a", "an") if word in ("a", "an") else (word,)
    at = max(prose.lower().rfind(f" {w} ", 0, weak.start()) for w in same)
    near = at >= 0 and len(prose[at:weak.start()].split()) <= 4
    return prose[:at + 1] + prose[weak.end():] if near else prose




def corrected(text: str, last_value: LastValue) -> tuple[str, bool]:
    """The sentence as finally meant, and whether anything was corrected. `last_value`: where the last slot value of a text stands."""
    changed = False
    for _ in range(3):
        shorter = _once(text, last_value)
        if shorter is None:
            return text, changed
        text, changed = shorter, True
    return text, changed


def split_at_marks(text: str) -> list[tuple[str, str]]:
    """(before, after) of every correction mark inside the sentence."""
    found = []
    for pattern in (_MARK_EN, _MARK_ZH):
        for m in pattern.finditer(text):
            before, after = text[:m.start()].rstrip(" ,."), text[m.end():].lstrip(" ,.")
            if before and after and not _inert(m.group(), before, after):
                found.append((before, after))
    return found


def _once(text: str, last_value: LastValue) -> str | None:
    for pattern in (_MARK_EN, _MARK_ZH):
        for m in pattern.finditer(text):
            before, after = text[:m.start()].rstrip(" ,."), text[m.end():].lstrip(" ,.")
            if not before or not after or _inert(m.group(), before, after):
                continue
            joined = _replace(before, after, last_value)
            if joined:
                return joined
    return None


_SAYS_NO = re.compile(r"\b(?:there(?:'s| is| are)|has|have|say|said|says|with|is|are|i have|we have|got|saying|in)$", re.I)
_BEFORE_NUMBER = re.compile(r"(?:to |at |for |about |level |百分之|到|是|第|by )?")


def _inert(mark: str, before: str, after: str) -> bool:
    """Words that look like a correction but are none: "there's no …", "say no to", "I mean it", "make it warmer" after "and"."""
    word = mark.strip(" ,.").lower()
    if word == "no" and "," not in mark and _SAYS_NO.search(before):
        return True
    if word in ("no", "不") and re.match(r"(?:one|longer|more|idea|problem|way|need|matter)\b", after, re.I):
        return True
    if word in ("make it", "make that", "actually", "better", "rather", "wait", "sorry", "i said", "let's say") and "," not in mark:
        if word in ("better", "rather", "wait", "i said") or not (_typed(after) and _typed(before)):
            return not (word == "sorry" and before and re.match(r"(?:to|at|in|on|for|the) ", after, re.I) or word == "actually" and _typed(after))
    if word in ("wait", "sorry", "i said", "better", "make it") and _VERBS.match(after) and re.search(r"\b(?:and|to|that)$", before, re.I):
        return True
    if word in ("算了", "应该", "等一下", "等等") and not _typed(after) and word != "算了":
        return True
    if word == "不是" and re.search(r"是$", before):
        return True
    return bool(re.search(r"\b(?:and|or|but)$", before, re.I))


def _typed(words: str) -> str:
    """The kind of value that `words` begin or end with: time, number, or "" for plain words."""
    times = times_said(words, bare_hours=True)
    if times and times[0].outer <= 3:
        return "time"
    numbers = numbers_said(words)
    return "number" if numbers else ""


def _replace(before: str, after: str, last_value: LastValue) -> str | None:
    low_before, low_after = before.lower(), after.lower()
    first = re.match(r"[a-z']+|[㐀-鿿]", low_after)
    # A whole new command replaces the old one, unless it opens with the same words ("send Julia, no, send Julian a …" is the same case).
    if first and _VERBS.match(after) and not low_after.startswith(("make it", "make that")):
        if len(re.findall(r"[a-z']+|[㐀-鿿]", low_after)) >= 2:
            lead = _VERBS.match(after).group().lower()
            at = low_before.rfind(lead)
            if at >= 0:
                return _tidy(before[:at], after) if at <= 3 or not re.search(r"[a-z]", lead) or at > 0 else after
            if not re.match(r"(?:是|在|到)", after):
                return after
    ids_before = [r for r in spelled(before) if len(r.chars) >= 2 and re.search(r"\d", r.chars)]
    ids_after = [r for r in spelled(after) if r.start <= 4 and len(r.chars) >= 2 and re.search(r"\d", r.chars)]
    times_before, times_after = times_said(before, True), times_said(after, True)
    if times_after and times_after[0].outer <= 1 and times_before:
        old = [t for t in times_before if t.kind == times_after[0].kind] or times_before
        start = old[-1].outer if times_after[0].outer < times_after[0].start else old[-1].start
        return _tidy(before[:start], after)
    if ids_before and ids_after and len(ids_before[-1].chars) > 2 and len(ids_after[0].chars) > 1:
        return _tidy(before[:ids_before[-1].start], after[ids_after[0].start:])
    numbers_before, numbers_after = numbers_said(before), numbers_said(after)
    if numbers_after and numbers_before and numbers_after[0].start <= 6 and _BEFORE_NUMBER.fullmatch(low_after[:numbers_after[0].start]):
        old = numbers_before[-1]
        rest = after[numbers_after[0].end:]
        unit = before[old.end:]
        start = old.start
        if before[:start].endswith("百分之") and "百分之" in low_after[:numbers_after[0].start]:
            start -= 3
        kept = "" if rest.strip(" ,.") else unit
        lead = low_after[:numbers_after[0].start].strip()
        if lead and low_before[:start].rstrip().endswith(lead):
            start = len(low_before[:start].rstrip()) - len(lead)
        return _tidy(before[:start], after + kept)
    if first and (first.group() in _PREPOSITIONS):
        word = first.group()
        spaced = rf"(?<![a-z']){re.escape(word)}(?![a-z'])" if word.isascii() else re.escape(word)
        found = [m.start() for m in re.finditer(spaced, low_before)]
        if word in ("a", "an", "the"):
            found = [m.start() for m in re.finditer(r"(?<![a-z'])(?:a|an|the|some)(?![a-z'])", low_before)] or found
        if found:
            return _tidy(before[:found[-1]], after)
    value = last_value(before)
    if value:
        cleaned = re.sub(r"^(?:是|改成|the|a|an) ?", "", after, flags=re.I) if not after.startswith("是否") else after
        tail = _shared_tail(before[value[0]:value[1]], cleaned)
        return _tidy(before[:value[0]], cleaned + (tail if not cleaned.endswith(tail) else "") + before[value[1]:])
    return None


def _shared_tail(old: str, new: str) -> str:
    """"去上海 哦不 苏州的天气": nothing to add; kept for symmetry of Chinese possessives ("主驾的窗" corrected by "副驾的")."""
    m = re.search(r"的[㐀-鿿]{1,3}$", old)
    return m.group()[1:] if m and new.endswith("的") else ""


def _tidy(head: str, tail: str) -> str:
    joint = "" if not head or head[-1] == " " or not (head[-1].isascii() and tail[:1].isascii()) else " "
    return re.sub(r"\s+", " ", head.rstrip(",") + joint + tail).strip(" ,")
