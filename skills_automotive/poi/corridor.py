"""The band along a route in which places are looked for."""
import math
from functools import cached_property
from typing import Iterator, Sequence

from skills_automotive.poi.entry import Entry

PIECE_M = 1500.0
"""A route is cut into pieces of about this length, each with a box of its own."""


class Corridor:
    """Everything within `width_m` of a line of (lat, lon)."""

    def __init__(self, line: Sequence[tuple[float, float]], width_m: float):
        self._width = width_m
        self._lat, self._lon = line[0]
        self._scale = max(0.05, math.cos(math.radians(self._lat)))
        self._points = [self._flat(lat, lon) for lat, lon in line]
        if len(self._points) == 1:
            self._points *= 2
        self._known: dict[str, tuple[float, float]] = {}

    def _flat(self, lat: float, lon: float) -> tuple[float, float]:
        """Metres north and east of the line's begin."""
        return (lat - self._lat) * 111_320, (lon - self._lon) * 111_320 * self._scale

    @cached_property
    def _pieces(self) -> list[tuple[int, int]]:
        pieces, begin, length = [], 0, 0.0
        for i in range(1, len(self._points)):
            length += math.dist(self._points[i - 1], self._points[i])
            if length >= PIECE_M or i == len(self._points) - 1:
                pieces.append((begin, i))
                begin, length = i, 0.0
        return pieces

    def boxes(self) -> Iterator[tuple[float, float, float, float]]:
        """(south, north, west, east) in degrees, one box around each piece of the band."""
        for begin, end in self._pieces:
            ys, xs = zip(*self._points[begin:end + 1])
            yield (self._lat + (min(ys) - self._width) / 111_320, self._lat + (max(ys) + self._width) / 111_320,
                   self._lon + (min(xs) - self._width) / 111_320 / self._scale, self._lon + (max(xs) + self._width) / 111_320 / self._scale)

    def off(self, entry: Entry) -> float:
        """Metres from the line."""
        return self._locate(entry)[0]

    def at(self, entry: Entry) -> float:
        """Metres along the line to where it passes the entry."""
        return self._locate(entry)[1]

    def _locate(self, entry: Entry) -> tuple[float, float]:
        if entry.osm not in self._known:
            y, x = self._flat(entry.lat, entry.lon)
            best, along = (math.inf, 0.0), 0.0
            for (ay, ax), (by, bx) in zip(self._points, self._points[1:]):
                length = math.hypot(by - ay, bx - ax)
                t = max(0.0, min(1.0, ((y - ay) * (by - ay) + (x - ax) * (bx - ax)) / length ** 2)) if length else 0.0
                best = min(best, (math.hypot(y - ay - t * (by - ay), x - ax - t * (bx - ax)), along + t * length))
                along += length
            self._known[entry.osm] = best
        return self._known[entry.osm]
