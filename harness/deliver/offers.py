"""Yes/no questions of ours that are open: "Shall I stop?", "Should I go on?". One at a time, and only once it was heard."""
from dataclasses import dataclass

ACTIONS = {"stop": ("cancel", "keep"), "go_on": ("keep", "cancel")}
"""What yes and no do, by kind of offer."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A question the user has heard. `on_yes`, `on_no`: keep | cancel. `turn`: the newest user turn when it was heard."""

    task_id: str
    kind: str
    """stop | go_on"""
    asked_at: float
    turn: int

    @property
    def on_yes(self) -> str:
        return ACTIONS[self.kind][0]

    @property
    def on_no(self) -> str:
        return ACTIONS[self.kind][1]


@dataclass(frozen=True, slots=True)
class Resolution:
    """What the user's answer asks for: `action` keep | cancel, and the sentence that confirms it."""

    task_id: str
    action: str
    kind: str
    text: str


class Offers:
    """The newest question that was heard, until it is answered, expires or the user has gone on."""

    __slots__ = ("_open_s", "_offer")

    def __init__(self, open_s: float):
        self._open_s = open_s
        self._offer: Offer | None = None

    def heard(self, task_id: str, kind: str, now: float, turn: int) -> None:
        self._offer = Offer(task_id, kind, now, turn)

    def open(self, now: float, turn: int) -> Offer | None:
        """The question that an utterance of turn `turn` may answer: the turn in which it was heard, or the next."""
        offer = self._offer
        if offer is not None and (now - offer.asked_at > self._open_s or turn > offer.turn + 1):
            offer = self._offer = None
        return offer

    def close(self, task_id: str = "") -> None:
        """The question was answered, or its task has ended."""
        if self._offer is not None and task_id in ("", self._offer.task_id):
            self._offer = None
