"""What can be asked for: the installed skills, and what a backend serves besides, checked by its schema and never in a skill's place."""
import pytest

from harness import BadRequest, Contract, SkillSpec
from harness.catalog import DIRECT_TIMEOUT_S, GENERAL_TIMEOUT_S, Capabilities, RegistryCatalog
from harness.execute.registry import Registry
from harness.skill import SkillError
from harness.testing import ListedCatalog
from venus_edge.errors import ConfigError

QUESTION = {"type": "object", "required": ["question"], "additionalProperties": False,
            "properties": {"question": {"type": "string", "minLength": 1}, "short": {"type": "boolean", "default": True}}}
DIRECT = Contract("direct.answer", {"en": "answer"}, QUESTION, kind="direct")
GENERAL = Contract("general.task", {"en": "do"}, {}, kind="general", group="work")
SKILL = Contract("gate.open", {"en": "open"}, {"type": "object", "additionalProperties": False})


def joined():
    return Capabilities(ListedCatalog(SkillSpec("gate.open", timeout_s=7), sentences={("gate.open", "ack"): "Opening."}), (SKILL, DIRECT, GENERAL))


def test_a_backends_capabilities_join_the_skills():
    """Direct answers and general tasks have times of their own kind; what acts is not run twice; a skill stays what its catalog says."""
    both = joined()
    assert all(both.has(c) for c in ("gate.open", "direct.answer", "general.task")) and not both.has("other")
    direct, general = both.spec("direct.answer"), both.spec("general.task")
    assert (direct.timeout_s, direct.idempotent, general.timeout_s, general.idempotent) == (DIRECT_TIMEOUT_S, True, GENERAL_TIMEOUT_S, False)
    assert direct.slow and direct.derived == {"*"} and general.supersedes == "work"
    assert both.spec("gate.open").timeout_s == 7 and both.say("gate.open", "ack", "en", {}) == "Opening."
    assert both.say("direct.answer", "ack", "en", {}) == ""
    with pytest.raises(KeyError):
        both.spec("other")


def test_arguments_are_checked_by_whoever_has_the_capability():
    """By its schema, with defaults, naming the field; a skill's by its catalog, which here takes all."""
    both = joined()
    assert both.validate("direct.answer", {"question": "why"}) == {"question": "why", "short": True}
    for wrong, field in (({}, "question"), ({"question": ""}, "question"), ({"question": "a", "x": 1}, "x")):
        with pytest.raises(BadRequest) as caught:
            both.validate("direct.answer", wrong)
        assert caught.value.data["field"] == field
    assert both.validate("gate.open", {"anything": 1}) == {"anything": 1} and both.validate("general.task", {"x": 1}) == {"x": 1}


@pytest.mark.parametrize("name", ["harness.cancel", "harness.plan", "harness.own"])
def test_the_harnesss_own_names_are_not_to_be_had(name):
    """A capability of that name would be taken for a control: refused when the harness is made, naming it."""
    with pytest.raises(ConfigError, match=name):
        Capabilities(ListedCatalog(SkillSpec("a")), (Contract(name, {}, {}),))
    with pytest.raises(ConfigError, match=name):
        Capabilities(ListedCatalog(SkillSpec(name), contracts=[Contract(name, {}, {})]), (Contract(name, {}, {}),))


def test_wording_that_breaks_or_is_no_text_is_none():
    """The harness has words of its own for everything."""
    class Broken(ListedCatalog):
        def say(self, *args):
            return 1 / 0 if args[1] == "ack" else None
    both = Capabilities(Broken(SkillSpec("gate.open")), ())
    assert both.say("gate.open", "ack", "en", {}) == "" and both.say("gate.open", "topic", "en", {}) == ""


def test_installed_skills_give_every_field_of_their_manifest():
    """What the harness knows of a skill is what its manifest says; the contracts are one object."""
    registry = Registry.from_entry_points()
    catalog = RegistryCatalog(registry)
    assert catalog.contracts() is catalog.contracts() and [c.id for c in catalog.contracts()] == registry.ids()
    same = {"id": "id", "supersedes": "supersedes", **{name: name for name in (
        "timeout_s", "slow", "result_ttl_s", "on_interrupt", "on_topic_change", "derived", "idempotent", "cancellable", "retries", "priority",
        "max_running", "ack_after_s", "first_progress_s", "progress_after_s", "offer_stop_after_s", "give_up_after_s")}}
    assert set(same) == set(SkillSpec.__dataclass_fields__), "a field of SkillSpec that no manifest fills"
    for skill_id in registry.ids():
        spec, skill = catalog.spec(skill_id), registry.get(skill_id)
        assert all(getattr(spec, ours) == getattr(skill, theirs) for ours, theirs in same.items()), skill_id
    with pytest.raises(SkillError, match="celsius"):
        catalog.validate("vehicle.set_temperature", {"celsius": 99})
    assert catalog.validate("vehicle.set_temperature", {"celsius": 20}) == {"celsius": 20.0, "zone": "speaker"}
