"""From what somebody asked for to places with driving times, and what is remembered of them for "take me there"."""
from dataclasses import dataclass, replace
from typing import Any

from harness.host.errors import NotFound
from harness.host.providers import Place, Point
from harness.skill import SkillContext, SkillError
from skills_automotive.poi import travel
from skills_automotive.poi.categories import kind_of
from skills_automotive.poi.offers import OFFERS, as_memory, remember_found
from skills_automotive.poi.said import cardinal, in_both, kind_words, phrased, said
from skills_automotive.poi.wish import Wish, understand

REACH_M = 8000.0
FAR_M = 60_000.0
ROUTE_WIDTH_M = 700.0
CANDIDATES = 12
REACH_CANDIDATES = 60
UNKNOWN_HOURS_S = 240.0
"""How much farther a place that is surely open may be than one whose hours nobody knows."""
UNKNOWN_S = 120.0
"""The same for anything else that was wanted and the map doesn't tell."""


@dataclass(frozen=True)
class Found:
    """A place and how long the drive there takes: None where no map tells times, and the straight line has to do.

    `detour_s`: what a stop there adds to the way to the destination.
    """

    place: Place
    seconds: float | None
    detour_s: float | None = None

    @property
    def cost(self) -> float:
        """What counts for the order: driving, and doubt."""
        unsure = self.place.unsure
        doubt = UNKNOWN_HOURS_S * ("hours" in unsure) + UNKNOWN_S * len(set(unsure) - {"hours"})
        straight = self.place.distance_m / travel.STRAIGHT_M_PER_MINUTE * 60
        return doubt + (self.detour_s if self.detour_s is not None else self.seconds if self.seconds is not None else straight)


def find(ctx: SkillContext, query: str, position: Point, *, open_now: bool = False) -> list[Found]:
    """Places for a query, reachable by car: a kind's quickest to reach first, a name's likeliest first.

    Places known to be closed are left out when `open_now`; unknown hours stay in. Raises SkillError("not_found").
    """
    wish = understand(query)
    return near(ctx, replace(wish, wants=replace(wish.wants, open_now=wish.wants.open_now or open_now)), position, query=query)


def near(ctx: SkillContext, wish: Wish, position: Point, *, query: str, within_s: float | None = None) -> list[Found]:
    """The same for a wish taken apart; `within_s`: only what can be reached in that time. Raises SkillError("not_found")."""
    area = travel.reach(ctx.maps, position, within_s) if within_s else None
    radius = REACH_M if within_s is None else min(FAR_M, max(REACH_M, within_s / 60 * 2000))
    places = _search(ctx, wish, near=position, limit=REACH_CANDIDATES if area else CANDIDATES, radius_m=radius)
    if area:
        places = [place for place in places if travel.inside(area, place.point)][:CANDIDATES]
    times = travel.times_to(ctx.maps, position, [place.point for place in places])
    if times is None:
        limit_m = within_s / 60 * travel.STRAIGHT_M_PER_MINUTE if within_s and not area else radius
        found = [Found(place, None) for place in places if place.distance_m <= limit_m]
    else:
        found = [Found(place, seconds) for place, seconds in zip(places, times)
                 if seconds is not None and (within_s is None or seconds <= within_s)]
    if not found:
        raise SkillError("not_found", "no such place within reach", query=_asked(wish, query, ctx.lang), **_why_not(wish, within_s, ctx.lang))
    return sorted(found, key=lambda f: f.cost) if not wish.name else found


def on_route(ctx: SkillContext, wish: Wish, position: Point, goal: Point, *, query: str) -> list[Found]:
    """Places along the way to `goal`, the smallest detour first. Raises SkillError("not_found")."""
    try:
        route = ctx.maps.route(position, goal)
    except NotFound:
        raise SkillError("not_found", "no way to the destination", reason="no_way", query=query) from None
    places = _search(ctx, wish, near=position, limit=CANDIDATES, radius_m=ROUTE_WIDTH_M, along=route.shape)
    costs = travel.detours(ctx.maps, position, goal, route.time_s, [place.point for place in places])
    if costs is None:
        found = [Found(place, None) for place in places]
    else:
        found = [Found(place, cost[0], cost[1]) for place, cost in zip(places, costs) if cost is not None]
    if not found:
        raise SkillError("not_found", "no such place along the route", query=_asked(wish, query, ctx.lang), reason="route")
    return sorted(found, key=lambda f: f.cost)


def _asked(wish: Wish, query: str, lang: str) -> str:
    """How to speak of what wasn't found: the kind in the user's language, else the user's own words."""
    return wish.what[lang] if wish.kinds or wish.wants.brand else query


def _why_not(wish: Wish, within_s: float | None, lang: str) -> dict[str, Any]:
    """The reason that the answer names, the one that a driver would lift first."""
    wants = wish.wants
    if within_s:
        count = round(within_s / 60)
        return {"reason": "within", "span": phrased("span.one" if count == 1 else "span.many", lang, count=cardinal(count, lang))}
    if wish.name and not wish.bare:
        return {}
    return {"reason": "open"} if wants.open_now else {"reason": "lacking"} if wants.needs or wants.plug or wants.min_power_kw else {}


def _search(ctx: SkillContext, wish: Wish, **where) -> list[Place]:
    """What the provider has for a wish. Words that are no kind are a name, first as they were said, then without their attributes."""
    if wish.kinds or wish.wants.brand:
        found = ctx.places.search(category="|".join(wish.kinds) or None, wants=wish.wants, **where)
        if found or not wish.wants.cuisine:
            return found
        return [place for place in ctx.places.search(name=wish.what["en"].split()[0], wants=replace(wish.wants, cuisine=()), **where)
                if place.category in wish.kinds]
    found = ctx.places.search(name=wish.name, wants=wish.wants if not wish.bare else None, **where)
    if not found and wish.bare:
        found = ctx.places.search(name=wish.bare, wants=wish.wants, **where)
    return found


def destination(ctx: SkillContext, query: str, position: Point) -> Place:
    """The one place that somebody wants to go to: the best known of landmarks ("the casino"), else the quickest to reach.

    Raises SkillError("not_found").
    """
    kind = kind_of(query)
    if kind is None or kind.landmark:
        places = ctx.places.search(near=position, name=query, limit=1, radius_m=REACH_M)
        if places:
            return places[0]
        if kind or understand(query).name:
            raise SkillError("not_found", "no such place on the map", query=query)
    return find(ctx, query, position)[0].place


def remember(ctx: SkillContext, found: list[Found]) -> None:
    """Keep what was offered, so that "it" and "the second one" can be taken up."""
    remember_found(ctx.memory, found)


__all__ = ["CANDIDATES", "OFFERS", "REACH_M", "Found", "as_memory", "destination", "find", "in_both", "kind_words", "near", "on_route",
           "remember", "said"]
