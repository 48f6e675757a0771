"""The several ways to a destination: what tells each from the quickest, and a point by which it can be asked for again."""
from dataclasses import dataclass

from harness.host.errors import NotFound
from harness.host.providers import Point, Route
from harness.skill import SkillContext, SkillError
from skills_automotive.navigation import trip as trips
from skills_automotive.navigation.geometry import LatLon, Line
from skills_automotive.navigation.narrative import apart, via
from skills_automotive.navigation.trip import Trip, point_of

OTHERS = 2
LOOKS = 24
"""How often along a way it is looked how far it is from another."""


@dataclass(frozen=True)
class Way:
    """One of several ways. `apart_at`: a point that only this one passes; of the quickest way any point."""

    route: Route
    street: str
    apart_at: LatLon


async def other_ways(ctx: SkillContext, trip: Trip) -> list[Way]:
    """The quickest way and the others, each with the street that tells it from the quickest."""
    position, heading = await trips.whereabouts(ctx)
    try:
        routes = ctx.maps.alternatives(position, point_of(trip.goal), heading=heading, avoid=trip.avoiding, count=OTHERS)
    except NotFound:
        raise SkillError("not_found", "no way there", reason="no_way") from None
    first, street = routes[0], trip.goal["street"]
    told = apart(first, routes[1], street) if len(routes) > 1 else ""
    ways = [Way(first, told or via(first, street), first.shape[len(first.shape) // 2])]
    for route in routes[1:]:
        ways.append(Way(route, apart(route, first, street) or via(route, street), farthest_from(route, first)))
    return ways


def farthest_from(route: Route, other: Route) -> LatLon:
    """The point of a way that lies farthest from another."""
    line, own = Line(other.shape), Line(route.shape)
    points = [own.at(own.length_m * i / LOOKS)[0] for i in range(LOOKS + 1)]
    return max(points, key=lambda p: line.nearest(Point(*p)).off_m)
