"""Who gets a place, and when: limits, classes, turns, ageing, and what an idle session costs."""
import asyncio
import tracemalloc

import pytest
from scheduler_world import SchedulerWorld

from harness.errors import Closed
from harness.schedule.scheduler import Job
from venus_edge.errors import BusyError
from venus_edge.metrics import METRICS


async def test_each_limit_holds_by_itself():
    """Session 3, tenant 5, capability 2, process 9: none is exceeded at any instant, and everything runs in the end."""
    world = SchedulerWorld(max_running=9, max_running_per_tenant=5, reserved_for_waiting=0, reserved_per_tenant=0)
    lanes = [world.lane(f"s{n}", f"tenant{n % 3}", max_running=3) for n in range(9)]
    for n, lane in enumerate(lanes):
        for k in range(6):
            world.job(lane, f"{n}.{k}", capability="map" if k % 2 else "poi", max_running=2 if k % 2 else None)
    await world.clock.advance(60)
    assert all(world.how(f"{n}.{k}") == "done" for n in range(9) for k in range(6))
    assert world.peak["process"] == 9 and world.peak["map"] == 2
    assert max(world.peak[f"s{n}"] for n in range(9)) == 3 and max(world.peak[f"tenant{n}"] for n in range(3)) == 5
    await world.close()


@pytest.mark.parametrize("limits, lane_limits, count, hit", [
    ({}, {"max_running": 2, "max_queued": 3}, 5, "session.max_queued"),
    ({"max_queued": 4}, {"max_running": 2, "max_queued": 32}, 6, "process.max_queued"),
])
async def test_beyond_a_queue_bound_a_job_is_refused_by_name(limits, lane_limits, count, hit):
    """BusyError names the limit and its value; `full` and `refusal` said so before; the counter moves; nothing else changes."""
    world = SchedulerWorld(**limits)
    lane = world.lane("a", **lane_limits)
    for n in range(count):
        assert not lane.full
        world.job(lane, str(n))
    counter = f"venus_harness_refused_{hit.replace('.', '_')}_total"
    before = METRICS.get(counter)
    assert lane.full and lane.refusal() == hit
    with pytest.raises(BusyError, match=hit) as caught:
        world.job(lane, "more")
    assert caught.value.data["limit"] == hit and METRICS.get(counter) == before + 1
    await world.clock.advance(30)
    assert [world.how(str(n)) for n in range(count)] == ["done"] * count and world.how("more") is None
    await world.close()


async def test_classes_go_first_in_their_order_and_begun_work_before_new():
    """With one place: safety, waiting, normal, background; in each, a continuation before new work."""
    world = SchedulerWorld(max_running=1)
    lane = world.lane("a")
    world.job(lane, "first", 1)
    for priority in ("background", "normal", "waiting", "safety"):
        world.job(lane, f"{priority} new", 0.1, priority=priority)
        world.job(lane, f"{priority} begun", 0.1, priority=priority, started=True)
    await world.clock.advance(3)
    assert world.order[1:] == [f"{p} {s}" for p in ("safety", "waiting", "normal", "background") for s in ("begun", "new")]
    await world.close()


async def test_the_newest_turns_request_goes_before_older_ones():
    """Of two sessions, each newest turn counts as waiting; when a newer turn comes, what waits for the old one is normal again."""
    world = SchedulerWorld(max_running=1)
    one, two = world.lane("one"), world.lane("two")
    world.job(one, "running")
    world.job(one, "old", turn=1)
    world.job(one, "new", turn=2)
    world.job(two, "background", turn=5, priority="background")
    world.job(two, "theirs", turn=5)
    assert world.scheduler.snapshot().queued_by_class == {"waiting": 2, "normal": 1, "background": 1}
    two.user_turn(6)
    assert world.scheduler.snapshot().queued_by_class == {"waiting": 1, "normal": 2, "background": 1}
    await world.clock.advance(4)
    assert world.order[:2] == ["running", "new"] and world.order[-1] == "background"
    await world.close()


async def test_a_session_with_256_queued_tasks_never_delays_anothers_first():
    """The other's task starts when the next place is free, though one tenant's flood is ahead of it."""
    world = SchedulerWorld(max_running=4, reserved_for_waiting=0)
    flood = world.lane("flood", max_queued=256, queue_ttl_s=1000)
    for n in range(256):
        world.job(flood, f"f{n}")
    await world.clock.advance(0.5)
    world.job(world.lane("other"), "o")
    await world.clock.advance(0.5)
    assert (1.0, "o") in world.began
    await world.close()


async def test_tenants_share_first_and_their_sessions_then():
    """A tenant with one session gets every second place beside a tenant with five; the five take turns with the other half."""
    world = SchedulerWorld(max_running=1)
    small = world.lane("small", "small", max_queued=64)
    big = [world.lane(f"big{n}", "big", max_queued=64) for n in range(5)]
    world.job(small, "go", 0.1)
    for k in range(10):
        for n, lane in enumerate(big):
            world.job(lane, f"big{n}.{k}", 0.1)
        world.job(small, f"small.{k}", 0.1)
    await world.clock.advance(10)
    order = [task.split(".")[0] for task in world.order[1:21]]
    assert order.count("small") == 10 and all(a != b for a, b in zip(order, order[1:]))
    assert [o for o in order if o != "small"] == [f"big{n % 5}" for n in range(10)]
    await world.close()


async def test_a_full_capability_holds_up_nothing_else():
    """Thirty calls of a capability limited to one, from three sessions: other work passes them, and they are served in
    turn, the session first whose last place is longest ago."""
    world = SchedulerWorld()
    lanes = [world.lane(f"s{n}") for n in range(3)]
    for n, lane in enumerate(lanes):
        for k in range(10):
            world.job(lane, f"slow {n}.{k}", 1, capability="slow", max_running=1)
        world.job(lane, f"quick {n}", 0.1, capability="quick")
    await asyncio.sleep(0)
    assert world.order == ["slow 0.0", "quick 0", "quick 1", "quick 2"]
    await world.clock.advance(6)
    assert [task[5] for task in world.order if task.startswith("slow")] == list("0012012")
    await world.close()


async def test_background_work_waits_at_most_the_ageing_time_and_one_round():
    """Two sessions keep two places busy with waiting work for ever: background work gets a place after 5 s and one job more."""
    world = SchedulerWorld(max_running=2, ageing_s=5.0)
    talkers, patient = [world.lane(f"s{n}") for n in range(2)], world.lane("patient")
    for n in range(8):
        world.job(talkers[n % 2], f"w{n}", 0.5, priority="waiting")
    world.job(patient, "background", 0.5, priority="background")
    for n in range(8, 48):
        await world.clock.advance(0.25)
        world.job(talkers[n % 2], f"w{n}", 0.5, priority="waiting")
    when = dict((task, at) for at, task in world.began)["background"]
    assert 4.9 <= when <= 5.5 + 0.5
    await world.close()


async def test_a_convoy_finishes_its_first_tenth_in_its_first_fifth():
    """256 equal jobs of four stages, eight at a time: a job goes through all its stages before the next one starts."""
    world = SchedulerWorld()
    lane = world.lane("a", max_queued=256, queue_ttl_s=1000)
    for n in range(256):
        world.job(lane, str(n), 0.4, stages=4)
    await world.clock.advance(30)
    ends = sorted(end[0][0] for end in world.settled.values())
    assert len(ends) == 256 and ends[25] <= 0.20 * ends[-1], (ends[25], ends[-1])
    await world.close()


async def test_a_thousand_idle_lanes_cost_next_to_nothing():
    """Less than 1 kB each, no asyncio task, and a dispatch among them is as quick as alone."""
    world = SchedulerWorld()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    lanes = [world.lane(f"s{n}", f"t{n % 10}") for n in range(1000)]
    each = (tracemalloc.get_traced_memory()[0] - before) / 1000
    tracemalloc.stop()
    assert each < 1000, each
    assert asyncio.all_tasks() == {asyncio.current_task()}
    world.job(lanes[500], "x")
    await world.clock.advance(2)
    assert world.how("x") == "done" and lanes[500].runs is None and lanes[500].flows is None
    await world.close()
    assert world.scheduler.snapshot().tenants == {}


async def test_a_snapshot_counts_by_class_tenant_and_capability():
    world = SchedulerWorld(max_running=3, reserved_for_waiting=0)
    a, b = world.lane("a", "red"), world.lane("b", "blue")
    for n in range(3):
        world.job(a, f"a{n}", priority="background", capability="notes")
    world.job(b, "b0", turn=1)
    await asyncio.sleep(0)
    seen = world.scheduler.snapshot()
    assert (seen.sessions, seen.running, seen.queued, seen.abandoned) == (2, 3, 1, 0)
    assert seen.running_by_class == {"background": 3} and seen.queued_by_class == {"waiting": 1}
    assert seen.tenants == {"red": {"running": 3, "queued": 0, "abandoned": 0}, "blue": {"running": 0, "queued": 1, "abandoned": 0}}
    assert seen.capabilities == {"notes": {"running": 3, "abandoned": 0}}
    assert METRICS.get("venus_harness_running") == 3 and METRICS.get("venus_harness_queued") == 1
    await world.close()
    seen = world.scheduler.snapshot()
    assert (seen.sessions, seen.running, seen.queued, seen.tenants, seen.capabilities) == (0, 0, 0, {}, {})


async def test_wrong_jobs_and_limits_are_refused_with_the_fields_name():
    world = SchedulerWorld()
    lane = world.lane("a")
    with pytest.raises(ValueError, match="priority 'urgent'; allowed: safety, waiting, normal, background"):
        world.job(lane, "x", priority="urgent")
    with pytest.raises(ValueError, match="max_running 0"):
        world.job(lane, "x", capability="map", max_running=0)
    with pytest.raises(ValueError, match="reserved_for_waiting is 64; allowed: 0 to 63"):
        SchedulerWorld(reserved_for_waiting=64)
    with pytest.raises(ValueError, match="max_running"):
        world.lane("b", max_running=0)
    world.job(lane, "x")
    with pytest.raises(ValueError, match="task x"):
        world.job(lane, "x")
    await world.close()
    with pytest.raises(Closed):
        lane.submit(Job("y", print, print, 1.0, 0.0))
