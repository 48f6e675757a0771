"""The floor: whether a reply may be admitted at this instant.

Never over the user, never over the assistant. Counted in device samples, so that it holds on any clock. Noise that looks
like an endless user, a turn that never closes and lost playout reports can't block for ever: what lasts longer than
any person or reply does is not believed.
"""
from dataclasses import dataclass

from harness.settings import HarnessSettings
from venus_edge.metrics import METRICS

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
    """`see` every unit, then ask `free`, and `risk` where the usual quiet never comes."""

    __slots__ = ("_settings", "_pos", "_user", "_silent", "_turn", "_assistant", "_user_end", "_assistant_end", "_pause", "_pause_before",
                 "_window")

    def __init__(self, settings: HarnessSettings):
        self._settings = settings
        self._begin(0)

    def _begin(self, pos: int) -> None:
        self._pos = self._window = pos
        self._user: int | None = None
        self._silent: int | None = pos
        self._turn: int | None = None
        self._assistant: int | None = None
        self._user_end: int | None = None
        self._assistant_end: int | None = None
        self._pause = self._pause_before = 0

    def see(self, moment: Moment) -> None:
        if moment.pos < self._pos - RATE:  # the device was started anew: nothing seen before can be placed on its new clock
            METRICS.add("venus_harness_gate_restarts_total")
            self._begin(moment.pos)
        self._pos = pos = max(moment.pos, self._pos)
        self._user = _since(self._user, moment.user_speaking, pos)
        self._silent = _since(self._silent, not moment.user_speaking, pos)
        self._turn = _since(self._turn, moment.turn_open, pos)
        self._assistant = _since(self._assistant, moment.assistant_speaking, pos)
        if pos - self._window >= self._settings.max_wait_s * RATE:
            self._pause_before, self._pause, self._window = self._pause, 0, pos
        if self.user_busy:
            self._user_end = pos
        elif self._user_end is not None:
            self._pause = max(self._pause, pos - self._user_end)
        if self.assistant_busy:
            self._assistant_end = pos

    @property
    def user_busy(self) -> bool:
        noise = self._lasts(self._user) >= self._settings.max_wait_s
        if self._user is not None and not noise:
            return True
        if self._turn is None:
            return False
        stuck = self._lasts(self._turn) >= self._settings.max_wait_s
        return not (stuck and (noise or self._lasts(self._silent) >= self._settings.turn_stuck_s))

    @property
    def assistant_busy(self) -> bool:
        return self._assistant is not None and self._lasts(self._assistant) < self._settings.playout_stuck_s

    def free(self, *, after_user_s: float, after_assistant_s: float) -> bool:
        """Whether nobody speaks, and nobody has for that long."""
        if self.user_busy or self.assistant_busy:
            return False
        return (_quiet(self._user_end, self._pos) >= after_user_s * RATE
                and _quiet(self._assistant_end, self._pos) >= after_assistant_s * RATE)

    @property
    def risk(self) -> float:
        """How likely a reply begun now overlaps the user, 0..1: how far the silence so far is from the longest one of late.

        "Of late" is the last `max_wait_s` to twice that. 0 where it is as quiet as it ever got, 1 right after a word; nobody
        who hasn't spoken is a risk.
        """
        longest = max(self._pause, self._pause_before)
        if self._user_end is None or not longest:
            return 0.0
        return max(0.0, 1.0 - (self._pos - self._user_end) / longest)

    def _lasts(self, since: int | None) -> float:
        return 0.0 if since is None else (self._pos - since) / RATE


def _since(since: int | None, on: bool, pos: int) -> int | None:
    """Where the state that is `on` now began."""
    return None if not on else pos if since is None else since


def _quiet(end: int | None, pos: int) -> float:
    return float("inf") if end is None else pos - end
