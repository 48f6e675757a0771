"""A scheduler on a virtual clock whose jobs sleep as told, for the tests of the scheduler."""
import asyncio
from collections import Counter, defaultdict

from harness.schedule.limits import SchedulerLimits
from harness.schedule.scheduler import Job, Scheduler
from harness.task import SkillOutcome
from venus_edge.testing import VirtualClock

DONE = SkillOutcome(ok=True, text="Done.")


class SchedulerWorld:
    """Keeps what happened: `began` [(time, task)], `settled` {task: [(time, how, outcome)]}, `late` [task], `attempts` per task."""

    def __init__(self, **limits):
        self.clock = VirtualClock()
        self.scheduler = Scheduler(self.clock, SchedulerLimits(**limits))
        self.began, self.settled, self.late, self.attempts = [], defaultdict(list), [], Counter()
        self.live: dict[str, object] = {}
        """Lanes of the coroutines that run right now, by task."""
        self.peak = Counter()
        self.capability: dict[str, str] = {}
        self.release = asyncio.Event()
        """Lets every hung run end."""

    def lane(self, name, tenant="t", **limits):
        return self.scheduler.lane(name, tenant, self._settle, self.late.append, **limits)

    def _settle(self, task, outcome, how):
        self.settled[task].append((self.clock.now(), how, outcome))

    def job(self, lane, task, takes_s=1.0, *, outcomes=(), hangs=False, stages=1, limit_s=60.0, **fields):
        """Submit a job of `stages` sleeps. `outcomes`: per attempt, an outcome or an exception to raise at once; then DONE."""
        self.capability[task] = fields.get("capability", "")

        async def run():
            attempt = self.attempts[task]
            self.attempts[task] += 1
            if attempt < len(outcomes) and isinstance(outcomes[attempt], Exception):
                raise outcomes[attempt]
            self.live[task] = lane
            self._count()
            try:
                if hangs:
                    await self._hang()
                for _ in range(stages):
                    await self.clock.sleep(takes_s / stages)
            finally:
                del self.live[task]
            return outcomes[attempt] if attempt < len(outcomes) else DONE

        lane.submit(Job(task, lambda: self.began.append((self.clock.now(), task)), run, limit_s, self.clock.now(), **fields))

    async def _hang(self):
        """Ignores cancellation until released, or until the loop's end cancels every task."""
        end = asyncio.ensure_future(self.release.wait())
        while not end.done():
            try:
                await asyncio.wait({end})
            except asyncio.CancelledError:
                pass
        if end.cancelled():
            raise asyncio.CancelledError

    def _count(self):
        lanes, tenants = Counter(lane.session_id for lane in self.live.values()), Counter(lane.tenant.name for lane in self.live.values())
        for name, n in (*lanes.items(), *tenants.items(), ("process", len(self.live))):
            self.peak[name] = max(self.peak[name], n)
        capabilities = Counter(self.capability[task] for task in self.live)
        for name, n in capabilities.items():
            if name:
                self.peak[name] = max(self.peak[name], n)

    def how(self, task):
        """The one settlement of a task, or None."""
        ends = self.settled.get(task, [])
        assert len(ends) <= 1, (task, ends)
        return ends[0][1] if ends else None

    @property
    def order(self):
        return [task for _, task in self.began]

    async def close(self):
        self.release.set()
        closing = asyncio.ensure_future(self.scheduler.close())
        await self.clock.advance(30)
        await closing
