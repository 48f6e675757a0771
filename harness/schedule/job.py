"""A job for the scheduler, its retry policy, and the record of how far it is (`Run`, with its table of states)."""
import asyncio
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Callable, Coroutine

from harness.task import SkillOutcome
from harness.schedule.timers import Timer

if TYPE_CHECKING:
    from harness.schedule.lane import Lane

PRIORITIES = ("safety", "waiting", "normal", "background")


class Class(IntEnum):
    """Who goes first. A `normal` job of the session's newest turn counts as WAITING, for the user is waiting."""

    SAFETY = 0
    WAITING = 1
    NORMAL = 2
    BACKGROUND = 3


def failed(code: str) -> SkillOutcome:
    """The outcome of a run that brought none itself; its words are found by `code`."""
    return SkillOutcome(ok=False, outcome=code, text="", code=code)


def may_pass(outcome: SkillOutcome) -> bool:
    """A failure that a repetition may cure: what was asked for is unavailable, or the work was not even started."""
    return not outcome.ok and (outcome.code == "unavailable" or not outcome.started)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Up to `max` further runs, after pauses of `base_s`, twice that, ... at most `cap_s` seconds.

    A run is repeated only if `may_retry(outcome)`, and if the job is idempotent or its outcome says `started=False`; never past the
    job's deadline: where another attempt, as long as the last, would end after it, there is none, and the outcome at hand is the job's.
    """

    max: int = 1
    base_s: float = 0.2
    cap_s: float = 5.0
    may_retry: Callable[[SkillOutcome], bool] = may_pass

    def __post_init__(self):
        if self.max < 0 or self.base_s < 0 or self.cap_s < 0:
            raise ValueError(f"max {self.max}, base_s {self.base_s}, cap_s {self.cap_s}: none may be below 0")


@dataclass(frozen=True, slots=True)
class Job:
    """A call to make. At its turn `begin` is told, once; then `run` gives the coroutine, once for each attempt.

    `limit_s` counts from the first attempt's start, pauses between attempts included; one that run() refused with BusyError is no
    start. `queued_at`: when the wait began that `queue_ttl_s` limits. `deadline_at`: by then it has ended, whatever else holds.
    """

    task_id: str
    begin: Callable[[], None]
    run: Callable[[], Coroutine[None, None, SkillOutcome]]
    limit_s: float
    queued_at: float
    after: str = ""
    """Id of a run being cancelled that must have ended first, so that its effects can't come last."""
    capability: str = ""
    priority: str = "normal"
    """safety | waiting | normal | background"""
    turn: int | None = None
    """The turn that asked for it; None where it belongs to none (it then keeps its class)."""
    max_running: int | None = None
    """Runs of the capability at once in the whole process."""
    idempotent: bool = False
    retry: RetryPolicy | None = None
    deadline_at: float | None = None
    started: bool = False
    """A later stage of work that has begun: before new work of its class."""

    def __post_init__(self):
        if self.priority not in PRIORITIES:
            raise ValueError(f"job {self.task_id}: priority {self.priority!r}; allowed: {', '.join(PRIORITIES)}")
        if self.max_running is not None and (self.max_running < 1 or not self.capability):
            raise ValueError(f"job {self.task_id}: max_running {self.max_running} of capability {self.capability!r}; "
                             "allowed: 1 and more, of a named capability")


class State(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    REFUSED = "refused"
    """run() raised BusyError: it keeps its place and tries again shortly."""
    BACKOFF = "backoff"
    """Pausing before another attempt, without a place."""
    STOPPED = "stopped"
    """Cancelled while nothing of it ran: the settlement is on its way."""
    STOPPING = "stopping"
    """Cancelled, still running."""
    ENDING = "ending"
    """Settled (its deadline passed) and cancelled, still running."""
    ABANDONED = "abandoned"
    """Settled, still running though its time to end is over; without a place."""
    GONE = "gone"


MOVES = {
    State.QUEUED: {State.RUNNING, State.STOPPED, State.GONE},
    State.RUNNING: {State.REFUSED, State.BACKOFF, State.STOPPING, State.ENDING, State.GONE},
    State.REFUSED: {State.RUNNING, State.STOPPED, State.GONE},
    State.BACKOFF: {State.QUEUED, State.STOPPED, State.GONE},
    State.STOPPED: {State.GONE},
    State.STOPPING: {State.ABANDONED, State.GONE},
    State.ENDING: {State.ABANDONED, State.GONE},
    State.ABANDONED: {State.GONE},
    State.GONE: set(),
}


class Run:
    """How far a job is. Times are the clock's seconds."""

    __slots__ = ("job", "lane", "state", "rank", "aged", "begun", "settled", "holds", "queued_since", "deadline", "refused_since",
                 "refusals", "retries", "attempted_at", "stopped_at", "timer", "wake", "work")

    def __init__(self, job: Job, lane: "Lane"):
        self.job, self.lane = job, lane
        self.state = State.QUEUED
        self.rank = Class(PRIORITIES.index(job.priority))
        self.aged = False
        self.begun = self.settled = self.holds = False
        self.queued_since = 0.0
        self.deadline: float | None = None
        self.refused_since: float | None = None
        self.refusals = self.retries = 0
        self.attempted_at = 0.0
        self.stopped_at: float | None = None
        self.timer: Timer | None = None
        """Its expiry, deadline or abandonment, whichever is next."""
        self.wake: Timer | None = None
        """The end of its pause."""
        self.work: asyncio.Task | None = None

    def move(self, state: State) -> None:
        if state not in MOVES[self.state]:
            raise AssertionError(f"task {self.job.task_id}: {self.state} to {state}")
        self.state = state

    @property
    def pool(self) -> str:
        """Capabilities with a limit of their own queue apart; all others together."""
        return self.job.capability if self.job.max_running is not None else ""

    @property
    def level(self) -> int:
        """Order of dispatch: by class, within it begun work before new work."""
        return 2 * self.rank + (not (self.begun or self.job.started))

    def unset(self) -> None:
        """Cancel its timers."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.wake is not None:
            self.wake.cancel()
            self.wake = None
