"""Runs skill calls: a bounded number at once, a bounded queue, deadlines, and cancellation with a bounded wait.

One run's exception, hang or refusal to be cancelled never touches another's.
"""
import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass
from typing import Callable, Coroutine

from harness.settings import HarnessSettings
from harness.task import SkillOutcome
from venus_edge.clock import Clock
from venus_edge.errors import BusyError
from venus_edge.metrics import METRICS

log = logging.getLogger("harness.scheduler")


def failed(code: str) -> SkillOutcome:
    """The outcome of a run that brought none itself; its words are found by `code`."""
    return SkillOutcome(ok=False, outcome=code, text="", code=code)


@dataclass
class Job:
    """A call to make. At its turn `begin` is told, then `run` gives the coroutine; `limit_s` counts from then.

    `after`: id of a run being cancelled that must have ended first, so that its effects can't come last.
    """

    task_id: str
    begin: Callable[[], None]
    run: Callable[[], Coroutine[None, None, SkillOutcome]]
    limit_s: float
    queued_at: float
    after: str = ""


@dataclass
class _Run:
    job: Job
    work: asyncio.Task
    watch: asyncio.Task | None = None
    settled: bool = False


class Scheduler:
    """`settle(task_id, outcome, how)` is called exactly once for each started job.

    `how`: done (with the outcome) | error (it raised) | deadline | cancelled | unresponsive (cancelled, and still going).
    """

    def __init__(self, clock: Clock, settings: HarnessSettings,
                 settle: Callable[[str, SkillOutcome | None, str], None], late: Callable[[str], None]):
        self._clock, self._settings, self._settle, self._late = clock, settings, settle, late
        self._runs: dict[str, _Run] = {}
        self._ending: dict[str, asyncio.Task] = {}
        self._queue: OrderedDict[str, Job] = OrderedDict()

    @property
    def full(self) -> bool:
        return len(self._runs) >= self._settings.max_running and len(self._queue) >= self._settings.max_queued

    def submit(self, job: Job) -> None:
        """Start the job now or queue it. Raises BusyError when both are full."""
        if len(self._runs) < self._settings.max_running:
            self._start(job)
        elif len(self._queue) < self._settings.max_queued:
            self._queue[job.task_id] = job
            METRICS.peak("venus_harness_queue_peak", len(self._queue))
        else:
            METRICS.add("venus_harness_refused_total")
            raise BusyError(f"max_running {self._settings.max_running} and max_queued {self._settings.max_queued} reached")

    def stop(self, task_id: str) -> None:
        """Cancel a job; the acknowledgement is immediate, the end follows through `settle`. A queued one just goes."""
        if self._queue.pop(task_id, None) is not None:
            return
        run = self._runs.get(task_id)
        if run is not None and not run.work.done():
            run.work.cancel()
            if run.watch:
                run.watch.cancel()
            run.watch = asyncio.get_running_loop().create_task(self._reap(run))

    def expire(self) -> list[str]:
        """Take the jobs out of the queue that waited too long; their task ids."""
        limit = self._clock.now() - self._settings.queue_ttl_s
        gone = [task_id for task_id, job in self._queue.items() if job.queued_at <= limit]
        for task_id in gone:
            del self._queue[task_id]
        return gone

    async def close(self) -> None:
        """Cancel everything and wait for it, a bounded time."""
        self._queue.clear()
        runs = list(self._runs.values())
        for run in runs:
            self.stop(run.job.task_id)
        watches = [run.watch for run in runs if run.watch]
        if watches:
            await asyncio.gather(*watches, return_exceptions=True)

    def _start(self, job: Job) -> None:
        loop = asyncio.get_running_loop()
        job.begin()
        run = _Run(job, loop.create_task(self._work(job, self._ending.get(job.after))))
        self._runs[job.task_id] = run
        METRICS.peak("venus_harness_running_peak", len(self._runs))
        self._ending[job.task_id] = run.work
        run.work.add_done_callback(lambda work: self._done(run, work))
        run.watch = loop.create_task(self._watch(run))

    async def _work(self, job: Job, predecessor: asyncio.Task | None) -> SkillOutcome:
        if predecessor is not None:
            await self._within(predecessor, self._settings.cancel_wait_s)
        return await job.run()

    async def _within(self, work: asyncio.Task, seconds: float) -> bool:
        """Wait for `work`, at most `seconds` of the injected clock; whether it ended."""
        timer = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait({work, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
        return work.done()

    async def _watch(self, run: _Run) -> None:
        if not await self._within(run.work, run.job.limit_s):
            self._end(run, None, "deadline")
            run.work.cancel()

    async def _reap(self, run: _Run) -> None:
        if not await self._within(run.work, self._settings.cancel_wait_s):
            METRICS.add("venus_harness_unresponsive_total")
            log.error("task %s ignores its cancellation", run.job.task_id)
            self._end(run, None, "unresponsive")

    def _done(self, run: _Run, work: asyncio.Task) -> None:
        self._ending.pop(run.job.task_id, None)
        if work.cancelled():
            self._end(run, None, "cancelled")
        elif work.exception() is not None:
            error = work.exception()
            log.error("task %s failed: %s", run.job.task_id, type(error).__name__)  # its message may hold words
            self._end(run, failed(getattr(error, "code", "internal")), "error")
        elif run.settled:
            self._late(run.job.task_id)
        else:
            self._end(run, work.result(), "done")

    def _end(self, run: _Run, outcome: SkillOutcome | None, how: str) -> None:
        if run.settled:
            return
        run.settled = True
        if run.watch and run.watch is not asyncio.current_task():
            run.watch.cancel()
        del self._runs[run.job.task_id]
        try:
            self._settle(run.job.task_id, outcome, how)
        finally:
            while self._queue and len(self._runs) < self._settings.max_running:
                self._start(self._queue.popitem(last=False)[1])
