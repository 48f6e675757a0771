"""What a delegate span holds: prose, or typed calls written as JSON; and the requests that come of it.

    {"capability": "window.set", "arguments": {"position": 30}}        one call
    [{"capability": ...}, {"capability": ..., "repair": "update"}]     up to 8, in parallel
    anything else                                                      prose, for the planner

What looks like JSON and is none of these is malformed: it is refused with a reason, never guessed at.
"""
import json
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from harness.capture.reserved import DEFAULT, ReservedTable, inert, inert_values
from harness.errors import MalformedSpan
from harness.evidence import MAX_PROSE_CHARS, DelegateRequest

if TYPE_CHECKING:
    from harness.capture.spans import SpanClosed

MAX_CALLS = 8
_CALL_INSIDE = re.compile(r'[{,]\s{0,8}"capability"\s{0,8}:')


@dataclass(frozen=True)
class Prose:
    """The request in words, control tokens made inert."""

    text: str


@dataclass(frozen=True)
class TypedCall:
    """One call of a registered capability. `key`: idempotency key; strings in `arguments` are inert."""

    capability: str
    arguments: dict = field(default_factory=dict)
    repair: str = "new"
    key: str = ""


Content = Prose | tuple[TypedCall, ...]


class _Call(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    capability: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,127}$")]
    arguments: dict[str, JsonValue] = {}
    repair: Literal["new", "update", "cancel", "status", "repeat"] = "new"
    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:/#-]{0,128}$")] = ""


_ONE, _MANY = TypeAdapter(_Call), TypeAdapter(list[_Call])


def parse(content: str, span_id: str, table: ReservedTable = DEFAULT) -> Content:
    """The decoded content of a span as Prose or typed calls. Raises MalformedSpan.

    A call without a key gets `span_id#i`, i from 1.
    """
    content = content.strip()
    if len(content) > MAX_PROSE_CHARS:
        raise MalformedSpan("oversized", f"{len(content)} characters, at most {MAX_PROSE_CHARS}")
    if content[:1] not in ("{", "["):
        if _CALL_INSIDE.search(content):
            raise MalformedSpan("malformed_call", "words around a call")
        text = inert(content, table).strip()
        if not text:
            raise MalformedSpan("empty", "no words")
        return Prose(text)
    try:
        value = _DECODER.decode(content)
    except (ValueError, RecursionError) as error:
        if content[0] == "[" and content[1:].lstrip()[:1] not in ("{", "[", '"', ""):
            return Prose(inert(content, table))  # "[softly] find a charger": words, not a list
        raise MalformedSpan("malformed_call", f"not JSON: {_why(error)}") from None
    return _calls(value, span_id, table)


def requests(closed: "SpanClosed", turn: int, lang: str = "en", zone: str = "driver", *, words: str = "",
             provenance: str = "live_speech") -> list[DelegateRequest]:
    """The requests of a closed span. `turn`: the user turn they belong to; `words`: what the user said in it, which typed calls
    need for the check of exact values. A span that is sent again gives the same keys."""
    shared = {"turn": turn, "opened_pos": closed.pos, "opened_seq": closed.seq, "lang": lang, "zone": zone, "provenance": provenance}
    if isinstance(closed.content, Prose):
        return [DelegateRequest(key=closed.span_id, prose=closed.content.text, **shared)]
    said = inert(words)[:MAX_PROSE_CHARS]
    return [DelegateRequest(key=call.key, prose=said, capability=call.capability, arguments=call.arguments, repair=call.repair, **shared)
            for call in closed.content]


def _calls(value: Any, span_id: str, table: ReservedTable) -> tuple[TypedCall, ...]:
    try:
        many = isinstance(value, list)
        if many and not 1 <= len(value) <= MAX_CALLS:
            raise MalformedSpan("malformed_call", f"{len(value)} calls, allowed: 1 to {MAX_CALLS}")
        found = _MANY.validate_python(value) if many else [_ONE.validate_python(value)]
        # A lone surrogate can't be stored or sent; it is found here and not in the journal.
        json.dumps(value, ensure_ascii=False).encode()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"] if part in _Call.model_fields or isinstance(part, int)) or "call"
        raise MalformedSpan("malformed_call", f"{where}: {first['type']}") from None
    except (UnicodeEncodeError, RecursionError) as error:
        raise MalformedSpan("malformed_call", _why(error)) from None
    calls = tuple(TypedCall(call.capability, inert_values(call.arguments, table), call.repair, call.key or f"{span_id}#{i}")
                  for i, call in enumerate(found, start=1))
    if len({call.key for call in calls}) != len(calls):
        raise MalformedSpan("malformed_call", "key: two calls share one")
    return calls


def _once(pairs: list[tuple[str, Any]]) -> dict:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field is given twice")
    return found


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON value")


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_float=_finite, parse_constant=_constant)


def _why(error: Exception) -> str:
    """Where it went wrong, without any of the words."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos + 1}"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return "a broken character" if isinstance(error, UnicodeError) else str(error)
