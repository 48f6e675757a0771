"""The delegate backend: plans, executes and words a request. `SkillBackend` is the default; a port of another one fits in.

Cancelling the awaiting task cancels `execute`: nothing of it may have an effect afterwards.
"""
from dataclasses import dataclass, field
from typing import Callable, Protocol

from harness.capture.reserved import inert
from harness.evidence import Evidence
from harness.plan.contracts import Contract, Planned, PlanRequest
from harness.task import SkillCall, SkillOutcome, Task

Progress = Callable[[str, str], None]
"""Called with a wording key and the sentence: how far the work is, while it goes on."""


@dataclass(frozen=True)
class ExecuteContext:
    """What an executing capability may know besides its call: the frozen evidence and how to tell of progress.

    In the words, the evidence's too, no control token is spelled: they may end in a prompt.
    """

    evidence: Evidence
    progress: Progress = field(default=lambda outcome, text: None)
    prose: str = ""
    """The user's own words."""

    def __post_init__(self):
        object.__setattr__(self, "prose", inert(self.prose))
        object.__setattr__(self, "evidence", self.evidence.inert())


class DelegateBackend(Protocol):
    def contracts(self) -> tuple[Contract, ...]:
        """What can be asked for: skills, and `direct` and `general` where this backend serves them."""
        ...

    async def plan(self, request: PlanRequest) -> Planned:
        """What prose asks for."""
        ...

    async def execute(self, call: SkillCall, context: ExecuteContext) -> SkillOutcome:
        """Run to the end or to `call.timeout_s` (an outcome with code `timeout`). A failure is an outcome, not an exception."""
        ...

    async def oralize(self, task: Task, outcome: SkillOutcome) -> str:
        """The spoken form of what came of it; "" lets the harness find words. Never more than the outcome supports."""
        ...

    async def aclose(self) -> None: ...
