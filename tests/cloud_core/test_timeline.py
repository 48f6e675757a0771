"""What was heard is what the device confirmed; a delegate sees nothing that came after it opened."""
import numpy as np

from cloud_core.front_end import PlayoutMark, SegmentChunk, Span
from cloud_core.timeline import Timeline

WORDS = (Span("The nearest", 0, 1000), Span("charging station", 1000, 2500), Span("is close.", 2500, 4000))


def spoken(played=None, state="playing", confirmed=True):
    t = Timeline()
    t.chunk(SegmentChunk("s", 0, 24_000, np.zeros(4000, np.int16), WORDS, True, turn=1), pos=100)
    if played is not None:
        t.played(PlayoutMark("s", played, 24_000, state, confirmed))
    return t


def test_only_whole_confirmed_spans_count_as_heard():
    for played, heard in ((0, ""), (999, ""), (1000, "The nearest"), (2499, "The nearest"), (4000, "The nearest charging station is close.")):
        assert spoken(played).segments["s"].heard() == heard
    assert spoken().segments["s"].heard() == ""


def test_reports_never_go_backwards_nor_beyond_the_segment():
    t = spoken(2600)
    t.played(PlayoutMark("s", 1000, 24_000, "playing"))
    assert t.segments["s"].played == 2600
    t.played(PlayoutMark("s", 99_999, 24_000, "ended"))
    assert t.segments["s"].played == 4000 and not t.speaking()


def test_a_late_confirmation_corrects_an_assumed_end():
    t = spoken(1000, "flushed", confirmed=False)
    t.played(PlayoutMark("s", 2600, 24_000, "flushed"))
    assert t.segments["s"].heard() == "The nearest charging station" and t.segments["s"].confirmed


def test_entries_are_ordered_by_position_and_cut_at_the_opening():
    t = Timeline()
    t.add(500, "user", "user", "second")
    t.add(100, "user", "user", "first")
    t.add(900, "user", "user", "later")
    assert [e.text for e in t.before(500)] == ["first", "second"]


def test_the_ring_is_bounded():
    t = Timeline(capacity=10, keep=3)
    for k in range(50):
        t.add(k, "user", "user", str(k))
        t.chunk(SegmentChunk(f"s{k}", 0, 24_000, np.zeros(10, np.int16), (), True), k)
        t.played(PlayoutMark(f"s{k}", 10, 24_000, "ended"))
    assert len(t.before(1000)) == 10 and len(t.segments) <= 4


def test_what_was_closed_is_not_opened_again_by_a_report_from_before():
    """A report that was on its way when the end was assumed would block every further reply."""
    t = spoken(1000, "flushed", confirmed=False)
    t.played(PlayoutMark("s", 2600, 24_000, "playing"))
    assert not t.speaking() and t.segments["s"].heard() == "The nearest charging station" and not t.segments["s"].confirmed
