"""One job's life: deadlines, hung runs, retries, refusals by the runner, cancellation, corrections, closing."""
import asyncio
import gc
import weakref

import pytest
from scheduler_world import DONE, SchedulerWorld

from harness.schedule.scheduler import Job, RetryPolicy
from harness.task import SkillOutcome
from venus_edge.errors import BusyError
from venus_edge.metrics import METRICS

AWAY = SkillOutcome(ok=False, outcome="unavailable", code="unavailable")
NOT_STARTED = SkillOutcome(ok=False, outcome="internal", code="internal", started=False)


def ends(world, task):
    return [(round(at, 6), how) for at, how, _ in world.settled[task]]


# -- deadlines

async def test_a_queued_job_expires_though_nobody_polls():
    """At `queue_ttl_s`, and at `deadline_at` where that is sooner; it never begins, and its place in the queue is free again."""
    world = SchedulerWorld()
    lane = world.lane("a", max_running=1, max_queued=2, queue_ttl_s=5)
    world.job(lane, "running", 30)
    world.job(lane, "patient")
    world.job(lane, "hasty", deadline_at=2.0)
    assert lane.full
    await world.clock.advance(6)
    assert ends(world, "patient") == [(5.0, "expired")] and ends(world, "hasty") == [(2.0, "expired")]
    assert world.order == ["running"] and not lane.full
    await world.close()


async def test_the_run_limit_counts_from_the_start_and_deadline_at_from_nothing():
    """A job that waited 3 s has all of its 2 s; one with a deadline loses what it waited; the place is free at once."""
    world = SchedulerWorld()
    lane = world.lane("a", max_running=1)
    for task, fields in (("first", {"limit_s": 3}), ("second", {"limit_s": 2}), ("third", {"limit_s": 2, "deadline_at": 5.5})):
        world.job(lane, task, 30, **fields)
    world.job(lane, "last", 1)
    await world.clock.advance(10)
    assert [ends(world, t) for t in ("first", "second", "third", "last")] == [
        [(3.0, "deadline")], [(5.0, "deadline")], [(5.5, "deadline")], [(6.5, "done")]]
    await world.close()


async def test_a_deadline_passed_before_a_place_came_is_expired_and_never_begins():
    world = SchedulerWorld()
    lane = world.lane("a")
    world.job(lane, "late", deadline_at=0.0)
    await world.clock.advance(1)
    assert world.how("late") == "expired" and world.order == []
    await world.close()


# -- hung runs

async def test_eight_hung_tasks_of_a_session_do_not_touch_anothers():
    """B's task starts at once beside A's eight; A's own next one gets a place when the hung ones are abandoned."""
    world = SchedulerWorld()
    a, b = world.lane("a"), world.lane("b")
    for n in range(8):
        world.job(a, f"hung{n}", hangs=True, limit_s=3)
    world.job(a, "own", 1)
    world.job(b, "b", 1)
    await world.clock.advance(10)
    assert (0.0, "b") in world.began and ends(world, "b") == [(1.0, "done")]
    assert ends(world, "hung0") == [(3.0, "deadline")] and ends(world, "own") == [(5.0, "done")]
    assert (world.scheduler.snapshot().abandoned, a.running) == (8, 0)
    world.release.set()
    await world.clock.advance(1)
    assert world.scheduler.snapshot().abandoned == 0 and sorted(world.late) == [f"hung{n}" for n in range(8)]
    await world.close()


async def test_a_hundred_hung_sessions_of_one_tenant_leave_other_tenants_alone():
    """They fill the tenant's 32 places; another tenant's session starts at once."""
    world = SchedulerWorld()
    for n in range(100):
        lane = world.lane(f"hung{n}", "one")
        for k in range(8):
            world.job(lane, f"{n}.{k}", hangs=True, limit_s=3)
    world.job(world.lane("b", "two"), "b")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert "b" in world.live and world.peak["one"] == 32 and world.peak["process"] == 33
    await world.close()


@pytest.mark.parametrize("tenants, full", [(1, 28), (9, 56)])
async def test_greedy_sessions_never_take_the_places_kept_for_those_that_run_nothing(tenants, full):
    """Sessions of eight hung tasks each stop short of the reserve, the tenant's and the process's; a newcomer starts at once."""
    world = SchedulerWorld()
    for n in range((full + 7) // 8):
        lane = world.lane(f"hung{n}", f"t{n % tenants}")
        for k in range(12):
            world.job(lane, f"{n}.{k}", hangs=True, limit_s=3)
    await asyncio.sleep(0)
    assert world.scheduler.snapshot().running == full
    world.job(world.lane("b", "t0"), "b")
    await asyncio.sleep(0)
    assert "b" in world.order
    await world.close()


async def test_where_every_place_is_hung_a_newcomer_is_next():
    """A hundred sessions of a hundred tenants, eight hung tasks each: a newcomer gets a place when the first ones are abandoned, at most
    limit_s and cancel_wait_s later, ahead of the others' second tasks."""
    world = SchedulerWorld()
    for n in range(100):
        lane = world.lane(f"hung{n}", f"t{n}")
        for k in range(8):
            world.job(lane, f"{n}.{k}", hangs=True, limit_s=3, capability="deaf")
    world.job(world.lane("b", "b"), "b", 1, capability="good")
    await world.clock.advance(6)
    assert dict((task, at) for at, task in world.began)["b"] == 4.0 and ends(world, "b") == [(5.0, "done")]
    await world.close()


@pytest.mark.parametrize("limit, sessions, tenants, capabilities", [
    ("session.max_abandoned", 1, 1, 12), ("tenant.max_abandoned", 8, 1, 40), ("capability.max_abandoned", 8, 8, 1),
    ("process.max_abandoned", 12, 12, 4)])
async def test_runs_that_live_on_have_a_bound(limit, sessions, tenants, capabilities):
    """Beyond it jobs are refused as busy, by the narrowest limit that is reached; what was queued fails as busy, nothing is lost;
    a capability (or a session, a tenant) without such runs works on; when they end, all is well again."""
    world = SchedulerWorld()
    lanes = [world.lane(f"s{n}", f"t{n % tenants}", max_queued=100) for n in range(sessions)]
    for k in range(20):
        for n, lane in enumerate(lanes):
            if not lane.refusal(f"c{(n + k) % capabilities}"):
                world.job(lane, f"{n}.{k}", hangs=True, limit_s=1, capability=f"c{(n + k) % capabilities}")
    await world.clock.advance(60)
    alive = world.scheduler.snapshot().abandoned
    assert alive <= {"session": 12 + 8, "tenant": 24 + 32, "capability": 32 + 64, "process": 64 + 64}[limit.split(".")[0]]
    assert lanes[0].refusal("c0") == limit
    with pytest.raises(BusyError, match=limit):
        world.job(lanes[0], "refused", capability="c0")
    assert all(len(e) == 1 for e in world.settled.values()) and len(world.settled) == 20 * sessions
    assert {how for e in world.settled.values() for _, how, _ in e} >= {"deadline", "error"}
    world.job(world.lane("clean", "clean"), "clean", capability="clean")
    world.release.set()
    await world.clock.advance(2)
    assert world.how("clean") == "done" and lanes[0].refusal("c0") == ""
    await world.close()


# -- cancellation

async def test_stopping_is_acknowledged_at_once_and_the_end_follows():
    """A run that obeys is cancelled in the same instant of the clock; one that does not is unresponsive after cancel_wait_s and told
    of when it returns; one that never began just goes; a second stop does nothing."""
    world = SchedulerWorld()
    lane = world.lane("a", max_running=2)
    world.job(lane, "good", 30)
    world.job(lane, "deaf", hangs=True)
    world.job(lane, "queued")
    await world.clock.advance(1)
    assert [lane.stop(t) for t in ("good", "deaf", "queued", "unknown")] == [True, True, True, False]
    assert world.settled == {} and lane.stop("deaf") is False and lane.queued == 0
    await world.clock.advance(0.5)
    assert ends(world, "good") == [(1.0, "cancelled")] and world.how("deaf") is None
    await world.clock.advance(1)
    assert ends(world, "deaf") == [(2.0, "unresponsive")] and world.how("queued") is None and world.late == []
    world.release.set()
    await world.clock.advance(31)
    assert world.late == ["deaf"] and len(world.settled["deaf"]) == 1
    await world.close()


@pytest.mark.parametrize("hangs, starts", [(False, 1.0), (True, 2.0)])
async def test_a_correction_runs_only_when_the_corrected_run_has_ended(hangs, starts):
    """It begins at once, but its code runs when the other has ended, at most cancel_wait_s after it was stopped."""
    world = SchedulerWorld()
    lane = world.lane("a")
    world.job(lane, "old", 30, hangs=hangs)
    await world.clock.advance(1)
    lane.stop("old")
    ran = []

    async def run():
        ran.append((world.clock.now(), "old" in world.live))
        return DONE

    lane.submit(Job("new", lambda: None, run, 10, world.clock.now(), after="old"))
    await world.clock.advance(3)
    assert ran == [(starts, hangs)] and world.how("new") == "done"
    await world.close()


@pytest.mark.parametrize("hangs", [False, True])
async def test_closing_is_bounded_and_keeps_nothing_of_the_session(hangs):
    """Queued, running, pausing and deaf ones: each that began is settled once, within cancel_wait_s; then nothing refers to the
    session any more, also while a deaf run lives on."""
    world = SchedulerWorld()

    class Owner:
        def settle(self, *end):
            world._settle(*end)

        def late(self, task):
            world.late.append(task)

    owner = Owner()
    lane = world.scheduler.lane("a", "t", owner.settle, owner.late, max_running=2)
    kept = weakref.ref(owner)
    del owner
    world.job(lane, "pausing", 0, outcomes=[AWAY], idempotent=True, retry=RetryPolicy(base_s=5))
    await world.clock.advance(1)
    world.job(lane, "running", 30, hangs=hangs)
    world.job(lane, "other", 30)
    world.job(lane, "queued", 30)
    await world.clock.advance(0.5)
    closing = [asyncio.ensure_future(lane.close()) for _ in range(2)]
    await world.clock.advance(0.9 if hangs else 0)
    assert closing[0].done() is not hangs
    await world.clock.advance(0.2)
    assert all(c.done() for c in closing)
    assert [world.how(t) for t in ("running", "other", "queued")] == ["unresponsive" if hangs else "cancelled", "cancelled", None]
    assert world.how("pausing") == "cancelled"
    gc.collect()
    assert kept() is None
    world.release.set()
    await world.clock.advance(31)
    assert world.late == [] and world.scheduler.snapshot().tenants == {}


async def test_a_sessions_faulty_callbacks_cost_no_place():
    """begin that raises: the job fails and its code does not run; settle that raises: reported to the loop, and the next job runs."""
    world = SchedulerWorld(max_running=1)
    reported, ran = [], []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(str(context["exception"])))

    def settle(task, outcome, how):
        world._settle(task, outcome, how)
        raise ValueError(f"settle {task}")

    async def run():
        ran.append(1)
        return DONE

    lane = world.scheduler.lane("a", "t", settle, world.late.append)
    lane.submit(Job("bad", lambda: 1 / 0, run, 1, 0.0))
    lane.submit(Job("good", lambda: None, run, 1, 0.0))
    await world.clock.advance(1)
    assert [world.how(t) for t in ("bad", "good")] == ["error", "done"] and len(ran) == 1
    assert reported == ["division by zero", "settle bad", "settle good"]
    asyncio.get_running_loop().set_exception_handler(None)
    await world.close()


async def test_a_settlement_may_submit_and_stop():
    """From within `settle`: the session's next job queues behind what waited before it, and another may be stopped."""
    world = SchedulerWorld(max_running=1)

    def settle(task, outcome, how):
        world._settle(task, outcome, how)
        if task == "first":
            world.job(lane, "from settle")
            lane.stop("stopped")

    lane = world.scheduler.lane("a", "t", settle, world.late.append)
    for task in ("first", "second", "stopped"):
        world.job(lane, task)
    await world.clock.advance(5)
    assert world.order == ["first", "second", "from settle"] and world.how("from settle") == "done"
    await world.close()


# -- retries

@pytest.mark.parametrize("outcomes, idempotent, attempts, took_s", [
    ([AWAY, AWAY], True, 3, 0.2 + 0.4 + 3),
    ([AWAY] * 9, True, 4, 0.2 + 0.4 + 0.5 + 4),
    ([AWAY], False, 1, 1),
    ([NOT_STARTED], False, 2, 0.2 + 2),
    ([SkillOutcome(ok=False, code="not_found")], True, 1, 1),
    ([ConnectionError()], True, 1, 0),
    ([DONE], True, 1, 1),
])
async def test_a_job_is_repeated_only_where_that_does_no_harm_and_may_help(outcomes, idempotent, attempts, took_s):
    """Idempotent or not started, a failure that may pass, at most `max` times, after pauses that double up to a cap."""
    world = SchedulerWorld()
    world.job(world.lane("a"), "x", outcomes=outcomes, idempotent=idempotent, retry=RetryPolicy(3, 0.2, 0.5))
    await world.clock.advance(30)
    assert world.attempts["x"] == attempts and len(world.order) == 1
    assert ends(world, "x") == [(round(took_s, 6), "error" if isinstance(outcomes[0], Exception) else "done")]
    await world.close()


async def test_an_exception_is_repeated_where_the_policy_says_so():
    world = SchedulerWorld()
    policy = RetryPolicy(2, 0.1, may_retry=lambda outcome: outcome.code == "internal")
    world.job(world.lane("a"), "x", outcomes=[KeyError(), KeyError()], idempotent=True, retry=policy)
    await world.clock.advance(5)
    assert ends(world, "x") == [(1.3, "done")]
    await world.close()


async def test_retries_never_exceed_the_deadline():
    """A pause that would pass it is not begun, and the outcome at hand counts; a wait for a place that does ends with it."""
    world = SchedulerWorld(max_running=1)
    lane = world.lane("a")
    policy = RetryPolicy(9, 1.0)
    world.job(lane, "x", 1, outcomes=[AWAY] * 9, idempotent=True, limit_s=3.5, retry=policy)
    await world.clock.advance(4)
    assert ends(world, "x") == [(3.0, "done")] and world.settled["x"][0][2] is AWAY and world.attempts["x"] == 2
    world.job(lane, "y", 1, outcomes=[AWAY] * 9, idempotent=True, limit_s=3.5, retry=policy)
    world.job(lane, "long", 30)
    await world.clock.advance(10)
    assert ends(world, "y") == [(7.5, "deadline")] and world.attempts["y"] == 1
    await world.close()


async def test_what_takes_too_long_to_be_done_again_is_not_begun_again():
    """4 s of 6 went into the attempt that failed: its outcome stands at once, instead of a timeout later."""
    world = SchedulerWorld()
    world.job(world.lane("a"), "x", 4, outcomes=[AWAY] * 2, idempotent=True, limit_s=6, retry=RetryPolicy(1, 0.2))
    await world.clock.advance(10)
    assert ends(world, "x") == [(4.0, "done")] and world.settled["x"][0][2] is AWAY and world.attempts["x"] == 1
    await world.close()


async def test_a_pause_gives_the_place_to_others_and_can_be_cancelled():
    """While one pauses another runs; stopping it settles it as cancelled, once, and it does not run again."""
    world = SchedulerWorld(max_running=1)
    lane = world.lane("a")
    world.job(lane, "x", 0, outcomes=[AWAY], idempotent=True, retry=RetryPolicy(1, 5.0))
    await world.clock.advance(1)
    world.job(lane, "y", 1)
    await world.clock.advance(1)
    assert world.how("y") == "done" and world.scheduler.snapshot().backoff == 1
    assert lane.stop("x") and world.how("x") is None
    await world.clock.advance(10)
    assert ends(world, "x") == [(2.0, "cancelled")] and world.attempts["x"] == 1
    await world.close()


# -- refused by the runner

async def test_a_run_that_the_runner_refuses_is_tried_again_and_never_lost():
    """A runner of two places under a scheduler of eight: every job is done, in order, each begun once, and no limit_s is spent
    on the wait; it goes on the moment another run ends."""
    world = SchedulerWorld()
    lane, running = world.lane("a"), []

    def job(task):
        async def run():
            if len(running) >= 2:
                raise BusyError("2 calls are running")
            running.append(task)
            try:
                await world.clock.sleep(1)
            finally:
                running.remove(task)
            return DONE
        lane.submit(Job(task, lambda: world.began.append((0, task)), run, 1.5, world.clock.now()))

    for n in range(12):
        job(str(n))
    await world.clock.advance(7)
    assert [ends(world, str(n)) for n in range(12)] == [[(1.0 + n // 2, "done")] for n in range(12)]
    assert world.order == [str(n) for n in range(12)]
    await world.close()


async def test_a_refusal_has_a_bound_and_can_be_stopped():
    """After busy_wait_s it fails as `busy`; a deadline counts; stopped, it is cancelled; its place is free afterwards."""
    world = SchedulerWorld(busy_wait_s=3)
    lane = world.lane("a", max_running=3)
    refusals = [BusyError("full")] * 1000
    world.job(lane, "never", outcomes=refusals)
    world.job(lane, "short", outcomes=refusals, deadline_at=2.0)
    world.job(lane, "stopped", outcomes=refusals)
    await world.clock.advance(1)
    assert lane.stop("stopped") and lane.running == 3
    await world.clock.advance(5)
    assert [ends(world, t) for t in ("never", "short", "stopped")] == [[(3.0, "error")], [(2.0, "deadline")], [(1.0, "cancelled")]]
    assert world.settled["never"][0][2].code == "busy" and world.attempts["never"] < 20 and lane.running == 0
    assert METRICS.get("venus_harness_busy_retries_total") >= world.attempts["never"]
    await world.close()
