"""What kinds of place there are: their OpenStreetMap tags, what people call them, and how to speak of one without a name.

The table is kinds.toml: a new kind or synonym needs no code.
"""
import tomllib
from dataclasses import dataclass
from pathlib import Path

from skills_automotive.poi.text import normal


@dataclass(frozen=True)
class Kind:
    """`tags`: `key=value` of OpenStreetMap, `key=*` for any value; the first kind that matches an object is its kind.

    `landmark`: people mean the well-known one and not the nearest ("the casino").
    """

    name: str
    tags: tuple[str, ...]
    en: tuple[str, ...]
    zh: tuple[str, ...]
    landmark: bool = False


def _read() -> tuple[Kind, ...]:
    table = tomllib.loads(Path(__file__).with_name("kinds.toml").read_text(encoding="utf-8"))
    return tuple(Kind(row["name"], tuple(row["tags"]), tuple(row["en"]), tuple(row["zh"]), row.get("landmark", False))
                 for row in table["kind"])


KINDS = _read()
STREET, ADDRESS = "street", "address"
BY_NAME = {kind.name: kind for kind in KINDS}
_BY_WORDS = {normal(word): kind for kind in reversed(KINDS) for word in (kind.name.replace("_", " "), *kind.en, *kind.zh)}
_BY_TAG = {tag: (at, kind.name) for at, kind in reversed(list(enumerate(KINDS))) for tag in kind.tags}
_KEYS = frozenset(tag.partition("=")[0] for tag in _BY_TAG)


def kind_of(words: str) -> Kind | None:
    """The kind that these words name and nothing else ("a charger nearby", "car parks", "药店"), or None."""
    text = normal(words)
    for candidate in (text, text.removesuffix("s"), text.removesuffix("es"), f"{text.removesuffix('ies')}y", text[1:] if text[:1] in "家个" else ""):
        if candidate in _BY_WORDS:
            return _BY_WORDS[candidate]
    return None


def of_tags(tags: dict) -> str | None:
    """The kind's name of an OpenStreetMap object, or None when it is of no use to a driver."""
    found = [hit for key in _KEYS & tags.keys() for value in ("*", *tags[key].split(";")) if (hit := _BY_TAG.get(f"{key}={value}"))]
    return min(found)[1] if found else None


def phrase(kind_name: str, street: str, lang: str) -> str:
    """How to speak of a place without a name: "a charging station on Avenue Albert II" / "Avenue Albert II上的充电站"."""
    kind = BY_NAME[kind_name]
    if lang == "zh":
        return f"{street}上的{kind.zh[0]}" if street else kind.zh[0]
    article = "an" if kind.en[0][0] in "aeiou" and not kind.en[0].startswith("eu") else "a"
    return f"{article} {kind.en[0]}" + (f" on {street}" if street else "")
