"""The judge: what really happened passes, every kind of expectation can fail, and every mutation is noticed."""
from dataclasses import replace
from pathlib import Path

import pytest
from judged_run import CHARGER, GOOD, HVAC, MIC, drive, recognise, scenario

from simulators.judge import MUTATIONS, judge
from simulators.judge_rules import RULES
from simulators.scenario import Expect, parse
from venus_edge.errors import ConfigError


def verdict(run, steps=None, **options):
    return judge(scenario(**(GOOD if steps is None else steps)), run.merged(), run.recording(), recognise, **options)


@pytest.fixture(scope="module")
def good():
    return drive()


def test_a_good_drive_passes(good):
    """A run in which everything held has no failure, and its summary has every figure."""
    result = verdict(good)
    assert [str(f) for f in result.failures] == []
    assert result.passed and result.expectations == 22 and result.failed == 0
    summary = result.summary()
    assert (summary["stale"], summary["repeated"], summary["heard_text_errors"]) == (0, 0, 0)
    assert summary["loop_block_max_ms"] == 41.5
    assert summary["events"]["utter.begin"] == 7 and all(summary["events"].values())
    assert summary["latency"]["p50_s"] == pytest.approx(0.55)


def test_turns_say_what_was_said_understood_and_heard_back(good):
    """A turn's latency runs from the user's last sample to the answer's first sample at the loudspeaker."""
    turn = next(t for t in verdict(good).turns if t.id == "temperature")
    assert (turn.who, turn.said) == ("driver", "Set the temperature to twenty-two degrees")
    assert turn.heard_back == "It's set to 22 degrees."
    assert turn.latency_s == pytest.approx(0.5)
    assert sum(turn.parts[p] for p in ("hear", "decide", "speak")) == pytest.approx(0.5, abs=0.002)
    backchannel = next(t for t in verdict(good).turns if t.id == "mhm")
    assert backchannel.latency_s is None


WRONG = [
    ("temperature", "heard", ["the window is closed"]),
    ("temperature", "heard", ["set to twenty-three degrees"]),
    ("temperature", "heard_numbers", [23]),
    ("temperature", "not_heard", ["degrees"]),
    ("temperature", "within_s", 0.3),
    ("temperature", "understood", {"capability": "vehicle.set_temperature", "arguments": {"celsius": 21}}),
    ("temperature", "understood", {"capability": "vehicle.set_fan"}),
    ("temperature", "task", {"execution": "failed"}),
    ("temperature", "task", {"execution": "completed", "delivery": "dropped"}),
    ("temperature", "signal", {"path": HVAC, "equals": 23}),
    ("temperature", "signal", {"path": "Vehicle.Unknown", "equals": 1}),
    ("tailgate", "signal", {"path": "Vehicle.Speed", "between": [0, 10]}),
    ("temperature", "refused", True),
    ("tailgate", "refused", False),
    ("tailgate", "refused", "not_permitted"),
    ("casino", "assistant", "goes_on"),
    ("mhm", "assistant", "stops"),
    ("speed", "assistant", "goes_on"),
    ("tailgate", "supersedes", "temperature"),
    ("temperature", "supersedes", "charger"),
    ("pharmacy", "then_heard", ["Clinique des Moulins"]),
    ("temperature", "then_heard", ["set to twenty-two degrees"]),
]


@pytest.mark.parametrize("step, field, wanted", WRONG, ids=[f"{s}-{f}-{i}" for i, (s, f, _) in enumerate(WRONG)])
def test_each_kind_of_expectation_can_fail(good, step, field, wanted):
    """A wrong expectation fails, and the failure says where to listen."""
    result = verdict(good, {step: {field: wanted}})
    assert not result.passed and result.failed == 1
    failure = result.failures[0]
    assert (failure.step, failure.kind) == (step, field)
    assert 0 < failure.at_s < 60 and failure.pos == pytest.approx(failure.at_s * MIC, abs=MIC * 0.01)
    assert "expected" in str(failure) and "found" in str(failure)


def test_a_failure_says_what_was_heard_instead(good):
    failure = verdict(good, {"temperature": {"heard": ["the window is closed"]}}).failures[0]
    assert "window is closed" in failure.expected and "22 degrees" in failure.found and failure.at_s == 4.5


def test_a_step_that_was_never_said_fails(good):
    """An expectation can't pass because its step did not happen."""
    result = verdict(good, {"absent": {"not_heard": ["anything"]}})
    assert result.failed == 1 and "never said" in result.failures[0].found


def test_an_unknown_expectation_is_refused(good):
    with pytest.raises(ConfigError, match="expect.hears"):
        verdict(good, {"temperature": {"hears": ["x"]}})


@pytest.mark.parametrize("kind", MUTATIONS)
def test_every_mutation_is_noticed(good, kind):
    """A check that cannot fail is a defect: damaged evidence of each kind gives violations of that kind."""
    result = verdict(good, mutate_kind=kind)
    found = {"stale": result.stale, "repeated": result.repeated, "heard": result.heard_text_errors}
    assert not result.passed and found[kind] > 0


def test_an_unknown_mutation_names_the_allowed_ones(good):
    with pytest.raises(ConfigError, match="stale, repeated, heard"):
        verdict(good, mutate_kind="sleep")


def test_a_confirmation_before_the_value_is_reached_fails():
    """A result that is heard before the signal arrived is a lie, even if the value arrives later."""
    run = drive()
    run.events = [replace(e, t=105.0) if e.ev == "signal" and e.get("path") == HVAC and e["value"] == 22.0 else e
                  for e in run.events]
    failures = verdict(run, {"temperature": {"signal": {"path": HVAC, "equals": 22}}}).failures
    assert [f.kind for f in failures] == ["signal"] and "too early" in failures[0].found


def test_a_late_result_is_told_once():
    run = drive()
    run.speak("g9", "The pharmacy you asked for is Pharmacie du Rocher.", 36.0, turn=7, task="t6", kind="result")
    failures = verdict(run, {"pharmacy": {"then_heard": ["Pharmacie du Rocher"]}}).failures
    assert [f.kind for f in failures] == ["then_heard"] and "told 2 times" in failures[0].found


def test_there_is_a_rule_for_every_field_of_a_scenario():
    """What a scenario file may expect, the judge can judge."""
    assert set(RULES) == set(Expect.model_fields)


def test_a_scenario_file_is_judged(good):
    """The fields as the scenario file gives them: tables, tuples and upper-case states."""
    text = (Path(__file__).parent / "judged.yaml").read_text(encoding="utf-8")
    right = parse(text)
    result = judge(right, good.merged(), good.recording(), recognise)
    assert [str(f) for f in result.failures] == [] and result.expectations == 15
    wrong = parse(text.replace("COMPLETED", "CANCELLED").replace("goes_on", "stops").replace("50 kilometers", "80 kilometers"))
    assert sorted(f.kind for f in judge(wrong, good.merged(), good.recording(), recognise).failures) == ["assistant", "heard", "task"]


def test_the_same_answer_in_full_twice_is_repeated():
    run = drive()
    run.speak("g9", "It's set to 22 degrees.", 36.0, turn=1, task="t1", kind="result")
    assert verdict(run).repeated == 1


def test_what_the_user_asks_to_hear_again_is_not_repeated():
    run = drive()
    run.say("again", "Say that again", 34.6, turn=8, seconds=0.6)
    run.delegate("t8", 35.3, 8, "", {}, repair="repeat")
    run.speak("g9", "About the pharmacy: Pharmacie du Rocher is 300 meters away.", 36.0, turn=8, task="t6", kind="result")
    assert verdict(run).repeated == 0


def test_an_interrupted_answer_may_be_resumed():
    """What was cut off and is told to the end later was heard once."""
    run = drive()
    run.speak("g9", "then left at the port, and you are there.", 36.0, turn=3, task="t9", kind="result")
    assert verdict(run).repeated == 0


def test_a_superseded_result_is_stale():
    run = drive()
    run.speak("g9", CHARGER, 36.0, turn=3, task="t3", kind="result")
    result = verdict(run)
    assert result.stale == 1
    assert any(f.kind == "supersedes" for f in result.failures)


def test_a_result_that_was_dropped_is_stale():
    """Work that was done before the correction stays completed; its telling is over all the same."""
    run = drive()
    run.state("t1", "delivery", "interrupted", "dropped", 7.0, "vehicle.set_temperature", "superseded")
    run.speak("g9", "As I said, that is done now.", 36.0, turn=1, task="t1", kind="result")
    assert verdict(run, {}).stale == 1


def test_a_cancelled_task_may_say_that_it_was():
    run = drive()
    run.state("t6", "execution", "running", "cancelled", 35.0, "poi.find")
    run.speak("g9", "Okay, I stopped looking for that.", 36.0, turn=6, task="t6", kind="notice")
    assert verdict(run, {}).stale == 0


def test_words_that_never_left_the_loudspeaker_are_not_heard():
    """The recording decides: a segment whose sound is missing is not heard, whatever its text says."""
    run = drive()
    run.speaker[4 * 24000:6 * 24000] = 0
    assert verdict(run, {"temperature": {"heard": ["twenty-two degrees"]}}).failed == 1


def test_missing_evidence_fails_the_run():
    """A run without a kind of event that its scenario needs proves nothing."""
    run = drive()
    run.events = [e for e in run.events if e.ev != "overlap"]
    result = verdict(run, {"mhm": {"assistant": "goes_on"}})
    assert [f.kind for f in result.failures] == ["events"] and result.events["overlap"] == 0


def test_a_real_driver_is_not_judged_but_must_come_to_the_end():
    """Without a scenario nothing is expected; the run must have completed."""
    run = drive()
    assert judge(None, run.merged(), run.recording(), recognise).passed
    run.events = [e for e in run.events if e.ev != "script.done"]
    assert not judge(None, run.merged(), run.recording(), recognise).passed


def test_the_longest_block_of_all_processes_counts(good):
    assert verdict(good, metrics={"venus_worker_loop_block_max_ms": 77.0}).loop_block_max_ms == 77.0


def test_a_recording_that_is_not_a_wav_is_refused_by_name(good, tmp_path):
    (tmp_path / "speaker.wav").write_bytes(b"nothing")
    with pytest.raises(ConfigError, match="speaker.wav"):
        judge(scenario(**GOOD), good.merged(), tmp_path / "speaker.wav", recognise)
