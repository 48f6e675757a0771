"""Running: limits, isolation between tasks, shared memory, and an end that leaves nothing behind."""
import asyncio

import pytest
from harness_world import GO, SPECS, state, world

from harness import Closed, SkillSpec
from harness.testing import Script
from venus_edge.metrics import METRICS


async def test_a_skill_starts_within_one_turn_of_the_event_loop():
    """accept() returns, and at the next tick the skill's code runs."""
    talk, runner, _ = world()
    talk.ask("navigation.go", {"destination": "casino"})
    assert not runner.calls
    await asyncio.sleep(0)
    assert len(runner.calls) == 1


async def test_eight_run_thirty_two_wait_and_the_next_is_refused_in_words():
    """The limits hold; refusals are told, several of them once; the waiting ones all run in order."""
    talk, runner, _ = world({"navigation.go": Script(after_s=1)}, specs=(SkillSpec("navigation.go", timeout_s=60),))
    talk.user_speaking = True
    ids = [talk.ask("navigation.go", {"destination": "casino"}, key=f"k{n}") for n in range(45)]
    await asyncio.sleep(0)
    executions = [state(talk, i)[0] for i in ids]
    assert [executions.count(s) for s in ("running", "queued", "failed")] == [8, 32, 5]
    assert [state(talk, i)[1] for i in ids[40:]] == ["pending"] + ["merged"] * 4
    await talk.run(8)
    assert all(state(talk, i)[0] == "completed" for i in ids[:40])
    assert [c.task_id for c in runner.calls] == ids[:40]
    talk.user_speaking = False
    await talk.run(1)
    assert "Please ask me again in a moment" in talk.texts[0]


async def test_one_tasks_fault_never_touches_another():
    """Exceptions, hangs and stubborn runs around it: the good task is told on time, each other ends as it should."""
    talk, *_ = world({"poi.find": Script(error=KeyError("x")), "scene.look": Script(after_s=999, ignores_cancel_s=999),
                      "navigation.go": Script("Four minutes.", after_s=0.5)})
    broken, hung, good = (talk.ask(c, {}, same_turn=True) for c in ("poi.find", "scene.look", "navigation.go"))
    await talk.run(8)
    assert state(talk, good)[:2] == ("completed", "delivered") and state(talk, hung)[0] == "running"
    await talk.run(60)
    assert state(talk, broken)[0] == "failed" and state(talk, hung)[0] == "failed"
    assert all(t.closed for t in talk.harness.ledger.tasks())


async def test_an_observers_fault_does_not_disturb():
    """An observer that raises on everything: the reply comes all the same."""
    talk, *_ = world({"navigation.go": Script("Four minutes.")})

    def observer(transition):
        raise ZeroDivisionError

    talk.harness.ledger.observer = observer
    talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(1)
    assert talk.texts == ["Four minutes."]


async def test_shared_memory_takes_each_skills_own_changes():
    """Two overlapping runs keep both their changes; deletion works; a failed run's changes count, a cancelled one's don't."""
    talk, *_ = world({"navigation.go": [Script(after_s=1, memory=lambda m: m | {"route": "casino"}),
                                        Script(memory=lambda m: m | {"route": None}),
                                        Script(memory=lambda m: {k: v for k, v in m.items() if k != "asked"})],
                      "poi.find": Script(after_s=0.5, memory=lambda m: m | {"offered": ["a"]}),
                      "vehicle.set_window": Script(ok=False, code="unavailable", memory=lambda m: m | {"asked": 1}),
                      "scene.look": Script(after_s=5, ignores_cancel_s=0.1, memory=lambda m: {"seen": True})})
    harness = talk.harness
    look = talk.ask("scene.look")
    talk.ask("navigation.go", same_turn=True)
    talk.ask("poi.find", same_turn=True)
    talk.ask("vehicle.set_window", same_turn=True)
    await talk.run(2)
    harness.cancel(look)
    await talk.run(2)
    assert harness.memory == {"route": "casino", "offered": ["a"], "asked": 1}
    for left in ({"offered": ["a"], "asked": 1}, {"offered": ["a"]}):
        talk.ask("navigation.go")
        await talk.run(1)
        assert harness.memory == left


@pytest.mark.parametrize("bad", [{"x": "y" * 70_000}, {"x": object()}])
async def test_memory_is_bounded_and_plain(bad):
    """Too large or not JSON: refused and counted; the result is told all the same."""
    talk, *_ = world({"navigation.go": Script("Four minutes.", memory=lambda m: m | bad)})
    before = METRICS.get("venus_harness_memory_refused_total")
    talk.ask("navigation.go")
    await talk.run(1)
    assert talk.harness.memory == {} and talk.texts == ["Four minutes."]
    assert METRICS.get("venus_harness_memory_refused_total") == before + 1


async def test_closing_ends_every_task_and_leaves_no_asyncio_task():
    """Running, queued, waiting and half-told: each has one end; nothing runs on; further requests are refused."""
    talk, runner, _ = world({"poi.find": Script(after_s=60), "navigation.go": Script("Four minutes.")}, max_running=1)
    done = talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(0.2)
    running, queued = talk.ask("poi.find", {"query": "charger"}), talk.ask("navigation.go", {"destination": "port"})
    await talk.run(0.1)
    talk.harness.memory["x"] = 1
    await talk.harness.close()
    await talk.harness.close()
    await asyncio.sleep(0.01)
    assert state(talk, running) == ("cancelled", "dropped", "session_closed")
    assert state(talk, queued) == ("cancelled", "dropped", "session_closed")
    assert state(talk, done)[1:] == ("unspoken", "session_closed")
    assert asyncio.all_tasks() == {asyncio.current_task()} and talk.harness.memory == {}
    assert talk.harness.ledger.open() == []
    with pytest.raises(Closed):
        talk.ask("navigation.go")


async def test_nothing_of_finished_tasks_stays():
    """Two thousand requests: history, journal, evidence, progress and delivery notes stay bounded."""
    talk, *_ = world({GO.id: [Script(after_s=0.25), Script()] * 20}, specs=SPECS, history=64, remembered_keys=128)
    harness = talk.harness
    for n in range(2000):
        talk.ask(GO.id, {"destination": "casino"}, key=f"k{n}", repair="update" if n % 3 else "new")
        if n % 10 == 0:
            await talk.run(0.1)
    await talk.run(200)
    assert len(harness.ledger.tasks()) == 64 and len(harness.ledger.journal.records()) <= 64 * 16
    desk = harness._desk
    for kept in (harness._evidence, harness._sent_memory, harness._late._states, desk._not_before, desk._waiting_since,
                 desk._briefs, harness._lane.runs, harness._lane.flows):
        assert not kept, kept
    assert harness.ledger.counters()["accepted"] == 2000 and len(harness.ledger._keys) == 128


async def test_cancellation_is_acknowledged_within_fifty_milliseconds():
    """The ledger moves at once, and a run that obeys is CANCELLED within 50 ms."""
    talk, runner, seen = world({"poi.find": Script(after_s=60)})
    task = talk.ask("poi.find", {"query": "charger"})
    await talk.run(1)
    assert talk.harness.cancel(task) and state(talk, task)[0] == "cancelling"
    await talk.clock.advance(0.05)
    assert state(talk, task) == ("cancelled", "dropped", "cancelled")
    assert talk.harness.cancel(task) is False
