"""Cancel that, how is it going, say that again: answered from the ledger, in the language of whoever asks, about what was named and
nothing else."""
import pytest
from harness_world import SPECS, state, world

from harness import Contract, Plan, SkillSpec
from harness.testing import ListedCatalog, Script, ScriptedPlanner, scripted
from venus_edge.testing import VirtualClock

SLOW = {"poi.find": Script("Two of them.", after_s=20), "navigation.go": Script("Four minutes.", after_s=20)}
SENTENCES = {"running": ("I'm working on", "我正在处理"), "queued": ("in a moment", "马上开始"),
             "ready": ("got the answer about", "有结果了"),
             "idle": ("not working on anything", "没有正在处理"), "cancelled": ("I've stopped working on", "已停止处理"),
             "left": ("I'll say no more about", "不再说"), "nothing": ("nothing under way", "没有可以取消"),
             "cannot": ("can't be stopped", "停不下来"), "repeat": ("nothing to repeat", "没有可以重复")}
LANGS = pytest.mark.parametrize("lang", ["en", "zh"])


async def asked(talk, repair, lang, capability=None):
    """The sentence that a control request is answered."""
    task = talk.ask(capability, repair=repair, prose="x", lang=lang)
    await talk.clock.advance(0)
    return talk.session.ledger.get(task).text


def says(text, key, lang):
    return SENTENCES[key][lang == "zh"] in text and any("一" <= c <= "鿿" for c in text) is (lang == "zh")


@LANGS
async def test_with_nothing_under_way_that_is_said(lang):
    talk, *_ = world()
    for repair, key in (("status", "idle"), ("cancel", "nothing"), ("repeat", "repeat")):
        assert says(await asked(talk, repair, lang), key, lang)


@LANGS
async def test_what_was_asked_in_the_other_language_is_named_in_this_one(lang):
    """Running, queued, stopped: one language in one sentence."""
    other = "zh" if lang == "en" else "en"
    talk, *_ = world(SLOW, max_running=1)
    talk.ask("navigation.go", {"destination": "Nice"} if lang == "en" else {"destination": "尼斯"}, prose="x", lang=other)
    talk.ask("vehicle.set_window", {"window": "all"}, lang=other, same_turn=True)
    await talk.clock.advance(3)
    text = await asked(talk, "status", lang)
    assert says(text, "running", lang) and says(text, "queued", lang) and ("3" in text)
    assert says(await asked(talk, "cancel", lang, "navigation.go"), "cancelled", lang)


@LANGS
async def test_an_untold_result_is_announced_or_let_go(lang):
    """And one that is past stopping is called so."""
    world_ = scripted({"order.send": Script("Ordered.", after_s=30), "poi.find": Script("Two.", after_s=1)},
                      specs=[SkillSpec("order.send", timeout_s=40, cancellable=False), SkillSpec("poi.find", timeout_s=60)])
    talk = world_.talk
    find = talk.ask("poi.find", {"query": "x"}, lang=lang)
    await talk.clock.advance(2)
    assert says(await asked(talk, "status", lang), "ready", lang)
    assert says(await asked(talk, "cancel", lang, "poi.find"), "left", lang) and state(talk, find)[1:] == ("dropped", "cancelled")
    order = talk.ask("order.send", lang=lang)
    await talk.clock.advance(2)
    assert says(await asked(talk, "cancel", lang), "cannot", lang) and state(talk, order)[0] == "running"


async def test_nothing_but_what_is_named_is_stopped():
    """By capability, or by its group where the words meant another way of the same; never another task in its place."""
    specs = (*SPECS, SkillSpec("navigation.find_and_go", supersedes="navigation"))
    talk, *_ = world({**SLOW, "vehicle.set_window": Script(after_s=20)}, specs=specs)
    poi, go = talk.ask("poi.find", {"query": "x"}), talk.ask("navigation.go", {"destination": "x"})
    await talk.clock.advance(1)
    assert says(await asked(talk, "cancel", "en", "vehicle.set_window"), "nothing", "en")
    assert (state(talk, poi)[0], state(talk, go)[0]) == ("running", "running")
    assert says(await asked(talk, "cancel", "en", "navigation.find_and_go"), "cancelled", "en")
    assert (state(talk, poi)[0], state(talk, go)[0]) == ("running", "cancelled")


async def test_a_planners_target_is_followed_to_its_newest_version_and_no_further():
    """Corrected since: the new one is stopped. Told long ago: nothing is. Of another session: the newest, as if none was given."""
    clock = VirtualClock()
    planner = ScriptedPlanner(clock, {})
    one = scripted({**SLOW, "vehicle.set_window": Script("Closed.")}, catalog=ListedCatalog(*SPECS, contracts=[Contract("x", {}, {})]), clock=clock,
                   planner=planner)
    talk, ledger = one.talk, one.session.ledger
    window = talk.ask("vehicle.set_window", {"window": "all"})
    await talk.run(3)
    old = talk.ask("navigation.go", {"destination": "port"})
    await talk.run(0.5)
    new = talk.ask("navigation.go", {"destination": "casino"}, repair="update")
    poi = talk.ask("poi.find", {"query": "x"})
    await talk.run(0.5)
    planner.answers = {"a": (Plan("cancel", None, {}, window),), "b": (Plan("cancel", None, {}, old),), "c": (Plan("cancel", None, {}, "task-z"),)}
    ends = []
    for prose in "abc":
        task = talk.ask(None, prose=prose)
        await talk.run(0.3)
        ends.append((ledger.get(task).text[:18], ledger.get(new).execution, ledger.get(poi).execution))
    assert ends == [("There's nothing un", "running", "running"), ("Okay, I've stopped", "cancelled", "running"),
                    ("Okay, I've stopped", "cancelled", "cancelled")]


async def test_what_is_being_planned_counts_as_under_way():
    """It has no name yet; it can be asked about and stopped."""
    clock = VirtualClock()
    talk = scripted(catalog=ListedCatalog(*SPECS), clock=clock, planner=ScriptedPlanner(clock, {}, after_s=5)).talk
    task = talk.ask(None, prose="something")
    await clock.advance(1)
    assert says(await asked(talk, "status", "en"), "queued", "en")
    assert says(await asked(talk, "cancel", "en"), "cancelled", "en") and state(talk, task)[0] == "cancelled"


async def test_three_tasks_at_most_are_told_of_with_how_far_they_are():
    """The newest, with their own progress, in the language it was told in."""
    scripts = {"poi.find": Script(after_s=50, progress=((1.0, "Reading the list."),))}
    talk, *_ = world(scripts, specs=SPECS)
    for query in "abcd":
        talk.ask("poi.find", {"query": query}, same_turn=True)
    await talk.clock.advance(2)
    text = await asked(talk, "status", "en")
    assert text.count("I'm working on") == 3 and "the d" in text and "the a" not in text and text.count("Reading the list.") == 3
    assert "Reading" not in await asked(talk, "status", "zh")


async def test_a_no_to_shall_i_really_is_acknowledged():
    """The question has ended its task, so there is nothing to stop: it is let go, and nothing else is."""
    clock = VirtualClock()
    planner = ScriptedPlanner(clock, {})
    really = Script("Really?", ok=False, code="needs_confirmation", fields={"confirm": "yes-1"})
    one = scripted({"gate.open": really, **SLOW}, clock=clock, planner=planner, specs=[SkillSpec("gate.open"), SkillSpec("poi.find", timeout_s=60)])
    poi = one.talk.ask("poi.find", {"query": "x"})
    gate = one.talk.ask("gate.open")
    await one.talk.run(3)
    planner.answers = {"no": (Plan("cancel", "gate.open", {}, gate),)}
    answer = one.talk.ask(None, prose="no")
    await one.talk.run(2)
    assert says(one.session.ledger.get(answer).text, "left", "en") and state(one.talk, poi)[0] == "running"


@pytest.mark.parametrize("repeats", [1, 2])
async def test_a_repetition_goes_with_what_it_repeats(repeats):
    """"Say that again", and then it is corrected: what is left of the repetition is dropped, however often it was repeated, and it is not
    what "again" means any more, also after a restart."""
    one = scripted({"navigation.go": [Script("To the port, along the quay."), Script(after_s=60)]}, specs=SPECS)
    talk = one.talk
    go = talk.ask("navigation.go", {"destination": "port"})
    await talk.run(4)
    for _ in range(repeats):
        again = talk.ask(None, repair="repeat", prose="again")
        await talk.run(4 if repeats > 1 and _ == 0 else 1)
    assert talk.speaking and talk.speaking.text == "To the port, along the quay."
    assert talk.session.ledger.get(again).arguments == {"target": go}
    talk.ask("navigation.go", {"destination": "casino"}, repair="update")
    talk.interrupt("To the port,")
    await talk.run(2)
    assert state(talk, again)[1:] == ("dropped", "superseded")
    assert says(await asked(talk, "repeat", "en"), "repeat", "en")
    after = await one.restart()
    after.talk.turn = 20
    assert says(await asked(after.talk, "repeat", "en"), "repeat", "en")
