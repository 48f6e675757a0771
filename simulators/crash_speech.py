"""What the user of `venus eval crash` asked for, and a reply as its device plays it."""
import re
import time
from dataclasses import dataclass, field

CHARS_PER_S = 60.0
"""Fast speech, so that a hundred kills take minutes."""
WORD = re.compile(r"c(\d+)g(\d+)x(\d+)w(\d+)")
"""A word of an outcome: request, process, run and number."""
TOPIC = re.compile(r"c(\d+)q")
"""How the harness's own sentences name a request."""


@dataclass
class Wish:
    """One thing asked for. `told`: its outcome began to be heard, or was shown."""

    n: int
    key: str
    skill: str
    turn: int
    promised: bool = False
    told: bool = False
    shown: bool = False
    forgotten: bool = False
    """Never promised, and the user did not ask again."""


@dataclass
class Speech:
    """A reply at the device."""

    reply: str
    seg: str
    kind: str
    text: str
    generation: int
    begin: float
    outcomes: dict[int, int] = field(default_factory=dict)
    """Request: character at which the reply begins to tell of it."""
    over: bool = False

    def chars(self) -> int:
        return max(0, min(len(self.text), int((time.monotonic() - self.begin) * CHARS_PER_S)))
