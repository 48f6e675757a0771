"""The player counts exactly what left the loudspeaker, whatever happens to the speech on its way there."""

import numpy as np
import pytest

from device_sdk import AudioFormatError
from device_sdk.playout import MAX_QUEUED, Player
from device_sdk.wire import PlayState

BLOCK = 240
DELAY = 960


def tone(n, seed=0):
    """Speech-like samples that are never zero, so that silence can be told from them."""
    rng = np.random.default_rng(seed)
    return (rng.integers(4000, 20000, n) * rng.choice([-1, 1], n)).astype(np.int16)


class Dac:
    """Calls render block by block and keeps what it got; `left` is what has left the loudspeaker at the last call."""

    def __init__(self, player, block=BLOCK):
        self.player, self.block, self.out, self.calls = player, block, [], 0

    def run(self, blocks=1):
        for _ in range(blocks):
            pos = self.calls * 160
            self.out.append(self.player.render(self.block, pos, self.calls * 0.01))
            self.calls += 1

    @property
    def all(self):
        return np.concatenate(self.out)

    @property
    def left(self):
        """Samples that had left at the last call: all before that block, less the delay."""
        return self.all[:max(0, len(self.all) - self.block - DELAY)]


def test_a_segment_is_played_bit_for_bit_and_counted_at_dac_time():
    """`played` equals the samples in the recorded output at every block, and the whole segment comes out unchanged."""
    player, speech = Player(), tone(5000)
    dac = Dac(player)
    player.push("s", 0, speech)
    player.end("s")
    for _ in range(40):
        dac.run()
        assert player.get("s").played == np.count_nonzero(dac.left)
    assert np.array_equal(dac.all[:5000], speech)
    assert player.get("s").state is PlayState.ENDED and player.get("s").played == 5000


def test_flush_at_200_random_times_counts_exactly_what_came_out():
    """For any chunking, delay and moment, the final `played` is the number of samples in the recording, and they are the first ones."""
    rng = np.random.default_rng(20)
    stopped_inside = 0
    for trial in range(200):
        player, speech = Player(dac_delay_s=DELAY / 24_000), tone(24_000, trial)
        dac, sent, at = Dac(player), 0, int(rng.integers(0, 110))
        for block in range(180):
            if block == at:
                player.flush("s", "cloud")
            while sent < len(speech) and sent < (block + 8) * 300:
                n = int(rng.integers(1, 900))
                player.push("s", sent, speech[sent:sent + n])
                sent = min(len(speech), sent + n)
                if sent == len(speech):
                    player.end("s")
            before = player.get("s").played if player.get("s") else 0
            dac.run()
            assert player.get("s").played >= before
            assert player.get("s").played == np.count_nonzero(dac.left)
        segment, out = player.get("s"), dac.all[np.nonzero(dac.all)[0]]
        assert segment.state.final and segment.played == len(out)
        whole = len(out) if segment.state is PlayState.ENDED else max(0, len(out) - 120)
        assert np.array_equal(out[:whole], speech[:whole])
        if segment.state is PlayState.FLUSHED:
            assert segment.why == "cloud"
            stopped_inside += segment.played > 0
    assert stopped_inside > 100, "most trials must have stopped a segment that was being heard"


def test_flush_is_silent_within_one_block_after_a_fade():
    """The next block holds 5 ms that fall to nothing; the one after is silent."""
    player = Player()
    dac = Dac(player)
    player.push("s", 0, np.full(24_000, 10_000, np.int16))
    dac.run(10)
    player.flush()
    dac.run(2)
    fade, after = dac.out[-2], dac.out[-1]
    assert np.all(np.diff(fade[:120]) < 0) and np.all(fade[:120] > 0) and not fade[120:].any() and not after.any()


def test_flush_all_stops_queued_segments_unheard():
    """What has not begun ends as flushed with played 0, and late samples of it are ignored."""
    player = Player()
    dac = Dac(player)
    for seg in ("a", "b", "c"):
        player.push(seg, 0, tone(4800))
        player.end(seg)
    dac.run(5)
    assert player.flush(None, "user") == ["a", "b", "c"]
    player.push("b", 0, tone(4800))
    dac.run(20)
    assert [(s.id, s.state, s.played > 0) for s in player.segments()] == [
        ("a", PlayState.FLUSHED, True), ("b", PlayState.FLUSHED, False), ("c", PlayState.FLUSHED, False)]
    assert not player.sounding


def test_flush_of_an_unknown_segment_is_remembered():
    """A flush that overtakes its segment still stops it."""
    player = Player()
    assert player.flush("late") == ["late"]
    assert player.open("late") is False
    player.push("late", 0, tone(2400))
    dac = Dac(player)
    dac.run(20)
    assert not dac.all.any() and player.get("late").state is PlayState.FLUSHED


def test_segments_follow_each_other_without_a_hole():
    """Two complete segments come out back to back, in the order of opening, and nothing of one mixes into the other."""
    player, a, b = Player(), tone(1001, 1), tone(1007, 2)
    dac = Dac(player)
    player.open("a")
    player.open("b")
    player.push("b", 0, b)
    player.end("b")
    dac.run(3)
    assert not dac.all.any(), "the second waits for the first"
    player.push("a", 0, a)
    player.end("a")
    dac.run(30)
    assert np.array_equal(dac.all[720:720 + 2008], np.concatenate([a, b]))


def test_playing_starts_when_40_ms_are_there_or_the_segment_is_complete():
    player = Player()
    dac = Dac(player)
    player.push("a", 0, tone(959))
    dac.run(3)
    assert not dac.all.any()
    player.push("a", 959, tone(1))
    dac.run()
    assert dac.out[-1].all()
    short = Player()
    short.push("s", 0, tone(100))
    short.end("s")
    assert np.count_nonzero(short.render(BLOCK)) == 100


def test_an_underrun_of_300_ms_is_one_gap_of_300_ms():
    """The gap says where and how long; nothing is lost, and `played` stands still meanwhile."""
    player, speech = Player(), tone(4800)
    dac = Dac(player)
    player.push("s", 0, speech[:2400])
    dac.run(10 + 30)  # 100 ms of speech, 300 ms of nothing
    segment = player.get("s")
    assert segment.state is PlayState.UNDERRUN and segment.played == 2400
    player.push("s", 2400, speech[2400:])
    player.end("s")
    dac.run(30)
    assert segment.gaps == [[2400, 7200]] and segment.lost == []
    assert segment.state is PlayState.ENDED and segment.played == 4800
    heard = dac.all[np.nonzero(dac.all)[0]]
    assert np.array_equal(heard, speech)
    assert [e for e in player.events if e.kind == "gap"][0].length == 7200


def test_silence_after_the_last_sample_is_no_gap():
    """An end that arrives late is not an underrun."""
    player = Player()
    dac = Dac(player)
    player.push("s", 0, tone(2400))
    dac.run(15)
    player.end("s")
    dac.run(10)
    assert player.get("s").gaps == [] and player.get("s").state is PlayState.ENDED


def test_a_segment_that_never_ends_is_given_up():
    """After 5 s without a sample it is lost at what was heard, and the next one plays."""
    player = Player(lost_after_s=5.0)
    dac = Dac(player)
    player.push("s", 0, tone(2400))
    player.push("next", 0, tone(2400))
    player.end("next")
    dac.run(540)
    assert (player.get("s").state, player.get("s").played) == (PlayState.LOST, 2400)
    assert player.get("next").state is PlayState.ENDED


def test_holes_and_overlaps_keep_sample_numbers_right():
    """A hole is listed as lost and passed over; samples that were there already are skipped."""
    player, speech = Player(), tone(4000)
    dac = Dac(player)
    player.push("s", 0, speech[:1000])
    player.push("s", 500, speech[500:1500])
    player.push("s", 2000, speech[2000:])
    player.end("s")
    dac.run(30)
    heard = dac.all[np.nonzero(dac.all)[0]]
    assert np.array_equal(heard, np.concatenate([speech[:1500], speech[2000:]]))
    assert player.get("s").lost == [[1500, 500]] and player.get("s").played == 4000


def test_the_buffer_is_bounded_and_says_what_it_dropped():
    """More than 30 s in advance is dropped at the end, counted, and reported as lost; the rest plays."""
    player = Player(buffer_s=2.0)
    player.push("s", 0, tone(24_000 * 3))
    assert player.buffered == 48_000 and player.dropped == 24_000
    assert player.get("s").lost == [[48_000, 24_000]] and player.get("s").rx == 72_000


def test_the_queue_of_segments_is_bounded():
    player = Player()
    for i in range(MAX_QUEUED):
        assert player.open(f"s{i}")
    assert player.open("one too many") is False
    for i in range(200):
        player.flush(f"x{i}")
    assert len(player.segments()) <= MAX_QUEUED + 65


def test_duck_and_restore_are_ramps_to_the_right_level():
    """Ducking reaches -15 dB within one block, without a step; restoring takes 50 ms."""
    player = Player()
    dac = Dac(player)
    player.push("s", 0, np.full(48_000, 10_000, np.int16))
    dac.run(10)
    player.duck(-15)
    dac.run(2)
    ducked = round(10_000 * 10 ** (-15 / 20))
    assert abs(int(dac.out[-2][-1]) - ducked) <= 1 and np.all(np.abs(dac.out[-1] - ducked) <= 1)
    assert np.abs(np.diff(dac.out[-2].astype(int))).max() < 200
    player.restore()
    dac.run(6)
    assert np.abs(np.diff(np.concatenate(dac.out[-7:]).astype(int))).max() < 200 and np.all(dac.out[-1] == 10_000)
    assert player.get("s").played > 0


def test_volume_scales_what_is_heard():
    player = Player()
    dac = Dac(player)
    player.volume = 0.5
    player.push("s", 0, np.full(24_000, 10_000, np.int16))
    dac.run(20)
    assert np.all(dac.out[-1] == 5000)


def test_first_and_last_positions_are_dac_times():
    """`first_pos` is where the first sample left the loudspeaker: hand-over plus the delay, in device samples."""
    player = Player()
    dac = Dac(player)
    dac.run(7)
    player.push("s", 0, tone(2400))
    player.end("s")
    dac.run(30)
    segment = player.get("s")
    assert segment.first_pos == 7 * 160 + 640 and segment.last_pos == segment.first_pos + 1600
    assert np.nonzero(dac.all)[0][0] == 7 * BLOCK


def test_played_never_goes_back_when_the_delay_grows():
    player = Player()
    dac = Dac(player)
    player.push("s", 0, tone(48_000))
    dac.run(20)
    before = player.get("s").played
    player.set_dac_delay(0.3)
    dac.run(1)
    assert player.get("s").played == before
    dac.run(60)
    assert player.get("s").played > before


def test_samples_of_the_wrong_type_are_refused():
    with pytest.raises(AudioFormatError):
        Player().push("s", 0, np.zeros(10, np.float32))
