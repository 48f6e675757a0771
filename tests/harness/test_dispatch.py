"""Dispatch: typed calls go straight through if their arguments hold; everything else is asked back or said."""
import pytest
from harness_world import TEMPERATURE, WINDOW, state, world
from pydantic import BaseModel, Field

from harness import AskBackPlanner, BadRequest, DelegateRequest, PlanRequest
from harness.testing import Script


class Temperature(BaseModel, extra="forbid"):
    celsius: float = Field(ge=16, le=28)
    zone: str = "speaker"


MODELS = {"vehicle.set_temperature": Temperature}


async def test_a_typed_call_runs_with_its_checked_arguments():
    """Defaults are filled in, and the skill gets what the user said."""
    talk, runner, _ = world(models=MODELS)
    talk.ask("vehicle.set_temperature", {"celsius": 22}, prose="Set it to twenty-two degrees")
    await talk.run(1)
    assert runner.calls[0].arguments == {"celsius": 22.0, "zone": "speaker"}


async def test_wrong_arguments_are_asked_back_in_the_skills_words():
    """Out of range: nothing runs; the skill's own sentence if it has one, else a general question."""
    talk, runner, _ = world(models=MODELS)
    task = talk.ask("vehicle.set_temperature", {"celsius": 99}, prose="Set it to ninety nine")
    await talk.run(3)
    assert runner.calls.__len__() == 0 and talk.texts == ["I didn't get all of that. Could you say it again?"]
    assert state(talk, task)[0] == "failed" and talk.spoken[0][1].kind == "question"
    talk, *_ = world(models=MODELS, sentences={("vehicle.set_temperature", "invalid_args"): "Between 16 and 28, please."})
    talk.ask("vehicle.set_temperature", {"celsius": 99}, prose="Set it to ninety nine")
    await talk.run(1)
    assert talk.texts == ["Between 16 and 28, please."]


async def test_a_number_the_user_did_not_say_is_asked_back():
    """Misheard or made up: never acted on. What the skill derives by itself is exempt."""
    talk, runner, _ = world()
    task = talk.ask("vehicle.set_temperature", {"celsius": 22.0}, prose="Set it to twenty-one degrees")
    talk.ask("vehicle.set_window", {"position": 0}, prose="Close the window")
    await talk.run(5)
    assert [c.skill_id for c in runner.calls] == ["vehicle.set_window"]
    assert talk.harness.ledger.get(task).execution_reason == "value_not_said"
    assert any("number right" in text for text in talk.texts)
    assert not TEMPERATURE.derived and WINDOW.derived


async def test_prose_without_a_planner_is_asked_back_politely():
    """The default planner asks; an unknown capability is refused in words."""
    talk, runner, _ = world()
    talk.ask(None, prose="do the thing with the stuff")
    await talk.run(4)
    talk.ask("no.such_skill")
    await talk.run(4)
    asked = [await AskBackPlanner().plan(PlanRequest("x", "en", ())) for _ in range(2)]  # two variants, in turn
    assert talk.texts[0] in [ask.text for ask in asked]
    assert talk.texts[1] == "I'm afraid I can't do that." and not runner.calls


async def test_the_same_key_is_the_same_task():
    """A repeated delegate returns the same id, runs nothing twice and is counted."""
    talk, runner, _ = world()
    first = talk.ask("navigation.go", {"destination": "casino"}, key="k")
    await talk.run(2)
    assert talk.ask("navigation.go", {"destination": "port"}, key="k") == first
    await talk.run(2)
    assert len(runner.calls) == 1 and len(talk.texts) == 1
    assert talk.harness.ledger.counters()["duplicate_keys"] == 1


@pytest.mark.parametrize("wrong, name", [({"repair": "undo"}, "repair"), ({"arguments": [1]}, "arguments"),
                                         ({"arguments": {"x": float("nan")}}, "arguments"), ({"prose": "x" * 5000}, "prose")])
def test_a_malformed_request_names_its_field(wrong, name):
    """One clear error with the field and what is allowed."""
    with pytest.raises(BadRequest, match=f"^{name}:"):
        DelegateRequest(**{"key": "k", "turn": 1, "opened_pos": 0, "opened_seq": 0, "prose": "", **wrong})


def test_an_empty_key_is_derived_from_what_was_asked_where():
    """Equal requests get equal keys, different ones different; the caller's dict is not shared."""
    def request(**more):
        return DelegateRequest(**{"key": "", "turn": 1, "opened_pos": 5, "opened_seq": 1, "prose": "hi", **more})
    arguments = {"a": 1}
    one = request(arguments=arguments)
    arguments["a"] = 2
    assert one.arguments == {"a": 1} and one.key == request(arguments={"a": 1}).key
    assert len({one.key, request().key, request(opened_pos=6).key, request(prose="ho").key}) == 4
