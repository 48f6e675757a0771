"""What the device does by itself, within a block: duck when somebody speaks over it, restore or flush when told or by policy.

    state     event                                        next      action
    idle      speech begins (or goes on after a pause)     ducked    duck, if something is being heard
    ducked    cloud: restore                               idle      restore (cloud)
    ducked    cloud: flush                                 idle      flush (cloud)
    ducked    no verdict for 1.5 s, and speech is over     idle      restore (vad)
    ducked    nothing is left to play                      idle      restore (vad)
    any       link down, something is heard, and speech has lasted 0.7 s over it
                                                           idle      flush (vad)
    any       the user stops it                            idle      flush (user)

Times are device samples, so they hold on any clock. Ducking is not stopping: both are reported, apart.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from device_sdk.playout import Player
from device_sdk.wire.topics import MIC_RATE


@dataclass(frozen=True)
class ReflexAction:
    """One thing the reflex did, as it is reported: `seg` and `played` tell what was being heard."""

    action: str
    reason: str
    pos: int
    seg: str
    played: int


class Reflex:
    """`speech` and `tick` come from the audio side, `cloud_*` and `link` from the transport; `tell` gets every action."""

    def __init__(self, player: Player, tell: Callable[[ReflexAction], None], *, duck_db: float = -15.0,
                 verdict_s: float = 1.5, offline_flush_s: float = 0.7):
        self._player, self._tell, self._duck_db = player, tell, duck_db
        self._verdict = round(verdict_s * MIC_RATE)
        self._offline = round(offline_flush_s * MIC_RATE)
        self.link_up = True
        self.speaking = False
        self._ducked_at: int | None = None
        self._over_since: int | None = None  # since when somebody has been speaking over what is heard
        self._done: deque[str] = deque(maxlen=32)  # flush and restore ids that were obeyed; the cloud repeats them

    @property
    def ducked(self) -> bool:
        return self._ducked_at is not None

    def speech(self, on: bool, onset: int, pos: int) -> None:
        """Speech began at `onset` (again, after a pause) or ended; noticed at `pos`."""
        self.speaking = on
        if not on:
            self._over_since = None
        elif self._player.sounding:
            self._over_since = onset if self._over_since is None else self._over_since
            if not self.ducked:
                self._ducked_at = pos
                self._player.duck(self._duck_db)
                self._say("duck", "vad", pos)

    def cloud_restore(self, key: str, pos: int) -> None:
        if not self._seen(key) and self.ducked:
            self._restore("cloud", pos)

    def cloud_flush(self, key: str, seg: str | None, pos: int) -> None:
        """Stop `seg` (None: everything). A repeat of the same id only makes the final report be told again."""
        if self._seen(key):
            if seg is not None:
                self._player.flush(seg, "cloud")
            return
        self.flush(seg, "cloud", pos)

    def flush(self, seg: str | None, reason: str, pos: int) -> list[str]:
        """Stop `seg` (None: everything), whoever wants it; the ids that were stopped."""
        heard = self._player.playing()
        stopped = self._player.flush(seg, reason)
        if stopped:
            if heard[0] in stopped or not self._player.sounding:
                self._unduck()
            told = heard if heard[0] in stopped else (stopped[0], self._player.get(stopped[0]).played)
            self._tell(ReflexAction("flush", reason, pos, *told))
        return stopped

    def link(self, up: bool) -> None:
        self.link_up = up

    def tick(self, pos: int) -> None:
        """Once per block: the policies that need time."""
        sounding = self._player.sounding
        if self.ducked:
            if not sounding:
                self._restore("vad", pos)
            elif not self.speaking and pos - self._ducked_at >= self._verdict:
                self._restore("vad", pos)
        if not sounding:
            self._over_since = None
        elif not self.link_up and self.speaking and self._over_since is not None and pos - self._over_since > self._offline:
            self._over_since = None
            self.flush(None, "vad", pos)

    def _restore(self, reason: str, pos: int) -> None:
        self._unduck()
        self._say("restore", reason, pos)

    def _unduck(self) -> None:
        self._ducked_at = None
        self._player.restore()

    def _say(self, action: str, reason: str, pos: int) -> None:
        self._tell(ReflexAction(action, reason, pos, *self._player.playing()))

    def _seen(self, key: str) -> bool:
        if key in self._done:
            return True
        self._done.append(key)
        return False
