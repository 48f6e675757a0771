"""A delegate backend around another one: plans and answers by an OpenAI-compatible endpoint, leaves the skills to the inner one.

    backend = LLMBackend(SkillBackend(catalog, runner, planner), LLMClient(LLMSettings.from_env()), allowed={"poi.find"})
"""
import hashlib
import json
from dataclasses import replace
from typing import Collection

from harness.backend import DelegateBackend, ExecuteContext
from harness.llm.agent import DIRECT, GENERAL, DirectAnswer, GeneralTask
from harness.llm.client import LLMClient
from harness.llm.oralizer import LLMOralizer
from harness.llm.planner import OpenAIPlanner
from harness.plan.contracts import Contract, Planned, PlanRequest
from harness.task import SkillCall, SkillOutcome, Task
from venus_edge.errors import ConfigError


class _InnerPlanner:
    """The inner backend as the planner to fall back on."""

    def __init__(self, inner: DelegateBackend):
        self._inner = inner

    async def plan(self, request: PlanRequest) -> Planned:
        return await self._inner.plan(request)

    async def aclose(self) -> None:
        return None  # the backend closes it


class LLMBackend:
    """`allowed`: skills that a general task may call by itself, by default none; raises ConfigError for an id that `inner` hasn't.

    `plan`, `oralize`: whether the endpoint plans prose (with `inner` to fall back on) and rewords results (off: it costs time on every
    result). A capability that `inner` already serves stays its own. Closing this closes the client and `inner`.
    """

    def __init__(self, inner: DelegateBackend, client: LLMClient, *, allowed: Collection[str] = (), plan: bool = True, oralize: bool = False):
        known = sorted(c.id for c in inner.contracts() if c.kind == "skill")
        if unknown := sorted(set(allowed) - set(known)):
            raise ConfigError(f"allowed: no skill {unknown[0]!r}; known: {', '.join(known) or 'none'}")
        self.inner, self.client = inner, client
        self.planner = OpenAIPlanner(client, _InnerPlanner(inner)) if plan else _InnerPlanner(inner)
        self._oralizer = LLMOralizer(client) if oralize else None
        self._direct, self._general = DirectAnswer(client), GeneralTask(client, inner.contracts, allowed)
        self._listed: tuple[tuple[Contract, ...], tuple[Contract, ...]] = ((), ())

    def contracts(self) -> tuple[Contract, ...]:
        """The inner backend's, direct.answer and general.task. The same object as long as the inner ones are."""
        inner = self.inner.contracts()
        if inner is not self._listed[0] or not self._listed[1]:
            taken = {contract.id for contract in inner}
            self._listed = (inner, inner + tuple(c for c in (DIRECT, GENERAL) if c.id not in taken))
        return self._listed[1]

    async def plan(self, request: PlanRequest) -> Planned:
        return await self.planner.plan(request)

    async def execute(self, call: SkillCall, context: ExecuteContext) -> SkillOutcome:
        if self._ours(call.skill_id):
            return await (self._direct.run(call, context) if call.skill_id == DIRECT.id else self._run_general(call, context))
        return await self.inner.execute(call, context)

    async def oralize(self, task: Task, outcome: SkillOutcome) -> str:
        if self._ours(task.capability):
            return outcome.text  # already the model's own words, or a sentence of ours
        template = await self.inner.oralize(task, outcome)
        return template if self._oralizer is None else await self._oralizer.oralize(task, outcome, template)

    async def aclose(self) -> None:
        try:
            await self.client.aclose()
        finally:
            await self.inner.aclose()

    def _ours(self, capability: str) -> bool:
        return capability in (DIRECT.id, GENERAL.id) and all(c.id != capability for c in self.inner.contracts())

    async def _run_general(self, call: SkillCall, context: ExecuteContext) -> SkillOutcome:
        memory, changed = call.memory, False

        async def call_skill(capability: str, arguments: dict, seconds: float) -> SkillOutcome:
            """One skill for this task, with the memory as the one before left it, and a key of its own that a repetition shares."""
            nonlocal memory, changed
            facts = json.dumps([call.key, capability, arguments], sort_keys=True)
            inner_call = replace(call, skill_id=capability, arguments=arguments, memory=dict(memory), timeout_s=seconds,
                                 key=hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()[:32])
            outcome = await self.inner.execute(inner_call, context)
            if outcome.memory is not None:
                memory, changed = outcome.memory, True
            return outcome

        outcome = await self._general.run(call, context, call_skill)
        return replace(outcome, memory=dict(memory)) if changed else outcome
