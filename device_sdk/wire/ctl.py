"""`venus.ctl`: one pydantic model per control message, and the two functions that read and write them."""

from typing import Annotated, Any, Literal, Union

from pydantic import Field, TypeAdapter

from device_sdk.wire.models import BootText, Samples, Short, Text, U32, Wire, read
from device_sdk.wire.topics import CTL_MAX_BYTES

Reason = Literal["vad", "cloud", "user", "route"]
MicMode = Literal["stamped"]
PlayoutMode = Literal["stamped"]


class Hello(Wire):
    """Device -> agent, repeated until welcomed: what this device speaks and where its clock stands."""

    v: Literal[1] = 1
    type: Literal["hello"] = "hello"
    protocols: Annotated[list[int], Field(min_length=1, max_length=16)]
    boot: BootText
    pos: Samples
    t: Samples
    """Device monotonic microseconds at `pos`."""
    mic: Annotated[list[Short], Field(min_length=1, max_length=4)] = ["stamped"]
    playout: Annotated[list[Short], Field(min_length=1, max_length=4)] = ["stamped"]
    rate: Literal[16000] = 16000
    capabilities: dict[Short, Any] = {}


class Welcome(Wire):
    """Agent -> device: the chosen protocol and rates."""

    v: Literal[1] = 1
    type: Literal["welcome"] = "welcome"
    protocol: Annotated[int, Field(ge=1)]
    session: Short
    unit_ms: Annotated[int, Field(ge=10, le=5000)]
    mic: MicMode = "stamped"
    playout: PlayoutMode = "stamped"
    mic_packet_ms: Annotated[int, Field(ge=10, le=300, multiple_of=10)] = 20
    report_ms: Annotated[int, Field(ge=20, le=1000)] = 100


class Error(Wire):
    """Either way: what was wrong with the message `re`, and what is allowed."""

    v: Literal[1] = 1
    type: Literal["error"] = "error"
    code: Short
    message: Text
    allowed: Text = ""
    re: Short = ""
    """`type` (or topic) of the message that this answers."""


class Ping(Wire):
    v: Literal[1] = 1
    type: Literal["ping"] = "ping"
    n: U32


class Pong(Wire):
    """The device's clock pair, for mapping `t` to `pos` and both to the agent's time."""

    v: Literal[1] = 1
    type: Literal["pong"] = "pong"
    n: U32
    pos: Samples
    t: Samples


class Gate(Wire):
    """The audio gate opened (before the pre-roll packets) or closed (after the last packet)."""

    v: Literal[1] = 1
    type: Literal["gate"] = "gate"
    open: bool
    pos: Samples
    """Open: position of the first sample that follows. Close: position after the last sample sent."""
    withheld: Samples = 0
    """Samples not sent since the last close."""


class Vad(Wire):
    v: Literal[1] = 1
    type: Literal["vad"] = "vad"
    on: bool
    pos: Samples
    """Onset or offset of the speech, dated back."""


class Reflex(Wire):
    """What the device did by itself or when told, and where its playout stood."""

    v: Literal[1] = 1
    type: Literal["reflex"] = "reflex"
    action: Literal["duck", "restore", "flush"]
    reason: Reason
    pos: Samples
    seg: Annotated[str, Field(max_length=64)] = ""
    played: Samples = 0


class Flush(Wire):
    """Agent -> device: stop `seg` (empty: everything). Repeated until its final playout report arrives."""

    v: Literal[1] = 1
    type: Literal["flush"] = "flush"
    seg: Annotated[str, Field(max_length=64)]
    id: Short


class Restore(Wire):
    """Agent -> device: the overlap was no interruption; undo the ducking."""

    v: Literal[1] = 1
    type: Literal["restore"] = "restore"
    id: Short
    reason: Short = ""


class Volume(Wire):
    v: Literal[1] = 1
    type: Literal["volume"] = "volume"
    level: Annotated[float, Field(ge=0, le=1)]


class Screen(Wire):
    """Agent -> device: an outcome that was not spoken after all, for a display. Each `id` is sent once."""

    v: Literal[1] = 1
    type: Literal["screen"] = "screen"
    id: Short
    task: Short
    kind: Literal["result", "notice", "question"]
    text: Text
    reason: Short
    """Why it was not spoken: declined, interrupted, topic_changed, expired, …"""
    lang: Short = "en"


class Ack(Wire):
    """Agent -> device: the playout edge `n` of this boot arrived."""

    v: Literal[1] = 1
    type: Literal["ack"] = "ack"
    boot: BootText
    n: U32


class Bye(Wire):
    v: Literal[1] = 1
    type: Literal["bye"] = "bye"
    reason: Short = ""


Ctl = Union[Hello, Welcome, Error, Ping, Pong, Gate, Vad, Reflex, Flush, Restore, Volume, Screen, Ack, Bye]
_CTL: TypeAdapter[Ctl] = TypeAdapter(Annotated[Ctl, Field(discriminator="type")])
CTL_TYPES = ("hello", "welcome", "error", "ping", "pong", "gate", "vad", "reflex", "flush", "restore", "volume", "screen", "ack", "bye")


def decode_ctl(payload: bytes) -> Ctl:
    """Read one control message; raises WireError that names the field and what is allowed."""
    return read(_CTL, payload, CTL_MAX_BYTES)


def encode_ctl(message: Ctl) -> bytes:
    """Write one control message; raises TooLarge above 8192 bytes."""
    return message.to_bytes(CTL_MAX_BYTES)
