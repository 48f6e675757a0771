"""The cloud's side of `venus.effect`: a VehicleBus whose every call is asked of the car host, which decides.

    bus = RemoteVehicleBus(call, task_id=..., task_version=1, zone="driver")

`call(payload, timeout_s)` sends one request text and returns the answer text. It may raise what it likes: a VenusError
passes, anything else means that the car can't be reached. A lost call is repeated once under the same key, so the host
acts at most once whatever the network does.
"""

import asyncio
import math
from typing import Any, AsyncIterator, Awaitable, Callable

from pydantic import ValidationError

from harness.host.errors import DeadlinePassed, HostError, InvalidArgs, Unavailable, from_dict
from harness.host.messages import EffectAnswer, EffectRequest, EffectResult, TaskRef
from harness.host.providers import Effect, Signal
from venus_edge.errors import VenusError
from venus_edge.ids import new_id

Call = Callable[[str, float], Awaitable[str]]

GET_S = 3.0
MARGIN_S = 3.0
"""What a call may take beyond the effect's own deadline. A LiveKit RPC takes its round-trip allowance (the room uses 2 s)
off the time that the answering side gets, which here must still hold the effect and the reading of the state."""
TRIES = 2


class RemoteVehicleBus:
    """VehicleBus.get and actuate through the car host, on behalf of one task and one speaker.

    `provenance` says who asked: only "live_speech" may actuate. `confirm` is the token of a needs_confirmation error,
    given after the user's yes.
    """

    def __init__(self, call: Call, *, task_id: str = "", task_version: int = 0, zone: str = "driver",
                 provenance: str = "live_speech", confirm: str = ""):  # fmt: skip
        self._call = call
        self._task = TaskRef(id=task_id, version=task_version)
        self._zone, self._provenance, self._confirm = zone, provenance, confirm

    async def _ask(self, call_s: float, **fields) -> EffectAnswer:
        try:
            request = EffectRequest(key=new_id(), zone=self._zone, task=self._task, provenance=self._provenance, **fields)
        except ValidationError as err:
            first = err.errors()[0]
            raise InvalidArgs(f"{'.'.join(map(str, first['loc'])) or 'request'}: {first['msg']}") from None
        payload = request.model_dump_json()
        for attempt in range(1, TRIES + 1):
            try:
                answer = EffectAnswer.model_validate_json(await self._call(payload, call_s))
                break
            except ValidationError:
                raise HostError("the car host's answer is not one of venus.effect") from None
            except VenusError:
                raise
            except (TimeoutError, asyncio.TimeoutError):
                raise DeadlinePassed("the car host did not answer in time") from None
            except Exception as err:
                if attempt == TRIES:
                    raise Unavailable("the car host can't be reached", cause=type(err).__name__) from err
        if not answer.ok:
            raise from_dict(answer.error.model_dump() if answer.error else {})
        return answer

    async def get(self, *paths: str) -> dict[str, Signal]:
        """Current values; one that nobody has published has value None and an infinite age."""
        answer = await self._ask(GET_S, op="get", paths=list(paths))
        return {path: Signal(path, s.value, math.inf if s.age_s is None else s.age_s) for path, s in (answer.signals or {}).items()}

    async def actuate(self, path: str, value: Any, *, timeout_s: float = 3.0) -> Effect:
        """Ask for an effect; raises what the host's policy says, else tells whether the target was reached."""
        answer = await self._ask(timeout_s + MARGIN_S, op="actuate", path=path, value=value, timeout_s=timeout_s, confirm=self._confirm)
        return _effect(answer.effect)

    async def stop(self, path: str) -> Effect:
        """Halt a window, lid or shade where it is."""
        return _effect((await self._ask(GET_S, op="stop", path=path)).effect)

    def subscribe(self, *paths: str) -> AsyncIterator[Signal]:
        raise Unavailable("signals can't be subscribed to from the cloud: ask with get when you need them")


def _effect(found: EffectResult | None) -> Effect:
    if found is None:
        raise HostError("the car host's answer has no effect in it")
    return Effect(found.path, found.target, found.value, found.reached, found.took_s)
