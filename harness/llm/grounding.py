"""Whether a reworded result says no more than the result: numbers, units, names, opposites, and what failed.

Deterministic and wary: a rewording that can't be shown to be supported is refused, and the template is spoken instead. It can't
understand: a wrong claim made only of common words that the result doesn't contradict gets through.
"""
import re
from typing import Any, Iterable

from harness.values import numbers_in

_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
_NAME = re.compile(r"[A-Z][\w'’-]*")
_CHUNK = re.compile(r"\d+(?:[.,:]\d+)*|[A-Za-z]+|[零〇一二两三四五六七八九十百点半]+")
_OPENERS = frozenset("""a about after all alright also although and another as at because before both but by done either every everything for
from good great here hi however i if i'm i've i'll in is it it's its just like next no none not nothing now of ok okay on one only or our please
right since so sorry still sure that that's the their then there there's these they they're this those though to today tonight too
unfortunately we we're we've well what when where which while with yes you you're you've your""".split())
"""Words that may begin a sentence without being a name."""
_ALWAYS_CAPITAL = frozenset({"i", "i'm", "i've", "i'll", "i'd", "ok"})
_UNITS = """degrees? celsius fahrenheit percent per\\s?cent minutes? hours? seconds? days? weeks? kilomet(?:re|er)s? met(?:re|er)s? miles? feet km
kph mph euros? dollars? pounds? yuan litres? liters? kilowatts? stars? stops? 度 摄氏 华氏 百分之 分钟 小时 秒 天 公里 千米 米 英里 元 块 欧元 美元 升 千瓦 星""".split()
_IDIOMS = re.compile(r"\bone of (?:them|these|those)|\b(?:no|that|this|the|which|another|nearest|closest|next|first|last|other) one\b|one moment"
                     r"|一下|一点|有点|一些|一起|一直|一样|一定|一会儿?|一切|第一时间|差不多|不过|不错|不好意思|不久|是不是|要不要|百分之", re.I)
_EN_NOT = re.compile(r"\b(?:not|no|never|none|nothing|nobody|neither|nor|without|cannot|unable|fail(?:ed|s|ure)?|unavailable|impossible)\b"
                     r"|n[’']t\b", re.I)
_ZH_NOT = re.compile(r"不|没|无|未|别|失败")
_EN_FAILED = re.compile(_EN_NOT.pattern + r"|\b(?:sorry|unfortunately|afraid|only|refused|denied|error|problem|wrong|too)\b", re.I)
_ZH_FAILED = re.compile(_ZH_NOT.pattern + r"|抱歉|对不起|遗憾|只能|只有|错误|故障|问题|拒绝|太")
_CLAIM = re.compile(r"\b(?:done|all set|success\w*|complete[ds]?|finished)\b"
                    r"|\b(?:is|are|it['’]s|now) (?:now )?(?:set|open|closed|on|off|locked|unlocked|ready)\b"
                    r"|已|成功|好了|完成|搞定|妥", re.I)
_OPPOSITES = tuple(tuple(re.compile(side, re.I) for side in pair) for pair in (
    (r"\bopen\w*|打开|开启|开着", r"\bclos(?:ed|e|ing)\b|\bshut\b|关闭|关上|关着"), (r"\block(?:ed|s)?\b|上锁|锁上|锁好", r"\bunlock\w*|解锁"),
    (r"\bleft\b|左", r"\bright\b|右"), (r"\bup\b|\bhigher\b|\braised?\b|\bincreas\w+|调高|升高|升", r"\bdown\b|\blower\w*|\bdecreas\w+|\breduc\w+|调低|降低|降"),
    (r"\bwarmer\b|暖", r"\b(?:cooler|colder)\b|凉|冷"), (r"\b(?:turn|switch|power)(?:ed|ing)? on\b|\b(?:is|are) on\b|'s on\b",
                                                       r"\b(?:turn|switch|power)(?:ed|ing)? off\b|\b(?:is|are) off\b|'s off\b"),
    (r"\bstart(?:ed|s|ing)?\b|开始", r"\bstop(?:ped|s|ping)?\b|\bend(?:ed|s)?\b|停止|结束"),
    (r"\bfirst\b|第一", r"\blast\b|最后"), (r"\bnorth\w*|北", r"\bsouth\w*|南"),
    (r"\beast\w*", r"\bwest\w*"), (r"\bbefore\b|之前|以前", r"\bafter\b|之后|以后"), (r"\bmore\b|以上|超过", r"\b(?:less|fewer)\b|以下|不到"),
    (r"\bfull\b|\bavailable\b|可用|空闲", r"\bempty\b|\bunavailable\b|\boccupied\b|占用"), (r"\bdriver\b|驾驶|主驾", r"\bpassenger\b|副驾|乘客")))
_PLACE_END = re.compile(r"(?:大道|大街|路|街|站|店|市|区|县|省|桥|村|镇|机场|医院|大学|公园|广场|酒店|宾馆|餐厅|商场|中心|先生|女士|小姐)")
_NOT_NAME = frozenset("的在到去往离从家个座这那哪该您你我他她它附近有是和与了间条站路过找为并最前")
_HAN = re.compile(r"[\u4e00-\u9fff]")


def ungrounded(sentence: str, text: str, facts: Any, *, ok: bool, lang: str) -> str:
    """Why `sentence` is not supported by `text` (the result in words) and `facts` (its data, nested); "" where it is."""
    strings = list(_strings(facts))
    source = "\n".join([text, *strings])
    han = bool(_HAN.search(sentence))
    if (lang == "zh" and not han) or (lang != "zh" and han and not _HAN.search(source)):
        return "language"
    if re.search(r"[?？]", sentence) and not re.search(r"[?？]", text):
        return "question"
    plain, known = _IDIOMS.sub(" ", sentence), numbers_in(source) | numbers_in(_IDIOMS.sub(" ", source)) | set(_numbers(facts))
    if any(all(abs(n) != k for k in known) for n in numbers_in(plain)):
        return "number"
    if numbers_in(plain) and any(re.search(_unit(u), sentence, re.I) and not re.search(_unit(u), source, re.I) for u in _UNITS):
        return "unit"
    if any(_bare(name) not in _words(source) for name in names(sentence)) or _unknown_places(sentence, source):
        return "name"
    if not _in_order(_facts(sentence), _facts(text)):
        return "order"
    for one, other in _OPPOSITES:
        for mine, its in ((one, other), (other, one)):
            if mine.search(sentence) and not mine.search(source) and its.search(source):
                return "opposite"
    return _polarity(sentence, text, ok, lang)


def names(sentence: str) -> list[str]:
    """Capitalised words that may be names; the first of a sentence counts unless it is a common one. In Chinese: all Latin words."""
    if _HAN.search(sentence):
        return [word for word in _WORD.findall(sentence) if len(word) > 1]
    found = []
    for match in _NAME.finditer(sentence):
        word = match[0].casefold().replace("’", "'")
        first = not re.search(r"[^\s\"'“(]", sentence[:match.start()]) or re.search(r"[.!?:;]\s*[\"'“(]*$", sentence[:match.start()])
        if word not in _ALWAYS_CAPITAL and not (first and word in _OPENERS):
            found.append(match[0])
    return found


def _polarity(sentence: str, text: str, ok: bool, lang: str) -> str:
    no, failed = (_ZH_NOT, _ZH_FAILED) if lang == "zh" else (_EN_NOT, _EN_FAILED)
    mine, its = _IDIOMS.sub("", sentence), _IDIOMS.sub("", text)
    if bool(no.search(mine)) != bool(no.search(its)):
        return "negation"
    if not ok and not failed.search(mine):
        return "failure"
    if not ok and any(claim.casefold() not in text.casefold() for claim in _CLAIM.findall(mine)):
        return "failure"
    return ""


def _strings(facts: Any) -> Iterable[str]:
    if isinstance(facts, str):
        yield facts
    elif isinstance(facts, dict):
        for value in facts.values():
            yield from _strings(value)
    elif isinstance(facts, (list, tuple)):
        for value in facts:
            yield from _strings(value)


def _numbers(facts: Any) -> Iterable[float]:
    if isinstance(facts, (int, float)) and not isinstance(facts, bool):
        yield abs(float(facts))
    elif isinstance(facts, (dict, list, tuple)):
        for value in facts.values() if isinstance(facts, dict) else facts:
            yield from _numbers(value)


def _unit(unit: str) -> str:
    return rf"\b{unit}\b" if unit.isascii() else unit


def _words(text: str) -> set[str]:
    return {_bare(word) for word in re.findall(r"[\w'’-]+", text)} | {part.casefold() for part in re.findall(r"[^\W_]+", text)}


def _bare(word: str) -> str:
    return re.sub(r"['’]s$", "", word.casefold())


def _unknown_places(sentence: str, source: str) -> bool:
    """Whether a place or person by its ending ("南京路") isn't in the source: the ending and the two characters before it."""
    for match in _PLACE_END.finditer(sentence):
        before = re.search(r"[\u4e00-\u9fff]{1,2}$", sentence[:match.start()])
        if before is None or before[0][-1] in _NOT_NAME:
            continue
        stem = before[0][-1] if before[0][0] in _NOT_NAME else before[0]
        if stem + match[0] not in source:
            return True
    return False


def _facts(text: str) -> list[Any]:
    """Numbers and names in the order they are said, numbers in one form whichever way they are written."""
    found: list[tuple[int, Any]] = []
    run, start, end = "", 0, 0
    for match in [*_CHUNK.finditer(_IDIOMS.sub(lambda m: " " * len(m[0]), text)), None]:
        part = match[0] if match else ""
        joins = run and (part.lower() in ("point", "hundred", "thousand") or (part.lower() == "and" and "hundred" in run))
        if match and (joins or numbers_in(part)) and (not run or text[end:match.start()].strip(" -") == ""):
            run, start, end = (f"{run} {part}", start, match.end()) if run else (part, match.start(), match.end())
            continue
        if run:
            found.append((start, frozenset(numbers_in(run))))
        run, start, end = (part, match.start(), match.end()) if match and numbers_in(part) else ("", 0, 0)
    at = 0
    for name in names(text):
        at = text.index(name, at)
        found.append((at, _bare(name)))
        at += len(name)
    return [fact for _, fact in sorted(found, key=lambda item: item[0])]


def _in_order(said: list, template: list) -> bool:
    """Whether what the template says too is said in its order ("A is 300 metres away, B 500" must not swap them)."""
    rest = iter(template)
    return all(any(fact == other for other in rest) for fact in said if fact in template)
