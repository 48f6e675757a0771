"""Arguments against a JSON schema: every keyword that we know counts, a wrong field is named with what is allowed, and what our skills'
own models say of a value is what their schemas say of it."""
import copy
import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from harness.errors import BadRequest
from harness.execute.registry import Registry
from harness.schema import MAX_DEPTH, check


def refusal(schema, value):
    with pytest.raises(BadRequest) as caught:
        check(schema, value)
    return caught.value


def of(schema):
    """An object whose one field is checked by `schema`."""
    return {"type": "object", "properties": {"x": schema}, "additionalProperties": False}


GOOD_AND_BAD = [
    ({"type": "string"}, ["", "a"], [1, None, True, [], {}]),
    ({"type": "integer"}, [0, -3, 4.0], [1.5, "1", True, None, math.inf, math.nan]),
    ({"type": "number"}, [0, -3, 1.5], ["1", False, math.inf, math.nan]),
    ({"type": "boolean"}, [True, False], [0, 1, "true"]),
    ({"type": "null"}, [None], [0, "", False]),
    ({"type": "array"}, [[], [1, "a"]], ["a", {}]),
    ({"type": "object"}, [{}, {"a": 1}], [[], "a"]),
    ({"type": ["string", "null"]}, ["a", None], [1, True]),
    ({"enum": ["a", 1, None]}, ["a", 1, None, 1.0], ["b", True, 2]),
    ({"const": 1}, [1, 1.0], [True, 2, "1"]),
    ({"const": [1, {"a": True}]}, [[1, {"a": True}]], [[1, {"a": 1}], [True, {"a": True}], [1]]),
    ({"minimum": 2, "maximum": 4}, [2, 3, 4.0], [1, 5, 1.999]),
    ({"exclusiveMinimum": 2, "exclusiveMaximum": 4}, [3, 2.001], [2, 4]),
    ({"multipleOf": 0.5}, [1, 1.5, 0, -2.5], [1.3, 0.26]),
    ({"type": "string", "minLength": 2, "maxLength": 3}, ["ab", "abc", "中文"], ["a", "abcd"]),
    ({"type": "string", "pattern": "^[a-z]+$"}, ["ab"], ["aB", ""]),
    ({"type": "array", "minItems": 1, "maxItems": 2}, [[1], [1, 2]], [[], [1, 2, 3]]),
    ({"type": "array", "uniqueItems": True}, [[1, 2], [1, True]], [[1, 1.0], ["a", "a"]]),
    ({"type": "array", "items": {"type": "integer"}}, [[], [1]], [["a"], [1, None]]),
    ({"type": "array", "items": False}, [[]], [[1]]),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, [1, None], ["a", 1.5]),
    ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, [1, "a"], [None]),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}], "enum": [1, "a"]}, [1, "a"], [2, "b"]),
    ({"allOf": [{"type": "integer"}, {"minimum": 3}]}, [3], [2, "3"]),
    ({"additionalProperties": {"type": "integer"}}, [{"a": 1}], [{"a": "b"}]),
    (True, [1, "a", None, {}], []), ({}, [1, "a", None, {}], []), ({"format": "date", "title": "X"}, ["anything"], []),
    (False, [], [1, None]),
]


@pytest.mark.parametrize("schema, good, bad", GOOD_AND_BAD, ids=lambda v: json.dumps(v)[:40] if isinstance(v, (dict, bool)) else "")
def test_every_keyword_counts(schema, good, bad):
    """What it allows comes back as it was; what it doesn't is refused, naming the field."""
    for value in good:
        assert check(of(schema), {"x": value}) == {"x": value}, value
    for value in bad:
        assert refusal(of(schema), {"x": value}).data["field"].split(".")[0] == "x", value


def test_an_error_names_the_dotted_field_and_what_is_allowed():
    """Also deep inside, in lists, and for what is missing or not known."""
    schema = {"type": "object", "additionalProperties": False, "required": ["who"], "$defs": {
        "Person": {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 150}}, "required": ["age"],
                   "additionalProperties": False}},
        "properties": {"who": {"$ref": "#/$defs/Person"}, "seats": {"type": "array", "items": {"enum": ["driver", "all"]}, "maxItems": 2}}}
    cases = [({}, "who", "is missing"), ({"who": {}}, "who.age", "is missing"), ({"who": {"age": 151}}, "who.age", ">= 0 and <= 150"),
             ({"who": {"age": "old"}}, "who.age", "integer"), ({"who": {"age": 1, "name": "a"}}, "who.name", "(allowed: age)"),
             ({"who": {"age": 1}, "seats": ["driver", "roof"]}, "seats.1", "driver, all"),
             ({"who": {"age": 1}, "seats": ["all"] * 3}, "seats", "0 to 2"), ({"who": {"age": 1}, "x": 1}, "x", "who, seats")]
    for value, field, part in cases:
        error = refusal(schema, value)
        assert error.data["field"] == field and error.message.startswith(f"{field}: ") and part in error.message, error.message
    assert refusal({"type": "object"}, []).message.startswith("arguments: list instead of object")
    assert refusal({"const": 0}, 1).data["allowed"] == 0 and "(allowed: 0)" in refusal({"const": 0}, 1).message


def test_of_several_forms_the_one_of_the_values_own_kind_complains():
    """An optional number out of range is told its range, not that it could be null; a value of no form is told them all."""
    level = {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 3}, {"type": "null"}]}
    assert refusal(of(level), {"x": 7}).data == {"field": "x", "allowed": ">= 0 and <= 3"}
    assert refusal(of(level), {"x": "a"}).data == {"field": "x", "allowed": "integer or null"}
    inner = {"anyOf": [{"type": "object", "properties": {"a": {"type": "integer"}}}, {"type": "null"}]}
    assert refusal(of(inner), {"x": {"a": "b"}}).data["field"] == "x.a"
    assert refusal(of({"anyOf": []}), {"x": 1}).data["field"] == "x"


def test_defaults_are_filled_in_at_every_level_and_are_the_callers_own():
    """A list that one call changes is not the next call's default; what was given is kept, null too; the value itself is not touched."""
    schema = {"type": "object", "$defs": {"Inner": {"type": "object", "properties": {"n": {"default": 1}}}}, "properties": {
        "tags": {"type": "array", "default": []}, "inner": {"$ref": "#/$defs/Inner"}, "far": {"$ref": "#/$defs/Inner", "default": {"n": 9}},
        "zone": {"type": ["string", "null"], "default": "all"}}}
    value = {"inner": {}}
    found = check(schema, value)
    assert found == {"inner": {"n": 1}, "tags": [], "far": {"n": 9}, "zone": "all"} and value == {"inner": {}}
    found["tags"].append(1), found["far"].update(n=0)
    assert check(schema, {"zone": None}) == {"zone": None, "tags": [], "far": {"n": 9}}


def test_a_reference_counts_together_with_what_stands_beside_it():
    """And one that leads nowhere, or round and round, is a refusal, not a crash."""
    schema = {"$defs": {"N": {"type": "integer"}, "Loop": {"$ref": "#/$defs/Loop"}},
              "properties": {"x": {"$ref": "#/$defs/N", "maximum": 3}, "y": {"$ref": "#/$defs/None"}, "z": {"$ref": "#/$defs/Loop"}}}
    assert check(schema, {"x": 3}) == {"x": 3}
    assert refusal(schema, {"x": 4}).data == {"field": "x", "allowed": "<= 3"} and refusal(schema, {"x": "a"})
    assert "doesn't define" in refusal(schema, {"y": 1}).message and str(MAX_DEPTH) in refusal(schema, {"z": 1}).message


REGISTRY = Registry.from_entry_points()
WORDS = [value for skill_id in REGISTRY.ids() for part in REGISTRY.get(skill_id).Args.model_json_schema()["properties"].values()
         for value in part.get("enum", [])]
JSON_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-200, 200) | st.floats(-40, 40, allow_nan=False).filter(lambda f: not f.is_integer())
    | st.text(max_size=4) | st.sampled_from(WORDS) | st.text(min_size=118, max_size=123),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2), max_leaves=4)


def agree(model, arguments, *, own_rules=False):
    """What the model's JSON schema and the model itself, strict about types as JSON is, say of it: both take it, with the same defaults,
    or both refuse the same field."""
    schema = model.model_json_schema()
    try:
        ours, complaint = check(schema, copy.deepcopy(arguments)), None
    except BadRequest as error:
        ours, complaint = None, error
    try:
        theirs, refused = model.model_validate_json(json.dumps(arguments), strict=True).model_dump(mode="json"), None
    except ValidationError as error:
        theirs, refused = None, error
    if complaint is None and refused is not None:
        assert own_rules and not any(e["loc"] for e in refused.errors()), (arguments, refused)
    else:
        assert (complaint is None) == (refused is None), (arguments, complaint, refused)
        assert ours == theirs, (arguments, ours, theirs)
    if complaint is not None and complaint.data["field"]:
        assert complaint.data["field"].split(".")[0] in {str(e["loc"][0]) for e in refused.errors() if e["loc"]}, (complaint, refused)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
@pytest.mark.parametrize("skill_id", REGISTRY.ids())
def test_a_skills_schema_says_what_its_model_says(skill_id, data):
    """Of any JSON values under its own field names, or others."""
    model = REGISTRY.get(skill_id).Args
    names = list(model.model_json_schema()["properties"])
    arguments = data.draw(st.fixed_dictionaries({}, optional={name: JSON_VALUE for name in [*names, "other"]}))
    agree(model, arguments, own_rules=skill_id == "vehicle.set_volume")


class Inner(BaseModel, extra="forbid"):
    n: int = Field(ge=0, le=3)
    tag: str | None = None


class Outer(BaseModel, extra="forbid"):
    one: Inner
    many: list[Inner] = Field(default=[], max_length=2)
    by_name: dict[str, int] = {}
    step: float = Field(default=0.5, multiple_of=0.5)
    code: str = Field(default="ab", pattern="^[a-z]{2}$")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(arguments=st.fixed_dictionaries({}, optional={
    "one": st.fixed_dictionaries({}, optional={"n": st.integers(-1, 4), "tag": st.none() | st.text(max_size=2) | st.integers(0, 1)}) | JSON_VALUE,
    "many": st.lists(st.fixed_dictionaries({"n": st.integers(-1, 4)}), max_size=3) | JSON_VALUE,
    "by_name": st.dictionaries(st.text(max_size=2), st.integers(0, 5) | st.none(), max_size=2),
    "step": st.sampled_from([0.5, 1.5, 0.3, 2, "a"]), "code": st.text("abC", max_size=3)}))
def test_nested_models_agree_too(arguments):
    """Models in models, lists of them, maps, steps, patterns."""
    agree(Outer, arguments)
