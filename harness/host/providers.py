"""What a host offers to skills: protocols only, so that a simulator, a real car or a test double can stand behind them."""
from dataclasses import dataclass, field
from typing import Any, AsyncIterator, Protocol, Sequence


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
    changes_at: str = ""
    """When `open_now` changes next, ISO 8601 in the place's own time; "" where that is unknown or never."""
    changes_in_s: float | None = None
    """Seconds from the search to `changes_at`."""
    hours_today: tuple[tuple[str, str], ...] | None = None
    """Begin and end of the place's opening times today, as `changes_at`; None where unknown. Filled in by `Places.get` only."""
    phone: str = ""
    address: str = ""
    """House number and street where the map has them."""
    unsure: tuple[str, ...] = ()
    """What was wanted and the map doesn't tell of this place: "hours" or names of `Wants` ("wheelchair", "plug", ...)."""
    nearer_closed: int = 0
    """How many nearer ones were left out because they are closed now."""
    synthetic: bool = False
    """Made up for tests and demonstrations: there is no such place."""


@dataclass(frozen=True)
class Wants:
    """What a place must offer. One that surely lacks it is left out; where the map doesn't tell, it stays and is marked `unsure`.

    Only cuisine and brand must be told: a restaurant of no known cuisine is no answer to "sushi".
    """

    open_now: bool = False
    cuisine: tuple[str, ...] = ()
    """OpenStreetMap's values, any of them."""
    brand: tuple[str, ...] = ()
    """Spellings of one brand, any of them."""
    plug: str = ""
    """type2 | ccs | chademo | gbt | tesla | schuko"""
    min_power_kw: float = 0.0
    needs: frozenset[str] = frozenset()
    """Names in the provider's table of attributes: wheelchair, free, parking, wifi, ..."""


@dataclass(frozen=True)
class Maneuver:
    """One thing to do, at shape[begin]; `length_m` and `time_s` lead from there to the next. `type`: Valhalla's numbers.

    `exit`: which exit of a roundabout, or 0. `sign`: what the signposts say ("Nice, Menton").
    """

    type: int
    street: str
    length_m: float
    time_s: float
    instruction: str
    begin: int = 0
    exit: int = 0
    sign: str = ""


@dataclass(frozen=True)
class Edge:
    """One stretch of road of a route or a trace: shape[begin] to shape[end]. `speed_kmh`: without traffic.

    `road_class`: motorway, trunk, primary, secondary, tertiary, unclassified, residential or service_other.
    """

    way_id: int
    street: str
    road_class: str
    speed_kmh: float
    length_m: float
    begin: int
    end: int
    tunnel: bool = False
    toll: bool = False


@dataclass(frozen=True)
class Route:
    """A drive: metres, seconds, the named streets in order, the polyline as (lat, lon)."""

    length_m: float
    time_s: float
    streets: tuple[str, ...]
    shape: tuple[tuple[float, float], ...]
    maneuvers: tuple[Maneuver, ...] = ()
    tolls: bool = False
    ferries: bool = False
    motorways: bool = False
    delay_s: float | None = None
    """What traffic adds, contained in `time_s`; None when nothing is known of the traffic."""


@dataclass(frozen=True)
class Area:
    """What can be reached: polygons of (lat, lon), the first ring of each its outline, further ones holes."""

    polygons: tuple[tuple[tuple[tuple[float, float], ...], ...], ...]


@dataclass(frozen=True)
class Matched:
    """Where a trace of positions lies on the roads: its last position there, that road, and its direction in degrees from north."""

    point: Point
    heading: float
    edge: Edge
    off_m: float
    """Between the last position and `point`."""
    edges: tuple[Edge, ...] = ()
    """Every stretch of the trace; their `begin` and `end` count in the matched shape, not in the trace."""


class Traffic(Protocol):
    """How much slower than free flow a road is now. A host that knows gives it to its maps; without one, times are free flow."""

    def factor(self, edge: Edge) -> float | None:
        """1.0: free flow, 2.0: twice the time; None where nothing is known of this road."""
        ...

    def known(self) -> bool:
        """Whether there is anything recent at all."""
        ...


class Elevation(Protocol):
    """Heights of the ground."""

    def height_m(self, point: Point) -> float | None:
        """Metres above the sea, or None where nothing is known."""
        ...


class Maps(Protocol):
    """Synchronous and quick (milliseconds); a skill's process owns its own. All raise NotFound where there is no way.

    `avoid`: any of "tolls", "ferries", "motorways", avoided as far as there is another way; the route's own flags tell.
    """

    traffic: Traffic | None
    elevation: Elevation | None

    def route(self, origin: Point, destination: Point, *, heading: float | None = None, via: Sequence[Point] = (),
              through: Sequence[Point] = (), avoid: Sequence[str] = (), shortest: bool = False) -> Route:
        """The quickest way. `via`: stops on the way, in order; `through`: points passed without a stop, before the stops."""
        ...

    def alternatives(self, origin: Point, destination: Point, *, heading: float | None = None, avoid: Sequence[str] = (),
                     count: int = 2) -> list[Route]:
        """The quickest way, and up to `count` sensible others, quickest first."""
        ...

    def matrix(self, origin: Point, destinations: list[Point]) -> list[float | None]:
        """Seconds to each destination; None where there is no way."""
        ...

    def matrix_to(self, origins: list[Point], destination: Point) -> list[float | None]:
        """Seconds from each origin; None where there is no way."""
        ...

    def isochrone(self, origin: Point, *, seconds: float | None = None, metres: float | None = None) -> Area:
        """What can be reached within a time or a distance on the road (give one of them)."""
        ...

    def edges(self, route: Route) -> tuple[Edge, ...]:
        """The stretches of road that a route of these maps is made of."""
        ...

    def match(self, points: Sequence[Point]) -> Matched | None:
        """The road that a trace (2 to 100 positions, about a second apart, oldest first) was driven on; None off every road."""
        ...

    def street(self, point: Point) -> str: ...


class Places(Protocol):
    """Synchronous and quick."""

    def search(self, *, near: Point, category: str | None = None, name: str | None = None, limit: int = 5, radius_m: float = 5000.0,
               wants: Wants | None = None, along: Sequence[tuple[float, float]] = ()) -> list[Place]:
        """`along`: only places within `radius_m` of this line of (lat, lon), in the order in which it passes them."""
        ...

    def get(self, place_id: str, *, near: Point | None = None) -> Place | None:
        """One place with all that is known of it; None when the map has no such id (any more)."""
        ...

    def names(self) -> list[str]:
        """Spoken names worth favouring in recognition."""
        ...

    def attribution(self) -> "Attribution":
        """Where the data comes from: whoever shows or speaks it must be able to say so."""
        ...


@dataclass(frozen=True)
class Attribution:
    """The credit that goes with places. `synthetic`: some of them are made up."""

    credit: str
    licence: str
    synthetic: bool = False
