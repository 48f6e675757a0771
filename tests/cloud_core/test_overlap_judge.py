"""Who takes the floor: people do, listeners don't. The figures are those of hums and words over the assistant's own echo."""
import pytest

from cloud_core.cascade.endpoint import Heard
from cloud_core.cascade.overlap import OverlapJudge, OverlapView
from cloud_core.front_end import Verdict


def heard(text, confidence, backchannel=False):
    return Heard(0, 8_000, text, confidence, backchannel=backchannel)


def final(text, confidence, voiced_ms, acts=False, backchannel=False):
    return OverlapJudge().judge(OverlapView(voiced_ms + 100, voiced_ms, 100, None, heard(text, confidence, backchannel), acts))


def partial(text, confidence, voiced_ms):
    return OverlapJudge().judge(OverlapView(voiced_ms, voiced_ms, 0, heard(text, confidence)))


@pytest.mark.parametrize("text, confidence, voiced_ms", [("No.", 0.14, 240), ("No more", 0.2, 250), ("more", 0.04, 250), ("What are you doing?", 0.42, 480)])
def test_what_a_hum_is_heard_as_stops_nothing(text, confidence, voiced_ms):
    assert final(text, confidence, voiced_ms, acts=len(text) > 10)[0] is Verdict.RESTORE
    assert partial(text, confidence, min(voiced_ms, 300)) is None or text.startswith("What")


@pytest.mark.parametrize("text, confidence, voiced_ms", [("No.", 0.4, 200), ("No, take me", 0.2, 460), ("Stop", 0.2, 200), ("Never mind", 0.6, 400), ("Set the timer", 0.3, 400)])
def test_words_that_take_the_floor_take_it_early(text, confidence, voiced_ms):
    assert partial(text, confidence, voiced_ms)[0] is Verdict.FLUSH


def test_a_request_and_a_listeners_signal_are_told_apart():
    assert final("How fast are we going?", 0.5, 1_000, acts=True)[0] is Verdict.FLUSH
    assert final("Mm-hmm.", 0.5, 500, backchannel=True) == (Verdict.RESTORE, "backchannel")


def test_long_speech_takes_the_floor_whatever_was_heard():
    assert OverlapJudge().judge(OverlapView(800, 760, 0))[0] is Verdict.FLUSH
