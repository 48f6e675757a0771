"""The installed skills as the harness's catalog: limits, argument checks and sentences out of the registry."""
from typing import Any

from harness.execute.registry import Registry
from harness.task import SkillSpec


class RegistryCatalog:
    """A SkillCatalog over harness.execute.registry."""

    def __init__(self, registry: Registry):
        self._registry = registry
        self._specs = {}
        for skill_id in registry.ids():
            skill = registry.get(skill_id)
            self._specs[skill_id] = SkillSpec(
                id=skill_id, timeout_s=skill.timeout_s, slow=skill.slow, supersedes=skill.supersedes,
                result_ttl_s=skill.result_ttl_s, on_interrupt=skill.on_interrupt,
                first_progress_s=skill.first_progress_s, derived=frozenset(skill.derived))

    def has(self, skill_id: str) -> bool:
        return skill_id in self._specs

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
