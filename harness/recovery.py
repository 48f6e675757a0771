"""Takes up a session that another process left behind, from its records.

What had not begun runs; what ran and may run twice runs again, the most urgent first; other work is reported failed; what was ready is
told, once. A reply that was in the air is doubtful until the device says what it played.
"""
import logging
from typing import Callable

from harness import phrases
from harness.deliver.screen import ScreenItem
from harness.dispatch import CANCEL, KEEP, OWN, PLAN, REPEAT, STATUS, Control
from harness.errors import CorruptJournal
from harness.evidence import DelegateRequest, Evidence
from harness.intake import PLANS_NOTE
from harness.journal.steady import SteadyJournal
from harness.ledger import Ledger, Transition
from harness.schedule.job import PRIORITIES
from harness.session import AIR, Session, Shared
from harness.settings import HarnessSettings
from harness.task import Delivery as D
from harness.task import Execution as E
from harness.task import Task
from venus_edge.metrics import METRICS

log = logging.getLogger("harness.recovery")


def restore(shared: Shared, session_id: str, *, tenant: str, settings: HarnessSettings,
            observer: Callable[[Transition], None] | None, on_screen: Callable[[ScreenItem], None] | None,
            on_end: Callable[[Session], None] | None = None) -> Session:
    """The session as its records tell it, with its work taken up. Waits for the store. Raises JournalFault where it can't be read.

    Records that contradict each other or are of another kind than this version's are dropped: the session begins anew, and the user is
    not told of what can't be trusted.
    """
    more = {"tenant": tenant, "settings": settings, "observer": observer, "on_screen": on_screen, "on_end": on_end}
    journal = SteadyJournal(shared.store, session_id, tenant)
    try:
        ledger = Ledger.restore(journal, shared.clock, history=settings.history, remembered_keys=settings.remembered_keys)
    except (CorruptJournal, LookupError, TypeError, ValueError) as error:
        log.error("records of session %s can't be read: %s", session_id, getattr(error, "message", type(error).__name__))
        METRICS.add("venus_harness_sessions_unreadable_total")
        journal.drop()
        return Session(shared, session_id, **more)
    notes = shared.store.notes(session_id)
    session = Session(shared, session_id, journal=journal, ledger=ledger, **more)
    session.memory, session._air_before = notes.get("memory") or {}, notes.get(AIR)
    session._turn = max((t.turn for t in ledger.tasks()), default=0)
    session._lane.user_turn(session._turn)
    session._desk.remember(ledger.tasks())
    METRICS.add("venus_harness_sessions_restored_total")
    ledger.mend()
    for task in sorted(ledger.open(), key=lambda t: _urgency(session, t)):
        task = ledger.get(task.id)  # one that was cancelled just now is not taken up
        if not task.closed:
            _take_up(session, task)
    for key in [key for key in notes if key.startswith(PLANS_NOTE)]:
        try:
            session._resume_plans(key, notes[key])
        except Exception as error:  # a note of another version: the session matters more
            log.error("plans of session %s can't be read: %s", session_id, type(error).__name__)
            session._journal.note(key, None)
    return session


def _urgency(session: Session, task: Task) -> tuple:
    """What has ended first, in its order: tasks of one reply must stay in the order in which it told them. Then controls, for they may be
    about the rest; then by priority, work that had begun before work that had not."""
    if not task.live:
        return (False,)
    spec = session._spec(task.capability)
    priority = spec.priority if spec else "normal"
    if priority == "normal" and task.turn >= session._turn:
        priority = "waiting"
    return (True, task.capability not in OWN.values(), PRIORITIES.index(priority), task.execution is not E.RUNNING)


def _take_up(session: Session, task: Task) -> None:
    desk, spec = session._desk, session._spec(task.capability)
    queued, running = task.execution is E.QUEUED, task.execution is E.RUNNING
    if task.execution is E.CANCELLING:
        session._cancelled(task, "cancelled")
    elif queued and spec is not None or running and spec is not None and spec.idempotent:
        METRICS.add("venus_harness_tasks_rerun_total")
        session._start(task, spec, again=running)
    elif queued and task.capability == PLAN and task.prose.strip():
        session._start_planning(task.id, request_of(task), Evidence.freeze(0, 0))
    elif running and task.capability == PLAN:  # only what was no request gets that far
        session._end(task.id, E.COMPLETED, "aside")
    elif queued and task.capability in (CANCEL, STATUS, REPEAT):
        operation = next(name for name, capability in OWN.items() if capability == task.capability)
        control = Control(operation, task.arguments.get("capability"), task.arguments.get("target", ""))
        session._answer(task.id, E.COMPLETED, "", "result", session._controls.answer(task, control))
    elif queued and task.capability == KEEP:
        session._answer(task.id, E.COMPLETED, "", "result", phrases.say("offer.kept", task.lang))
    elif task.live:
        METRICS.add("venus_harness_tasks_interrupted_total")
        gone = queued and spec is None and not task.capability.startswith("harness.")  # the skill was removed meanwhile
        text = phrases.say("refuse.unknown", task.lang) if gone else session._shared.words.about("error.restarted", task)
        session._answer(task.id, E.FAILED, "unknown_capability" if gone else "restarted", "notice", text)
    elif task.delivery is D.NONE:
        session._conclude(task)
    elif task.delivery in (D.PENDING, D.INTERRUPTED):
        desk.take_up(task)
    elif task.delivery is D.DELIVERING:
        desk.doubt(task)


def request_of(task: Task) -> DelegateRequest:
    """The request that a task was made of, as far as its record tells."""
    return DelegateRequest(key=task.key, turn=task.turn, opened_pos=0, opened_seq=0, prose=task.prose, lang=task.lang, zone=task.zone,
                           repair=task.arguments.get("repair", "new"), provenance=task.provenance)
