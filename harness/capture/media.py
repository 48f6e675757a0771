"""The evidence ring: the last minute of audio and frames of a session, cut to what the model had consumed when a span opened.

    ring.received(Audio(pos, samples, seq)); ring.received(Picture(pos, jpeg, "image/jpeg", seq))
    ring.consumed(pos, seq)                      # the front end took the unit that ends at `pos`
    snapshot = ring.freeze(opened_pos, opened_seq, window_s=12)
    evidence = Evidence.freeze(opened_pos, opened_seq, user, heard, media=snapshot)
    evidence.release()                           # the task ended

One clock: device samples (16 kHz, 0 at device boot); no other time enters. What was received and not consumed is outside, also
where it lies before the position: a late packet carries the sequence number of the unit it was given to.

A snapshot shares the ring's memory: views cut to the sample, nothing copied. A buffer handed over as a `bytearray` is the ring's own;
it is zeroed once it has left the ring and no snapshot holds it.
"""
import bisect
import logging
from dataclasses import dataclass, field
from typing import Any, Iterator

from pydantic import BaseModel, ConfigDict, Field

from harness.errors import BadRequest
from harness.evidence import RATE, AudioClip, Frame
from venus_edge.metrics import METRICS

log = logging.getLogger(__name__)


class RingLimits(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    keep_s: float = Field(60.0, gt=0)
    """Consumed media older than this, counted back from the consumed position, fall out."""
    max_bytes: int = Field(16 * 1024 * 1024, ge=1)
    max_frames: int = Field(48, ge=0)
    max_items: int = Field(4096, ge=1)
    max_ahead_s: float = Field(30.0, gt=0)
    """Audio this far past the consumed position is of another clock: refused."""
    frame_skew_s: float = Field(1.0, ge=0)
    """A frame stamped this far past everything known is moved back to there."""


@dataclass(frozen=True)
class Audio:
    """int16 mono samples at 16 kHz, the first at device sample `pos`; given to the model with unit `seq`.

    `data`: anything with a contiguous buffer. Only what the device sent: zeros put in for a closed gate are no media.
    """

    pos: int
    data: Any
    seq: int


@dataclass(frozen=True)
class Picture:
    """An encoded frame taken at device sample `pos`; given to unit `seq`."""

    pos: int
    data: Any
    mime: str
    seq: int


@dataclass(eq=False, slots=True)
class _Held:
    """One received item. `holders`: snapshots that show it."""

    start: int
    end: int
    seq: int
    mime: str
    view: memoryview | None
    owned: bytearray | None
    holders: int = 0
    in_ring: bool = True

    def drop(self) -> None:
        """Forget the bytes once neither the ring nor a snapshot needs them; zero them first where they are ours."""
        if self.in_ring or self.holders or self.view is None:
            return
        if self.owned is not None:
            self.owned[:] = bytes(len(self.owned))
        self.view.release()
        self.view = self.owned = None


@dataclass(eq=False)
class MediaSnapshot:
    """Frozen media, oldest first. Made with one holder; `retain` for each further task, `release` when one ends."""

    items: tuple[AudioClip | Frame, ...]
    _sources: list[_Held] = field(default_factory=list, repr=False)
    _holders: int = 1

    def __iter__(self) -> Iterator[AudioClip | Frame]:
        return iter(self.items)

    def retain(self) -> None:
        if self._holders < 1:
            raise BadRequest("media: the snapshot was released", field="media")
        self._holders += 1

    def release(self) -> None:
        """One holder fewer; the last one frees the views. Reading them afterwards raises ValueError. More calls do nothing."""
        if self._holders < 1:
            return
        self._holders -= 1
        if self._holders:
            return
        for item in self.items:
            _free(item.view)
        self.items = ()
        for source in self._sources:
            source.holders -= 1
            source.drop()
        self._sources = []


class EvidenceRing:
    """One per session; not shared between threads."""

    def __init__(self, limits: RingLimits | None = None):
        self._limits = limits or RingLimits()
        self._audio: list[_Held] = []
        self._frames: list[_Held] = []
        self._bytes = 0
        self._pos: int | None = None
        self._seq = 0
        self._known = 0
        self._closed = False

    @property
    def nbytes(self) -> int:
        """Bytes that the ring holds (snapshots of fallen-out media excluded)."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._audio) + len(self._frames)

    def received(self, item: Audio | Picture) -> bool:
        """Take what arrived, in any order. False, and a counter, if it is refused: a duplicate, too old, from another clock, too big;
        the buffer is then still the caller's.

        Raises BadRequest naming the field.
        """
        if item.pos < 0 or item.seq < 0:
            raise BadRequest(f"{'pos' if item.pos < 0 else 'seq'}: {min(item.pos, item.seq)} is negative", field="pos" if item.pos < 0 else "seq")
        try:
            view = memoryview(item.data).cast("B").toreadonly()
        except TypeError:
            raise BadRequest(f"data: a contiguous buffer is needed, not {type(item.data).__name__}", field="data") from None
        owned = item.data if isinstance(item.data, bytearray) else None
        held = (_Held(item.pos, item.pos + len(view) // 2, item.seq, "", view, owned) if isinstance(item, Audio)
                else _Held(self._steady(item.pos), 0, item.seq, item.mime, view, owned))
        if held.mime:
            held.end = held.start
        elif len(view) % 2 or not view:
            raise BadRequest(f"data: {len(view)} bytes are no whole number of 16-bit samples above 0", field="data")
        why = self._refusal(held)
        if why:
            METRICS.add(f"venus_harness_evidence_{why}_total")
            return False
        items = self._frames if held.mime else self._audio
        bisect.insort(items, held, key=lambda h: (h.start, h.seq))
        self._bytes += len(view)
        if not held.mime:
            self._known = max(self._known, held.end)
        self._evict()
        return True

    def consumed(self, pos: int, seq: int) -> None:
        """The front end has taken everything given to units up to `seq`, and the audio before `pos`. Never goes back."""
        self._pos = max(pos, self._pos or 0)
        self._seq = max(seq, self._seq)
        self._known = max(self._known, self._pos)
        self._evict()

    def freeze(self, opened_pos: int, opened_seq: int, window_s: float) -> MediaSnapshot:
        """What was consumed by (opened_pos, opened_seq): audio in [end - window, end), each sample once, and frames up to `end`, which
        is `opened_pos`, or the consumed position where that is less. Costs a microsecond per packet held."""
        end = min(opened_pos, self._pos or 0)
        start, seq = max(0, end - round(window_s * RATE)), min(opened_seq, self._seq)
        items: list[AudioClip | Frame] = []
        sources: list[_Held] = []
        cursor = start
        for held in self._audio:
            if held.start >= end:
                break
            first, last = max(held.start, cursor), min(held.end, end)
            if held.seq <= seq and first < last:
                items.append(AudioClip(first, last, held.view[2 * (first - held.start):2 * (last - held.start)]))
                sources.append(held)
                cursor = last
        for held in self._frames:
            if start <= held.start <= end and held.seq <= seq:
                items.append(Frame(held.start, held.view[:], held.mime))
                sources.append(held)
        for held in sources:
            held.holders += 1
        return MediaSnapshot(tuple(items), sources)

    def restart(self) -> None:
        """The device's clock began again at 0 (a reboot): nothing of the old one can be placed any more."""
        for held in self._audio + self._frames:
            self._forget(held)
        self._audio, self._frames, self._bytes, self._pos, self._seq, self._known = [], [], 0, None, 0, 0

    def close(self) -> None:
        """Empty the ring, zeroing what is its own; what a snapshot still shows is zeroed at its release."""
        self.restart()
        self._closed = True

    def _steady(self, pos: int) -> int:
        latest = self._known + round(self._limits.frame_skew_s * RATE)
        if self._known and pos > latest:
            METRICS.add("venus_harness_evidence_skew_total")
            return self._known
        return pos

    def _refusal(self, held: _Held) -> str:
        limits = self._limits
        if self._closed:
            return "late"
        if len(held.view) > limits.max_bytes or held.mime and not limits.max_frames:
            return "too_big"
        if self._pos is not None:
            if held.end < self._pos - limits.keep_s * RATE:
                return "too_old"
            if held.start > self._pos + limits.max_ahead_s * RATE:
                return "skew"
        items = self._frames if held.mime else self._audio
        at = bisect.bisect_right(items, held.start, key=lambda h: h.start)
        for known in items[max(0, at - 2):at]:
            if held.mime and known.start == held.start and known.view == held.view or not held.mime and known.end >= held.end:
                return "duplicate"
        return ""

    def _evict(self) -> None:
        limits = self._limits
        oldest = (self._pos or 0) - limits.keep_s * RATE
        self._trim(self._audio, lambda held: held.end <= oldest)
        self._trim(self._frames, lambda held: held.start < oldest)
        while len(self._frames) > limits.max_frames:
            self._pop(self._frames)
        while self._bytes > limits.max_bytes or len(self) > limits.max_items:
            both = [items for items in (self._audio, self._frames) if items]
            self._pop(min(both, key=lambda items: items[0].start))
            METRICS.add("venus_harness_evidence_full_total")

    def _trim(self, items: list[_Held], old) -> None:
        while items and old(items[0]):
            self._pop(items)

    def _pop(self, items: list[_Held]) -> None:
        held = items.pop(0)
        self._bytes -= len(held.view)
        self._forget(held)

    @staticmethod
    def _forget(held: _Held) -> None:
        held.in_ring = False
        held.drop()


def _free(view: memoryview) -> None:
    try:
        view.release()
    except BufferError:  # a worker still reads it; it goes when that reference goes
        log.warning("a worker kept a view of released evidence")
