"""What is said about a task that takes its time: acknowledgement, progress, an offer to stop, a question whether to go on.

Spoken from the skill's own progress where it gave one. These notices are not outcomes: they have no delivery state, and a missed
one is just missed. All times are the capability's own, else the settings'.
"""
from dataclasses import dataclass
from enum import IntEnum

from harness.phrases import Words
from harness.settings import HarnessSettings
from harness.task import Execution, SkillSpec, Task


class Stage(IntEnum):
    NOTHING = 0
    ACK = 1
    FIRST = 2
    SECOND = 3
    OFFER = 4
    GO_ON = 5
    """The user has gone on to something else, and the skill wants them asked. Outside the sequence of the others."""


OFFERS = {Stage.OFFER: "stop", Stage.GO_ON: "go_on"}
_NEVER = float("-inf")


@dataclass(slots=True)
class _State:
    stage: Stage = Stage.NOTHING
    said_at: float = _NEVER
    ack: str = ""
    progress: str = ""
    said: str = ""
    offered_at: float = _NEVER
    kept_at: float = _NEVER
    """When the user last said that it should go on."""
    asked_to_go_on: bool = False
    declined: int = 0


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence that is due. `own`: the skill's own words, which may not say what they are about."""

    task: Task
    stage: Stage
    text: str
    own: bool
    offer: str = ""
    """stop | go_on where it asks for a yes or no."""

    @property
    def kind(self) -> str:
        return "question" if self.offer else "progress" if self.stage > Stage.ACK else "ack"


class LatePolicy:
    """Keeps, per live task, what has been said about its progress."""

    __slots__ = ("_settings", "_words", "_states")

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

    def due(self, task: Task, spec: SkillSpec, now: float, newest_turn: int, *, elsewhere: bool = False) -> Notice | None:
        """The sentence that should be said now about a live task, or None. Later stages replace missed earlier ones.

        `elsewhere`: the user has asked for something else since.
        """
        if task.execution is Execution.CANCELLING:
            return None
        state = self._states.setdefault(task.id, _State())
        if now - state.said_at < self._settings.notice_gap_s:
            return None
        if elsewhere and spec.on_interrupt == "ask" and spec.cancellable and not state.asked_to_go_on:
            return Notice(task, Stage.GO_ON, self._words.about("offer.go_on", task), False, OFFERS[Stage.GO_ON])
        stage = self._stage(task, spec, now, state)
        if stage <= state.stage or elsewhere and spec.on_topic_change == "drop" and stage is not Stage.OFFER:
            return None
        if stage is Stage.ACK:
            if task.turn < newest_turn:  # the user has gone on: an acknowledgement now would answer something else
                return None
            return Notice(task, stage, state.ack or self._words.ack(task), False)
        if stage is Stage.OFFER:
            if spec.cancellable:
                return Notice(task, stage, self._words.about("late.offer", task), False, OFFERS[stage])
            return Notice(task, stage, self._words.about("late.long", task), False)
        if state.progress and state.progress != state.said:
            return Notice(task, stage, state.progress, True)
        return Notice(task, stage, self._words.about("late.progress", task), False)

    def said(self, notice: Notice, now: float) -> None:
        state = self._states.setdefault(notice.task.id, _State())
        state.said_at = now
        if notice.stage is Stage.GO_ON:
            state.asked_to_go_on = True
        else:
            state.stage = notice.stage
        if notice.offer:
            state.offered_at = now
        if notice.own:
            state.said = notice.text

    def declined(self, notice: Notice) -> None:
        """The front end would not say it. A question is put again, as often as a reply would be; the rest is missed."""
        state = self._states.get(notice.task.id)
        if state is None or not notice.offer or state.declined >= self._settings.max_declines:
            return
        state.declined += 1
        state.offered_at = _NEVER
        if notice.stage is Stage.GO_ON:
            state.asked_to_go_on = False
        else:
            state.stage = Stage.SECOND

    def kept(self, task_id: str, now: float) -> None:
        """The user wants the task to go on: the times of the offer and of giving up start again, and it isn't asked about twice."""
        state = self._states.setdefault(task_id, _State())
        state.kept_at, state.asked_to_go_on = now, True
        state.stage = min(state.stage, Stage.SECOND)

    def give_up_at(self, task: Task, spec: SkillSpec) -> float:
        """When the task is to be cancelled with an apology: never while the question whether to stop can still be answered."""
        s, state = self._settings, self._states.get(task.id) or _State()
        limit = spec.give_up_after_s if spec.give_up_after_s is not None else s.give_up_after_s
        return max(max(task.accepted_at, state.kept_at) + limit, state.offered_at + min(s.offer_open_s, limit))

    def taken_up(self, task_id: str) -> None:
        """The work goes on after a restart: what was acknowledged before is not acknowledged again."""
        self._states.setdefault(task_id, _State()).stage = Stage.ACK

    def forget(self, task_id: str) -> None:
        self._states.pop(task_id, None)

    def _stage(self, task: Task, spec: SkillSpec, now: float, state: _State) -> Stage:
        s, age = self._settings, now - task.accepted_at
        if now - max(task.accepted_at, state.kept_at) >= _or(spec.offer_stop_after_s, s.offer_stop_after_s):
            return Stage.OFFER
        if age >= _or(spec.progress_after_s, s.progress_after_s):
            return Stage.SECOND
        if age >= spec.first_progress_s:
            return Stage.FIRST
        return Stage.ACK if age >= _or(spec.ack_after_s, 0.0 if spec.slow else s.ack_after_s) else Stage.NOTHING


def _or(own: float | None, usual: float) -> float:
    return usual if own is None else own
