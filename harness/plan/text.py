"""The user's words made ready for matching: cleaned at the edges, never reworded, so that every slot is a piece of what was said."""
import re
import unicodedata

_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "。": ".", "，": ",", "？": "?", "！": "!", "：": ":", "；": ";", "、": ",", "…": " "})
_FILLERS = re.compile(
    r"(?<![\w'])(?:u+m+|u+h+|e+r+m*|e+h+m*|hmm*|mm+|ah+|you know|like(?=,)|i guess|sort of|kind of)(?![\w'])[,.]*|(?<![一-鿿])(?:嗯+|呃+|额|唔"
    r"|哎)[,.]?|那个(?=[,. ]|那个|就是)|就是说|呃+|嗯+",
    re.I)
_STUTTER = re.compile(r"\b(\w+)([ ,]+\1\b)+", re.I)
_KEEP_TWICE = frozenset("bye no that had very so two one three four five six seven eight nine zero oh ten double new knock really".split())
_WAKE = re.compile(r"(?<!\w)(?:(?:hey|hi|ok|okay|hello|嘿|喂|你好|小)\s*,?\s*)?venus(?!\w)[,.!?:]*", re.I)
_PREFIX = re.compile(
    r"^(?:please|kindly|(?:could|can|would|will|might) (?:you|u)(?: please| kindly| possibly"
    r"| maybe)?(?: just)?(?: be so kind as to)?(?! (?:hear|see|believe|imagine|tell))"
    r"|(?:is there )?(?:any|a) (?:chance|way) (?:that )?(?:you|we) (?:could|can|might)(?: please)?|(?:would|will) it be (?:possible|ok(?:ay)?"
    r"|alright) (?:for you )?to|(?:do|would) you (?:think|reckon) you (?:could|can|might)|(?:are|would) you (?:be )?able to|(?:see|try) (?:if"
    r"|whether) you can"
    r"|(?:i'd|we'd) (?:appreciate it|be grateful|be glad) if you (?:could|would)|(?:it would|it'd|that would) be (?:great|nice|lovely"
    r"|good) if you (?:could|would)"
    r"|i was hoping you (?:could|would|might)"
    r"|(?:i|we)(?:'d| would) (?:really )?like for you to|how about you|why don't you|go and|make sure to|be so (?:kind|good) (?:and|as to)"
    r"|feel free to"
    r"|mind(?= \w+ing\b)"
    r"|would you mind|do you mind|i(?:'d| would) (?:like|love|want) you to|i (?:want|need) you to|i was wondering if you could|if you (?:could"
    r"|would|don't mind)"
    r"|do me a favou?r and|(?:hi|hey|hello)(?= there)? (?:there)?|ok(?:ay)?|right|so|well|now|alright|all right|good|great|listen(?=,)"
    r"|look(?=,)|oh|um|yeah|also|and|then|go ahead and|just|quickly|quick"
    r"|be a dear and|could we|can we(?= (?:have|get|turn|set|open|close|put|make))|maybe you could|perhaps you could|i think you should"
    r"|you should|you can"
    r"|(?:有没有可能|看看能不能|看能不能|看你能不能|能否|方不方便|方便的话|有空的话|不好意思|打扰一下|辛苦(?:你)?|烦请|帮个忙)(?=[,. ]?[㐀-鿿A-Za-z])"
    r"|另外(?:再|也|还)?|顺便|还有(?=帮|给|查|找|把|放)|再(?=帮我|给我|查查|找找|看看|搜搜)|请问|请|麻烦你?(?:帮我?)?|劳驾|你?能不能|你?可不可以|你?能|可以|帮忙|帮我 ?(?=\S)|帮我们"
    r"|给我(?=[查找放来订写设搜开关导打讲说看])|帮(?=[忙查找])|好的?(?=[,. ])|那么?(?=[,. 就你我帮请])|对了|哎|喂|嘿|诶"
    r"|欸|好(?=[,.]))(?:[ ,.]+|(?=[一-鿿])|$)",
    re.I)
_SUFFIX = re.compile(
    r"(?:[ ,.]*(?<!\w)(?:please|thanks(?: a lot| so much)?|thank you(?: very much| so much)?|cheers|ta|if you (?:can|could|would|don't mind)"
    r"|if possible|will you|would you|could you|can you"
    r"|right away|immediately|straight away|when you (?:can|get a chance|have a moment)|ok(?:ay)?|asap|for me(?= please|$)|would be (?:great"
    r"|nice|good|lovely)|mate|darling)|[ ,.]*(?:谢谢(?:你|啊|了)?|多谢|好吗|可以吗|行吗|好不好|行不行|麻烦了|拜托了?|谢了|吧|啊|呀|啦|哦|喔|嘛|哈))[.!?, ]*$",
    re.I)
_HAN = re.compile(r"[㐀-鿿]")


def clean(prose: str) -> str:
    """NFKC, plain quotes and Latin punctuation, without fillers and stutters; the words themselves unchanged."""
    text = unicodedata.normalize("NFKC", prose).translate(_QUOTES)
    text = re.sub(r"\s*°\s*[cC]?\b|\s*°", " degrees ", text)
    text = re.sub(r"(?<=\d)\s*%", " percent", text)
    text = _FILLERS.sub(" ", text)
    text = _STUTTER.sub(_once, text)
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"(?:\s*,)+", ",", text)
    return re.sub(r"\s+([,.?!:;])", r"\1", text).strip(" ,.;:!?-")


def _once(m: re.Match) -> str:
    """A word said twice in a row, once; ids ("four four"), numbers and emphasis stay."""
    word = m[1].lower()
    return m.group() if word in _KEEP_TWICE or word.isdigit() or len(word) == 1 and word not in "ai" else m[1]


def wake(text: str) -> tuple[str, bool]:
    """The text without the assistant's name, and whether it was there."""
    rest = _WAKE.sub(" ", text)
    return re.sub(r"\s+", " ", rest).strip(" ,.;:!?"), rest != text


def asked(text: str) -> str:
    """Without the politeness and the discourse words at both ends: what is left is a piece of `text`."""
    polite = re.match(r"^(?:请问)?(?:你?能不能|你?能|可以|可不可以|你?可以)(?=帮|给|把|带|告诉|打开|关|调|放|找|查|送|替|[^\s]{2,}一下)", text)
    if polite and re.search(r"[吗么?]$", text):
        text = text.rstrip("?吗么")
    while True:
        shorter = _PREFIX.sub("", text, count=1).strip(" ,.;:!?")
        shorter = _SUFFIX.sub("", shorter).strip(" ,.;:!?")
        if not shorter or shorter == text:
            return text if not shorter else shorter
        text = shorter


def has_han(text: str) -> bool:
    return bool(_HAN.search(text))


def language(text: str, given: str = "en") -> str:
    """`zh` where Chinese characters stand in it, else `en` where Latin words do, else as given."""
    return "zh" if has_han(text) else "en" if re.search(r"[A-Za-z]{2}", text) else given


def folded(text: str) -> str:
    """For comparing: lower case, punctuation to spaces, no space beside Chinese characters."""
    low = unicodedata.normalize("NFKC", text).lower().replace("’", "'")
    low = re.sub(r"[^\w']+", " ", low).strip()
    return re.sub(r"(?<=[㐀-鿿]) | (?=[㐀-鿿])", "", low)


def pieces(text: str) -> list[str]:
    """Words of Latin script and single Chinese characters, folded: what two texts have in common is counted in these."""
    return re.findall(r"[㐀-鿿]|[a-z0-9_'à-ɏ]+", folded(text))


_QUESTION_EN = re.compile(
    r"^(?:and |so |but |hey |ok |by the way,? )?(?:what|where|when|who|whose|why|how|which|whereabouts|is|are|am|was|were|do(?! (?:some|a|an"
    r"|the|me|it|that|this|your|my)\b)|does|did|(?:has|have|had)(?= (?:i|we|you|they|he|she|it|the|those|these|that|this|my|our|any|order"
    r"|parcel|package|shipment|delivery|somebody|someone|anyone|all)\b)|will|would|should|shall|any(?: idea| news| chance)?|what's|where's"
    r"|when's|who's|how's|isn't|aren't|don't we"
    r"|can (?:i|we|it)(?! (?:have|get|please|turn|set|open|close|make|put|go)\b)|could (?:i|we|it|there)(?! (?:have|get|please|turn|set|open"
    r"|close|make|put|go)\b))\b(?! about)|\?$|,? (?:isn't it|aren't we|right)$|\b(?:tell me|know|wonder) (?:the (?:remaining|current|next"
    r"|exact)|our|what|where|when|who|why|how|which"
    r"|if|whether)\b", re.I)
_QUESTION_ZH = re.compile(r"吗|么$|呢$|多少|什么|几[点度公个分时位]|哪|谁|怎么|如何|多[高远久快大长热冷深重]|是不是|有没有|会不会|能不能|好不好|冷不冷|热不热|要不要|是否|为何|为什么|没有$|了没|\?$")


def is_question(text: str) -> bool:
    """Whether the words ask something (by their form; "could you …" is a wish)."""
    return bool(_QUESTION_ZH.search(text) if has_han(text) and not _QUESTION_EN.search(text) else _QUESTION_EN.search(text))
