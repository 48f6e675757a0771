"""Prepared replies: what is admitted into the conversation, and which task said which part of it."""
from dataclasses import dataclass
from typing import Iterable

from harness.deliver.late import Notice
from harness.task import Task


@dataclass(frozen=True, slots=True)
class PreparedReply:
    """A reply admitted into the conversation: the words are final. `kind`: result | ack | progress | notice | question."""

    id: str
    task_id: str
    task_version: int
    text: str
    kind: str
    lang: str
    turn: int


@dataclass(frozen=True, slots=True)
class Part:
    """One task's share of a reply: `body`, what was left to say of it, begins at character `at`; before it is an introduction."""

    task_id: str
    at: int
    body: str


@dataclass(slots=True)
class InAir:
    """A reply between its admission and its end."""

    reply: PreparedReply
    parts: tuple[Part, ...]
    admitted_at: float
    newest_turn: int = 0
    """The user's newest turn when it was chosen."""
    notice: Notice | None = None
    recorded: int = 0
    """Where in the journal its admission stands."""
    started_at: float | None = None

    def holds(self, task_id: str) -> bool:
        return any(part.task_id == task_id for part in self.parts)


def compose(reply_id: str, first: Task, pieces: Iterable[tuple[str, str, str]], now: float, newest_turn: int = 0) -> InAir:
    """A reply of pieces (task id, introduction, body), the first of them of task `first`."""
    text, parts = "", []
    for task_id, lead, body in pieces:
        text += ("" if not text or first.lang == "zh" else " ") + lead
        parts.append(Part(task_id, len(text), body))
        text += body
    reply = PreparedReply(reply_id, first.id, first.version, text, first.kind, first.lang, first.turn)
    return InAir(reply, tuple(parts), now, newest_turn)


def heard_to(task: Task) -> int:
    """How many characters of its text have been heard, from the beginning."""
    return max((to for _, to in task.heard), default=0)
