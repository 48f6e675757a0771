"""Names as a recogniser hears them: plain letters, one word for both languages, and a key that sounds alike.

The query comes from an English recogniser that spells French by ear ("Plas darm", "Larvato"), uses English words for French
ones ("station", "museum") and may drop or add small words.
"""
import re
import unicodedata
from functools import lru_cache

_FILLERS = frozenset(
    "a an the to of at in on for me my our some any please nearby near nearest closest next around here there by close "
    "le la les l de du des d et and un une is are".split())
_SAME = {  # English or spelled-out -> the word as names have it after stripping accents
    "station": "gare", "museum": "musee", "garden": "jardin", "gardens": "jardin", "jardins": "jardin", "beach": "plage",
    "palace": "palais", "cathedral": "cathedrale", "church": "eglise", "chapel": "chapelle", "stadium": "stade",
    "square": "place", "street": "rue", "boulevard": "boulevard", "hospital": "hopital", "hospitalier": "hopital",
    "centre": "center", "harbour": "port", "harbor": "port", "prince": "prince", "princes": "prince", "princier": "prince",
    "princess": "princesse", "oceanographic": "oceanographique", "oceanography": "oceanographique", "exotic": "exotique",
    "saint": "st", "sainte": "st", "ste": "st", "theater": "theatre", "theatre": "theatre", "market": "marche",
    "avenues": "avenue", "av": "avenue", "ave": "avenue", "bd": "boulevard", "blvd": "boulevard", "rock": "rocher",
    "japanese": "japonais", "school": "ecole", "library": "bibliotheque", "town": "ville", "hall": "mairie",
    "gambling": "casino", "kasino": "casino", "post": "poste", "fort": "fort", "tower": "tour", "bridge": "pont",
    "first": "1", "1er": "1", "i": "1", "one": "1", "second": "2", "ii": "2", "two": "2", "deux": "2", "third": "3",
    "iii": "3", "three": "3", "trois": "3", "iv": "4", "fourth": "4", "fifth": "5",
}
STREET_WORDS = frozenset("rue avenue boulevard place quai chemin allee esplanade ruelle escalier tunnel promenade impasse "
                         "square passage rond-point giratoire sentier rampe montee descente lacets".split())

_ZH_FILLERS = re.compile(
    "^(?:请|麻烦|帮我|给我|我想|我要|想要|想|要|有没有|哪里有|哪儿有|哪有|找找|查找|搜索|看看|找|查|搜|去|一下|下)+"
    "|(?:在|离)?(?:我|车|这)?(?:附近|周边|周围|旁边)(?:儿|里)?(?:最近)?(?:的|有没有|有|哪里有|哪有)?|(?:离我|离这|离车)?最近(?:的|有)?"
    "|^(?:(?:一|几|两|哪)(?:家|个|座|间|处)|什么|哪些)(?=.)|(?:在哪里|在哪儿|在哪|怎么走|吗|呢|吧|有没有|有吗)+$|^的|的$")


@lru_cache(maxsize=8192)
def plain(text: str) -> str:
    """Lower case, no accents, letters and digits separated by single spaces; Chinese characters are kept."""
    text = unicodedata.normalize("NFKD", text.replace("œ", "oe").replace("Œ", "oe").replace("’", "'"))
    text = "".join(c for c in text if not unicodedata.combining(c)).lower().replace("'s ", "s ")
    return " ".join(re.findall(r"[a-z0-9]+|[\u4e00-\u9fff]+", text))


@lru_cache(maxsize=8192)
def normal(text: str) -> str:
    """`plain` without filler words: what remains says which place is meant. Only fillers: they are kept."""
    words = [without_fillers(w) if w[0] >= "\u4e00" else w for w in plain(text).split()]
    return " ".join([w for w in words if w not in _FILLERS] or words)


@lru_cache(maxsize=16384)
def canonical(text: str) -> str:
    """`normal` with English, French and spelled-out words brought to one form, so that "station" meets "gare"."""
    return " ".join(_SAME.get(w, w) for w in normal(text).split())


_SOUNDS = tuple((re.compile(pattern), sound) for pattern, sound in (
    (r"eaux?|aux?\b|ot\b|oh\b|aw|au", "o"), (r"tion", "sion"), (r"ph", "f"), (r"sch|sh|ch", "x"), (r"th", "t"),
    (r"qu|q|ck|k", "k"), (r"gn|ni(?=[aeo])", "n"), (r"c(?=[eiy])", "s"), (r"c", "k"), (r"g(?=[eiy])|j", "j"), (r"gu(?=[ei])", "g"),
    (r"oo|ou", "u"), (r"ee|ea|ie\b|y|ii", "i"), (r"ai|ei|ay|ey", "e"), (r"oi|wa", "ua"), (r"w", "v"), (r"z", "s"),
    (r"x", "x"), (r"h", ""), (r"e[rtz]\b", "e"), (r"(.)\1+", r"\1"), (r"(?<=\w\w)[esdtpx]+\b", ""),
))


@lru_cache(maxsize=16384)
def sounds(text: str) -> str:
    """A rough key of how the canonical text sounds to an English or a French ear, without spaces."""
    words = canonical(text)
    for pattern, sound in _SOUNDS:
        words = pattern.sub(sound, words)
    return words.replace(" ", "")


def without_fillers(run: str) -> str:
    """A run of Chinese characters without what leads to a place's name: "帮我找一家附近的药店" -> "药店"."""
    before = None
    while run != before:
        before, run = run, _ZH_FILLERS.sub("", run) or run
    return run


def is_chinese(text: str) -> bool:
    """Whether there is any Chinese character."""
    return any("\u4e00" <= c <= "\u9fff" for c in text)


def toneless(pinyin: str) -> str:
    """Pinyin without its tone marks and in lower case; "ü" becomes "v", as it is typed."""
    pinyin = pinyin.lower().translate(str.maketrans("üǖǘǚǜ", "vvvvv")).replace("'", "").replace("’", "")
    return "".join(c for c in unicodedata.normalize("NFKD", pinyin) if not unicodedata.combining(c))
