"""What somebody asks for, taken apart: "a free underground car park", "sushi that's open", "特斯拉充电站", "Planet Sushi".

First what the place must offer is taken out of the words (needs.toml, plugs, power, open now, where); what is left is a kind
(kinds.toml), something to eat (cuisines.toml), a brand (brands.toml), or else a name to look for.
"""
import re
import tomllib
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from harness.host.providers import Wants
from skills_automotive.poi.attributes import NEEDS
from skills_automotive.poi.categories import BY_NAME, Kind, kind_of
from skills_automotive.poi.text import is_chinese, normal, plain

NEAR_ME, ALONG_ROUTE, AT_DESTINATION = "near_me", "along_route", "at_destination"
FAST_KW = 50.0
EATING = ("restaurant", "fast_food")
_OF_FOOD = frozenset(("vegetarian", "vegan", "takeaway", "outdoor"))
"""Attributes that alone say that somebody wants to eat."""
_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Wish:
    """`kinds`: any of them; `name`: what to look for by name when the words are no kind; `what`: how to speak of it, by language."""

    kinds: tuple[str, ...] = ()
    wants: Wants = Wants()
    name: str = ""
    bare: str = ""
    """The name without what sounded like attributes ("Café Free" may be called that)."""
    what: dict[str, str] = field(default_factory=dict)
    where: str | None = None

    @property
    def kind(self) -> Kind | None:
        """The kind when exactly one was asked for, and nothing more special."""
        return BY_NAME[self.kinds[0]] if len(self.kinds) == 1 and not self.wants.cuisine and not self.wants.brand else None


def _table(name: str) -> list[dict]:
    return tomllib.loads((_FOLDER / f"{name}s.toml").read_text(encoding="utf-8"))[name]


def _pattern(words) -> re.Pattern:
    """Any of the phrases, longest first: whole words in English, anywhere in Chinese."""
    phrases = sorted({plain(word) for word in words}, key=lambda p: (-len(p), p))
    return re.compile("|".join(re.escape(p) if is_chinese(p) else rf"\b{re.escape(p)}\b" for p in phrases))


_DEMANDS = tomllib.loads((_FOLDER / "demands.toml").read_text(encoding="utf-8"))
_OPEN = _pattern((*_DEMANDS["open"]["en"], *_DEMANDS["open"]["zh"]))
_WHERE, _PLUGS = ({name: _pattern((*words["en"], *words["zh"])) for name, words in _DEMANDS[part].items()} for part in ("where", "plug"))
_POWER = re.compile(r"(?:with )?(?:at least |minimum |over |more than |(?:至少|不低于|大于) ?)?"
                    r"(\d{1,3}) ?(?:kw|kilowatts?|千瓦)(?: or more| and up|以上)?的?")
_FAST = re.compile(r"\b(?:ultra |very )?(?:fast|rapid|quick)\b(?= (?:\w+ )?charg)|(?:with |has )?(?:fast|rapid|quick) charging|(?:超级|极速|高速|快速)(?=充电)")
_FAST_ZH = re.compile("(?:快充|超充)")
_EDGE = frozenset("with that which has have having and is are thats it its for a an the there where who some any find me please show us "
                  "looking i need want to get can we one also in at from by places something anything somewhere food near our my your within "
                  "minutes".split())
_PLACE_WORDS = frozenset("place places food cuisine spot joint bar house shop restaurant restaurants eatery takeaway stand".split())
_PLACE_ZH = re.compile("(?:餐厅|饭店|饭馆|餐馆|菜馆|料理|店|馆|铺|屋|的地方|的店|菜)?")


@dataclass(frozen=True)
class _Cuisine:
    values: tuple[str, ...]
    kinds: tuple[str, ...]
    words: tuple[str, ...]
    what: dict[str, str]


@lru_cache(maxsize=1)
def _cuisines() -> tuple[_Cuisine, ...]:
    return tuple(_Cuisine(tuple(row["values"]), tuple(row.get("kinds", EATING)), tuple(plain(word) for word in (*row["en"], *row["zh"])),
                          {"en": row.get("en_place", f"{row['en'][0]} restaurant"), "zh": row.get("zh_place", f"{row['zh'][0]}店")})
                 for row in _table("cuisine"))


@lru_cache(maxsize=1)
def _brands() -> tuple[tuple[tuple[str, ...], tuple[str, ...], dict[str, str]], ...]:
    """(spellings, plain spellings, what) of each brand."""
    out = []
    for row in _table("brand"):
        names = tuple(row["names"])
        zh = next((name for name in names if is_chinese(name)), names[0])
        out.append((names, tuple(plain(name) for name in names), {"en": names[0], "zh": zh}))
    return tuple(out)


def brand_spellings(brand: str) -> tuple[str, ...]:
    """All known spellings of a brand, or the one given."""
    words = plain(brand)
    return next((names for names, texts, _ in _brands() if words in texts), (brand,))


def cuisine_values(words: str) -> tuple[str, ...]:
    """OpenStreetMap's values for a cuisine in anybody's words, or the words themselves as one value."""
    found = _eaten(normal(words))
    return found.values if found else (plain(words).replace(" ", "_"),)


@lru_cache(maxsize=256)
def understand(query: str) -> Wish:
    """The wish in these words. Never fails: what isn't understood is a name to look for."""
    text, wants, where = _demands(plain(query))
    rest = normal(_trimmed(text)) if text else ""
    kind = kind_of(rest) if rest else None
    if kind:
        return Wish((kind.name,), wants, what={"en": kind.en[0], "zh": kind.zh[0]}, where=where)
    eaten = _eaten(rest)
    if eaten:
        return Wish(eaten.kinds, replace(wants, cuisine=eaten.values), what=eaten.what, where=where)
    for names, texts, what in _brands():
        for name in texts:
            if rest == name or rest.startswith(name) and kind_of(rest[len(name):].strip() or "-"):
                kind = kind_of(rest[len(name):].strip()) if rest != name else None
                if kind:
                    what = {"en": f"{what['en']} {kind.en[0]}", "zh": what["zh"] + kind.zh[0]}
                return Wish((kind.name,) if kind else (), replace(wants, brand=names), what=what, where=where)
    bare = _trimmed(text)
    if not rest and wants.needs & _OF_FOOD:  # "something vegan"
        kind = BY_NAME[EATING[0]]
        return Wish(EATING, wants, what={"en": kind.en[0], "zh": kind.zh[0]}, where=where)
    return Wish(wants=wants, name=query, bare=bare if bare != plain(query) else "", what={"en": query, "zh": query}, where=where)


def warm() -> None:
    """Read the tables and make the patterns now, not with the first question."""
    understand("no place has this name")


def _demands(text: str) -> tuple[str, Wants, str | None]:
    """(text without them, what is wanted, where)."""
    where = None
    for name, pattern in _WHERE.items():
        text, count = pattern.subn(" ", text, count=1)
        if count:
            where = name
            break
    power = 0.0
    match = _POWER.search(text)
    if match:
        power, text = float(match[1]), _cut(text, match)
    for pattern, left in ((_FAST, " "), (_FAST_ZH, "充电")):
        if pattern.search(text):
            power, text = max(power, FAST_KW), pattern.sub(left, text)
    plug = ""
    for name, pattern in _PLUGS.items():
        match = pattern.search(text)
        if match:
            plug, text = name, _cut(text, match)
            break
    needs = set()
    for name, need in NEEDS.items():
        match = _need_pattern(name).search(text)
        if match and not _is_kind(text):
            needs.add(name)
            text = _cut(text, match)
    text, opened = _OPEN.subn(" ", text, count=1)
    text = re.sub(r"(?<=[\u4e00-\u9fff]) +(?=[\u4e00-\u9fff])", "", re.sub(r"\s+", " ", text)).strip().replace("充电充电", "充电")
    return text, Wants(open_now=bool(opened), plug=plug, min_power_kw=power, needs=frozenset(needs)), where


@lru_cache(maxsize=None)
def _need_pattern(name: str) -> re.Pattern:
    return _pattern(word for words in NEEDS[name].words.values() for word in words)


def _is_kind(text: str) -> bool:
    """The words name a kind as they are: nothing may be cut out of "地下停车场"'s like unless more is said."""
    return kind_of(text) is not None and "地下" not in text


def _cut(text: str, match: re.Match) -> str:
    return f"{text[:match.start()]} {text[match.end():]}".strip()


def _trimmed(text: str) -> str:
    """Without the little words that are left at the edges when attributes are cut out."""
    words = text.split()
    while words and words[0] in _EDGE:
        words.pop(0)
    while words and words[-1] in _EDGE:
        words.pop()
    return " ".join(words)


def _eaten(rest: str) -> _Cuisine | None:
    """The cuisine that the words name and nothing else: "sushi", "a sushi place", "川菜馆"."""
    if not rest:
        return None
    for cuisine in _cuisines():
        for word in cuisine.words:
            if rest == word or rest in (f"{word}s", f"{word}es"):
                return cuisine
            tail = rest[len(word):] if rest.startswith(word) else None
            if tail is None:
                continue
            if is_chinese(word) and _PLACE_ZH.fullmatch(tail.strip()) or tail.startswith(" ") and set(tail.split()) <= _PLACE_WORDS:
                return cuisine
    return None
