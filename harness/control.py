"""Answers that come from the ledger alone: cancel that, how is it going, say that again."""
from typing import TYPE_CHECKING

from harness import phrases
from harness.dispatch import CANCEL, HARNESS_OWN, PLAN, REPEAT, STATUS, Control
from harness.task import Execution as E
from harness.task import Task

if TYPE_CHECKING:
    from harness.session import Session

MOST_TASKS_TOLD = 3


class Controls:
    """Control requests of one session. Each answer is the text to tell, in the language of the request; cancelling happens on the way."""

    __slots__ = ("_session",)

    def __init__(self, session: "Session"):
        self._session = session

    def answer(self, task: Task, control: Control) -> str:
        """What control request `task` is answered."""
        return {CANCEL: self._cancel, STATUS: self._status, REPEAT: self._repeat}[task.capability](task, control)

    def _others(self, task: Task) -> list[Task]:
        """Open tasks besides this one, newest first."""
        return [t for t in reversed(self._session.ledger.open()) if t.id != task.id]

    def _named(self, others: list[Task], control: Control) -> list[Task]:
        """Those of `others` that the request names: by id (in its newest version), else by capability, else by the capability's group."""
        ledger, target = self._session.ledger, control.target
        while target and ledger.knows(target) and ledger.get(target).superseded_by:
            target = ledger.get(target).superseded_by
        spec = self._session._spec(control.capability) if control.capability else None
        return ([t for t in others if t.id == target] or [t for t in others if control.capability and t.capability == control.capability]
                or [t for t in others if spec and spec.supersedes and t.group == spec.supersedes])

    def _cancel(self, task: Task, control: Control) -> str:
        """What is named, and nothing else where something is named; else the newest that is under way, else the newest untold."""
        session, words = self._session, self._session._shared.words
        ledger, unwanted = session.ledger, control.target if session._unconfirmed(control.target) else ""
        others = [t for t in self._others(task) if t.execution is not E.CANCELLING]
        named = self._named(others, control)
        wanted = named if control.target or control.capability else others
        live = [t for t in wanted if t.live]
        target = next(iter(live or [t for t in wanted if t in named or t.capability not in HARNESS_OWN]), None)
        if target is None and unwanted and ledger.knows(unwanted):  # no to "shall I really?"
            return words.about("control.left", ledger.get(unwanted), task.lang)
        if target is None:
            return phrases.say("control.nothing_to_cancel", task.lang)
        if not session.cancel(target.id):
            return words.about("control.cannot_cancel", target, task.lang)
        return words.about("control.cancelled" if target.live else "control.left", target, task.lang)

    def _status(self, task: Task, control: Control) -> str:
        session, words = self._session, self._session._shared.words
        others = [t for t in self._others(task) if t.capability not in HARNESS_OWN or t.capability == PLAN]
        others = self._named(others, control) or others
        said = []
        for other in [t for t in others if t.execution in (E.QUEUED, E.RUNNING)][:MOST_TASKS_TOLD]:
            if other.execution is E.QUEUED:
                said.append(words.about("control.status_queued", other, task.lang))
                continue
            seconds = max(1, round(session.clock.now() - other.accepted_at))
            said.append(words.about("control.status_running", other, task.lang, seconds=seconds))
            if other.lang == task.lang:
                said.append(session._late.latest(other.id))
        if not said:
            ready = next((t for t in others if t.untold), None)
            said = [words.about("control.status_ready", ready, task.lang) if ready else phrases.say("control.status_idle", task.lang)]
        return phrases.join(said, task.lang)

    def _repeat(self, task: Task, control: Control) -> str:
        desk = self._session._desk
        last = desk.last_told()
        if last is None:
            return phrases.say("control.nothing_to_repeat", task.lang)
        desk.merge(last[0].id, task.id)
        return last[1]
