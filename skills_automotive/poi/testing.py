"""For tests: a tiny map of your own, and maps on which every way is a straight line.

    index = made_places(tmp_path, [((43.73, 7.42), {"amenity": "cafe", "name": "Kiosk", "opening_hours": "24/7"})], clock)
    outcome = await run_skill(Find, {"query": "coffee"}, bus=bus, maps=StraightMaps(), places=index)
"""
import math
from pathlib import Path
from typing import Sequence

import osmium

from harness.host.errors import NotFound, Unavailable
from harness.host.providers import Area, Edge, Matched, Point, Route
from skills_automotive.poi.index import build
from skills_automotive.poi.places import SqlitePlaces
from venus_edge.clock import Clock

KMH_30 = 30 / 3.6


def write_extract(path: Path, places: Sequence[tuple[tuple[float, float], dict[str, str]]],
                  streets: Sequence[tuple[str, Sequence[tuple[float, float]]]] = ()) -> Path:
    """Write an OpenStreetMap extract of nodes ((lat, lon), tags) and residential streets (name, line); returns `path`."""
    writer = osmium.SimpleWriter(str(path))
    mutable = osmium.osm.mutable
    lines, number = [], len(places)
    try:
        for at, ((lat, lon), tags) in enumerate(places, 1):
            writer.add_node(mutable.Node(id=at, version=1, location=(lon, lat), tags=tags))
        for name, line in streets:
            ids = []
            for lat, lon in line:
                number += 1
                writer.add_node(mutable.Node(id=number, version=1, location=(lon, lat)))
                ids.append(number)
            lines.append((name, ids))
        for at, (name, ids) in enumerate(lines, 1):
            writer.add_way(mutable.Way(id=at, version=1, nodes=ids, tags={"highway": "residential", "name": name}))
    finally:
        writer.close()
    return path


def made_places(folder: Path, places: Sequence, clock: Clock, streets: Sequence = ()) -> SqlitePlaces:
    """The places provider over a map of these nodes and streets; opening hours are judged by `clock.wall()`."""
    extract = write_extract(Path(folder) / "made.osm.pbf", places, streets)
    index = Path(folder) / "made.sqlite"
    build(extract, index)
    return SqlitePlaces(index.read_bytes(), clock)


class StraightMaps:
    """harness.host.providers.Maps on which one drives straight at one speed; points in `cut_off` have no way to or from them.

    `tells_times` False: routes, but no matrix and no isochrone, as from a host whose maps are away.
    """

    traffic = None
    elevation = None

    def __init__(self, speed_mps: float = KMH_30, cut_off: Sequence[Point] = (), tells_times: bool = True):
        self.speed_mps, self.cut_off, self.tells_times = speed_mps, tuple(cut_off), tells_times

    def _metres(self, a: Point, b: Point) -> float:
        return math.hypot((a.lat - b.lat) * 111_320, (a.lon - b.lon) * 111_320 * math.cos(math.radians(a.lat)))

    def _seconds(self, a: Point, b: Point) -> float | None:
        return None if a in self.cut_off or b in self.cut_off else self._metres(a, b) / self.speed_mps

    def route(self, origin: Point, destination: Point, *, heading: float | None = None, via: Sequence[Point] = (),
              through: Sequence[Point] = (), avoid: Sequence[str] = (), shortest: bool = False) -> Route:
        points = [origin, *through, *via, destination]
        if any(point in self.cut_off for point in points):
            raise NotFound("no way there on this map")
        length = sum(self._metres(a, b) for a, b in zip(points, points[1:]))
        return Route(length, length / self.speed_mps, (), tuple((p.lat, p.lon) for p in points))

    def alternatives(self, origin: Point, destination: Point, *, heading: float | None = None, avoid: Sequence[str] = (),
                     count: int = 2) -> list[Route]:
        return [self.route(origin, destination)]

    def _must_tell(self) -> None:
        if not self.tells_times:
            raise Unavailable("these maps tell no times now")

    def matrix(self, origin: Point, destinations: list[Point]) -> list[float | None]:
        self._must_tell()
        return [self._seconds(origin, point) for point in destinations]

    def matrix_to(self, origins: list[Point], destination: Point) -> list[float | None]:
        self._must_tell()
        return [self._seconds(point, destination) for point in origins]

    def isochrone(self, origin: Point, *, seconds: float | None = None, metres: float | None = None) -> Area:
        """A circle of 32 corners."""
        self._must_tell()
        radius = metres if metres is not None else (seconds or 0.0) * self.speed_mps
        scale = math.cos(math.radians(origin.lat))
        ring = tuple((origin.lat + radius * math.sin(a) / 111_320, origin.lon + radius * math.cos(a) / 111_320 / scale)
                     for a in (2 * math.pi * i / 32 for i in range(32)))
        return Area(((ring,),))

    def edges(self, route: Route) -> tuple[Edge, ...]:
        return tuple(Edge(i, "", "residential", self.speed_mps * 3.6, self._metres(Point(*a), Point(*b)), i, i + 1)
                     for i, (a, b) in enumerate(zip(route.shape, route.shape[1:])))

    def match(self, points: Sequence[Point]) -> Matched | None:
        return None

    def street(self, point: Point) -> str:
        return ""
