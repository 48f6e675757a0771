"""Answers that come from the ledger alone: cancel that, how is it going, say that again."""
from typing import TYPE_CHECKING

from harness import phrases
from harness.dispatch import CANCEL, HARNESS_OWN, REPEAT, STATUS, Control
from harness.task import Execution as E
from harness.task import Task

if TYPE_CHECKING:
    from harness.session import Session

MOST_TASKS_TOLD = 3


class Controls:
    """Control requests of one session. Each answer is the text to tell; cancelling happens on the way."""

    __slots__ = ("_session",)

    def __init__(self, session: "Session"):
        self._session = session

    def answer(self, task: Task, control: Control) -> str:
        return {CANCEL: self._cancel, STATUS: self._status, REPEAT: self._repeat}[task.capability](task, control)

    def _others(self, task: Task) -> list[Task]:
        """Open tasks besides this one, newest first."""
        return [t for t in reversed(self._session.ledger.open()) if t.id != task.id]

    def _cancel(self, task: Task, control: Control) -> str:
        session, words = self._session, self._session._shared.words
        others = [t for t in self._others(task) if t.execution is not E.CANCELLING]
        named = [t for t in others if t.id == control.target] or [t for t in others if control.capability and t.capability == control.capability]
        live = [t for t in named or others if t.live]
        target = next(iter(live or named or [t for t in others if t.capability not in HARNESS_OWN]), None)
        if target is None:
            return phrases.say("control.nothing_to_cancel", task.lang)
        if not session.cancel(target.id):
            return words.about("control.cannot_cancel", target, task.lang)
        return words.about("control.cancelled" if target.live else "control.left", target, task.lang)

    def _status(self, task: Task, control: Control) -> str:
        session, words = self._session, self._session._shared.words
        others = [t for t in self._others(task) if t.capability not in HARNESS_OWN]
        named = [t for t in others if t.id == control.target]
        others = named or others
        said = []
        for other in [t for t in others if t.execution in (E.QUEUED, E.RUNNING)][:MOST_TASKS_TOLD]:
            if other.execution is E.QUEUED:
                said.append(words.about("control.status_queued", other, task.lang))
                continue
            seconds = max(1, round(session.clock.now() - other.accepted_at))
            said.append(words.about("control.status_running", other, task.lang, seconds=seconds))
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
