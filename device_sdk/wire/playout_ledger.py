"""The receiver's side of playout reports: what one device confirmed as played, whatever the link lost or reordered.

Newest (boot, n) wins and everything is cumulative. A boot that was superseded never comes back; a final state is never
undone by anything but a newer final one.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace

from device_sdk.wire.playout_report import PlayoutReport, PlayState

KEEP_SEGMENTS = 64
KEEP_BOOTS = 16


@dataclass(frozen=True)
class PlayoutState:
    """The newest that is known of one segment; samples count at the segment's own `rate`."""

    seg: str
    boot: str
    n: int
    rate: int
    played: int
    buf: int
    rx: int
    t: int
    pos: int
    first_pos: int
    state: PlayState
    why: str = ""
    dac: int = 0
    gaps: tuple[tuple[int, int], ...] = ()
    lost: tuple[tuple[int, int], ...] = ()

    @property
    def final(self) -> bool:
        return self.state.final

    def pos_of(self, sample: int) -> int:
        """Device position at which `sample` left (or will leave) the loudspeaker, extrapolated from this report; for display."""
        return self.pos + round((sample - self.played) * 16_000 / self.rate)


class PlayoutLedger:
    """`apply` every report that arrives; `get` the newest state of a segment. Holds the last 64 segments."""

    def __init__(self):
        self.boot: str | None = None
        self.stale = 0
        """Reports that were older than what is known."""
        self._segments: OrderedDict[str, PlayoutState] = OrderedDict()
        self._old_boots: OrderedDict[str, None] = OrderedDict()

    def new_boot(self, boot: str) -> list[PlayoutState]:
        """The device (re)started: every segment of an older boot that was not final is closed as lost at its last
        confirmed sample. Returns those; empty if `boot` is the current one or an older one."""
        if boot == self.boot or boot in self._old_boots:
            return []
        closed = []
        if self.boot is not None:
            self._old_boots[self.boot] = None
            while len(self._old_boots) > KEEP_BOOTS:
                self._old_boots.popitem(last=False)
        self.boot = boot
        for seg, state in self._segments.items():
            if not state.final:
                self._segments[seg] = lost = replace(state, state=PlayState.LOST)
                closed.append(lost)
        return closed

    def apply(self, report: PlayoutReport) -> PlayoutState | None:
        """Take one report; the segment's new state, or None if the report was a duplicate or too old."""
        if report.boot in self._old_boots:
            self.stale += 1
            return None
        self.new_boot(report.boot)
        known = self._segments.get(report.seg)
        if known is not None and (
            known.boot != report.boot or report.n <= known.n or (known.final and not report.state.final)
        ):
            self.stale += 1
            return None
        played = max(report.played, known.played if known else 0)
        state = PlayoutState(
            seg=report.seg, boot=report.boot, n=report.n, rate=report.r, played=played, buf=max(0, report.rx - played),
            rx=report.rx, t=report.t, pos=report.pos, first_pos=report.first_pos, state=report.state, why=report.why,
            dac=report.dac, gaps=tuple(map(tuple, report.gaps)), lost=tuple(map(tuple, report.lost or ())),
        )
        self._segments[report.seg] = state
        self._segments.move_to_end(report.seg)
        while len(self._segments) > KEEP_SEGMENTS:
            self._segments.popitem(last=False)
        return state

    def get(self, seg: str) -> PlayoutState | None:
        return self._segments.get(seg)

    def states(self) -> list[PlayoutState]:
        """All known segments, the least recently reported first."""
        return list(self._segments.values())
