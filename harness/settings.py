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
    """Idempotency keys a session remembers, also of tasks that left the history; after a restart only of those that have not."""
    deadline_grace_s: float = Field(1.0, ge=0)
    """How long past its own timeout a skill run may stay before the harness gives it up itself."""
    cancel_wait_s: float = Field(1.0, gt=0)
    """How long a cancelled run may take to end before it counts as unresponsive."""

    plan_timeout_s: float = Field(10.0, gt=0)
    """How long a planner may take over prose; then the user is asked to put it differently."""
    max_plans: int = Field(4, ge=1, le=16)
    """Requests that one sentence may hold; more are left out."""
    answer_within_s: float = Field(20.0, gt=0)
    """How long after a question of ours was heard the next prose may be its answer."""

    quiet_s: float = Field(0.15, ge=0)
    """Silence before a reply that can wait; with units of up to 200 ms a quiet session waits at most 250 ms."""
    max_wait_s: float = Field(10.0, gt=0)
    """After this wait the next best silent instant will do; and what never pauses that long is noise, not a user."""
    best_moment_s: float = Field(3.0, ge=0)
    """Over so long, after `max_wait_s`, the demand falls from "as quiet as it ever got" to "silent right now"."""
    resume_quiet_s: float = Field(0.5, ge=0)
    """Silence before an interrupted reply is taken up again: the user may be about to be answered."""
    hold_older_s: float = Field(1.5, ge=0)
    """How long older results wait for the answer to the newest question while it is being worked on."""
    retry_after_s: float = Field(0.5, ge=0)
    """Pause before a reply that the front end declined is offered again."""
    max_declines: int = Field(1, ge=0, le=3)
    """Times a declined reply is offered again; then it is closed as unspoken and offered on the screen."""
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
    offer_open_s: float = Field(10.0, gt=0)
    """How long after its last word a yes/no question of ours ("Shall I stop?") can be answered with a mere yes or no."""

    enough_heard: float = Field(0.8, gt=0, le=1)
    """Share of a reply that, once heard, needs no resumption."""
    resume_back_words: int = Field(3, ge=0, le=8)
    """A resumption starts at the beginning of the interrupted clause where that repeats at most so many words."""
    summarise_over_chars: int = Field(160, ge=40)
    """An interrupted reply with more than this left to say is told in short instead."""
    early_share: float = Field(0.25, ge=0, le=1)
    """Interrupted before this share of a reply longer than `summarise_over_chars`, it is told in short too."""
    max_join_chars: int = Field(240, ge=0)
    """Ready results are told in one reply up to this length."""
    max_join: int = Field(3, ge=1, le=8)
    """Most results in one reply."""
    max_untold: int = Field(64, ge=1)
    """Outcomes that wait to be told; beyond them the oldest is closed as unspoken."""
    screen_items: int = Field(16, ge=1, le=256)
    """Outcomes kept for the screen; the oldest leaves when another comes."""
    screen_useful_s: float = Field(120.0, ge=0)
    """A result that expired unspoken is offered on the screen if its work ended no longer ago than this."""
    reattach_wait_s: float = Field(2.0, gt=0)
    """After a restart: how long the device may take to tell what was heard of the reply that was in the air."""
    max_text_chars: int = Field(600, ge=40)
    """Longest spoken outcome; the rest is cut at the end of a sentence."""
    correct_within_s: float = Field(60.0, gt=0)
    """A finished request can be corrected ("no, the casino") this long after it ended."""
    max_memory_bytes: int = Field(64 * 1024, ge=1024, le=64 * 1024)
    """Size, as JSON, of the memory that a session's skills share."""
