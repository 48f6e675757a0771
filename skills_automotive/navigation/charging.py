"""The electric car as its signals tell it, and the choice of a charger: which costs the least time, with its detour and the charging itself."""
import asyncio
import re
from dataclasses import dataclass

from harness.host.errors import NotFound, Unavailable
from harness.host.providers import Place, Point
from harness.skill import SkillContext, SkillError
from skills_automotive.navigation import ev
from skills_automotive.navigation.geometry import metres

_B = "Vehicle.Powertrain.TractionBattery."
CHARGE, RANGE, CAPACITY, MAX_POWER = _B + "StateOfCharge.Displayed", _B + "Range", _B + "NetCapacity", _B + "Charging.MaxPower"
OUTSIDE, WANTED = "Vehicle.Exterior.AirTemperature", "Vehicle.Cabin.HVAC.Station.Row1.Driver.Temperature"
READS = (CHARGE, RANGE, CAPACITY, MAX_POWER, OUTSIDE, WANTED)
CANDIDATES, AROUND_M = 12, 15_000.0
ROUNDABOUT = 1.4
"""Roads are about this much longer than the straight line: for what is within reach at all."""
_POWER = re.compile(r"(\d+(?:[.,]\d+)?)\s*(kw|kva|w)?", re.IGNORECASE)
_BY_PLUG = {"socket:type2_combo": 50.0, "socket:chademo": 50.0, "socket:tesla_supercharger": 120.0}


async def electric_car(ctx: SkillContext) -> tuple[ev.EvCar, float]:
    """(the car, power of its air conditioning in W). Raises Unavailable when the charge or the battery's size can't be told."""
    found = dict(zip(READS, await asyncio.gather(*(_value(ctx, path) for path in READS))))
    charge, reach, capacity = found[CHARGE], found[RANGE], found[CAPACITY]
    if charge is None:
        raise Unavailable("the battery's charge is not known", reason="battery")
    charge = min(max(charge / 100, 0.0), 1.0)
    if not capacity and reach and charge > 0.05:
        capacity = reach / 1000 * ev.TYPICAL_KWH_PER_KM / charge
    if not capacity:
        raise Unavailable("the battery's size is not known", reason="battery")
    car = ev.EvCar(capacity_wh=capacity * 1000, charge=charge, **({"charge_kw": found[MAX_POWER] / 1000} if found[MAX_POWER] else {}))
    return car, ev.cabin_w(found[OUTSIDE], found[WANTED])


async def _value(ctx: SkillContext, path: str) -> float | None:
    try:
        value = (await ctx.vehicle.get(path))[path].value
    except (NotFound, KeyError):
        return None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def power_kw(place: Place) -> float | None:
    """A charger's power by its tags ("22 kW", "50000 W", or a plug that is fast by nature); None where they don't tell."""
    powers = []
    for key, value in place.tags.items():
        if key in ("power_kw", "maxpower") or key.endswith(":output") or key == "charging_station:output":
            for number, unit in _POWER.findall(str(value)):
                power = float(number.replace(",", "."))
                powers.append(power / 1000 if unit.lower() == "w" or power > 1000 else power)
    powers += [kw for plug, kw in _BY_PLUG.items() if str(place.tags.get(plug, "no")) not in ("no", "0")] if not powers else []
    return max((p for p in powers if 1 <= p <= 1000), default=None)


@dataclass(frozen=True)
class Charger:
    """A charger and what it costs. `power_kw` is a guess where `guessed`; charges are 0..1."""

    place: Place
    to_it_s: float
    detour_s: float
    charging_min: float
    power_kw: float
    guessed: bool
    arrives_with: float
    leaves_with: float


def choose(ctx: SkillContext, car: ev.EvCar, cabin: float, position: Point, goal: Point | None, direct_s: float, needed_wh: float) -> list[Charger]:
    """Chargers within reach, the one that costs the least time first. Without a goal the detour is the way there.

    It is charged to 80 %, or to what the goal needs with the reserve if that is more. Raises SkillError("not_found").
    """
    places = ctx.places.search(near=position, category="charging_station", limit=CANDIDATES, radius_m=AROUND_M)
    if goal is not None:
        ids = {place.id for place in places}
        near_goal = ctx.places.search(near=goal, category="charging_station", limit=CANDIDATES, radius_m=AROUND_M)
        places += [place for place in near_goal if place.id not in ids][:CANDIDATES // 2]
    there = ctx.maps.matrix(position, [place.point for place in places])
    onward = ctx.maps.matrix_to([place.point for place in places], goal) if goal is not None else [0.0] * len(places)
    per_m = ev.stretch_wh(car, "tertiary", 1000.0, 45.0, 0.0, cabin) / 1000
    found = []
    for place, to_it, on in zip(places, there, onward):
        if to_it is None or on is None:
            continue
        arrives = ev.charge_after(car, per_m * ROUNDABOUT * metres(position, place.point))
        if arrives <= 0:
            continue
        wanted = min(1.0, max(ev.GOAL_CHARGE, needed_wh / car.capacity_wh + ev.RESERVE))
        power = power_kw(place)
        minutes = ev.charging_minutes(car, arrives, max(wanted, arrives), power or ev.GUESSED_KW)
        detour = to_it + on - direct_s if goal is not None else to_it
        found.append(Charger(place, to_it, max(detour, 0.0), minutes, power or ev.GUESSED_KW, power is None, arrives, max(wanted, arrives)))
    if not found:
        raise SkillError("not_found", "no charger within reach", reason="charger", query="charging station")
    return sorted(found, key=lambda c: c.detour_s + 60 * c.charging_min)
