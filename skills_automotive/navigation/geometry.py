"""Lines on the map: distances, directions, how far along a route a position is and what lies at a distance along it.

Positions are (lat, lon) in degrees, distances metres, directions degrees from north. Over the few kilometres of one piece the
earth is taken as flat, which is exact to a millimetre a metre.
"""
import bisect
import math
from dataclasses import dataclass

from harness.host.providers import Point

EARTH_M = 6_371_000.0
_RAD = math.pi / 180

LatLon = tuple[float, float]


def metres(a: Point, b: Point) -> float:
    """Great-circle distance."""
    h = (0.5 - math.cos((b.lat - a.lat) * _RAD) / 2
         + math.cos(a.lat * _RAD) * math.cos(b.lat * _RAD) * (1 - math.cos((b.lon - a.lon) * _RAD)) / 2)
    return 2 * EARTH_M * math.asin(math.sqrt(h))


def bearing(a: LatLon, b: LatLon) -> float:
    """Direction from a to b, 0..360."""
    east = (b[1] - a[1]) * math.cos((a[0] + b[0]) / 2 * _RAD)
    return math.degrees(math.atan2(east, b[0] - a[0])) % 360


def turn(a: float, b: float) -> float:
    """The angle between two directions, 0..180."""
    return abs((a - b + 180) % 360 - 180)


def moved(start: LatLon, direction: float, distance: float) -> LatLon:
    """Where one is after `distance` metres in a direction."""
    north, east = distance * math.cos(direction * _RAD), distance * math.sin(direction * _RAD)
    return start[0] + north / EARTH_M / _RAD, start[1] + east / EARTH_M / _RAD / math.cos(start[0] * _RAD)


@dataclass(frozen=True)
class OnLine:
    """The nearest place of a line: metres along it, metres beside it, and the line's direction there."""

    along_m: float
    off_m: float
    heading: float


class Line:
    """A polyline measured along itself. Equal neighbours are allowed; an empty line is not."""

    def __init__(self, shape):
        self.shape: tuple[LatLon, ...] = tuple((lat, lon) for lat, lon in shape)
        if not self.shape:
            raise ValueError("shape: needs at least one (lat, lon)")
        self.along = [0.0]
        for a, b in zip(self.shape, self.shape[1:]):
            self.along.append(self.along[-1] + metres(Point(*a), Point(*b)))

    @property
    def length_m(self) -> float:
        return self.along[-1]

    def at(self, along_m: float) -> tuple[LatLon, float]:
        """(position, direction) at a distance along; beyond an end that end."""
        if len(self.shape) == 1:
            return self.shape[0], 0.0
        along_m = min(max(along_m, 0.0), self.length_m)
        i = min(bisect.bisect_right(self.along, along_m) - 1, len(self.shape) - 2)
        a, b = self.shape[i], self.shape[i + 1]
        length = self.along[i + 1] - self.along[i]
        part = (along_m - self.along[i]) / length if length else 0.0
        return (a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part), self._heading(i)

    def nearest(self, point: Point, low_m: float = 0.0, high_m: float = math.inf, heading: float | None = None) -> OnLine:
        """The nearest place between two distances along.

        With a heading, a stretch in another direction counts as up to 40 m farther, so that of two carriageways the right one is found.
        """
        if len(self.shape) == 1:
            return OnLine(0.0, metres(point, Point(*self.shape[0])), 0.0)
        first = max(0, bisect.bisect_right(self.along, low_m) - 1)
        best, best_cost = None, math.inf
        east_m = EARTH_M * _RAD * math.cos(point.lat * _RAD)
        north_m = EARTH_M * _RAD
        for i in range(min(first, len(self.shape) - 2), len(self.shape) - 1):
            if self.along[i] > high_m and best is not None:
                break
            (alat, alon), (blat, blon) = self.shape[i], self.shape[i + 1]
            ax, ay = (alon - point.lon) * east_m, (alat - point.lat) * north_m
            dx, dy = (blon - alon) * east_m, (blat - alat) * north_m
            square = dx * dx + dy * dy
            part = 0.0 if not square else min(1.0, max(0.0, -(ax * dx + ay * dy) / square))
            length = self.along[i + 1] - self.along[i]
            along = self.along[i] + part * length
            if not low_m <= along <= high_m:
                along = min(max(along, low_m), min(high_m, self.length_m))
                part = min(1.0, max(0.0, (along - self.along[i]) / length)) if length else 0.0
            off = math.hypot(ax + part * dx, ay + part * dy)
            cost = off + (0.0 if heading is None else 40 * turn(self._heading(i), heading) / 180)
            if cost < best_cost:
                best, best_cost = OnLine(along, off, self._heading(i)), cost
        return best

    def _heading(self, i: int) -> float:
        a, b = self.shape[i], self.shape[i + 1]
        return bearing(a, b) if a != b else self._heading(i - 1) if i else 0.0


def decode_polyline(encoded: str) -> tuple[LatLon, ...]:
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


def encode_polyline(shape) -> str:
    """(lat, lon) pairs as `decode_polyline` reads them."""
    out, last = [], (0, 0)
    for lat, lon in shape:
        now = round(lat * 1e6), round(lon * 1e6)
        for value in (now[0] - last[0], now[1] - last[1]):
            value = ~(value << 1) if value < 0 else value << 1
            while value >= 0x20:
                out.append(chr((0x20 | (value & 0x1F)) + 63))
                value >>= 5
            out.append(chr(value + 63))
        last = now
    return "".join(out)


def contains(polygons, point: Point) -> bool:
    """Whether a point lies in one of the polygons (rings of (lat, lon), the first the outline, further ones holes)."""
    return any(_in_ring(rings[0], point) and not any(_in_ring(hole, point) for hole in rings[1:]) for rings in polygons if rings)


def _in_ring(ring, point: Point) -> bool:
    inside = False
    for (lat1, lon1), (lat2, lon2) in zip(ring, (*ring[1:], ring[0])):
        if (lat1 > point.lat) != (lat2 > point.lat) and point.lon < (lon2 - lon1) * (point.lat - lat1) / (lat2 - lat1) + lon1:
            inside = not inside
    return inside
