"""The vehicle's signal store: current values, subscribers that keep the newest value only, and actuation providers.

SignalError (plain data for the gRPC layers)
├── UnknownSignal     no such path or id
├── BadValue          wrong type, out of range, not an actuator
├── NoProvider        nothing moves this actuator
├── ProviderTaken     another provider has claimed it
└── ProviderLost      the provider's queue is full: the command did not get through
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Iterable, Protocol

from simulators.car import vss
from venus_edge.clock import Clock, SystemClock
from venus_edge.errors import VenusError
from venus_edge.metrics import METRICS
from venus_edge.trace import Trace

SPEED = "Vehicle.Speed"
MAX_SUBSCRIBERS = 256


class SignalError(VenusError):
    code = "signal"


class UnknownSignal(SignalError):
    code = "not_found"


class BadValue(SignalError):
    code = "invalid_args"


class NoProvider(SignalError):
    code = "unavailable"
    retryable = True


class ProviderTaken(SignalError):
    code = "already_exists"


class ProviderLost(SignalError):
    code = "data_loss"
    retryable = True


@dataclass(frozen=True)
class Reading:
    """A current value and when the store took it (seconds since the epoch, as it travels in a Datapoint)."""

    value: Any
    wall: float


class Provider(Protocol):
    """Whatever moves actuators. Takes whole batches without waiting; raises ProviderLost when it can't take one."""

    def actuate(self, commands: list[tuple[str, Any]]) -> None: ...


class Subscription:
    """Changes of some signals for one reader: at most one pending value a signal, the newest wins and is counted."""

    def __init__(self, store: "SignalStore", paths: Iterable[str]):
        self._store, self._paths = store, frozenset(paths)
        self._pending: dict[str, Reading] = {}
        self._wake = asyncio.Event()
        for path in self._paths:
            if path in store.current:
                self._pending[path] = store.current[path]

    def offer(self, path: str, reading: Reading) -> None:
        if path in self._paths:
            if path in self._pending:
                METRICS.add("venus_signals_conflated_total")
            self._pending[path] = reading
            self._wake.set()

    def take(self) -> dict[str, Reading]:
        """What is pending now, without waiting."""
        self._wake.clear()
        pending, self._pending = self._pending, {}
        return pending

    async def changes(self) -> dict[str, Reading]:
        """The next changes, one newest value a signal."""
        await self._wake.wait()
        return self.take()

    def __enter__(self) -> "Subscription":
        self._store.attach(self)
        return self

    def __exit__(self, *_exc) -> None:
        self._store.detach(self)


class SignalStore:
    """Every signal of the tree with its current value. All methods run on the event loop and never wait."""

    def __init__(self, specs: dict[str, vss.Spec] | None = None, clock: Clock | None = None, trace: Trace | None = None):
        self.specs = specs if specs is not None else vss.load()
        self.clock = clock or SystemClock()
        self.trace = trace
        self.by_id = {spec.id: spec for spec in self.specs.values()}
        self.current: dict[str, Reading] = {}
        self.targets: dict[str, Reading] = {}
        """The last command per actuator: what v1 clients call the target value."""
        self._subscriptions: set[Subscription] = set()
        self._providers: dict[str, Provider] = {}
        self._speed_traced_at = -1.0
        for spec in self.specs.values():
            if spec.default is not None:
                self.current[spec.path] = Reading(spec.default, self.clock.wall())

    def spec(self, key: str | int) -> vss.Spec:
        """The signal with this path or id; raises UnknownSignal."""
        spec = self.specs.get(key) if isinstance(key, str) else self.by_id.get(key)
        if spec is None:
            raise UnknownSignal(f"no signal {key!r} in the tree")
        return spec

    def below(self, root: str) -> list[vss.Spec]:
        """The leaves at or below `root` ("" or "*" = all; a trailing ".*" or ".**" is ignored)."""
        root = root.rstrip("*").rstrip(".")
        if not root:
            return list(self.specs.values())
        return [spec for path, spec in self.specs.items() if path == root or path.startswith(root + ".")]

    def value(self, path: str) -> Any:
        """The current value, or None where nobody has published one yet."""
        reading = self.current.get(path)
        return None if reading is None else reading.value

    def publish(self, path: str, value: Any) -> None:
        """Set a current value and tell every subscriber; raises UnknownSignal or BadValue."""
        spec = self.spec(path)
        if why := vss.check(spec, value):
            raise BadValue(why)
        changed = path not in self.current or self.current[path].value != value
        reading = self.current[path] = Reading(value, self.clock.wall())
        for subscription in self._subscriptions:
            subscription.offer(path, reading)
        if changed or path == SPEED:  # the speed curve goes on while the speed stays
            self._record(spec, value)

    def _record(self, spec: vss.Spec, value: Any) -> None:
        if self.trace is None:
            return
        if spec.path == SPEED:
            now = self.clock.now()
            if self._speed_traced_at >= 0 and now - self._speed_traced_at < 1.0:
                return
            self._speed_traced_at = now
        elif spec.kind != "actuator":
            return
        self.trace.event("signal", path=spec.path, value=value)

    def subscribe(self, paths: Iterable[str]) -> Subscription:
        """A subscription to use as a context manager; `take()` at once gives the values known now."""
        paths = [self.spec(path).path for path in paths]
        if len(self._subscriptions) >= MAX_SUBSCRIBERS:
            raise ProviderLost(f"{MAX_SUBSCRIBERS} subscriptions are open; close one first")
        return Subscription(self, paths)

    def attach(self, subscription: Subscription) -> None:
        self._subscriptions.add(subscription)
        METRICS.set("venus_signals_subscriptions", len(self._subscriptions))

    def detach(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)
        METRICS.set("venus_signals_subscriptions", len(self._subscriptions))

    def claim(self, paths: Iterable[str], provider: Provider) -> None:
        """Make `provider` move these actuators: all of them or none."""
        specs = [self.spec(path) for path in paths]
        for spec in specs:
            if spec.kind != "actuator":
                raise BadValue(f"{spec.path} is a {spec.kind}, not an actuator")
            if self._providers.get(spec.path, provider) is not provider:
                raise ProviderTaken(f"{spec.path} has a provider already")
        self._providers.update((spec.path, provider) for spec in specs)

    def release(self, provider: Provider, paths: Iterable[str] | None = None) -> None:
        """Take these paths (default: all) away from the provider."""
        chosen = [p for p, owner in self._providers.items() if owner is provider]
        for path in chosen if paths is None else set(chosen) & set(paths):
            del self._providers[path]

    def actuate(self, commands: Iterable[tuple[str | int, Any]]) -> None:
        """Pass commands to their providers: all are checked first, so that nothing moves when one is wrong.

        Returns when the providers have the commands, not when something moved: who needs that subscribes to the
        current value. Raises UnknownSignal, BadValue, NoProvider, ProviderLost.
        """
        plan: dict[Provider, list[tuple[str, Any]]] = {}
        for key, value in commands:
            spec = self.spec(key)
            if spec.kind != "actuator":
                raise BadValue(f"{spec.path} is a {spec.kind}, not an actuator")
            if why := vss.check(spec, value):
                raise BadValue(why)
            provider = self._providers.get(spec.path)
            if provider is None:
                raise NoProvider(f"no provider moves {spec.path}")
            plan.setdefault(provider, []).append((spec.path, value))
        for provider, batch in plan.items():
            provider.actuate(batch)
            for path, value in batch:
                self.targets[path] = Reading(value, self.clock.wall())
