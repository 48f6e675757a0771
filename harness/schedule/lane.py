"""One session's view of the process's scheduler: submit, stop, close. Costs some 400 bytes while nothing is in it."""
import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Callable

from harness.schedule.job import Class, Job, Run, State
from harness.schedule.limits import LaneLimits
from harness.schedule.places import IDLE, Tenant
from harness.task import SkillOutcome

if TYPE_CHECKING:
    from harness.schedule.scheduler import Scheduler

Settle = Callable[[str, SkillOutcome | None, str], None]
Late = Callable[[str], None]


def _nothing(*_: object) -> None:
    """What a closed lane tells its session: nothing, and it keeps no reference to it."""


class Lane:
    """Made by `Scheduler.lane`. `running` and `queued` (pauses before another attempt included) count the session's jobs."""

    __slots__ = ("scheduler", "session_id", "tenant", "settle", "late", "limits", "runs", "flows", "kind", "tag", "turn", "running",
                 "queued", "abandoned", "_closed", "__weakref__")

    def __init__(self, scheduler: "Scheduler", session_id: str, tenant: Tenant, settle: Settle, late: Late, limits: LaneLimits):
        self.scheduler, self.session_id, self.tenant = scheduler, session_id, tenant
        self.settle, self.late, self.limits = settle, late, limits
        self.runs: dict[str, Run] | None = None
        """All that is not over: waiting, running, or settled and still alive. None while empty."""
        self.flows: dict[tuple[int, str], OrderedDict[Run, None]] | None = None
        """The waiting jobs; kept by the FairQueue."""
        self.kind, self.tag, self.turn = IDLE, 0, 0
        self.running = self.queued = self.abandoned = 0
        self._closed: asyncio.Future | None = None

    @property
    def full(self) -> bool:
        """A job of a capability without limits of its own would be refused."""
        return bool(self.refusal())

    @property
    def closed(self) -> bool:
        return self._closed is not None

    def refusal(self, capability: str = "", max_running: int | None = None) -> str:
        """The limit for which a job would be refused now, as in BusyError's `data["limit"]`; "" where it would be taken."""
        return self.scheduler.refusal(self, capability, max_running)

    def submit(self, job: Job) -> None:
        """Start the job now or queue it. Raises BusyError (`data`: limit, value), Closed, ValueError for an id in use."""
        self.scheduler.submit(self, job)

    def stop(self, task_id: str) -> bool:
        """Cancel a job; acknowledged by returning. A job that never began just goes, with no word; of another `settle` tells the
        end, never from within this call and at most `cancel_wait_s` later. False when there is nothing to stop."""
        return self.scheduler.stop(self, task_id)

    def user_turn(self, turn: int) -> None:
        """The user has a newer turn: what waits for an older one is `normal` again. `submit` does it by the job's own turn."""
        if turn <= self.turn:
            return
        self.turn = turn
        for run in [run for run in (self.runs or {}).values() if run.rank is Class.WAITING and not run.aged]:
            if run.job.priority == "normal" and run.job.turn is not None and run.job.turn < turn:
                self.scheduler.rerank(run, Class.NORMAL)

    async def close(self) -> None:
        """Stop everything; returns when nothing of the session runs any more or what does is abandoned (`cancel_wait_s`).

        Nothing is told afterwards: the lane lets go of its session, also where a run ignores its cancellation.
        """
        if self._closed is None:
            self._closed = asyncio.get_running_loop().create_future()
            for task_id in list(self.runs or ()):
                self.stop(task_id)
            self.rested()
        await asyncio.shield(self._closed)

    def rested(self) -> None:
        """A run is over or abandoned; the scheduler calls this. Ends the closing when it was the last one."""
        if self._closed is None or self._closed.done() or any(r.state is not State.ABANDONED for r in (self.runs or {}).values()):
            return
        self.settle = self.late = _nothing
        self.scheduler.closed(self)
        self._closed.set_result(None)
