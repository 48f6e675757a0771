"""The causal timeline of one session: one ordered, bounded ring of what was heard, decided, said and confirmed.

Insertion is by device position, not by arrival. Two rules: a task sees only what the front end had consumed when its delegate
opened; assistant words count only as far as the device confirmed them played.
"""
import bisect
from dataclasses import dataclass, field

from cloud_core.front_end import PlayoutMark, SegmentChunk, Span
from venus_edge.metrics import METRICS

CAPACITY = 2000


@dataclass(frozen=True, order=True)
class Entry:
    """One fact at `pos`; `seq` breaks ties by arrival. `who`: user | assistant | tool | system."""

    pos: int
    seq: int
    what: str = field(compare=False)
    who: str = field(compare=False)
    text: str = field(compare=False, default="")
    data: dict = field(compare=False, default_factory=dict)


@dataclass
class SpokenSegment:
    """One speech output: its spans as the front end aligned them, and how far the device confirmed it."""

    seg: str
    rate: int
    turn: int
    reply_id: str | None
    opened_pos: int
    spans: list[Span] = field(default_factory=list)
    length: int = 0
    complete: bool = False
    played: int = 0
    state: str = "queued"
    confirmed: bool = True

    @property
    def final(self) -> bool:
        return self.state in ("flushed", "ended", "lost")

    def heard(self) -> str:
        """The words wholly at or below `played`: the only ones that the user can have heard in full."""
        return join_words(s.text for s in self.spans if s.end <= self.played)

    def unheard(self) -> str:
        return join_words(s.text for s in self.spans if s.end > self.played)

    def text(self) -> str:
        return join_words(s.text for s in self.spans)


def join_words(words) -> str:
    """Words or phrases with one space between them."""
    return " ".join(w.strip() for w in words if w.strip())


class Timeline:
    """Bounded: the oldest entries fall out and are counted; finished segments beyond `keep` are forgotten."""

    def __init__(self, capacity: int = CAPACITY, keep: int = 64):
        self._entries: list[Entry] = []
        self._capacity, self._keep = capacity, keep
        self._seq = 0
        self.segments: dict[str, SpokenSegment] = {}

    def add(self, pos: int, what: str, who: str, text: str = "", **data) -> Entry:
        self._seq += 1
        entry = Entry(pos, self._seq, what, who, text, data)
        bisect.insort(self._entries, entry)
        if len(self._entries) > self._capacity:
            self._entries.pop(0)
            METRICS.add("venus_cloud_timeline_dropped")
        return entry

    def chunk(self, chunk: SegmentChunk, pos: int) -> SpokenSegment:
        """More of a segment was decided at `pos`."""
        seg = self.segments.get(chunk.seg)
        if seg is None:
            seg = self.segments[chunk.seg] = SpokenSegment(chunk.seg, chunk.rate, chunk.turn, chunk.reply_id, pos)
            for old in [k for k, s in self.segments.items() if s.final][:max(0, len(self.segments) - self._keep)]:
                del self.segments[old]
        seg.spans.extend(chunk.spans)
        seg.length = max(seg.length, chunk.start + len(chunk.samples))
        seg.complete = seg.complete or chunk.last
        return seg

    def played(self, mark: PlayoutMark) -> SpokenSegment | None:
        """The device's word on a segment; never goes backwards; what has ended stays so, an assumed end is corrected by the real one."""
        seg = self.segments.get(mark.seg)
        if seg is None:
            return None
        seg.played = max(seg.played, min(mark.played, seg.length))
        if not seg.final or mark.final and mark.confirmed and not seg.confirmed:
            seg.state, seg.confirmed = mark.state, mark.confirmed
        return seg

    def speaking(self) -> bool:
        """A segment is queued or playing."""
        return any(not s.final for s in self.segments.values())

    def before(self, pos: int) -> list[Entry]:
        """Everything at or before `pos`, oldest first: what a delegate opened there may see."""
        return self._entries[:bisect.bisect_right(self._entries, Entry(pos, 1 << 60, "", ""))]
