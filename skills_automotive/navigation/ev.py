"""What an electric car uses on a way: by speed, class of road, grade, traffic and air conditioning; how far a charge goes; charging time.

    force = rolling * m * g + 0.5 * rho * drag * v^2            (N)
    stretch = (force * d + m * g * climb) / drive_efficiency    when that is positive, times `recovery` when it is negative   (J)
    stops   = stops_per_km * km * 0.5 * m * v^2 * (1 / drive_efficiency - recovery)
    time    = (aux + cabin) * t

The defaults are those of a middle-sized car; what the car itself tells goes before them.
"""
from dataclasses import dataclass

from harness.host.providers import Edge, Elevation, Point, Route

G, AIR_KG_M3 = 9.81, 1.2
STOPS_PER_KM = {"motorway": 0.0, "trunk": 0.1, "primary": 0.6, "secondary": 0.8, "tertiary": 1.0, "unclassified": 1.2, "residential": 2.0,
                "service_other": 2.0}
"""How often one brakes to a stop and starts again; estimates."""
TYPICAL_KWH_PER_KM = 0.18
"""For the battery's size where the car tells only its charge and its range."""
MIXED = (("tertiary", 45.0, 0.4), ("primary", 70.0, 0.3), ("motorway", 110.0, 0.3))
"""(class, km/h, share of the way) of an ordinary day: for "how far does the charge last"."""
RESERVE = 0.1
"""This part of the battery is left alone when reach and charging are told."""
KNEE, TAPER = 0.8, 0.5
"""Above this charge, charging goes at this part of its power."""
GOAL_CHARGE = 0.8
GUESSED_KW = 11.0
"""The power of a charger that does not tell it."""
_CABIN_W_PER_K, _CABIN_MAX_W, _COMFORT_K, _FAN_W = 130.0, 4000.0, 3.0, 150.0


@dataclass(frozen=True)
class EvCar:
    """An electric car. `drag_m2`: drag coefficient times frontal area; `recovery`: part of braking energy that comes back."""

    capacity_wh: float
    charge: float
    """0..1 of the capacity."""
    mass_kg: float = 1900.0
    drag_m2: float = 0.62
    rolling: float = 0.010
    drive_efficiency: float = 0.88
    recovery: float = 0.6
    aux_w: float = 350.0
    charge_kw: float = 100.0
    """What the car takes at most."""

    @property
    def left_wh(self) -> float:
        return self.capacity_wh * self.charge

    @property
    def usable_wh(self) -> float:
        return max(0.0, self.left_wh - RESERVE * self.capacity_wh)


def cabin_w(outside_c: float | None, wanted_c: float | None) -> float:
    """Power of heating or cooling: 130 W for each degree beyond 3 from the wanted temperature, at most 4 kW; a fan always runs."""
    if outside_c is None or wanted_c is None:
        return _FAN_W
    return min(_CABIN_MAX_W, _FAN_W + _CABIN_W_PER_K * max(0.0, abs(outside_c - wanted_c) - _COMFORT_K))


def stretch_wh(car: EvCar, road_class: str, metres: float, kmh: float, climb_m: float = 0.0, cabin: float = 0.0,
               slower: float = 1.0) -> float:
    """Wh for one stretch; negative where going down charges more than it takes. `slower`: traffic's factor on the time."""
    if metres <= 0 or kmh <= 0:
        return 0.0
    v = kmh / 3.6 / max(slower, 0.1)
    force = car.rolling * car.mass_kg * G + 0.5 * AIR_KG_M3 * car.drag_m2 * v * v
    work = force * metres + car.mass_kg * G * climb_m
    joules = work / car.drive_efficiency if work >= 0 else work * car.recovery
    stops = STOPS_PER_KM.get(road_class, 1.0) * metres / 1000
    joules += stops * 0.5 * car.mass_kg * v * v * (1 / car.drive_efficiency - car.recovery)
    joules += (car.aux_w + cabin) * metres / v
    return joules / 3600


def route_wh(car: EvCar, route: Route, edges: tuple[Edge, ...], *, cabin: float = 0.0, elevation: Elevation | None = None,
             traffic=None) -> float:
    """Wh for a whole way; flat where no height is known."""
    total = 0.0
    for edge in edges:
        climb = _climb(route, edge, elevation)
        slower = (traffic.factor(edge) if traffic is not None else None) or 1.0
        total += stretch_wh(car, edge.road_class, edge.length_m, edge.speed_kmh, climb, cabin, slower)
    return total


def _climb(route: Route, edge: Edge, elevation: Elevation | None) -> float:
    if elevation is None:
        return 0.0
    ends = [elevation.height_m(Point(*route.shape[i])) for i in (edge.begin, min(edge.end, len(route.shape) - 1))]
    return 0.0 if None in ends else ends[1] - ends[0]


def reach_km(car: EvCar, cabin: float = 0.0) -> float:
    """How far the charge lasts on an ordinary day's roads, down to the reserve."""
    per_km = sum(share * stretch_wh(car, road, 1000.0, kmh, 0.0, cabin) for road, kmh, share in MIXED)
    return car.usable_wh / per_km


def charge_after(car: EvCar, used_wh: float) -> float:
    """The charge (0..1) after using so much; below 0: it would not have lasted."""
    return min(1.0, car.charge - used_wh / car.capacity_wh)


def charging_minutes(car: EvCar, begin: float, to: float, station_kw: float) -> float:
    """Minutes from one charge (0..1) to another: full power up to 80 %, half of it above."""
    power_w = min(car.charge_kw, station_kw) * 1000
    begin = max(begin, 0.0)
    fast = max(0.0, min(to, KNEE) - begin) * car.capacity_wh
    slow = max(0.0, to - max(begin, KNEE)) * car.capacity_wh
    return 60 * (fast / power_w + slow / (power_w * TAPER))
