"""The Maps provider over Valhalla tiles: routes with stops and avoidances, other ways, matrices, reach, and matching of traces.

Measured on Monaco: a route 2-5 ms, with other ways 3-6 ms, a matrix 1x6 about 6 ms, the stretches of a route 0.7 ms, a reach 4 ms,
a trace of ten points 1 ms, the nearest street 1 ms; opening 0.1 s and 46 MB. A forked child may use an opened engine as long as
its process has a single thread (copy-on-write).
Map data © OpenStreetMap contributors, ODbL 1.0.
"""
import dataclasses
import json
import tempfile
from pathlib import Path
from typing import Sequence

import valhalla

from harness.host.errors import InvalidArgs, NotFound, Unavailable
from harness.host.providers import Area, Edge, Elevation, Matched, Point, Route, Traffic
from skills_automotive.navigation import traffic as traffic_files
from skills_automotive.navigation.elevation import open_elevation
from skills_automotive.navigation.geometry import Line, decode_polyline, encode_polyline, metres
from skills_automotive.navigation.valhalla_answers import (
    ARRIVALS, EDGE_ATTRIBUTES, TRACE_ATTRIBUTES, area_of, edges_of, matched_of, route_of)

__all__ = ["SNAP_LIMIT_M", "ValhallaMaps", "decode_polyline", "metres", "open_maps"]
SNAP_LIMIT_M = 1000.0
"""A point farther than this from every road has no way: Valhalla would take the nearest road at any distance."""
STREET_RADIUS_M = 80.0
RESERVED_LABELS = 50_000
"""Room kept between requests; a search that needs more takes it and gives it back."""
AVOID = {"tolls": "use_tolls", "ferries": "use_ferry", "motorways": "use_highways"}
SAME_WAY_M = 60.0
"""Two ways that never are farther apart than this are one."""
LONGEST_OTHER = 1.7
"""Another way may take this many times as long as the quickest, and no longer."""
TRACE_POINTS = (2, 100)
COVERED = 0.05
"""Edges whose lengths differ from their route's by a larger part are not believed."""


def open_maps(cache_dir: Path, name: str = "monaco") -> "ValhallaMaps":
    """Open the tiles that set-up built at `<cache_dir>/map/<name>`; raises Unavailable naming what is missing.

    `traffic.json` and `elevation.json` in that folder are used where they are: traffic.py and elevation.py say what they hold.
    """
    folder = Path(cache_dir) / "map" / name
    config_file, tiles = folder / "valhalla.json", folder / "tiles"
    for path in (config_file, tiles):
        if not path.exists():
            raise Unavailable(f"map {name!r}: {path} is missing; run `make setup`", path=str(path))
    config = json.loads(config_file.read_text(encoding="utf-8"))
    # The cache may have moved since the tiles were built, and a build's concurrency and logging are not ours.
    config["mjolnir"].update(tile_dir=str(tiles), tile_extract="", traffic_extract="", logging={"type": ""})
    for part in ("loki", "thor", "odin", "meili"):
        config.get(part, {})["logging"] = {"type": ""}
    # Valhalla reserves address space for searches over a continent (1.6 GB for one matrix); a skill process may not have it.
    config["thor"].update({f"max_reserved_labels_count_{search}": RESERVED_LABELS
                           for search in ("astar", "bidir_astar", "dijkstras", "bidir_dijkstras")})
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(config, file)
        file.flush()
        maps = ValhallaMaps(valhalla.Actor(file.name))
    _warm(maps, tiles)
    maps.traffic = traffic_files.FileTraffic(folder / "traffic.json")
    maps.elevation = open_elevation(folder / "elevation.json")
    return maps


def _warm(maps: "ValhallaMaps", tiles: Path) -> None:
    """One of everything across the fullest tile: a process forked later has tiles and tables already (saves 50 ms a call)."""
    files = sorted(tiles.glob("2/**/*.gph"), key=lambda path: path.stat().st_size)
    if not files:
        return
    parts = files[-1].relative_to(tiles / "2").with_suffix("").parts
    row, column = divmod(int("".join(parts)), 1440)  # level 2: 1440 tiles of a quarter of a degree in a row, from the south-west
    south, west = row / 4 - 90, column / 4 - 180
    a, b = Point(south + 0.12, west + 0.12), Point(south + 0.25, west + 0.25)
    for work in (lambda: maps.match(maps.alternatives(a, b)[0] and [a, b]), lambda: maps.edges(maps.route(a, b)),
                 lambda: maps.isochrone(b, seconds=60), lambda: maps.matrix(a, [b]), lambda: maps.street(b)):
        try:
            work()
        except NotFound:  # a corner in the sea: what was read to find that out is what counts
            pass


class ValhallaMaps:
    """harness.host.providers.Maps over one Valhalla actor. `traffic` and `elevation` may be set by a host."""

    def __init__(self, actor, traffic: Traffic | None = None, elevation: Elevation | None = None):
        self._actor = actor
        self.traffic, self.elevation = traffic, elevation

    def route(self, origin: Point, destination: Point, *, heading: float | None = None, via: Sequence[Point] = (),
              through: Sequence[Point] = (), avoid: Sequence[str] = (), shortest: bool = False) -> Route:
        """The quickest way by car. `heading` in degrees from north keeps a moving car from being turned round.

        Instructions are in English (Valhalla has no Chinese: narrative.py words both languages from the maneuvers' types).
        Raises NotFound when an end is off the map or nothing joins them, InvalidArgs for an unknown avoidance.
        """
        stops = [*({"lat": p.lat, "lon": p.lon, "type": "through", "radius": 30} for p in through),
                 *({"lat": p.lat, "lon": p.lon, "type": "break"} for p in via)]
        answer = self._ask(self._actor.route, self._request(origin, destination, heading, avoid, stops, shortest))
        route = route_of(answer["trip"])
        self._check_ends(route, origin, destination)
        return self._with_traffic(route)

    def alternatives(self, origin: Point, destination: Point, *, heading: float | None = None, avoid: Sequence[str] = (),
                     count: int = 2) -> list[Route]:
        """The quickest way, and up to `count` others that differ from it and from each other; quickest first.

        Among them is one without the tolls, ferries or motorways of the quickest, where there is one.
        """
        request = self._request(origin, destination, heading, avoid, [], False) | {"alternates": count}
        answer = self._ask(self._actor.route, request)
        found = [route_of(answer["trip"]), *(route_of(other["trip"]) for other in answer.get("alternates", ()))]
        self._check_ends(found[0], origin, destination)
        for name, uses in (("tolls", found[0].tolls), ("ferries", found[0].ferries), ("motorways", found[0].motorways)):
            if uses and name not in avoid and len(found) <= count:
                found.append(self.route(origin, destination, heading=heading, avoid=(*avoid, name)))
        kept: list[Route] = []
        for route in found:
            if route.time_s <= LONGEST_OTHER * found[0].time_s + 60 and not any(_same_way(route, other) for other in kept):
                kept.append(route)
        return sorted((self._with_traffic(route) for route in kept[:count + 1]), key=lambda route: route.time_s)

    def matrix(self, origin: Point, destinations: list[Point]) -> list[float | None]:
        """Driving seconds to each destination; None where there is no way."""
        return self._times([origin], destinations)

    def matrix_to(self, origins: list[Point], destination: Point) -> list[float | None]:
        """Driving seconds from each origin; None where there is no way."""
        return self._times(origins, [destination])

    def isochrone(self, origin: Point, *, seconds: float | None = None, metres: float | None = None) -> Area:
        """What can be reached within a time (at most two hours) or a distance on the road (at most 200 km)."""
        if (seconds is None) == (metres is None):
            raise InvalidArgs("isochrone: give seconds or metres, and not both", field="seconds")
        contour = {"time": min(seconds, 7200) / 60} if seconds is not None else {"distance": min(metres, 200_000) / 1000}
        return area_of(self._ask(self._actor.isochrone, {
            "locations": [_location(origin)], "costing": "auto", "contours": [contour], "polygons": True, "generalize": 20}))

    def edges(self, route: Route) -> tuple[Edge, ...]:
        """The stretches of road that a route of these maps is made of, with begin and end in its shape.

        Where the engine can't follow its own route (a turn round at a stop, now and then), the stretch from one maneuver to the next
        stands for its roads: way id 0, class unclassified, the maneuver's speed.
        """
        cuts = sorted({0, len(route.shape) - 1, *(m.begin for m in route.maneuvers if m.type in ARRIVALS)})
        found: list[Edge] = []
        for begin, end in zip(cuts, cuts[1:]):  # leg by leg: only within one is it a walk from edge to edge
            shape = route.shape[begin:end + 1]
            edges, length = self._walk(shape), Line(shape).length_m
            if length > 1 and abs(sum(e.length_m for e in edges) / length - 1) > COVERED:
                edges = _by_maneuver(route, begin, end)
            found += [dataclasses.replace(e, begin=e.begin + begin, end=e.end + begin) for e in edges]
        return tuple(found)

    def _walk(self, shape) -> list[Edge]:
        """The edges of one leg's shape. Equal neighbours in it are the map's own, or mark a place passed on the way: both are tried."""
        once = [p for i, p in enumerate(shape) if not i or p != shape[i - 1]]
        if len(once) < 2:
            return []
        for points, how in ((shape, "edge_walk"), (once, "edge_walk"), (once, "map_snap")):
            try:
                edges = edges_of(self._ask(self._actor.trace_attributes, {
                    "encoded_polyline": encode_polyline(points), "costing": "auto", "shape_match": how,
                    "filters": {"attributes": EDGE_ATTRIBUTES, "action": "include"}}))
            except NotFound:
                continue
            if how == "edge_walk" and len(points) == len(shape) and edges[-1].end == len(shape) - 1:
                return list(edges)
            return _placed(edges, Line(shape))
        return []

    def match(self, points: Sequence[Point]) -> Matched | None:
        """The road that a trace was driven on, at its last position; None off every road."""
        if not TRACE_POINTS[0] <= len(points) <= TRACE_POINTS[1]:
            raise InvalidArgs(f"points: {len(points)} given; allowed: {TRACE_POINTS[0]} to {TRACE_POINTS[1]}", field="points")
        try:
            return matched_of(self._ask(self._actor.trace_attributes, {
                "shape": [_location(p) for p in points], "costing": "auto", "shape_match": "map_snap",
                "filters": {"attributes": TRACE_ATTRIBUTES, "action": "include"}}))
        except NotFound:
            return None

    def street(self, point: Point) -> str:
        """The name of the nearest named road within 80 m, or "" when there is none."""
        try:
            answer = self._ask(self._actor.locate, {
                "locations": [_location(point) | {"radius": STREET_RADIUS_M}], "costing": "auto", "verbose": True})
        except NotFound:
            return ""
        named = [(edge["distance"], edge["edge_info"]["names"][0]) for edge in answer[0].get("edges") or []
                 if edge["edge_info"]["names"] and edge["distance"] <= STREET_RADIUS_M]
        return min(named)[1] if named else ""

    @staticmethod
    def _request(origin: Point, destination: Point, heading: float | None, avoid: Sequence[str], stops: list[dict], shortest: bool) -> dict:
        if unknown := sorted(set(avoid) - set(AVOID)):
            raise InvalidArgs(f"avoid: {', '.join(unknown)}; allowed: {', '.join(AVOID)}", field="avoid")
        start = _location(origin)
        if heading is not None:
            start |= {"heading": round(heading) % 360, "heading_tolerance": 60, "preferred_side": "either"}
        options = {AVOID[name]: 0 for name in avoid} | ({"shortest": True} if shortest else {})
        return {"locations": [start, *stops, _location(destination)], "costing": "auto", "units": "kilometers", "language": "en-US",
                **({"costing_options": {"auto": options}} if options else {})}

    @staticmethod
    def _check_ends(route: Route, origin: Point, destination: Point) -> None:
        for end, wanted in ((route.shape[0], origin), (route.shape[-1], destination)):
            if metres(Point(*end), wanted) > SNAP_LIMIT_M:
                raise NotFound("no road leads there on this map")

    def _with_traffic(self, route: Route) -> Route:
        if self.traffic is None or not self.traffic.known():
            return route
        delay = traffic_files.delay_s(self.edges(route), self.traffic)
        return route if delay is None else dataclasses.replace(route, time_s=max(route.time_s + delay, 0.0), delay_s=delay)

    def _times(self, origins: list[Point], destinations: list[Point]) -> list[float | None]:
        """One row or one column of a matrix."""
        if not origins or not destinations:
            return []
        try:
            answer = self._ask(self._actor.matrix, {
                "sources": [_location(p) for p in origins], "targets": [_location(p) for p in destinations], "costing": "auto"})
        except NotFound:  # one hopeless end fails the whole request: ask for each by itself
            if len(origins) == len(destinations) == 1:
                return [None]
            return [self._times([a], [b])[0] for a in origins for b in destinations]
        seconds = []
        for row, origin in zip(answer["sources_to_targets"], origins):
            for cell, wanted in zip(row, destinations):
                reached = cell.get("time") is not None and all(
                    metres(Point(cell[f"{end}_lat"], cell[f"{end}_lon"]), point) <= SNAP_LIMIT_M
                    for end, point in (("begin", origin), ("end", wanted)))
                seconds.append(float(cell["time"]) if reached else None)
        return seconds

    @staticmethod
    def _ask(method, request: dict):
        try:
            return method(request)
        except RuntimeError as err:  # Valhalla has one error type; its texts say that there is no road or no way
            raise NotFound("no way there on this map") from err


def _by_maneuver(route: Route, begin: int, end: int) -> list[Edge]:
    """One Edge a maneuver of the leg, its begin and end counted from the leg's begin."""
    steps = [m for m in route.maneuvers if begin <= m.begin < end and m.length_m > 0]
    return [Edge(way_id=0, street=m.street, road_class="unclassified", speed_kmh=m.length_m / max(m.time_s, 0.1) * 3.6, length_m=m.length_m,
                 begin=m.begin - begin, end=(after.begin if after else end) - begin) for m, after in zip(steps, (*steps[1:], None))]


def _placed(edges: tuple[Edge, ...], line: Line) -> list[Edge]:
    """Edges whose begin and end count in another shape, with those of `line`, by their lengths along it."""
    scale = line.length_m / (sum(e.length_m for e in edges) or 1.0)
    placed, along, begin = [], 0.0, 0
    for edge in edges:
        along += edge.length_m * scale
        end = min(range(begin, len(line.along)), key=lambda i: abs(line.along[i] - along))
        placed.append(dataclasses.replace(edge, begin=begin, end=end))
        begin = end
    return placed


def _location(point: Point) -> dict:
    return {"lat": point.lat, "lon": point.lon}


def _same_way(route: Route, other: Route) -> bool:
    """Whether a route stays within SAME_WAY_M of another, looked at every twentieth of its length."""
    line, along = Line(other.shape), Line(route.shape)
    return all(line.nearest(Point(*along.at(along.length_m * i / 20)[0])).off_m <= SAME_WAY_M for i in range(21))
