"""What the front end says: one segment for each reply, synthesised clause by clause in a thread, emitted as soon as it is made."""
from collections import deque
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field

import numpy as np

from cloud_core.front_end import MIC_RATE, PlayoutMark, SegmentChunk, Span
from cloud_core.speech import Voice, split_clauses
from venus_edge.clock import Clock
from venus_edge.ids import new_id
from venus_edge.metrics import METRICS

MAX_QUEUED = 8
MAX_CHARS = 1200
"""About a minute of speech: a longer reply is cut at a sentence, and counted."""
GRACE_S = 2.0
"""A segment that the device never reported as final counts as ended this long after it should have been."""


@dataclass
class Utterance:
    """One reply on its way to the loudspeaker."""

    text: str
    reply_id: str | None
    kind: str
    turn: int
    lang: str = "en"
    seg: str = field(default_factory=lambda: new_id("seg"))
    clauses: int = 0
    made: deque = field(default_factory=deque)
    """(Speech, milliseconds it took), in order; at most `clauses`."""
    emitted: int = 0
    """Clauses emitted."""
    samples: int = 0
    """Samples emitted."""
    cancelled: bool = False
    job: Future | None = None
    played: int = 0
    moved: bool = False
    """The device reported progress since the last unit."""
    alive_pos: int = 0
    """When it last grew or progressed."""


class Speaker:
    """Holds at most MAX_QUEUED utterances; `pump` gives what may be sent now. Not thread-safe: the session's step owns it."""

    def __init__(self, voice: Voice, pool: Executor, clock: Clock):
        self._voice, self._pool, self._clock = voice, pool, clock
        self.queue: deque[Utterance] = deque()
        self.current: Utterance | None = None
        self.synthesis_ms: float | None = None

    @property
    def active(self) -> bool:
        """A segment was sent and is not yet known to have ended."""
        return self.current is not None and self.current.emitted > 0

    @property
    def seg(self) -> str:
        return self.current.seg if self.current else ""

    def offer(self, text: str, reply_id: str | None, kind: str, turn: int, lang: str = "en") -> bool:
        """Queue one reply; False when the queue is full or the text holds nothing to say."""
        text = " ".join(text.split())
        if len(text) > MAX_CHARS:
            cut = max(text.rfind(end, 0, MAX_CHARS) for end in (". ", "! ", "? "))
            text = text[:cut + 1] if cut > 0 else text[:MAX_CHARS]
            METRICS.add("venus_cascade_replies_cut_total")
        if not text or len(self.queue) >= MAX_QUEUED:
            METRICS.add("venus_cascade_replies_dropped_total")
            return False
        item = Utterance(text, reply_id, kind, turn, lang)
        item.clauses = len(split_clauses(text))
        self.queue.append(item)
        self._prepare()
        return True

    def _prepare(self) -> None:
        """Have the next utterance made while it waits for its moment."""
        if self.queue and self.queue[0].job is None:
            item = self.queue[0]
            item.job = self._pool.submit(self._make, item)

    def _make(self, item: Utterance) -> None:
        begun = self._clock.now()
        for speech in self._voice.stream(item.text, item.lang):
            if item.cancelled:
                return
            now = self._clock.now()
            item.made.append((speech, (now - begun) * 1e3))
            begun = now

    def pump(self, pos: int, may_begin: bool) -> tuple[SegmentChunk, ...]:
        """The chunks to send in this unit. A new segment begins only when `may_begin` and none is playing."""
        self._expire(pos)
        if self.current is None and self.queue and may_begin and self.queue[0].made:
            self.current = self.queue.popleft()
            self._prepare()
        item, chunks = self.current, []
        if item is None:
            self._check(self.queue[0] if self.queue else None)
            return ()
        while item.made and not item.cancelled:
            speech, took_ms = item.made.popleft()
            if item.emitted == 0:
                self.synthesis_ms = took_ms
            item.emitted += 1
            spans = tuple(Span(s.text, s.start + item.samples, s.end + item.samples) for s in speech.spans)
            chunks.append(SegmentChunk(item.seg, item.samples, speech.rate, speech.samples, spans, item.emitted == item.clauses,
                                       item.reply_id, item.turn))
            item.samples += len(speech.samples)
            item.alive_pos = pos
        self._check(item)
        return tuple(chunks)

    def _check(self, item: Utterance | None) -> None:
        """A synthesis that failed ends its utterance and is raised: the session can't speak it."""
        if item is not None and item.job is not None and item.job.done() and item.job.exception() is not None:
            error = item.job.exception()
            item.job = None
            item.cancelled = True
            if self.current is item:
                self.current = None
            else:
                self.queue.remove(item)
            raise error

    def _expire(self, pos: int) -> None:
        item = self.current
        if item is not None and item.moved:
            item.moved, item.alive_pos = False, pos
        if item is not None and item.emitted == item.clauses:
            left_s = (item.samples - item.played) / self._voice.rate
            if pos - item.alive_pos > (left_s + GRACE_S) * MIC_RATE:
                METRICS.add("venus_cascade_segments_expired_total")
                self.current = None

    def mark(self, mark: PlayoutMark) -> None:
        """What the device confirmed. Reports of other segments are old and ignored."""
        item = self.current
        if item is None or mark.seg != item.seg:
            return
        if mark.played > item.played:
            item.played, item.moved = mark.played, True
        if mark.final:
            item.cancelled = True
            self.current = None

    def flush(self) -> str:
        """Drop the rest of what is being said; its id."""
        item = self.current
        if item is None:
            return ""
        item.cancelled = True
        item.made.clear()
        self.current = None
        return item.seg

    def drop(self, wanted) -> tuple[str, ...]:
        """Drop the queued utterances for which `wanted(item)`; the ids of their admitted replies."""
        gone = [u for u in self.queue if wanted(u)]
        for item in gone:
            item.cancelled = True
            self.queue.remove(item)
        self._prepare()
        return tuple(u.reply_id for u in gone if u.reply_id)

    def close(self) -> None:
        self.flush()
        self.drop(lambda _: True)
