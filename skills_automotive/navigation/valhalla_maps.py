"""The Maps provider over Valhalla tiles: routes with real street names, a time matrix, the nearest street.

Measured on Monaco: a route 3-5 ms, a matrix 1x6 about 6 ms, the nearest street about 1 ms; opening 0.1 s and 46 MB. A forked
child may use an opened engine as long as its process has a single thread (copy-on-write).
Map data © OpenStreetMap contributors, ODbL 1.0.
"""
import json
import math
import tempfile
from pathlib import Path

import valhalla

from harness.host.errors import NotFound, Unavailable
from harness.host.providers import Maneuver, Point, Route

SNAP_LIMIT_M = 1000.0
"""A point farther than this from every road has no way: Valhalla would take the nearest road at any distance."""
STREET_RADIUS_M = 80.0
RESERVED_LABELS = 50_000
"""Room kept between requests; a search that needs more takes it and gives it back."""


def metres(a: Point, b: Point) -> float:
    """Great-circle distance."""
    rad = math.pi / 180
    h = (0.5 - math.cos((b.lat - a.lat) * rad) / 2
         + math.cos(a.lat * rad) * math.cos(b.lat * rad) * (1 - math.cos((b.lon - a.lon) * rad)) / 2)
    return 12_742_000 * math.asin(math.sqrt(h))


def open_maps(cache_dir: Path, name: str = "monaco") -> "ValhallaMaps":
    """Open the tiles that set-up built at `<cache_dir>/map/<name>`; raises Unavailable naming what is missing."""
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
    return maps


def _warm(maps: "ValhallaMaps", tiles: Path) -> None:
    """One route and one matrix across the fullest tile: a process forked later has tiles and tables already (saves 50 ms a call)."""
    files = sorted(tiles.glob("2/**/*.gph"), key=lambda path: path.stat().st_size)
    if not files:
        return
    parts = files[-1].relative_to(tiles / "2").with_suffix("").parts
    row, column = divmod(int("".join(parts)), 1440)  # level 2: 1440 tiles of a quarter of a degree in a row, from the south-west
    south, west = row / 4 - 90, column / 4 - 180
    try:
        maps.route(Point(south + 0.12, west + 0.12), Point(south + 0.25, west + 0.25))
    except NotFound:  # a corner in the sea: what was read to find that out is what counts
        pass
    maps.matrix(Point(south + 0.12, west + 0.12), [Point(south + 0.25, west + 0.25)])


class ValhallaMaps:
    """harness.host.providers.Maps over one Valhalla actor."""

    def __init__(self, actor):
        self._actor = actor

    def route(self, origin: Point, destination: Point, *, heading: float | None = None) -> Route:
        """The quickest way by car; instructions in English (Valhalla has no Chinese: guidance.py words that). `heading` in degrees from north keeps a moving car from being turned round.

        Raises NotFound when either end is off the map or nothing joins them.
        """
        start = {"lat": origin.lat, "lon": origin.lon}
        if heading is not None:
            start |= {"heading": round(heading) % 360, "heading_tolerance": 60, "preferred_side": "either"}
        answer = self._ask(self._actor.route, {
            "locations": [start, {"lat": destination.lat, "lon": destination.lon}],
            "costing": "auto", "units": "kilometers", "language": "en-US",
        })
        leg = answer["trip"]["legs"][0]
        shape = decode_polyline(leg["shape"])
        for end, wanted in ((shape[0], origin), (shape[-1], destination)):
            if metres(Point(*end), wanted) > SNAP_LIMIT_M:
                raise NotFound("no road leads there on this map")
        maneuvers = tuple(
            Maneuver(type=m["type"], street=(m.get("street_names") or [""])[0], length_m=m["length"] * 1000,
                     time_s=m["time"], instruction=m["instruction"])
            for m in leg["maneuvers"]
        )
        return Route(length_m=answer["trip"]["summary"]["length"] * 1000, time_s=answer["trip"]["summary"]["time"],
                     streets=_merged(m.street for m in maneuvers), shape=shape, maneuvers=maneuvers)

    def matrix(self, origin: Point, destinations: list[Point]) -> list[float | None]:
        """Driving seconds to each destination; None where there is no way."""
        if not destinations:
            return []
        try:
            answer = self._ask(self._actor.matrix, {
                "sources": [{"lat": origin.lat, "lon": origin.lon}],
                "targets": [{"lat": p.lat, "lon": p.lon} for p in destinations], "costing": "auto",
            })
        except NotFound:  # one hopeless target fails the whole request: ask for each by itself
            return [None] if len(destinations) == 1 else [self.matrix(origin, [p])[0] for p in destinations]
        seconds = []
        for cell, wanted in zip(answer["sources_to_targets"][0], destinations):
            reached = cell.get("time") is not None and all(
                metres(Point(cell[f"{end}_lat"], cell[f"{end}_lon"]), point) <= SNAP_LIMIT_M
                for end, point in (("begin", origin), ("end", wanted)))
            seconds.append(float(cell["time"]) if reached else None)
        return seconds

    def street(self, point: Point) -> str:
        """The name of the nearest named road within 80 m, or "" when there is none."""
        try:
            answer = self._ask(self._actor.locate, {
                "locations": [{"lat": point.lat, "lon": point.lon, "radius": STREET_RADIUS_M}],
                "costing": "auto", "verbose": True,
            })
        except NotFound:
            return ""
        named = [(edge["distance"], edge["edge_info"]["names"][0]) for edge in answer[0].get("edges") or []
                 if edge["edge_info"]["names"] and edge["distance"] <= STREET_RADIUS_M]
        return min(named)[1] if named else ""

    @staticmethod
    def _ask(method, request: dict):
        try:
            return method(request)
        except RuntimeError as err:  # Valhalla has one error type; its texts say that there is no road or no way
            raise NotFound("no way there on this map") from err


def _merged(names) -> tuple[str, ...]:
    """Street names in order, unnamed parts left out, neighbours of the same name as one."""
    merged: list[str] = []
    for name in names:
        if name and (not merged or merged[-1] != name):
            merged.append(name)
    return tuple(merged)


def decode_polyline(encoded: str) -> tuple[tuple[float, float], ...]:
    """Valhalla's shape (the public encoded-polyline format with six decimals) as (lat, lon) pairs.

    Our own, because the package's decoder sits at different places in its releases.
    """
    points, value, shift, pair, at = [], 0, 0, [], [0, 0]
    for char in encoded:
        bits = ord(char) - 63
        value |= (bits & 31) << shift
        shift += 5
        if bits < 32:  # the last five bits of one number
            pair.append(~(value >> 1) if value & 1 else value >> 1)
            value = shift = 0
            if len(pair) == 2:
                at = [at[0] + pair[0], at[1] + pair[1]]
                points.append((at[0] / 1e6, at[1] / 1e6))
                pair = []
    return tuple(points)
