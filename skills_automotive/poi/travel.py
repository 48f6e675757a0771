"""Driving times, detours and reach by whatever the maps offer; without them straight lines, and the answer says so."""
from typing import Any, Sequence

from harness.host.errors import NotFound, Unavailable
from harness.host.providers import Area, Point

STRAIGHT_M_PER_MINUTE = 500.0
"""Where no map tells times, "within ten minutes" means a straight line of this many metres a minute."""
Times = list[float | None]


def times_to(maps: Any, origin: Point, points: Sequence[Point]) -> Times | None:
    """Seconds to each point, None for one without a way; None altogether when these maps tell no times."""
    matrix = getattr(maps, "matrix", None)
    if matrix is None:
        return None
    try:
        return matrix(origin, list(points))
    except Unavailable:
        return None


def times_from(maps: Any, points: Sequence[Point], goal: Point) -> Times | None:
    """Seconds from each point to the goal; as `times_to`."""
    many = getattr(maps, "matrix_to", None)
    try:
        if many is not None:
            return many(list(points), goal)
    except Unavailable:
        return None
    found: Times = []
    for point in points:
        times = times_to(maps, point, [goal])
        if times is None:
            return None
        found += times
    return found


def detours(maps: Any, here: Point, goal: Point, direct_s: float, points: Sequence[Point]) -> list[tuple[float, float] | None] | None:
    """(seconds to the point, what a stop there adds to the way to the goal) for each; None for no way, or when times are unknown."""
    there, on = times_to(maps, here, points), times_from(maps, points, goal)
    if there is None or on is None:
        return None
    return [None if a is None or b is None else (a, max(0.0, a + b - direct_s)) for a, b in zip(there, on)]


def reach(maps: Any, origin: Point, seconds: float) -> Area | None:
    """What can be reached in that time; None when these maps don't tell."""
    isochrone = getattr(maps, "isochrone", None)
    if isochrone is None:
        return None
    try:
        return isochrone(origin, seconds=seconds)
    except (Unavailable, NotFound):
        return None


def inside(area: Area, point: Point) -> bool:
    """Whether a point lies in an area: in an outline and in none of its holes."""
    return any(_in_ring(rings[0], point) and not any(_in_ring(hole, point) for hole in rings[1:]) for rings in area.polygons if rings)


def _in_ring(ring: Sequence[tuple[float, float]], point: Point) -> bool:
    odd = False
    for (lat, lon), (other_lat, other_lon) in zip(ring, (*ring[1:], ring[0])):
        if (lat > point.lat) != (other_lat > point.lat) and point.lon < lon + (point.lat - lat) * (other_lon - lon) / (other_lat - lat):
            odd = not odd
    return odd
