"""Words of English speech as the recogniser writes them: normalised for matching, and the lists that need no grammar."""
import re

_CONTRACTIONS = (
    (r"\b(what|where|who|how|when|it|that|there|here)'s\b", r"\1 is"), (r"\blet's\b", "lets"), (r"\b(i)'m\b", r"\1 am"),
    (r"\b(we|you|they)'re\b", r"\1 are"), (r"\b(i|we|you)'d\b", r"\1 would"), (r"\b(i|we|you)'ll\b", r"\1 will"),
    (r"\bcan't\b", "can not"), (r"\bcannot\b", "can not"), (r"\b(do|did|does|is|are|was|would|could)n't\b", r"\1 not"),
    (r"\bokay\b|\bo\.k\.", "ok"),
)
_FIXES = ((r"\bair[- ]?con(ditioner|ditioning)?\b", "air conditioning"), (r"\ba\.?c\.?\b(?= )", "ac"), (r"\bper cent\b", "percent"),
          (r"\btail gate\b", "tailgate"), (r"\be\.?t\.?a\.?(?=\W|$)", "eta"), (r"\bhalf-?way\b", "halfway"), (r"\bheating's\b", "heating"))


def normalise(text: str) -> str:
    """Lower case, contractions opened, degree and percent signs as words, no punctuation but the point inside a number."""
    text = text.lower().replace("’", "'").replace("‘", "'")
    text = re.sub(r"\s*°\s*c?\b|\s*°", " degrees ", text)
    text = re.sub(r"\s*%", " percent ", text)
    for pattern, plain in (*_CONTRACTIONS, *_FIXES):
        text = re.sub(pattern, plain, text)
    text = re.sub(r"(?<=[a-z])'s?\b", lambda m: m.group().lstrip("'"), text)
    text = re.sub(r"(\d)\.(?=\d)", r"\1_", text)
    text = re.sub(r"(\d)_0\b", r"\1", re.sub(r"[^\w ]", " ", text))
    return re.sub(r"\s+", " ", text.replace("_", ".")).strip()


_PREFIX = re.compile(r"^(?:(?:hey |hi |ok |hello )?venus|please|(?:could|can|would|will) you(?: please| kindly)?(?: just)?"
                     r"|i (?:want|would like|need) you to|i want to(?= (?:set|open|close|turn|lock|know|find))|do me a favor and"
                     r"|(?:um+|uh+|er+m?|ah|oh|well|so|ok|now|then|alright|hey|and|also|just|maybe|yes|yeah|great|thanks|thank you)"
                     r"|can we|could we|would you mind|you should|go ahead and|lets just|i think)(?: |$)")
_SUFFIX = re.compile(r"(?:^| )(?:please|thanks|thank you(?: very much)?|for me|venus|right now|right away|now|will you|would you|ok|if you can"
                     r"|if you could|if possible|immediately|again|then)$")
_CORRECTION = re.compile(r"^(?:no+|nope|actually|sorry|wait|hold on|stop|i meant(?: to say)?|i mean|rather|correction|not that(?: one)?|on second thoughts?"
                         r"|instead|changed my mind|i changed my mind|make that|better|not there)(?: |$)")
_INSTEAD = re.compile(r"(?:^| )(?:instead|rather|actually|i mean|i meant)$")
_KEEP = ("thanks", "thank you", "please")


def strip_politeness(text: str) -> str:
    """What is left of a normalised sentence when address, politeness and hesitation are taken off both ends."""
    while True:
        shorter = _SUFFIX.sub("", _PREFIX.sub("", text)).strip()
        if not shorter or shorter == text:
            return text if shorter or text not in _KEEP else text
        text = shorter


def strip_correction(text: str) -> tuple[str, bool]:
    """The normalised sentence without "no, …", "actually …", "… instead"; and whether there was such a thing."""
    found = False
    while True:
        shorter = strip_politeness(_INSTEAD.sub("", _CORRECTION.sub("", text)).strip())
        if not shorter or shorter == text:
            return text, found
        found = found or bool(_CORRECTION.match(text) or _INSTEAD.search(text))
        text = _MISHEARD_NO.sub("", shorter) if found else shorter


_MISHEARD_NO = re.compile(r"^(?:all|oh|know|now|low|or|the|and|so|well|hello)(?: all)? (?=take|go|find|make|set|turn|open|close|navigate|drive)")
"""What road noise makes of the "no" before "… instead"."""

_BACKCHANNEL = frozenset("""mm mmm mhm mhmm mmhmm hm hmm hmmm hum um uh huh uhhuh uhuh ah aha oh ooh ok okay right yeah yea yep yes yup sure
    i see got it alright great cool nice good wow really exactly fine perfect true indeed all go on mm-hmm ha""".split())
_GHOSTS = frozenset({"thank you", "thanks", "you", "bye", "thank you very much", "thanks for watching", "so", "the", "yeah thank you", "mm thank you", "and",
                     "i am", "a", "hello", "hi", "boom", "um", "one", "i", "home", "hm hm", "m", "mom", "mmm hmm"})
"""What the recogniser makes of a hum, a breath or noise: heard over the assistant they ask for nothing."""


def is_backchannel(text: str) -> bool:
    """Only a listener's signals ("mm-hmm", "okay, right"), at most four words."""
    words = normalise(text).split()
    return 0 < len(words) <= 4 and all(w in _BACKCHANNEL for w in words)


def is_ghost(text: str) -> bool:
    """Empty, or one of the recogniser's well-known answers to sound without words."""
    plain = normalise(re.sub(r"[\[(*].*?[\])*]", " ", text))
    return not plain or plain in _GHOSTS


_ASKING = frozenset("""what when where who why how which is are do does did can could would will should set turn open close find take show tell
    make put lock unlock start stop play call navigate drive search give increase decrease lower raise switch bring get add avoid read
    book order send text message remind note reserve cancel check remember write compare""".split())


def sounds_addressed(text: str) -> bool:
    """A question or a command by its first word, or the assistant's name anywhere."""
    words = strip_politeness(normalise(text)).split()
    return bool(words) and len(words) > 1 and (words[0] in _ASKING) or "venus" in normalise(text).split()
