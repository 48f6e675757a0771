"""Places of the process, its tenants, capabilities and sessions: who holds how many, and which limit refuses a new job."""
from typing import TYPE_CHECKING

from harness.schedule.job import Job, Run
from harness.schedule.limits import SchedulerLimits
from venus_edge.metrics import METRICS

if TYPE_CHECKING:
    from harness.schedule.fair_queue import Line
    from harness.schedule.lane import Lane

IDLE, BUSY, FULL = "idle", "busy", "full"
"""A lane that runs nothing, one that runs something, and one at its limit."""


class Tenant:
    """The sessions of one customer. `running`, `queued`, `abandoned` count jobs; `users` (lanes and jobs) keeps the record alive."""

    __slots__ = ("name", "limit", "reserve", "running", "queued", "abandoned", "users", "tag", "lines", "open")

    def __init__(self, name: str, limit: int, reserve: int):
        self.name, self.limit, self.reserve = name, limit, reserve
        self.running = self.queued = self.abandoned = self.users = self.tag = 0
        self.lines: dict[tuple[int, str, str], Line] = {}
        """Kept by the FairQueue, like `tag` and `open`."""
        self.open = frozenset({IDLE, BUSY})

    def room(self, kind: str) -> bool:
        """Whether a lane of that kind may start one more."""
        return self.running < (self.limit if kind == IDLE else self.limit - self.reserve)


class Pool:
    """One capability in the process. `limit` None: none of its own; `users` (jobs) keeps the record alive."""

    __slots__ = ("name", "limit", "running", "abandoned", "users")

    def __init__(self, name: str):
        self.name = name
        self.limit: int | None = None
        self.running = self.abandoned = self.users = 0

    @property
    def full(self) -> bool:
        return self.limit is not None and self.running >= self.limit


class Places:
    """`running` jobs hold a place; `abandoned` ones lost theirs and live on; `queued` ones wait (pauses included)."""

    def __init__(self, limits: SchedulerLimits):
        self.limits = limits
        self.running = self.queued = self.abandoned = 0
        self.tenants: dict[str, Tenant] = {}
        self.pools: dict[str, Pool] = {}
        self._reserve = limits.process_reserve

    def room(self, *, idle: bool) -> bool:
        """Whether the process has a place for a lane that runs nothing (`idle`), or for another."""
        return self.running < self.limits.max_running - (0 if idle else self._reserve)

    # -- who comes and goes

    def tenant(self, name: str) -> Tenant:
        """The tenant's record, with one user more."""
        tenant = self.tenants.get(name)
        if tenant is None:
            tenant = self.tenants[name] = Tenant(name, self.limits.max_running_per_tenant, self.limits.tenant_reserve)
        tenant.users += 1
        return tenant

    def leave(self, tenant: Tenant) -> None:
        tenant.users -= 1
        if not tenant.users:
            del self.tenants[tenant.name]

    def enter(self, job: Job, tenant: Tenant) -> None:
        tenant.users += 1
        pool = self.pools.get(job.capability)
        if pool is None:
            pool = self.pools[job.capability] = Pool(job.capability)
        pool.users += 1
        if job.max_running is not None:
            pool.limit = job.max_running

    def exit(self, job: Job, tenant: Tenant) -> None:
        pool = self.pools[job.capability]
        pool.users -= 1
        if not pool.users:
            del self.pools[job.capability]
        self.leave(tenant)

    # -- counts

    def hold(self, run: Run, change: int) -> None:
        """A run got its place (+1) or gave it back (-1)."""
        run.holds = change > 0
        self.running += change
        run.lane.running += change
        run.lane.tenant.running += change
        self.pools[run.job.capability].running += change
        METRICS.set("venus_harness_running", self.running)
        METRICS.peak("venus_harness_running_peak", self.running)

    def queue(self, run: Run, change: int) -> None:
        self.queued += change
        run.lane.queued += change
        run.lane.tenant.queued += change
        METRICS.set("venus_harness_queued", self.queued)

    def abandon(self, run: Run, change: int) -> None:
        self.abandoned += change
        run.lane.abandoned += change
        run.lane.tenant.abandoned += change
        self.pools[run.job.capability].abandoned += change
        METRICS.set("venus_harness_abandoned", self.abandoned)
        METRICS.peak("venus_harness_abandoned_peak", self.abandoned)

    # -- refusals

    def refusal(self, lane: "Lane", capability: str, max_running: int | None) -> tuple[str, int]:
        """The limit for which a job would be refused now and its value; ("", 0) where it would start or be queued."""
        over = self.overrun(lane, capability)
        if over[0]:
            return over
        pool = self.pools.get(capability)
        if (self.room(idle=lane.running == 0) and lane.tenant.room(lane.kind) and lane.running < lane.limits.max_running
                and (max_running is None or pool is None or pool.running < max_running)):
            return "", 0
        if lane.queued >= lane.limits.max_queued:
            return "session.max_queued", lane.limits.max_queued
        if self.queued >= self.limits.max_queued:
            return "process.max_queued", self.limits.max_queued
        return "", 0

    def overrun(self, lane: "Lane", capability: str) -> tuple[str, int]:
        """The limit of abandoned runs that is reached, and its value."""
        if not self.abandoned:
            return "", 0
        limits, pool = self.limits, self.pools.get(capability)
        here = pool.abandoned if pool is not None else 0
        for name, count, limit in (("session", lane.abandoned, limits.max_abandoned_per_session),
                                   ("tenant", lane.tenant.abandoned, limits.max_abandoned_per_tenant),
                                   ("capability", here, limits.max_abandoned_per_capability),
                                   ("process", self.abandoned if here else 0, limits.max_abandoned)):
            if count >= limit:
                return f"{name}.max_abandoned", limit
        return "", 0
