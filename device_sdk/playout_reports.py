"""What the device tells about its playout: lossy progress every 100 ms while playing, edges repeated until acknowledged."""

from collections import deque
from dataclasses import dataclass

from device_sdk.playout import Player, Segment
from device_sdk.wire.playout_report import PlayoutReport, PlayState
from venus_edge.metrics import METRICS

EDGE_AT_S = (0.0, 0.1, 0.3)
"""An edge is sent at these times after it happened, until acknowledged."""
SNAPSHOT_SEGMENTS = 16
MAX_EDGES = 64


@dataclass
class _Edge:
    report: PlayoutReport
    since: float
    sent: int = 0


class PlayoutReporter:
    """Reads a Player and makes its reports. `due_reports(now)` is called once per audio block."""

    def __init__(self, player: Player, boot: str, *, report_s: float = 0.1, out: str = "spk"):
        self._player, self._boot, self.report_s, self._out = player, boot, report_s, out
        self._n = 0
        self._edges: deque[_Edge] = deque(maxlen=MAX_EDGES)
        self._last: dict[str, float] = {}

    def due_reports(self, now: float) -> list[tuple[PlayoutReport, bool]]:
        """(report, reliable) pairs to send now, in order."""
        due = []
        told = set()
        while self._player.edges:
            seg = self._player.edges.popleft()
            segment = self._player.get(seg)
            if segment is None or seg in told:
                continue
            told.add(seg)
            if len(self._edges) == MAX_EDGES:
                METRICS.add("venus_device_edges_dropped")
            self._edges.append(_Edge(self._report(segment, now), now))
        for edge in self._edges:
            if now - edge.since >= EDGE_AT_S[edge.sent] - 1e-6:
                edge.sent += 1
                due.append((edge.report, True))
        self._edges = deque((e for e in self._edges if e.sent < len(EDGE_AT_S)), MAX_EDGES)
        for segment in self._player.live:
            heard_something = segment.played > 0 and segment.state in (PlayState.PLAYING, PlayState.UNDERRUN)
            if heard_something and now - self._last.get(segment.id, -1e9) >= self.report_s - 1e-6:
                due.append((self._report(segment, now), False))
        return due

    def ack(self, n: int) -> None:
        """The agent has edge `n`; older edges of the same segment are covered by it."""
        seg = next((e.report.seg for e in self._edges if e.report.n == n), None)
        self._edges = deque((e for e in self._edges if not (e.report.seg == seg and e.report.n <= n)), MAX_EDGES)

    @property
    def unacknowledged(self) -> int:
        return len(self._edges)

    def snapshot(self, now: float) -> list[PlayoutReport]:
        """The last 16 segments as they stand, for a link that came back."""
        return [self._report(segment, now) for segment in self._player.segments()[-SNAPSHOT_SEGMENTS:]]

    def _report(self, segment: Segment, now: float) -> PlayoutReport:
        self._n += 1
        if segment.state.final:
            self._last.pop(segment.id, None)
        else:
            self._last[segment.id] = now
        player = self._player
        return PlayoutReport(
            boot=self._boot, n=self._n, seg=segment.id, r=player.out_rate, played=segment.played, buf=segment.rx - segment.played,
            rx=segment.rx, t=round(player.now * 1e6), pos=player.pos, st=str(segment.state), dac=player.delay,
            gaps=[list(g) for g in segment.gaps], vol=round(player.volume, 3), out=self._out, why=segment.why,
            first_pos=segment.first_pos if segment.played else -1, lost=[list(g) for g in segment.lost] or None,
        )
