"""What is said about a task that takes its time: acknowledgement, progress, an offer to stop. Spoken from the skill's own
progress where it gave one. These notices are not outcomes: they have no delivery state, and a missed one is just missed.
"""
from dataclasses import dataclass
from enum import IntEnum

from harness.phrases import Words
from harness.settings import HarnessSettings
from harness.task import SkillSpec, Task


class Stage(IntEnum):
    NOTHING = 0
    ACK = 1
    FIRST = 2
    SECOND = 3
    OFFER = 4


KINDS = {Stage.ACK: "ack", Stage.FIRST: "progress", Stage.SECOND: "progress", Stage.OFFER: "question"}


@dataclass
class _State:
    stage: Stage = Stage.NOTHING
    said_at: float = float("-inf")
    ack: str = ""
    progress: str = ""
    said: str = ""


@dataclass(frozen=True)
class Notice:
    """A sentence that is due. `own`: the skill's own words, which may not say what they are about."""

    task: Task
    stage: Stage
    text: str
    own: bool

    @property
    def kind(self) -> str:
        return KINDS[self.stage]


class LatePolicy:
    """Keeps, per live task, what has been said about its progress."""

    def __init__(self, settings: HarnessSettings, words: Words):
        self._settings, self._words = settings, words
        self._states: dict[str, _State] = {}

    def progress(self, task_id: str, outcome: str, text: str) -> None:
        """The skill told how far it is; the newest text counts. Outcome `ack` rewords the acknowledgement."""
        state = self._states.setdefault(task_id, _State())
        if outcome == "ack":
            state.ack = text
        else:
            state.progress = text

    def latest(self, task_id: str) -> str:
        state = self._states.get(task_id)
        return state.progress if state else ""

    def due(self, task: Task, spec: SkillSpec, now: float, newest_turn: int) -> Notice | None:
        """The sentence that should be said now about a live task, or None. Later stages replace missed earlier ones."""
        state = self._states.setdefault(task.id, _State())
        age = now - task.accepted_at
        stage = max((s for s, at in self._times(spec).items() if age >= at), default=Stage.NOTHING)
        if stage <= state.stage or now - state.said_at < self._settings.notice_gap_s:
            return None
        if stage is Stage.ACK:
            if task.turn < newest_turn:  # the user has gone on: an acknowledgement now would answer something else
                return None
            return Notice(task, stage, state.ack or self._words.ack(task), False)
        if stage is Stage.OFFER:
            return Notice(task, stage, self._words.about("late.offer", task), False)
        if state.progress and state.progress != state.said:
            return Notice(task, stage, state.progress, True)
        return Notice(task, stage, self._words.about("late.progress", task), False)

    def said(self, notice: Notice, now: float) -> None:
        state = self._states.setdefault(notice.task.id, _State())
        state.stage, state.said_at = notice.stage, now
        if notice.own:
            state.said = notice.text

    def forget(self, task_id: str) -> None:
        self._states.pop(task_id, None)

    def _times(self, spec: SkillSpec) -> dict[Stage, float]:
        s = self._settings
        return {Stage.ACK: 0.0 if spec.slow else s.ack_after_s, Stage.FIRST: spec.first_progress_s,
                Stage.SECOND: s.progress_after_s, Stage.OFFER: s.offer_stop_after_s}
