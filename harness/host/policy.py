"""The voice safety policy: one table of what may be actuated by voice, and one pure function that decides.

Default deny: a path that no rule names is refused. Classes:

    free             at any time, within its range
    zoned            the speaker's own seat; the driver may do all, the front passenger not the driver's
    moving_limit     above a speed only up to a limit, or after a confirmation
    parked_only      only with fresh Speed = 0 and the park lock in; opening also needs a confirmation
    off_when_moving  what keeps the driver seeing and seen: never switched off while moving
    never            driving itself; refused with a fixed sentence

A missing Speed or park lock, or one older than STALE_S, counts as moving. Sources: FMVSS 118 S4 (power windows), UN R21
5.8, the NHTSA guidelines of 2013, and the draft of GB 4094 of 2026 (lights by voice); see the project's research notes.
"""

import fnmatch
import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Mapping

from harness.host.paths import STOP, expand, mover

SPEED = "Vehicle.Speed"
IS_MOVING = "Vehicle.IsMoving"
PARK_LOCK = "Vehicle.Powertrain.Transmission.IsParkLockEngaged"
DRIVER_POSITION = "Vehicle.Cabin.DriverPosition"
LIGHT = "Vehicle.Exterior.LightIntensity"
WINDOW_CHILD_LOCK = "Vehicle.Cabin.IsWindowChildLockEngaged"
DOOR_CHILD_LOCKS = tuple(expand("Vehicle.Cabin.Door.Row2.{DriverSide,PassengerSide}.IsChildLockActive"))
STATE_PATHS = (SPEED, IS_MOVING, PARK_LOCK, DRIVER_POSITION, LIGHT, WINDOW_CHILD_LOCK, *DOOR_CHILD_LOCKS)
"""What the host reads right before it decides."""

STALE_S = 1.0
DARK_PERCENT = 20.0
ZONES = ("driver", "passenger", "rear_left", "rear_right", "unknown")


class Class(StrEnum):
    FREE = "free"
    ZONED = "zoned"
    MOVING_LIMIT = "moving_limit"
    PARKED_ONLY = "parked_only"
    OFF_WHEN_MOVING = "off_when_moving"
    NEVER = "never"


@dataclass(frozen=True)
class Reading:
    """A value of the vehicle's state and when it was true, on the caller's monotonic clock (s)."""

    value: Any
    at: float


@dataclass(frozen=True)
class Rule:
    """What may be done to a family of paths (braces expand). Ranges are tighter than VSS, which leaves many open."""

    pattern: str
    cls: Class
    kind: str = "bool"
    """bool | number | choice | text"""
    low: float = 0.0
    high: float = 100.0
    step: float = 1.0
    choices: tuple[str, ...] = ()
    who: str = "anyone"
    """anyone | front | driver: who may, where the path belongs to no seat."""
    limit_kmh: float = 0.0
    """moving_limit and zoned: above this speed a value beyond `up_to`, or in `guarded`, needs a confirmation."""
    up_to: float | None = None
    guarded: tuple = ()
    """The values the class is about (opening, unlocking, switching off); empty means all."""
    confirm: tuple = ()
    """Values that need a confirmation even when parked."""
    moving_high: float | None = None
    """The largest value while moving (volume)."""
    confirm_dark: bool = False


_SEATS = "Row{1,2}.{DriverSide,PassengerSide}"
_LID_SWITCH = ("INACTIVE", "CLOSE", "OPEN", "ONE_SHOT_CLOSE", "ONE_SHOT_OPEN")
_OPENING = ("OPEN", "ONE_SHOT_OPEN")


def _lid(branch: str) -> tuple[Rule, ...]:
    """Tailgate, frunk, hood: never moved by voice unless parked; opening is confirmed."""
    common = {"cls": Class.PARKED_ONLY, "who": "front"}
    return (
        Rule(f"{branch}.IsOpen", confirm=(True,), **common),
        Rule(f"{branch}.Position", kind="number", confirm=tuple(range(1, 101)), **common),
        Rule(f"{branch}.Switch", kind="choice", choices=_LID_SWITCH, confirm=_OPENING, **common),
    )


def _pane(branch: str, cls: Class, **more) -> tuple[Rule, ...]:
    """Windows and shades."""
    return (
        Rule(f"{branch}.Position", cls, "number", **more, **({"up_to": 20} if "limit_kmh" in more else {})),
        Rule(f"{branch}.IsOpen", cls, guarded=(True,), **more),
        Rule(f"{branch}.Switch", cls, "choice", choices=_LID_SWITCH, guarded=_OPENING, **more),
    )


POLICY: tuple[Rule, ...] = (
    # climate
    Rule("Vehicle.Cabin.HVAC.Station.Row1.{Driver,Passenger}.Temperature", Class.FREE, "number", low=16, high=30, step=0.5),
    Rule("Vehicle.Cabin.HVAC.Station.Row1.{Driver,Passenger}.FanSpeed", Class.FREE, "number"),
    Rule("Vehicle.Cabin.HVAC.Station.Row1.{Driver,Passenger}.AirDistribution", Class.FREE, "choice", choices=("UP", "MIDDLE", "DOWN")),
    Rule("Vehicle.Cabin.HVAC.Station.Row2.{Driver,Passenger}.Temperature", Class.ZONED, "number", low=16, high=30, step=0.5),
    Rule("Vehicle.Cabin.HVAC.Station.Row2.{Driver,Passenger}.FanSpeed", Class.ZONED, "number"),
    Rule("Vehicle.Cabin.HVAC.Station.Row2.{Driver,Passenger}.AirDistribution", Class.ZONED, "choice", choices=("UP", "MIDDLE", "DOWN")),
    Rule("Vehicle.Cabin.HVAC.{IsAirConditioningActive,IsRecirculationActive}", Class.FREE),
    Rule("Vehicle.Cabin.HVAC.{IsFrontDefrosterActive,IsRearDefrosterActive}", Class.OFF_WHEN_MOVING, guarded=(False,)),
    Rule(f"Vehicle.Cabin.Seat.{_SEATS}.HeatingCooling", Class.FREE, "number", low=-100),
    Rule("Vehicle.Cabin.Seat.Row1.{DriverSide,PassengerSide}.Massage.Level", Class.FREE, "number"),
    Rule("Vehicle.Body.Mirrors.{DriverSide,PassengerSide}.IsHeatingOn", Class.FREE, who="front"),
    # light inside
    Rule(f"Vehicle.Cabin.Light.{{AmbientLight,Spotlight}}.{_SEATS}.IsLightOn", Class.FREE),
    Rule(f"Vehicle.Cabin.Light.{{AmbientLight,Spotlight}}.{_SEATS}.Intensity", Class.FREE, "number", low=1),
    Rule(f"Vehicle.Cabin.Light.AmbientLight.{_SEATS}.Color", Class.FREE, "text"),
    Rule("Vehicle.Cabin.Light.IsDomeOn", Class.FREE),
    # media and navigation
    Rule("Vehicle.Cabin.Infotainment.Media.Volume", Class.FREE, "number", moving_high=80),
    Rule("Vehicle.Cabin.Infotainment.Media.Action", Class.FREE, "choice",
         choices=("STOP", "PLAY", "FAST_FORWARD", "FAST_BACKWARD", "SKIP_FORWARD", "SKIP_BACKWARD")),
    Rule("Vehicle.Cabin.Infotainment.Navigation.Volume", Class.FREE, "number", moving_high=80),
    Rule("Vehicle.Cabin.Infotainment.Navigation.Mute", Class.FREE, "choice", choices=("MUTED", "ALERT_ONLY", "UNMUTED")),
    Rule("Vehicle.Cabin.Infotainment.Navigation.DestinationSet.Latitude", Class.FREE, "number", low=-90, high=90, step=0),
    Rule("Vehicle.Cabin.Infotainment.Navigation.DestinationSet.Longitude", Class.FREE, "number", low=-180, high=180, step=0),
    Rule("Vehicle.Cabin.Infotainment.HMI.DayNightMode", Class.FREE, "choice", choices=("DAY", "NIGHT"), who="front"),
    Rule("Vehicle.Powertrain.TractionBattery.Charging.ChargeLimit", Class.FREE, "number", low=50, who="front"),
    # panes
    *_pane(f"Vehicle.Cabin.Door.{_SEATS}.Window", Class.ZONED, limit_kmh=120),
    *_pane(f"Vehicle.Cabin.Door.{_SEATS}.Shade", Class.ZONED),
    *_pane("Vehicle.Cabin.Sunroof.Shade", Class.FREE, who="front"),
    Rule("Vehicle.Cabin.Sunroof.Switch", Class.MOVING_LIMIT, "choice", choices=(*_LID_SWITCH, "TILT_UP", "TILT_DOWN"),
         who="front", limit_kmh=120, guarded=_OPENING),
    # moving limit
    Rule("Vehicle.Cabin.Seat.Row1.PassengerSide.Backrest.Recline", Class.MOVING_LIMIT, "number", low=-10, high=60, up_to=30),
    Rule("Vehicle.Cabin.IsWindowChildLockEngaged", Class.MOVING_LIMIT, who="driver", guarded=(False,)),
    # parked only
    *_lid("Vehicle.Body.Trunk.Rear"), *_lid("Vehicle.Body.Trunk.Front"), *_lid("Vehicle.Body.Hood"),
    Rule(f"Vehicle.Cabin.Door.{_SEATS}.IsOpen", Class.PARKED_ONLY, confirm=(True,)),
    Rule(f"Vehicle.Cabin.Door.{_SEATS}.IsLocked", Class.PARKED_ONLY, guarded=(False,), who="front"),
    Rule("Vehicle.Body.Trunk.{Rear,Front}.IsLocked", Class.PARKED_ONLY, guarded=(False,), who="front"),
    Rule("Vehicle.Powertrain.TractionBattery.Charging.ChargingPort.AnyPosition.IsFlapOpen", Class.PARKED_ONLY, guarded=(True,), who="front"),
    Rule("Vehicle.Cabin.Seat.Row1.DriverSide.Position", Class.PARKED_ONLY, "number", high=1000),
    Rule("Vehicle.Cabin.Seat.Row1.DriverSide.Backrest.Recline", Class.PARKED_ONLY, "number", low=-10, high=60),
    Rule("Vehicle.Body.Mirrors.{DriverSide,PassengerSide}.IsFolded", Class.PARKED_ONLY, guarded=(True,), who="driver"),
    # see and be seen
    Rule("Vehicle.Body.Lights.Beam.Low.IsOn", Class.OFF_WHEN_MOVING, who="driver", guarded=(False,), confirm_dark=True),
    Rule("Vehicle.Body.Lights.Fog.{Front,Rear}.IsOn", Class.OFF_WHEN_MOVING, who="driver", guarded=(False,), confirm_dark=True),
    Rule("Vehicle.Body.Lights.LightSwitch", Class.OFF_WHEN_MOVING, "choice", who="driver", confirm_dark=True,
         choices=("OFF", "POSITION", "DAYTIME_RUNNING_LIGHTS", "AUTO", "BEAM"), guarded=("OFF", "POSITION", "DAYTIME_RUNNING_LIGHTS")),
    Rule("Vehicle.Body.Lights.Hazard.IsSignaling", Class.OFF_WHEN_MOVING, who="front", guarded=(False,)),
    Rule("Vehicle.Body.Windshield.Front.Wiping.Mode", Class.OFF_WHEN_MOVING, "choice", who="front",
         choices=("OFF", "SLOW", "MEDIUM", "FAST", "INTERVAL", "RAIN_SENSOR"), guarded=("OFF",)),
)  # fmt: skip

NEVER = (
    "Vehicle.ADAS.*", "Vehicle.MotionManagement.*", "Vehicle.Powertrain.*", "Vehicle.Chassis.*", "Vehicle.Body.Horn.*",
    "*Airbag*", "Vehicle.Body.Lights.DirectionIndicator.*", "Vehicle.Body.Lights.Brake.*", "Vehicle.Body.Lights.Backup.*",
)  # fmt: skip
"""Refused whatever the state, with the reason "never"; what no rule names is refused as "not_listed"."""

READABLE = (
    "Vehicle.Speed", "Vehicle.IsMoving", "Vehicle.CurrentLocation.*", "Vehicle.Powertrain.*", "Vehicle.Cabin.*",
    "Vehicle.Body.*", "Vehicle.Exterior.*", "Vehicle.Chassis.ParkingBrake.*", "Vehicle.Chassis.Axle.*.Tire.*",
    "Vehicle.LowVoltageSystemState", "Vehicle.TraveledDistance",
)  # fmt: skip
"""What the cloud may read: nothing that identifies the car or the people in it."""


@dataclass(frozen=True)
class Allow:
    """It may be actuated now."""


@dataclass(frozen=True)
class Refuse:
    """It may not: an error code of harness.host.errors, a reason word for the wording, and what else it needs."""

    code: str
    reason: str
    data: dict = field(default_factory=dict)


Decision = Allow | Refuse

_TABLE: dict[str, Rule] = {path: rule for rule in POLICY for path in expand(rule.pattern)}


def allowed_paths() -> list[str]:
    """Every path that a rule names."""
    return sorted(_TABLE)


def rule_for(path: str) -> Rule | None:
    return _TABLE.get(path)


def may_read(path: str) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in READABLE)


def _fresh(state: Mapping[str, Reading], path: str, now: float) -> Any:
    """The value if it is there and at most STALE_S old, else None. A time in the future is as bad as an old one."""
    reading = state.get(path)
    if reading is None or not -STALE_S <= now - reading.at <= STALE_S:
        return None
    return reading.value


def _known(state: Mapping[str, Reading], path: str) -> Any:
    reading = state.get(path)
    return None if reading is None else reading.value


def speed_now(state: Mapping[str, Reading], now: float) -> float | None:
    """km/h, or None when it isn't known now."""
    speed = _fresh(state, SPEED, now)
    if isinstance(speed, bool) or not isinstance(speed, (int, float)) or not math.isfinite(speed):
        return None
    return abs(speed)


def motion(state: Mapping[str, Reading], now: float) -> str:
    """parked (still and locked in P), stopped (still), moving, fast (above 120 km/h) or unknown, which counts as moving."""
    speed = speed_now(state, now)
    if speed is None:
        return "unknown"
    if speed > 120:
        return "fast"
    if speed > 0 or _fresh(state, IS_MOVING, now) is True:
        return "moving"
    lock = _fresh(state, PARK_LOCK, now)
    if lock is None:
        return "unknown"
    return "parked" if lock is True else "stopped"


def owner(path: str, driver_position: str | None) -> str | None:
    """The zone that a path belongs to: driver, passenger, rear_left, rear_right; None where it belongs to no seat."""
    parts = path.split(".")
    for row, side in zip(parts, parts[1:]):
        if row not in ("Row1", "Row2"):
            continue
        if side in ("Driver", "DriverSide", "Passenger", "PassengerSide"):
            own = side.startswith("Driver")
            if row == "Row1":
                return "driver" if own else "passenger"
            return "rear_left" if own != (driver_position == "RIGHT") else "rear_right"
    return None


def _check_value(rule: Rule, path: str, value: Any) -> Refuse | None:
    name = path.rpartition(".")[2]
    if rule.kind == "bool":
        ok, allowed = isinstance(value, bool), {"allowed": [False, True]}
    elif rule.kind == "choice":
        ok, allowed = isinstance(value, str) and value in rule.choices, {"allowed": list(rule.choices)}
    elif rule.kind == "text":
        ok, allowed = isinstance(value, str) and 0 < len(value) <= 32, {"allowed": "a text of 1..32 characters"}
    else:
        ok = isinstance(value, (int, float)) and not isinstance(value, bool) and rule.low <= value <= rule.high
        if ok and rule.step:
            steps = (value - rule.low) / rule.step
            ok = abs(steps - round(steps)) < 1e-6
        allowed = {"low": rule.low, "high": rule.high, "step": rule.step}
    return None if ok else Refuse("invalid_args", "value", {"field": name, **allowed})


def _check_zone(rule: Rule, path: str, zone: str, state: Mapping[str, Reading]) -> Refuse | None:
    whose = owner(path, _known(state, DRIVER_POSITION))
    if zone == "driver":
        return None
    if whose is not None:
        may = zone == whose or (zone == "passenger" and whose != "driver")
        if rule.who != "anyone":
            may = may and zone == "passenger" and rule.who == "front"
    else:
        may = rule.who == "anyone" or (rule.who == "front" and zone == "passenger")
    if not may:
        return Refuse("not_permitted", "zone", {"zone": zone, "owner": whose or "driver"})
    if zone.startswith("rear") and whose == zone and ".Door." in path:
        door = path[: path.index(".Door.")] + ".Door." + ".".join(path.split(".Door.")[1].split(".")[:2])
        if _known(state, WINDOW_CHILD_LOCK) is True or _known(state, f"{door}.IsChildLockActive") is True:
            return Refuse("not_permitted", "child_lock", {"zone": zone})
    return None


def _not_parked(now_is: str, state: Mapping[str, Reading], now: float) -> Refuse:
    speed = speed_now(state, now)
    if now_is == "unknown":
        return Refuse("unsafe_now", "state_unknown")
    if now_is == "stopped":
        return Refuse("unsafe_now", "not_in_park", {"speed": 0})
    return Refuse("unsafe_now", "moving", {"speed": max(1, round(speed or 0))})


def _confirmation(reason: str, path: str, value: Any) -> Refuse:
    return Refuse("needs_confirmation", reason, {"path": path, "value": value})


def decide(path: str, value: Any, zone: str, state: Mapping[str, Reading], now: float, confirmed: bool = False) -> Decision:
    """Whether `value` may be set at `path` for a speaker in `zone`, in this vehicle state, at this moment.

    Pure: the same arguments always give the same answer. `state` holds readings of STATE_PATHS, `now` is on their clock.
    A confirmation never overrides a refusal; it only answers "needs_confirmation".
    """
    rule = _TABLE.get(path)
    if rule is None or rule.cls is Class.NEVER:
        never = any(fnmatch.fnmatchcase(path, pattern) for pattern in NEVER)
        return Refuse("not_permitted", "never" if never or rule else "not_listed", {"path": path})
    if refusal := _check_value(rule, path, value):
        return refusal
    if value == STOP and rule.kind == "choice" and mover(path):
        return Allow()  # halting a motion is always right
    if refusal := _check_zone(rule, path, zone, state):
        return refusal
    now_is = motion(state, now)
    guarded = value in rule.guarded if rule.guarded else True
    if rule.cls is Class.PARKED_ONLY and guarded and now_is != "parked":
        return _not_parked(now_is, state, now)
    if rule.cls is Class.OFF_WHEN_MOVING and guarded:
        if now_is not in ("parked", "stopped"):
            return _not_parked(now_is, state, now)
        light = _fresh(state, LIGHT, now)
        if rule.confirm_dark and (light is None or light < DARK_PERCENT) and not confirmed:
            return _confirmation("dark", path, value)
    if rule.moving_high is not None and now_is not in ("parked", "stopped") and value > rule.moving_high:
        return Refuse("invalid_args", "moving_limit", {"field": path.rpartition(".")[2], "low": rule.low, "high": rule.moving_high, "step": rule.step})
    limited = rule.cls is Class.MOVING_LIMIT or rule.limit_kmh
    if limited and (value > rule.up_to if rule.up_to is not None else guarded) and not confirmed:
        speed = speed_now(state, now)
        if speed is None or now_is == "unknown" or speed > rule.limit_kmh:
            return _confirmation("moving", path, value)
    if value in rule.confirm and not confirmed:
        return _confirmation("opening", path, value)
    return Allow()
