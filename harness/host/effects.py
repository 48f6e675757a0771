"""The host: takes effect requests, applies the safety policy at the moment of actuation, and never acts twice for one key.

    host = EffectHost(bus, clock=clock, trace=trace)
    answer_text = await host.handle(request_text)

One place, whoever asks: the cloud over the room, or the device over a local socket.
"""

import asyncio
import json
import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from harness.host import policy
from harness.host.errors import BY_CODE, HostError, InvalidArgs, NotFound, NotPermitted, Unavailable
from harness.host.messages import EffectAnswer, EffectRequest, EffectResult, ErrorBody, SignalValue, parse_request
from harness.host.paths import mover
from harness.host.providers import Effect, Signal
from harness.host.timing import within
from venus_edge.clock import Clock, SystemClock
from venus_edge.errors import VenusError
from venus_edge.ids import new_id
from venus_edge.metrics import METRICS
from venus_edge.trace import Trace

MAX_KEYS = 512
MAX_RUNNING = 32
MAX_CONFIRMATIONS = 32
CONFIRM_S = 15.0
"""8 s for the user's answer, and up to 7 s for the question to be spoken: the host can't hear when it ended."""
STATE_S = 0.5
"""Deadline for reading the vehicle's state; without it the policy sees nothing, which counts as moving."""

_WORDS = {
    "never": "this is never done by voice",
    "not_listed": "this can't be done by voice",
    "zone": "another seat's controls can't be used from here",
    "child_lock": "the child lock is on",
    "moving": "not while the car is moving",
    "not_in_park": "only with the car in P",
    "state_unknown": "the car's speed isn't known right now",
    "moving_limit": "not that far while the car is moving",
    "opening": "opening this needs a yes",
    "dark": "switching this off in the dark needs a yes",
    "value": "the value is out of range",
}


@dataclass(frozen=True)
class _Pending:
    """A question put to the user: what exactly a yes would allow, and until when."""

    binding: tuple
    motion: str
    until: float


def refusal(decision: policy.Refuse) -> HostError:
    """The error of a refusal; data["reason"] is the word that chooses the spoken sentence."""
    text = _WORDS.get(decision.reason, decision.reason)
    if decision.code == "invalid_args":
        limits = decision.data.get("allowed") or f"{decision.data.get('low')}..{decision.data.get('high')} in steps of {decision.data.get('step')}"
        text = f"{decision.data.get('field')}: {text}; allowed: {limits}"
    return BY_CODE[decision.code](text, reason=decision.reason, **decision.data)


class EffectHost:
    """Serves effect requests over one VehicleBus. All state is bounded: keys, running effects, open confirmations."""

    def __init__(self, bus, *, clock: Clock | None = None, trace: Trace | None = None,
                 max_keys: int = MAX_KEYS, max_running: int = MAX_RUNNING):  # fmt: skip
        self.bus, self.clock = bus, clock or SystemClock()
        self.trace = trace or Trace("carhost", directory="", clock=self.clock)
        self._max_keys, self._max_running = max_keys, max_running
        self._answers: OrderedDict[str, tuple[str, asyncio.Task]] = OrderedDict()
        self._moving: dict[str, asyncio.Task] = {}
        self._confirmations: OrderedDict[str, _Pending] = OrderedDict()

    async def handle(self, payload: str) -> str:
        """The answer to one request, as text; never raises but CancelledError."""
        try:
            return (await self.effect(parse_request(payload))).text()
        except VenusError as err:
            return _failed(err).text()

    async def effect(self, request: EffectRequest) -> EffectAnswer:
        """The answer to one request. A repeated key gets the first one's answer, also while that is still running."""
        if request.op == "get":
            return await self._answer(request)
        content = request.model_dump_json(exclude={"key", "timeout_s"})
        known = self._answers.get(request.key)
        if known is None:
            self._make_room()
            task = asyncio.ensure_future(self._answer(request))
            self._answers[request.key] = (content, task)
        elif known[0] != content:
            return _failed(InvalidArgs("this key was used for another request", field="key"))
        else:
            METRICS.add("venus_carhost_duplicates_total")
            task = known[1]
        # a caller that gives up must not stop an effect that others wait for, or that has half happened
        return await asyncio.shield(task)

    def _make_room(self) -> None:
        running = sum(not task.done() for _, task in self._answers.values())
        if running >= self._max_running:
            raise Unavailable(f"{running} effects are running; at most {self._max_running}")
        while len(self._answers) >= self._max_keys:
            oldest = next((key for key, (_, task) in self._answers.items() if task.done()), None)
            if oldest is None:
                raise Unavailable(f"{self._max_keys} effects are running")
            del self._answers[oldest]
            METRICS.add("venus_carhost_keys_dropped_total")

    async def _answer(self, request: EffectRequest) -> EffectAnswer:
        start = self.clock.now()
        verdict, reason, extra = "allow", "", {}
        try:
            if request.op == "get":
                return EffectAnswer(ok=True, signals=await self._get(request.paths))
            effect = await (self._stop(request) if request.op == "stop" else self._actuate(request))
            extra = {"reached": effect.reached}
            return EffectAnswer(ok=True, effect=EffectResult(
                path=effect.path, target=effect.target, value=effect.value, reached=effect.reached, took_s=round(effect.took_s, 4)))  # fmt: skip
        except VenusError as err:
            refused = "reason" in err.data
            verdict, reason = ("refuse", err.data["reason"]) if refused else ("error", err.code)
            return _failed(err)
        except Exception as err:  # a fault of one request must not take the host down
            verdict, reason = "error", "internal"
            METRICS.add("venus_carhost_faults_total")
            return _failed(HostError(f"fault in the host: {type(err).__name__}"))
        finally:
            METRICS.add(f"venus_carhost_{request.op}_{verdict}_total")
            if request.op != "get" or verdict != "allow":
                self.trace.event("effect", op=request.op, path=request.path or (request.paths or [""])[0], value=request.value,
                                 verdict=verdict, reason=reason, task=request.task.id, version=request.task.version,
                                 took_s=round(self.clock.now() - start, 4), **extra)  # fmt: skip

    async def _get(self, paths: list[str]) -> dict[str, SignalValue]:
        for path in paths:
            if not policy.may_read(path):
                raise NotPermitted(f"{path} is not for reading by the assistant", reason="not_listed", path=path)
        signals = await self.bus.get(*paths)
        return {path: SignalValue(value=s.value, age_s=max(0.0, s.age_s) if math.isfinite(s.age_s) else None) for path, s in signals.items()}

    async def state(self) -> dict[str, policy.Reading]:
        """The vehicle's state now; what can't be read in time is absent, and absent counts as moving."""
        try:
            signals = await within(self.clock, STATE_S, self._read_state())
        except (TimeoutError, HostError):
            METRICS.add("venus_carhost_state_missing_total")
            return {}
        now = self.clock.now()
        return {p: policy.Reading(s.value, now - s.age_s) for p, s in signals.items() if s.value is not None and math.isfinite(s.age_s)}

    async def _read_state(self) -> dict[str, Signal]:
        try:
            return await self.bus.get(*policy.STATE_PATHS)
        except NotFound:  # a car that lacks one of them still has the others
            found: dict[str, Signal] = {}
            for path in policy.STATE_PATHS:
                try:
                    found |= await self.bus.get(path)
                except NotFound:
                    continue
            return found

    async def _actuate(self, request: EffectRequest) -> Effect:
        if request.provenance != "live_speech":
            raise NotPermitted("only live speech of an occupant can ask for this", reason="provenance", provenance=request.provenance)
        state, now = await self.state(), self.clock.now()
        confirmed = bool(request.confirm) and self._confirmed(request, state, now)
        decision = policy.decide(request.path, request.value, request.zone, state, now, confirmed)
        if isinstance(decision, policy.Refuse):
            if decision.code == "needs_confirmation":
                raise self._ask(request, decision, state, now)
            raise refusal(decision)
        return await self._move(request.path, self.bus.actuate(request.path, request.value, timeout_s=request.timeout_s), request.value)

    async def _stop(self, request: EffectRequest) -> Effect:
        """Halt a motion: anybody, at any time, without a question."""
        if policy.rule_for(request.path) is None or not mover(request.path):
            raise InvalidArgs(f"{request.path} can't be stopped: stop takes the Position, IsOpen or Switch of something that moves", field="path")
        self._interrupt(mover(request.path))
        return await self.bus.stop(request.path)

    def _interrupt(self, branch: str) -> None:
        if (earlier := self._moving.pop(branch, None)) is not None:
            earlier.cancel()

    async def _move(self, path: str, motion, target: Any) -> Effect:
        """Wait for a motion; a later command or a stop for the same thing ends the wait: it was not reached."""
        branch, start = mover(path) or path, self.clock.now()
        self._interrupt(branch)
        task = asyncio.ensure_future(motion)
        self._moving[branch] = task
        try:
            await asyncio.wait({task})
            if not task.cancelled():
                return task.result()
            value = (await self.bus.get(path))[path].value
            return Effect(path, target, value, False, self.clock.now() - start)
        finally:
            if self._moving.get(branch) is task:
                del self._moving[branch]
            task.cancel()

    @staticmethod
    def _binding(request: EffectRequest) -> tuple:
        return (request.task.id, request.task.version, request.path, json.dumps(request.value), request.zone)

    def _ask(self, request: EffectRequest, decision: policy.Refuse, state, now: float) -> HostError:
        token = new_id("yes")
        while len(self._confirmations) >= MAX_CONFIRMATIONS:
            self._confirmations.popitem(last=False)
        self._confirmations[token] = _Pending(self._binding(request), policy.motion(state, now), now + CONFIRM_S)
        error = refusal(decision)
        error.data |= {"confirm": token, "expires_s": CONFIRM_S}
        return error

    def _confirmed(self, request: EffectRequest, state, now: float) -> bool:
        """Whether the token is for exactly this, still in time, and the vehicle moves as it did when the user was asked."""
        pending = self._confirmations.pop(request.confirm, None)
        return (pending is not None and now <= pending.until and pending.binding == self._binding(request)
                and pending.motion == policy.motion(state, now))  # fmt: skip


def _failed(err: VenusError) -> EffectAnswer:
    return EffectAnswer(ok=False, error=ErrorBody(**err.as_dict()))


def answer_failed(err: VenusError) -> str:
    """The text of a failed answer, for callers that refuse before the host is asked."""
    return _failed(err).text()
