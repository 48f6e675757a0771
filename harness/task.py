"""What the harness works on: the task record with its two states, and what it asks of the skill side.

Everything here is plain data: the ledger moves tasks, the scheduler runs calls, the delivery speaks outcomes.
"""
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Callable, Protocol

from harness.capture.reserved import inert_values

if TYPE_CHECKING:
    from harness.plan.contracts import Contract


class Execution(StrEnum):
    """How far the work is. The last five are terminal, each with a reason on the task."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    """Its time passed before it could start."""
    SUPERSEDED = "superseded"
    """A correction took its place."""


class Delivery(StrEnum):
    """How far the user has been told what came of it. The last four are terminal, each with a reason on the task."""

    NONE = "none"
    PENDING = "pending"
    DELIVERING = "delivering"
    """Admitted to the conversation, not yet confirmed heard."""
    INTERRUPTED = "interrupted"
    DELIVERED = "delivered"
    """The device confirmed it heard (reason `estimated` where the client can't report)."""
    UNSPOKEN = "unspoken"
    """Not spoken, or not to the end; still in the ledger to be asked for."""
    MERGED = "merged"
    """Told as part of another reply; the reason names that task."""
    DROPPED = "dropped"
    """Never told, on purpose; the reason says why."""


EXECUTION_END = frozenset({Execution.COMPLETED, Execution.FAILED, Execution.CANCELLED, Execution.EXPIRED,
                           Execution.SUPERSEDED})
DELIVERY_END = frozenset({Delivery.DELIVERED, Delivery.UNSPOKEN, Delivery.MERGED, Delivery.DROPPED})


@dataclass(frozen=True)
class Task:
    """One accepted request: what was asked, and both states. Times are the injected clock's seconds.

    A correction is a task of its own with the same `lineage` and the next `version`; `superseded_by` names it here.
    """

    id: str
    key: str
    """Idempotency key: the same key again is this task."""
    lineage: str
    """Id of the lineage's first task."""
    version: int
    capability: str
    arguments: dict
    prose: str
    """The user's own words."""
    turn: int
    lang: str
    zone: str
    group: str
    """Tasks of one non-empty group replace each other when the user corrects a request."""
    evidence: str
    """Hash of the evidence frozen when the request opened; the evidence itself is released when the task ends."""
    accepted_at: float
    timeout_s: float = 0.0
    """How long the work may take from its start; 0 where nothing runs."""
    ttl_s: float = 60.0
    """An outcome told later than this after the work ended is expired."""
    provenance: str = "live_speech"
    """Who asked: only live speech of an occupant may have an effect on the vehicle."""
    replaces: str = ""
    superseded_by: str = ""
    execution: Execution = Execution.QUEUED
    execution_reason: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    delivery: Delivery = Delivery.NONE
    delivery_reason: str = ""
    kind: str = ""
    """What is told: result | notice | question (see `TELLS` in ledger.py)."""
    text: str = ""
    """All that is to be told, in spoken form."""
    rest: str = ""
    """What of `text` has not been heard yet."""
    unwanted: str = ""
    """Why what is being told of it is not taken up again once its reply has ended; "" while it is wanted."""
    declines: int = 0
    """Times the front end declined to speak it."""
    resumes: int = 0
    """Times it was taken up again after an interruption."""
    reply: str = ""
    """Id of the reply that told of it last."""
    heard: tuple | list = ()
    """Delivery history: [from, to] in characters of `text`, one entry for each time some of it was heard."""

    @property
    def live(self) -> bool:
        """The work may still be done."""
        return self.execution not in EXECUTION_END

    @property
    def closed(self) -> bool:
        """Nothing of it will change any more."""
        return not self.live and self.delivery in DELIVERY_END

    @property
    def untold(self) -> bool:
        """Something about it is still to be said."""
        return self.delivery in (Delivery.PENDING, Delivery.DELIVERING, Delivery.INTERRUPTED)


@dataclass(frozen=True)
class SkillSpec:
    """What the harness needs to know of a capability; times in seconds, None for the harness's setting of that name.

    Built from the skill's manifest by the catalog.
    """

    id: str
    timeout_s: float = 3.0
    slow: bool = False
    """Expected to take longer than a second: acknowledged at once."""
    supersedes: str = ""
    result_ttl_s: float = 60.0
    on_interrupt: str = "keep"
    """keep | cancel | ask: what becomes of a running task when the user takes the floor."""
    on_topic_change: str = "introduce"
    """introduce | drop: what becomes of a result when the user has asked for something else since."""
    derived: frozenset[str] = frozenset()
    """Arguments whose numbers need not be among the user's words ("turn it up" is a delta of 10); "*" for all."""
    idempotent: bool = True
    """A second run of the same call does no harm: it may be retried, and run again after a restart."""
    cancellable: bool = True
    """False: once started it can't be stopped, and the user who asks for that is told so."""
    retries: int = 1
    """Further runs after a failure that may pass (`unavailable`, or not started), where a run does no harm."""
    priority: str = "normal"
    """safety | waiting | normal | background: who goes first. A request of the newest turn counts as `waiting`."""
    max_running: int | None = None
    """Runs of this capability at once in the whole process; None: no limit of its own."""
    ack_after_s: float | None = None
    first_progress_s: float = 2.5
    progress_after_s: float | None = None
    offer_stop_after_s: float | None = None
    give_up_after_s: float | None = None


@dataclass(frozen=True)
class SkillCall:
    """One execution of a skill. `memory` is the session's small shared memory (JSON values), a copy. In the arguments no control token
    is spelled, whoever wrote them: they may end in a prompt."""

    skill_id: str
    arguments: dict
    task_id: str
    task_version: int
    lang: str
    zone: str
    memory: dict
    timeout_s: float
    session: str = ""
    provenance: str = "live_speech"
    key: str = ""
    """Idempotency key of the request: the same in every retry, and after a restart."""
    confirm: str = ""
    """After the user's yes: the host's token for exactly this effect of `task_id` and `task_version`, which then are those that were
    asked about."""

    def __post_init__(self):
        object.__setattr__(self, "arguments", inert_values(self.arguments))


@dataclass(frozen=True)
class SkillOutcome:
    """What came of a call. A failure is an outcome, not an exception. Raises TypeError naming a field of the wrong type.

    `text` is the spoken form (of the failure too); empty lets the harness find words by `code`.
    """

    ok: bool
    outcome: str = "done"
    """Wording key: done, or the error's code, or the skill's own."""
    text: str = ""
    brief: str = ""
    """A short form, for a long reply that was interrupted early; "" where there is none."""
    fields: dict = field(default_factory=dict)
    """What the wording was filled with."""
    result: dict = field(default_factory=dict)
    code: str = ""
    """Error code of a failure: one of the codes that all skills share (harness/skill.py)."""
    memory: dict | None = None
    """The session memory as the skill left it (a key set to None is forgotten); None leaves it unchanged."""
    started: bool = True
    """False when the skill's code never ran, so that a repetition is harmless."""
    took_s: float = 0.0

    def __post_init__(self):
        # Here, where whoever made it still answers for it: further on there would be no one left to tell, and a task without an end.
        for name in ("outcome", "text", "brief", "code"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"outcome.{name}: a str is needed, not {type(getattr(self, name)).__name__}")
        if self.memory is not None and not isinstance(self.memory, dict):
            raise TypeError(f"outcome.memory: a dict or None is needed, not {type(self.memory).__name__}")


class SkillRunner(Protocol):
    """Runs skills. Cancelling the awaiting asyncio task stops the skill; nothing of it has an effect afterwards."""

    async def run(self, call: SkillCall, on_progress: Callable[[str, str], None]) -> SkillOutcome:
        """Run to the end or to `call.timeout_s` (an outcome with code `timeout`). A failure is an outcome, not an exception.

        `on_progress(outcome, text)` carries the skill's progress: its wording key and its spoken form.
        """
        ...


class SkillCatalog(Protocol):
    """What can be asked for."""

    def has(self, skill_id: str) -> bool: ...

    def contracts(self) -> "tuple[Contract, ...]":
        """What a planner may choose from (harness/plan/contracts.py); the same object every time."""
        ...

    def validate(self, skill_id: str, arguments: dict) -> dict[str, Any]:
        """The arguments, checked and with defaults filled in; raises a VenusError or ValueError that names the field."""
        ...

    def spec(self, skill_id: str) -> SkillSpec: ...

    def say(self, skill_id: str, outcome: str, lang: str, fields: dict[str, Any]) -> str:
        """The skill's own sentence for `ack`, `topic` ("the window") or an error code, filled in; "" where it has none."""
        ...
