"""The order in which waiting jobs get a place: class, begun before new, then tenants in turn, then a tenant's sessions in turn.

Every waiting job is in one *flow*: those of a lane with one level and one pool (a capability with a limit of its own is a pool, all
other jobs are another). A lane that may start something stands in its tenant's line for the flow, a tenant in the line of all
tenants; first in line is who was served longest ago. A full lane and a full tenant leave the lines and a full pool is passed over
whole, so taking a job costs O(log n) with n lanes waiting. Lanes that run nothing have lines of their own, since some places are
kept for them.
"""
import heapq
from collections import OrderedDict
from itertools import count
from typing import TYPE_CHECKING

from harness.schedule.job import Class, Run
from harness.schedule.places import BUSY, FULL, IDLE, Pool, Tenant

if TYPE_CHECKING:
    from harness.schedule.lane import Lane

LEVELS = 2 * len(Class)
AGEING = (Class.NORMAL, Class.BACKGROUND)


class Line:
    """Tenants or lanes, first the one with the lowest `tag` (the number of the dispatch that served it last), ties as they came."""

    __slots__ = ("_tags", "_heap", "_came")

    def __init__(self):
        self._tags: dict = {}
        self._heap: list = []
        """Entries that no longer hold stay until they come first, or are more than half of it."""
        self._came = 0

    def __len__(self) -> int:
        return len(self._tags)

    def join(self, member: "Tenant | Lane") -> None:
        """Take it in, or to the place of its new tag."""
        self._tags[member] = member.tag
        self._came += 1
        heapq.heappush(self._heap, (member.tag, self._came, member))
        if len(self._heap) > 16 + 2 * len(self._tags):
            self._heap = [(tag, n, m) for n, (m, tag) in enumerate(self._tags.items())]
            self._came = len(self._heap)
            heapq.heapify(self._heap)

    def leave(self, member: "Tenant | Lane") -> None:
        del self._tags[member]

    def first(self) -> "Tenant | Lane":
        while self._tags.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][2]


class FairQueue:
    """The scheduler tells it of every change (`put`, `remove`, `served`, `freed`); `take` gives the next job that may start."""

    def __init__(self, ageing_s: float, pools: dict[str, Pool]):
        self._ageing_s, self._pools = ageing_s, pools
        self._lines: list[dict[tuple[str, str], Line]] = [{} for _ in range(LEVELS)]
        """By level: (pool, kind of lane) to the tenants that may start something there."""
        self._ages: dict[Class, OrderedDict[Run, None]] = {rank: OrderedDict() for rank in AGEING}
        self._tags = count(1)
        self.aged = 0

    def put(self, run: Run, now: float, *, ahead: bool = False) -> None:
        """Queue it behind its lane's others of the same level, or ahead of them."""
        run.queued_since = now
        self._put(run, ahead)

    def _put(self, run: Run, ahead: bool = False) -> None:
        lane, at = run.lane, (run.level, run.pool)
        if lane.flows is None:
            lane.flows = {}
        flow = lane.flows.get(at)
        if flow is None:
            flow = lane.flows[at] = OrderedDict()
            self._offer(lane, at)
        flow[run] = None
        if ahead:
            flow.move_to_end(run, last=False)
        if run.rank in AGEING:
            self._ages[run.rank][run] = None

    def remove(self, run: Run) -> None:
        lane, at = run.lane, (run.level, run.pool)
        flow = lane.flows[at]
        del flow[run]
        if not flow:
            self._withdraw(lane, at)
            del lane.flows[at]
            if not lane.flows:
                lane.flows = None
        if run.rank in AGEING:
            del self._ages[run.rank][run]

    def rerank(self, run: Run, rank: Class) -> None:
        """Move a waiting job to another class."""
        self.remove(run)
        run.rank = rank
        self._put(run)

    def take(self, now: float, *, idle_only: bool) -> Run | None:
        """Remove the next job that may start; with `idle_only` among lanes that run nothing. The caller then tells `served`."""
        self._age(now)
        for level, lines in enumerate(self._lines):
            best: Lane | None = None
            best_tags, best_pool = (0, 0), ""
            for (pool, kind), line in lines.items():
                if (idle_only and kind == BUSY) or (pool and self._pools[pool].full):
                    continue
                tenant = line.first()
                lane = tenant.lines[level, pool, kind].first()
                if best is None or (tenant.tag, lane.tag) < best_tags:
                    best, best_tags, best_pool = lane, (tenant.tag, lane.tag), pool
            if best is not None:
                run = next(iter(best.flows[level, best_pool]))
                self.remove(run)
                return run
        return None

    def served(self, lane: "Lane") -> None:
        """A job of the lane has got a place (the counts say so already): lane and tenant go to the end of their lines."""
        tenant = lane.tenant
        tenant.tag = lane.tag = next(self._tags)
        self._regroup(lane)
        self._reopen(tenant)
        for level, pool, kind in tenant.lines:
            if kind in tenant.open:
                self._lines[level][pool, kind].join(tenant)

    def freed(self, lane: "Lane") -> None:
        """A job of the lane gave its place back (the counts say so already)."""
        if lane.kind != self._kind(lane):
            self._regroup(lane)
        self._reopen(lane.tenant)

    @staticmethod
    def _kind(lane: "Lane") -> str:
        return IDLE if lane.running == 0 else BUSY if lane.running < lane.limits.max_running else FULL

    def _regroup(self, lane: "Lane") -> None:
        for at in lane.flows or ():
            self._withdraw(lane, at)
        lane.kind = self._kind(lane)
        for at in lane.flows or ():
            self._offer(lane, at)

    def _reopen(self, tenant: Tenant) -> None:
        now_open = frozenset(kind for kind in (IDLE, BUSY) if tenant.room(kind))
        if now_open == tenant.open:
            return
        for level, pool, kind in tenant.lines:
            if kind in tenant.open and kind not in now_open:
                self._drop(tenant, level, pool, kind)
            elif kind in now_open and kind not in tenant.open:
                self._lines[level].setdefault((pool, kind), Line()).join(tenant)
        tenant.open = now_open

    def _offer(self, lane: "Lane", at: tuple[int, str]) -> None:
        if lane.kind == FULL:
            return
        (level, pool), tenant = at, lane.tenant
        line = tenant.lines.get((level, pool, lane.kind))
        if line is None:
            line = tenant.lines[level, pool, lane.kind] = Line()
            if lane.kind in tenant.open:
                self._lines[level].setdefault((pool, lane.kind), Line()).join(tenant)
        line.join(lane)

    def _withdraw(self, lane: "Lane", at: tuple[int, str]) -> None:
        if lane.kind == FULL:
            return
        (level, pool), tenant = at, lane.tenant
        line = tenant.lines[level, pool, lane.kind]
        line.leave(lane)
        if not line:
            del tenant.lines[level, pool, lane.kind]
            if lane.kind in tenant.open:
                self._drop(tenant, level, pool, lane.kind)

    def _drop(self, tenant: Tenant, level: int, pool: str, kind: str) -> None:
        line = self._lines[level][pool, kind]
        line.leave(tenant)
        if not line:
            del self._lines[level][pool, kind]

    def _age(self, now: float) -> None:
        for ages in self._ages.values():
            while ages and (run := next(iter(ages))).queued_since + self._ageing_s <= now:
                run.aged = True
                self.aged += 1
                self.rerank(run, Class.WAITING)
