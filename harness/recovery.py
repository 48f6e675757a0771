"""Takes up a session that another process left behind, from its records.

What had not begun runs; what ran and may run twice runs again; other work is reported failed; what was ready is told, once.
A reply that was in the air is doubtful until the device says what it played.
"""
import logging
from typing import Callable

from harness.errors import CorruptJournal
from harness.evidence import DelegateRequest, Evidence
from harness.ledger import Ledger, Transition
from harness.deliver.screen import ScreenItem
from harness.session import Session, Shared
from harness.settings import HarnessSettings
from harness.task import Delivery as D
from harness.task import Execution as E
from harness.task import Task
from venus_edge.metrics import METRICS

log = logging.getLogger("harness.recovery")


def restore(shared: Shared, session_id: str, *, tenant: str, settings: HarnessSettings,
            observer: Callable[[Transition], None] | None, on_screen: Callable[[ScreenItem], None] | None) -> Session:
    """The session as its records tell it, with its work taken up. Records that contradict each other are set aside: the
    session begins anew and the user is not told of what can't be trusted."""
    journal = shared.store.session(session_id, tenant)
    try:
        ledger = Ledger.restore(journal, shared.clock, history=settings.history, remembered_keys=settings.remembered_keys)
    except CorruptJournal as error:
        log.error("session %s: %s", session_id, error.message)
        METRICS.add("venus_harness_sessions_unreadable_total")
        shared.store.drop(session_id)
        return Session(shared, session_id, tenant=tenant, settings=settings, observer=observer, on_screen=on_screen)
    session = Session(shared, session_id, tenant=tenant, settings=settings, observer=observer, on_screen=on_screen, ledger=ledger)
    notes = shared.store.notes(session_id)
    session.memory, session._air_before = notes.get("memory") or {}, notes.get("air")
    session._turn = max((t.turn for t in ledger.tasks()), default=0)
    METRICS.add("venus_harness_sessions_restored_total")
    ledger.mend()
    for task in ledger.open():
        _take_up(session, task)
    return session


def _take_up(session: Session, task: Task) -> None:
    ledger, desk = session.ledger, session._desk
    spec = session._spec(task.capability)
    if task.execution is E.CANCELLING:
        task = ledger.execute(task.id, E.CANCELLED, task.execution_reason)
    elif task.execution is E.QUEUED and spec is None:
        session._start_planning(task.id, request_of(task), Evidence.freeze(0, 0))
        return
    elif task.live and spec is not None and (task.execution is E.QUEUED or spec.idempotent):
        METRICS.add("venus_harness_tasks_rerun_total")
        session._start(task, spec, again=task.execution is E.RUNNING)
        return
    elif task.live:
        METRICS.add("venus_harness_tasks_interrupted_total")
        text = session._shared.words.about("error.restarted", task)
        task = ledger.execute(task.id, E.FAILED, "restarted", kind="notice", text=text)
    if task.delivery is D.NONE:
        if task.text and not task.superseded_by and task.execution in (E.COMPLETED, E.FAILED):
            desk.tell(task.id, task.kind, task.text)
        else:
            ledger.deliver(task.id, D.DROPPED, "superseded" if task.superseded_by else "restarted")
    elif task.delivery in (D.PENDING, D.INTERRUPTED):
        desk.take_up(task)
    elif task.delivery is D.DELIVERING:
        desk.doubt(task)


def request_of(task: Task) -> DelegateRequest:
    """The request that a task was made of, as far as its record tells."""
    return DelegateRequest(key=task.key, turn=task.turn, opened_pos=0, opened_seq=0, prose=task.prose, lang=task.lang, zone=task.zone,
                           provenance=task.provenance)
