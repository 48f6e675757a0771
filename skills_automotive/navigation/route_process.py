"""The routing engine for guidance, in a process of its own: a session worker follows many cars and must never wait for a route.

    planner = RouteProcess(cache_dir)
    route, edges = await planner.route(trip, Point(43.73, 7.41), heading=80.0)

One process a worker, started with the first route and started again once when it dies.
"""
import asyncio
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Protocol

from harness.host.errors import HostError, Unavailable
from harness.host.providers import Edge, Matched, Point, Route
from skills_automotive.navigation.trip import Trip, plan_trip
from venus_edge.metrics import METRICS

_maps = None


class Planner(Protocol):
    """What guidance asks of the maps."""

    async def route(self, trip: Trip, position: Point, heading: float | None) -> tuple[Trip, Route, tuple[Edge, ...]]:
        """The trip as it is from here, its route and the stretches of road; raises NotFound without a way, Unavailable without an engine."""
        ...

    async def match(self, points: list[Point]) -> Matched | None:
        """The road a trace was driven on; None off every road."""
        ...


def route_here(maps, trip: Trip, position: Point, heading: float | None) -> tuple[Trip, Route, tuple[Edge, ...]]:
    """`Planner.route` over any maps, at once."""
    trip, route = plan_trip(maps, trip, position, heading)
    return trip, route, maps.edges(route)


class MapsPlanner:
    """A Planner over maps in this process: for tests, and for a host that has a process to itself."""

    def __init__(self, maps):
        self._maps = maps

    async def route(self, trip, position, heading):
        return route_here(self._maps, trip, position, heading)

    async def match(self, points):
        return self._maps.match(points)


class RouteProcess:
    """A Planner over the maps that set-up built, in a process of its own."""

    def __init__(self, cache_dir: Path, name: str = "monaco"):
        self._args = (str(cache_dir), name)
        self._pool: ProcessPoolExecutor | None = None

    async def route(self, trip, position, heading):
        return await self._ask(_route, trip, position, heading)

    async def match(self, points):
        return await self._ask(_match, points)

    async def _ask(self, work, *args):
        for attempt in (1, 2):
            if self._pool is None:
                context = multiprocessing.get_context("spawn")  # a fork of a process with threads and rooms is not safe
                self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_open, initargs=self._args)
            pool = self._pool
            try:
                kind, value = await asyncio.get_running_loop().run_in_executor(pool, work, *args)
            except BrokenProcessPool:
                METRICS.add("venus_harness_guidance_engine_lost_total")
                if self._pool is pool:
                    self._pool = None
                if attempt == 2:
                    raise Unavailable("the routing engine ended twice", reason="engine") from None
                continue
            if kind == "error":
                raise value
            return value

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


def _open(cache_dir: str, name: str) -> None:
    global _maps
    from skills_automotive.navigation.valhalla_maps import open_maps

    try:
        _maps = open_maps(Path(cache_dir), name)
    except Unavailable as err:  # told with the first route: an initializer that fails says nothing
        _maps = err


def _route(trip: Trip, position: Point, heading: float | None):
    return _safely(lambda maps: route_here(maps, trip, position, heading))


def _match(points: list[Point]):
    return _safely(lambda maps: maps.match(points))


def _safely(work):
    """("ok", value) or ("error", error): our errors do not pickle with their data."""
    if isinstance(_maps, HostError):
        return "error", _plain(_maps)
    try:
        return "ok", work(_maps)
    except HostError as err:
        return "error", _plain(err)


def _plain(err: HostError) -> HostError:
    return type(err)(err.message)
