"""What a session remembers of places: those that were offered last, how many of them were told, and which one "the second one" is.

In the session's memory (JSON): `offers`, the ones that can be taken up now; `found`, all of the last search; `told`, how many.
"""
from typing import Any

from rapidfuzz import fuzz

from harness.host.providers import Place
from skills_automotive.poi.categories import kind_of
from skills_automotive.poi.said import in_both, said
from skills_automotive.poi.text import is_chinese, normal, plain
from venus_edge.numbers import say_number

OFFERS = 3
KEPT = 12
_IT = frozenset(map(plain, (
    "it", "that", "that one", "this one", "this", "there", "that place", "this place", "the one", "the place", "them", "the nearest one",
    "the nearest", "它", "那个", "这个", "那家", "这家", "那里", "那儿", "那边", "这里", "最近的", "最近的那个", "刚才那个", "刚才那家")))
_EN = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth")
_NUMBERS = {text: n - 1 for n in range(1, KEPT + 1) for text in (str(n), say_number(n))}
_ZH = "一二三四五六七八九十"
_LAST = frozenset(plain(w) for w in ("the last", "the last one", "last one", "last", "最后一个", "最后一家", "最后那个", "最后那家"))


def remember_found(memory: dict, found: list) -> None:
    """Keep the places of a search (lookup.Found), of which the first was told."""
    memory["found"] = [as_memory(f.place) | {"seconds": f.seconds, "detour_s": f.detour_s, "distance_m": f.place.distance_m,
                                             "open_now": f.place.open_now} for f in found[:KEPT]]
    _show(memory, 1)


def tell_more(memory: dict, count: int) -> tuple[int, list[dict]]:
    """(number of the first, the next `count` of the last search), which count as told from now on; none are left: []."""
    told, found = int(memory.get("told", 0)), memory.get("found") or []
    more = found[told:told + count]
    if more:
        _show(memory, told + len(more))
    return told + 1, more


def _show(memory: dict, told: int) -> None:
    memory["told"] = told
    memory["offers"] = [{key: offer[key] for key in ("id", "name", "said", "kind", "street", "lat", "lon")}
                        for offer in memory["found"][:max(OFFERS, told)]]


def as_memory(place: Place) -> dict:
    """A place as the session's memory keeps it: JSON values."""
    return {"id": place.id, "name": place.name, "said": in_both(said, place), "kind": place.category, "street": place.street,
            "lat": place.point.lat, "lon": place.point.lon}


def ordinal(words: str) -> int | None:
    """The index that the words mean: "it" and "the first one" 0, "the third" 2, "第二家" 1, "the last one" -1; None for no ordinal."""
    text = plain(words)
    if text in _IT:
        return 0
    if text in _LAST:
        return -1
    parts = [w for w in text.split() if w not in ("the", "number", "place", "option", "result")]
    parts = [w for w in parts if w != "one"] or parts
    if len(parts) == 1:
        if parts[0] in _EN:
            return _EN.index(parts[0])
        if parts[0] in _NUMBERS and set(text.split()) & {"number", "option", "result"}:
            return _NUMBERS[parts[0]]
        body = parts[0].removeprefix("第").removesuffix("那").rstrip("个家间处")
        if parts[0].startswith("第") and len(body) == 1 and body in _ZH:
            return _ZH.index(body)
    return None


def offered(memory: dict, words: str) -> dict[str, Any] | None:
    """The remembered place that the words mean, by its number, its name or its kind; None when they mean none of them.

    Raises LookupError when they count beyond what was offered.
    """
    offers = memory.get("offers") or []
    index = ordinal(words)
    if index is not None:
        if not offers:
            return None
        if index >= len(offers):
            raise LookupError(f"{len(offers)} were offered")
        return offers[index]
    text, kind = normal(words), kind_of(words)
    for offer in offers:
        for name in (offer["name"], *offer["said"].values()):
            other = normal(name)
            alike = text in other if is_chinese(text) else fuzz.token_set_ratio(text, other) >= 88 or fuzz.ratio(text, other) >= 80
            if text and alike:
                return offer
    return next((offer for offer in offers if kind and offer["kind"] == kind.name), None)
