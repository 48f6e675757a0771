"""The labelled requests for planners: well-formed, consistent with their contracts, varied, and dev and test apart.

`fold` and `join_id` are the comparison forms that tests/data/planner/README.md describes.
"""
import dataclasses
import json
import re
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from rapidfuzz import fuzz, process

from harness.plan.contracts import KINDS, OPERATIONS, Contract, LiveTask
from harness.values import numbers_in

DATA = Path(__file__).parents[1] / "data" / "planner"
FIELDS = {"id", "lang", "kind", "prose", "said", "heard", "question", "question_task", "tasks", "memory", "expect", "accept"}
CONTROL = {"update", "cancel", "status", "continue", "repeat"}
ASIDES = {"aside_person", "aside_radio", "aside_thinking", "aside_chat"}
TAGS = CONTROL | ASIDES | {"plain", "number", "id", "date", "name", "correction", "several", "negated", "hypothetical",
                           "missing_argument", "out_of_range", "ambiguous", "reference"}
STATES = {"queued", "running", "ready", "told", "failed"}
LOOSE = {("direct.answer", "question"), ("general.task", "objective")}
IDS = {("order.status", "order_id"), ("phone.call", "who")}
_LEAD = {"the", "a", "an", "some", "please", "um", "uh", "er"}
_TRAIL = {"please", "now", "nearby", "thanks"}
_DIGITS = {w: str(i) for i, w in enumerate("zero one two three four five six seven eight nine".split())} | {"oh": "0", "o": "0"}
_TEENS = {w: str(i) for i, w in enumerate("ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(), 10)}
_TENS = {w: str(i) for i, w in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)}
_HAN = {c: str(i) for i, c in enumerate("零一二三四五六七八九")} | {"幺": "1", "〇": "0", "两": "2"}
_TIMES = {"double": 2, "triple": 3}
_UNSPOKEN = {"dash", "hyphen", "dot", "space", "杠"}


def fold(text: str) -> str:
    """Free text as it is compared: no case, accents kept, no punctuation, no articles, no filler around it, no spaces between Chinese characters."""
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("'", "")
    words = re.findall(r"[^\W_]+", text)
    while len(words) > 1 and words[0] in _LEAD:
        words = words[1:]
    while len(words) > 1 and words[-1] in _TRAIL:
        words = words[:-1]
    text = " ".join(word for i, word in enumerate(words) if not i or word not in ("the", "a", "an"))
    return re.sub(r"(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff])", "", text)


def join_id(text: str) -> str:
    """A spoken id as its characters: "A double four oh" is A440, "forty-two" 42, 幺 1."""
    out, times, tens = "", 1, ""
    text = re.sub(r"\b([a-z]) as in \w+", r"\1", unicodedata.normalize("NFKC", text).casefold())
    for token in re.findall(r"\d+|[a-z]+|[\u4e00-\u9fff]", text):
        if token in _UNSPOKEN:
            continue
        if token in _TIMES:
            times = _TIMES[token]
            continue
        digit = _DIGITS.get(token) or _HAN.get(token)
        if tens and not (digit and token not in ("oh", "o", "zero")):
            out, tens = out + "0", ""
        if token in _TENS:
            out, tens = out + _TENS[token], token
            continue
        tens = ""
        out += (digit or _TEENS.get(token) or token) * times
        times = 1
    return (out + "0" if tens else out).upper()


def _lines(split: str) -> list[dict]:
    return [json.loads(line) for line in (DATA / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()]


def _contracts() -> dict[str, Contract]:
    rows = json.loads((DATA / "capabilities.json").read_text(encoding="utf-8"))
    return {row["id"]: Contract(**row | {"derived": frozenset(row["derived"])}) for row in rows}


CONTRACTS, DEV, TEST = _contracts(), _lines("dev"), _lines("test")
BOTH = DEV + TEST


_TYPES = {"string": str, "integer": int, "boolean": bool, "number": (int, float), "null": type(None)}


def _fits(value, schema: dict) -> bool:
    """Whether a value fits the part of JSON schema that the contracts use."""
    if "anyOf" in schema:
        return any(_fits(value, option) for option in schema["anyOf"])
    return (isinstance(value, _TYPES[schema["type"]]) and isinstance(value, bool) == (schema["type"] == "boolean")
            and value in schema.get("enum", [value])
            and ("minimum" not in schema or schema["minimum"] <= value <= schema["maximum"])
            and ("minLength" not in schema or schema["minLength"] <= len(value) <= schema["maxLength"]))


def _check(arguments: dict, contract: Contract) -> None:
    """Raises AssertionError naming the argument that the contract doesn't take."""
    properties = contract.schema["properties"]
    assert set(contract.schema["required"]) <= set(arguments) <= set(properties), (contract.id, arguments)
    for name, value in arguments.items():
        assert _fits(value, properties[name]), (contract.id, name, value)
    assert contract.id != "vehicle.set_volume" or len(arguments) == 1, "exactly one of level and delta"


def _answers(line: dict) -> list[dict]:
    return [line["expect"], *line.get("accept", [])]


def _plans(line: dict) -> list[dict]:
    return [plan for answer in _answers(line) for plan in answer.get("plans", ())]


def _capabilities(line: dict) -> set[str]:
    return {plan["capability"] for plan in line["expect"].get("plans", ()) if "capability" in plan}


def test_every_contract_is_whole():
    """A planner is shown contracts with both languages, a valid schema, 3-5 examples a language, and examples that fit the schema."""
    assert len(CONTRACTS) >= 16
    assert {"direct", "general", "skill"} <= {c.kind for c in CONTRACTS.values()} <= set(KINDS)
    for contract in CONTRACTS.values():
        assert set(contract.schema["required"]) <= set(contract.schema["properties"]), contract.id
        assert contract.schema["additionalProperties"] is False, contract.id
        assert set(contract.summary) == set(contract.examples) == {"en", "zh"}, contract.id
        assert set(contract.avoid) in (set(), {"en", "zh"}), contract.id
        assert contract.derived <= set(contract.schema["properties"]) | {"*"}, contract.id
        for examples in contract.examples.values():
            assert 3 <= len(examples) <= 5, contract.id
            for _, arguments in examples:
                _check(arguments, contract)


@pytest.mark.parametrize("split,lines,letter", [("dev", DEV, "d"), ("test", TEST, "t")], ids=["dev", "test"])
def test_ids_are_the_line_numbers(split, lines, letter):
    """Ids are unique and say where a line stands."""
    assert [line["id"] for line in lines] == [f"{letter}{n:03d}" for n in range(1, len(lines) + 1)]


@pytest.mark.parametrize("line", BOTH, ids=lambda line: line["id"])
def test_a_line_is_well_formed(line):
    """A line holds known fields, whole LiveTask rows, and expectations that its contracts accept and its tasks know."""
    assert set(line) <= FIELDS and {"id", "lang", "kind", "prose", "expect"} <= set(line)
    assert line["lang"] in ("en", "zh", "mixed") and line["kind"] in TAGS and line["prose"].strip()
    han, latin = bool(re.search(r"[\u4e00-\u9fff]", line["prose"])), bool(re.search(r"[A-Za-z]{2}", line["prose"]))
    assert han == (line["lang"] != "en") and (latin or line["lang"] == "zh" or line["kind"] == "id")
    tasks = [LiveTask(**row) for row in line.get("tasks", ())]
    known = {task.id for task in tasks}
    assert len(known) == len(tasks)
    assert {field.name for field in dataclasses.fields(LiveTask)} == set().union(*map(set, line.get("tasks", ()))) or not tasks
    for task in tasks:
        assert task.state in STATES and task.capability in CONTRACTS
    assert ("question" in line) == ("question_task" in line) and line.get("question_task", "") in known | {""}
    for answer in _answers(line):
        assert len(answer) == 1 and (answer.get("plans") or answer.get("ask") is True or answer.get("aside") is True)
    for plan in _plans(line):
        assert set(plan) <= {"operation", "capability", "arguments", "target"} and plan["operation"] in OPERATIONS
        assert plan["operation"] == "new" or plan["target"] in known
        assert plan["operation"] != "new" or set(plan) == {"operation", "capability", "arguments"}
        if "arguments" in plan:
            _check(plan["arguments"], CONTRACTS[plan["capability"]])


@pytest.mark.parametrize("line", BOTH, ids=lambda line: line["id"])
def test_the_kind_tells_what_is_expected(line):
    """Asides expect an aside, missing arguments a question, control kinds their operation: a mislabelled line is found."""
    operations = {plan["operation"] for plan in line["expect"].get("plans", ())}
    if line["kind"] in ASIDES | {"negated", "hypothetical"}:
        assert line["expect"] == {"aside": True}
    elif line["kind"] in ("missing_argument", "out_of_range"):
        assert line["expect"] == {"ask": True}
    elif line["kind"] in CONTROL:
        assert line["kind"] in operations or (line["kind"], _capabilities(line)) == ("cancel", {"navigation.cancel"})
        assert line.get("tasks")
    elif line["kind"] == "several":
        assert len(line["expect"]["plans"]) >= 2
    elif line["kind"] != "ambiguous":
        assert operations and operations <= {"new"}


@pytest.mark.parametrize("line", [line for line in BOTH if _plans(line)], ids=lambda line: line["id"])
def test_exact_values_are_among_the_words(line):
    """Numbers and words of the arguments were said: in this sentence, before it, in the target's request or as one of its arguments."""
    tasks = {task["id"]: task for task in line.get("tasks", ())}
    for plan in _plans(line):
        task = tasks.get(plan.get("target"), {"prose": "", "arguments": {}})
        words = [line["prose"], *line.get("said", ()), task["prose"]]
        for name, value in plan.get("arguments", {}).items():
            contract = CONTRACTS[plan["capability"]]
            if "enum" in contract.schema["properties"][name] or isinstance(value, bool) or name in contract.derived:
                continue
            if value == task["arguments"].get(name):
                continue
            if isinstance(value, str):
                _assert_said(plan["capability"], name, value, words, plan["operation"] == "update")
            else:
                assert any(float(value) in numbers_in(text) for text in words), (name, value)


def _assert_said(capability: str, name: str, value: str, words: list[str], corrects: bool) -> None:
    if (capability, name) in IDS and re.search(r"\d", value):
        joined = [join_id(text) for text in words]
        # A correction of single characters ("the last one is six") leaves only the characters to compare.
        assert any(value in said for said in joined) or corrects and set(value) <= set("".join(joined)), (name, value)
    elif (capability, name) in LOOSE:
        assert max(_overlap(fold(value), fold(text)) for text in words) >= 0.8, (name, value)
    else:
        parts = re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", fold(value))
        said = " ".join(fold(text) for text in words)
        heard = set(re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", said)) | {f"{n:g}" for text in words for n in numbers_in(text)}
        assert set(parts) <= heard, (name, value, set(parts) - heard)


def _overlap(one: str, other: str) -> float:
    def pieces(text):
        return Counter(re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", text))
    a, b = pieces(one), pieces(other)
    return 2 * sum((a & b).values()) / max(1, sum(a.values()) + sum(b.values()))


def test_dev_and_test_share_no_sentence():
    """No sentence of test is a near-duplicate of one in dev (equal when folded, or token-set ratio above 0.92) or of a contract's example."""
    def context(line):  # "yes" after another question is another case
        return line.get("question", "")
    dev = [(fold(line["prose"]), context(line)) for line in DEV]
    examples = {fold(words) for c in CONTRACTS.values() for rows in c.examples.values() for words, _ in rows}
    for line in TEST:
        folded = fold(line["prose"])
        assert folded not in examples, line["id"]
        near = process.extract(folded, [text for text, _ in dev], scorer=_likeness, score_cutoff=92.01, limit=3)
        assert not near, (line["id"], near)
    for lines in (DEV, TEST):
        seen = Counter((fold(line["prose"]), context(line), str(line.get("tasks"))) for line in lines)
        assert max(seen.values()) == 1


def _likeness(a: str, b: str, **_) -> float:
    """Token-set ratio 0..100; Chinese by character. A short sentence inside a long one isn't a duplicate."""
    def spaced(text):
        return re.sub(r"([\u4e00-\u9fff])", r" \1 ", text)
    a, b = spaced(a), spaced(b)
    few, many = sorted((len(a.split()), len(b.split())))
    return fuzz.token_set_ratio(a, b) if few >= 0.6 * many else 0.0


def test_the_splits_are_large_and_varied():
    """Sizes, languages, and the share of what must not become a task stay at or above what the evaluation is stated for."""
    assert len(DEV) >= 260 and len(TEST) >= 180
    for lines in (DEV, TEST):
        langs = Counter(line["lang"] for line in lines)
        assert 0.48 <= langs["en"] / len(lines) <= 0.62 and langs["zh"] / len(lines) >= 0.24 and langs["mixed"] / len(lines) >= 0.12
        none = sum("plans" not in line["expect"] for line in lines)
        assert 0.25 <= none / len(lines) <= 0.36
    control = [sum(line["kind"] in CONTROL for line in lines) for lines in (DEV, TEST)]
    assert sum(control) >= 60 and control[1] >= 25
    kinds = Counter(line["kind"] for line in BOTH)
    for kind in ("id", "date", "number", "correction"):
        assert kinds[kind] >= 20, kind
    assert {line["kind"] for line in DEV} == {line["kind"] for line in TEST} == TAGS


@pytest.mark.parametrize("capability", CONTRACTS)
def test_every_capability_is_asked_for(capability):
    """Each capability is expected at least three times in test and six in all."""
    dev, test = (sum(capability in _capabilities(line) for line in lines) for lines in (DEV, TEST))
    assert test >= 3 and dev + test >= 6


def test_ids_join_as_spoken():
    """The form of ids that the README describes."""
    assert join_id("A 7 3 K") == "A73K" and join_id("double four oh") == "440" and join_id("forty-two nineteen") == "4219"
    assert join_id("幺三九零") == "1390" and join_id("B as in Bravo twenty") == "B20"
    assert join_id("sixty oh one") == "6001" and join_id("X 9 dash 2") == "X92"
