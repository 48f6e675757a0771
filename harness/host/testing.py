"""A vehicle in memory, for tests of skills and hosts: the same contract as the real bus, no network, no waiting.

    bus = MemoryVehicleBus({"Vehicle.Speed": 0.0, ...})
    bus.stuck.add(path)         # takes the command and never moves
    bus.unprovided.add(path)    # no provider: Unavailable
    bus.reachable = False       # everything is Unavailable

`hosted(bus)` puts the real safety policy in front of it, as in the car.
"""

import asyncio
import math
from typing import Any, AsyncIterator, Mapping

from harness.host.effects import EffectHost
from harness.host.errors import InvalidArgs, NotFound, Unavailable
from harness.host.paths import SWITCH_POSITION, mover
from harness.host.providers import Effect, Signal
from harness.host.remote import RemoteVehicleBus
from venus_edge.clock import Clock
from venus_edge.testing import VirtualClock

PARKED = {
    "Vehicle.Speed": 0.0, "Vehicle.IsMoving": False, "Vehicle.Powertrain.Transmission.CurrentGear": 0,
    "Vehicle.Powertrain.Transmission.IsParkLockEngaged": True, "Vehicle.Cabin.DriverPosition": "LEFT",
    "Vehicle.Exterior.LightIntensity": 80.0,
}  # fmt: skip
"""A parked car by day."""


def driving(kmh: float) -> dict[str, Any]:
    """The state signals of a car at this speed."""
    return PARKED | {
        "Vehicle.Speed": float(kmh), "Vehicle.IsMoving": kmh > 0, "Vehicle.Powertrain.Transmission.CurrentGear": 1,
        "Vehicle.Powertrain.Transmission.IsParkLockEngaged": False,
    }  # fmt: skip


class MemoryVehicleBus:
    """VehicleBus over a dict. An actuation takes effect at once, or after `delay_s` of the clock."""

    def __init__(self, values: Mapping[str, Any] | None = None, *, clock: Clock | None = None, delay_s: float = 0.0):
        self.clock = clock or VirtualClock()
        self.delay_s = delay_s
        self.values: dict[str, Any] = dict(values or {})
        self.ages: dict[str, float] = {}
        """Seconds to report as `age_s`; 0 where not named, as if every signal were refreshed all the time."""
        self.stuck: set[str] = set()
        self.unprovided: set[str] = set()
        self.reachable = True
        self.actuated: list[tuple[str, Any]] = []
        """Every command taken, in order."""
        self.stopped: list[str] = []
        self._subscribers: list[tuple[frozenset, dict, asyncio.Event]] = []

    def _reach(self) -> None:
        if not self.reachable:
            raise Unavailable("the vehicle bus can't be reached")

    def publish(self, path: str, value: Any) -> None:
        """Set a current value, as a sensor would."""
        self.values[path] = value
        for paths, pending, wake in self._subscribers:
            if path in paths:
                pending[path] = value
                wake.set()

    def _signal(self, path: str) -> Signal:
        value = self.values[path]
        return Signal(path, value, math.inf if value is None else self.ages.get(path, 0.0))

    async def get(self, *paths: str) -> dict[str, Signal]:
        self._reach()
        for path in paths:
            if path not in self.values:
                raise NotFound(f"no signal {path}", path=path)
        return {path: self._signal(path) for path in paths}

    async def actuate(self, path: str, value: Any, *, timeout_s: float = 3.0) -> Effect:
        self._reach()
        if path not in self.values:
            raise NotFound(f"no signal {path}", path=path)
        if path in self.unprovided:
            raise Unavailable(f"no provider moves {path}")
        self.actuated.append((path, value))
        start, blocked = self.clock.now(), path in self.stuck
        if self.delay_s or blocked:
            await self.clock.sleep(timeout_s if blocked else min(self.delay_s, timeout_s))
        arrived = not blocked and self.delay_s <= timeout_s
        if arrived:
            self._settle(path, value)
        return Effect(path, value, self.values[path], arrived, self.clock.now() - start)

    def _settle(self, path: str, value: Any) -> None:
        self.publish(path, value)
        branch, leaf = mover(path), path.rpartition(".")[2]
        position = {"IsOpen": 100 if value else 0, "Switch": SWITCH_POSITION.get(value), "Position": value}.get(leaf) if branch else None
        if position is not None:
            for sibling, state in ((f"{branch}.Position", position), (f"{branch}.IsOpen", position != 0)):
                if sibling in self.values and sibling != path:
                    self.publish(sibling, state)

    async def stop(self, path: str) -> Effect:
        self._reach()
        if not mover(path):
            raise InvalidArgs(f"{path} doesn't travel", field="path")
        self.stopped.append(path)
        return Effect(path, "stop", self.values.get(f"{mover(path)}.Position"), True, 0.0)

    async def subscribe(self, *paths: str) -> AsyncIterator[Signal]:
        """Current values, then changes; at most one pending value a signal, the newest wins."""
        for signal in (await self.get(*paths)).values():
            yield signal
        entry = (frozenset(paths), {}, asyncio.Event())
        self._subscribers.append(entry)
        try:
            while True:
                await entry[2].wait()
                entry[2].clear()
                changes = dict(entry[1])
                entry[1].clear()
                for path in changes:
                    yield self._signal(path)
        finally:
            self._subscribers.remove(entry)


def hosted(bus: MemoryVehicleBus, host: EffectHost | None = None, **task) -> RemoteVehicleBus:
    """A RemoteVehicleBus that reaches `bus` through the real host and its policy, in this process.

    `task`: task_id, task_version, zone, provenance, confirm. Pass `host` to keep its keys and confirmations between calls.
    """
    host = host or EffectHost(bus, clock=bus.clock)

    async def call(payload: str, timeout_s: float) -> str:
        return await host.handle(payload)

    return RemoteVehicleBus(call, **task)
