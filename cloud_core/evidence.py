"""Freezes the evidence of a delegate: what the front end had consumed when the span opened, and not a word more."""
from cloud_core.front_end import MIC_RATE
from cloud_core.timeline import Timeline
from harness import Evidence, HeardWords, UserWords
from harness.capture import EvidenceRing

WINDOW_S = 120
MEDIA_S = 12.0
"""Of the microphone a task may hear so much before its request opened."""


def evidence_at(timeline: Timeline, pos: int, seq: int, media: EvidenceRing | None = None) -> Evidence:
    """User words that ended by `pos`; assistant words only as far as the device confirmed them; the last two minutes. Of the
    media the last seconds that the front end had consumed; they are shared, not copied, until the task releases them."""
    user = [UserWords(e.data["turn"], e.text, e.data["start"], e.pos, e.data.get("speaker", "occupant"))
            for e in timeline.before(pos) if e.what == "user" and not e.data.get("backchannel")]
    heard = [HeardWords(s.seg, s.heard(), s.opened_pos, s.confirmed) for s in timeline.segments.values() if s.heard()]
    return Evidence.freeze(pos, seq, user, heard, WINDOW_S * MIC_RATE,
                           media.freeze(pos, seq, MEDIA_S) if media is not None else ())
