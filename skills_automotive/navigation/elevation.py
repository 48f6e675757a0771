"""Heights of the ground from spot heights beside the map: no elevation ships with the maps, so without the file grades count as flat.

    {"points": [[43.7316, 7.4163, 9.0], [43.7376, 7.4163, 98.0]]}      # <map folder>/elevation.json: lat, lon, metres

Between the points it is weighted by the inverse square of the distance to the four nearest; farther than 1.5 km from all nothing is known.
"""
import json
import math
from pathlib import Path

from harness.host.errors import Unavailable
from harness.host.providers import Point
from skills_automotive.navigation.geometry import metres

REACH_M = 1500.0
NEIGHBOURS = 4


class SpotHeights:
    """harness.host.providers.Elevation over points with known heights."""

    def __init__(self, points):
        self._points = tuple((Point(lat, lon), float(height)) for lat, lon, height in points)

    def height_m(self, point: Point) -> float | None:
        near = sorted((metres(point, where), height) for where, height in self._points)[:NEIGHBOURS]
        if not near or near[0][0] > REACH_M:
            return None
        if near[0][0] < 1.0:
            return near[0][1]
        weights = [1 / distance ** 2 for distance, _ in near]
        return sum(w * height for w, (_, height) in zip(weights, near)) / sum(weights)


def open_elevation(path: Path) -> SpotHeights | None:
    """The heights of a file, None where there is no such file; raises Unavailable for one that is broken."""
    try:
        points = json.loads(Path(path).read_text(encoding="utf-8"))["points"]
        if not all(len(p) == 3 and all(math.isfinite(x) for x in p) for p in points):
            raise ValueError("each point needs lat, lon and metres")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise Unavailable(f"{path}: {type(err).__name__}: {err}; needs points: [[lat, lon, metres], ...]", path=str(path)) from None
    return SpotHeights(points)
