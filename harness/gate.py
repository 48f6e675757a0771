"""The floor: whether a reply may be admitted at this instant.

Never over the user, never over the assistant. Counted in device samples, so that it holds on any clock. Noise that looks
like an endless user, a turn that never closes and lost playout reports can't block for ever: what lasts longer than
any person or reply does is not believed.
"""
from dataclasses import dataclass

from harness.settings import HarnessSettings

RATE = 16_000
"""Device samples a second."""


@dataclass(frozen=True)
class Moment:
    """One unit as the session worker sees it. `pos`: device sample; `turn`: the newest user turn."""

    pos: int
    user_speaking: bool
    turn_open: bool
    assistant_speaking: bool
    turn: int


class Gate:
    """`see` every unit, then ask `free`."""

    def __init__(self, settings: HarnessSettings):
        self._settings = settings
        self._pos = 0
        self._since: dict[str, int | None] = {"user": None, "silent": 0, "turn": None, "assistant": None}
        self._last_busy = {"user": -RATE * 3600, "assistant": -RATE * 3600}

    def see(self, moment: Moment) -> None:
        self._pos = moment.pos
        for name, on in (("user", moment.user_speaking), ("silent", not moment.user_speaking),
                         ("turn", moment.turn_open), ("assistant", moment.assistant_speaking)):
            if not on:
                self._since[name] = None
            elif self._since[name] is None:
                self._since[name] = moment.pos
        if self.user_busy:
            self._last_busy["user"] = moment.pos
        if self.assistant_busy:
            self._last_busy["assistant"] = moment.pos

    @property
    def user_busy(self) -> bool:
        noise = self._lasts("user") >= self._settings.max_wait_s
        if self._since["user"] is not None and not noise:
            return True
        if self._since["turn"] is None:
            return False
        stuck = self._lasts("turn") >= self._settings.max_wait_s
        return not (stuck and (noise or self._lasts("silent") >= self._settings.turn_stuck_s))

    @property
    def assistant_busy(self) -> bool:
        return self._since["assistant"] is not None and self._lasts("assistant") < self._settings.playout_stuck_s

    def free(self, *, after_user_s: float, after_assistant_s: float) -> bool:
        """Whether nobody speaks, and nobody has for that long."""
        if self.user_busy or self.assistant_busy:
            return False
        return (self._pos - self._last_busy["user"] >= after_user_s * RATE
                and self._pos - self._last_busy["assistant"] >= after_assistant_s * RATE)

    def _lasts(self, name: str) -> float:
        since = self._since[name]
        return 0.0 if since is None else (self._pos - since) / RATE
