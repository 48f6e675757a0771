"""The public runtime: many sessions over one backend, scheduler and journal; submit, events, result, cancel, status, close."""
import asyncio
import gc
import weakref

import pytest
from harness_world import SPECS

from harness import (Closed, DelegateRequest, Delivery, Evidence, Harness, MemoryStore, SchedulerLimits, SkillBackend, SkillOutcome, SkillSpec,
                     UnknownSession, UnknownTask)
from harness.journal.sqlite import SqliteStore
from harness.testing import ListedCatalog, Script, scripted
from venus_edge.clock import SystemClock
from venus_edge.errors import BusyError


def request(key="k", capability="navigation.go", turn=1, **more):
    return DelegateRequest(key, turn, 0, 0, "to the casino", capability, {"destination": "casino"}, **more)


class Instant:
    """Runs every skill in no time; keeps the calls."""

    def __init__(self):
        self.calls = []

    async def run(self, call, on_progress):
        self.calls.append(call)
        return SkillOutcome(True, text=f"Done for {call.session}.")


def instant(**options):
    catalog, runner = ListedCatalog(*SPECS), Instant()
    return Harness(SkillBackend(catalog, runner), catalog, SystemClock(), **options), runner


async def test_a_request_goes_in_and_its_result_comes_out():
    """submit returns the task, result waits for its end, events tell every transition in order, status shows it."""
    harness, _ = instant()
    await harness.start()
    session = harness.open_session("a")
    seen = []

    async def watch():
        async for transition in harness.events("a"):
            seen.append((transition.machine, transition.dst))
    watching = asyncio.ensure_future(watch())
    await asyncio.sleep(0)
    task_id = await harness.submit("a", request())
    task = await asyncio.wait_for(harness.result("a", task_id), 2)
    assert (task.execution, task.text) == ("completed", "Done for a.") and [t.id for t in harness.status("a")] == [task_id]
    assert harness.session("a") is session
    await harness.close()
    await asyncio.wait_for(watching, 2)
    assert seen[:4] == [("execution", "queued"), ("execution", "running"), ("execution", "completed"), ("delivery", "pending")]
    assert seen[-1] == ("delivery", "dropped")


async def test_the_same_key_again_is_the_same_task_whoever_asks_first():
    """Concurrent submissions under one key: one task, one run."""
    harness, runner = instant()
    harness.open_session("a")
    ids = await asyncio.gather(*(harness.submit("a", request()) for _ in range(5)))
    await harness.result("a", ids[0])
    assert len(set(ids)) == 1 and len(runner.calls) == 1
    await harness.close()


async def test_sessions_know_nothing_of_each_other():
    """A foreign task is unknown, a closed session is unknown, and each gets its own words."""
    harness, _ = instant()
    harness.open_session("a"), harness.open_session("b")
    of_a, of_b = await harness.submit("a", request()), await harness.submit("b", request())
    assert (await harness.result("b", of_b)).text == "Done for b."
    for call in (harness.cancel, harness.session("b").ledger.get):
        with pytest.raises(UnknownTask):
            call("b", of_a) if call == harness.cancel else call(of_a)
    await harness.close("a")
    with pytest.raises(UnknownSession):
        harness.status("a")
    assert harness.sessions() == ["b"]
    await harness.close()
    with pytest.raises(Closed):
        harness.open_session("c")


async def test_limits_are_said_and_one_sessions_end_makes_room():
    """Too many sessions, an id in use: one clear error each."""
    harness, _ = instant(max_sessions=2)
    harness.open_session("a"), harness.open_session("b")
    with pytest.raises(BusyError, match="2 sessions"):
        harness.open_session("c")
    await harness.close("a")
    harness.open_session("c")
    with pytest.raises(BusyError, match="open already"):
        harness.open_session("c")
    await harness.close()


async def test_a_closed_session_leaves_nothing_behind(tmp_path):
    """No object, no row, no asyncio task."""
    store = SqliteStore(str(tmp_path / "j.sqlite"))
    harness, _ = instant(store=store)
    await harness.start()
    before = asyncio.all_tasks()
    session = harness.open_session("a")
    task = await harness.submit("a", request())
    await harness.result("a", task)
    ref = weakref.ref(session)
    await harness.close("a")
    del session
    await store.flushed()
    gc.collect()
    assert ref() is None and asyncio.all_tasks() == before and store.sessions() == []
    await harness.close()


async def test_a_hung_session_delays_no_other():
    """Eight runs that never end in one session, and another session's request goes through at once."""
    world = scripted({"poi.find": Script(after_s=1e6, ignores_cancel_s=1e6)}, specs=SPECS, limits=SchedulerLimits(max_running=9))
    for i in range(12):
        world.talk.ask("poi.find", {"query": str(i)}, same_turn=True)
    other = world.harness.open_session("other")
    task = other.accept(request(), Evidence.freeze(0, 0))
    await world.clock.advance(0.1)
    assert other.ledger.get(task).execution == "completed"


async def test_a_retry_happens_only_where_a_run_does_no_harm():
    """Unavailable: run again if idempotent; what had started and is not idempotent is not; what never started always is."""
    down = Script("No.", ok=False, code="unavailable")
    for spec, script, runs in ((SkillSpec("s"), down, 2), (SkillSpec("s", idempotent=False), down, 1),
                               (SkillSpec("s", idempotent=False), Script("No.", ok=False, code="internal", started=False), 2),
                               (SkillSpec("s", retries=0), down, 1), (SkillSpec("s"), Script("No.", ok=False, code="not_found"), 1)):
        world = scripted({"s": [script, Script("Yes.")]}, specs=[spec])
        world.talk.ask("s")
        await world.talk.run(4)
        assert len(world.runner.calls) == runs and world.talk.texts == ["Yes." if runs == 2 else "No."], spec
        assert len({c.key for c in world.runner.calls}) == 1


# -- restarts


async def restarted(world, settle_s=0.2):
    await world.clock.advance(settle_s)
    return await world.restart()


async def test_after_a_restart_finished_results_are_told_once():
    """What was ready and untold is told by the next process, and only by it."""
    world = scripted({"poi.find": Script("Two of them.", after_s=1)}, specs=SPECS, store=MemoryStore())
    task = world.talk.ask("poi.find", {"query": "charger"})
    await world.clock.advance(2)
    assert world.session.ledger.get(task).delivery == "pending"
    again = await restarted(world)
    await again.talk.run(5)
    assert again.talk.texts == ["Two of them."] and again.session.ledger.get(task).delivery == "delivered" and not again.runner.calls
    third = await restarted(again)
    await third.talk.run(5)
    assert third.talk.texts == []


async def test_after_a_restart_idempotent_work_runs_again_and_other_work_is_reported():
    """Within five seconds the user hears of the work that can't be repeated; what never began just runs."""
    specs = [SkillSpec("look", timeout_s=20), SkillSpec("order", timeout_s=20, idempotent=False)]
    world = scripted({"look": Script("Found.", after_s=2), "order": Script("Ordered.", after_s=2)}, specs=specs)
    look, order = world.talk.ask("look"), world.talk.ask("order", same_turn=True)
    await world.clock.advance(1)
    again = await restarted(world)
    await again.talk.run(5)
    assert any("look" not in t and again.session.ledger.get(order).text in t for t in again.talk.texts), "told within five seconds"
    await again.talk.run(5)
    ledger = again.session.ledger
    assert [c.skill_id for c in again.runner.calls] == ["look"] and again.runner.calls[0].key == world.runner.calls[0].key
    assert ledger.get(look).delivery == "delivered" and (ledger.get(order).execution, ledger.get(order).execution_reason) == ("failed", "restarted")
    assert any("Found." in t for t in again.talk.texts) and ledger.get(order).text in " ".join(again.talk.texts)


async def test_what_was_in_the_air_is_settled_by_what_the_device_played():
    """Heard: not again. Partly: the rest. Nobody knows: shown, not said again."""
    for heard, told, end in (("Go left at the port, then straight on.", [], "delivered"), ("Go left at the port,", ["then straight on."], "delivered"),
                             (None, [], "unspoken")):
        world = scripted({"navigation.go": Script("Go left at the port, then straight on.")}, specs=SPECS)
        task = world.talk.ask("navigation.go", {"destination": "port"})
        await world.talk.run(0.5)
        reply = world.talk.speaking
        assert reply is not None
        world.session.reply_speech(reply.id, "seg-1", [("Go left at the port,", 100), ("then straight on.", 200)])
        again = await restarted(world)
        assert again.session.doubtful("seg-1")[0] == reply.id and again.session.doubtful("other") == ("", [])
        if heard is not None:
            again.session.reattach(reply.id, heard=heard, unheard=reply.text[len(heard):], completed=heard == reply.text)
        await again.talk.run(8)
        ledger = again.session.ledger
        assert ledger.get(task).delivery == end, heard
        assert len(again.talk.texts) == len(told) and all(t in s for t, s in zip(told, again.talk.texts))
        assert bool(again.session.screen()) == (heard is None)


async def test_a_correction_that_a_crash_cut_in_half_is_finished():
    """The new task was recorded, the old one's end was not: it is superseded all the same and never told."""
    store = MemoryStore()
    world = scripted({"navigation.go": Script("On the way.", after_s=3)}, specs=SPECS, store=store)
    old = world.talk.ask("navigation.go", {"destination": "casino"})
    await world.clock.advance(0.5)
    new = world.talk.ask("navigation.go", {"destination": "port"}, repair="update")
    journal = store.session(world.session.id)
    keep = [r for r in journal.records() if not (r.task == old and (r.dst in ("superseded", "dropped") or r.reason == "superseded"))]
    await world.session.leave()
    torn = MemoryStore()
    for record in keep:
        torn.session(world.session.id).append(record)
    again = await world.restart(torn)
    await again.talk.run(8)
    ledger = again.session.ledger
    assert ledger.get(old).superseded_by == new and ledger.get(old).delivery == "dropped" and ledger.get(new).delivery == "delivered"
    assert again.talk.texts.count("On the way.") == 1


async def test_prose_that_was_not_planned_yet_is_planned_after_a_restart():
    """Nothing that was accepted is forgotten."""
    world = scripted(specs=SPECS)
    task = world.talk.ask(None, prose="do something")
    again = await world.restart()
    await again.talk.run(8)
    assert again.session.ledger.get(task).delivery == Delivery.DELIVERED and len(again.talk.texts) == 1


async def test_the_shared_memory_survives_a_restart():
    """What skills remembered is there for the next one."""
    world = scripted({"poi.find": Script("Two.", memory=lambda m: {**m, "places": ["A", "B"]})}, specs=SPECS)
    world.talk.ask("poi.find", {"query": "x"})
    await world.talk.run(2)
    again = await restarted(world)
    assert again.session.memory == {"places": ["A", "B"]}


async def test_sessions_that_nobody_takes_up_are_forgotten():
    """Their records go."""
    world = scripted(specs=SPECS, store=MemoryStore())
    world.talk.ask("navigation.go", {"destination": "x"})
    await world.clock.advance(0.1)
    store = world.harness.store
    await world.session.leave()
    harness = Harness(world.harness.backend, world.harness.backend.catalog, world.clock, store=store)
    assert await harness.start() == {"session": ""} and harness.forget_left() == 1 and store.sessions() == []
