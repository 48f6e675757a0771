"""What a planner is told of a session, and how long it may take."""
import asyncio
import itertools
import logging

from harness import phrases
from harness.backend import DelegateBackend
from harness.capture.reserved import inert, inert_values
from harness.dispatch import HARNESS_OWN
from harness.evidence import DelegateRequest, Evidence
from harness.ledger import Ledger
from harness.plan.contracts import Ask, Contract, LiveTask, Planned, PlanRequest
from harness.task import Execution as E
from harness.task import Task
from venus_edge.clock import Clock
from venus_edge.metrics import METRICS

log = logging.getLogger("harness.planning")
MOST_TASKS, MOST_SAID = 8, 6
HEARD_CHARS = 320
TOLD_WITHIN_S = 120.0


def plan_request(request: DelegateRequest, evidence: Evidence, contracts: tuple[Contract, ...], ledger: Ledger, now: float,
                 memory: dict, question: Task | None, *, exclude: str = "") -> PlanRequest:
    """Prose, contracts, the evidence's words and the live ledger; media as counts only."""
    tasks = (_live(t, now) for t in reversed(ledger.tasks())
             if t.id != exclude and t.capability not in HARNESS_OWN and not t.superseded_by
             and (t.live or t.untold or now - (t.ended_at or now) <= TOLD_WITHIN_S))
    heard = " ".join(w.text for w in evidence.assistant)[-HEARD_CHARS:]
    said = tuple(inert(w.text) for w in evidence.user if w.turn != request.turn)[-MOST_SAID:]
    return PlanRequest(inert(request.prose), request.lang, contracts, tuple(itertools.islice(tasks, MOST_TASKS)), said, inert(heard),
                       question.text if question else "", question.id if question else "", evidence.summary().media, inert_values(memory))


def words_of(request: PlanRequest) -> str:
    """All that exact values may come from: what the user said, now and before, and what was just heard of us."""
    return " ".join([request.prose, *request.said, request.heard, request.question, *_strings(request.memory)])


async def plan_within(backend: DelegateBackend, request: PlanRequest, clock: Clock, seconds: float) -> Planned:
    """The backend's answer; asked back after `seconds` or a fault: a planner costs a request a question, never the session."""
    work = asyncio.ensure_future(backend.plan(request))
    timer = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({work, timer}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result() or Ask(phrases.say("ask.rephrase", request.lang))
        METRICS.add("venus_harness_planner_timeouts_total")
    except Exception as error:
        log.error("planner failed: %s", type(error).__name__)
        METRICS.add("venus_harness_planner_faults_total")
    finally:
        timer.cancel()
        work.cancel()
        work.add_done_callback(_seen)
    return Ask(phrases.say("ask.rephrase", request.lang))


def _seen(work: asyncio.Task) -> None:
    """A planner that fails on being cancelled: nobody waits for it, and asyncio would log its message, which may quote words."""
    if not work.cancelled():
        work.exception()


def _live(task: Task, now: float) -> LiveTask:
    state = ("queued" if task.execution is E.QUEUED else "running" if task.live else "ready" if task.untold
             else "failed" if task.execution is E.FAILED else "told")
    return LiveTask(task.id, task.capability, inert_values(task.arguments), inert(task.prose), state, max(0.0, now - task.accepted_at), task.turn)


def _strings(value) -> list[str]:
    if isinstance(value, dict):
        return [s for item in value.values() for s in _strings(item)]
    if isinstance(value, (list, tuple)):
        return [s for item in value for s in _strings(item)]
    return [str(value)] if isinstance(value, (str, int, float)) and not isinstance(value, bool) else []
