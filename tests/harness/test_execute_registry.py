"""What is installed, its manifests and its arguments."""
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from harness.execute import registry as module
from harness.execute.registry import Registry, RegistrySpec, allowed_values, load
from harness.execute.wording import SkillWording
from harness.skill import Effects, SkillError
from venus_edge.errors import ConfigError

sys.path.insert(0, str(Path(__file__).parent))
from execute_skills import Echo, Warm  # noqa: E402

SKILLS_GROUP = [EntryPoint("test", "execute_skills:SKILLS", module.SKILLS_GROUP)]
PROVIDERS_GROUP = [EntryPoint("maps", "some.module:open_maps", module.PROVIDERS_GROUP)]


def test_installed_packages_register_skills_and_providers(monkeypatch):
    """Entry points are read by group; what they name is loaded; the spec survives its way to the skill processes."""
    monkeypatch.setattr(module, "entry_points", lambda group: {module.SKILLS_GROUP: SKILLS_GROUP, module.PROVIDERS_GROUP: PROVIDERS_GROUP}[group])
    registry = Registry.from_entry_points()
    assert "test.echo" in registry.ids() and registry.get("test.echo") is Echo
    assert registry.spec.providers == {"maps": "some.module:open_maps"}
    assert RegistrySpec.from_json(registry.spec.to_json()) == registry.spec


def test_nothing_installed_is_said(monkeypatch):
    monkeypatch.setattr(module, "entry_points", lambda group: [])
    with pytest.raises(ConfigError, match="venus.skills"):
        Registry.from_entry_points()


def test_the_project_registers_its_own_skills():
    """The entry points in pyproject.toml name what is really there."""
    import tomllib
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]
    registry = Registry.from_modules(list(points[module.SKILLS_GROUP].values()), points[module.PROVIDERS_GROUP])
    assert {"navigation.go", "poi.find", "vehicle.set_temperature"} < set(registry.ids()) and len(registry.ids()) > 14
    assert all(callable(load(reference)) for reference in registry.spec.providers.values())


def test_a_duplicate_id_is_refused_naming_both():
    class Other(Echo):
        pass

    with pytest.raises(ConfigError, match=r"'test.echo'.*twice.*Echo.*Other"):
        Registry(RegistrySpec(), [Echo, Other])


@pytest.mark.parametrize("changes,named", [
    ({"id": ""}, "id"), ({"summary": {"en": "only"}}, "summary"), ({"safety": "brave"}, "brave.*free"), ({"timeout_s": 0}, "timeout_s"),
    ({"timeout_s": 500}, "timeout_s.*120"), ({"effects": Effects(uses=("internet",))}, "internet.*maps"),
    ({"wording": Path("/nowhere.toml")}, "nowhere.toml"), ({"effects": Effects(uses=("maps",))}, "maps.*no installed package"),
    ({"Args": dict}, "Args"),
])
def test_a_broken_manifest_is_refused_by_field(changes, named):
    with pytest.raises(ConfigError, match=named):
        Registry(RegistrySpec(), [type("Broken", (Echo,), changes)])


def test_arguments_are_checked_naming_field_and_range():
    registry = Registry(RegistrySpec(), [Echo, Warm])
    assert registry.validate("test.echo", {"number": 3}).number == 3
    for arguments, field, allowed in (({"number": 10}, "number", "0 to 9"), ({"number": "many"}, "number", "0 to 9"),
                                      ({"size": 1}, "size", "fields value, number")):
        with pytest.raises(SkillError, match=f"{field}.*{allowed}") as caught:
            registry.validate("test.echo", arguments)
        assert caught.value.code == "invalid_args" and caught.value.data["field"] == field
    with pytest.raises(SkillError, match="celsius"):
        registry.validate("test.warm", {})
    with pytest.raises(SkillError, match="no skill 'test.tea'") as caught:
        registry.validate("test.tea", {})
    assert caught.value.code == "not_found"
    assert allowed_values(Warm.Args, "celsius") == "number"


def test_a_wrong_entry_point_is_named():
    for reference in ("no_such_module:SKILLS", "execute_skills:NOTHING"):
        with pytest.raises(ConfigError, match=reference):
            load(reference)


def test_words_are_looked_for_from_the_special_to_the_general(tmp_path):
    """A reason's own sentence, else the outcome's, else the shared one; a sentence that lacks a field is passed over; never silence."""
    own = tmp_path / "w.toml"
    own.write_text('[a.b.unsafe_now_moving]\nen = "At {speed}!"\nzh = "{speed}"\n[a.b.unsafe_now]\nen = "Not now."\nzh = "不行"\n'
                   '[a.b.done]\nen = ["One {x}.", "Two {x}."]\nzh = "好{x}"\n')
    words = SkillWording(own)
    assert words.say("a.b", "unsafe_now", "en", {"reason": "moving", "speed": 49.7}) == "At fifty!"
    assert words.say("a.b", "unsafe_now", "en", {"reason": "moving"}) == "Not now."
    assert words.say("a.b", "unsafe_now", "en", {"reason": "other", "speed": 3}) == "Not now."
    assert words.say("x.y", "unsafe_now", "en", {"reason": "moving", "speed": 50, "key": "x", "lang": "y", "other": None}) == "I can't do that while we're driving at fifty kilometres per hour."
    assert words.say("x.y", "invalid_args", "en", {"low": 16.0, "high": 30.0}) == "I can only do that between sixteen and thirty."
    assert [words.say("a.b", "done", "en", {"x": 22.5}) for _ in range(3)] == ["One twenty-two point five.", "Two twenty-two point five.", "One twenty-two point five."]
    assert words.say("a.b", "done", "zh", {"x": 2}) == "好二"
    assert words.say("a.b", "no_such_outcome") == "Sorry, something went wrong there."
    assert words.has("a.b", "done") and not words.has("a.b", "ack")


def test_text_fields_are_never_filled_again():
    """A name with braces in it is spoken as it is."""
    words = SkillWording()
    assert "{" not in words.say("x.y", "not_found", "en", {"query": "{0.__class__}"})


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 10**9])
def test_a_number_that_can_not_be_said_does_not_silence_the_answer(value):
    assert SkillWording().say("x.y", "unsafe_now", "en", {"reason": "moving", "speed": value})
