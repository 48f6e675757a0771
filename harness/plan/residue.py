"""What is left of a request when the words that only lead to a value, or trail it, are taken off both ends: the value as spoken."""
import re

from harness.plan.compile import Compiled
from harness.plan.lexicon import lexicon

_LEFT = frozenset("""
    other whichever whatever i we you want wanna would like love to need can could may please me us our a an some the is are am was there any
    anywhere somewhere where's what's where what which how do does did have has got get find look looking for of at in on into with lets let's
    let go going take bring see show tell give put be been i'd i'm we're i've we've i'll we'll now then just maybe quick quickly exactly also
    another one more by via towards toward over up it's that's is will should able try trying start begin hear know wanted prefer rather use s
    using about fancy gonna gotta way right back us""".split())
_RIGHT = frozenset("""
    back what what's where where's start begin on for please now me us for then instead thanks there and quick quickly yeah ok okay too as well
    again somewhere anywhere around here is are in at to that which , nearby today right away immediately near close by so i it's also on it or
    will be the a an round of up with still""".split())
_LEFT_PHRASES = re.compile(
    r"^(?:is there|are there|do you know(?: if| whether| of)?|any chance of|any idea where|where exactly(?: is| are)?|i(?:'ve| have)? (?:got to"
    r"|have to|need to|must) (?:be|get|go)"
    r"|i (?:would|'d) (?:like|love)|i'm in the mood for|the nearest|the closest|nearest|closest|a nearby|nearby|some nearby|the next"
    r"|a bit of)\b", re.I)
_LEFT_ZH = re.compile(
    r"^(?:这会儿|这个点|这时候|眼下|目前|能买到|可以买到|买得到|买到|离我们|离这儿?里?|近一?点的|近的|离我|会不会|要不要|是不是|用不用|需不需要|能不能|我们|咱们|咱|我|你|您|想要|想|要|需要|去|到|在|往|回|带|送|把|给|帮|请|先|马上|赶紧"
    r"|快|就|那就|再|还|也|来"
    r"|一下|一个|一家|一首|一些"
    r"|一趟|趟|什么(?=[㐀-鿿]{2})|一点|一段|一|个|家|首|点|些|下|段|的|有没有|有|没有|哪里可以|哪儿可以|哪里能|哪里"
    r"|哪儿|哪|哪个|看看|看|现在|最近的|最近|附近的|附近|周围的|周围|这附近|这边|这里|是|能|可以|会|得|直接|还是|麻烦|问问|问|知道|那个|这个|某个|任意|随便|能不能|能否|打算|准备|走|出发|随便|听|放)")
_RIGHT_ZH = re.compile(
    r"(?:在哪里呢?|在哪儿呢?|在哪个位置|在哪|在什么地方|哪里有|哪儿有|哪有|有没有|有吗|有么|怎么走|怎么去|附近的?|周围的?|这边|这里|那边|那里|的话|的|了|吗|呢|吧|啊|呀|么|去|来|一下|好了|好吗|行吗|就行|就好|可以吗|谢谢|现在|马上|出发"
    r"|过去|开过去|有|走|看看|好不好|好吗|怎么样|如何|会不会|是什么|多少|一下子|然后|并且|和|并|再|还|也|有哪些)$")
_REFERENCE = re.compile(
    r"^(?:it|there|that|this|them|(?:that|this|the) (?:one|place)|(?:the )?(?:first|second|third|fourth|fifth|last|other|next|nearest|closest"
    r"|cheapest|former|latter)(?: (?:one|place|option|result|restaurant|suggestion|of those|of them|choice))?"
    r"|那里|那儿|那边|这里|那个|这个|那家|这家|第[一二三四五两\d](?:个|家|间|处)?|最后一?[个家]|前一个|后一个|另一?[个家])$", re.I)


def is_reference(words: str) -> bool:
    """Whether the words only point at something said before ("the second one", "there", "第二个")."""
    return bool(_REFERENCE.match(words.strip(" ,.")))


def reference_in(text: str) -> tuple[int, int] | None:
    """Where such words stand in a text."""
    m = re.search(r"\b(?:the )?(?:first|second|third|fourth|fifth|last|other|nearest|closest|former|latter) (?:one|place|option|result"
                  r"|suggestion|choice)\b|\b(?:that|this) (?:one|place)\b"
                  r"|(?:^|\b)the (?:first|second|third|fourth|fifth|last|other|latter)(?= *(?:$|,|please))|第[一二三四五两\d](?:个|家|间|处)|那里|那儿|(?:最后一"
                  r"|另一|另外一)[个家]|那[个家](?=$|[ ,吧就])|\bthere\b(?=$|,| please| then| now)",
                  text, re.I)
    if not m:
        return None
    start, end = m.span()
    lead = re.match(r"the ", text[start:end], re.I)
    return start + (lead.end() if lead else 0), end


def residue(c: Compiled, text: str, span: tuple[int, int] | None = None, keep: frozenset[str] = frozenset()) -> tuple[int, int]:
    """The span of the free value inside text[span]; empty where nothing is left. `keep`: words that belong to the value."""
    start, end = span or (0, len(text))
    hits = [h for h in lexicon().hits(text) if h.name in c.frames - {"#speaker"} and h.name not in keep]
    kinds = [h for h in lexicon().hits(text) if h.name in c.kinds]  # "the restaurant Le Grill": what kind of name it is
    while True:
        shorter = _left(c, text, start, end, hits, kinds)
        if shorter == start:
            break
        start = shorter
    while True:
        shorter = _right(c, text, start, end, hits)
        if shorter == end:
            break
        end = shorter
    purpose = _PURPOSE_ZH.search(text[start:end]) if c.refers else None
    if purpose:
        end = start + purpose.start()  # "去幼儿园接孩子"
    return start, max(start, end)


_PURPOSE_ZH = re.compile(r"(?<=[㐀-鿿]{2})(?:接|看|找|见|买|拿|取|吃|办|送|玩)[㐀-鿿]{1,3}$")


def _left(c: Compiled, text: str, start: int, end: int, hits: list, kinds: list) -> int:
    while start < end and text[start] in " ,.;:!?'\"-":
        start += 1
    rest = text[start:end]
    at = max((h.end for h in hits if h.start == start and h.end <= end), default=0)
    if at:
        return at
    kind = max((h.end for h in kinds if h.start == start and h.end < end), default=0)
    if kind and text[kind:end].strip(" ,.") and not re.match(r" ?(?:in|at|on|with|near)\b", text[kind:end]):
        return kind
    m = _LEFT_PHRASES.match(rest)
    if m:
        return start + m.end()
    head = next((x for x in c.heads if rest.startswith(x) and len(rest) > len(x)), "")
    if head:
        return start + len(head)
    m = re.match(r"eat (?=\w)|open 的|still open (?=\w)", rest, re.I)
    if m:
        return start + m.end()
    m = re.match(r"[a-z]+(?:'[a-z]+)?", rest, re.I)
    if m:
        return start + m.end() if m.group().lower() in _LEFT else start
    m = _LEFT_ZH.match(rest)
    return start + m.end() if m else start


_RIGHT_CLAUSE = re.compile(r"[ ,]+(?:as (?:our|my|the|a) (?:next )?(?:destination|stop)|(?:that |which )?you(?:'ve| have)?(?: just)? (?:mentioned|said|offered|found|told me(?: about)?|suggested"
                           r"|named)|that's|which is|that is|that are)$", re.I)


def _right(c: Compiled, text: str, start: int, end: int, hits: list) -> int:
    clause = _RIGHT_CLAUSE.search(text[start:end])
    if clause:
        return start + clause.start()
    while end > start and text[end - 1] in " ,.;:!?'\"-":
        end -= 1
    rest = text[start:end]
    at = min((h.start for h in hits if h.end == end and h.start >= start and not (h.start > start and text[h.start].isupper())), default=None)
    if at is not None:
        return at
    tail = next((x for x in c.tails if rest.endswith(x) and len(rest) > len(x)), "")
    if tail:
        return end - len(tail)
    m = re.search(r"(?<![\w'])[a-z]+(?:'[a-z]+)?$", rest, re.I)
    if m:
        return start + m.start() if m.group().lower() in _RIGHT else end
    m = _RIGHT_ZH.search(rest)
    return start + m.start() if m else end
