"""The installed skills as the harness's catalog, and a catalog that a backend's further capabilities join."""
import logging
from typing import Any

from harness import schema
from harness.execute.registry import Registry
from harness.plan.contracts import Contract
from harness.task import SkillCatalog, SkillSpec
from venus_edge.errors import ConfigError
from venus_edge.metrics import METRICS

log = logging.getLogger("harness.catalog")

RESERVED = "harness."
DIRECT_TIMEOUT_S, GENERAL_TIMEOUT_S = 20.0, 60.0


class RegistryCatalog:
    """A SkillCatalog over harness.execute.registry."""

    def __init__(self, registry: Registry):
        self._registry = registry
        self._specs: dict[str, SkillSpec] = {}
        contracts = []
        for skill_id in registry.ids():
            skill = registry.get(skill_id)
            self._specs[skill_id] = SkillSpec(
                id=skill_id, timeout_s=skill.timeout_s, slow=skill.slow, supersedes=skill.supersedes,
                result_ttl_s=skill.result_ttl_s, on_interrupt=skill.on_interrupt, on_topic_change=skill.on_topic_change,
                derived=frozenset(skill.derived), idempotent=skill.idempotent, cancellable=skill.cancellable,
                retries=skill.retries, priority=skill.priority, max_running=skill.max_running, ack_after_s=skill.ack_after_s,
                first_progress_s=skill.first_progress_s, progress_after_s=skill.progress_after_s,
                offer_stop_after_s=skill.offer_stop_after_s, give_up_after_s=skill.give_up_after_s)
            contracts.append(Contract(
                id=skill_id, summary=dict(skill.summary), schema=skill.Args.model_json_schema(), avoid=dict(skill.avoid),
                examples={lang: tuple(rows) for lang, rows in skill.examples.items()}, derived=frozenset(skill.derived),
                group=skill.supersedes))
        self._contracts = tuple(contracts)

    def has(self, skill_id: str) -> bool:
        return skill_id in self._specs

    def contracts(self) -> tuple[Contract, ...]:
        """What a planner may choose from. The same object every time."""
        return self._contracts

    def validate(self, skill_id: str, arguments: dict) -> dict[str, Any]:
        """Checked arguments as JSON values, defaults filled in; raises SkillError("invalid_args") naming the field."""
        return self._registry.validate(skill_id, arguments).model_dump(mode="json")

    def spec(self, skill_id: str) -> SkillSpec:
        return self._specs[skill_id]

    def say(self, skill_id: str, outcome: str, lang: str, fields: dict[str, Any]) -> str:
        """The skill's own sentence, or "". A wrong argument is always explained: the shared wording knows the range."""
        if outcome == "invalid_args" or self._registry.wording.has(skill_id, outcome):
            return self._registry.say(skill_id, outcome, lang, fields)
        return ""


class Capabilities:
    """A catalog plus those of a backend's contracts that it doesn't hold (direct answers, general tasks)."""

    def __init__(self, catalog: SkillCatalog, contracts: tuple[Contract, ...]):
        """Raises ConfigError for a contract that takes one of the harness's own names."""
        taken = next((c.id for c in contracts if c.id.startswith(RESERVED)), "")
        if taken:
            raise ConfigError(f"capability {taken!r}: names that begin with {RESERVED!r} are the harness's own")
        self._catalog = catalog
        self._more = {c.id: c for c in contracts if not catalog.has(c.id)}
        self._specs = {c.id: SkillSpec(c.id, timeout_s=GENERAL_TIMEOUT_S if c.kind == "general" else DIRECT_TIMEOUT_S, slow=True,
                                       supersedes=c.group, derived=frozenset("*"), on_interrupt="keep", idempotent=c.kind != "general",
                                       first_progress_s=2.5) for c in self._more.values()}

    def has(self, skill_id: str) -> bool:
        return skill_id in self._more or self._catalog.has(skill_id)

    def validate(self, skill_id: str, arguments: dict) -> dict[str, Any]:
        """Checked arguments with defaults; raises a VenusError that names the field."""
        if skill_id in self._more:
            return schema.check(self._more[skill_id].schema, arguments)
        return self._catalog.validate(skill_id, arguments)

    def spec(self, skill_id: str) -> SkillSpec:
        return self._specs[skill_id] if skill_id in self._specs else self._catalog.spec(skill_id)

    def say(self, skill_id: str, outcome: str, lang: str, fields: dict[str, Any]) -> str:
        """The catalog's sentence; "" where it has none, or breaks: the harness has words of its own for everything."""
        try:
            text = "" if skill_id in self._more else self._catalog.say(skill_id, outcome, lang, fields)
        except Exception as error:
            log.error("the wording of %s.%s failed: %s", skill_id, outcome, type(error).__name__)
            METRICS.add("venus_harness_wording_faults_total")
            return ""
        return text if isinstance(text, str) else ""
