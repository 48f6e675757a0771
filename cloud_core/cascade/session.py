"""One conversation through the cascade: a unit in, a decision out. Everything slow runs in threads; a step takes about a millisecond."""
import time as _calendar
from dataclasses import dataclass, field

import numpy as np

from cloud_core.cascade.activity import VoiceActivity
from cloud_core.cascade.endpoint import EndpointSettings, is_noise, needed_silence_ms
from cloud_core.cascade.errors import BadUnit, SessionClosed
from cloud_core.cascade.hearing import Hearing, Judged
from cloud_core.cascade.overlap import OverlapJudge, OverlapSettings, OverlapView
from cloud_core.cascade.speaking import Speaker
from cloud_core.cascade.understand import Context, Request, Understanding
from cloud_core.front_end import (MIC_RATE, Decision, DelegateEvent, Kind, Overlap, SessionOptions, UnitInput, UserText, Verdict)
from device_sdk.gates import SileroVad
from venus_edge.ids import new_id
from venus_edge.metrics import METRICS

_MS = MIC_RATE / 1000
MAX_REPLY_IDS = 64
MAX_PATCH = MIC_RATE * 5
STATES = ("queued", "playing", "underrun", "paused", "flushed", "ended", "lost")


@dataclass
class Turn:
    """One user turn while it lasts, and for a moment after, in case the user goes on."""

    id: int
    start: int
    seg: str = ""
    """The segment that this turn overlaps, until judged."""
    interrupted: bool = False
    requests: tuple[Request, ...] = ()
    closed_at: int = 0
    """Last voice of the turn, once it is over."""
    answered: bool = False
    """Something was heard from us since it ended: what the user says now is a new turn."""
    onset: int = 0
    joined: bool = False


@dataclass
class _Out:
    """The parts of one Decision as they come."""

    user: list = field(default_factory=list)
    delegates: list = field(default_factory=list)
    overlaps: list = field(default_factory=list)
    dropped: list = field(default_factory=list)
    timings: dict = field(default_factory=dict)
    ended: bool = False


class CascadeSession:
    """`step` is called from one thread at a time. A refused unit (BadUnit) changes nothing."""

    def __init__(self, parts, options: SessionOptions, endpoint: EndpointSettings = EndpointSettings(), judge: OverlapJudge | None = None):
        self._parts, self._options, self._set = parts, options, endpoint
        self._judge = judge or OverlapJudge(OverlapSettings())
        self._unit = parts.unit_ms * MIC_RATE // 1000
        self._pos, self._seq = options.now_pos, -1
        self.activity = VoiceActivity(SileroVad(), options.now_pos)
        self.hearing = Hearing(parts.recogniser, parts.smart_turn, parts.policy, parts.hearing_pool, parts.clock, options.lang)
        self.speaker = Speaker(parts.voice, parts.speaking_pool, parts.clock)
        self._turn: Turn | None = None
        self._last: Turn | None = None
        self._turns = 0
        self._last_request: Request | None = None
        self._question_open = False
        self._reply_ids: list[str] = []
        self.closed = False

    def close(self) -> None:
        self.closed = True
        self.hearing.clear()
        self.speaker.close()
        self.activity.ring.wipe()

    # -- one unit ---------------------------------------------------------------------------
    def step(self, unit: UnitInput) -> Decision:
        if self.closed:
            raise SessionClosed("step after close")
        self._check(unit)
        if unit.pos > self._pos:
            METRICS.add("venus_cascade_gap_samples_total", unit.pos - self._pos)
            self._skip(unit.pos)
        out = _Out()
        for mark in unit.playout:
            self._mark(mark)
        self.activity.feed(unit.pos, unit.audio, unit.gated, unit.backfill)
        self._pos, self._seq = unit.pos + self._unit, unit.seq
        for reply in unit.replies:
            self._admit(reply, out)
        self.hearing.poll()
        self._listen(out, unit)
        chunks = self.speaker.pump(self._pos, may_begin=self._turn is None and not self.activity.speaking)
        if chunks and chunks[0].start == 0:
            out.timings["synthesis_ms"] = round(self.speaker.synthesis_ms, 1)
            self._question_open = self.speaker.current is not None and self.speaker.current.kind == "question"
        kind = Kind.SPEAK if chunks else Kind.END_TURN if out.ended else Kind.LISTEN
        return Decision(unit.seq, kind, chunks, tuple(out.user), tuple(out.delegates), tuple(out.overlaps),
                        user_speaking=self.activity.speaking, turn_open=self._turn is not None, dropped=tuple(out.dropped),
                        timings=out.timings)

    def _check(self, unit: UnitInput) -> None:
        """Refuse what breaks the contract, by field."""
        audio = unit.audio
        if not isinstance(audio, np.ndarray) or audio.dtype != np.int16:
            raise BadUnit(f"audio: dtype {getattr(audio, 'dtype', type(audio).__name__)}, allowed: int16")
        if audio.shape != (self._unit,):
            raise BadUnit(f"audio: shape {audio.shape}, allowed: ({self._unit},) = {self._parts.unit_ms} ms at {MIC_RATE} Hz, mono")
        if unit.pos < self._pos:
            raise BadUnit(f"pos: {unit.pos}, allowed: {self._pos} or later (units never overlap)")
        if unit.seq <= self._seq:
            raise BadUnit(f"seq: {unit.seq}, allowed: above {self._seq}")
        for k, patch in enumerate(unit.backfill):
            if not isinstance(patch.samples, np.ndarray) or patch.samples.dtype != np.int16 or patch.samples.ndim != 1:
                raise BadUnit(f"backfill[{k}].samples: allowed: one-dimensional int16")
            if len(patch.samples) > MAX_PATCH or patch.pos < 0:
                raise BadUnit(f"backfill[{k}]: {len(patch.samples)} samples at {patch.pos}, allowed: at most {MAX_PATCH} at 0 or later")
        for k, mark in enumerate(unit.playout):
            if mark.state not in STATES:
                raise BadUnit(f"playout[{k}].state: {mark.state!r}, allowed: {', '.join(STATES)}")
            if mark.played < 0 or mark.rate <= 0:
                raise BadUnit(f"playout[{k}]: played {mark.played} at rate {mark.rate}, allowed: 0 or more at a positive rate")
        for k, reply in enumerate(unit.replies):
            if not isinstance(reply.text, str) or not reply.id:
                raise BadUnit(f"replies[{k}]: needs an id and a text")

    def _skip(self, pos: int) -> None:
        """Positions that never came are silence: fed as gated units, but no more than the ring holds."""
        first = max(self._pos, pos - len(self.activity.ring))
        if first > self._pos:
            self.activity.ring.jump(first)
        while first < pos:
            size = min(MIC_RATE, pos - first)
            self.activity.feed(first, np.zeros(size, np.int16), True)
            first += size

    def _admit(self, reply, out: _Out) -> None:
        if reply.id in self._reply_ids:
            return  # admitted once already: a repeated message is no second reply
        self._reply_ids = [*self._reply_ids[-MAX_REPLY_IDS + 1:], reply.id]
        if not self.speaker.offer(reply.text, reply.id, reply.kind, self._turns, reply.lang if reply.lang in self._parts.voice.languages else "en"):
            out.dropped.append(reply.id)

    def _mark(self, mark) -> None:
        if self._last is not None and mark.played > 0 and mark.seg == self.speaker.seg:
            self._last.answered = True
        self.speaker.mark(mark)

    # -- listening --------------------------------------------------------------------------
    def _listen(self, out: _Out, unit: UnitInput) -> None:
        act = self.activity
        if act.onset is not None and self._turn is None:
            self._open()
        turn = self._turn
        if turn is None:
            return
        silence_ms = act.silence / _MS
        if self.hearing.until is not None and act.last_strong > self.hearing.until:
            self.hearing.give_up()  # the user went on
        if silence_ms >= self._set.speculate_ms and self.hearing.until is None:
            self.hearing.start(act.ring.read(turn.start, self._pos), turn.start, self._pos, self._context(turn))
        if turn.seg and self._overlap(turn, silence_ms, out):
            return
        self._judge_end(turn, silence_ms, out)

    def _open(self) -> None:
        onset, last = self.activity.onset, self._last
        start = max(onset - int(self._set.preroll_ms * _MS), self.activity.ring.begin, last.closed_at if last else 0)
        if last is not None and not last.answered and onset - last.closed_at <= self._set.rejoin_ms * _MS:
            METRICS.add("venus_cascade_turns_rejoined_total")
            self._turn = Turn(last.id, max(last.start, self.activity.ring.begin), requests=last.requests, onset=onset, joined=True,
                              interrupted=last.interrupted)
        else:
            self._turns += 1
            self._turn = Turn(self._turns, start, onset=onset)
        self._last = None
        if self.speaker.active:
            self._turn.seg = self.speaker.seg

    def _context(self, turn: Turn) -> Context:
        return Context(self._last_request, self._question_open, turn.interrupted or bool(turn.seg), self._options.biasing)

    def _overlap(self, turn: Turn, silence_ms: float, out: _Out) -> bool:
        """Judge speech over our own; True when that ended the turn (a backchannel or nothing at all)."""
        act, onset = self.activity, turn.onset
        voiced_ms = act.voiced / _MS
        if voiced_ms >= self._judge.settings.partial_ms and not act.in_pause:
            start = max(act.ring.begin, onset - int(0.1 * MIC_RATE))
            self.hearing.start_partial(act.ring.read(start, self._pos), start, self._pos, self._judge.settings.partials)
        judged = self.hearing.judged
        final = judged.heard if judged else None
        view = OverlapView((self._pos - onset) / _MS, voiced_ms, silence_ms, self.hearing.partial, final,
                           judged is not None and judged.understanding.acts and (judged.heard.complete or judged.understanding.stop))
        verdict = self._judge.judge(view)
        if verdict is None:
            return False
        kind, reason = verdict
        out.overlaps.append(Overlap(turn.seg, kind, reason, onset))
        out.timings["overlap_ms"] = round(view.elapsed_ms, 1)
        METRICS.add(f"venus_cascade_overlaps_{kind}_total")
        if kind is Verdict.FLUSH:
            turn.seg, turn.interrupted = "", True
            self.speaker.flush()
            return False
        words = final or self.hearing.partial
        if words is not None and words.backchannel:
            out.user.append(UserText(turn.id, words.text, onset, act.last_strong, True, confidence=words.confidence, backchannel=True))
        self._forget(turn)
        return True

    def _forget(self, turn: Turn) -> None:
        """The stretch was nobody's turn."""
        if not turn.joined:
            self._turns -= 1
        self._turn = None
        self.hearing.clear()
        self.activity.clear()

    def _judge_end(self, turn: Turn, silence_ms: float, out: _Out) -> None:
        act, judged = self.activity, self.hearing.judged
        too_long = self._pos - turn.start >= self._set.max_turn_ms * _MS
        if judged is None:
            if too_long and not self.hearing.busy:
                self.hearing.start(act.ring.read(turn.start, self._pos), turn.start, self._pos, self._context(turn))
            return
        if turn.seg or not (too_long or silence_ms >= needed_silence_ms(judged.heard, self._set)):
            return
        out.timings |= {"endpoint_ms": round(silence_ms, 1), "recognition_ms": round(judged.heard.recognition_ms, 1),
                        "policy_ms": round(judged.heard.policy_ms, 1)}
        self._end(turn, judged, out)

    # -- the turn is over -------------------------------------------------------------------
    def _end(self, turn: Turn, judged: Judged, out: _Out) -> None:
        heard, act = judged.heard, self.activity
        turn.closed_at = act.last_strong
        if is_noise(heard):
            METRICS.add("venus_cascade_noise_turns_total")
            self._forget(turn)
            return
        out.ended = True
        backchannel = heard.backchannel and not judged.understanding.acts
        out.user.append(UserText(turn.id, heard.text, turn.start, act.last_strong, True, confidence=heard.confidence, backchannel=backchannel))
        self._turn, self._last = None, None if backchannel else turn
        self.hearing.clear()
        act.clear()
        self._act(turn, judged.understanding, out)

    def _act(self, turn: Turn, understanding: Understanding, out: _Out) -> None:
        """Requests become delegates, own answers are queued. A continued turn whose request stands changes nothing."""
        requests = understanding.requests
        if turn.joined and turn.requests:
            if _same(turn.requests, requests) or not understanding.acts:
                return
            requests = tuple(Request(r.prose, r.capability, r.arguments, "update" if r.repair == "new" and r.capability else r.repair)
                             for r in requests)
        if understanding.acts:
            out.dropped += self.speaker.drop(lambda u: u.turn == turn.id and (turn.joined or u.reply_id is None))
            self._question_open = False
        for k, request in enumerate(requests):
            span = new_id("span")
            out.delegates.append(DelegateEvent(span, self._seq, self._pos, turn.id, request.prose, request.capability, request.arguments,
                                               request.repair, f"{self._options.session}:{turn.id}:{turn.closed_at}:{k}", self._options.lang))
            if request.capability:
                self._last_request = request
        turn.requests = requests or turn.requests
        if understanding.say:
            text = self._parts.wording.say(understanding.say, "en", time=self._time_of_day())
            self.speaker.offer(text, None, "answer", turn.id)

    def _time_of_day(self) -> str:
        now = _calendar.localtime(self._parts.clock.wall())
        return f"{now.tm_hour % 12 or 12}:{now.tm_min:02d} {'AM' if now.tm_hour < 12 else 'PM'}"


def _same(before: tuple[Request, ...], now: tuple[Request, ...]) -> bool:
    return [(r.capability, r.arguments) for r in before] == [(r.capability, r.arguments) for r in now]
