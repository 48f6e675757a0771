"""What the harness works on: the task record with its two states, and what it asks of the skill side.

Everything here is plain data: the ledger moves tasks, the scheduler runs calls, the delivery speaks outcomes.
"""
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Callable, Protocol


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
    declines: int = 0
    """Times the front end declined to speak it."""
    resumes: int = 0
    """Times it was taken up again after an interruption."""

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
    """What the harness needs to know of a skill; times in seconds. Built from the skill's manifest by the catalog."""

    id: str
    timeout_s: float = 3.0
    slow: bool = False
    """Expected to take longer than a second: acknowledged at once."""
    supersedes: str = ""
    result_ttl_s: float = 60.0
    on_interrupt: str = "keep"
    """keep | cancel: what becomes of a running task when the user takes the floor."""
    first_progress_s: float = 2.5
    derived: frozenset[str] = frozenset()
    """Arguments whose numbers need not be among the user's words ("turn it up" is a delta of 10); "*" for all."""


@dataclass(frozen=True)
class SkillCall:
    """One execution of a skill. `memory` is the session's small shared memory (JSON values), a copy."""

    skill_id: str
    arguments: dict
    task_id: str
    task_version: int
    lang: str
    zone: str
    memory: dict
    timeout_s: float


@dataclass(frozen=True)
class SkillOutcome:
    """What came of a call. A failure is an outcome, not an exception.

    `text` is the spoken form (of the failure too); empty lets the harness find words by `code`.
    """

    ok: bool
    outcome: str = "done"
    """Wording key: done, or the error's code, or the skill's own."""
    text: str = ""
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

    def validate(self, skill_id: str, arguments: dict) -> dict[str, Any]:
        """The arguments, checked and with defaults filled in; raises a VenusError or ValueError that names the field."""
        ...

    def spec(self, skill_id: str) -> SkillSpec: ...

    def say(self, skill_id: str, outcome: str, lang: str, fields: dict[str, Any]) -> str:
        """The skill's own sentence for `ack`, `topic` ("the window") or an error code, filled in; "" where it has none."""
        ...
