"""What a host offers to skills: protocols only, so that a simulator, a real car or a test double can stand behind them."""
from dataclasses import dataclass, field
from typing import Any, AsyncIterator, Protocol


@dataclass(frozen=True)
class Signal:
    """One vehicle signal's current value; `age_s` since the bus last saw it. VSS names and units."""

    path: str
    value: Any
    age_s: float


@dataclass(frozen=True)
class Effect:
    """The outcome of an actuation: `reached` is True only when the current value arrived at the target."""

    path: str
    target: Any
    value: Any
    reached: bool
    took_s: float


class VehicleBus(Protocol):
    """The vehicle's signals. Raises harness.host.errors.HostError subclasses."""

    async def get(self, *paths: str) -> dict[str, Signal]: ...

    async def actuate(self, path: str, value: Any, *, timeout_s: float = 3.0) -> Effect: ...

    def subscribe(self, *paths: str) -> AsyncIterator[Signal]: ...


@dataclass(frozen=True)
class Point:
    lat: float
    lon: float


@dataclass(frozen=True)
class Place:
    """A point of interest. `distance_m` is straight-line from the search's origin; `open_now` None means unknown."""

    id: str
    name: str
    category: str
    point: Point
    street: str = ""
    distance_m: float = 0.0
    open_now: bool | None = None
    tags: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Maneuver:
    type: int
    street: str
    length_m: float
    time_s: float
    instruction: str


@dataclass(frozen=True)
class Route:
    """A drive: metres, seconds, the named streets in order, the polyline as (lat, lon)."""

    length_m: float
    time_s: float
    streets: tuple[str, ...]
    shape: tuple[tuple[float, float], ...]
    maneuvers: tuple[Maneuver, ...] = ()


class Maps(Protocol):
    """Synchronous and quick (milliseconds); a skill's process owns its own."""

    def route(self, origin: Point, destination: Point, *, heading: float | None = None) -> Route: ...

    def matrix(self, origin: Point, destinations: list[Point]) -> list[float | None]:
        """Seconds to each destination; None where there is no way."""
        ...

    def street(self, point: Point) -> str: ...


class Places(Protocol):
    """Synchronous and quick."""

    def search(self, *, near: Point, category: str | None = None, name: str | None = None,
               limit: int = 5, radius_m: float = 5000.0) -> list[Place]: ...

    def names(self) -> list[str]:
        """Spoken names worth favouring in recognition."""
        ...
