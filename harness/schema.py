"""Checks values against the JSON Schema of a capability's arguments, and says which field is wrong and what is allowed.

The keywords that skill manifests, pydantic and tool lists use: type, enum, const, properties, required, additionalProperties, items,
minItems, maxItems, uniqueItems, minimum, maximum, exclusive bounds, multipleOf, minLength, maxLength, pattern, anyOf, oneOf (as anyOf),
allOf, default, $ref into $defs. Others don't restrict anything (as JSON Schema says of unknown keywords).
"""
import copy
import math
import re
from typing import Any

from harness.errors import BadRequest

_TYPES: dict[str, tuple[type, ...]] = {"object": (dict,), "array": (list, tuple), "string": (str,), "integer": (int,),
                                       "number": (int, float), "boolean": (bool,), "null": (type(None),)}
MAX_DEPTH = 32


def check(schema: dict, value: Any) -> Any:
    """A copy of the value with defaults filled in. Raises BadRequest with `field` (dotted path) and `allowed` in its data."""
    return _check(schema, value, "", schema.get("$defs", {}), 0)


def _wrong(path: str, why: str, allowed: Any = "") -> BadRequest:
    return BadRequest(f"{path or 'arguments'}: {why}" + (f" (allowed: {allowed})" if allowed != "" else ""), field=path, allowed=allowed)


def _check(schema: Any, value: Any, path: str, defs: dict, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise _wrong(path, f"nested deeper than {MAX_DEPTH}")
    if isinstance(schema, bool):
        if not schema:
            raise _wrong(path, "nothing is allowed here")
        return value
    if "$ref" in schema:
        name = str(schema["$ref"]).rsplit("/", 1)[-1]
        if name not in defs:
            raise _wrong(path, f"the schema refers to {schema['$ref']}, which it doesn't define")
        value = _check(defs[name], value, path, defs, depth + 1)
    for part in schema.get("allOf", ()):
        value = _check(part, value, path, defs, depth + 1)
    for options in (schema[word] for word in ("anyOf", "oneOf") if word in schema):
        value = _any(options, value, path, defs, depth)
    if "const" in schema and not _same(value, schema["const"]):
        raise _wrong(path, f"{value!r} is not allowed", schema["const"])
    if "enum" in schema and not any(_same(value, v) for v in schema["enum"]):
        raise _wrong(path, f"{value!r} is not allowed", ", ".join(map(str, schema["enum"])))
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        raise _wrong(path, f"{type(value).__name__} instead of {' or '.join(kinds)}", " or ".join(kinds))
    if isinstance(value, dict):
        return _object(schema, value, path, defs, depth)
    if isinstance(value, (list, tuple)):
        _size(schema, len(value), path, "Items", "items")
        if schema.get("uniqueItems") and any(_same(a, b) for i, a in enumerate(value) for b in value[:i]):
            raise _wrong(path, "an item is there twice", "different items")
        return [_check(schema.get("items", True), item, f"{path}.{i}" if path else str(i), defs, depth + 1) for i, item in enumerate(value)]
    if isinstance(value, str):
        _size(schema, len(value), path, "Length", "characters")
        if "pattern" in schema and not re.search(schema["pattern"], value):
            raise _wrong(path, "has the wrong form", schema["pattern"])
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        _range(schema, value, path)
    return value


def _same(a: Any, b: Any) -> bool:
    """Equal as JSON values: 1 is 1.0, and neither is true."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, float) and not math.isfinite(value):  # JSON has no such number
        return False
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(kind, (object,)))


def _any(options: list, value: Any, path: str, defs: dict, depth: int) -> Any:
    """The first option that fits. Else the complaint of one of the value's own kind, for it knows best; with one each, all that is allowed."""
    complaints = []
    for option in options:
        try:
            return _check(option, value, path, defs, depth + 1)
        except BadRequest as error:
            complaints.append(error)
    own = [e for e in complaints if e.data["field"] != path or " instead of " not in e.message]
    if len(own) == 1 or not complaints:
        raise own[0] if own else _wrong(path, "nothing is allowed here")
    allowed = dict.fromkeys(str(e.data["allowed"]) for e in own or complaints if e.data["allowed"] != "")
    raise _wrong(path, f"{type(value).__name__} fits none of its forms", " or ".join(allowed))


def _object(schema: dict, value: dict, path: str, defs: dict, depth: int) -> dict:
    known, others, out = schema.get("properties", {}), schema.get("additionalProperties", True), {}
    for name in schema.get("required", ()):
        if name not in value:
            raise _wrong(f"{path}.{name}" if path else name, "is missing")
    for name, item in value.items():
        where = f"{path}.{name}" if path else str(name)
        if name in known:
            out[name] = _check(known[name], item, where, defs, depth + 1)
        elif others is False:
            raise _wrong(where, "is not known", ", ".join(known))
        else:
            out[name] = _check(others, item, where, defs, depth + 1)
    missing = {n: copy.deepcopy(s["default"]) for n, s in known.items() if isinstance(s, dict) and "default" in s and n not in out}
    return {**missing, **out}


def _size(schema: dict, n: int, path: str, word: str, unit: str) -> None:
    low, high = schema.get(f"min{word}", 0), schema.get(f"max{word}")
    if n < low or (high is not None and n > high):
        raise _wrong(path, f"{n} {unit}", f"{low} to {high}" if high is not None else f"at least {low}")


def _range(schema: dict, n: float, path: str) -> None:
    low, high = schema.get("minimum"), schema.get("maximum")
    over, under = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if ((low is not None and n < low) or (high is not None and n > high)
            or (over is not None and n <= over) or (under is not None and n >= under)):
        bounds = [f"{sign} {limit}" for sign, limit in ((">=", low), (">", over), ("<=", high), ("<", under)) if limit is not None]
        raise _wrong(path, f"{n} is out of range", " and ".join(bounds))
    step = schema.get("multipleOf")
    if step and not math.isclose(n / step, round(n / step), rel_tol=1e-9, abs_tol=1e-9):
        raise _wrong(path, f"{n} is between two steps", f"multiples of {step}")
