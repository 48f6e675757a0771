"""What a planner is given and what it may answer. Plain data; the answer is checked again before anything happens.

    planned = await planner.plan(PlanRequest("take me to the casino", "en", contracts, tasks))
    # (Plan("new", "navigation.go", {"destination": "casino"}),)  or  Ask(...)  or  Aside(...)
"""
from dataclasses import dataclass, field
from typing import Protocol

OPERATIONS = ("new", "update", "cancel", "status", "continue", "repeat")
"""What prose can want: a new task; a correction of `target`; an end to it; how far it is; going on with it (the answer to
what was asked back, "and the next one?"); hearing the last result again."""
KINDS = ("skill", "direct", "general")


@dataclass(frozen=True)
class Contract:
    """One capability as a planner sees it. Texts by language (en, zh)."""

    id: str
    summary: dict[str, str]
    schema: dict
    """JSON schema of the arguments."""
    kind: str = "skill"
    """skill | direct (answered at once from the evidence) | general (an agent that takes several steps)"""
    avoid: dict[str, str] = field(default_factory=dict)
    """When not to use it."""
    examples: dict[str, tuple[tuple[str, dict], ...]] = field(default_factory=dict)
    """Per language: (utterance, arguments)."""
    derived: frozenset[str] = frozenset()
    """Arguments whose numbers need not be among the user's words; "*" for all."""
    group: str = ""
    """Tasks of one non-empty group replace each other when the user corrects a request."""


@dataclass(frozen=True)
class LiveTask:
    """One row of the ledger as a planner sees it. `state`: queued | running | ready (not told yet) | told | failed."""

    id: str
    capability: str
    arguments: dict
    prose: str
    state: str
    age_s: float
    turn: int


@dataclass(frozen=True)
class PlanRequest:
    """Everything a planner may know of a request. `tasks` newest first: live, untold and lately told ones."""

    prose: str
    lang: str
    contracts: tuple[Contract, ...]
    tasks: tuple[LiveTask, ...] = ()
    said: tuple[str, ...] = ()
    """What the user said before, oldest first (from the frozen evidence)."""
    heard: str = ""
    """What of our last words the device confirmed heard."""
    question: str = ""
    """The open question of ours that this prose may answer; "" where there is none."""
    question_task: str = ""
    """The task that the question is about."""
    media: str = ""
    """Counts of what else is in the evidence ("3 frames, 8.0 s audio"): never the media themselves."""
    memory: dict = field(default_factory=dict)
    """The session's small shared memory (last places offered, current destination)."""


@dataclass(frozen=True)
class Plan:
    """One thing asked for. `target`: id of the task that update, cancel, status and continue are about, where known."""

    operation: str
    capability: str | None = None
    arguments: dict = field(default_factory=dict)
    target: str | None = None


@dataclass(frozen=True)
class Ask:
    """The planner can't tell; `text` is the question to put to the user."""

    text: str
    reason: str = "unclear"


@dataclass(frozen=True)
class Aside:
    """Not meant for the assistant, or nothing to do: no task, nothing is said."""

    reason: str = "not addressed"


Planned = tuple[Plan, ...] | Ask | Aside
"""One Plan per thing asked for (at least one), or none and why."""


class Planner(Protocol):
    async def plan(self, request: PlanRequest) -> Planned:
        """Must not raise for any prose; what it can't decide is an Ask."""
        ...

    async def aclose(self) -> None: ...
