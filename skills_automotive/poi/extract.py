"""Reads an OpenStreetMap extract: its points of interest, named roads, addresses and towns, ready for the index.

Map data © OpenStreetMap contributors, ODbL 1.0.
"""
import math
import os
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import osmium

from skills_automotive.poi.categories import of_tags

PRIVATE = ("private", "no", "permit", "residents")
NEEDS_NAME = frozenset("sight shop office school park swimming_pool sports town".split())
"""Kinds of which a nameless one helps nobody."""
STREET_M = 120.0
_ROADS = frozenset("motorway trunk primary secondary tertiary unclassified residential living_street pedestrian road".split())
"""Ways that people give as an address; service roads, steps and footways can be searched but name no place."""
_NO_STREET = ("platform", "proposed", "construction", "bus_stop", "elevator", "corridor", "services", "rest_area")
_KEYS = ("amenity", "shop", "tourism", "leisure", "office", "healthcare", "historic", "natural", "building", "railway", "aeroway", "station",
         "highway", "place", "addr:housenumber")
_AREA_KEYS = _KEYS[:11]
Point = tuple[float, float]


def metres(a: Point, b: Point) -> float:
    return math.hypot((a[0] - b[0]) * 111_320, (a[1] - b[1]) * 111_320 * math.cos(math.radians(a[0])))


def centre(points: list[Point]) -> Point:
    lats, lons = [p[0] for p in points], [p[1] for p in points]
    return (min(lats) + max(lats)) / 2, (min(lons) + max(lons)) / 2


class Grid:
    """Points with a label, by squares of about 200 m, to find the nearest."""

    CELL = 0.002

    def __init__(self):
        self._cells = defaultdict(list)

    def add(self, point: Point, label: str) -> None:
        self._cells[int(point[0] / self.CELL), int(point[1] / self.CELL)].append((point, label))

    def nearest(self, point: Point) -> tuple[float, str]:
        """(metres, label) of the nearest; (inf, "") without one in the squares around."""
        y, x = int(point[0] / self.CELL), int(point[1] / self.CELL)
        return min(((metres(p, point), label) for dy in (-1, 0, 1) for dx in (-1, 0, 1) for p, label in self._cells.get((y + dy, x + dx), ())),
                   default=(math.inf, ""))


class Streets:
    """The named roads while the index is made: which one is nearest to a point, and a point on each."""

    def __init__(self):
        self.points: dict[str, list[Point]] = defaultdict(list)
        self.names: dict[str, set[str]] = defaultdict(set)
        self._grid = Grid()

    def add(self, tags: dict, points: list[Point]) -> None:
        name = tags["name"]
        self.points[name] += points
        self.names[name] |= {v for k, v in tags.items() if k.startswith("name:") or k in ("alt_name", "old_name")}
        if tags["highway"] in _ROADS and tags.get("tunnel") in (None, "no"):  # a place above a tunnel isn't on it
            for a, b in zip(points, points[1:]):
                steps = max(1, int(metres(a, b) / 20))
                for i in range(steps + 1):
                    self._grid.add((a[0] + (b[0] - a[0]) * i / steps, a[1] + (b[1] - a[1]) * i / steps), name)

    def nearest(self, point: Point) -> str:
        distance, name = self._grid.nearest(point)
        return name if distance <= STREET_M else ""

    def middle(self, name: str) -> Point:
        """The street's own point nearest to its centre, so that a route can end on it."""
        middle = centre(self.points[name])
        return min(self.points[name], key=lambda p: metres(p, middle))


@dataclass
class Extract:
    """What was read. A place: {osm, kind, tags, at, big}; `addresses`: "12 Rue X" -> (point, street)."""

    streets: Streets = field(default_factory=Streets)
    places: list[dict] = field(default_factory=list)
    addresses: dict[str, tuple[Point, str]] = field(default_factory=dict)
    towns: set[str] = field(default_factory=set)
    """Names of the cities, towns and countries: said of half the names on a map, so a query may carry them in vain."""


def read(path: Path, progress: Callable[[float | None, int], None]) -> Extract:
    """Everything of use to a driver. `progress(share, objects)`: how far into the file, None where the system doesn't tell.

    Raises RuntimeError (osmium's) for a file that is no extract.
    """
    found = Extract()
    reader = osmium.FileProcessor(str(path)).with_areas(osmium.filter.KeyFilter(*_AREA_KEYS)).with_filter(osmium.filter.KeyFilter(*_KEYS))
    size, count = max(1, path.stat().st_size), 0
    for count, obj in enumerate(reader, 1):
        if count % 20_000 == 0:
            progress(_share(path, size), count)
        if obj.is_relation() or obj.is_area() and obj.from_way():
            continue  # a closed way comes as a way too, a relation as an area
        _take(obj, dict(obj.tags), found)
    progress(1.0, count)
    return found


def _share(path: Path, size: int) -> float | None:
    """How much of the file has been read, from the kernel's own position in it (the reader doesn't tell)."""
    try:
        for number in os.listdir("/proc/self/fd"):
            if os.path.samefile(f"/proc/self/fd/{number}", path):
                info = Path(f"/proc/self/fdinfo/{number}").read_text(encoding="ascii")
                return min(1.0, int(info.split("pos:")[1].split()[0]) / size)
    except (OSError, IndexError, ValueError):
        pass
    return None


def _take(obj, tags: dict, found: Extract) -> None:
    is_street = obj.is_way() and "highway" in tags and "name" in tags and tags["highway"] not in _NO_STREET
    kind = None if is_street else of_tags(tags)
    if tags.get("place") in ("country", "city", "town") and "name" in tags:
        found.towns |= {value for key, value in tags.items() if key in ("name", "name:en", "name:fr", "name:zh", "int_name")}
    if not (is_street or kind or "addr:housenumber" in tags):
        return
    points = _located(obj)
    if not points:
        return
    if is_street:
        found.streets.add(tags, points)
        return
    at = centre(points)
    if "addr:housenumber" in tags and "addr:street" in tags:
        street = tags["addr:street"].split(";")[0]
        found.addresses.setdefault(f"{tags['addr:housenumber']} {street}", (at, street))
    if kind and tags.get("access") not in PRIVATE and (tags.get("name") or kind not in NEEDS_NAME):
        osm = f"a{obj.orig_id()}" if obj.is_area() else f"{obj.type_str()}{obj.id}"
        found.places.append({"osm": osm, "kind": kind, "tags": tags, "at": at, "big": len(points) > 1})


def _located(obj) -> list[Point]:
    """Points of a node, way or assembled area; empty when the extract cuts it off."""
    if obj.is_node():
        return [(obj.location.lat, obj.location.lon)]
    nodes = [n for ring in obj.outer_rings() for n in ring] if obj.is_area() else obj.nodes
    return [(n.location.lat, n.location.lon) for n in nodes if n.location.valid()]


class ProgressBar:
    """One line on a terminal's stderr, or a line every tenth part elsewhere."""

    WIDTH = 30

    def __init__(self, label: str, stream=None):
        self._label, self._stream, self._tenth = label, stream or sys.stderr, -1

    def __call__(self, share: float | None, count: int) -> None:
        if self._stream.isatty():
            done = int((share or 0) * self.WIDTH)
            how_far = f"{share:4.0%}" if share is not None else ""
            print(f"\r{self._label} [{'#' * done}{'.' * (self.WIDTH - done)}] {how_far} {count:,} objects", end="" if share != 1.0 else "\n",
                  file=self._stream, flush=True)
        elif share is not None and int(share * 10) > self._tenth:
            self._tenth = int(share * 10)
            print(f"{self._label}: {share:.0%}, {count:,} objects", file=self._stream, flush=True)
