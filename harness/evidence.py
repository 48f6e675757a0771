"""What a delegated request may know: the words and media consumed when it opened, frozen and hashed.

User words count if they ended by `opened_pos`; assistant words only as far as the device confirmed them played; media as the
evidence ring cut them (harness/capture/media.py). What arrived later, even a moment, is outside.
"""
import copy
import hashlib
import json
import re
from dataclasses import dataclass, field, replace
from typing import Iterable, Protocol, runtime_checkable

from harness.errors import BadRequest

REPAIRS = ("new", "update", "cancel", "status", "repeat")
MAX_PROSE_CHARS = 4000
MAX_ARGUMENTS_CHARS = 1 << 16
"""As JSON. With its escapes it must fit into one record of a journal (harness/journal: MAX_RECORD_BYTES)."""
MAX_CHARS = {"key": 256, "capability": 128, "lang": 16, "zone": 64, "prose": MAX_PROSE_CHARS}
"""Longest text of each field of a request."""
RATE = 16_000
"""Device samples per second."""


@dataclass(frozen=True)
class UserWords:
    """User speech in [start, end) device samples."""

    turn: int
    text: str
    start: int
    end: int
    speaker: str = "occupant"


@dataclass(frozen=True)
class HeardWords:
    """Words of the assistant that left the loudspeaker by device sample `end`; `confirmed` by the device's report."""

    seg: str
    text: str
    end: int
    confirmed: bool = True


@dataclass(frozen=True)
class AudioClip:
    """The user's microphone in [start, end) device samples: int16 mono, little endian, as a read-only view of shared memory."""

    start: int
    end: int
    view: memoryview = field(compare=False, repr=False)


@dataclass(frozen=True)
class Frame:
    """An encoded picture taken at device sample `pos`, as a read-only view of shared memory."""

    pos: int
    view: memoryview = field(compare=False, repr=False)
    mime: str = "image/jpeg"


@runtime_checkable
class Releasable(Protocol):
    """Whoever keeps the media alive: each task retains it and releases it once."""

    def retain(self) -> None: ...

    def release(self) -> None: ...


@dataclass(frozen=True)
class EvidenceSummary:
    """What a planner may know of the evidence: words and counts, never media. The fields fit PlanRequest."""

    said: tuple[str, ...]
    """What the user said, oldest first, control tokens made inert."""
    heard: str
    """The newest of our words that the device confirmed."""
    media: str
    """"3 frames, 8.0 s audio"; "" where there are none."""
    frames: int
    audio_s: float
    gaps: int
    """Places where the audio is missing between two clips."""


@dataclass(frozen=True)
class Evidence:
    """Frozen at the instant the request opened. `hash` goes into the ledger, the words stay out of it.

    Media count in the hash by place, length and kind; their bytes do not. `release` once for the task that it was made for; further
    tasks of the same span `retain` it first.
    """

    opened_pos: int
    opened_seq: int
    user: tuple[UserWords, ...] = ()
    assistant: tuple[HeardWords, ...] = ()
    media: tuple[AudioClip | Frame, ...] = ()
    holder: Releasable | None = field(default=None, compare=False, repr=False)
    hash: str = field(default="", init=False)

    def __post_init__(self):
        facts = [self.opened_pos, self.opened_seq,
                 [[w.turn, w.text, w.start, w.end, w.speaker] for w in self.user],
                 [[w.seg, w.text, w.end] for w in self.assistant]]
        if self.media:
            facts.append([["audio", m.start, m.end] if isinstance(m, AudioClip) else ["frame", m.pos, m.mime, len(m.view)] for m in self.media])
        digest = hashlib.sha256(json.dumps(facts, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()
        object.__setattr__(self, "hash", digest)

    @classmethod
    def freeze(cls, opened_pos: int, opened_seq: int, user: Iterable[UserWords] = (), assistant: Iterable[HeardWords] = (),
               window: int = 60 * RATE, media: Iterable[AudioClip | Frame] = ()) -> "Evidence":
        """Cut both histories to [opened_pos - window, opened_pos] device samples, confirmed words only.

        `media`: a MediaSnapshot of the evidence ring, whose holder this evidence becomes, or clips and frames.
        """
        def inside(end: int) -> bool:
            return opened_pos - window <= end <= opened_pos
        return cls(opened_pos, opened_seq, tuple(w for w in user if inside(w.end)),
                   tuple(w for w in assistant if w.confirmed and inside(w.end)), tuple(media),
                   media if isinstance(media, Releasable) else None)

    def retain(self) -> None:
        """One more task holds the media."""
        if self.holder is not None:
            self.holder.retain()

    def release(self) -> None:
        """A task that held the media ended; after the last one they can't be read any more. The words stay."""
        if self.holder is not None:
            self.holder.release()

    def inert(self) -> "Evidence":
        """The same for a worker: no control token is spelled in its words. Itself where none was."""
        from harness.capture.reserved import inert

        user, heard = (tuple(w if (text := inert(w.text)) == w.text else replace(w, text=text) for w in words)
                       for words in (self.user, self.assistant))
        return self if (user, heard) == (self.user, self.assistant) else replace(self, user=user, assistant=heard)

    def summary(self) -> EvidenceSummary:
        """Words and counts for a planner."""
        from harness.capture.reserved import inert  # here, because the capture package is built on this module

        clips = [m for m in self.media if isinstance(m, AudioClip)]
        frames = len(self.media) - len(clips)
        audio_s = round(sum(c.end - c.start for c in clips) / RATE, 3)
        parts = [f"{frames} frame{'s' * (frames != 1)}"] * bool(frames) + [f"{audio_s:.1f} s audio"] * bool(clips)
        return EvidenceSummary(tuple(inert(w.text) for w in self.user), inert(self.assistant[-1].text) if self.assistant else "",
                               ", ".join(parts), frames, audio_s, sum(a.end < b.start for a, b in zip(clips, clips[1:])))


@dataclass(frozen=True)
class DelegateRequest:
    """A private request of the front end. `prose`: the user's own words; `repair`: one of REPAIRS.

    An empty `key` is derived from where and what was asked. Raises BadRequest naming the wrong field.
    """

    key: str
    turn: int
    opened_pos: int
    opened_seq: int
    prose: str
    capability: str | None = None
    arguments: dict = field(default_factory=dict)
    repair: str = "new"
    lang: str = "en"
    zone: str = "driver"
    provenance: str = "live_speech"
    """Who asked: live_speech, or a name of up to 32 letters for what no occupant said here and now (it may not actuate)."""

    def __post_init__(self):
        if self.repair not in REPAIRS:
            raise BadRequest(f"repair: '{self.repair}' is not one of {', '.join(REPAIRS)}", field="repair")
        for name, most in MAX_CHARS.items():
            value = getattr(self, name)
            if not isinstance(value, str) and not (name == "capability" and value is None):
                raise BadRequest(f"{name}: text is needed, not {type(value).__name__}", field=name)
            if len(value or "") > most:
                raise BadRequest(f"{name}: {len(value)} characters, at most {most}", field=name)
        if not isinstance(self.arguments, dict):
            raise BadRequest(f"arguments: a mapping is needed, not {type(self.arguments).__name__}", field="arguments")
        try:
            canonical = json.dumps(self.arguments, sort_keys=True, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise BadRequest(f"arguments: JSON values are needed ({error})", field="arguments") from None
        if len(canonical) > MAX_ARGUMENTS_CHARS:
            raise BadRequest(f"arguments: {len(canonical)} characters as JSON, at most {MAX_ARGUMENTS_CHARS}", field="arguments")
        if not isinstance(self.provenance, str) or not re.fullmatch(r"[a-z][a-z0-9_]{0,31}", self.provenance):
            raise BadRequest(f"provenance: {self.provenance!r} is not 1 to 32 letters, digits and '_'", field="provenance")
        # The caller's dict must not change a request that was already accepted.
        object.__setattr__(self, "arguments", copy.deepcopy(self.arguments))
        if not self.key:
            facts = f"{self.turn}/{self.opened_pos}/{self.opened_seq}/{self.repair}/{self.capability}/{canonical}/{self.prose}"
            object.__setattr__(self, "key", hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()[:32])
