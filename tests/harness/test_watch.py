"""Who watches a session: a slow reader loses the oldest and nobody waits for it; an end wakes all; whoever has gone leaves nothing."""
import asyncio
import gc

import pytest
from harness_world import SPECS

from harness import Closed, Task, Transition
from harness.testing import Script, scripted
from harness.watch import BACKLOG, Watchers
from venus_edge.metrics import METRICS


def moved(task_id="t", to="running", n=0):
    return Transition("execution", Task(task_id, "k", task_id, 1, "x", {}, "", 0, "en", "driver", "", "", 0.0), "", to, str(n))


async def read(stream):
    return [transition.reason async for transition in stream]


async def test_a_slow_reader_loses_the_oldest_and_that_is_counted():
    """The others get everything."""
    watchers, before = Watchers(), METRICS.snapshot().get("venus_harness_events_dropped_total", 0)
    slow, quick = watchers.stream(), watchers.stream()
    seen = []
    for n in range(BACKLOG + 10):
        watchers.saw(moved(n=n))
        seen.append((await anext(quick)).reason)
    watchers.close()
    assert seen == [str(n) for n in range(BACKLOG + 10)] and await read(quick) == []
    assert await read(slow) == [str(n) for n in range(10, BACKLOG + 10)]
    assert METRICS.snapshot()["venus_harness_events_dropped_total"] - before == 10


async def test_closing_wakes_every_reader_and_waiter():
    """A reader first gets what it had not read; who waits for an end is told that there will be none; so is who comes later."""
    watchers = Watchers()
    idle, behind = asyncio.ensure_future(read(watchers.stream())), watchers.stream()
    waiting = [asyncio.ensure_future(watchers.end_of("t")) for _ in range(2)]
    await asyncio.sleep(0)
    watchers.saw(moved("u", n=1))
    watchers.close()
    assert await asyncio.wait_for(idle, 1) == ["1"] and await read(behind) == ["1"]
    for waiter in waiting:
        with pytest.raises(Closed):
            await asyncio.wait_for(waiter, 1)
    assert await asyncio.wait_for(read(watchers.stream()), 1) == []
    with pytest.raises(Closed):
        await asyncio.wait_for(watchers.end_of("t"), 1)


async def test_readers_and_waiters_that_have_gone_leave_nothing():
    """Closed, broken off in the middle, forgotten, cancelled: nothing is kept for them."""
    watchers = Watchers()
    closed, broken_off = watchers.stream(), watchers.stream()
    watchers.saw(moved())
    async for _ in broken_off:
        break
    await closed.aclose()
    assert await read(closed) == [], "what it had not read is gone with it"
    del broken_off
    waiters = [asyncio.ensure_future(watchers.end_of("t")) for _ in range(3)]
    await asyncio.sleep(0)
    for waiter in waiters:
        waiter.cancel()
    await asyncio.gather(*waiters, return_exceptions=True)
    gc.collect()
    assert not watchers._streams and not watchers._ends


async def test_every_waiter_for_an_end_gets_it_and_others_wait_on():
    watchers = Watchers()
    ends, other = [asyncio.ensure_future(watchers.end_of("t")) for _ in range(3)], asyncio.ensure_future(watchers.end_of("u"))
    await asyncio.sleep(0)
    ends[0].cancel()
    watchers.saw(moved("t", "running")), watchers.saw(moved("t", "completed"))
    await asyncio.sleep(0)
    assert [e.result().id for e in ends[1:]] == ["t", "t"] and not other.done()
    watchers.close()
    with pytest.raises(Closed):
        await other


async def test_results_and_events_of_a_session_end_with_it():
    """result() of a task that the closing ends gives the task; of one that is left behind, Closed; events end."""
    for end, gives in (("close", "cancelled"), ("leave", None)):
        world = scripted({"poi.find": Script(after_s=50)}, specs=SPECS)
        task = world.talk.ask("poi.find", {"query": "x"})
        await world.clock.advance(0.1)
        result, events = asyncio.ensure_future(world.session.result(task)), asyncio.ensure_future(read(world.session.events()))
        await asyncio.sleep(0)
        await getattr(world.session, end)()
        await asyncio.wait_for(events, 1)
        if gives:
            assert (await asyncio.wait_for(result, 1)).execution == gives
        else:
            with pytest.raises(Closed):
                await asyncio.wait_for(result, 1)
            with pytest.raises(Closed):
                await asyncio.wait_for(world.session.result(task), 1)
