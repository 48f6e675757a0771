"""Host calls of one skill process, answered in the session worker: checked against the manifest, then given to the vehicle bus.

A skill can touch only what its `effects` declare. Patterns over VSS paths are matched part by part: `*` stands for one part,
`**` at the end for all that follow.
"""
import asyncio
import math
from fnmatch import fnmatchcase
from typing import Any

from harness.host.errors import HostError, InvalidArgs, NotPermitted, Unavailable
from harness.host.providers import Point, Signal, VehicleBus
from harness.skill import Effects
from venus_edge.clock import Clock
from venus_edge.errors import VenusError

LATITUDE, LONGITUDE = "Vehicle.CurrentLocation.Latitude", "Vehicle.CurrentLocation.Longitude"
OPEN_CALLS_LIMIT = 16
SUBSCRIPTIONS_LIMIT = 4
PATHS_LIMIT = 64


def matches(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether a VSS path is covered by one of the patterns."""
    parts = path.split(".")
    for pattern in patterns:
        wanted = pattern.split(".")
        if wanted[-1] == "**" and len(parts) >= len(wanted):
            wanted, compared = wanted[:-1], parts[:len(wanted) - 1]
        else:
            compared = parts
        if len(compared) == len(wanted) and all(map(fnmatchcase, compared, wanted)):
            return True
    return False


def _age(signal: Signal) -> float | None:
    """Seconds, or None for a signal that was never published: JSON has no infinity."""
    return signal.age_s if math.isfinite(signal.age_s) else None


async def position_of(bus: VehicleBus) -> Point:
    """Where the car is; raises Unavailable while the receiver has no fix."""
    signals = await bus.get(LATITUDE, LONGITUDE)
    lat, lon = (getattr(signals.get(path), "value", None) for path in (LATITUDE, LONGITUDE))
    if lat is None or lon is None:
        raise Unavailable("the car does not know its position", reason="position")
    return Point(float(lat), float(lon))


class HostBridge:
    """Serves the host calls of one call of a skill. `stop()` ends them: nothing is forwarded afterwards."""

    def __init__(self, skill_id: str, effects: Effects, bus: VehicleBus, clock: Clock, deadline: float):
        self._skill_id, self._effects, self._bus = skill_id, effects, bus
        self._clock, self._deadline = clock, deadline
        self._tasks: set[asyncio.Task] = set()
        self._subscriptions: dict[int, Any] = {}
        self._stopped = False

    def serve(self, message: dict, answer) -> None:
        """Start one host call; `answer(dict)` is called with its outcome unless the call was stopped before."""
        number = message.get("id")
        if self._stopped:
            return
        if len(self._tasks) >= OPEN_CALLS_LIMIT:
            error = Unavailable(f"more than {OPEN_CALLS_LIMIT} host calls at once")
            answer({"t": "answer", "id": number, "ok": False, "error": error.as_dict()})
            return
        task = asyncio.ensure_future(self._answer(number, message, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Cancel what is under way and refuse what comes later."""
        self._stopped = True
        for task in self._tasks:
            task.cancel()
        self._subscriptions.clear()

    async def _answer(self, number, message: dict, answer) -> None:
        try:
            reply = {"ok": True, "value": await self._do(message)}
        except VenusError as err:
            reply = {"ok": False, "error": err.as_dict()}
        except (KeyError, TypeError, ValueError) as err:
            reply = {"ok": False, "error": InvalidArgs(f"host call {message.get('op')!r}: {type(err).__name__}").as_dict()}
        if not self._stopped:
            answer({"t": "answer", "id": number, **reply})

    async def _do(self, message: dict) -> Any:
        op = message["op"]
        if op == "position":
            self._may(self._effects.reads, "read", (LATITUDE, LONGITUDE))
            point = await position_of(self._bus)
            return {"lat": point.lat, "lon": point.lon}
        if op == "get":
            paths = self._paths(message)
            self._may(self._effects.reads, "read", paths)
            signals = await self._bus.get(*paths)
            return {path: {"value": s.value, "age_s": _age(s)} for path, s in signals.items()}
        if op == "actuate":
            path = str(message["path"])
            self._may(self._effects.actuates, "actuate", (path,))
            left = self._deadline - self._clock.now()
            effect = await self._bus.actuate(path, message["value"], timeout_s=max(0.05, min(float(message["timeout_s"]), left)))
            return {"path": effect.path, "target": effect.target, "value": effect.value, "reached": effect.reached,
                    "took_s": effect.took_s}
        if op == "subscribe":
            paths = self._paths(message)
            self._may(self._effects.reads, "read", paths)
            if len(self._subscriptions) >= SUBSCRIPTIONS_LIMIT:
                raise Unavailable(f"more than {SUBSCRIPTIONS_LIMIT} subscriptions in one call")
            number = max(self._subscriptions, default=0) + 1
            self._subscriptions[number] = self._bus.subscribe(*paths)
            return number
        if op == "next":
            signal = await anext(self._subscriptions[message["subscription"]], None)
            return None if signal is None else {"path": signal.path, "value": signal.value, "age_s": _age(signal)}
        if op == "unsubscribe":
            self._subscriptions.pop(message["subscription"], None)
            return None
        raise HostError(f"no host call {op!r}")

    @staticmethod
    def _paths(message: dict) -> list[str]:
        paths = [str(path) for path in message["paths"]]
        if not 0 < len(paths) <= PATHS_LIMIT:
            raise InvalidArgs(f"paths: {len(paths)} given; allowed: 1 to {PATHS_LIMIT}", field="paths")
        return paths

    def _may(self, patterns: tuple[str, ...], what: str, paths) -> None:
        for path in paths:
            if not matches(path, patterns):
                raise NotPermitted(f"{self._skill_id} does not declare that it may {what} {path}", path=path)
