"""Whoever takes a request takes its evidence: held once for each task, let go of when the task ends, also where the request is refused."""
import asyncio
import random
from dataclasses import dataclass

import pytest
from faulty_store import FaultyStore
from harness_world import SPECS

from harness import Ask, BadRequest, Closed, DelegateRequest, Evidence, HarnessSettings, JournalFault, Plan, SkillSpec
from harness.testing import ListedCatalog, Script, ScriptedPlanner, scripted
from venus_edge.testing import VirtualClock


@dataclass
class Holder:
    """Counts who holds the media; letting go more often than holding is a fault, not ignored."""

    count: int = 1

    def retain(self):
        assert self.count > 0, "held again after it was let go of"
        self.count += 1

    def release(self):
        self.count -= 1
        assert self.count >= 0, "let go of twice"


def evidence():
    return Evidence(0, 0, holder=Holder())


def request(n, capability="navigation.go", prose="please", **more):
    return DelegateRequest(f"k{n}", more.pop("turn", n + 1), 0, 0, prose, capability, {"destination": "x"} if capability else {}, **more)


async def test_a_request_that_is_not_taken_lets_go_of_its_evidence():
    """The same key again, a store that refuses, what no journal can keep, a closed session."""
    store = FaultyStore()
    world = scripted(specs=SPECS, store=store)
    given = [evidence() for _ in range(4)]
    world.session.accept(request(0), given[0])
    assert world.session.accept(request(0), given[1]) and given[1].holder.count == 0
    store.dead = True
    with pytest.raises(JournalFault):
        world.session.accept(request(1), given[2])
    store.dead = False
    await world.harness.close()
    with pytest.raises(Closed):
        world.session.accept(request(2), given[3])
    assert [e.holder.count for e in given] == [0, 0, 0, 0]


async def test_every_task_of_one_sentence_holds_it_and_the_last_one_lets_go():
    """Three plans: one refused, one quick, one slow."""
    clock = VirtualClock()
    three = (Plan("new", "poi.find", {"query": "a"}), Plan("new", "no.skill"), Plan("new", "navigation.go", {"destination": "x"}))
    world = scripted({"poi.find": Script("Two.", after_s=5)}, catalog=ListedCatalog(*SPECS), clock=clock,
                     planner=ScriptedPlanner(clock, {"all": three}))
    given = evidence()
    world.session.accept(request(0, None, "all"), given)
    await clock.advance(0.1)
    assert given.holder.count == 1, "the slow one"
    await clock.advance(6)
    assert given.holder.count == 0 and sum(t.execution == "completed" for t in world.session.status()) == 2


async def test_leaving_and_closing_let_go_of_everything():
    """Running, queued, planned and stubborn."""
    for end in ("close", "leave"):
        clock = VirtualClock()
        world = scripted({"poi.find": Script(after_s=50), "navigation.go": Script(after_s=50, ignores_cancel_s=20)}, catalog=ListedCatalog(*SPECS),
                         clock=clock, planner=ScriptedPlanner(clock, {}, after_s=5), settings=HarnessSettings(max_running=2))
        given = [evidence() for _ in range(4)]
        for n, capability in enumerate(("poi.find", "navigation.go", "poi.find", None)):
            world.session.accept(request(n, capability), given[n])
        await clock.advance(0.5)
        assert [e.holder.count for e in given] == [1, 1, 1, 1]
        ending = asyncio.ensure_future(getattr(world.session, end)())
        await clock.advance(2)
        await ending
        assert [e.holder.count for e in given] == [0, 0, 0, 0] and not world.session._evidence


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_happens_evidence_balances(seed):
    """A random minute of requests, corrections, cancels, duplicates, plans, refusals, limits, and a close in the middle of it."""
    rng, clock = random.Random(seed), VirtualClock()
    plans = {"two": (Plan("new", "poi.find", {"query": "a"}), Plan("update", "navigation.go", {"destination": "y"})), "ask": Ask("Which?"),
             "stop": (Plan("cancel"),), "same": (Plan("new", "navigation.go", {"destination": "z"}),) * 3}
    specs = (*SPECS, SkillSpec("order.send", timeout_s=5, idempotent=False, cancellable=False, on_interrupt="cancel"))
    scripts = {s.id: [Script("Done.", after_s=rng.choice([0, 0.3, 2, 8]), ok=rng.random() < 0.8, code="unavailable",
                             ignores_cancel_s=rng.choice([0, 0, 3])) for _ in range(30)] for s in specs}
    store = FaultyStore(lambda number, machine: rng.random() < 0.02)
    world = scripted(scripts, catalog=ListedCatalog(*specs), clock=clock, planner=ScriptedPlanner(clock, plans, after_s=0.4), store=store,
                     settings=HarnessSettings(max_running=2, max_queued=3, queue_ttl_s=4, history=8))
    given, closing = [], None
    for n in range(120):
        if rng.random() < 0.5:
            given.append(evidence())
            capability = rng.choice([*(s.id for s in specs), None, None, "no.skill"])
            try:
                world.session.accept(request(rng.choice([n, n, n, rng.randrange(n + 1)]), capability, rng.choice([*plans, "?"]), turn=n + 1,
                                             repair=rng.choice(["new", "new", "update", "cancel", "status"])), given[-1])
            except (JournalFault, BadRequest, Closed):
                pass
        if rng.random() < 0.1 and world.session.status():
            world.session.cancel(rng.choice(world.session.status()).id)
        await world.talk.run(0.5)
        if n == 100 and seed % 2:
            closing = asyncio.ensure_future(world.session.close())
    closing = closing or asyncio.ensure_future(world.session.close())
    await clock.advance(10)
    await closing
    assert len(given) > 30 and [e.holder.count for e in given] == [0] * len(given)
