"""Foreign skills described by a locked process: their manifests come over the socket, and none of their code is imported here.

    registry = await described(RegistrySpec(("their_bundle:SKILLS",)), Sandbox())
    runner = SkillRunner(registry, vehicle, sandbox=Sandbox())

The classes of such a registry hold the manifest and never run. Arguments are checked twice: here by what their JSON Schema says of the
usual types and ranges, and again, by the skill's own model, in the process that runs it.
"""
import asyncio
from pathlib import Path
from typing import Any, Literal, Optional

from pydantic import Field, create_model

from harness.execute import pipe
from harness.execute.pool import ProcessPool
from harness.execute.registry import Registry, RegistrySpec
from harness.sandbox.policy import Sandbox
from harness.sandbox.view import code_folders
from harness.skill import Args, Effects, Skill
from venus_edge.errors import ConfigError

ANSWER_S = 5.0
SKILLS_LIMIT, FIELDS_LIMIT = 200, 64
_PLAIN = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}
_BOUNDS = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt", "multipleOf": "multiple_of",
           "minLength": "min_length", "maxLength": "max_length", "minItems": "min_length", "maxItems": "max_length"}
_SPECIAL = ("Args", "Result", "effects", "wording", "run")


def manifest(skill: type[Skill]) -> dict:
    """All that the host needs to know of a skill, as JSON; to be called where its code may run."""
    fields = {name: _plain(getattr(skill, name)) for name in Skill.__annotations__ if hasattr(skill, name) and name not in _SPECIAL}
    effects = {name: list(getattr(skill.effects, name)) for name in Effects.__dataclass_fields__}
    return {"fields": fields, "args": skill.Args.model_json_schema(), "effects": effects, "wording": str(skill.wording)}


def _plain(value: Any) -> Any:
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, tuple):
        return list(value)
    return value


async def described(spec: RegistrySpec, sandbox: Sandbox, cache_dir: Path | None = None) -> Registry:
    """The registry of a bundle, as a locked process tells it; raises ConfigError or SandboxMissing with what is wrong."""
    pool = ProcessPool(spec, cache_dir, sandbox)
    try:
        process = await pool.take()
        process.channel.send(pipe.encode({"t": "describe"}))
        try:
            answer = await asyncio.wait_for(process.channel.read(), ANSWER_S)
        except (ConnectionError, ValueError, TimeoutError) as err:
            raise ConfigError(f"{', '.join(spec.skills)}: no description of its skills: {type(err).__name__}") from err
        finally:
            await pool.kill(process)
    finally:
        await pool.close()
    told = answer.get("skills")
    if not isinstance(told, list) or len(told) > SKILLS_LIMIT:
        raise ConfigError(f"{', '.join(spec.skills)}: no list of skills, or more than {SKILLS_LIMIT}")
    folders = [*code_folders(spec.skills), *sandbox.data]
    return Registry(spec, [skill_from(one, folders) for one in told])


def skill_from(told: dict, folders: list[str]) -> type[Skill]:
    """The class that stands for a described skill; raises ConfigError for a description that is none. Its wording must lie in `folders`."""
    try:
        fields, effects = dict(told["fields"]), Effects(**{name: tuple(map(str, paths)) for name, paths in told["effects"].items()})
        wording = Path(str(told["wording"])).resolve()
        attributes = {name: _like(getattr(Skill, name, None), value) for name, value in fields.items() if name in Skill.__annotations__}
        attributes |= {"effects": effects, "wording": wording, "Args": arguments_from(told["args"]), "__module__": __name__}
        name = str(attributes["id"])
    except (KeyError, TypeError, ValueError, AttributeError) as err:
        raise ConfigError(f"a skill's description is broken: {type(err).__name__}: {err}"[:300]) from err
    if not any(wording.is_relative_to(Path(folder).resolve()) for folder in folders):
        raise ConfigError(f"skill {name!r}: its wording {wording} lies outside its bundle")
    return type(name, (Skill,), attributes)


def _like(default: Any, value: Any) -> Any:
    """JSON has lists only: back to the kind that the manifest's field has."""
    if isinstance(default, frozenset):
        return frozenset(value)
    if isinstance(default, tuple):
        return tuple(value)
    return value


def arguments_from(schema: dict) -> type[Args]:
    """A model of arguments from their JSON Schema: fields, types, choices, bounds and defaults; what is odder is left to the skill's own."""
    properties, required, definitions = schema.get("properties", {}), set(schema.get("required", ())), schema.get("$defs", {})
    if len(properties) > FIELDS_LIMIT:
        raise ValueError(f"more than {FIELDS_LIMIT} arguments")
    fields = {}
    for name, of in properties.items():
        if not isinstance(of, dict) or not name.isidentifier() or name.startswith("_"):
            raise ValueError(f"argument {name!r}")
        kind, bounds = _kind(of, definitions)
        fields[name] = (kind, Field(... if name in required else of.get("default"), description=of.get("description"), **bounds))
    return create_model("Args", __base__=Args, **fields)


def _kind(of: dict, definitions: dict) -> tuple[Any, dict]:
    """(type, bounds) of one field's schema."""
    if "$ref" in of:
        of = definitions.get(str(of["$ref"]).rsplit("/", 1)[-1], {})
    options = [option for option in of.get("anyOf", ()) if option.get("type") != "null"]
    if options and len(options) == 1:
        kind, bounds = _kind(options[0], definitions)
        return Optional[kind], bounds
    if "enum" in of or "const" in of:
        return Literal[tuple(of.get("enum", [of.get("const")]))], {}
    kind = _PLAIN.get(of.get("type") if isinstance(of.get("type"), str) else "", Any)
    return kind, {word: of[key] for key, word in _BOUNDS.items() if key in of} if kind is not Any else {}
