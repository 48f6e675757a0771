"""The pure judgements: how much silence a turn needs, and who has the floor."""
import numpy as np
import pytest

from cloud_core.cascade.activity import Ring
from cloud_core.cascade.endpoint import EndpointSettings, Heard, is_noise, needed_silence_ms
from cloud_core.cascade.overlap import OverlapJudge, OverlapView
from cloud_core.front_end import Verdict

S = EndpointSettings()


def heard(text, **more):
    return Heard(0, 16_000, text, **{"confidence": 0.8, **more})


@pytest.mark.parametrize("what, ms", [
    (heard("Open the tailgate.", complete=True), S.complete_ms), (heard("I wonder.", finished=0.9), S.finished_ms),
    (heard("Find me a pharmacy.", complete=True, may_go_on=True), S.may_go_on_ms),
    (heard("I wonder", finished=0.2), S.plain_ms), (heard("Take me to the"), S.broken_off_ms), (heard("Take me to the", finished=0.99), S.broken_off_ms),
    (heard("mm-hmm", backchannel=True), S.finished_ms), (heard("", no_speech=0.9), S.finished_ms),
])
def test_silence_needed_follows_what_was_understood(what, ms):
    """Invariant: complete < finished < plain < broken off."""
    assert needed_silence_ms(what, S) == ms


def test_noise_is_what_has_no_words():
    """Invariant: brackets, dots and doubted words are no turn; clear words are."""
    assert is_noise(heard("[MUSIC]")) and is_noise(heard("...")) and is_noise(heard("you", confidence=0.1, no_speech=0.9))
    assert not is_noise(heard("22")) and not is_noise(heard("Stop."))


def view(voiced, silence=0.0, partial=None, final=None, acts=False):
    return OverlapView(voiced + silence + 40, voiced, silence, partial, final, acts)


@pytest.mark.parametrize("what, verdict, reason", [
    (view(200, partial=heard("No.")), Verdict.FLUSH, "stop"),
    (view(300, partial=heard("Set the", confidence=0.3)), Verdict.FLUSH, "interruption"),
    (view(800), Verdict.FLUSH, "interruption"),
    (view(300, 120, final=heard("Uh-huh.", backchannel=True)), Verdict.RESTORE, "backchannel"),
    (view(300, 120, partial=heard("Okay", backchannel=True)), Verdict.RESTORE, "backchannel"),
    (view(300, 120, final=heard("Namu", confidence=0.1)), Verdict.RESTORE, "short"),
    (view(300, 120, final=heard("", no_speech=0.9)), Verdict.RESTORE, "noise"),
    (view(600, 120, final=heard("Cancel that.", complete=True), acts=True), Verdict.FLUSH, "stop"),
    (view(600, 120, final=heard("Take me home.", complete=True), acts=True), Verdict.FLUSH, "interruption"),
])
def test_the_floor_goes_to_words_that_ask_and_to_long_speech(what, verdict, reason):
    """Invariant: a short sound without evidence restores; a stop word, an opening or length flushes."""
    assert OverlapJudge().judge(what) == (verdict, reason)


@pytest.mark.parametrize("what", [view(200), view(500), view(300, 40, final=heard("Uh-huh.", backchannel=True)), view(750, partial=heard("Okay", backchannel=True)),
                                  view(300, partial=heard("Mum", confidence=0.5))])
def test_without_evidence_the_judge_waits(what):
    """Invariant: no verdict before words, silence or length."""
    assert OverlapJudge().judge(what) is None


def test_the_judge_always_answers_in_the_end():
    """Invariant: after the limit there is a verdict whatever is missing."""
    judge = OverlapJudge()
    assert judge.judge(OverlapView(1400, 100, 900))[0] is Verdict.RESTORE
    assert judge.judge(OverlapView(1400, 100, 0))[0] is Verdict.FLUSH


def test_the_ring_gives_back_what_was_written_at_its_position():
    """Invariant: read(start, end) is what was written there, patches included, and never more than the ring holds."""
    ring, rng = Ring(1000), np.random.default_rng(0)
    truth = rng.integers(-9, 9, 16_000 * 40).astype(np.int16)
    for k in range(0, len(truth), 16_000):
        ring.write(1000 + k, truth[k:k + 16_000])
    ring.write(1000 + 600_000, np.full(500, 77, np.int16))
    truth[600_000:600_500] = 77
    assert (ring.read(1000 + 599_000, 1000 + 602_000) == truth[599_000:602_000]).all()
    assert len(ring.read(0, 10**9)) == len(ring) and ring.end == 1000 + len(truth)
    ring.write(0, np.ones(100, np.int16))
    ring.write(ring.end + 5, np.ones(100, np.int16))
    assert (ring.read(0, 10**9) == truth[-len(ring):]).all()
