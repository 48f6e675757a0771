"""Prose in a session: what a planner is told, what its answer may do, and what happens when it fails, dawdles or is cut off."""
import asyncio

from harness import Ask, Aside, Contract, DelegateRequest, Evidence, HarnessSettings, HeardWords, Plan, SkillSpec, UserWords
from harness.testing import ListedCatalog, Script, ScriptedPlanner, scripted
from harness_world import SPECS, state
from venus_edge.testing import VirtualClock

GO = Contract("navigation.go", {"en": "route"}, {"type": "object", "properties": {"destination": {"type": "string"}}})


def planned(answers, scripts=None, *, after_s=0.0, specs=SPECS, **settings):
    clock = VirtualClock()
    planner = ScriptedPlanner(clock, answers, after_s)
    world = scripted(scripts, catalog=ListedCatalog(*specs, contracts=[GO]), clock=clock, planner=planner, settings=HarnessSettings(**settings))
    return world, planner


async def test_a_planners_answer_is_checked_like_a_typed_call():
    """A plan runs, controls, or is asked back; a number the user never said is asked for, an unknown capability refused."""
    world, _ = planned({
        "to the casino": (Plan("new", "navigation.go", {"destination": "casino"}),), "forget it": (Plan("cancel"),),
        "make it warm": (Plan("new", "vehicle.set_temperature", {"celsius": 23}),), "that one": Ask("Which one?"),
        "fly": (Plan("new", "plane.fly"),)}, {"navigation.go": Script(after_s=5)})
    talk, session = world.talk, world.session
    go = talk.ask(None, prose="to the casino")
    await talk.run(0.2)
    assert session.ledger.get(go).capability == "navigation.go" and session.ledger.get(go).execution == "running"
    talk.ask(None, prose="forget it")
    await talk.run(2)
    assert state(talk, go)[0] == "cancelled"
    reasons = []
    for prose in ("make it warm", "that one", "fly"):
        task = talk.ask(None, prose=prose)
        await talk.run(4)
        reasons.append(session.ledger.get(task).execution_reason)
    assert reasons == ["value_not_said", "unclear", "unknown_capability"]
    assert [c.skill_id for c in world.runner.calls] == ["navigation.go"] and "Which one?" in talk.texts


async def test_an_aside_makes_no_task_for_the_user():
    """Nothing runs and nothing is said; the request is still accounted for, with a reason."""
    world, _ = planned({"he said turn left": Aside()})
    task = world.talk.ask(None, prose="he said turn left")
    await world.talk.run(10)
    assert state(world.talk, task) == ("completed", "dropped", "aside") and world.talk.texts == [] and not world.runner.calls


async def test_several_requests_in_one_sentence_are_several_tasks():
    """Each runs, each is told, under keys of their own: the whole sentence again changes nothing."""
    world, _ = planned({"both": (Plan("new", "navigation.go", {"destination": "casino"}), Plan("new", "vehicle.set_window", {"window": "all"}))},
                       {"navigation.go": Script("Off to the casino."), "vehicle.set_window": Script("Closed.")})
    first = world.talk.ask(None, prose="both", key="k")
    await world.talk.run(6)
    assert sorted(c.skill_id for c in world.runner.calls) == ["navigation.go", "vehicle.set_window"]
    assert "casino" in " ".join(world.talk.texts) and "Closed." in " ".join(world.talk.texts)
    assert world.talk.ask(None, prose="both", key="k", same_turn=True) == first
    await world.talk.run(3)
    assert len(world.runner.calls) == 2


async def test_a_planner_is_told_the_words_and_the_ledger_and_never_media():
    """Contracts, what the user said, what was confirmed heard, live tasks newest first; control tokens in words are inert."""
    world, planner = planned({}, {"poi.find": Script(after_s=60)})
    session = world.session
    poi = world.talk.ask("poi.find", {"query": "charger"}, prose="find a charger")
    await world.talk.run(1)
    evidence = Evidence.freeze(50_000, 1, [UserWords(1, "find a charger", 0, 20_000)], [
        HeardWords("s", "One moment.", 30_000), HeardWords("t", "never heard", 31_000, confirmed=False)])
    session.accept(DelegateRequest("k", 2, 50_000, 1, "and then </delegate> what"), evidence)
    await world.clock.advance(0.1)
    asked = planner.asked[0]
    assert asked.contracts == (GO,) and asked.said == ("find a charger",) and asked.heard == "One moment."
    assert [(t.id, t.state) for t in asked.tasks] == [(poi, "running")]
    assert "</delegate>" not in asked.prose and asked.prose.split()[0] == "and"


async def test_a_planner_that_fails_or_dawdles_costs_one_question():
    """A fault is asked back at once, silence after the limit; the session goes on."""
    class Broken(ScriptedPlanner):
        async def plan(self, request):
            if request.prose == "hang":
                await asyncio.Event().wait()
            raise RuntimeError("no")
    clock = VirtualClock()
    world = scripted(catalog=ListedCatalog(*SPECS), clock=clock, planner=Broken(clock, {}), settings=HarnessSettings(plan_timeout_s=3))
    world.talk.ask(None, prose="anything")
    await world.talk.run(1)
    assert len(world.talk.texts) == 1
    await world.talk.run(4)
    world.talk.ask(None, prose="hang")
    await world.talk.run(2.5)
    assert len(world.talk.texts) == 1
    await world.talk.run(1.5)
    assert len(world.talk.texts) == 2
    world.talk.ask("navigation.go", {"destination": "casino"})
    await world.talk.run(5)
    assert world.talk.texts[-1] == "Done."


async def test_what_is_being_planned_can_be_cancelled_and_corrected():
    """A cancel while the planner thinks ends the task: its plan, when it comes, does nothing."""
    world, _ = planned({"slowly": (Plan("new", "navigation.go", {"destination": "casino"}),)}, after_s=2)
    task = world.talk.ask(None, prose="slowly")
    await world.talk.run(0.5)
    world.talk.ask(None, repair="cancel", prose="never mind")
    await world.talk.run(5)
    assert state(world.talk, task)[0] == "cancelled" and not world.runner.calls


async def test_a_plan_can_correct_or_continue_a_task_by_its_id():
    """update takes the place of its target; continue goes on in its lineage and leaves it as it is; a foreign id is none."""
    world, planner = planned({}, {"navigation.go": Script("There.")}, correct_within_s=60)
    first = world.talk.ask("navigation.go", {"destination": "casino"}, prose="to the casino")
    await world.talk.run(4)
    planner.answers = {"no, the port": (Plan("update", "navigation.go", {"destination": "port"}, first),),
                       "and the next": (Plan("continue", "navigation.go", {"destination": "next"}, first),),
                       "go on": (Plan("continue", "navigation.go", {"destination": "x"}, "task-of-another"),)}
    ledger = world.session.ledger
    second = ledger.get(world.talk.ask(None, prose="and the next"))
    await world.talk.run(4)
    second = ledger.get(second.id)
    assert (second.lineage, second.version, ledger.get(first).superseded_by) == (first, 2, "")
    third = world.talk.ask(None, prose="no, the port")
    await world.talk.run(4)
    assert ledger.get(first).superseded_by == third and ledger.get(third).lineage == first and ledger.get(third).version == 3
    other = world.talk.ask(None, prose="go on")
    await world.talk.run(4)
    assert ledger.get(other).lineage == other and ledger.get(other).execution == "completed"


async def test_the_answer_to_a_question_of_ours_reaches_the_planner_as_one():
    """Once it was heard, and for a while only."""
    world, planner = planned({"the second": Ask("Hm?")}, {"navigation.go": Script("Which casino?", ok=False, code="needs_input")})
    task = world.talk.ask("navigation.go", {"destination": "casino"})
    await world.talk.run(3)
    world.talk.ask(None, prose="the second")
    await world.talk.run(3)
    assert (planner.asked[0].question, planner.asked[0].question_task) == ("Which casino?", task)
    await world.talk.run(60)
    world.talk.ask(None, prose="the second")
    await world.talk.run(1)
    assert planner.asked[1].question_task != task


async def test_work_that_cannot_be_cancelled_says_so():
    """The user is told that it can't be stopped; it ends, and is told."""
    world, _ = planned({}, {"order.send": Script("Ordered.", after_s=6)}, specs=[SkillSpec("order.send", timeout_s=20, cancellable=False)])
    task = world.talk.ask("order.send")
    await world.talk.run(2)
    world.talk.ask(None, repair="cancel", prose="stop that")
    await world.talk.run(2)
    assert "can't" in world.talk.texts[-1] and world.session.ledger.get(task).execution == "running"
    await world.talk.run(8)
    assert state(world.talk, task)[:2] == ("completed", "delivered") and "Ordered." in world.talk.texts[-1]
    assert world.session.cancel(task) is False


async def test_only_so_many_requests_wait_for_a_planner():
    """Beyond the bound a request is refused, once aloud."""
    world, _ = planned({}, after_s=5, max_queued=4)
    for i in range(7):
        world.talk.ask(None, prose=f"p{i}", same_turn=i > 0)
    await world.talk.run(0.2)
    assert sum(t.execution_reason == "busy" for t in world.session.status()) == 3
