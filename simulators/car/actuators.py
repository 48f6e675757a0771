"""Actuators that take time: the in-process provider of the simulated car.

A command is taken at once; the current value follows as the real part would move. Faults can be set for tests and
scenarios: jam (takes commands, never moves), no_provider (nobody takes them), slow (moves `SLOW` times slower).
"""

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from harness.host.paths import STOP, SWITCH_POSITION, expand
from simulators.car.signals_store import SignalStore
from venus_edge.clock import Clock
from venus_edge.errors import ConfigError

TICK_S = 0.1
SLOW = 5.0

_SEATS = "Row{1,2}.{DriverSide,PassengerSide}"


class Fault(StrEnum):
    NONE = "none"
    JAM = "jam"
    NO_PROVIDER = "no_provider"
    SLOW = "slow"


# (paths, seconds until the new value is there, value at start)
ACKNOWLEDGED: tuple[tuple[str, float, Any], ...] = (
    ("Vehicle.Cabin.HVAC.Station.Row{1,2}.{Driver,Passenger}.Temperature", 0.25, 20.0),
    ("Vehicle.Cabin.HVAC.Station.Row{1,2}.{Driver,Passenger}.FanSpeed", 0.25, 30),
    ("Vehicle.Cabin.HVAC.Station.Row{1,2}.{Driver,Passenger}.AirDistribution", 0.25, "MIDDLE"),
    ("Vehicle.Cabin.HVAC.{IsAirConditioningActive,IsRecirculationActive,IsFrontDefrosterActive,IsRearDefrosterActive}", 0.25, False),
    (f"Vehicle.Cabin.Seat.{_SEATS}.HeatingCooling", 0.2, 0),
    ("Vehicle.Cabin.Seat.Row1.{DriverSide,PassengerSide}.Massage.Level", 0.2, 0),
    ("Vehicle.Cabin.Seat.Row1.{DriverSide,PassengerSide}.Backrest.Recline", 1.5, 20.0),
    ("Vehicle.Cabin.Seat.Row1.DriverSide.Position", 2.0, 200),
    (f"Vehicle.Cabin.Light.AmbientLight.{_SEATS}.IsLightOn", 0.1, False),
    (f"Vehicle.Cabin.Light.AmbientLight.{_SEATS}.Intensity", 0.1, 50),
    (f"Vehicle.Cabin.Light.AmbientLight.{_SEATS}.Color", 0.1, "white"),
    (f"Vehicle.Cabin.Light.Spotlight.{_SEATS}.IsLightOn", 0.1, False),
    (f"Vehicle.Cabin.Light.Spotlight.{_SEATS}.Intensity", 0.1, 80),
    ("Vehicle.Cabin.Light.IsDomeOn", 0.1, False),
    (f"Vehicle.Cabin.Door.{_SEATS}.IsLocked", 0.3, True),
    ("Vehicle.Body.Trunk.{Rear,Front}.IsLocked", 0.3, True),
    ("Vehicle.Cabin.IsWindowChildLockEngaged", 0.2, False),
    ("Vehicle.Cabin.Infotainment.Media.Volume", 0.1, 40),
    ("Vehicle.Cabin.Infotainment.Media.Action", 0.2, "STOP"),
    ("Vehicle.Cabin.Infotainment.Navigation.Volume", 0.1, 60),
    ("Vehicle.Cabin.Infotainment.Navigation.Mute", 0.1, "UNMUTED"),
    ("Vehicle.Cabin.Infotainment.Navigation.DestinationSet.{Latitude,Longitude}", 0.05, None),
    ("Vehicle.Cabin.Infotainment.HMI.DayNightMode", 0.1, "DAY"),
    ("Vehicle.Powertrain.TractionBattery.Charging.ChargeLimit", 0.2, 80),
    ("Vehicle.Powertrain.TractionBattery.Charging.ChargingPort.AnyPosition.IsFlapOpen", 1.0, False),
    ("Vehicle.Body.Mirrors.{DriverSide,PassengerSide}.IsFolded", 1.5, False),
    ("Vehicle.Body.Mirrors.{DriverSide,PassengerSide}.IsHeatingOn", 0.1, False),
    ("Vehicle.Body.Lights.Beam.Low.IsOn", 0.1, False),
    ("Vehicle.Body.Lights.Fog.{Front,Rear}.IsOn", 0.1, False),
    ("Vehicle.Body.Lights.LightSwitch", 0.1, "AUTO"),
    ("Vehicle.Body.Lights.Hazard.IsSignaling", 0.1, False),
    ("Vehicle.Body.Windshield.Front.Wiping.Mode", 0.2, "OFF"),
)

# (branches, percent a second, position at start)
TRAVELLING: tuple[tuple[str, float, int], ...] = (
    ("Vehicle.Cabin.Door.Row1.DriverSide.Window", 20.0, 100),
    ("Vehicle.Cabin.Door.Row1.PassengerSide.Window", 20.0, 0),
    ("Vehicle.Cabin.Door.Row2.{DriverSide,PassengerSide}.Window", 20.0, 0),
    (f"Vehicle.Cabin.Door.{_SEATS}.Shade", 25.0, 0),
    ("Vehicle.Cabin.Sunroof", 15.0, 0),
    ("Vehicle.Cabin.Sunroof.Shade", 25.0, 0),
    ("Vehicle.Body.Trunk.Rear", 25.0, 0),
)


@dataclass
class Acknowledged:
    """One signal that takes its new value after a while."""

    bank: "ActuatorBank"
    path: str
    delay_s: float
    fault: Fault = Fault.NONE
    task: asyncio.Task | None = None

    @property
    def paths(self) -> list[str]:
        return [self.path]

    def command(self, path: str, value: Any) -> None:
        self.halt()
        if self.fault is not Fault.JAM:
            self.task = self.bank.spawn(self._take(value))

    async def _take(self, value: Any) -> None:
        await self.bank.clock.sleep(self.delay_s * (SLOW if self.fault is Fault.SLOW else 1.0))
        self.bank.store.publish(self.path, value)

    def halt(self) -> None:
        if self.task is not None:
            self.task.cancel()


class Travelling:
    """Something that moves between positions at a constant rate: window, shade, sunroof, tailgate.

    Position in percent is published at 10 Hz while it moves; IsOpen is true unless it is at 0; the Switch goes back to
    INACTIVE when the motion ends, and INACTIVE as a command ends it.
    """

    def __init__(self, bank: "ActuatorBank", branch: str, rate: float, start: int):
        self.bank, self.branch, self.rate = bank, branch, rate
        self.fault, self.task = Fault.NONE, None
        self._from, self._to, self._since, self._speed = float(start), float(start), 0.0, rate
        specs = bank.store.specs
        self._signals = {leaf: f"{branch}.{leaf}" for leaf in ("Position", "IsOpen", "Switch") if f"{branch}.{leaf}" in specs}
        self.paths = [path for path in self._signals.values() if specs[path].kind == "actuator"]

    def command(self, path: str, value: Any) -> None:
        leaf = path.rpartition(".")[2]
        if leaf == "Switch" and value == STOP:
            self.halt()
            self._report()
            self._set("Switch", STOP)
            return
        target = value if leaf == "Position" else SWITCH_POSITION[value] if leaf == "Switch" else (100 if value else 0)
        self.halt()
        if self.fault is Fault.JAM:
            return
        if leaf == "Switch":
            self._set("Switch", value)
        self._to = float(target)
        self._since = self.bank.clock.now()
        self._speed = self.rate / (SLOW if self.fault is Fault.SLOW else 1.0)
        self.task = self.bank.spawn(self._travel())

    @property
    def position(self) -> float:
        """Where it is now, percent."""
        way = self._speed * (self.bank.clock.now() - self._since)
        if self._to >= self._from:
            return min(self._to, self._from + way)
        return max(self._to, self._from - way)

    async def _travel(self) -> None:
        while abs(self._to - self.position) > 1e-9:
            await self.bank.clock.sleep(min(TICK_S, abs(self._to - self.position) / self._speed))
            self._report()
        self._from = self._to
        self._report()
        self._set("Switch", STOP)

    def halt(self) -> None:
        """Stay where it is."""
        if self.task is not None:
            self.task.cancel()
        self._from = self._to = self.position

    def _set(self, leaf: str, value: Any) -> None:
        if leaf in self._signals:
            self.bank.store.publish(self._signals[leaf], value)

    def _report(self) -> None:
        at = self.position
        # whole percents, but only a fully closed one is 0: a crack is open
        shown = round(at) or (0 if at == 0 else 1 if at > 0 else -1)
        self._set("Position", shown)
        self._set("IsOpen", shown != 0)

    def place(self, position: float) -> None:
        """Put it somewhere without moving: initial values."""
        self.halt()
        self._from = self._to = float(position)
        self._report()
        self._set("Switch", STOP)


class ActuatorBank:
    """Every actuator of the simulated car; the store's provider for them."""

    def __init__(self, store: SignalStore, clock: Clock | None = None):
        self.store, self.clock = store, clock or store.clock
        self._tasks: set[asyncio.Task] = set()
        self._parts: list[Acknowledged | Travelling] = []
        self._starts: dict[str, Any] = {}
        for pattern, delay_s, start in ACKNOWLEDGED:
            for path in expand(pattern):
                self._parts.append(Acknowledged(self, path, delay_s))
                if start is not None:
                    self._starts[path] = start
        for pattern, rate, start in TRAVELLING:
            for branch in expand(pattern):
                self._parts.append(Travelling(self, branch, rate, start))
        self._by_path = {path: part for part in self._parts for path in part.paths}

    def start(self, initial: dict[str, Any] | None = None) -> None:
        """Claim all actuators and publish where they stand; `initial` overrides by path."""
        initial = dict(initial or {})
        self.store.claim(self._by_path, self)
        for part in self._parts:
            if isinstance(part, Travelling):
                place = initial.pop(f"{part.branch}.Position", part.position)
                if f"{part.branch}.IsOpen" in initial:
                    place = 100 if initial.pop(f"{part.branch}.IsOpen") else 0
                part.place(place)
        for path, value in (self._starts | initial).items():
            self.store.publish(path, value)

    @property
    def paths(self) -> list[str]:
        return list(self._by_path)

    def actuate(self, commands: list[tuple[str, Any]]) -> None:
        for path, value in commands:
            self._by_path[path].command(path, value)

    def fail(self, path: str, fault: Fault | str) -> None:
        """Set a fault of whatever `path` moves ("none" heals it); a jam holds it where it is."""
        part = self._by_path.get(path)
        if part is None:
            raise ConfigError(f"{path} is no actuator of the simulated car")
        try:
            part.fault = Fault(fault)
        except ValueError:
            raise ConfigError(f"{path}: unknown fault {fault!r}; one of {', '.join(Fault)}") from None
        if part.fault is Fault.NO_PROVIDER:
            self.store.release(self, part.paths)
        else:
            self.store.claim(part.paths, self)
        if part.fault is Fault.JAM:
            part.halt()

    def spawn(self, work) -> asyncio.Task:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
