"""The scheduler under random sessions: whatever is submitted, stopped, refused, hung or closed, its promises hold."""
import asyncio
import random
from collections import Counter

import pytest
from scheduler_world import DONE, SchedulerWorld

from harness.schedule.fair_queue import FairQueue
from harness.schedule.job import State
from harness.schedule.scheduler import RetryPolicy
from harness.task import SkillOutcome
from venus_edge.errors import BusyError

LIMITS = dict(max_running=6, max_running_per_tenant=4, reserved_for_waiting=1, reserved_per_tenant=1, max_queued=12, ageing_s=2.0,
              max_abandoned=5, max_abandoned_per_capability=4, max_abandoned_per_tenant=3, max_abandoned_per_session=2, busy_wait_s=2.0)
LANE = dict(max_running=2, max_queued=4, queue_ttl_s=4.0, cancel_wait_s=0.5)
CAPABILITIES = {"a": None, "b": 1, "c": 2}
FAILURES = (SkillOutcome(ok=False, code="unavailable"), SkillOutcome(ok=False, code="internal", started=False),
            SkillOutcome(ok=False, code="not_found"), BusyError("full"), BusyError("full"), KeyError("x"), DONE)


def check(world):
    """Counts are what they count, no limit is passed, and nothing waits that could run."""
    places = world.scheduler._places
    runs = [run for lane in world.scheduler._lanes for run in (lane.runs or {}).values()]
    holding = [run for run in runs if run.holds]
    assert places.running == len(holding) <= LIMITS["max_running"]
    assert places.queued == sum(run.state in (State.QUEUED, State.BACKOFF) for run in runs)
    assert places.queued <= LIMITS["max_queued"] + LIMITS["max_running"]
    for lane, n in Counter(run.lane for run in holding).items():
        assert lane.running == n <= LANE["max_running"]
    for tenant, n in Counter(run.lane.tenant for run in holding).items():
        assert tenant.running == n <= LIMITS["max_running_per_tenant"]
    for name, n in Counter(run.job.capability for run in holding).items():
        assert places.pools[name].running == n <= (CAPABILITIES[name] or n)
    for run in runs:
        assert run.state is not State.QUEUED or not startable(world, run), run.job.task_id


def startable(world, run, idle_only=False):
    places, lane = world.scheduler._places, run.lane
    idle = lane.running == 0
    return (places.room(idle=idle) and lane.tenant.room("idle" if idle else "busy") and lane.running < LANE["max_running"]
            and not places.pools[run.job.capability].full and (idle or not idle_only))


def compare_with_a_plain_search(world):
    """Let every `take` be checked against the rule read aloud: of all jobs that may start, the lowest (level, tenant's and lane's
    last turn); of the lane's, the one that came first."""
    queue, take = world.scheduler._queue, world.scheduler._queue.take

    def checked(now, *, idle_only):
        queue._age(now)
        waiting = [run for lane in world.scheduler._lanes for flow in (lane.flows or {}).values() for run in flow]
        keys = [(run.level, run.lane.tenant.tag, run.lane.tag) for run in waiting if startable(world, run, idle_only)]
        run = take(now, idle_only=idle_only)
        assert (None if run is None else (run.level, run.lane.tenant.tag, run.lane.tag)) == min(keys, default=None)
        return run

    queue.take = checked


async def session(seed):
    rng, world = random.Random(seed), SchedulerWorld(**LIMITS)
    compare_with_a_plain_search(world)
    lanes, happened, gone, submitted, closing = [], Counter(), set(), {}, []
    for step in range(250):
        what = rng.random()
        lanes = [lane for lane in lanes if not lane.closed]
        if not lanes or (len(lanes) < 6 and what < 0.05):
            lanes.append(world.lane(f"s{step}", rng.choice("xyz"), **LANE))
        lane = rng.choice(lanes)
        mine = [task for task, owner in submitted.items() if owner is lane]
        if what < 0.55:
            task, capability, deaf = f"{seed}.{step}", rng.choice("abc"), rng.random() < 0.06
            try:
                world.job(lane, task, rng.choice((0, 0.3, 1, 3)), hangs=deaf, limit_s=rng.choice((0.5, 2, 5)), stages=rng.choice((1, 3)),
                          outcomes=rng.choices(FAILURES, k=rng.choice((0, 0, 1, 3))), capability=capability,
                          max_running=CAPABILITIES[capability], turn=rng.choice((None, step // 10)),
                          priority=rng.choice(("safety", "waiting", "normal", "normal", "background")), started=rng.random() < 0.1,
                          idempotent=rng.random() < 0.5, retry=rng.choice((None, RetryPolicy(2, 0.2))),
                          deadline_at=rng.choice((None, None, world.clock.now() + rng.choice((0, 0.5, 3)))),
                          after=rng.choice(mine) if mine and rng.random() < 0.3 else "")
                submitted[task] = lane
                happened["submitted"] += 1
                happened["deaf"] += deaf
            except BusyError as error:
                happened[error.data["limit"]] += 1
        elif what < 0.68 and mine:
            task = rng.choice(mine)
            begun = task in world.order
            if lane.stop(task):
                happened["stopped " + ("begun" if begun else "queued")] += 1
                if not begun:
                    gone.add(task)
        elif what < 0.72:
            lane.user_turn(step // 10 + 1)
        elif what < 0.74:
            happened["closed"] += 1
            closing.append(asyncio.ensure_future(lane.close()))
            await asyncio.sleep(0)
            gone.update(task for task in mine if task not in world.order and task not in world.settled)
        elif what < 0.76:
            world.release.set()
            await world.clock.advance(0.1)
            world.release = asyncio.Event()
        else:
            await world.clock.advance(rng.choice((0, 0.1, 0.3, 1)))
        check(world)
    await world.close()
    assert all(done.done() for done in closing)
    for task in submitted:
        how = world.how(task)
        assert how is not None or task in gone or (submitted[task].closed and task not in world.order), (seed, task)
        assert task not in gone or how is None or how == "expired", (seed, task, how)
        happened[how] += 1
    return world, happened


@pytest.mark.parametrize("first", range(0, 60, 20))
async def test_random_sessions_keep_every_promise(first):
    """One settlement for each job that began; none lost; limits kept and no place idle at every step; nothing left at the end."""
    total = Counter()
    for seed in range(first, first + 20):
        world, happened = await session(seed)
        total += happened
        scheduler = world.scheduler
        places, queue = scheduler._places, scheduler._queue
        assert (places.running, places.queued, places.abandoned, places.tenants, places.pools) == (0, 0, 0, {}, {}), seed
        assert not scheduler._refused and not len(scheduler._timers) and not any(queue._lines) and not any(queue._ages.values()), seed
        assert not world.live and asyncio.all_tasks() == {asyncio.current_task()}, seed
    assert all(total[kind] for kind in ("done", "error", "deadline", "cancelled", "unresponsive", "expired", "stopped queued", "closed",
                                        "session.max_queued", "process.max_queued", "session.max_abandoned")), total


@pytest.mark.parametrize("seed", range(3))
async def test_busy_sessions_are_served_alike(seed):
    """Four tenants of one to five sessions, jobs of random length, always something waiting: the tenants' counts differ by at most
    two (the first places went to who came first), and those of a tenant's sessions by one."""
    rng, world = random.Random(seed), SchedulerWorld(max_running=3, reserved_for_waiting=0, max_running_per_tenant=3, reserved_per_tenant=0)
    lanes = [world.lane(f"{t}{n}", t, max_queued=200, queue_ttl_s=1e6) for t, count in zip("wxyz", (1, 2, 3, 5)) for n in range(count)]
    for n in range(150):
        for lane in lanes:
            world.job(lane, f"{lane.session_id}.{n}", rng.choice((0.2, 0.4, 0.6)), priority="background")
    await world.clock.advance(40)
    served = Counter(task.split(".")[0] for task in world.order)
    tenants = Counter()
    for name, count in served.items():
        tenants[name[0]] += count
    assert len(tenants) == 4 and max(tenants.values()) - min(tenants.values()) <= 2 and max(served.values()) < 150, tenants
    for tenant in "wxyz":
        counts = [served[lane.session_id] for lane in lanes if lane.tenant.name == tenant]
        assert max(counts) - min(counts) <= 1, served
    await world.close()


@pytest.mark.parametrize("fault", ["lost place", "no turns"])
async def test_the_checks_notice_a_fault(fault, monkeypatch):
    """With a guard switched off the random sessions, or the fairness test, must fail: a check that can't fail is a defect."""
    if fault == "lost place":
        monkeypatch.setattr(FairQueue, "freed", lambda self, lane: None)
        with pytest.raises(AssertionError):
            for seed in range(20):
                await session(seed)
    else:
        monkeypatch.setattr(FairQueue, "served", lambda self, lane: None)
        with pytest.raises(AssertionError):
            await test_busy_sessions_are_served_alike(0)
