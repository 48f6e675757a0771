"""A skill asks whether it really should, the user says yes: then it is done, once, for exactly what was asked about."""
import pytest

from harness import Contract, Harness, HarnessSettings, Plan, SkillBackend, SkillOutcome, SkillSpec
from harness.host.effects import CONFIRM_S, EffectHost
from harness.host.remote import RemoteVehicleBus
from harness.host.testing import PARKED, MemoryVehicleBus
from harness.testing import Conversation, ListedCatalog, Script, ScriptedPlanner, scripted
from venus_edge.errors import VenusError
from venus_edge.testing import VirtualClock

GATE = SkillSpec("gate.open", timeout_s=20)
ASKS = Script("Should I really open it?", ok=False, code="needs_confirmation", fields={"confirm": "yes-1", "expires_s": 15})


def gate(*scripts, specs=(GATE,), **settings):
    clock = VirtualClock()
    planner = ScriptedPlanner(clock, {})
    world = scripted({"gate.open": list(scripts), "gate.shut": Script("Shut.")}, clock=clock, planner=planner, settings=HarnessSettings(**settings),
                     catalog=ListedCatalog(*specs, contracts=[Contract("gate.open", {}, {})]))
    return world, planner


def calls(world):
    return [(c.task_id, c.task_version, c.arguments, c.confirm) for c in world.runner.calls]


async def answered(world, planner, words, plan, seconds=4):
    planner.answers = {words: (plan,)}
    task = world.talk.ask(None, prose=words)
    await world.talk.run(seconds)
    return world.session.ledger.get(task)


async def test_a_yes_reaches_the_host_as_its_token_for_the_task_that_was_asked_about():
    """The question is heard, the planner knows it, its yes goes on with that task: same id, version and arguments, and the token."""
    world, planner = gate(ASKS, Script("Open."))
    task = world.talk.ask("gate.open", {"gate": "rear"}, prose="open the rear gate")
    await world.talk.run(3)
    assert world.talk.texts == ["Should I really open it?"] and world.session.ledger.get(task).kind == "question"
    yes = await answered(world, planner, "yes", Plan("continue", "gate.open", {"gate": "rear"}, task))
    assert (planner.asked[0].question, planner.asked[0].question_task) == ("Should I really open it?", task)
    assert calls(world) == [(task, 1, {"gate": "rear"}, ""), (task, 1, {"gate": "rear"}, "yes-1")]
    assert (yes.lineage, yes.version, yes.execution) == (task, 2, "completed") and world.talk.texts[-1] == "Open."
    await answered(world, planner, "yes again", Plan("continue", "gate.open", {"gate": "rear"}, task))
    assert calls(world)[-1][3] == "", "a token counts once"


async def test_a_yes_to_anything_else_is_no_yes():
    """Other arguments, another zone, another task: it runs as a request of its own, and is asked about again."""
    for plan, zone in ((Plan("continue", "gate.open", {"gate": "front"}), "driver"), (Plan("new", "gate.open", {"gate": "rear"}), "driver"),
                       (Plan("update", "gate.open", {"gate": "rear"}), "driver")):
        world, planner = gate(ASKS, ASKS)
        task = world.talk.ask("gate.open", {"gate": "rear"})
        await world.talk.run(3)
        await answered(world, planner, "words", Plan(plan.operation, plan.capability, plan.arguments, task if plan.operation != "new" else None))
        assert [c[3] for c in calls(world)] == ["", ""], plan


async def test_a_yes_that_comes_too_late_for_the_host_is_asked_again_and_then_works():
    """The host's token had expired: it asks anew, about the same task and version; the next yes opens."""
    again = Script("Really open it?", ok=False, code="needs_confirmation", fields={"confirm": "yes-2"})
    world, planner = gate(ASKS, again, Script("Open."))
    task = world.talk.ask("gate.open", {"gate": "rear"})
    await world.talk.run(3)
    second = await answered(world, planner, "yes", Plan("continue", "gate.open", {"gate": "rear"}, task))
    await answered(world, planner, "yes yes", Plan("continue", "gate.open", {"gate": "rear"}, second.id))
    assert calls(world) == [(task, 1, {"gate": "rear"}, ""), (task, 1, {"gate": "rear"}, "yes-1"), (task, 1, {"gate": "rear"}, "yes-2")]
    assert world.talk.texts[-1] == "Open."


async def test_only_the_newest_questions_are_remembered():
    """Questions that nobody answers leave nothing behind."""
    world, _ = gate(ASKS)
    for n in range(20):
        world.talk.ask("gate.open", {"gate": f"g{'x' * n}"})
        await world.talk.run(3)
    assert len(world.session._confirmable) == 4


TAILGATE = "Vehicle.Body.Trunk.Rear.IsOpen"


class HostRunner:
    """Runs `gate.open` against a car host's own policy, as a session worker's runner does."""

    def __init__(self, host):
        self.host = host

    async def run(self, call, on_progress):
        bus = RemoteVehicleBus(self._ask, task_id=call.task_id, task_version=call.task_version, zone=call.zone, provenance=call.provenance,
                               confirm=call.confirm)
        try:
            await bus.actuate(TAILGATE, True, timeout_s=1.0)
        except VenusError as error:
            return SkillOutcome(False, error.code, "Should I really open it?", code=error.code, fields=dict(error.data))
        return SkillOutcome(True, text="It's open.")

    async def _ask(self, payload, timeout_s):
        return await self.host.handle(payload)


@pytest.mark.parametrize("pause_s, opened", [(0.0, True), (CONFIRM_S + 1, False)])
async def test_the_car_host_opens_after_the_yes_and_not_before(pause_s, opened):
    """End to end with the host's own binding of token, task, version, path, value and zone, and its deadline."""
    bus = MemoryVehicleBus(PARKED | {TAILGATE: False, "Vehicle.Body.Trunk.Rear.Position": 0})
    planner = ScriptedPlanner(bus.clock, {})
    catalog = ListedCatalog(GATE, contracts=[Contract("gate.open", {}, {})])
    harness = Harness(SkillBackend(catalog, HostRunner(EffectHost(bus, clock=bus.clock)), planner), catalog, bus.clock)
    talk = Conversation(harness.open_session("s"), bus.clock)
    task = talk.ask("gate.open", prose="open the tailgate")
    await talk.run(3 + pause_s)
    assert talk.texts == ["Should I really open it?"] and not bus.actuated
    planner.answers = {"yes": (Plan("continue", "gate.open", {}, task),)}
    talk.ask(None, prose="yes")
    await talk.run(3)
    assert talk.texts[-1] == ("It's open." if opened else "Should I really open it?") and bus.actuated == [(TAILGATE, True)] * opened
    await harness.close()
