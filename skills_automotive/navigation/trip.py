"""The trip of a session: destination, stops, what to avoid and which way; kept in the session's memory, planned with the car's position.

Memory: `destination` (a place), `trip` {goal, stops, through, shortest, avoid}, `avoid` [tolls | ferries | motorways] (on every trip),
`stopped` (a trip that was ended and may be resumed). A trip that belongs to another destination counts as none.
"""
import asyncio
from dataclasses import dataclass, replace

from harness.host.errors import NotFound
from harness.host.providers import Maps, Point, Route
from harness.skill import SkillContext, SkillError
from skills_automotive.navigation.geometry import metres
from skills_automotive.navigation.places import remember_been, spot

HEADING = "Vehicle.CurrentLocation.Heading"
LATITUDE = "Vehicle.Cabin.Infotainment.Navigation.DestinationSet.Latitude"
LONGITUDE = "Vehicle.Cabin.Infotainment.Navigation.DestinationSet.Longitude"
STOPS_LIMIT = 5
REACHED_M = 60.0
"""So near to a stop it counts as reached."""
STRAY = 1.6
"""When the chosen way would take this many times as long as the quickest, the car has left it and it is forgotten."""


def point_of(place: dict) -> Point:
    return Point(place["lat"], place["lon"])


@dataclass(frozen=True)
class Trip:
    """Where to and how. `through`: points of a chosen way, passed without a stop."""

    goal: dict
    stops: tuple[dict, ...] = ()
    through: tuple[tuple[float, float], ...] = ()
    shortest: bool = False
    avoid: tuple[str, ...] = ()
    """On this trip only."""
    prefer: tuple[str, ...] = ()
    """To be avoided on every trip."""

    @property
    def avoiding(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.prefer, *self.avoid)))

    @classmethod
    def of(cls, memory: dict) -> "Trip | None":
        """The trip that a session's memory holds, or None without a destination."""
        goal = memory.get("destination")
        if not goal:
            return None
        kept, prefer = memory.get("trip") or {}, tuple(memory.get("avoid") or ())
        if kept.get("goal") != goal["id"]:
            return cls(goal, prefer=prefer)
        return cls(goal, tuple(kept.get("stops") or ()), tuple(map(tuple, kept.get("through") or ())), bool(kept.get("shortest")),
                   tuple(kept.get("avoid") or ()), prefer)

    def keep(self, memory: dict) -> None:
        memory["destination"] = self.goal
        memory["trip"] = {"goal": self.goal["id"], "stops": list(self.stops), "through": [list(p) for p in self.through],
                          "shortest": self.shortest, "avoid": list(self.avoid)}

    def without_reached(self, position: Point) -> "Trip":
        """The stops before and with the last one that the car is at are done."""
        done = [i for i, stop in enumerate(self.stops) if metres(point_of(stop), position) <= REACHED_M]
        return replace(self, stops=self.stops[done[-1] + 1:]) if done else self


def plan_trip(maps: Maps, trip: Trip, position: Point, heading: float | None) -> tuple[Trip, Route]:
    """The way of a trip from a position, and the trip as it is from now on; raises NotFound without a way."""
    trip = trip.without_reached(position)
    options = {"heading": heading, "avoid": trip.avoiding, "via": [point_of(stop) for stop in trip.stops]}
    if trip.through:
        plain = maps.route(position, point_of(trip.goal), **options)
        try:
            chosen = maps.route(position, point_of(trip.goal), through=[Point(*p) for p in trip.through], **options)
        except NotFound:
            chosen = None
        if chosen is not None and chosen.time_s <= STRAY * plain.time_s + 30:
            return trip, chosen
        return replace(trip, through=()), plain
    return trip, maps.route(position, point_of(trip.goal), shortest=trip.shortest, **options)


async def whereabouts(ctx: SkillContext) -> tuple[Point, float | None]:
    """(position, heading); a car without a compass is routed without one."""
    return await asyncio.gather(ctx.position(), _heading(ctx))


async def _heading(ctx: SkillContext) -> float | None:
    try:
        return (await ctx.vehicle.get(HEADING))[HEADING].value
    except NotFound:
        return None


async def plan(ctx: SkillContext, trip: Trip) -> tuple[Trip, Route]:
    """`plan_trip` from where the car is; raises SkillError("not_found") without a way."""
    position, heading = await whereabouts(ctx)
    return planned(ctx, trip, position, heading)


def planned(ctx: SkillContext, trip: Trip, position: Point, heading: float | None) -> tuple[Trip, Route]:
    try:
        return plan_trip(ctx.maps, trip, position, heading)
    except NotFound:
        raise SkillError("not_found", "no way there", reason="no_way") from None


async def steer_to(ctx: SkillContext, trip: Trip, at: tuple[Point, float | None] | None = None) -> tuple[Trip, Route]:
    """Make a trip the car's: plan it, set the destination, remember it; raises what the car or the map says.

    `at`: (position, heading) where they are known already.
    """
    position, heading = at or await whereabouts(ctx)
    trip, route = planned(ctx, trip, position, heading)
    await set_destination(ctx, trip.goal["lat"], trip.goal["lon"])
    before = ctx.memory.get("destination")
    if before is None or before["id"] != trip.goal["id"]:
        remember_been(ctx, before)
        ctx.memory["from"] = spot(position, "where we set off", "出发的地方")
    trip.keep(ctx.memory)
    ctx.memory["stopped"] = None
    return trip, route


async def set_destination(ctx: SkillContext, lat: float, lon: float) -> None:
    """Set it in the car; raises SkillError("timeout") when the car's own value does not arrive."""
    effects = await asyncio.gather(ctx.vehicle.actuate(LATITUDE, lat), ctx.vehicle.actuate(LONGITUDE, lon))
    if not all(effect.reached for effect in effects):
        raise SkillError("timeout", "the car did not take the destination")


def current(ctx: SkillContext) -> Trip:
    """The trip that is under way; raises SkillError("not_found", reason="no_route") without one."""
    trip = Trip.of(ctx.memory)
    if trip is None:
        raise SkillError("not_found", "no route is running", reason="no_route")
    return trip


def end(ctx: SkillContext) -> None:
    """The trip is over in memory; it may be resumed."""
    trip = Trip.of(ctx.memory)
    if trip is not None:
        ctx.memory["stopped"] = {"destination": trip.goal, "trip": ctx.memory.get("trip")}
        remember_been(ctx, trip.goal)
    ctx.memory["destination"] = ctx.memory["trip"] = None


def stopped(ctx: SkillContext) -> Trip | None:
    """The trip that was ended last, or None."""
    kept = ctx.memory.get("stopped")
    return Trip.of(kept | {"avoid": ctx.memory.get("avoid")}) if kept else None
