"""What is installed: skills and providers by entry point, their arguments checked, their wording found.

Errors: ConfigError for a duplicate id, a broken manifest or a provider that nothing offers; SkillError("invalid_args") for
arguments, SkillError("not_found") for an unknown skill.
"""
import inspect
import json
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Callable

from pydantic import ValidationError

from harness.execute.wording import SkillWording
from harness.skill import Args, Result, Skill, SkillError
from venus_edge.errors import ConfigError

SKILLS_GROUP, PROVIDERS_GROUP = "venus.skills", "venus.providers"
SAFETY = ("free", "zoned", "moving_limit", "parked_only")
USABLE = ("maps", "places")
CHOICES = {"on_interrupt": ("keep", "cancel", "ask"), "on_topic_change": ("introduce", "drop"),
           "priority": ("safety", "waiting", "normal", "background")}
ARGUMENTS_LIMIT = 64 * 1024


@dataclass(frozen=True)
class RegistrySpec:
    """Where skills and providers are found, as `module:attribute`; travels to the skill processes as JSON."""

    skills: tuple[str, ...] = ()
    providers: dict[str, str] = field(default_factory=dict)
    """Provider name -> a function of the cache directory."""

    @classmethod
    def from_entry_points(cls) -> "RegistrySpec":
        """Whatever the installed packages register."""
        skills = sorted(entry_points(group=SKILLS_GROUP), key=lambda point: point.name)
        providers = entry_points(group=PROVIDERS_GROUP)
        return cls(tuple(p.value for p in skills), {p.name: p.value for p in providers})

    def to_json(self) -> str:
        return json.dumps({"skills": self.skills, "providers": self.providers})

    @classmethod
    def from_json(cls, text: str) -> "RegistrySpec":
        data = json.loads(text)
        return cls(tuple(data["skills"]), data["providers"])


def load(reference: str) -> Any:
    """The object behind `module:attribute`; raises ConfigError naming the reference."""
    module, _, attribute = reference.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as err:
        raise ConfigError(f"entry point {reference!r} can't be loaded: {err}") from err


class Registry:
    """The skills of one process, by id."""

    def __init__(self, spec: RegistrySpec, skills: list[type[Skill]]):
        self.spec = spec
        self._skills: dict[str, type[Skill]] = {}
        for skill in skills:
            _check(skill)
            other = self._skills.get(skill.id)
            if other is not None:
                raise ConfigError(f"skill id {skill.id!r} is registered twice: {_where(other)} and {_where(skill)}")
            missing = [name for name in skill.effects.uses if name not in spec.providers]
            if missing:
                raise ConfigError(f"skill {skill.id!r} uses {', '.join(missing)}, which no installed package provides; "
                                  f"provided: {', '.join(sorted(spec.providers)) or 'nothing'}")
            self._skills[skill.id] = skill
        self.wording = SkillWording(*(skill.wording for skill in self._skills.values()))

    @classmethod
    def from_spec(cls, spec: RegistrySpec) -> "Registry":
        return cls(spec, [skill for reference in spec.skills for skill in load(reference)])

    @classmethod
    def from_entry_points(cls) -> "Registry":
        """Everything installed; raises ConfigError when that is nothing."""
        spec = RegistrySpec.from_entry_points()
        if not spec.skills:
            raise ConfigError(f"no package registers skills (entry-point group {SKILLS_GROUP}); run `make setup`")
        return cls.from_spec(spec)

    @classmethod
    def from_modules(cls, skills: list[str], providers: dict[str, str] | None = None) -> "Registry":
        """Named modules instead of entry points: `package.module` (its SKILLS) or `package.module:attribute`."""
        return cls.from_spec(RegistrySpec(tuple(s if ":" in s else f"{s}:SKILLS" for s in skills), providers or {}))

    def ids(self) -> list[str]:
        return sorted(self._skills)

    def get(self, skill_id: str) -> type[Skill]:
        """The skill's class; raises SkillError("not_found")."""
        try:
            return self._skills[skill_id]
        except KeyError:
            raise SkillError("not_found", f"no skill {skill_id!r}; known: {', '.join(self.ids())}", skill=skill_id) from None

    def validate(self, skill_id: str, arguments: dict) -> Args:
        """The checked arguments; raises SkillError("invalid_args") that names the field and its range."""
        skill = self.get(skill_id)
        size = len(json.dumps(arguments, ensure_ascii=False, default=str).encode())
        if size > ARGUMENTS_LIMIT:
            raise SkillError("invalid_args", f"{skill_id}: arguments of {size} bytes; at most {ARGUMENTS_LIMIT}")
        try:
            return skill.Args.model_validate(arguments)
        except ValidationError as err:
            first = err.errors(include_url=False, include_context=True)[0]
            name = str(first["loc"][0]) if first["loc"] else ""
            allowed = allowed_values(skill.Args, name)
            data = {"field": name, "allowed": allowed, **_bounds(skill.Args, name)}
            raise SkillError("invalid_args", f"{skill_id}: {name or 'arguments'}: {first['msg']}"
                             + (f" (allowed: {allowed})" if allowed else ""), **data) from None

    def say(self, skill_id: str, outcome: str, lang: str = "en", fields: dict | None = None) -> str:
        """The spoken sentence of an outcome, from the skill's wording or the shared one."""
        return self.wording.say(skill_id, outcome, lang, fields)


def _where(thing: type) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _check(skill: type[Skill]) -> None:
    """Refuse a manifest that can't work, naming the class and the field."""
    def wrong(what: str):
        raise ConfigError(f"skill {_where(skill)}: {what}")

    if not (inspect.isclass(skill) and issubclass(skill, Skill)):
        raise ConfigError(f"{skill!r} is not a subclass of harness.skill.Skill")
    for name in ("id", "version", "summary", "wording"):
        if not getattr(skill, name, None):
            wrong(f"{name} is missing")
    if set(skill.summary) < {"en", "zh"}:
        wrong("summary needs en and zh")
    if not issubclass(skill.Args, Args) or not issubclass(skill.Result, Result):
        wrong("Args and Result must derive from harness.skill.Args and Result")
    if skill.safety not in SAFETY:
        wrong(f"safety is {skill.safety!r}; allowed: {', '.join(SAFETY)}")
    for name, allowed in CHOICES.items():
        if getattr(skill, name) not in allowed:
            wrong(f"{name} is {getattr(skill, name)!r}; allowed: {', '.join(allowed)}")
    if not 0 <= skill.retries <= 5:
        wrong(f"retries is {skill.retries}; allowed: 0 to 5")
    if not 0 < skill.timeout_s <= 120:
        wrong(f"timeout_s is {skill.timeout_s}; allowed: above 0, at most 120")
    if unknown := set(skill.effects.uses) - set(USABLE):
        wrong(f"effects.uses names {', '.join(sorted(unknown))}; allowed: {', '.join(USABLE)}")
    if not Path(skill.wording).is_file():
        wrong(f"wording file {skill.wording} is missing")


def _bounds(model: type[Args], name: str) -> dict[str, float]:
    """{"low", "high"} where the field has both bounds."""
    info = model.model_fields.get(name)
    found = {}
    for rule in info.metadata if info else ():
        for attribute, key in (("ge", "low"), ("gt", "low"), ("le", "high"), ("lt", "high")):
            if getattr(rule, attribute, None) is not None:
                found[key] = getattr(rule, attribute)
    return found if len(found) == 2 else {}


def allowed_values(model: type[Args], name: str) -> str:
    """What a field accepts, in words: a range, a list of values or a type; "" for an unknown field's siblings."""
    if name not in model.model_fields:
        return "fields " + ", ".join(model.model_fields) if model.model_fields else "no fields"
    schema = model.model_json_schema()["properties"].get(name, {})
    bounds = _bounds(model, name)
    if bounds:
        return f"{bounds['low']} to {bounds['high']}"
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    return schema.get("type", "")


def open_providers(registry: Registry, cache_dir: Path) -> dict[str, Any]:
    """Open the providers that the registered skills use, each by its function of the cache directory."""
    wanted = {name for skill_id in registry.ids() for name in registry.get(skill_id).effects.uses}
    opened: dict[str, Callable] = {name: load(registry.spec.providers[name]) for name in sorted(wanted)}
    return {name: opener(cache_dir) for name, opener in opened.items()}
