"""For tests of guidance: a car that drives along a line on the map and tells its position, with noise and without satellites in tunnels.

    driver = RouteDriver(route.shape, edges, speed_kmh=50, noise_m=4, seed=1)
    for fix in driver.fixes():
        prompts = guidance.feed(fix)
"""
import random
from typing import Iterator

from harness.host.providers import Edge, Point
from skills_automotive.navigation.geometry import LatLon, Line, moved
from skills_automotive.navigation.guidance import Fix

ACCELERATION = 2.0
"""Metres a second, each second: how quickly the speed follows the road's."""


class RouteDriver:
    """Drives to the line's end, at the roads' own speeds (or one speed), one position each `period_s`.

    Noise is Gaussian, `noise_m` in each direction; `dark` are stretches (metres along) without satellites besides the tunnels.
    """

    def __init__(self, shape, edges: tuple[Edge, ...] = (), *, speed_kmh: float | None = None, noise_m: float = 0.0, seed: int = 0,
                 period_s: float = 1.0, start_at: float = 0.0, tunnels: bool = True, dark: tuple[tuple[float, float], ...] = (),
                 offset: tuple[float, float] = (0.0, 0.0)):
        """`offset`: (direction, metres) by which every position is told wrong, as a street canyon does."""
        self.line = Line(shape)
        self._edges, self._speed, self._noise, self._period = edges, speed_kmh, noise_m, period_s
        self._random, self._offset = random.Random(seed), offset
        self._dark = [*dark, *((self.line.along[e.begin], self.line.along[e.end]) for e in edges if e.tunnel and tunnels)]
        self.along, self.at, self.v = 0.0, start_at, 0.0

    def _wanted(self) -> float:
        if self._speed is not None:
            return self._speed / 3.6
        for e in self._edges:
            if self.line.along[e.begin] <= self.along <= self.line.along[e.end]:
                return max(e.speed_kmh, 10.0) / 3.6
        return 30 / 3.6

    @property
    def true_position(self) -> LatLon:
        return self.line.at(self.along)[0]

    def fix(self) -> Fix:
        """What the car tells now."""
        position, heading = self.line.at(self.along)
        if any(a <= self.along < b for a, b in self._dark):
            return Fix(self.at, None, None, self.v * 3.6)
        if self._offset[1]:
            position = moved(position, *self._offset)
        if self._noise:
            position = moved(position, 0.0, self._random.gauss(0, self._noise))
            position = moved(position, 90.0, self._random.gauss(0, self._noise))
        return Fix(self.at, Point(*position), heading, self.v * 3.6)

    def step(self) -> Fix:
        """Drive for one period and tell the position."""
        wanted = self._wanted()
        change = ACCELERATION * self._period
        before, self.v = self.v, min(max(wanted, self.v - change), self.v + change)
        self.along = min(self.along + (before + self.v) / 2 * self._period, self.line.length_m)
        self.at += self._period
        return self.fix()

    def fixes(self, limit: int = 10_000) -> Iterator[Fix]:
        """From the standing start to the end of the line."""
        yield self.fix()
        for _ in range(limit):
            yield self.step()
            if self.along >= self.line.length_m:
                return
