"""The strict form of a JSON schema, which endpoints enforce while the model writes.

Every object closed, every property required and optional ones nullable, no keyword for ranges or lengths (OpenAI's rules for
structured outputs). What gets lost goes into the descriptions for the model; harness.schema checks the answer against the full form.
"""
import json
from typing import Any

_SCALARS = ("string", "number", "integer", "boolean", "null")
_SAID = (("minimum", "at least {}"), ("maximum", "at most {}"), ("exclusiveMinimum", "above {}"), ("exclusiveMaximum", "below {}"),
         ("minLength", "at least {} characters"), ("maxLength", "at most {} characters"), ("minItems", "at least {} items"),
         ("maxItems", "at most {} items"), ("pattern", "matching {}"), ("format", "format {}"), ("default", "default {}"))
MAX_DEPTH = 5


class Inexpressible(ValueError):
    """The schema has no strict form (free-form objects, recursion, too deep)."""


def strict(schema: dict) -> dict:
    """The strict form of an arguments schema (an object); raises Inexpressible."""
    found = _strict({k: v for k, v in schema.items() if k != "description"}, schema, 0)
    if found.get("type") != "object":
        raise Inexpressible("the arguments are no object")
    return found


def nullable(schema: dict) -> dict:
    """`schema` or null."""
    if schema.get("type") == "null" or any(branch.get("type") == "null" for branch in schema.get("anyOf", ())):
        return schema
    return {"anyOf": [schema, {"type": "null"}]}


def bare(schema: Any) -> Any:
    """A strict schema without its descriptions."""
    if isinstance(schema, list):
        return [bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: {name: bare(item) for name, item in value.items()} if key == "properties" else bare(value)
            for key, value in schema.items() if key != "description"}


def without_nulls(schema: dict, value: Any, root: dict | None = None) -> Any:
    """`value` with the nulls removed that only say "not given", at every depth of plain objects and lists."""
    root = schema if root is None else root
    schema = _resolved(schema, root)
    if isinstance(value, dict):
        known, required = schema.get("properties", {}), schema.get("required", ())
        return {k: without_nulls(known.get(k, {}), v, root) for k, v in value.items() if v is not None or k in required}
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [without_nulls(schema["items"], item, root) for item in value]
    return value


def _strict(schema: dict, root: dict, depth: int, seen: tuple[str, ...] = ()) -> dict:
    if ref := schema.get("$ref"):
        if ref in seen:
            raise Inexpressible("recursive")
        seen = (*seen, ref)
        schema = _resolved(schema, root)
    if len(schema.get("allOf", ())) == 1:
        schema = {**{k: v for k, v in schema.items() if k != "allOf"}, **schema["allOf"][0]}
        return _strict(schema, root, depth, seen)
    if depth > MAX_DEPTH or "allOf" in schema:
        raise Inexpressible("too deep, or allOf")
    found: dict[str, Any] = {}
    told = [said.format(json.dumps(schema[key], ensure_ascii=False)) for key, said in _SAID
            if schema.get(key) is not None and (key, schema[key]) != ("minLength", 1)]
    text = "; ".join(filter(None, [schema.get("description", ""), *told]))
    if text:
        found["description"] = text
    if branches := schema.get("anyOf") or schema.get("oneOf"):
        return found | {"anyOf": [_strict(branch, root, depth, seen) for branch in branches]}
    if "const" in schema or "enum" in schema:
        values = [schema["const"]] if "const" in schema else list(schema["enum"])
        if any(isinstance(v, (dict, list)) for v in values):
            raise Inexpressible("an enum of objects")
        return found | ({"type": schema["type"]} if "type" in schema else {"type": sorted({_name(v) for v in values})}) | {"enum": values}
    kind = schema.get("type")
    if kind == "object":
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") or ("properties" not in schema and schema.get("additionalProperties") is not False):
            raise Inexpressible("a free-form object")
        optional = set(properties) - set(schema.get("required", ()))
        inner = {name: _strict(item, root, depth + 1, seen) for name, item in properties.items()}
        return found | {"type": "object", "properties": {n: nullable(s) if n in optional else s for n, s in inner.items()},
                        "required": list(inner), "additionalProperties": False}
    if kind == "array":
        if not isinstance(schema.get("items"), dict):
            raise Inexpressible("a list of anything")
        return found | {"type": "array", "items": _strict(schema["items"], root, depth + 1, seen)}
    if kind in _SCALARS or (isinstance(kind, list) and kind and set(kind) <= set(_SCALARS)):
        return found | {"type": kind}
    raise Inexpressible("no type")


def _resolved(schema: dict, root: dict) -> dict:
    """`schema` with its local `$ref` followed; what stands beside it wins."""
    for _ in range(32):
        ref = schema.get("$ref")
        if ref is None:
            return schema
        target: Any = root
        for part in str(ref).removeprefix("#/").split("/"):
            target = target.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
        if not isinstance(target, dict):
            raise Inexpressible("a $ref that leads nowhere")
        schema = {**target, **{k: v for k, v in schema.items() if k != "$ref"}}
    raise Inexpressible("a $ref that leads to itself")


def _name(value: Any) -> str:
    return "boolean" if isinstance(value, bool) else "null" if value is None else "string" if isinstance(value, str) else "number"
