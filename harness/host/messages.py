"""The messages of RPC `venus.effect` between the cloud and the car host, checked at both ends.

The same JSON is tabled in PROTOCOL.md; the device SDK has its own copy because neither folder may import the other.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StrictBool, StrictFloat, StrictInt, StrictStr, ValidationError, model_validator

from harness.host.errors import InvalidArgs
from harness.host.policy import ZONES

METHOD = "venus.effect"
MAX_PAYLOAD = 14_000
"""Bytes: what a LiveKit RPC carries everywhere is 15 KB."""
MAX_TIMEOUT_S = 60.0

Path = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9_.]+$")]
Scalar = StrictBool | StrictInt | StrictFloat | StrictStr
Value = Scalar | Annotated[list[Scalar], Field(max_length=64)]
Zone = Literal["driver", "passenger", "rear_left", "rear_right", "unknown"]
assert Zone.__args__ == ZONES


class TaskRef(BaseModel, extra="forbid"):
    """The task on whose behalf an effect happens; a confirmation holds for this version only."""

    id: str = Field(default="", max_length=64)
    version: int = Field(default=0, ge=0)


class EffectRequest(BaseModel, extra="forbid"):
    """One request: get {paths} | actuate {path, value} | stop {path}."""

    v: Literal[1] = 1
    key: str = Field(min_length=1, max_length=128)
    """Idempotency key: the same key never acts twice."""
    op: Literal["get", "actuate", "stop"]
    paths: list[Path] = Field(default_factory=list, max_length=64)
    path: Path | None = None
    value: Value | None = None
    timeout_s: float = Field(default=5.0, gt=0, le=MAX_TIMEOUT_S)
    zone: Zone = "unknown"
    task: TaskRef = TaskRef()
    provenance: str = Field(default="unknown", max_length=32)
    """Who said it; only "live_speech" authorises an actuation, and whoever doesn't say isn't believed."""
    confirm: str = Field(default="", max_length=64)
    """The token of a needs_confirmation answer, once the user has said yes."""

    @model_validator(mode="after")
    def _fields_of_op(self) -> "EffectRequest":
        if self.op == "get" and not self.paths:
            raise ValueError("op get needs paths")
        if self.op != "get" and self.path is None:
            raise ValueError(f"op {self.op} needs path")
        if self.op == "actuate" and self.value is None:
            raise ValueError("op actuate needs value")
        return self


class SignalValue(BaseModel):
    value: Value | None
    age_s: float | None
    """Seconds since the bus saw it; null where it never did."""


class EffectResult(BaseModel):
    path: str
    target: Value
    value: Value | None
    reached: bool
    took_s: float


class ErrorBody(BaseModel):
    code: str
    message: str
    retryable: bool = False
    data: dict[str, Any] = Field(default_factory=dict)


class EffectAnswer(BaseModel):
    """`ok` with signals or an effect, or an error."""

    v: Literal[1] = 1
    ok: bool
    signals: dict[str, SignalValue] | None = None
    effect: EffectResult | None = None
    error: ErrorBody | None = None

    def text(self) -> str:
        return self.model_dump_json(exclude_none=False, exclude={n for n in ("signals", "effect", "error") if getattr(self, n) is None})


def parse_request(payload: str) -> EffectRequest:
    """Read a request; raises InvalidArgs naming the fields that are wrong."""
    if len(payload.encode("utf-8", "replace")) > MAX_PAYLOAD:
        raise InvalidArgs(f"the request is longer than {MAX_PAYLOAD} bytes", field="request")
    try:
        return EffectRequest.model_validate_json(payload)
    except ValidationError as err:
        faults = [f"{'.'.join(map(str, e['loc'])) or 'request'}: {e['msg']}" for e in err.errors()[:4]]
        first = ".".join(map(str, err.errors()[0]["loc"])) or "request"
        raise InvalidArgs("; ".join(faults), field=first) from None
