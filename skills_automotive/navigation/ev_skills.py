"""How far one can get, and the electric car on the way: navigation.reach and navigation.ev."""
from typing import Any, Literal

from pydantic import Field

from harness.host.errors import NotFound
from harness.host.providers import Area, Point
from harness.skill import Args, Effects, Result, Skill, SkillContext, SkillError
from skills_automotive import spoken
from skills_automotive.navigation import charging, ev, places, trip as trips
from skills_automotive.navigation.geometry import bearing, metres, turn
from skills_automotive.navigation.skills import LOOKS, WORDING
from skills_automotive.navigation.trip import Trip, point_of
from skills_automotive.poi.lookup import as_memory
from venus_edge.numbers import say_number

LOW = 0.15
"""An arrival with less charge is called low."""
_EFFECTS = Effects(reads=(*LOOKS.reads, *charging.READS), uses=("maps", "places"))


def ends(area: Area, origin: Point) -> list[Point]:
    """The point of an area farthest away, and the farthest one in quite another direction; as the crow flies."""
    corners = [Point(*corner) for rings in area.polygons for corner in rings[0]]
    if not corners:
        return []
    far = max(corners, key=lambda p: metres(origin, p))
    there = bearing((origin.lat, origin.lon), (far.lat, far.lon))
    opposite = [p for p in corners if turn(there, bearing((origin.lat, origin.lon), (p.lat, p.lon))) > 90]
    return [far, *([max(opposite, key=lambda p: metres(origin, p))] if opposite else [])]


class Reach(Skill):
    id = "navigation.reach"
    version = "1.0.0"
    summary = {"en": "Tell how far we can get in some minutes or on this charge, or whether we can reach a place with them.",
               "zh": "告知几分钟内或当前电量能到多远，或能否到达某地。"}
    examples = {"en": [
        ("How far can I get in ten minutes?", {"minutes": 10}), ("What can we reach within five minutes?", {"minutes": 5}),
        ("How far does the charge take us?", {}), ("Can we reach the casino within eight minutes?", {"minutes": 8, "place": "casino"}),
        ("Can we reach the train station on this charge?", {"place": "train station"}),
    ], "zh": [
        ("十分钟能开多远？", {"minutes": 10}), ("五分钟之内能到哪里？", {"minutes": 5}), ("现在的电量能跑多远？", {}),
        ("八分钟能到赌场吗？", {"minutes": 8, "place": "赌场"}), ("这点电能到火车站吗？", {"place": "火车站"}),
    ]}
    effects = _EFFECTS
    timeout_s = 5.0
    wording = WORDING

    class Args(Args):
        minutes: int | None = Field(default=None, ge=1, le=120)
        place: str | None = Field(default=None, min_length=1, max_length=120)

    class Result(Result):
        seconds: float = 0.0
        length_m: float = 0.0
        streets: list[str] = Field(default_factory=list)
        said: dict[str, str] = Field(default_factory=dict)
        percent: int = 0

        def spoken(self, lang: str) -> dict[str, Any]:
            first, second = (*self.streets, "", "")[:2]
            whole = round(self.seconds / 60)
            count = say_number(whole, lang) if whole != 2 or lang != "zh" else "两"
            within = f"{count}分钟" if lang == "zh" else "one minute" if whole == 1 else f"{count} minutes"
            return {"minutes": spoken.minutes(self.seconds, lang), "within": within, "distance": spoken.distance(self.length_m, lang),
                    "street": first, "second": second, "name": self.said.get(lang, ""), "percent": self.percent}

    async def run(self, args, ctx):
        position, heading = await trips.whereabouts(ctx)
        if args.place:
            return await self._place(ctx, args, position, heading)
        if args.minutes is None:
            car, cabin = await charging.electric_car(ctx)
            return self.Result(outcome="charge", length_m=1000 * ev.reach_km(car, cabin), percent=round(100 * car.charge))
        try:
            far = ends(ctx.maps.isochrone(position, seconds=60 * args.minutes), position)
        except NotFound:
            far = []
        if not far:
            raise SkillError("not_found", "no road here", reason="no_way")
        streets = list(dict.fromkeys(street for street in map(ctx.maps.street, far) if street))
        outcome = ("minutes", "minutes_one", "minutes_two")[len(streets)]
        return self.Result(outcome=outcome, seconds=60 * args.minutes, length_m=metres(position, far[0]), streets=streets)

    async def _place(self, ctx: SkillContext, args, position: Point, heading: float | None):
        place = places.resolve(ctx, args.place, position)
        trip = Trip(place, prefer=tuple(ctx.memory.get("avoid") or ()))
        _, route = trips.planned(ctx, trip, position, heading)
        if args.minutes is not None:
            return self.Result(outcome="within" if route.time_s <= 60 * args.minutes else "beyond", seconds=route.time_s,
                               length_m=route.length_m, said=place["said"])
        car, cabin = await charging.electric_car(ctx)
        left = ev.charge_after(car, used(ctx, car, cabin, route))
        return self.Result(outcome="lasts" if left > 0 else "short", said=place["said"], seconds=route.time_s, length_m=route.length_m,
                           percent=max(0, round(100 * left)))


def used(ctx: SkillContext, car: ev.EvCar, cabin: float, route) -> float:
    """Wh of a way from these maps."""
    traffic = ctx.maps.traffic if route.delay_s is not None else None
    return ev.route_wh(car, route, ctx.maps.edges(route), cabin=cabin, elevation=ctx.maps.elevation, traffic=traffic)


class Ev(Skill):
    id = "navigation.ev"
    version = "1.0.0"
    summary = {"en": "Tell the battery's charge on arrival, or the best charger on the way with detour and charging time.",
               "zh": "告知到达时的剩余电量，或沿途最合适的充电站、绕路和充电时间。"}
    examples = {"en": [
        ("How much charge is left when we arrive?", {"what": "arrival"}), ("Will the battery last to the destination?", {"what": "arrival"}),
        ("Where can we charge on the way?", {"what": "charger"}), ("Which charger costs us the least time?", {"what": "charger"}),
    ], "zh": [
        ("到了还剩多少电？", {"what": "arrival"}), ("电量够到目的地吗？", {"what": "arrival"}), ("路上哪里可以充电？", {"what": "charger"}),
        ("去哪个充电站最省时间？", {"what": "charger"}),
    ]}
    effects = _EFFECTS
    timeout_s = 5.0
    wording = WORDING

    class Args(Args):
        what: Literal["arrival", "charger"]

    class Result(Result):
        said: dict[str, str] = Field(default_factory=dict)
        street: str = ""
        percent: int = 0
        target: int = 0
        detour_s: float = 0.0
        charging_s: float = 0.0
        power_kw: float = 0.0
        used_kwh: float = 0.0

        def spoken(self, lang: str) -> dict[str, Any]:
            return {"name": self.said.get(lang, ""), "street": self.street, "percent": self.percent, "target": self.target,
                    "detour": spoken.minutes(self.detour_s, lang), "charging": spoken.minutes(self.charging_s, lang),
                    "power": self.power_kw}

    async def run(self, args, ctx):
        trip = Trip.of(ctx.memory)
        if args.what == "arrival" and trip is None:
            return self.Result(outcome="none")
        position, heading = await trips.whereabouts(ctx)
        car, cabin = await charging.electric_car(ctx)
        needed = direct_s = 0.0
        if trip is not None:
            trip, route = trips.planned(ctx, trip, position, heading)
            needed, direct_s = used(ctx, car, cabin, route), route.time_s
        left = ev.charge_after(car, needed)
        if args.what == "arrival":
            outcome = "arrival" if left >= LOW else "arrival_low" if left > 0 else "arrival_short"
            return self.Result(outcome=outcome, said=trip.goal["said"], percent=max(0, round(100 * left)), used_kwh=round(needed / 1000, 3))
        goal = point_of(trip.goal) if trip is not None else None
        found = charging.choose(ctx, car, cabin, position, goal, direct_s, needed)
        best = found[0]
        ctx.memory["offers"] = [as_memory(c.place) for c in found[:3]]
        outcome = "charger" if trip is not None else "charger_here"
        if best.charging_min < 1:
            outcome = "charged"
        elif best.guessed:
            outcome += "_guessed"
        return self.Result(outcome=outcome, said=as_memory(best.place)["said"], street=best.place.street, percent=round(100 * best.arrives_with),
                           target=round(100 * best.leaves_with), detour_s=best.detour_s, charging_s=60 * best.charging_min,
                           power_kw=best.power_kw, used_kwh=round(needed / 1000, 3))


SKILLS = [Reach, Ev]
