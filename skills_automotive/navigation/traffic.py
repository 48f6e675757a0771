"""What is known of the traffic: factors by road and by class of road, from a file that a host keeps fresh beside the map.

    {"at": 1700000000, "classes": {"primary": 1.4}, "ways": {"4229292": 2.5}}      # <map folder>/traffic.json

`at` is when it was true (seconds since the epoch); after ten minutes nothing of it counts. A road's own factor (by its way id in
OpenStreetMap) goes before its class's. None ships with the maps: without the file, every time is free flow, and said to be so.
"""
import json
import logging
import math
from pathlib import Path

from harness.host.providers import Edge
from venus_edge.clock import Clock, SystemClock

STALE_S = 600.0
SLOWEST, FASTEST = 20.0, 0.5
"""Factors beyond these are taken for these: no jam takes more than twenty times the time."""
log = logging.getLogger(__name__)


class TableTraffic:
    """harness.host.providers.Traffic over tables in memory."""

    def __init__(self, classes: dict[str, float] | None = None, ways: dict[int, float] | None = None):
        self.classes = {name: _bounded(f) for name, f in (classes or {}).items()}
        self.ways = {int(way): _bounded(f) for way, f in (ways or {}).items()}

    def known(self) -> bool:
        return bool(self.classes or self.ways)

    def factor(self, edge: Edge) -> float | None:
        return self.ways.get(edge.way_id, self.classes.get(edge.road_class))


class FileTraffic:
    """harness.host.providers.Traffic over `traffic.json`, read again whenever it was written again."""

    def __init__(self, path: Path, clock: Clock | None = None):
        self._path, self._clock = Path(path), clock or SystemClock()
        self._stamp: tuple | None = None
        self._at, self._table = -math.inf, TableTraffic()

    def _fresh(self) -> TableTraffic:
        try:
            stat = self._path.stat()
        except OSError:
            return TableTraffic()
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                data = json.loads(self._path.read_text(encoding="utf-8"))
                self._table, self._at = TableTraffic(data.get("classes"), data.get("ways")), float(data["at"])
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as err:
                self._table, self._at = TableTraffic(), -math.inf
                log.warning("%s: %s: %s; needs at (seconds), classes and ways (factors)", self._path.name, type(err).__name__, err)
        return self._table if -STALE_S <= self._clock.wall() - self._at <= STALE_S else TableTraffic()

    def known(self) -> bool:
        return self._fresh().known()

    def factor(self, edge: Edge) -> float | None:
        return self._fresh().factor(edge)


def _bounded(factor: float) -> float:
    factor = float(factor)
    if not math.isfinite(factor) or factor <= 0:
        raise ValueError(f"factor {factor} must be above 0")
    return min(max(factor, FASTEST), SLOWEST)


def delay_s(edges: tuple[Edge, ...], traffic) -> float | None:
    """Seconds that traffic adds to the free-flow time of these stretches; None when nothing is known of any of them."""
    known, delay = False, 0.0
    for edge in edges:
        factor = traffic.factor(edge)
        if factor is not None and edge.speed_kmh > 0:
            known = True
            delay += edge.length_m / (edge.speed_kmh / 3.6) * (factor - 1)
    return delay if known else None
