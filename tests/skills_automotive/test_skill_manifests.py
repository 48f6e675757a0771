"""Every skill's manifest: ids, examples, permissions, and a sentence for every outcome in both languages."""
import re
import tomllib

import pytest

from harness.execute.registry import Registry
from harness.host import policy
from harness.host.paths import expand
from skills_automotive import navigation, poi, vehicle
from venus_edge.wording import LANGUAGES

SKILLS = [*navigation.SKILLS, *poi.SKILLS, *vehicle.SKILLS]
PROVIDERS = {"maps": "skills_automotive.navigation.valhalla_maps:open_maps", "places": "skills_automotive.poi.places:open_places"}
CAPABILITIES = {
    "poi.find", "poi.next", "poi.more", "poi.details", "poi.call", "poi.attribution", "navigation.go", "navigation.find_and_go", "navigation.status", "navigation.cancel", "navigation.resume",
    "navigation.alternatives", "navigation.avoid", "navigation.via", "navigation.favourite", "navigation.reach", "navigation.ev", "vehicle.set_temperature",
    "vehicle.adjust_temperature", "vehicle.set_fan", "vehicle.set_seat_heating", "vehicle.set_window", "vehicle.set_tailgate",
    "vehicle.set_lock", "vehicle.set_volume", "vehicle.status"}


@pytest.fixture(scope="module")
def registry():
    return Registry.from_modules(["skills_automotive.navigation", "skills_automotive.poi", "skills_automotive.vehicle"], PROVIDERS)


def test_the_capabilities_are_all_there_and_no_others(registry):
    assert set(registry.ids()) == CAPABILITIES


@pytest.mark.parametrize("skill", SKILLS, ids=lambda s: s.id)
def test_examples_are_valid_arguments(registry, skill):
    """Each example's arguments pass the skill's own check and come back unchanged."""
    assert skill.examples["en"]
    for utterance, arguments in skill.examples["en"]:
        given = registry.validate(skill.id, arguments).model_dump()
        assert utterance and {name: given[name] for name in arguments} == arguments


@pytest.mark.parametrize("skill", SKILLS, ids=lambda s: s.id)
def test_an_unknown_field_is_refused_by_name(registry, skill):
    with pytest.raises(Exception, match="volcano") as caught:
        registry.validate(skill.id, {**skill.examples["en"][0][1], "volcano": 1})
    assert caught.value.code == "invalid_args"


@pytest.mark.parametrize("skill", SKILLS, ids=lambda s: s.id)
def test_permissions_are_what_the_policy_can_ever_allow(skill):
    """No skill declares an actuation that the car host's policy refuses under all circumstances, or a path it may not read."""
    from harness.execute.bridge import matches
    rules = [path for rule in policy.POLICY for path in expand(rule.pattern)]
    for pattern in skill.effects.actuates:
        assert any(matches(path, (pattern,)) for path in rules), pattern
    for pattern in skill.effects.reads:
        assert policy.may_read(pattern.replace("*", "Row1")), pattern


def _sentences():
    for path in sorted({skill.wording for skill in SKILLS}):
        def walk(node, key):
            if "en" in node:
                for lang in LANGUAGES:
                    for text in node[lang] if isinstance(node[lang], list) else [node[lang]]:
                        yield key, lang, text
            else:
                for name, child in node.items():
                    yield from walk(child, f"{key}.{name}" if key else name)
        yield from walk(tomllib.loads(path.read_text(encoding="utf-8")), "")


def test_every_sentence_belongs_to_a_skill_and_is_short_enough_to_be_spoken():
    """No orphan wording; at most twenty words of our own beside the names; both languages use the same fields; no digits."""
    fields = {}
    for key, lang, text in _sentences():
        assert key.rsplit(".", 1)[0] in CAPABILITIES, key
        assert not re.search(r"\d", text), key
        if lang == "en":
            assert len(re.sub(r"{\w+}", "", text).split()) <= 20 and text[-1] in ".?", key
        else:
            assert text[-1] in "。？", key
        fields.setdefault(key, {}).setdefault(lang, set()).update(re.findall(r"{(\w+)}", text))
    for key, both in fields.items():
        assert both["en"] - both["zh"] <= {"window_is", "name"} and both["zh"] - both["en"] <= {"window"}, key


@pytest.mark.parametrize("skill", SKILLS, ids=lambda s: s.id)
def test_every_failure_has_words_in_both_languages(registry, skill):
    """All shared codes give a sentence even without any field."""
    for lang in LANGUAGES:
        for code in ("invalid_args", "not_permitted", "unsafe_now", "needs_confirmation", "needs_input", "unavailable", "not_found",
                     "timeout", "cancelled", "internal"):
            text = registry.say(skill.id, code, lang)
            assert text and "{" not in text


def test_what_takes_long_has_an_acknowledgement_without_fields(registry):
    for skill_id in registry.ids():
        if registry.get(skill_id).slow:
            assert registry.wording.has(skill_id, "ack") and "{" not in registry.say(skill_id, "ack")
