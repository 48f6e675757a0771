"""Units and decisions as protobuf messages and back, without loss. Samples travel as int16 little endian."""
import json

import numpy as np

from cloud_core import front_end as fe
from cloud_core.engine import engine_pb2 as pb
from cloud_core.engine.errors import UnitRefused

_S16 = np.dtype("<i2")


def _bytes(samples: np.ndarray, field: str) -> bytes:
    if not isinstance(samples, np.ndarray) or samples.dtype != np.int16 or samples.ndim != 1:
        kind = f"{getattr(samples, 'dtype', type(samples).__name__)}, {getattr(samples, 'ndim', 0)} dimensions"
        raise UnitRefused(f"{field}: {kind}, allowed: int16, one-dimensional")
    return samples.astype(_S16).tobytes()


def _samples(data: bytes, field: str) -> np.ndarray:
    if len(data) % 2:
        raise UnitRefused(f"{field}: {len(data)} bytes, allowed: whole int16 samples")
    return np.frombuffer(data, _S16).astype(np.int16)


def options_to(o: fe.SessionOptions) -> pb.Open:
    return pb.Open(session=o.session, lang=o.lang, now_pos=o.now_pos, biasing=o.biasing)


def options_from(m: pb.Open) -> fe.SessionOptions:
    return fe.SessionOptions(m.session, m.lang or "en", m.now_pos, tuple(m.biasing))


def info_to(i: fe.FrontEndInfo, sessions: int = 0, max_sessions: int = 0) -> pb.InfoReply:
    return pb.InfoReply(runtime=i.name, unit_ms=i.unit_ms, out_rate=i.out_rate, languages=i.languages, sessions=sessions,
                        max_sessions=max_sessions)


def info_from(m: pb.InfoReply) -> fe.FrontEndInfo:
    return fe.FrontEndInfo(m.runtime, m.unit_ms, m.out_rate, tuple(m.languages))


def unit_to(u: fe.UnitInput) -> pb.Unit:
    """Raises UnitRefused, naming the field, for what can't travel: samples that aren't int16 or frames that aren't bytes."""
    if not all(isinstance(f, bytes) for f in u.frames):
        raise UnitRefused("frames: allowed: bytes (compressed images)")
    if u.seq < 0 or u.pos < 0:
        raise UnitRefused(f"seq, pos: {u.seq}, {u.pos}, allowed: 0 or more")
    try:
        return pb.Unit(
            seq=u.seq, pos=u.pos, audio=_bytes(u.audio, "audio"), gated=u.gated,
            backfill=[pb.Patch(pos=p.pos, samples=_bytes(p.samples, f"backfill[{k}].samples")) for k, p in enumerate(u.backfill)],
            frames=[pb.Frame(data=f) for f in u.frames],
            playout=[pb.Mark(seg=m.seg, played=m.played, rate=m.rate, state=m.state, confirmed=m.confirmed) for m in u.playout],
            replies=[pb.Reply(id=r.id, text=r.text, lang=r.lang, kind=r.kind) for r in u.replies])
    except (TypeError, ValueError) as err:
        raise UnitRefused(f"unit: {err}") from None


def unit_from(m: pb.Unit) -> fe.UnitInput:
    return fe.UnitInput(
        m.seq, m.pos, _samples(m.audio, "audio"), m.gated,
        tuple(fe.AudioPatch(p.pos, _samples(p.samples, f"backfill[{k}].samples")) for k, p in enumerate(m.backfill)),
        tuple(f.data for f in m.frames),
        tuple(fe.PlayoutMark(p.seg, p.played, p.rate, p.state, p.confirmed) for p in m.playout),
        tuple(fe.AdmittedReply(r.id, r.text, r.lang, r.kind) for r in m.replies))


def decision_to(d: fe.Decision) -> pb.Decision:
    return pb.Decision(
        seq=d.seq, kind=d.kind.value,
        segments=[pb.Chunk(seg=c.seg, start=c.start, rate=c.rate, samples=_bytes(c.samples, "segments.samples"), last=c.last,
                           spans=[pb.Span(text=s.text, start=s.start, end=s.end) for s in c.spans], reply_id=c.reply_id, turn=c.turn)
                  for c in d.segments],
        user=[pb.UserText(turn=u.turn, text=u.text, start=u.start, end=u.end, final=u.final, speaker=u.speaker,
                          confidence=u.confidence, backchannel=u.backchannel) for u in d.user],
        delegates=[pb.Delegate(span=g.span, opened_seq=g.opened_seq, opened_pos=g.opened_pos, turn=g.turn, prose=g.prose,
                               capability=g.capability, arguments_json=json.dumps(g.arguments, ensure_ascii=False), repair=g.repair,
                               key=g.key, lang=g.lang, zone=g.zone, provenance=g.provenance) for g in d.delegates],
        overlaps=[pb.Overlap(seg=o.seg, verdict=o.verdict.value, reason=o.reason, onset=o.onset) for o in d.overlaps],
        user_speaking=d.user_speaking, turn_open=d.turn_open, dropped=d.dropped, timings={k: float(v) for k, v in d.timings.items()})


def decision_from(m: pb.Decision) -> fe.Decision:
    return fe.Decision(
        m.seq, fe.Kind(m.kind),
        tuple(fe.SegmentChunk(c.seg, c.start, c.rate, _samples(c.samples, "segments.samples"),
                              tuple(fe.Span(s.text, s.start, s.end) for s in c.spans), c.last,
                              c.reply_id if c.HasField("reply_id") else None, c.turn) for c in m.segments),
        tuple(fe.UserText(u.turn, u.text, u.start, u.end, u.final, u.speaker, u.confidence, u.backchannel) for u in m.user),
        tuple(fe.DelegateEvent(g.span, g.opened_seq, g.opened_pos, g.turn, g.prose, g.capability if g.HasField("capability") else None,
                               json.loads(g.arguments_json or "{}"), g.repair, g.key, g.lang, g.zone or "driver",
                               g.provenance or "live_speech") for g in m.delegates),
        tuple(fe.Overlap(o.seg, fe.Verdict(o.verdict), o.reason, o.onset) for o in m.overlaps),
        m.user_speaking, m.turn_open, tuple(m.dropped), dict(m.timings))
