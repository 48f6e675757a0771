"""Freezes the evidence of a delegate: what the front end had consumed when the span opened, and not a word more."""
from cloud_core.front_end import MIC_RATE
from cloud_core.timeline import Timeline
from harness import Evidence, HeardWords, UserWords

WINDOW_S = 120


def evidence_at(timeline: Timeline, pos: int, seq: int) -> Evidence:
    """User words that ended by `pos`; assistant words only as far as the device confirmed them; the last two minutes."""
    user = [UserWords(e.data["turn"], e.text, e.data["start"], e.pos, e.data.get("speaker", "occupant"))
            for e in timeline.before(pos) if e.what == "user" and not e.data.get("backchannel")]
    heard = [HeardWords(s.seg, s.heard(), s.opened_pos, s.confirmed) for s in timeline.segments.values() if s.heard()]
    return Evidence.freeze(pos, seq, user, heard, WINDOW_S * MIC_RATE)
