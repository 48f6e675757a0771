"""Runs the skill calls of all sessions of a process: limits, fair order, deadlines, retries, and cancellation with a bounded wait.

    scheduler = Scheduler(clock, SchedulerLimits())             # one in the process
    lane = scheduler.lane(session_id, tenant, settle, late)     # one for each session
    lane.submit(Job(task_id, begin, run, limit_s, clock.now(), capability="poi.find", turn=3))

One run's exception, hang or refusal to be cancelled never touches another's: a run that does not end within `cancel_wait_s` of its
cancellation loses its place to the next, and there is a limit to how many such runs may live on. Nothing polls: queue times, deadlines
and pauses are timers on the injected clock.
"""
import asyncio
import logging
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from harness.errors import Closed
from harness.schedule.fair_queue import FairQueue
from harness.schedule.job import Class, Job, RetryPolicy, Run, State, failed
from harness.schedule.lane import Lane, Late, Settle
from harness.schedule.limits import LaneLimits, SchedulerLimits
from harness.schedule.places import Places
from harness.task import SkillOutcome
from harness.schedule.timers import Timers
from venus_edge.clock import Clock
from venus_edge.errors import BusyError
from venus_edge.metrics import METRICS

__all__ = ["Job", "Lane", "RetryPolicy", "Scheduler", "Snapshot", "failed"]
log = logging.getLogger("harness.schedule.scheduler")
_lane_limits = lru_cache(maxsize=64)(LaneLimits)
"""Sessions with the same limits share one object."""


@dataclass(frozen=True)
class Snapshot:
    """Counts at one instant. By class: safety, waiting, normal, background; by tenant: running, queued, abandoned."""

    sessions: int
    running: int
    queued: int
    """Pauses before another attempt (`backoff`) included."""
    backoff: int
    abandoned: int
    running_by_class: dict[str, int]
    queued_by_class: dict[str, int]
    tenants: dict[str, dict[str, int]]
    capabilities: dict[str, dict[str, int]]
    """Those with jobs: running, abandoned."""


class Scheduler:
    """A lane's `settle(task_id, outcome, how)` is called exactly once for each job that began, and for one that expired.

    `how`: done (with the outcome) | error (the run raised; a failed outcome with its code) | deadline | cancelled | unresponsive
    (cancelled, and still going) | expired (it waited too long for its first start). `late(task_id)`: a run returned after that.
    """

    def __init__(self, clock: Clock, limits: SchedulerLimits | None = None):
        self.limits = limits or SchedulerLimits()
        self._clock = clock
        self._timers = Timers(clock)
        self._lanes: set[Lane] = set()
        self._places = Places(self.limits)
        self._queue = FairQueue(self.limits.ageing_s, self._places.pools)
        self._refused: dict[Run, None] = {}
        self._dispatching, self._aged_told = False, 0

    def lane(self, session_id: str, tenant: str, settle: Settle, late: Late, **limits: float) -> Lane:
        """A session's lane. `tenant`: whose places it uses; "" is one like any other. `limits`: fields of LaneLimits."""
        lane = Lane(self, session_id, self._places.tenant(tenant), settle, late, _lane_limits(**limits))
        self._lanes.add(lane)
        return lane

    async def close(self) -> None:
        """Close every lane."""
        await asyncio.gather(*(lane.close() for lane in list(self._lanes)))

    def snapshot(self) -> Snapshot:
        places, running, queued, backoff = self._places, Counter(), Counter(), 0
        for lane in self._lanes:
            for run in (lane.runs or {}).values():
                name = run.rank.name.lower()
                running[name] += run.holds
                queued[name] += run.state in (State.QUEUED, State.BACKOFF)
                backoff += run.state is State.BACKOFF
        return Snapshot(
            len(self._lanes), places.running, places.queued, backoff, places.abandoned, dict(+running), dict(+queued),
            {name: {"running": t.running, "queued": t.queued, "abandoned": t.abandoned} for name, t in places.tenants.items()},
            {name: {"running": p.running, "abandoned": p.abandoned} for name, p in places.pools.items() if name})

    # -- what lanes ask for

    def refusal(self, lane: Lane, capability: str, max_running: int | None) -> str:
        """See Lane.refusal."""
        return self._places.refusal(lane, capability, max_running)[0]

    def submit(self, lane: Lane, job: Job) -> None:
        """See Lane.submit."""
        if lane.closed:
            raise Closed(f"the lane of session {lane.session_id} is closed")
        if lane.runs and job.task_id in lane.runs:
            raise ValueError(f"task {job.task_id} has been submitted already")
        limit, value = self._places.refusal(lane, job.capability, job.max_running)
        if limit:
            METRICS.add("venus_harness_refused_total")
            METRICS.add(f"venus_harness_refused_{limit.replace('.', '_')}_total")
            raise BusyError(f"{limit} {value} reached", limit=limit, value=value)
        if job.turn is not None:
            lane.user_turn(job.turn)
        run = Run(job, lane)
        if run.rank is Class.NORMAL and job.turn is not None and job.turn >= lane.turn:
            run.rank = Class.WAITING
        if lane.runs is None:
            lane.runs = {}
        lane.runs[job.task_id] = run
        self._places.enter(job, lane.tenant)
        self._places.queue(run, 1)
        self._queue.put(run, self._clock.now())
        self._dispatch()
        if run.state is State.QUEUED:
            METRICS.peak("venus_harness_queue_peak", lane.queued)
            METRICS.peak("venus_harness_process_queue_peak", self._places.queued)
            until = job.queued_at + lane.limits.queue_ttl_s
            run.timer = self._timers.at(until if job.deadline_at is None else min(until, job.deadline_at), self._expire, run)

    def stop(self, lane: Lane, task_id: str) -> bool:
        """See Lane.stop."""
        run = (lane.runs or {}).get(task_id)
        if run is None or run.settled or run.state in (State.STOPPED, State.STOPPING):
            return False
        run.stopped_at = self._clock.now()
        if run.state is State.RUNNING:
            self._cancel(run, State.STOPPING)
        elif run.state is State.QUEUED and not run.begun:
            self._queue.remove(run)
            self._places.queue(run, -1)
            self._forget(run)
        else:
            self._rest(run)
            run.move(State.STOPPED)
            asyncio.get_running_loop().call_soon(self._finish, run, None, "cancelled")
        return True

    def rerank(self, run: Run, rank: Class) -> None:
        """Change a job's class, waiting or not."""
        if run.state is State.QUEUED:
            self._queue.rerank(run, rank)
        else:
            run.rank = rank

    def closed(self, lane: Lane) -> None:
        """A lane has closed."""
        self._lanes.discard(lane)
        self._places.leave(lane.tenant)

    # -- starting

    def _dispatch(self) -> None:
        """Start all that may start. What is told on the way may submit and stop: that joins the round that is going on."""
        if self._dispatching:
            return
        self._dispatching = True
        try:
            while self._places.room(idle=True):
                run = self._queue.take(self._clock.now(), idle_only=not self._places.room(idle=False))
                if run is None:
                    break
                self._places.queue(run, -1)
                self._start(run)
        finally:
            self._dispatching = False
        if self._queue.aged != self._aged_told:
            METRICS.add("venus_harness_aged_total", self._queue.aged - self._aged_told)
            self._aged_told = self._queue.aged

    def _start(self, run: Run) -> None:
        if run.job.deadline_at is not None and run.job.deadline_at <= self._clock.now():
            self._finish(run, None, "deadline" if run.begun else "expired")
        elif self._places.overrun(run.lane, run.job.capability)[0]:  # since it was queued
            self._begin(run)
            self._finish(run, failed("busy"), "error")
        else:
            self._places.hold(run, 1)
            self._queue.served(run.lane)
            self._attempt(run)

    def _attempt(self, run: Run) -> None:
        run.unset()
        self._refused.pop(run, None)
        now, job = self._clock.now(), run.job
        if run.deadline is None:
            run.deadline = now + job.limit_s
            if job.deadline_at is not None:
                run.deadline = min(run.deadline, job.deadline_at)
        run.move(State.RUNNING)
        run.attempted_at = now
        run.timer = self._timers.at(run.deadline, self._overdue, run)
        before = run.lane.runs.get(job.after) if job.after else None
        run.work = asyncio.get_running_loop().create_task(self._work(run, before))
        run.work.add_done_callback(lambda work: self._done(run, work))
        self._begin(run)

    def _begin(self, run: Run) -> None:
        if run.begun:
            return
        run.begun = True
        try:
            run.job.begin()
        except Exception as err:
            self._complain("begin", err)
            if run.state is State.RUNNING:
                self._cancel(run, State.ENDING)
                self._tell(run, failed("internal"), "error")

    async def _work(self, run: Run, before: Run | None) -> SkillOutcome:
        if before is not None and before.work is not None and before.state is not State.ABANDONED:
            began = self._clock.now() if before.stopped_at is None else before.stopped_at
            over = asyncio.get_running_loop().create_future()
            timer = self._timers.at(began + run.lane.limits.cancel_wait_s, lambda: over.done() or over.set_result(None))
            try:
                await asyncio.wait({before.work, over}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                timer.cancel()
                over.cancel()
        return await run.job.run()

    # -- ending

    def _expire(self, run: Run) -> None:
        self._queue.remove(run)
        self._places.queue(run, -1)
        self._finish(run, None, "expired")

    def _overdue(self, run: Run) -> None:
        """The deadline of a job that began."""
        if run.state is State.RUNNING:
            self._cancel(run, State.ENDING)
            self._tell(run, None, "deadline")
            return
        busy = run.state is State.REFUSED and (run.job.deadline_at is None or self._clock.now() < run.job.deadline_at)
        self._rest(run)
        self._finish(run, failed("busy") if busy else None, "error" if busy else "deadline")

    def _cancel(self, run: Run, state: State) -> None:
        run.unset()
        run.move(state)
        run.work.cancel()
        run.timer = self._timers.at(self._clock.now() + run.lane.limits.cancel_wait_s, self._abandon, run)

    def _abandon(self, run: Run) -> None:
        log.error("task %s ignores its cancellation", run.job.task_id)
        METRICS.add("venus_harness_unresponsive_total")
        run.move(State.ABANDONED)
        self._places.abandon(run, 1)
        self._tell(run, None, "unresponsive")
        self._free(run)
        run.lane.rested()
        self._dispatch()

    def _done(self, run: Run, work: asyncio.Task) -> None:
        run.work = None
        if work.cancelled():
            self._returned(run, None, "cancelled")
            return
        error = work.exception()
        if error is None:
            self._returned(run, work.result(), "done")
        elif isinstance(error, BusyError) and run.state is State.RUNNING:
            self._refuse(run)
        elif isinstance(error, BusyError):  # refused after it was cancelled: nothing of it ran
            self._returned(run, None, "cancelled")
        else:
            log.error("task %s failed: %s", run.job.task_id, type(error).__name__)  # its message may hold words
            self._returned(run, failed(getattr(error, "code", "internal")), "error")

    def _returned(self, run: Run, outcome: SkillOutcome | None, how: str) -> None:
        if run.settled and how == "done":
            METRICS.add("venus_harness_late_total")
            self._call("late", run.lane.late, run.job.task_id)
        if run.state is State.ABANDONED:
            self._places.abandon(run, -1)
            self._forget(run)
            return
        pause = self._pause(run, outcome) if run.state is State.RUNNING and outcome is not None else None
        if pause is None:
            self._finish(run, outcome, how)
            return
        METRICS.add("venus_harness_retries_total")
        run.retries += 1
        run.refusals, run.refused_since = 0, None
        run.unset()
        run.move(State.BACKOFF)
        self._free(run)
        self._places.queue(run, 1)
        run.timer = self._timers.at(run.deadline, self._overdue, run)
        run.wake = self._timers.at(self._clock.now() + pause, self._requeue, run)
        self._dispatch()

    def _finish(self, run: Run, outcome: SkillOutcome | None, how: str) -> None:
        """Settle it and forget it; its place goes to the next once that has been told."""
        self._tell(run, outcome, how)
        self._free(run)
        self._forget(run)
        self._dispatch()

    def _tell(self, run: Run, outcome: SkillOutcome | None, how: str) -> None:
        if not run.settled:
            run.settled = True
            METRICS.add(f"venus_harness_settled_{how}_total")
            self._call("settle", run.lane.settle, run.job.task_id, outcome, how)

    # -- another attempt

    def _pause(self, run: Run, outcome: SkillOutcome) -> float | None:
        """Seconds until the next attempt, or None where there is none."""
        policy = run.job.retry
        if policy is None or run.retries >= policy.max or not (run.job.idempotent or outcome.started is False):
            return None
        pause = min(policy.cap_s, policy.base_s * 2 ** min(run.retries, 64))
        now = self._clock.now()
        if now + pause + (now - run.attempted_at) >= run.deadline:  # it takes about as long again
            return None
        try:
            return pause if policy.may_retry(outcome) else None
        except Exception as err:
            self._complain("may_retry", err)
            return None

    def _requeue(self, run: Run) -> None:
        run.wake = None
        run.move(State.QUEUED)
        self._queue.put(run, self._clock.now(), ahead=True)
        self._dispatch()

    def _refuse(self, run: Run) -> None:
        """run() raised BusyError: not started. It keeps its place, so that nothing overtakes it, and tries again shortly."""
        METRICS.add("venus_harness_busy_retries_total")
        now, limits, job = self._clock.now(), self.limits, run.job
        run.unset()
        run.move(State.REFUSED)
        if run.refused_since is None:
            run.refused_since = now
        if not run.retries:
            run.deadline = None
        until = run.refused_since + limits.busy_wait_s
        pause = min(limits.busy_backoff_cap_s, limits.busy_backoff_s * 2 ** min(run.refusals, 64))
        run.refusals += 1
        self._refused[run] = None
        run.timer = self._timers.at(min(t for t in (until, job.deadline_at, run.deadline) if t is not None), self._overdue, run)
        run.wake = self._timers.at(now + pause, self._try_refused, run)

    def _try_refused(self, run: Run | None = None) -> None:
        """A pause is over (`run`'s), or a run has ended: the first of those that were refused tries; they swap pauses."""
        first = min(self._refused, key=lambda r: (r.level, r.refused_since))
        if run is not None and first is not run:
            run.wake = self._timers.at(first.wake.when, self._try_refused, run)
        self._attempt(first)

    # -- leaving

    def _free(self, run: Run) -> None:
        """Give its place back."""
        if run.holds:
            self._places.hold(run, -1)
            self._queue.freed(run.lane)
            if self._refused:
                self._try_refused()

    def _rest(self, run: Run) -> None:
        """Take a job that has no work out of wherever it waits; a refused one keeps its place until it is settled."""
        run.unset()
        self._refused.pop(run, None)
        if run.state is State.QUEUED:
            self._queue.remove(run)
        if run.state in (State.QUEUED, State.BACKOFF):
            self._places.queue(run, -1)

    def _forget(self, run: Run) -> None:
        run.unset()
        run.move(State.GONE)
        lane = run.lane
        del lane.runs[run.job.task_id]
        if not lane.runs:
            lane.runs = None
        self._places.exit(run.job, lane.tenant)
        lane.rested()

    # -- callbacks

    def _call(self, name: str, callback, *args) -> None:
        """A session's fault must not touch the others', nor lose a place."""
        try:
            callback(*args)
        except Exception as err:
            self._complain(name, err)

    @staticmethod
    def _complain(name: str, err: Exception) -> None:
        METRICS.add("venus_harness_callback_errors_total")
        asyncio.get_running_loop().call_exception_handler({"message": f"a job's {name} callback failed", "exception": err})
