"""`venus eval planner`: what counts as right, what the line says, and that the test split's sentences are never shown."""
import json

import pytest

from harness.plan import evaluate
from harness.plan.contracts import Ask, Aside, Plan
from plan_world import DATA, contracts
from venus_edge.errors import ConfigError

GO = {"id": "x1", "lang": "en", "kind": "plain", "prose": "take me to the casino",
      "expect": {"plans": [{"operation": "new", "capability": "navigation.go", "arguments": {"destination": "casino"}}]}}
CANCEL = {"id": "x2", "lang": "en", "kind": "cancel", "prose": "never mind", "expect": {"plans": [{"operation": "cancel", "target": "n1"}]}}
ASIDE = {"id": "x3", "lang": "en", "kind": "aside_chat", "prose": "thanks", "expect": {"aside": True}}


def judged(row, planned):
    return evaluate.judge(row, planned, contracts())


def test_a_route_counts_for_recall_and_its_arguments_apart():
    right, wrong = Plan("new", "navigation.go", {"destination": "The Casino"}), Plan("new", "navigation.go", {"destination": "opera"})
    assert (judged(GO, (right,))["recalled"], judged(GO, (right,))["exact"]) == (True, True)
    assert (judged(GO, (wrong,))["recalled"], judged(GO, (wrong,))["exact"]) == (True, False)
    assert not judged(GO, (Plan("new", "poi.find", {"query": "casino"}),))["recalled"] and not judged(GO, (right, right))["recalled"]


def test_control_planned_as_new_or_as_nothing_is_ignored_control():
    assert judged(CANCEL, (Plan("new", "navigation.cancel", {}),))["ignored"] and judged(CANCEL, Aside())["ignored"]
    assert not judged(CANCEL, (Plan("cancel", "navigation.go", {}, "n1"),))["ignored"]


def test_an_aside_or_a_question_is_quiet_and_a_task_is_not():
    assert judged(ASIDE, Aside())["quiet"] and judged(ASIDE, Ask("?"))["quiet"] and not judged(ASIDE, (Plan("new",
    "media.play", {"query": "x"}),))["quiet"]


@pytest.mark.parametrize("a, b, same", [("the Blue Bay", "Blue Bay", True), ("7 Rue Princesse", "seven Rue Princesse", True),
    ("A 7-3K", "A73K", True), ("小 王", "小王", True), ("Nice", "Menton", False)])
def test_strings_are_compared_in_the_normal_form(a, b, same):
    contract = next(c for c in contracts() if c.id == "navigation.go")
    assert evaluate.same_arguments({"destination": a}, {"destination": b}, contract) is same


def test_defaults_may_be_left_out_and_questions_are_compared_loosely():
    known = {c.id: c for c in contracts()}
    assert evaluate.same_arguments({"query": "bar"}, {"query": "bar", "open_now": False}, known["poi.find"])
    assert not evaluate.same_arguments({"query": "bar", "open_now": True}, {"query": "bar"}, known["poi.find"])
    assert evaluate.same_arguments({"question": "how high is the Eiffel Tower"}, {"question": "how high is Eiffel Tower"}, known["direct.answer"])
    assert not evaluate.same_arguments({"objective": "compare three vans for me"}, {"objective": "compare four vans for me"}, known["general.task"])


def test_one_line_a_split_and_no_test_sentence_is_ever_shown(tmp_path, capsys):
    (tmp_path / "capabilities.json").write_text((DATA / "capabilities.json").read_text(encoding="utf-8"), encoding="utf-8")
    for split in ("dev", "test"):
        row = GO | {"prose": f"open the pod bay of {split}", "expect": {"aside": True}}
        wrong = GO | {"prose": f"call the harbour of {split}", "expect": {"aside": True}}
        (tmp_path / f"{split}.jsonl").write_text("\n".join(json.dumps(r) for r in (GO, row, wrong)), encoding="utf-8")
    assert evaluate.run(["--data", str(tmp_path), "--json", "--failures", "9"]) == 0
    out = capsys.readouterr()
    lines = [json.loads(line) for line in out.out.splitlines()]
    assert [line["split"] for line in lines] == ["dev", "test"] and all(line["bench"] == "planner" and line["n"] == 3 for line in lines)
    assert "harbour of dev" in out.err and "of test" not in out.err + out.out


def test_a_wrong_folder_is_one_clear_error(tmp_path):
    with pytest.raises(ConfigError, match="capabilities.json"):
        evaluate.run(["--data", str(tmp_path)])


@pytest.mark.slow
def test_the_development_split_is_well_above_the_bars(capsys):
    """The bars of the issue, on the split it was developed with; the test split is measured by `venus eval planner` alone."""
    assert evaluate.run(["--split", "dev", "--json"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert line["recall"] >= 0.97 and line["specificity"] >= 0.97 and line["exact_args"] >= 0.97 and line["ignored_control"] == 0
