"""The default backend: installed skills, the offline planner, and the skills' own wording."""
import logging

from harness import phrases
from harness.backend import ExecuteContext
from harness.plan.contracts import Ask, Contract, Planned, Planner, PlanRequest
from harness.task import SkillCall, SkillCatalog, SkillOutcome, SkillRunner, Task

log = logging.getLogger("harness.backend")


class AskBackPlanner:
    """Plans nothing: every request without a typed call is answered with a polite question."""

    async def plan(self, request: PlanRequest) -> Planned:
        return Ask(phrases.say("ask.rephrase", request.lang))

    async def aclose(self) -> None:
        return None


class SkillBackend:
    """A DelegateBackend over a catalog and a runner. Without a planner, prose is asked back.

    `owns_runner`: close the runner with the backend (it needs an async `close`)."""

    def __init__(self, catalog: SkillCatalog, runner: SkillRunner, planner: Planner | None = None, *, owns_runner: bool = False):
        self.catalog, self.runner, self.planner = catalog, runner, planner or AskBackPlanner()
        self._owns_runner = owns_runner

    def contracts(self) -> tuple[Contract, ...]:
        return self.catalog.contracts()

    async def plan(self, request: PlanRequest) -> Planned:
        return await self.planner.plan(request)

    async def execute(self, call: SkillCall, context: ExecuteContext) -> SkillOutcome:
        return await self.runner.run(call, context.progress)

    async def oralize(self, task: Task, outcome: SkillOutcome) -> str:
        return outcome.text

    async def aclose(self) -> None:
        await self.planner.aclose()
        if self._owns_runner:
            await self.runner.close()
