"""A session at its edges: what is odd, broken or asked at the wrong moment has one stated outcome, and the next request works."""
import pytest
from harness_world import SPECS, state

from harness import Aside, Contract, HarnessSettings, Moment, Plan, SkillSpec
from harness.deliver.gate import RATE
from harness.testing import ListedCatalog, Script, ScriptedPlanner, scripted
from venus_edge.testing import VirtualClock


def planned(answer, scripts=None, specs=SPECS, **settings):
    clock = VirtualClock()
    return scripted(scripts, catalog=ListedCatalog(*specs, contracts=[Contract("navigation.go", {}, {})]), clock=clock,
                    planner=ScriptedPlanner(clock, {"words": answer}), settings=HarnessSettings(**settings))


async def still_works(talk):
    task = talk.ask("navigation.go", {"destination": "x"}, key="after")
    await talk.run(12)
    assert state(talk, task)[0] == "completed" and state(talk, task)[1] in ("delivered", "merged"), talk.texts
    assert all(t.closed for t in talk.session.status())


@pytest.mark.parametrize("answer", [
    "go", ["go"], [None, Plan("new", "navigation.go", {"destination": "x"})], 7, {"a": 1}, [Plan("dance")], [Plan("new", "navigation.go", None)],
    [Plan("new", None, {})], [Plan("new", "navigation.go", {"destination": {1, 2}})]], ids=repr)
async def test_a_planners_nonsense_costs_one_sentence(answer):
    """Whatever it returns instead of plans: the user is told, nothing runs, nothing hangs."""
    world = planned(answer)
    task = world.talk.ask(None, prose="words")
    await world.talk.run(4)
    assert state(world.talk, task)[:2] == ("failed", "delivered") and len(world.talk.texts) == 1 and not world.runner.calls
    await still_works(world.talk)


@pytest.mark.parametrize("answer", [None, (), []], ids=repr)
async def test_no_answer_is_asked_back(answer):
    world = planned(answer)
    task = world.talk.ask(None, prose="words")
    await world.talk.run(5)
    assert world.session.ledger.get(task).kind == "question" and state(world.talk, task)[1] == "delivered"


async def test_of_several_plans_each_has_its_own_fate():
    """One is refused, one runs, one is too many: the others don't suffer, and what is more than the limit is left out."""
    plans = (Plan("new", "no.skill"), Plan("new", "navigation.go", {"destination": "x"}), Plan("status"),
             Plan("new", "vehicle.set_window", {"window": "all"}))
    world = planned(plans, {"navigation.go": Script("There.", after_s=2)}, max_plans=3)
    world.talk.ask(None, prose="words", key="k")
    await world.talk.run(14)
    by_key = {t.key: (t.capability, str(t.execution)) for t in world.session.status()}
    assert by_key == {"k": ("harness.plan", "failed"), "k#1": ("navigation.go", "completed"), "k#2": ("harness.status", "completed")}
    told = " ".join(world.talk.texts)
    assert "can't do that" in told and "There." in told and "I'm working on" in told


async def test_a_plan_that_comes_after_its_request_left_the_history_does_nothing():
    """Cancelled while the planner dawdled, and forgotten since."""
    clock = VirtualClock()
    world = scripted(catalog=ListedCatalog(*SPECS), clock=clock, planner=ScriptedPlanner(clock, {"words": Aside()}, after_s=5),
                     settings=HarnessSettings(history=8))
    task = world.talk.ask(None, prose="words")
    await clock.advance(1)
    planning = world.session._planning[task]
    world.session.ledger.execute(task, "cancelled"), world.session.ledger.deliver(task, "dropped")
    for n in range(9):
        world.talk.ask("no.skill", {}, key=f"n{n}")
        world.session.cancel(world.session.status()[-1].id)
    assert not world.session.ledger.knows(task)
    await clock.advance(6)
    assert planning.done() and not planning.cancelled() and planning.exception() is None
    await still_works(world.talk)


async def test_a_spec_that_the_scheduler_cannot_take_ends_the_task_with_a_word():
    """A catalog of another's making: an unknown priority. Queued for ever it would be asked about for ever."""
    world = scripted(specs=[*SPECS, SkillSpec("odd.one", priority="sometimes")])
    task = world.talk.ask("odd.one")
    await world.talk.run(6)
    assert state(world.talk, task)[:2] == ("failed", "delivered") and world.session.ledger.get(task).execution_reason == "internal"
    await still_works(world.talk)


async def test_work_past_stopping_is_not_corrected_but_told():
    """It would happen all the same, and the correction besides: the user hears that it can't be stopped; it goes on and is told."""
    order = SkillSpec("order.send", timeout_s=20, cancellable=False, supersedes="o")
    world = scripted({"order.send": Script("Ordered.", after_s=4)}, specs=[*SPECS, order])
    talk = world.talk
    first = talk.ask("order.send", {"what": "tea"})
    await talk.run(1)
    second = talk.ask("order.send", {"what": "coffee"}, repair="update")
    await talk.run(9)
    assert state(talk, second)[0] == "failed" and world.session.ledger.get(second).execution_reason == "not_cancellable"
    assert state(talk, first)[:2] == ("completed", "delivered") and [c.arguments["what"] for c in world.runner.calls] == ["tea"]
    third = talk.ask("order.send", {"what": "coffee"}, repair="update")
    await talk.run(8)
    assert world.session.ledger.get(third).replaces == first and len(world.runner.calls) == 2, "once it has ended it can be corrected"


async def test_merging_needs_two_outcomes_that_wait():
    """Into itself, into one in the air, into one that was told: refused, and both are told."""
    world = scripted({"navigation.go": Script("There."), "vehicle.set_window": Script("Closed.")}, specs=SPECS)
    talk, session = world.talk, world.session
    go = talk.ask("navigation.go", {"destination": "x"})
    await talk.run(0.3)
    window = talk.ask("vehicle.set_window", {"window": "all"})
    await talk.clock.advance(0.1)
    assert talk.speaking.task_id == go
    assert not session.merge(window, window) and not session.merge(window, go) and not session.merge(go, window)
    await talk.run(5)
    assert not session.merge(window, go) and (state(talk, go)[1], state(talk, window)[1]) == ("delivered", "delivered")


async def test_a_regret_is_said_once_at_a_good_moment_and_forgotten_when_declined():
    """It is no outcome: nothing is recorded of it, and a front end that won't say it is not asked again."""
    world = scripted(specs=SPECS)
    talk, session = world.talk, world.session
    session.regret("en"), session.regret("zh")
    talk.user_speaking = True
    await talk.run(1)
    assert talk.texts == []
    talk.user_speaking = False
    await talk.run(8)
    assert len(talk.texts) == 1 and talk.texts[0].startswith("抱歉") and session.status() == ()
    session.regret("en")
    reply = session.next_reply(Moment(round(talk.clock.now() * RATE) + RATE, False, False, False, 1))
    assert reply.kind == "notice" and reply.task_id == ""
    session.reply_declined(reply.id)
    await talk.run(5)
    assert len(talk.texts) == 1
    await still_works(talk)


@pytest.mark.parametrize("begun, played, ended, told", [
    (False, 0, False, "There are two. One is free."), (True, 120, False, "One is free."), (True, 0, False, "There are two. One is free."),
    (True, 200, True, "")])
async def test_another_front_end_takes_over_what_was_given_out(begun, played, ended, told):
    """What had not begun waits again at once; of what had begun the device's last word tells what was heard, and the rest is said."""
    world = scripted({"poi.find": Script("There are two. One is free.")}, specs=SPECS)
    talk, session = world.talk, world.session
    task = talk.ask("poi.find", {"query": "x"})
    await talk.clock.advance(1)
    reply = session.next_reply(Moment(RATE, False, False, False, 1))
    if begun:
        session.reply_started(reply.id, "seg-1")
        session.reply_speech(reply.id, "seg-1", [("There are two.", 100), ("One is free.", 200)])
    session.attach()
    assert session.doubtful("seg-1")[0] == (reply.id if begun else "")
    assert session.played("seg-2", 100, True) is False, "a segment of something else"
    assert session.played("seg-1", played, ended) is begun and session.played("seg-1", played, ended) is False
    await talk.run(6)
    assert "".join(talk.texts).removeprefix("As I was saying, ") == told and state(talk, task)[1] == "delivered"


async def test_without_a_word_of_the_device_the_doubt_ends_and_its_note_goes():
    """Two seconds after another front end took over: shown, not said again."""
    world = scripted({"poi.find": Script("There are two.")}, specs=SPECS)
    talk, session = world.talk, world.session
    task = talk.ask("poi.find", {"query": "x"})
    await talk.run(0.5)
    seg = f"seg-{len(talk.spoken)}"
    assert world.harness.store.notes("session")["air"]["seg"] == seg
    session.attach()
    talk.speaking = None
    await talk.run(3)
    assert state(talk, task)[1:] == ("unspoken", "restart_unconfirmed") and [i.task_id for i in session.screen()] == [task]
    assert world.harness.store.notes("session") == {} and session.doubtful(seg) == ("", [])
    await still_works(talk)


async def test_a_keyed_request_that_is_remembered_is_never_made_again():
    """Fewer keys than tasks are to be remembered: those of remembered tasks stay, however old."""
    world = scripted({"poi.find": Script(after_s=100)}, specs=SPECS, settings=HarnessSettings(history=64, remembered_keys=8))
    first = world.talk.ask("poi.find", {"query": "x"}, key="first")
    for n in range(20):
        world.talk.ask("navigation.go", {"destination": "x"}, key=f"k{n}")
        await world.talk.run(1)
    assert world.talk.ask("poi.find", {"query": "x"}, key="first") == first
    assert sum(c.skill_id == "poi.find" for c in world.runner.calls) == 1
