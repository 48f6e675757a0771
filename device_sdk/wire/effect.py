"""RPC `venus.effect`: the agent asks the car host to read or actuate; one request, one answer."""

from typing import Annotated, Any, Literal, Union

from pydantic import Field, TypeAdapter, model_validator

from device_sdk.wire.models import Short, Text, Wire, read
from device_sdk.wire.topics import EFFECT_MAX_BYTES

Path = Annotated[str, Field(min_length=1, max_length=200)]


class TaskRef(Wire):
    """The task version on whose behalf the effect is asked for."""

    id: Short
    version: Annotated[int, Field(ge=0)]


class EffectRequest(Wire):
    """`get` carries `paths`; `actuate` `path` and `value`; `stop` halts what moves at `path`. The same `key` again gets the same answer.

    Who doesn't say in which zone and by whose live speech it was asked for isn't believed: nothing is actuated."""

    v: Literal[1] = 1
    key: Annotated[str, Field(min_length=1, max_length=128)]
    op: Literal["get", "actuate", "stop"]
    paths: Annotated[list[Path], Field(min_length=1, max_length=64)] | None = None
    path: Path | None = None
    value: Any = None
    timeout_s: Annotated[float, Field(gt=0, le=60)] = 5.0
    zone: Literal["driver", "passenger", "rear_left", "rear_right", "unknown"] = "unknown"
    task: TaskRef | None = None
    provenance: Short = "unknown"
    confirm: Short | None = None
    """The token of a needs_confirmation answer, once the user has said yes."""

    @model_validator(mode="after")
    def _fits_op(self):
        if self.op == "get" and self.paths is None:
            raise ValueError("op get needs paths")
        if self.op == "actuate" and (self.path is None or self.value is None):
            raise ValueError("op actuate needs path and value")
        if self.op == "stop" and self.path is None:
            raise ValueError("op stop needs path")
        return self


class SignalValue(Wire):
    value: Any = None
    age_s: Annotated[float, Field(ge=0)] | None = None
    """Seconds since the bus saw it; absent where it never did."""


class EffectDone(Wire):
    path: Path
    target: Any = None
    value: Any = None
    reached: bool
    took_s: Annotated[float, Field(ge=0)]


class EffectError(Wire):
    code: Short
    message: Text = ""
    retryable: bool = False
    data: dict[str, Any] = {}


class EffectAnswer(Wire):
    """Exactly one of `signals`, `effect` (both with ok) and `error` (without)."""

    v: Literal[1] = 1
    ok: bool
    signals: dict[Path, SignalValue] | None = None
    effect: EffectDone | None = None
    error: EffectError | None = None

    @model_validator(mode="after")
    def _one_of(self):
        if sum(part is not None for part in (self.signals, self.effect, self.error)) != 1:
            raise ValueError("exactly one of signals, effect, error")
        if self.ok == (self.error is not None):
            raise ValueError("ok is true without error, false with one")
        return self


_REQUEST: TypeAdapter[EffectRequest] = TypeAdapter(EffectRequest)
_ANSWER: TypeAdapter[EffectAnswer] = TypeAdapter(EffectAnswer)


def decode_effect_request(payload: bytes | str) -> EffectRequest:
    return read(_REQUEST, _bytes(payload), EFFECT_MAX_BYTES)


def decode_effect_answer(payload: bytes | str) -> EffectAnswer:
    return read(_ANSWER, _bytes(payload), EFFECT_MAX_BYTES)


def encode_effect(message: Union[EffectRequest, EffectAnswer]) -> bytes:
    """Write either; raises TooLarge above what one RPC payload may hold."""
    return message.to_bytes(EFFECT_MAX_BYTES)


def _bytes(payload: bytes | str) -> bytes:
    return payload.encode() if isinstance(payload, str) else payload
