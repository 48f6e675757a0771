"""What all JSON messages share: strict frozen models, byte-exact writing, and errors that name the field.

Unknown extra fields are ignored, so that a later minor revision can add optional ones; unknown *types*, missing fields
and wrong types are refused.
"""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from device_sdk.errors import BadField, BadVersion, TooLarge, UnknownType, WireError
from device_sdk.wire.topics import SEG_MAX_CHARS

U32 = Annotated[int, Field(ge=0, le=2**32 - 1)]
Samples = Annotated[int, Field(ge=0, le=2**53)]
"""A count or position of samples; 2**53 keeps it exact in every JSON reader."""
SegId = Annotated[str, Field(min_length=1, max_length=SEG_MAX_CHARS)]
Short = Annotated[str, Field(max_length=64)]
Text = Annotated[str, Field(max_length=2_000)]
BootText = Annotated[str, Field(pattern=r"^[0-9a-z]{1,7}$")]


class Wire(BaseModel):
    """Base of every message: immutable, strict types, compact JSON in the order of the fields."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", populate_by_name=True)

    def to_bytes(self, limit: int) -> bytes:
        """Compact UTF-8 JSON without absent optional fields; raises TooLarge above `limit` bytes."""
        payload = self.model_dump_json(by_alias=True, exclude_none=True).encode()
        check_size(payload, limit)
        return payload


T = TypeVar("T")


def check_size(payload: bytes, limit: int) -> None:
    if len(payload) > limit:
        raise TooLarge(f"message of {len(payload)} bytes; at most {limit} are allowed", "size", f"<= {limit} bytes")


def read(adapter: TypeAdapter[T], payload: bytes, limit: int) -> T:
    """Parse one JSON message; every fault becomes a WireError with the field and what is allowed."""
    check_size(payload, limit)
    try:
        return adapter.validate_json(payload, strict=True)
    except ValidationError as err:
        raise wire_error(err) from None


def wire_error(err: ValidationError) -> WireError:
    """The first fault of a pydantic error as a WireError (never quotes the value: it may hold words)."""
    first: dict[str, Any] = err.errors(include_url=False, include_input=False)[0]
    kind, ctx = first["type"], first.get("ctx", {})
    if kind == "union_tag_invalid":
        return UnknownType("field type: unknown message type", "type", str(ctx.get("expected_tags", "")))
    if kind == "union_tag_not_found":
        return UnknownType("field type: missing", "type", str(ctx.get("expected_tags", "")))
    if kind == "json_invalid":
        return WireError("payload: not valid JSON", "payload", "one JSON object")
    field = ".".join(str(part) for part in first["loc"]) or "payload"
    reason = first["msg"]
    if field.split(".")[-1] == "v":
        return BadVersion(f"field {field}: {reason}", field, reason)
    return BadField(f"field {field}: {reason}", field, reason)


def boot_text(boot: int) -> str:
    """A boot number (u32) as it is written in JSON: base 36, lower case."""
    if not 0 <= boot < 2**32:
        raise BadField("field boot: must be 0..2**32-1", "boot", "0..4294967295")
    digits = ""
    while True:
        boot, rest = divmod(boot, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
        if not boot:
            return digits


def boot_number(text: str) -> int:
    """The boot number that `boot_text` wrote; it is what mic packets carry."""
    return int(text, 36)
