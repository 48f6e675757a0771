"""Dispatch: what a request means for the harness: call a skill, control other tasks, or ask the user back.

A typed call is checked against the skill's schema and goes straight through; prose without one goes to a planner, whose
answer is checked the same way. Exact values must be among the user's words, else the user is asked.
"""
import logging
from dataclasses import dataclass, field
from typing import Protocol

from harness import phrases
from harness.evidence import DelegateRequest
from harness.task import SkillCatalog, SkillSpec
from harness.values import unsaid_values
from venus_edge.errors import VenusError
from venus_edge.metrics import METRICS

log = logging.getLogger("harness.dispatch")

ASK, CANCEL, STATUS, REPEAT = "harness.ask", "harness.cancel", "harness.status", "harness.repeat"
"""Capabilities of the harness itself, as they stand in the ledger."""
OWN = {"cancel": CANCEL, "status": STATUS, "repeat": REPEAT}


@dataclass(frozen=True)
class Plan:
    """What prose asks for. `operation`: new | update | cancel | status | repeat."""

    operation: str
    capability: str | None = None
    arguments: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Ask:
    """The planner can't tell; `text` is the question to put to the user."""

    text: str


class Planner(Protocol):
    """Deterministic and quick (milliseconds): it runs on the session's event loop."""

    def plan(self, prose: str, lang: str) -> Plan | Ask: ...


class AskBackPlanner:
    """Plans nothing: every request without a typed call is answered with a polite question."""

    def plan(self, prose: str, lang: str) -> Plan | Ask:
        return Ask(phrases.say("ask.rephrase", lang))


@dataclass(frozen=True)
class Call:
    """Run a skill with checked arguments. `corrects`: it takes the place of an earlier task."""

    spec: SkillSpec
    arguments: dict
    corrects: bool = False


@dataclass(frozen=True)
class Control:
    """Act on other tasks. `capability` narrows the choice to tasks of that skill, where given."""

    operation: str
    capability: str | None = None


@dataclass(frozen=True)
class Say:
    """Answer at once. `reason` is the code for the ledger and the logs."""

    text: str
    kind: str
    reason: str


class Dispatcher:
    def __init__(self, catalog: SkillCatalog, planner: Planner | None = None):
        self.catalog, self.planner = catalog, planner or AskBackPlanner()

    def decide(self, request: DelegateRequest) -> Call | Control | Say:
        """Never raises: what can't be dispatched is said."""
        operation, capability, arguments = request.repair, request.capability, request.arguments
        if operation in OWN:
            return Control(operation, capability)
        if capability is None:
            planned = self._plan(request)
            if isinstance(planned, Ask):
                return Say(planned.text, "question", "unclear")
            operation = planned.operation if operation == "new" else operation
            if operation in OWN:
                return Control(operation, planned.capability)
            capability, arguments = planned.capability, planned.arguments
        return self._call(request, operation, capability or "", arguments)

    def spec(self, capability: str) -> SkillSpec | None:
        """The skill's spec; None for the harness's own capabilities and for what the catalog doesn't hold."""
        return self.catalog.spec(capability) if self.catalog.has(capability) else None

    def _plan(self, request: DelegateRequest) -> Plan | Ask:
        rephrase = Ask(phrases.say("ask.rephrase", request.lang))
        if not request.prose.strip():
            return rephrase
        try:
            return self.planner.plan(request.prose, request.lang)
        except Exception as error:  # a planner's fault costs this request a question, never the session
            log.error("planner failed on request %s: %s", request.key, type(error).__name__)
            METRICS.add("venus_harness_planner_faults_total")
            return rephrase

    def _call(self, request: DelegateRequest, operation: str, capability: str, arguments: dict) -> Call | Say:
        spec = self.spec(capability)
        if spec is None or operation not in ("new", "update"):
            return Say(phrases.say("refuse.unknown", request.lang), "notice", "unknown_capability")
        try:
            checked = dict(self.catalog.validate(capability, dict(arguments)))
        except (VenusError, ValueError, TypeError) as error:
            log.info("arguments of %s refused for request %s: %s", capability, request.key, type(error).__name__)
            own = self.catalog.say(capability, "invalid_args", request.lang, getattr(error, "data", {}))
            return Say(own or phrases.say("ask.arguments", request.lang), "question", "invalid_args")
        unsaid = unsaid_values(arguments, request.prose, spec.derived)
        if unsaid:
            log.info("argument %s of %s is not in the words of request %s", unsaid[0], capability, request.key)
            return Say(phrases.say("ask.value", request.lang), "question", "value_not_said")
        return Call(spec, checked, operation == "update")
