"""The interaction loop of one session: units in, decisions applied, replies admitted, what was heard kept true.

It owns no transport: a `Link` carries its messages to one device, so the same loop runs over a room or in a test.
"""
import asyncio
import logging
from typing import Protocol

from cloud_core.engine.errors import UnitRefused
from cloud_core.errors import SessionLost
from cloud_core.evidence import evidence_at
from cloud_core.front_end import AdmittedReply, Decision, DelegateEvent, Overlap, PlayoutMark, SegmentChunk, UnitInput, UserText, Verdict
from cloud_core.mic import MicAssembler
from cloud_core.speech_out import SpeechSender, SpeechStream
from cloud_core.timeline import Timeline
from harness import BadRequest, DelegateRequest, JournalFault, Moment, Session
from harness.capture import Audio, EvidenceRing
from venus_edge.clock import Clock
from venus_edge.ids import new_id
from venus_edge.metrics import METRICS
from venus_edge.trace import Trace

log = logging.getLogger("venus.conversation")

FLUSH_REPEATS, FLUSH_EVERY_S = 5, 0.1
FLUSH_ANSWER_S = 0.4
JOURNAL_WAIT_S = 0.01
"""A reply that the journal doesn't take in this time goes out with a later unit."""
STALE_S = 3.0
"""A segment without any playout report for this long is lost: at what was confirmed last."""
LATE_UNIT_S = 0.25
PING_S = 5.0
"""The device's clock is asked for this often: behind a closed gate nothing else tells of its drift."""


class Link(Protocol):
    """How the loop reaches its device and the room's clients. `control` never blocks; the others are awaited by tasks of their own."""

    def control(self, type_: str, **fields) -> None: ...

    async def open_speech(self, seg: str, rate: int) -> SpeechStream: ...

    def user_text(self, turn: int, text: str, final: bool) -> None: ...

    def agent_text(self, seg: str, text: str, final: bool) -> None: ...

    def state(self, state: str) -> None: ...


class Conversation:
    """One device's conversation. Feed `mic` and `report()`; `run()` until cancelled. A fault here ends this session only.

    `harness` may have served a conversation of this device before (another front end, or another process): what was in the air then is
    settled by the device's reports, and the user's turns are counted on.
    """

    def __init__(self, link: Link, engine, harness: Session, mic: MicAssembler, clock: Clock, trace: Trace, lang: str = "en"):
        self.link, self.engine, self.harness, self.mic, self.clock, self.trace, self.lang = link, engine, harness, mic, clock, trace, lang
        self.timeline = Timeline()
        self.media = EvidenceRing()
        """What the front end has consumed of the microphone: evidence for requests, released with the task that it was frozen for."""
        self.sender = SpeechSender(link.open_speech, self._played, self._cut)
        self._turns_before = self.turn = harness.turn
        harness.attach()
        self._seq = 0
        self._marks: dict[str, PlayoutMark] = {}
        self._reported: dict[str, float] = {}
        self._finished: set[str] = set()
        self._flushes: dict[str, asyncio.Task] = {}
        self._stopped: set[str] = set()
        """Segments that the user asked to be silent about: their rest is not taken up again."""
        self._wake = asyncio.Event()
        self._state = ""
        self._decision = Decision(0)
        self._thinking = False
        self._fault: Exception | None = None
        self._pinged, self._pings = clock.now(), 0
        self.away = False
        """The device has left the room: replies wait until it is back."""

    # ---- what arrives ------------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """New microphone samples or a gate mark."""
        self._wake.set()

    def report(self, mark: PlayoutMark) -> None:
        """A playout report of the device (already the newest of its segment). A fault in here ends the session, not the caller."""
        seg = self.timeline.played(mark)
        if seg is None:
            METRICS.add("venus_cloud_reports_unknown_segment")
            try:
                self._from_before(mark)
            except Exception as err:
                self._fault = err
                self._wake.set()
            return
        if mark.seg in self._finished and not mark.final:
            self._silence(mark.seg)
            return
        self._marks[mark.seg] = mark
        self.sender.progress()
        if not seg.final:
            self._reported[mark.seg] = self.clock.now()
        else:
            try:
                self._finish(mark.seg)
            except Exception as err:
                self._fault = err
        self._wake.set()

    def _from_before(self, mark: PlayoutMark) -> None:
        """A report of a segment that a conversation before this one sent: what of its reply was heard is settled by its end."""
        if mark.final:
            self.harness.played(mark.seg, mark.played, ended=mark.state == "ended")
        elif self.harness.doubtful(mark.seg)[0]:
            self._silence(mark.seg)

    def _silence(self, seg: str) -> None:
        """The device still sounds what was closed here, and what may be said again by another segment: stop it."""
        METRICS.add("venus_cloud_closed_segments_sounding")
        self.link.control("flush", seg=seg, id=new_id())

    def _played(self, seg: str) -> int:
        return self.timeline.segments[seg].played if seg in self.timeline.segments else 0

    # ---- the loop ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Take units as they become complete, until cancelled."""
        writer = asyncio.create_task(self.sender.run())
        try:
            while True:
                if writer.done():
                    writer.result()
                if self._fault is not None:
                    raise self._fault
                await self._one_round()
        finally:
            writer.cancel()
            self.media.close()
            flushes = list(self._flushes.values())
            for task in flushes:
                task.cancel()
            await asyncio.gather(writer, *flushes, return_exceptions=True)

    async def _one_round(self) -> None:
        if self.clock.now() - self._pinged >= PING_S:
            self._pinged, self._pings = self.clock.now(), self._pings + 1
            self.link.control("ping", n=self._pings)
        if self.mic.lost_sync:
            raise SessionLost("device clock: it stood still for seconds; a new session begins at its present position")
        taken = self.mic.take()
        if taken is None:
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), 0.01)
            except asyncio.TimeoutError:
                pass
            return
        pos, samples, gated, patches = taken
        late = (self.mic.device.pos() - pos - len(samples)) / 16_000
        METRICS.peak("venus_worker_unit_late_max_ms", late * 1e3)
        if late > LATE_UNIT_S:
            METRICS.add("venus_worker_units_late")
            self.trace.event("unit.late", pos=pos, ms=round(late * 1e3))
        self._check_stale()
        replies = await self._admit(pos)
        marks, self._marks = tuple(self._marks.values()), {}
        unit = UnitInput(self._seq, pos, samples, gated, patches, (), marks, replies)
        self._seq += 1
        for at, heard in [(p.pos, p.samples) for p in patches] + ([] if gated else [(pos, samples)]):
            self.media.received(Audio(at, heard, unit.seq))
        begin = self.clock.now()
        try:
            decision = await self.engine.step(unit)
        except UnitRefused as err:  # the session lives on, without this unit
            METRICS.add("venus_worker_units_refused")
            log.error("unit refused: %s", err.message)
            for reply in replies:
                self.harness.reply_declined(reply.id)
            return
        self.media.consumed(pos + len(samples), unit.seq)
        METRICS.peak("venus_worker_step_max_ms", (self.clock.now() - begin) * 1e3)
        self._apply(decision, pos + len(samples))

    async def _admit(self, pos: int) -> tuple[AdmittedReply, ...]:
        if self.away:
            return ()
        d = self._decision
        moment = Moment(pos=pos, user_speaking=d.user_speaking, turn_open=d.turn_open, assistant_speaking=self.timeline.speaking(), turn=self.turn)
        reply = self.harness.next_reply(moment)
        if reply is None and self.harness.holding:  # its record is on the way to the journal: usually there within a millisecond
            try:
                await asyncio.wait_for(self.harness.settled(), JOURNAL_WAIT_S)
            except (asyncio.TimeoutError, JournalFault):
                METRICS.add("venus_worker_journal_late")
            reply = self.harness.next_reply(moment)
        if reply is None:
            return ()
        self.trace.event("reply.admit", pos=pos, reply=reply.id, task=reply.task_id, kind=reply.kind, turn=reply.turn, text=reply.text)
        self.timeline.add(pos, "reply", "tool", reply.text, task=reply.task_id)
        return (AdmittedReply(reply.id, reply.text, reply.lang, reply.kind),)

    # ---- applying a decision ----------------------------------------------------------------------------------------

    def _apply(self, decision: Decision, now_pos: int) -> None:
        self._decision = decision
        for text in decision.user:
            self._user(text)
        for overlap in decision.overlaps:
            self._overlap(overlap)
        for event in decision.delegates:
            self._delegate(event)
        for chunk in decision.segments:
            self._speak(chunk, now_pos, decision.timings)
        for reply_id in decision.dropped:
            self.harness.reply_declined(reply_id)
        if decision.timings:
            self.trace.event("timings", pos=now_pos, turn=self.turn, **{k: round(float(v), 1) for k, v in decision.timings.items()})
        speaking = self.timeline.speaking()
        self._show_state("speaking" if speaking else "thinking" if self._thinking and not decision.user_speaking else "listening")

    def _user(self, text: UserText) -> None:
        turn = text.turn + self._turns_before
        self.trace.event("user.text", pos=text.end, turn=turn, text=text.text, start=text.start, end=text.end, final=text.final,
                         backchannel=text.backchannel, confidence=round(text.confidence, 3))
        if not text.final:
            self.link.user_text(turn, text.text, False)
            return
        self.timeline.add(text.end, "user", "user", text.text, turn=turn, start=text.start, speaker=text.speaker,
                          backchannel=text.backchannel)
        if text.text:
            self.link.user_text(turn, text.text, True)
        if not text.backchannel:
            self.turn = max(self.turn, turn)
            self._thinking = bool(text.text)
            self.harness.user_turn(turn)

    def _delegate(self, event: DelegateEvent) -> None:
        turn = event.turn + self._turns_before
        try:
            request = DelegateRequest(key=event.key or event.span, turn=turn, opened_pos=event.opened_pos, opened_seq=event.opened_seq,
                                      prose=event.prose, capability=event.capability, arguments=event.arguments, repair=event.repair,
                                      lang=event.lang, zone=event.zone, provenance=event.provenance)
            task = self.harness.accept(request, evidence_at(self.timeline, event.opened_pos, event.opened_seq, self.media))
        except (BadRequest, JournalFault) as err:  # one request is lost, the session is not, and the user is told
            METRICS.add("venus_worker_delegates_refused")
            log.error("delegate %s refused: %s", event.span, err.code)
            self.trace.event("delegate.refused", pos=event.opened_pos, span=event.span, turn=turn, code=err.code)
            self.harness.regret(event.lang)
            return
        self.timeline.add(event.opened_pos, "delegate", "system", event.prose, task=task)
        self.trace.event("delegate", pos=event.opened_pos, span=event.span, turn=turn, task=task, capability=event.capability,
                         arguments=event.arguments, repair=event.repair, prose=event.prose)

    def _speak(self, chunk: SegmentChunk, now_pos: int, timings: dict) -> None:
        new = chunk.seg not in self.timeline.segments
        seg = self.timeline.chunk(chunk, now_pos)
        if seg.final or chunk.seg in self._flushes:
            return  # its end is known or on its way: the rest must not open a second stream
        self._reported.setdefault(chunk.seg, self.clock.now())
        if not self.sender.push(chunk):
            return
        self._thinking = False
        words = " ".join(s.text.strip() for s in chunk.spans)
        if new:
            self.timeline.add(now_pos, "speech", "assistant", words, seg=chunk.seg)
            if chunk.reply_id:
                self.harness.reply_started(chunk.reply_id, chunk.seg)
        if chunk.reply_id:
            self.harness.reply_speech(chunk.reply_id, chunk.seg, [(s.text.strip(), s.end) for s in seg.spans], seg.complete)
        self.trace.event("segment" if new else "segment.more", pos=now_pos, seg=chunk.seg, reply=chunk.reply_id,
                         turn=chunk.turn + self._turns_before, text=words,
                         rate=chunk.rate, start=chunk.start, samples=len(chunk.samples), last=chunk.last,
                         spans=[[s.text, s.start, s.end] for s in chunk.spans])
        self.link.agent_text(chunk.seg, words, chunk.last)

    # ---- interruptions -----------------------------------------------------------------------------------------------

    def _overlap(self, overlap: Overlap) -> None:
        self.trace.event("overlap", pos=overlap.onset, seg=overlap.seg, verdict=str(overlap.verdict), reason=overlap.reason, onset=overlap.onset,
                         decided=self.mic.device.pos())
        if overlap.verdict is Verdict.RESTORE:
            self.link.control("restore", id=new_id(), reason=overlap.reason)
            return
        for seg in [s.seg for s in self.timeline.segments.values() if not s.final]:
            if overlap.reason == "stop":
                self._stopped.add(seg)
            self.flush(seg)

    def flush(self, seg: str) -> None:
        """Stop `seg` now, on the device and here; its end is what the device confirms, or the last confirmed sample after 0.4 s."""
        if seg in self._flushes or seg in self._finished:
            return
        self.sender.abort(seg)
        self._flushes[seg] = task = asyncio.create_task(self._flush(seg))
        task.add_done_callback(lambda done: self._flushed(seg, done))

    def _flushed(self, seg: str, task: asyncio.Task) -> None:
        self._flushes.pop(seg, None)
        if not task.cancelled() and task.exception() is not None:
            self._fault = task.exception()
            self._wake.set()

    async def _flush(self, seg: str) -> None:
        ident, begin = new_id(), self.clock.now()
        for _ in range(FLUSH_REPEATS):
            if seg in self._finished:
                break
            self.link.control("flush", seg=seg, id=ident)
            await self.clock.sleep(FLUSH_EVERY_S)
            if seg not in self._finished and self.clock.now() - begin >= FLUSH_ANSWER_S:
                self._assume(seg, "flushed")

    def _assume(self, seg: str, state: str) -> None:
        """No word from the device: close at the last confirmed sample, unconfirmed; never at what was sent."""
        s = self.timeline.segments.get(seg)
        if s is None or s.final:
            return
        METRICS.add("venus_cloud_segments_unconfirmed")
        s.state, s.confirmed = state, False
        self._marks[seg] = PlayoutMark(seg, s.played, s.rate, state, confirmed=False)
        if state == "lost":
            self.link.control("flush", seg=seg, id=new_id())
        self._finish(seg)

    def _cut(self, seg: str) -> None:
        self._assume(seg, "lost")

    def _check_stale(self) -> None:
        now = self.clock.now()
        for seg in list(self.timeline.segments.values()):
            if not seg.final and now - self._reported.get(seg.seg, now) > STALE_S:
                self._assume(seg.seg, "lost")

    def _finish(self, seg_id: str) -> None:
        if seg_id in self._finished:
            return
        self._finished.add(seg_id)
        if len(self._finished) > 512:
            self._finished = {s for s in self._finished if s in self.timeline.segments}
        seg = self.timeline.segments[seg_id]
        self._reported.pop(seg_id, None)
        self.sender.abort(seg_id)  # a device that stopped by itself takes no more: the next segment must not wait behind this one
        if not seg.complete:
            self.link.agent_text(seg_id, "", True)
        completed = seg.state == "ended" and seg.complete and seg.played >= seg.length
        heard, unheard = seg.heard(), seg.unheard()
        self.trace.event("segment.end", pos=self.mic.device.pos(), seg=seg_id, reply=seg.reply_id, state=seg.state, played=seg.played,
                         len=seg.length, rate=seg.rate, heard=heard, unheard=unheard, confirmed=seg.confirmed, completed=completed)
        if seg.reply_id:
            self.harness.reply_finished(seg.reply_id, heard=heard, unheard=unheard, completed=completed, confirmed=seg.confirmed,
                                        stopped=seg_id in self._stopped)
        self._stopped.discard(seg_id)

    def _show_state(self, state: str) -> None:
        if state != self._state:
            self._state = state
            self.link.state(state)
