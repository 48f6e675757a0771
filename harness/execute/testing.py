"""For authors of skills: a vehicle in memory, and a way to run a skill without any process.

    bus = MemoryBus({"Vehicle.Speed": 50.0})
    outcome = await run_skill(SetTemperature, {"celsius": 22}, bus=bus)
    assert outcome.text == "It's set to twenty-two degrees."

Arguments, permissions and wording are checked just as in the real runner.
"""
import asyncio
from typing import Any, AsyncIterator, Callable

from harness.execute.bridge import matches, position_of
from harness.execute.registry import Registry, RegistrySpec
from harness.host.errors import HostError, NotFound, NotPermitted
from harness.host.providers import Effect, Point, Signal
from harness.skill import Effects, Skill, SkillContext
from harness.task import SkillOutcome
from venus_edge.clock import Clock, SystemClock
from venus_edge.errors import VenusError


class MemoryBus:
    """A whole VehicleBus over a dict: actuators arrive at once, late, or never; any path can be refused."""

    def __init__(self, values: dict[str, Any] | None = None, clock: Clock | None = None):
        self.values = dict(values or {})
        self.clock = clock or SystemClock()
        self.actuated: list[tuple[str, Any]] = []
        self.travel_s: dict[str, float] = {}
        """How long an actuator needs; without an entry it arrives at once."""
        self.stuck: set[str] = set()
        """Actuators that never move."""
        self.refusals: dict[str, HostError] = {}
        """Errors by path, for reading and for actuating."""
        self._watchers: list[asyncio.Queue] = []

    async def get(self, *paths: str) -> dict[str, Signal]:
        for path in paths:
            if path in self.refusals:
                raise self.refusals[path]
            if path not in self.values:
                raise NotFound(f"no signal {path}", path=path)
        return {path: Signal(path, self.values[path], 0.0) for path in paths}

    async def actuate(self, path: str, value: Any, *, timeout_s: float = 3.0) -> Effect:
        if path in self.refusals:
            raise self.refusals[path]
        self.actuated.append((path, value))
        began = self.clock.now()
        travel = self.travel_s.get(path, 0.0)
        if path in self.stuck or travel > timeout_s:
            await self.clock.sleep(timeout_s)
            return Effect(path, value, self.values.get(path), False, self.clock.now() - began)
        if travel:
            await self.clock.sleep(travel)
        self.set(path, value)
        return Effect(path, value, value, True, self.clock.now() - began)

    def set(self, path: str, value: Any) -> None:
        """Change a signal, as the car would."""
        self.values[path] = value
        for queue in self._watchers:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(Signal(path, value, 0.0))

    async def subscribe(self, *paths: str) -> AsyncIterator[Signal]:
        queue: asyncio.Queue = asyncio.Queue(maxsize=64)
        self._watchers.append(queue)
        try:
            for signal in (await self.get(*paths)).values():
                yield signal
            while True:
                signal = await queue.get()
                if signal.path in paths:
                    yield signal
        finally:
            self._watchers.remove(queue)


class _DeclaredBus:
    """Refuses what the manifest does not declare, like the real bridge."""

    def __init__(self, bus: Any, effects: Effects):
        self._bus, self._effects = bus, effects

    def _may(self, patterns: tuple[str, ...], paths) -> None:
        for path in paths:
            if not matches(path, patterns):
                raise NotPermitted(f"{path} is not declared in effects", path=path)

    async def get(self, *paths: str) -> dict[str, Signal]:
        self._may(self._effects.reads, paths)
        return await self._bus.get(*paths)

    async def actuate(self, path: str, value: Any, *, timeout_s: float = 3.0) -> Effect:
        self._may(self._effects.actuates, (path,))
        return await self._bus.actuate(path, value, timeout_s=timeout_s)

    def subscribe(self, *paths: str) -> AsyncIterator[Signal]:
        self._may(self._effects.reads, paths)
        return self._bus.subscribe(*paths)


async def run_skill(skill: type[Skill], arguments: dict, *, bus: Any = None, maps: Any = None, places: Any = None,
                    lang: str = "en", zone: str = "driver", memory: dict | None = None,
                    on_progress: Callable[[str, str], None] = lambda outcome, text: None) -> SkillOutcome:
    """Run one skill in this process; the outcome is made just as the runner makes it (no deadline, no isolation)."""
    bus = bus if bus is not None else MemoryBus()
    registry = Registry(RegistrySpec(providers=dict.fromkeys(skill.effects.uses, "given")), [skill])
    declared, memory = _DeclaredBus(bus, skill.effects), dict(memory or {})

    async def position() -> Point:
        return await position_of(declared)

    def progress(outcome: str, **fields) -> None:
        on_progress(outcome, registry.say(skill.id, outcome, lang, fields))

    try:
        args = registry.validate(skill.id, arguments)
        context = SkillContext(task_id="task", task_version=1, lang=lang, zone=zone, position=position, vehicle=declared, maps=maps,
                               places=places, progress=progress, memory=memory)
        result = await skill().run(args, context)
    except VenusError as err:
        return SkillOutcome(ok=False, outcome=err.code, code=err.code, text=registry.say(skill.id, err.code, lang, err.data),
                            fields=err.data, memory=memory)
    return SkillOutcome(ok=True, outcome=result.outcome, text=registry.say(skill.id, result.outcome, lang, result.spoken(lang)),
                        fields=result.spoken(lang), result=result.model_dump(mode="json"), memory=memory, started=True)
