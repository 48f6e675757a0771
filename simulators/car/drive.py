"""The simulated drive: a speed profile over time, and the car following it along a line on the map.

A drive file is JSON or YAML (or the JSON itself):

    profile: [[0, 0], [10, 50], [60, 50], [70, 0]]   # [s, km/h], linear between; the last speed holds
    start: [43.7316, 7.4163]                         # [lat, lon] of the car, where there is no shape
    shape: [[43.7316, 7.4163], [43.7340, 7.4210]]    # the way; at its end the car stays there
    begin: ready                                     # ready: time 0 is the start; signal: when SIGUSR1 arrives
    initial: {Vehicle.Exterior.AirTemperature: 18.5} # start values by VSS path
    faults: {Vehicle.Body.Trunk.Rear.IsOpen: jam}    # none | jam | no_provider | slow
"""

import asyncio
import bisect
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError, field_validator

from simulators.car import vss
from simulators.car.signals_store import SignalStore
from venus_edge.clock import Clock
from venus_edge.errors import ConfigError

TICK_S = 0.1
PLACE_D_ARMES = (43.7316, 7.4163)
"""Monaco: where the default drive is parked."""
BATTERY_KWH = 60.0
USE_KWH_PER_KM = 0.18
EARTH_M = 6_371_008.8

_T = "Vehicle.Powertrain.Transmission."
STATE = {
    "Vehicle.Speed", "Vehicle.IsMoving", _T + "CurrentGear", _T + "SelectedGear", _T + "IsParkLockEngaged",
    "Vehicle.Exterior.LightIntensity",
}  # fmt: skip
"""Published every tick, changed or not: an old value means that nobody knows, and the safety policy goes by it."""

CONSTANT = {
    "Vehicle.Exterior.AirTemperature": 21.0, "Vehicle.Exterior.LightIntensity": 80.0, "Vehicle.Cabin.DriverPosition": "LEFT",
    "Vehicle.LowVoltageSystemState": "ON", "Vehicle.Cabin.HVAC.AmbientAirTemperature": 20.0,
    "Vehicle.Powertrain.TractionBattery.StateOfCharge.Displayed": 64.0,
    "Vehicle.Powertrain.TractionBattery.Charging.IsCharging": False,
} | {f"Vehicle.Cabin.Door.Row{row}.{side}.{leaf}": False
     for row in (1, 2) for side in ("DriverSide", "PassengerSide") for leaf in ("IsOpen", "IsChildLockActive")} | {
    "Vehicle.Body.Hood.IsOpen": False, "Vehicle.Body.Trunk.Front.IsOpen": False,
    "Vehicle.Cabin.Seat.Row1.DriverSide.OccupancyStatus": "OCCUPIED", "Vehicle.Cabin.Seat.Row1.DriverSide.IsBelted": True,
}  # fmt: skip


class DriveFile(BaseModel, extra="forbid"):
    """What a drive file may say."""

    profile: list[tuple[float, float]] = Field(default=[(0.0, 0.0)], min_length=1, max_length=10_000)
    start: tuple[float, float] = PLACE_D_ARMES
    heading: float = Field(default=90.0, ge=0, le=360)
    """Degrees from north while there is no shape."""
    shape: list[tuple[float, float]] = Field(default_factory=list, max_length=100_000)
    begin: Literal["ready", "signal"] = "ready"
    initial: dict[str, Any] = Field(default_factory=dict)
    faults: dict[str, Literal["none", "jam", "no_provider", "slow"]] = Field(default_factory=dict)

    @field_validator("profile")
    @classmethod
    def _profile(cls, profile):
        for (t0, _), (t1, _) in zip(profile, profile[1:]):
            if t1 <= t0:
                raise ValueError(f"times must rise: {t1:g} s comes after {t0:g} s")
        if any(not (math.isfinite(t) and t >= 0 and 0 <= v <= 250) for t, v in profile):
            raise ValueError("needs [seconds from 0, 0..250 km/h] pairs")
        return profile

    @field_validator("start", "shape")
    @classmethod
    def _points(cls, value):
        for lat, lon in value if isinstance(value, list) else [value]:
            if not (-90 <= lat <= 90 and -180 <= lon <= 180):
                raise ValueError(f"[{lat}, {lon}] is no [lat, lon]: -90..90 and -180..180")
        return value

    @field_validator("initial")
    @classmethod
    def _initial(cls, initial):
        specs = vss.load()
        for path, value in initial.items():
            if path not in specs:
                raise ValueError(f"{path} is no VSS 6.0 signal")
            if why := vss.check(specs[path], value):
                raise ValueError(why)
        return initial


def read_drive(text: str, variable: str = "VENUS_DRIVE") -> DriveFile:
    """The drive of a file's path or of inline JSON; "" is the default, parked. Raises ConfigError naming the field."""
    if not text.strip():
        return DriveFile()
    source = variable
    if not text.lstrip().startswith("{"):
        source = f"{variable}: {text}"
        try:
            text = Path(text).read_text(encoding="utf-8")
        except (OSError, ValueError) as err:
            raise ConfigError(f"{source} can't be read: {getattr(err, 'strerror', None) or err}") from None
    try:
        if source.endswith((".yaml", ".yml")):
            import yaml  # only drives in YAML need it

            try:
                data = yaml.safe_load(text)
            except yaml.YAMLError as err:
                raise ConfigError(f"{source} is not YAML: {' '.join(str(err).split())}") from None
        else:
            data = json.loads(text)
        return DriveFile.model_validate(data)
    except json.JSONDecodeError as err:
        raise ConfigError(f"{source} is not JSON: {err}") from None
    except ValidationError as err:
        first = err.errors()[0]
        raise ConfigError(f"{source}: {'.'.join(map(str, first['loc'])) or 'drive'}: {first['msg']}; fields: {', '.join(DriveFile.model_fields)}") from None


def _metres(a: tuple[float, float], b: tuple[float, float]) -> float:
    (lat1, lon1), (lat2, lon2) = ((math.radians(x), math.radians(y)) for x, y in (a, b))
    h = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH_M * math.asin(math.sqrt(h))


def _bearing(a: tuple[float, float], b: tuple[float, float]) -> float:
    (lat1, lon1), (lat2, lon2) = ((math.radians(x), math.radians(y)) for x, y in (a, b))
    y = math.sin(lon2 - lon1) * math.cos(lat2)
    x = math.cos(lat1) * math.sin(lat2) - math.sin(lat1) * math.cos(lat2) * math.cos(lon2 - lon1)
    return math.degrees(math.atan2(y, x)) % 360


@dataclass(frozen=True)
class State:
    """The car at one moment: km/h, metres driven, degrees."""

    speed: float
    driven_m: float
    lat: float
    lon: float
    heading: float
    parked: bool


class Drive:
    """The car's state as a function of the time since the drive began; holds nothing that changes."""

    def __init__(self, file: DriveFile):
        self.file = file
        self._times = [t for t, _ in file.profile]
        self._speeds = [v for _, v in file.profile]
        self._driven = [self._speeds[0] / 3.6 * self._times[0]]
        for i in range(1, len(self._times)):
            mean = (self._speeds[i] + self._speeds[i - 1]) / 2 / 3.6
            self._driven.append(self._driven[-1] + mean * (self._times[i] - self._times[i - 1]))
        moving = [i for i, v in enumerate(self._speeds) if v > 0]
        self._first = self._times[max(moving[0] - 1, 0)] if moving else math.inf
        if moving and (moving[0] == 0 or self._times[0] > 0 and self._speeds[0] > 0):
            self._first = 0.0
        last = moving[-1] if moving else -1
        self._last = math.inf if moving and last == len(self._speeds) - 1 else (self._times[last + 1] if moving else 0.0)
        shape = file.shape or [file.start]
        self._shape = [p for i, p in enumerate(shape) if i == 0 or p != shape[i - 1]]
        self._along = [0.0]
        for a, b in zip(self._shape, self._shape[1:]):
            self._along.append(self._along[-1] + _metres(a, b))

    def _speed_and_way(self, t: float) -> tuple[float, float]:
        times, speeds = self._times, self._speeds
        if t <= times[0]:
            return speeds[0], speeds[0] / 3.6 * max(t, 0.0)
        if t >= times[-1]:
            return speeds[-1], self._driven[-1] + speeds[-1] / 3.6 * (t - times[-1])
        i = bisect.bisect_right(times, t) - 1
        speed = speeds[i] + (speeds[i + 1] - speeds[i]) * (t - times[i]) / (times[i + 1] - times[i])
        return speed, self._driven[i] + (speeds[i] + speed) / 2 / 3.6 * (t - times[i])

    def at(self, t: float) -> State:
        """The state `t` seconds after the beginning. P is in before the first motion and after the last."""
        speed, driven = self._speed_and_way(t)
        shape, along = self._shape, self._along
        if len(shape) == 1:
            (lat, lon), heading = shape[0], self.file.heading
        else:
            way = min(driven, along[-1])
            i = min(bisect.bisect_right(along, way) - 1, len(shape) - 2)
            part = (way - along[i]) / (along[i + 1] - along[i])
            lat, lon = (a + (b - a) * part for a, b in zip(shape[i], shape[i + 1]))
            heading = _bearing(shape[i], shape[i + 1])
        return State(speed, driven, lat, lon, heading, speed == 0 and not self._first < t < self._last)


class DrivePublisher:
    """Publishes the drive into the store at 10 Hz; what isn't safety state only when it changed."""

    def __init__(self, store: SignalStore, drive: Drive, clock: Clock | None = None):
        self.store, self.drive, self.clock = store, drive, clock or store.clock
        self.begun = asyncio.Event()
        self._last: dict[str, Any] = {}
        self._constant = CONSTANT | drive.file.initial
        self._soc = float(self._constant["Vehicle.Powertrain.TractionBattery.StateOfCharge.Displayed"])

    def begin(self) -> None:
        """Let the drive's time run."""
        self.begun.set()

    def signals(self, t: float) -> dict[str, Any]:
        """Every signal of the drive at `t`."""
        now = self.drive.at(t)
        soc = max(0.0, self._soc - now.driven_m / 1000 * USE_KWH_PER_KM / BATTERY_KWH * 100)
        reach_m = int(soc / 100 * BATTERY_KWH / USE_KWH_PER_KM * 1000)
        return {
            "Vehicle.Speed": round(now.speed, 2), "Vehicle.IsMoving": now.speed > 0,
            _T + "CurrentGear": 0 if now.parked else 1, _T + "SelectedGear": 126 if now.parked else 127,
            _T + "IsParkLockEngaged": now.parked,
            "Vehicle.CurrentLocation.Latitude": round(now.lat, 7), "Vehicle.CurrentLocation.Longitude": round(now.lon, 7),
            "Vehicle.CurrentLocation.Heading": round(now.heading, 1),
            "Vehicle.Powertrain.TractionBattery.StateOfCharge.Displayed": round(soc, 2),
            "Vehicle.Powertrain.Range": reach_m // 100 * 100, "Vehicle.Powertrain.TractionBattery.Range": reach_m // 100 * 100,
            "Vehicle.Exterior.LightIntensity": self._constant["Vehicle.Exterior.LightIntensity"],
        }  # fmt: skip

    def publish(self, t: float) -> None:
        for path, value in self.signals(t).items():
            if path in STATE or self._last.get(path) != value:
                self._last[path] = value
                self.store.publish(path, value)

    def start(self) -> None:
        """Publish the constants and time 0."""
        for path, value in CONSTANT.items():
            self.store.publish(path, value)
        self.publish(0.0)

    async def run(self) -> None:
        """Publish for ever: time 0 until `begin`, then the drive, at absolute ticks so that lateness doesn't add up."""
        began, tick = None, self.clock.now()
        while True:
            if began is None and self.begun.is_set():
                began = self.clock.now()
            self.publish(0.0 if began is None else self.clock.now() - began)
            tick = max(tick + TICK_S, self.clock.now() - TICK_S)
            await self.clock.sleep(tick - self.clock.now())
