"""The contract of a full-duplex front end: one unit of input in, one decision out.

    decision = session.step(UnitInput(...))

Every `pos` is a device sample (16 kHz microphone clock, 0 at device boot). Control travels in typed fields only: text is
never parsed for tags, so a tag spelled in words is inert.
"""
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

MIC_RATE = 16_000
"""Samples per second of every microphone signal and of every `pos`."""


class Kind(StrEnum):
    """What the front end does with the floor in this unit."""

    LISTEN = "listen"
    SPEAK = "speak"
    END_TURN = "end_turn"


class Verdict(StrEnum):
    """The judgement of user speech that overlaps the assistant's."""

    FLUSH = "flush"
    """The user takes the floor: stop what is being played."""
    RESTORE = "restore"
    """A backchannel, a cough, someone else: undo the device's ducking and go on."""


@dataclass(frozen=True)
class AudioPatch:
    """Samples that arrived after their unit was formed (the gate's pre-roll): int16 mono at `pos`."""

    pos: int
    samples: np.ndarray


@dataclass(frozen=True)
class PlayoutMark:
    """What the device confirmed of one segment: `played` samples at the segment's own `rate` have left the loudspeaker."""

    seg: str
    played: int
    rate: int
    state: str
    """queued | playing | underrun | paused | flushed | ended | lost"""
    confirmed: bool = True

    @property
    def final(self) -> bool:
        return self.state in ("flushed", "ended", "lost")


@dataclass(frozen=True)
class AdmittedReply:
    """A prepared reply that the harness admitted into the conversation: the words are final, the timing and voice are ours."""

    id: str
    text: str
    lang: str = "en"
    kind: str = "result"
    """result | ack | progress | notice | question"""


@dataclass(frozen=True)
class UnitInput:
    """Everything new since the last unit. `audio`: int16 mono, exactly `unit_ms` long, starting at `pos`.

    `gated` says that the device's audio gate was closed for the whole unit (the samples are zeros that nobody sent).
    """

    seq: int
    pos: int
    audio: np.ndarray
    gated: bool = False
    backfill: tuple[AudioPatch, ...] = ()
    frames: tuple[Any, ...] = ()
    playout: tuple[PlayoutMark, ...] = ()
    replies: tuple[AdmittedReply, ...] = ()


@dataclass(frozen=True)
class Span:
    """A piece of spoken text and the samples that carry it: [start, end) at the segment's rate."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class SegmentChunk:
    """More of one speech segment: int16 mono at `rate`; `start` counts from the segment's first sample."""

    seg: str
    start: int
    rate: int
    samples: np.ndarray
    spans: tuple[Span, ...]
    last: bool
    reply_id: str | None = None
    """The admitted reply that this segment speaks, or None for the front end's own words."""
    turn: int = 0
    """The user turn that it answers."""


@dataclass(frozen=True)
class UserText:
    """What the recogniser made of user speech in [start, end) device samples."""

    turn: int
    text: str
    start: int
    end: int
    final: bool
    speaker: str = "occupant"
    confidence: float = 1.0
    backchannel: bool = False
    """Heard, and judged to be a listener's signal that asks for nothing."""


@dataclass(frozen=True)
class DelegateEvent:
    """A private request to the harness. Evidence is frozen at `opened_pos`: what the front end had consumed by then."""

    span: str
    opened_seq: int
    opened_pos: int
    turn: int
    prose: str
    """The user's own words."""
    capability: str | None = None
    arguments: dict = field(default_factory=dict)
    repair: str = "new"
    """new | update (replaces the latest live task) | cancel | status | repeat"""
    key: str = ""
    """Idempotency key: the same key again is the same request."""
    lang: str = "en"
    zone: str = "driver"
    """Where the speaker sits, as far as the front end can tell."""
    provenance: str = "live_speech"
    """Who asks: only live speech of an occupant may have an effect on the vehicle."""


@dataclass(frozen=True)
class Overlap:
    """The verdict on user speech that began at `onset` while `seg` was playing."""

    seg: str
    verdict: Verdict
    reason: str
    """stop | interruption | backchannel | short | noise"""
    onset: int


@dataclass(frozen=True)
class Decision:
    """The front end's one answer to one unit."""

    seq: int
    kind: Kind = Kind.LISTEN
    segments: tuple[SegmentChunk, ...] = ()
    user: tuple[UserText, ...] = ()
    delegates: tuple[DelegateEvent, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    user_speaking: bool = False
    """Voice activity as the front end sees it now: no reply may be admitted over it."""
    turn_open: bool = False
    """The user's turn has begun and is not yet judged complete."""
    dropped: tuple[str, ...] = ()
    """Admitted replies the front end declined to speak."""
    timings: dict = field(default_factory=dict)
    """Milliseconds of this unit's notable work: endpoint, recognition, policy, synthesis."""


@dataclass(frozen=True)
class FrontEndInfo:
    """Told at open: how a front end wants its units and what it speaks."""

    name: str
    unit_ms: int
    out_rate: int
    languages: tuple[str, ...]


@dataclass(frozen=True)
class SessionOptions:
    """Per-session choices. `now_pos` is the device position of the first unit."""

    session: str
    lang: str = "en"
    now_pos: int = 0
    biasing: tuple[str, ...] = ()
    """Names (places, streets, contacts) the recogniser should favour and spell this way."""


class FrontEndSession(Protocol):
    def step(self, unit: UnitInput) -> Decision:
        """Consume one unit; never blocks longer than a few milliseconds (work goes to the runtime's threads)."""
        ...

    def close(self) -> None: ...


class FrontEnd(Protocol):
    info: FrontEndInfo

    def open(self, options: SessionOptions) -> FrontEndSession: ...

    def close(self) -> None: ...
