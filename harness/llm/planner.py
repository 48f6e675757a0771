"""The planner that asks an OpenAI-compatible endpoint; what it can't get from there, the fall-back planner decides.

    planner = OpenAIPlanner(LLMClient(settings), fallback=offline_planner)
    planned = await planner.plan(request)

The answer is held to a strict JSON schema made for the request, and checked again here: the capability, the target, the arguments
under the contract's own schema, and that every number was among the user's words (else the user is asked).
"""
import json
import logging
from typing import Any, Mapping

from pydantic import BaseModel, ConfigDict, ValidationError

from harness import phrases, schema
from harness.errors import BadRequest
from harness.llm import prompts
from harness.llm.client import LLMClient, Reply
from harness.llm.errors import BadAnswer
from harness.llm.settings import LLMSettings
from harness.llm.strict import Inexpressible, bare, nullable, strict, without_nulls
from harness.oral import spoken
from harness.plan.contracts import Ask, Aside, Contract, Plan, Planned, Planner, PlanRequest
from harness.planning import words_of
from harness.values import unsaid_values
from venus_edge.clock import Clock
from venus_edge.errors import VenusError
from venus_edge.metrics import METRICS

log = logging.getLogger("harness.llm")

CALLS, CONTROLS = ("new", "update", "continue"), ("cancel", "status", "continue", "repeat")
MAX_SAID, MAX_SAID_CHARS, MAX_HEARD_CHARS, MAX_TASKS, MAX_MEMORY_CHARS, MAX_ASK_CHARS = 6, 500, 320, 16, 2000, 300
MIN_LEFT_S = 0.2
"""With less time than this a second try is not begun."""
_NO_USE = ("truncated", "refusal", "filtered")
"""Answers that a second try would bring again."""


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid")
    operation: str
    capability: str | None
    arguments: dict | str | None = None
    target: str | None


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    plans: list[_Row]
    ask: str | None
    aside: bool


class OpenAIPlanner:
    def __init__(self, client: LLMClient, fallback: Planner):
        self._client, self._fallback = client, fallback

    @classmethod
    def from_env(cls, fallback: Planner, clock: Clock | None = None, environ: Mapping[str, str] | None = None) -> "OpenAIPlanner":
        """By VENUS_LLM_URL, VENUS_LLM_MODEL and VENUS_LLM_KEY; raises ConfigError naming what is missing."""
        return cls(LLMClient(LLMSettings.from_env(environ), clock, environ=environ), fallback)

    @property
    def client(self) -> LLMClient:
        return self._client

    async def plan(self, request: PlanRequest) -> Planned:
        """Never raises, and takes no longer than `plan_timeout_s` and the fall-back planner together."""
        METRICS.add("venus_harness_llm_plans_total")
        reason = "empty" if not request.prose.strip() or not request.contracts else ""
        if not reason:
            try:
                planned = await self._ask(request)
            except BadAnswer as error:
                reason = error.reason
            except VenusError as error:
                reason = error.data.get("reason", error.code)
            except Exception as error:  # a fault here costs the request nothing but the model's opinion
                log.error("planning by the endpoint failed: %s", type(error).__name__)
                reason = "internal"
            else:
                METRICS.add("venus_harness_llm_planned_total")
                return planned
        METRICS.add("venus_harness_llm_plan_fallbacks_total")
        METRICS.add(f"venus_harness_llm_plan_fallback_{reason}_total")
        log.info("planned by the fall-back planner: %s", reason)
        try:
            return await self._fallback.plan(request)
        except Exception as error:
            log.error("the fall-back planner failed: %s", type(error).__name__)
            return Ask(phrases.say("ask.rephrase", request.lang))

    async def aclose(self) -> None:
        await self._client.aclose()
        await self._fallback.aclose()

    async def _ask(self, request: PlanRequest) -> Planned:
        settings, clock = self._client.settings, self._client.clock
        deadline = clock.now() + settings.plan_timeout_s
        shapes = {contract.id: shape(contract) for contract in request.contracts}
        form, messages = plan_schema(request, shapes), plan_messages(request, shapes)
        fault: BadAnswer | None = None
        for again in (True, False):
            left = deadline - clock.now()
            if fault is not None and left < MIN_LEFT_S:
                break
            reply = await self._client.chat(messages, timeout_s=left, max_tokens=settings.plan_max_tokens, schema=form)
            try:
                return read(reply, request)
            except BadAnswer as error:
                fault = error
            if not again or fault.reason in _NO_USE:
                break
            METRICS.add("venus_harness_llm_plan_repairs_total")
            messages = [*messages, {"role": "assistant", "content": reply.text[:4000]},
                        {"role": "user", "content": prompts.prompt("plan.repair", request.lang, reason=fault.message)}]
        raise fault


def shape(contract: Contract) -> dict:
    """The strict schema of a contract's arguments; JSON text in a string where there is no strict form."""
    try:
        return strict(contract.schema)
    except Inexpressible:
        text = json.dumps(contract.schema, ensure_ascii=False)
        return {"type": "string", "description": prompts.prompt("plan.json_text", "en", schema=text)}


def plan_schema(request: PlanRequest, shapes: Mapping[str, dict]) -> dict:
    """The strict schema of an answer to this request: only its capabilities and only its tasks can be named.

    Without descriptions: the prompt has them, for endpoints that use the schema but don't show it to the model.
    """
    ids = [task.id for task in request.tasks[:MAX_TASKS]]
    target = nullable({"type": "string", "enum": ids}) if ids else {"type": "null"}
    names = {"type": "string", "enum": list(shapes)}
    rows = [_closed(operation={"type": "string", "enum": list(CALLS)}, capability={"type": "string", "enum": [name]},
                    arguments=bare(arguments), target=target) for name, arguments in shapes.items()]
    rows.append(_closed(operation={"type": "string", "enum": list(CONTROLS)}, capability=nullable(names), target=target))
    return _closed(plans={"type": "array", "items": {"anyOf": rows}}, ask=nullable({"type": "string"}), aside={"type": "boolean"})


def plan_messages(request: PlanRequest, shapes: Mapping[str, dict]) -> list[dict]:
    """What is sent: the rules with the contracts, and the request as data."""
    contracts = "\n".join(_described(contract, shapes[contract.id], request.lang) for contract in request.contracts)
    tasks = [{"id": t.id, "capability": t.capability, "arguments": prompts.cut(t.arguments, MAX_SAID_CHARS),
              "words": prompts.cut(t.prose, MAX_SAID_CHARS), "state": t.state, "age_s": round(t.age_s, 1)} for t in request.tasks[:MAX_TASKS]]
    words = prompts.data(
        utterance=request.prose, said_before=[prompts.cut(text, MAX_SAID_CHARS) for text in request.said[-MAX_SAID:]],
        heard_of_ours=request.heard[-MAX_HEARD_CHARS:], open_question=request.question, open_question_task=request.question_task,
        tasks=tasks, media=request.media, memory=prompts.cut(request.memory, MAX_MEMORY_CHARS))
    return [{"role": "system", "content": prompts.prompt("plan.system", request.lang, contracts=contracts)}, {"role": "user", "content": words}]


def read(reply: Reply, request: PlanRequest) -> Planned:
    """The answer, checked; raises BadAnswer whose message names the field and repeats nothing of the answer."""
    if reply.refused:
        raise BadAnswer("the model refused", "refusal")
    if reply.finish in ("length", "content_filter"):
        raise BadAnswer("the answer is incomplete", "truncated" if reply.finish == "length" else "filtered")
    answer = _parsed(reply.text)
    question = spoken(answer.ask or "", MAX_ASK_CHARS)
    if [bool(answer.plans), bool(question), answer.aside].count(True) != 1:
        raise BadAnswer("exactly one of plans, ask and aside must be given", "schema")
    if answer.aside:
        return Aside()
    if question:
        return Ask(question)
    contracts = {contract.id: contract for contract in request.contracts}
    tasks = {task.id: task for task in request.tasks[:MAX_TASKS]}
    plans = []
    for number, row in enumerate(answer.plans):
        plan = _plan(row, f"plans[{number}]", contracts, tasks)
        if plan.operation in CALLS and plan.capability is not None:
            # What a correction leaves as it was, was said with the request that it corrects.
            words = words_of(request) + (f"\n{tasks[plan.target].prose}" if plan.target else "")
            if unsaid_values(plan.arguments, words, contracts[plan.capability].derived):
                METRICS.add("venus_harness_llm_unsaid_total")
                return Ask(phrases.say("ask.value", request.lang), "value_not_said")
        plans.append(plan)
    return tuple(plans)


def _plan(row: _Row, where: str, contracts: Mapping[str, Contract], tasks: Mapping[str, Any]) -> Plan:
    if row.operation not in (*CALLS, *CONTROLS):
        raise BadAnswer(f"{where}.operation: allowed: {', '.join(dict.fromkeys((*CALLS, *CONTROLS)))}", "schema")
    if row.capability is not None and row.capability not in contracts:
        raise BadAnswer(f"{where}.capability: allowed: {', '.join(contracts)}", "schema")
    if row.target is not None and row.target not in tasks:
        raise BadAnswer(f"{where}.target: allowed: {', '.join(tasks) or 'null'}", "target")
    if row.operation in ("new", "update") and row.capability is None:
        raise BadAnswer(f"{where}.capability: is needed", "schema")
    called = row.capability is not None and (row.operation in ("new", "update") or (row.operation == "continue" and row.arguments is not None))
    if not called:
        return Plan(row.operation, row.capability, {}, row.target)
    full, arguments = contracts[row.capability].schema, row.arguments
    try:
        arguments = prompts.parsed(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise BadAnswer(f"{where}.arguments: a JSON object is needed", "arguments")
    arguments, wrong = without_nulls(full, arguments), None
    try:
        schema.check(full, arguments)
    except BadRequest as error:
        wrong = error.data
    if wrong is not None:
        field = str(wrong.get("field") or "").partition(".")[0]
        known = full.get("properties", {})
        if field not in known:  # the name is the model's own: it may be anything, and goes into no message
            raise BadAnswer(f"{where}.arguments: a field that is not known; allowed: {', '.join(known) or 'none'}", "arguments")
        raise BadAnswer(f"{where}.arguments.{field}: allowed: {wrong.get('allowed') or 'see the schema'}", "arguments")
    return Plan(row.operation, row.capability, arguments, row.target)


def _parsed(text: str) -> _Answer:
    """The answer's JSON; a code fence around it is tolerated. Raises BadAnswer."""
    text = text.strip()
    if text.startswith("```"):
        text = text.strip("`").removeprefix("json")
    fault = BadAnswer("the answer is not the JSON object that was asked for", "not_json")
    try:
        return _Answer.model_validate(prompts.parsed(text))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        known = [str(part) for part in first["loc"] if isinstance(part, int) or part in (*_Answer.model_fields, *_Row.model_fields)]
        fault = BadAnswer(f"{'.'.join(known) or 'answer'}: {first['type'].replace('_', ' ')}", "schema")
    except (ValueError, RecursionError):
        pass
    raise fault


def _closed(**properties: dict) -> dict:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _described(contract: Contract, arguments: dict, lang: str) -> str:
    """A contract as the model reads it: what for, what not for, arguments, two examples."""
    def own(texts: Mapping[str, Any]) -> Any:
        return texts.get(lang) or texts.get("en")

    shown = arguments.get("properties", arguments)
    lines = [f"- {contract.id}: {own(contract.summary) or ''} {json.dumps(shown, ensure_ascii=False)}"]
    if avoid := own(contract.avoid):
        lines.append("  " + prompts.prompt("plan.avoid", lang, text=avoid))
    lines += [f"  {json.dumps(said, ensure_ascii=False)} -> {json.dumps(given, ensure_ascii=False)}"
              for said, given in (own(contract.examples) or ())[:2]]
    return "\n".join(lines)
