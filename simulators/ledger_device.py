"""The front end and the device of one simulated session: speaks what is admitted, at a steady rate, and reports it well or badly."""
import random
from collections import deque
from dataclasses import dataclass
from typing import Callable

from harness import PreparedReply, Session
from simulators.ledger_oracle import Oracle

RATE = 24_000
"""Samples of speech a second."""


@dataclass
class Speaking:
    reply: PreparedReply
    seg: str
    begins: float
    rate: float
    """Characters a second."""
    announced: bool = False

    def chars(self, now: float) -> int:
        return max(0, min(len(self.reply.text), int((now - self.begins) * self.rate)))

    def ends(self) -> float:
        return self.begins + len(self.reply.text) / self.rate


class Device:
    """`session` changes with every restart; None while there is no process. Times are true time."""

    def __init__(self, index: int, rng: random.Random, oracle: Oracle, clock, quirks: float):
        self.index, self.rng, self.oracle, self.clock, self.quirks = index, rng, oracle, clock, quirks
        self.session: Session | None = None
        self.speaking: Speaking | None = None
        self.waiting: deque[Speaking] = deque()
        self.due: list[tuple[float, Callable[[Session], None]]] = []
        """Reports on their way."""
        self._segments: dict[str, tuple[str, str, int]] = {}
        """Segment: (reply id, its text, characters heard), of what a process before this one sent."""
        self._n = 0

    @property
    def sounding(self) -> bool:
        return self.speaking is not None and self.speaking.announced

    @property
    def busy(self) -> bool:
        """A reply was given to us and its end is not reported yet, as far as we mean to report it."""
        return self.speaking is not None or bool(self.waiting)

    def chance(self, share: float) -> bool:
        return self.rng.random() < share * self.quirks

    # -- what the harness gives

    def take(self, reply: PreparedReply) -> None:
        now, seen = self.clock.now(), self.oracle.accounts[self.index].replies[reply.id]
        if self.chance(0.07):
            seen.report = "declined"
            self.oracle.event(self.index, "decline", reply.id[-4:])
            self.later(self.rng.choice([0.0, 0.1, 0.4]), lambda s: s.reply_declined(reply.id))
            return
        if self.chance(0.01):
            seen.report = "lost"
            self.oracle.event(self.index, "never_started", reply.id[-4:])
            return
        self._n += 1
        self.waiting.append(Speaking(reply, f"seg-{self.index}-{self._n}", now + self.rng.choice([0.05, 0.2, 0.5]), self.rng.uniform(14, 22)))

    def step(self) -> None:
        """Play on; send what is due."""
        now = self.clock.now()
        if self.session is not None:
            due, self.due = [d for d in self.due if d[0] <= now], [d for d in self.due if d[0] > now]
            for _, report in due:
                report(self.session)
        if self.speaking is None and self.waiting:
            self.speaking = self.waiting.popleft()
            self.speaking.begins = max(self.speaking.begins, now)
        one = self.speaking
        if one is None or now < one.begins:
            return
        if not one.announced:
            one.announced = True
            self.oracle.accounts[self.index].replies[one.reply.id].started = True
            if self.session is not None:
                self.session.reply_started(one.reply.id, one.seg)
                self.session.reply_speech(one.reply.id, one.seg, self._spans(one))
        if now >= one.ends():
            self._ended(one, len(one.reply.text), cut=False)

    def cut(self, *, stop: bool = False) -> None:
        """The user takes the floor: silent at once."""
        one = self.speaking
        if one is None or not one.announced:
            return
        self.oracle.event(self.index, "stop" if stop else "barge_in", one.reply.id[-4:])
        self._ended(one, one.chars(self.clock.now()), cut=True, stop=stop)

    def silence(self, chars: int) -> None:
        """The process died: what had been sent plays on to `chars`, and nobody is told yet."""
        one, self.speaking = self.speaking, None
        self.waiting.clear()
        self.due.clear()
        if one is not None and one.announced:
            self.oracle.heard(self.index, one.reply.id, chars)
            self._segments[one.seg] = (one.reply.id, one.reply.text, chars)

    def reattach(self) -> None:
        """Tell the new process how far every old segment was heard, as a worker does with the device's reports."""
        for seg, (_, text, chars) in list(self._segments.items()):
            reply_id, spans = self.session.doubtful(seg)
            if not reply_id:
                continue
            self.oracle.event(self.index, "reattach", seg)
            per = RATE / 15
            heard = " ".join(words for words, end in spans if end <= chars * per)
            unheard = " ".join(words for words, end in spans if end > chars * per)
            completed = chars >= len(text)
            seen = self.oracle.accounts[self.index].replies[reply_id]
            seen.report, seen.cut = "confirmed", not completed
            self.session.reattach(reply_id, heard=heard, unheard=unheard, completed=completed)
        self._segments.clear()

    # -- reports

    def _spans(self, one: Speaking) -> list[tuple[str, int]]:
        spans, at = [], 0
        for word in one.reply.text.split():
            at = one.reply.text.index(word, at) + len(word)
            spans.append((word, round(at * RATE / 15)))
        return spans

    def _ended(self, one: Speaking, chars: int, *, cut: bool, stop: bool = False) -> None:
        self.speaking = None
        seen, text = self.oracle.accounts[self.index].replies[one.reply.id], one.reply.text
        self.oracle.heard(self.index, one.reply.id, chars)
        seen.cut, seen.stopped = cut, stop
        heard = text[:chars]
        if cut and chars < len(text):  # reported are whole words
            heard = heard.rpartition(" ")[0]
        if self.chance(0.05):
            seen.report = "lost"
            self.oracle.event(self.index, "lost_report", one.seg)
            return
        confirmed = not self.chance(0.04)
        if not confirmed:
            self.oracle.event(self.index, "unconfirmed_report", one.seg)
            if cut:  # the last word or two may not have been confirmed
                heard = " ".join(heard.split(" ")[:-self.rng.randint(1, 2)])
        seen.report = "confirmed" if confirmed else "unconfirmed"

        def report(session: Session, heard=heard, completed=not cut) -> None:
            session.reply_finished(one.reply.id, heard=heard, unheard=text[len(heard):].strip(), completed=completed, confirmed=confirmed,
                                   stopped=stop)

        late = self.chance(0.04)
        if late:
            self.oracle.event(self.index, "late_report", one.seg)
            seen.report = "unconfirmed"
        after = self.rng.choice([1.0, 6.0, 25.0] if late else [0.0, 0.05, 0.2])
        self.later(after, report)
        if self.chance(0.08):
            self.oracle.event(self.index, "duplicate_report", one.seg)
            shorter = heard[:len(heard) // 2].rpartition(" ")[0]
            self.later(after + self.rng.choice([0.3, 2.0]), lambda s: report(s, shorter, False))
        if self.chance(0.06):
            self.oracle.event(self.index, "old_segment_report", one.seg)
            self.later(after + self.rng.choice([8.0, 15.0]), lambda s: (s.reply_started(one.reply.id, one.seg), report(s, "", False)))

    def later(self, seconds: float, report: Callable[[Session], None]) -> None:
        self.due.append((self.clock.now() + seconds, report))
