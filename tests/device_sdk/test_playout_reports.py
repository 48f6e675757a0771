"""What the device tells about its playout reaches the same end at the receiver, whatever the link loses, doubles or reorders."""

import random

import numpy as np
import pytest

from device_sdk.playout import Player
from device_sdk.playout_reports import PlayoutReporter
from device_sdk.wire import PlayoutLedger, PlayoutReport, PlayState, encode_report


def speech(n):
    return np.full(n, 5000, np.int16)


class Device:
    """A player and its reporter on a 10 ms beat; `sent` is (time, report, reliable)."""

    def __init__(self):
        self.player = Player()
        self.reporter = PlayoutReporter(self.player, "k3f9")
        self.sent, self.calls = [], 0

    def run(self, blocks):
        for _ in range(blocks):
            now = self.calls * 0.01
            self.player.render(240, self.calls * 160, now)
            self.sent += [(now, report, reliable) for report, reliable in self.reporter.due_reports(now)]
            self.calls += 1


def a_conversation(device):
    """Three segments: one heard whole, one flushed in the middle, one with a gap, and one flushed before it began."""
    player = device.player
    player.push("a", 0, speech(9600))
    player.end("a")
    player.push("b", 0, speech(24_000))
    device.run(60)
    player.flush("b", "vad")
    device.run(20)
    player.push("c", 0, speech(4800))
    device.run(50)
    player.push("c", 4800, speech(2400))
    player.end("c")
    player.open("d")
    device.run(10)
    player.flush("d")
    device.run(60)


def test_first_report_within_20_ms_then_every_100_ms():
    """The first sample is reported at once and reliably; progress follows at the asked rate and is lossy."""
    device = Device()
    device.player.push("s", 0, speech(24_000))
    device.run(60)
    first_sample_s = device.player.get("s").first_pos / 16_000
    times = [t for t, report, reliable in device.sent if report.played > 0]
    assert 0 <= times[0] - first_sample_s <= 0.02
    assert device.sent[0][2] is True
    progress = [t for t, _, reliable in device.sent if not reliable]
    assert len(progress) >= 4 and np.allclose(np.diff(progress), 0.1)


def test_edges_are_repeated_until_acknowledged():
    """0, 100 and 300 ms after it happened, with the same n; an acknowledgement ends that."""
    device = Device()
    device.player.push("s", 0, speech(2400))
    device.player.end("s")
    device.run(100)
    finals = [(t, r.n) for t, r, reliable in device.sent if r.st == "ended"]
    assert len({n for _, n in finals}) == 1
    assert np.allclose([t - finals[0][0] for t, _ in finals], [0, 0.1, 0.3])
    other = Device()
    other.player.push("s", 0, speech(2400))
    other.player.end("s")
    for _ in range(100):
        other.run(1)
        for _, report, reliable in other.sent[-3:]:
            if reliable:
                other.reporter.ack(report.n)
    assert sum(r.st == "ended" for _, r, _ in other.sent) == 1 and other.reporter.unacknowledged == 0


def test_silent_when_nothing_plays():
    device = Device()
    device.run(200)
    assert device.sent == []


def test_a_long_underrun_is_an_edge():
    """More than 100 ms of silence inside a segment is told reliably, and so is its end."""
    device = Device()
    device.player.push("s", 0, speech(2400))
    device.run(40)
    assert any(r.st == "underrun" and reliable for _, r, reliable in device.sent)
    device.player.push("s", 2400, speech(9600))
    device.run(10)
    after = [(r, reliable) for _, r, reliable in device.sent if r.gaps and r.st == "playing"]
    assert after[0][1] and after[0][0].gaps[0][0] == 2400


@pytest.mark.parametrize("seed", range(40))
def test_loss_doubling_and_reordering_change_nothing_in_the_end(seed):
    """With 30 % of all reports lost, some doubled and all reordered by up to 300 ms, the ledger ends in the same final states."""
    rng = random.Random(seed)
    device = Device()
    a_conversation(device)
    perfect = PlayoutLedger()
    for _, report, _ in device.sent:
        perfect.apply(report)
    arrivals = []
    for t, report, _ in device.sent:
        for _ in range(2 if rng.random() < 0.2 else 1):
            if rng.random() >= 0.3:
                arrivals.append((t + rng.random() * 0.3, rng.random(), report))
    reported_again = device.reporter.snapshot(device.calls * 0.01)  # a link that loses this much reconnects in the end
    ledger, last = PlayoutLedger(), {}
    for _, _, report in sorted(arrivals, key=lambda item: item[:2]):
        state = ledger.apply(report)
        if state is not None:
            assert state.played >= last.get(report.seg, 0), "played never goes back"
            last[report.seg] = state.played
    for report in reported_again:
        ledger.apply(report)
    for seg in "abcd":
        mine, right = ledger.get(seg), perfect.get(seg)
        assert (mine.state, mine.played, mine.gaps, mine.why) == (right.state, right.played, right.gaps, right.why)
    assert [perfect.get(s).state for s in "abcd"] == [PlayState.ENDED, PlayState.FLUSHED, PlayState.ENDED, PlayState.FLUSHED]
    assert ledger.stale > 0, "the link did double or reorder something"


def test_repeats_alone_survive_most_losses():
    """Three sends of each edge: with 30 % loss and no snapshot, at least 95 % of final states still arrive."""
    rng, arrived, total = random.Random(1), 0, 0
    for _ in range(40):
        device, ledger = Device(), PlayoutLedger()
        a_conversation(device)
        for _, report, _ in device.sent:
            if rng.random() >= 0.3:
                ledger.apply(report)
        total += 4
        arrived += sum(ledger.get(s) is not None and ledger.get(s).final for s in "abcd")
    assert arrived / total >= 0.95


def test_the_largest_report_fits_its_limit():
    """Longest id, eight gaps and four lost ranges of large numbers stay under 600 bytes."""
    big = 24_000 * 600
    report = PlayoutReport(
        boot="1z141z3", n=2**32 - 1, seg="x" * 64, r=48_000, played=big, buf=big, rx=2 * big, t=2**52, pos=2**52, st="underrun", err=big,
        dac=big, gaps=[[big, big]] * 8, vol=0.123, out="x" * 16, why="cloud", first_pos=2**52, lost=[[big, big]] * 4)
    assert len(encode_report(report)) <= 600


def test_snapshot_holds_the_last_sixteen():
    device = Device()
    for i in range(20):
        device.player.push(f"s{i}", 0, speech(240))
        device.player.end(f"s{i}")
    device.run(60)
    assert [r.seg for r in device.reporter.snapshot(1.0)] == [f"s{i}" for i in range(4, 20)]
