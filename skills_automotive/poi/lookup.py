"""From what somebody asked for to places with driving times, and what is remembered of them for "take me there"."""
from dataclasses import dataclass

from harness.host.providers import Place, Point
from harness.skill import SkillContext, SkillError
from skills_automotive.poi.categories import BY_NAME, Kind, kind_of, phrase
from venus_edge.wording import LANGUAGES

REACH_M = 8000.0
CANDIDATES = 12
OFFERS = 3
UNKNOWN_HOURS_S = 240.0
"""How much farther a place that is surely open may be than one whose hours nobody knows."""
_ARTICLES = ("le ", "la ", "les ", "l'", "the ")


@dataclass(frozen=True)
class Found:
    """A place and how long the drive there takes."""

    place: Place
    seconds: float


def find(ctx: SkillContext, query: str, position: Point, *, open_now: bool = False) -> list[Found]:
    """Places for a query, reachable by car: a kind's quickest to reach first, a name's likeliest first.

    Places known to be closed are left out when `open_now`; unknown hours stay in. Raises SkillError("not_found").
    """
    kind = kind_of(query)
    if kind:
        places = ctx.places.search(near=position, category=kind.name, limit=CANDIDATES, radius_m=REACH_M)
    else:
        places = ctx.places.search(near=position, name=query, limit=CANDIDATES, radius_m=REACH_M)
    if open_now:
        places = [place for place in places if place.open_now is not False]
    times = ctx.maps.matrix(position, [place.point for place in places])
    found = [Found(place, seconds) for place, seconds in zip(places, times) if seconds is not None]
    if not found:
        raise SkillError("not_found", "no such place within reach", query=query, **({"reason": "open"} if open_now and kind else {}))
    if kind:
        found.sort(key=lambda f: f.seconds + (UNKNOWN_HOURS_S if open_now and f.place.open_now is None else 0.0))
    return found


def destination(ctx: SkillContext, query: str, position: Point) -> Place:
    """The one place that somebody wants to go to: the best known of landmarks ("the casino"), else the quickest to reach.

    Raises SkillError("not_found").
    """
    kind = kind_of(query)
    if kind is None or kind.landmark:
        places = ctx.places.search(near=position, name=query, limit=1, radius_m=REACH_M)
        if not places:
            raise SkillError("not_found", "no such place on the map", query=query)
        return places[0]
    return find(ctx, query, position)[0].place


def remember(ctx: SkillContext, found: list[Found]) -> None:
    """Keep what was offered, so that "it" and "the second one" can be taken up."""
    ctx.memory["offers"] = [as_memory(f.place) for f in found[:OFFERS]]


def in_both(words, place: Place) -> dict[str, str]:
    """`words` (said or kind_words) of a place in every language."""
    return {lang: words(place, lang) for lang in LANGUAGES}


def as_memory(place: Place) -> dict:
    """A place as the session's memory keeps it: JSON values."""
    return {"id": place.id, "name": place.name, "said": in_both(said, place), "kind": place.category, "street": place.street,
            "lat": place.point.lat, "lon": place.point.lon}


def said(place: Place, lang: str) -> str:
    """How to speak of a place: "the Casino de Monte Carlo", "Rue Grimaldi", "a charging station on Avenue Albert II"."""
    kind: Kind | None = BY_NAME.get(place.category)
    if place.tags.get("unnamed") and kind:
        return phrase(place.category, place.street, lang)
    name = " ".join(place.name.replace(" - ", " ").replace("•", " ").replace("’", "'").split())
    if lang == "zh" or kind is None:
        return name
    if place.category == "station" and "gare" not in name.lower() and "station" not in name.lower():
        name += " station"
    return f"the {name}" if kind.landmark and not name.lower().startswith(_ARTICLES) else name


def kind_words(place: Place, lang: str) -> str:
    """The plain word for its kind: "charging station"."""
    kind = BY_NAME.get(place.category)
    return (kind.zh if lang == "zh" else kind.en)[0] if kind else ""
