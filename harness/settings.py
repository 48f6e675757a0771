"""The harness's limits and times, each with its unit in the name; one frozen, validated object per session."""
from pydantic import BaseModel, ConfigDict, Field


class HarnessSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    max_running: int = Field(8, ge=1, le=64)
    """Skills of one session that run at once."""
    max_queued: int = Field(32, ge=0, le=1024)
    """Further requests that wait for a place; beyond them a request is refused with a spoken sentence."""
    queue_ttl_s: float = Field(20.0, gt=0)
    """A request that has waited this long for a place has expired."""
    history: int = Field(256, ge=8, le=65536)
    """Closed tasks a session remembers."""
    remembered_keys: int = Field(1024, ge=8)
    """Idempotency keys a session remembers, also of tasks that left the history."""
    deadline_grace_s: float = Field(1.0, ge=0)
    """How long past its own timeout a skill run may stay before the harness gives it up itself."""
    cancel_wait_s: float = Field(1.0, gt=0)
    """How long a cancelled run may take to end before it counts as unresponsive."""

    quiet_s: float = Field(0.15, ge=0)
    """Silence before a reply that can wait; with units of up to 200 ms a quiet session waits at most 250 ms."""
    max_wait_s: float = Field(10.0, gt=0)
    """After this wait the next silent instant will do; and what never pauses that long is noise, not a user."""
    resume_quiet_s: float = Field(0.5, ge=0)
    """Silence before an interrupted reply is taken up again: the user may be about to be answered."""
    hold_older_s: float = Field(1.5, ge=0)
    """How long older results wait for the answer to the newest question while it is being worked on."""
    retry_after_s: float = Field(0.5, ge=0)
    """Pause before a reply that the front end declined is offered again."""
    turn_stuck_s: float = Field(3.0, gt=0)
    """A turn still open after `max_wait_s`, in which nobody has spoken for this long, no longer blocks."""
    playout_stuck_s: float = Field(30.0, gt=0)
    """An assistant that seems to speak this long without a pause has lost its playout reports."""
    start_timeout_s: float = Field(10.0, gt=0)
    """An admitted reply that hasn't begun by then is closed as unspoken."""
    report_grace_s: float = Field(10.0, gt=0)
    """A reply with no final playout report this long after its estimated end counts as heard, estimated."""

    ack_after_s: float = Field(0.8, ge=0)
    """A request still running by then is acknowledged; slow skills are at once."""
    notice_gap_s: float = Field(1.5, ge=0)
    """Least time between two notices (acknowledgement, progress) about one task."""
    progress_after_s: float = Field(10.0, gt=0)
    """Second progress sentence; the first comes at the skill's own `first_progress_s` (2.5 s by default)."""
    offer_stop_after_s: float = Field(30.0, gt=0)
    give_up_after_s: float = Field(45.0, gt=0)
    """A task that runs this long is cancelled with an apology."""

    enough_heard: float = Field(0.8, gt=0, le=1)
    """Share of a reply that, once heard, needs no resumption."""
    max_join_chars: int = Field(240, ge=0)
    """Two ready results are told in one reply up to this length."""
    max_untold: int = Field(64, ge=1)
    """Outcomes that wait to be told; beyond them the oldest is closed as unspoken."""
    max_text_chars: int = Field(600, ge=40)
    """Longest spoken outcome; the rest is cut at the end of a sentence."""
    correct_within_s: float = Field(60.0, gt=0)
    """A finished request can be corrected ("no, the casino") this long after it ended."""
    max_memory_bytes: int = Field(64 * 1024, ge=1024)
    """Size, as JSON, of the memory that a session's skills share."""
