"""Dispatch: what a request means for the harness: call a capability, control other tasks, say something, or plan first.

A typed call is checked against the capability's schema and goes straight through. Prose without one goes to a planner,
whose answer is checked the same way. Exact values must be among the user's words, else the user is asked.
"""
import json
import logging
from dataclasses import dataclass

from harness import phrases
from harness.evidence import MAX_ARGUMENTS_CHARS, DelegateRequest
from harness.plan.contracts import Plan
from harness.task import SkillCatalog, SkillSpec
from harness.values import unsaid_values
from venus_edge.errors import VenusError
from venus_edge.metrics import METRICS

log = logging.getLogger("harness.dispatch")

PLAN, ASK, CANCEL, STATUS, REPEAT, KEEP = (f"harness.{name}" for name in ("plan", "ask", "cancel", "status", "repeat", "keep"))
"""Capabilities of the harness itself, as they stand in the ledger. PLAN: prose that a planner has not read yet; KEEP: the
user wants it to go on."""
OWN = {"cancel": CANCEL, "status": STATUS, "repeat": REPEAT}
HARNESS_OWN = frozenset({PLAN, ASK, KEEP, *OWN.values()})


@dataclass(frozen=True)
class Call:
    """Run a capability with checked arguments. `corrects`: it takes the place of an earlier task; `continues`: it goes on
    with one. `target`: which task, where that is known."""

    spec: SkillSpec
    arguments: dict
    corrects: bool = False
    continues: bool = False
    target: str = ""


@dataclass(frozen=True)
class Control:
    """Act on other tasks: on `target` where it is known, else on the newest of `capability`, else on the newest."""

    operation: str
    capability: str | None = None
    target: str = ""


@dataclass(frozen=True)
class Say:
    """Answer at once. `reason` is the code for the ledger and the logs."""

    text: str
    kind: str
    reason: str


@dataclass(frozen=True)
class PlanFirst:
    """A planner must read the prose."""


class _Broken(Exception):
    """A capability's own check failed."""


class Dispatcher:
    def __init__(self, catalog: SkillCatalog):
        self.catalog = catalog

    def decide(self, request: DelegateRequest) -> Call | Control | Say | PlanFirst:
        """Never raises: what can't be dispatched is said."""
        if request.repair in OWN:
            return Control(request.repair, request.capability)
        if request.capability is None:
            return PlanFirst() if request.prose.strip() else Say(phrases.say("ask.rephrase", request.lang), "question", "unclear")
        return self._call(request, request.repair, request.capability, request.arguments, "", request.prose)

    def planned(self, request: DelegateRequest, plan: Plan, words: str) -> Call | Control | Say:
        """The same for one plan; `words`: all that the user said and heard that its values may come from."""
        operation = request.repair if plan.operation == "new" and request.repair != "new" else plan.operation
        if operation in OWN:
            return Control(operation, plan.capability, plan.target or "")
        return self._call(request, operation, plan.capability or "", plan.arguments, plan.target or "", words)

    def spec(self, capability: str) -> SkillSpec | None:
        """The capability's spec; None for the harness's own and for what the catalog doesn't hold."""
        return self.catalog.spec(capability) if self.catalog.has(capability) else None

    def _call(self, request: DelegateRequest, operation: str, capability: str, arguments: dict, target: str, words: str) -> Call | Say:
        spec = self.spec(capability)
        if spec is None or operation not in ("new", "update", "continue"):
            return Say(phrases.say("refuse.unknown", request.lang), "notice", "unknown_capability")
        try:
            checked = self._checked(capability, arguments)
        except _Broken as error:
            log.error("the check of %s's arguments failed for request %s: %s", capability, request.key, error)
            METRICS.add("venus_harness_argument_faults_total")
            return Say(phrases.say("error.internal", request.lang, topic=phrases.say("topic.other", request.lang)), "notice", "internal")
        except (VenusError, ValueError, TypeError) as error:
            log.info("arguments of %s refused for request %s: %s", capability, request.key, type(error).__name__)
            own = self.catalog.say(capability, "invalid_args", request.lang, getattr(error, "data", {}))
            return Say(own or phrases.say("ask.arguments", request.lang), "question", "invalid_args")
        unsaid = unsaid_values(arguments, words, spec.derived)
        if unsaid:
            log.info("argument %s of %s is not in the words of request %s", unsaid[0], capability, request.key)
            return Say(phrases.say("ask.value", request.lang), "question", "value_not_said")
        return Call(spec, checked, operation == "update", operation == "continue", target)

    def _checked(self, capability: str, arguments: dict) -> dict:
        """What the catalog makes of the arguments; _Broken where it is the check that is wrong, not what was checked."""
        try:
            checked = dict(self.catalog.validate(capability, dict(arguments)))
        except (VenusError, ValueError, TypeError):
            raise
        except Exception as error:
            raise _Broken(type(error).__name__) from None
        try:  # what no journal can keep is found here, before there is a task
            size = len(json.dumps(checked, allow_nan=False, ensure_ascii=False))
        except (TypeError, ValueError, RecursionError):
            raise _Broken("no JSON") from None
        if size > MAX_ARGUMENTS_CHARS:
            raise _Broken(f"{size} characters as JSON, at most {MAX_ARGUMENTS_CHARS}")
        return checked
