"""The receiver keeps the newest (boot, n) of each segment, and never unlearns."""

from device_sdk.wire import PlayoutLedger, PlayoutReport, PlayState


def report(seg="s", n=1, boot="a", played=0, st="playing", rx=100):
    return PlayoutReport(boot=boot, n=n, seg=seg, r=24_000, played=played, buf=rx - played, rx=rx, t=n, pos=n, st=st)


def test_newest_n_wins():
    ledger = PlayoutLedger()
    assert ledger.apply(report(n=5, played=50)).played == 50
    assert ledger.apply(report(n=4, played=40)) is None
    assert ledger.apply(report(n=5, played=50)) is None
    assert ledger.get("s").played == 50 and ledger.stale == 2
    assert ledger.get("unknown") is None


def test_played_never_goes_back():
    """Even a newer report that claims less (a broken sender) can't take back what was confirmed."""
    ledger = PlayoutLedger()
    ledger.apply(report(n=1, played=80))
    assert ledger.apply(report(n=2, played=10)).played == 80


def test_final_is_final():
    ledger = PlayoutLedger()
    ledger.apply(report(n=3, played=60, st="flushed"))
    assert ledger.apply(report(n=9, played=70)) is None
    assert ledger.get("s").state is PlayState.FLUSHED and ledger.get("s").final


def test_a_new_boot_closes_what_was_open_as_lost():
    """After a restart of the device nothing more will be heard of the old segments: they end at what was confirmed."""
    ledger = PlayoutLedger()
    ledger.apply(report("done", 1, played=100, st="ended"))
    ledger.apply(report("open", 2, played=30))
    closed = ledger.new_boot("b")
    assert [(s.seg, s.state, s.played) for s in closed] == [("open", PlayState.LOST, 30)]
    assert ledger.get("done").state is PlayState.ENDED
    assert ledger.apply(report("open", 99, boot="a", played=90)) is None, "the old boot never comes back"
    assert ledger.apply(report("new", 1, boot="b", played=5)).played == 5
    assert ledger.new_boot("b") == [] and ledger.new_boot("a") == []


def test_a_segment_belongs_to_the_boot_that_played_it():
    ledger = PlayoutLedger()
    ledger.apply(report("s", 5, boot="a", played=50))
    ledger.new_boot("b")
    assert ledger.apply(report("s", 9, boot="b", played=70)) is None


def test_memory_is_bounded():
    ledger = PlayoutLedger()
    for i in range(500):
        ledger.apply(report(f"s{i}", i + 1, played=1))
    assert len(ledger.states()) == 64 and ledger.get("s499") is not None and ledger.get("s0") is None


def test_positions_are_extrapolated_from_the_report():
    ledger = PlayoutLedger()
    state = ledger.apply(report(n=10, played=24))
    assert state.pos_of(24) == 10 and state.pos_of(24 + 2400) == 10 + 1600
