"""The evidence ring: what was consumed when the span opened, cut to the sample, in shared memory that is given back."""
import array
import gc
import pickle
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.capture.media import Audio, EvidenceRing, Picture, RingLimits
from harness.errors import BadRequest
from harness.evidence import AudioClip, Evidence, Frame
from venus_edge.metrics import METRICS

UNIT = 16_000


class Buffer(bytearray):
    """A bytearray that can be watched."""


def samples(start, end):
    """Samples that carry their own position."""
    return array.array("h", [pos % 30_011 for pos in range(start, end)])


def filled(units=5, limits=None, consumed=None, at=0):
    """A ring with seconds 0 to `units`, a frame in the middle of each, consumed up to `consumed` of them."""
    ring = EvidenceRing(limits)
    for k in range(units):
        ring.received(Audio(at + k * UNIT, samples(at + k * UNIT, at + (k + 1) * UNIT), k + 1))
        ring.received(Picture(at + k * UNIT + UNIT // 2, b"frame %d" % k, "image/jpeg", k + 1))
    consumed = units if consumed is None else consumed
    ring.consumed(at + consumed * UNIT, consumed)
    return ring


def spans(snapshot):
    return [(m.start, m.end) for m in snapshot if isinstance(m, AudioClip)]


def frames(snapshot):
    return [m.pos for m in snapshot if isinstance(m, Frame)]


def heard(snapshot):
    """{position: sample}; fails if a sample is there twice."""
    found = {}
    for clip in snapshot:
        if isinstance(clip, AudioClip):
            values = clip.view.cast("h")
            assert len(values) == clip.end - clip.start and found.keys().isdisjoint(range(clip.start, clip.end))
            found.update(zip(range(clip.start, clip.end), values))
    return found


def count(name):
    return METRICS.get(f"venus_harness_evidence_{name}_total")


def test_the_window_is_cut_to_the_sample():
    """[opened - window, opened), nothing before and nothing after."""
    snapshot = filled().freeze(40_001, 5, 1.5)
    assert spans(snapshot) == [(16_001, 32_000), (32_000, 40_001)] and frames(snapshot) == [24_000, 40_000]
    assert heard(snapshot) == {pos: pos % 30_011 for pos in range(16_001, 40_001)}


def test_what_was_received_and_not_consumed_is_outside():
    """Under backlog the model has heard less than arrived; evidence is what it has heard, even if the opening claims more."""
    snapshot = filled(units=5, consumed=2).freeze(5 * UNIT, 5, 60)
    assert spans(snapshot) == [(0, UNIT), (UNIT, 2 * UNIT)] and frames(snapshot) == [8_000, 24_000]
    assert not filled(consumed=0).freeze(5 * UNIT, 5, 60).items and not EvidenceRing().freeze(UNIT, 1, 60).items


def test_both_the_position_and_the_sequence_bound_what_was_consumed():
    """Audio ahead of the position and items of later units are outside, each on its own; and consumption never goes back."""
    behind, early = filled(consumed=0), filled(consumed=0)
    behind.consumed(UNIT, 5)
    assert spans(behind.freeze(5 * UNIT, 5, 60)) == [(0, UNIT)] and frames(behind.freeze(5 * UNIT, 5, 60)) == [8_000]
    early.consumed(5 * UNIT, 2)
    early.consumed(UNIT, 1)
    assert spans(early.freeze(5 * UNIT, 5, 60)) == [(0, UNIT), (UNIT, 2 * UNIT)] and frames(early.freeze(5 * UNIT, 5, 60)) == [8_000, 24_000]


def test_what_was_consumed_after_the_opening_is_outside():
    """A snapshot may be taken later than the span opened."""
    snapshot = filled(units=5).freeze(2 * UNIT, 2, 60)
    assert spans(snapshot) == [(0, UNIT), (UNIT, 2 * UNIT)] and frames(snapshot) == [8_000, 24_000]


def test_a_late_packet_is_evidence_only_of_later_spans():
    """Pre-roll lies before the position, but the model got it in a later unit."""
    ring = EvidenceRing()
    ring.received(Audio(UNIT, samples(UNIT, 2 * UNIT), 2))
    ring.consumed(2 * UNIT, 2)
    ring.received(Audio(0, samples(0, UNIT), 3))
    ring.received(Picture(100, b"late", "image/png", 3))
    ring.consumed(3 * UNIT, 3)
    assert spans(ring.freeze(2 * UNIT, 2, 60)) == [(UNIT, 2 * UNIT)] and not frames(ring.freeze(2 * UNIT, 2, 60))
    assert spans(ring.freeze(3 * UNIT, 3, 60)) == [(0, UNIT), (UNIT, 2 * UNIT)] and frames(ring.freeze(3 * UNIT, 3, 60)) == [100]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), max_size=25), st.integers(0, 50), st.integers(0, 50), st.integers(0, 10 ** 12))
def test_order_duplicates_overlaps_and_gaps_do_not_matter(packets, opened, window, offset):
    """Each sample that arrived and lies in the window is there once, in order, with its value; on any device clock."""
    ring = EvidenceRing()
    for start, length in packets:
        ring.received(Audio(offset + 100 * start, samples(offset + 100 * start, offset + 100 * (start + length)), 1))
    ring.consumed(offset + 100 * 60, 1)
    snapshot = ring.freeze(offset + 100 * opened, 1, 100 * window / UNIT)
    arrived = {pos for start, length in packets for pos in range(offset + 100 * start, offset + 100 * (start + length))}
    wanted = {pos for pos in arrived if offset + 100 * (opened - window) <= pos < offset + 100 * opened}
    assert heard(snapshot) == {pos: pos % 30_011 for pos in wanted} and spans(snapshot) == sorted(spans(snapshot))


def test_the_same_packet_twice_is_kept_once():
    ring, before = filled(units=2), count("duplicate")
    held = ring.nbytes
    assert not ring.received(Audio(0, samples(0, UNIT), 1)) and not ring.received(Audio(100, samples(100, 200), 2))
    assert not ring.received(Picture(8_000, b"frame 0", "image/jpeg", 1)) and ring.received(Picture(8_000, b"other", "image/jpeg", 1))
    assert count("duplicate") == before + 3 and ring.nbytes == held + 5


def test_a_refused_buffer_stays_the_callers():
    """The same bytearray twice must not zero the one that is held."""
    ring, buffer = EvidenceRing(), bytearray(samples(0, 100))
    assert ring.received(Audio(0, buffer, 1)) and not ring.received(Audio(0, buffer, 1))
    assert buffer == bytearray(samples(0, 100))


def test_positions_of_another_clock_are_refused_or_moved_back():
    """A frame stamped 15 s ahead was taken no later than what is known; audio that far off can't be placed; no evidence is lost by it."""
    ring, skewed = filled(units=5), count("skew")
    assert ring.received(Picture(20 * UNIT, b"ahead", "image/jpeg", 5)) and ring.received(Picture(5 * UNIT + 100, b"soon", "image/jpeg", 6))
    assert not ring.received(Audio(40 * UNIT, samples(0, 100), 5)) and count("skew") == skewed + 2
    snapshot = ring.freeze(5 * UNIT, 5, 60)
    assert frames(snapshot)[-1] == 5 * UNIT and len(spans(snapshot)) == 5
    gated = EvidenceRing()
    gated.received(Audio(0, samples(0, 100), 1))
    gated.consumed(20 * UNIT, 20)
    gated.received(Picture(20 * UNIT, b"the gate is closed, units go on", "image/jpeg", 20))
    assert frames(gated.freeze(20 * UNIT, 20, 60)) == [20 * UNIT]
    late = filled(units=90)
    assert not late.received(Audio(UNIT, samples(0, 100), 90)) and len(spans(late.freeze(90 * UNIT, 90, 12))) == 12


def test_a_snapshot_shares_the_rings_memory():
    """Nothing is copied, and nobody can write through it."""
    ring, data, picture = EvidenceRing(), samples(0, UNIT), bytearray(b"jpeg")
    ring.received(Audio(0, data, 1))
    ring.received(Picture(0, picture, "image/jpeg", 1))
    ring.consumed(UNIT, 1)
    clip, frame = ring.freeze(UNIT, 1, 0.5).items[:1] + ring.freeze(UNIT, 1, 60).items[1:]
    assert clip.view.obj is data and frame.view.obj is picture
    data[8_000], picture[0] = 77, ord("J")
    assert clip.view.cast("h")[0] == 77 and bytes(frame.view) == b"Jpeg" and clip.view.readonly and frame.view.readonly


def test_after_release_and_eviction_the_buffers_are_gone():
    """Neither the ring nor a snapshot keeps them; before that, either does."""
    ring = EvidenceRing()
    buffer = Buffer(samples(0, UNIT))
    watch = weakref.ref(buffer)
    ring.received(Audio(0, buffer, 1))
    del buffer
    ring.consumed(UNIT, 1)
    evidence = Evidence.freeze(UNIT, 1, media=ring.freeze(UNIT, 1, 60))
    ring.consumed(100 * UNIT, 2)
    gc.collect()
    assert len(ring) == 0 and ring.nbytes == 0 and len(evidence.media[0].view) == 2 * UNIT and watch() is not None
    evidence.release()
    gc.collect()
    assert watch() is None
    with pytest.raises(ValueError, match="released"):
        evidence.media[0].view[0]


def test_each_task_of_a_span_holds_the_evidence():
    """Two calls in a span: the media stay until the second task ends, and a release too many does nothing."""
    evidence = Evidence.freeze(UNIT, 1, media=filled().freeze(UNIT, 1, 60))
    evidence.retain()
    evidence.release()
    assert evidence.media[0].view[0] == 0
    evidence.release()
    evidence.release()
    with pytest.raises(ValueError):
        evidence.media[0].view[0]
    with pytest.raises(BadRequest, match="released"):
        evidence.retain()
    Evidence.freeze(UNIT, 1).release()


def test_own_buffers_are_zeroed_when_nobody_needs_them():
    """At close those in the ring alone; the others when the last snapshot is released. A caller's bytes are never touched."""
    ring = EvidenceRing()
    held, free, foreign = bytearray(samples(0, 100)), bytearray(samples(100, 200)), samples(200, 300)
    for pos, data in ((0, held), (100, free), (200, foreign)):
        ring.received(Audio(pos, data, 1))
    ring.consumed(300, 1)
    snapshot = ring.freeze(100, 1, 60)
    ring.close()
    assert not any(free) and any(held) and any(foreign) and len(ring) == 0
    snapshot.release()
    assert not any(held) and any(foreign)
    assert not ring.received(Audio(300, samples(0, 10), 2)) and len(ring) == 0


def test_a_worker_that_keeps_a_view_does_not_break_the_release(caplog):
    """It reads zeros, or what is not ours; the fault is logged."""
    ring, data = EvidenceRing(), bytearray(samples(0, 100))
    ring.received(Audio(0, data, 1))
    ring.consumed(100, 1)
    snapshot = ring.freeze(100, 1, 60)
    kept = pickle.PickleBuffer(snapshot.items[0].view)
    ring.close()
    snapshot.release()
    assert not any(memoryview(kept)) and "kept a view" in caplog.text


def test_the_ring_is_bounded_in_time_bytes_frames_and_items():
    """Whatever arrives, also what is never consumed."""
    ring = filled(units=100, limits=RingLimits(keep_s=10))
    assert spans(ring.freeze(100 * UNIT, 100, 99))[0] == (90 * UNIT, 91 * UNIT)
    small = filled(units=50, limits=RingLimits(max_bytes=100_000, max_frames=4), consumed=0)
    assert small.nbytes <= 100_000
    small.consumed(50 * UNIT, 50)
    newest = small.freeze(50 * UNIT, 50, 60)
    assert len(frames(newest)) <= 4 and spans(newest)[-1] == (49 * UNIT, 50 * UNIT)
    assert not small.received(Audio(50 * UNIT, bytes(100_002), 51))
    assert len(filled(units=50, limits=RingLimits(max_items=10))) == 10


def test_a_reboot_begins_a_new_clock():
    """Positions start again at 0; nothing old can be placed."""
    ring = filled(units=5)
    ring.restart()
    ring.received(Audio(0, samples(0, 100), 1))
    ring.consumed(100, 1)
    assert spans(ring.freeze(100, 1, 60)) == [(0, 100)] and len(ring) == 1


@pytest.mark.parametrize("item, field", [(Audio(-1, b"ab", 1), "pos"), (Audio(0, b"ab", -1), "seq"), (Audio(0, b"abc", 1), "data"),
                                         (Audio(0, b"", 1), "data"),
                                         (Audio(0, "words", 1), "data"), (Picture(0, memoryview(b"abcd")[::2], "image/png", 1), "data")])
def test_bad_media_name_the_field(item, field):
    with pytest.raises(BadRequest) as caught:
        EvidenceRing().received(item)
    assert caught.value.data["field"] == field and caught.value.message.startswith(field)


def test_numpy_samples_are_shared_too():
    """Whoever has arrays needs no conversion."""
    np = pytest.importorskip("numpy")
    ring, data = EvidenceRing(), np.arange(100, dtype=np.int16)
    ring.received(Audio(0, data, 1))
    ring.consumed(100, 1)
    clip = ring.freeze(100, 1, 60).items[0]
    assert np.shares_memory(np.frombuffer(clip.view, np.int16), data)
