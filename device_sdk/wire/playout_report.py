"""`venus.playout`: the device's cumulative report of what really left the loudspeaker."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, model_validator

from device_sdk.wire.models import BootText, Samples, SegId, U32, Wire, read
from device_sdk.wire.topics import REPORT_MAX_BYTES


class PlayState(StrEnum):
    """Where one segment stands on the device. `paused` is for devices that can hold speech (a phone call, a warning tone)."""

    QUEUED = "queued"
    PLAYING = "playing"
    UNDERRUN = "underrun"
    PAUSED = "paused"
    FLUSHED = "flushed"
    ENDED = "ended"
    LOST = "lost"

    @property
    def final(self) -> bool:
        return self in (PlayState.FLUSHED, PlayState.ENDED, PlayState.LOST)


Range = Annotated[list[Samples], Field(min_length=2, max_length=2)]


class PlayoutReport(Wire):
    """Everything about one segment so far; the newest (boot, n) wins, so loss and reordering do no harm."""

    v: Literal[1] = 1
    boot: BootText
    n: U32
    """Counts up per boot over all segments; a repeated edge keeps its n."""
    seg: SegId
    r: Annotated[int, Field(ge=8_000, le=48_000)]
    """Samples per second of this segment; the unit of played, buf, rx, dac, err, gaps and lost."""
    played: Samples
    """Samples whose DAC time has passed at `t`."""
    buf: Samples
    """Received and not yet played: rx - played."""
    rx: Samples
    """Highest contiguous sample received."""
    t: Samples
    """Device monotonic microseconds at which `played` was true."""
    pos: Samples
    """The same moment as a device position."""
    st: Literal["queued", "playing", "underrun", "paused", "flushed", "ended", "lost"]
    err: Samples = 0
    dac: Samples = 0
    """Samples between handing over and leaving the loudspeaker."""
    gaps: Annotated[list[Range], Field(max_length=8)] = []
    """[start, len]: len samples of silence were rendered before sample `start`; nothing was lost. The last eight."""
    vol: Annotated[float, Field(ge=0, le=1)] = 1.0
    out: Annotated[str, Field(max_length=16)] = "spk"
    why: Literal["", "vad", "cloud", "user", "route"] = ""
    first_pos: Annotated[int, Field(ge=-1, le=2**53)] = -1
    """Device position at which the first sample left the loudspeaker; -1 before."""
    lost: Annotated[list[Range], Field(max_length=4)] | None = None
    """[start, len]: samples that will never be rendered (buffer full, hole in the stream). Absent if there are none."""

    @model_validator(mode="after")
    def _adds_up(self):
        if self.played + self.buf != self.rx:
            raise ValueError("played + buf must equal rx")
        return self

    @property
    def state(self) -> PlayState:
        return PlayState(self.st)


_REPORT: TypeAdapter[PlayoutReport] = TypeAdapter(PlayoutReport)


def decode_report(payload: bytes) -> PlayoutReport:
    """Read one report; raises WireError that names the field."""
    return read(_REPORT, payload, REPORT_MAX_BYTES)


def encode_report(report: PlayoutReport) -> bytes:
    """Write one report; raises TooLarge above 600 bytes."""
    return report.to_bytes(REPORT_MAX_BYTES)
