"""Units have exact length and position whatever the gate and the link do; nothing sent is lost, nothing is invented."""
import numpy as np
from hypothesis import given, settings, strategies as st

from cloud_core.mic import MARGIN_S, STALL_S, MicAssembler
from venus_edge.metrics import METRICS
from venus_edge.testing import VirtualClock


class Clock(VirtualClock):
    def set(self, t):
        self._now = t


def speech(pos, n):
    """Samples that carry their own position, so that a misplaced one is seen."""
    return ((np.arange(pos, pos + n) % 30_000) + 1).astype(np.int16)


def drain(mic):
    out = []
    while (unit := mic.take()) is not None:
        out.append(unit)
    return out


def test_packets_become_units_of_exact_length_in_order():
    mic = MicAssembler(Clock(), 40, 0)
    mic.gate(True, 0)
    for k in range(10):
        mic.packet(k * 320, speech(k * 320, 320))
    units = drain(mic)
    assert [u[0] for u in units] == [0, 640, 1280, 1920, 2560] and not any(u[2] for u in units)
    assert np.array_equal(np.concatenate([u[1] for u in units]), speech(0, 3200))


def test_a_closed_gate_gives_paced_zeros_behind_the_device_clock():
    clock = Clock()
    mic = MicAssembler(clock, 40, 0)
    mic.gate(False, 0)
    clock.set(1.0)
    units = drain(mic)
    assert all(u[2] and not u[1].any() for u in units)
    assert mic.cursor <= (1.0 - MARGIN_S) * 16_000 < mic.cursor + 640


def test_preroll_behind_the_cursor_travels_as_a_patch_and_live_samples_as_units():
    clock = Clock()
    mic = MicAssembler(clock, 40, 0)
    mic.gate(False, 0)
    clock.set(1.0)
    drain(mic)
    cursor = mic.cursor
    start = 16_000 - 4_800
    mic.gate(True, start)
    mic.packet(start, speech(start, 4_800), live=False)
    mic.packet(16_000, speech(16_000, 640))
    units = drain(mic)
    patch = units[0][3][0]
    assert patch.pos == start and np.array_equal(patch.samples, speech(start, cursor - start))
    assert np.array_equal(units[0][1], speech(cursor, 640)) and not units[0][2]


def test_a_gate_that_opens_ahead_of_the_cursor_does_not_stall():
    clock = Clock()
    mic = MicAssembler(clock, 40, 0)
    mic.gate(False, 0)
    mic.gate(True, 1_000)
    mic.packet(1_000, speech(1_000, 1_000))
    units = drain(mic)
    whole = np.concatenate([u[1] for u in units])
    assert len(units) == 3 and not whole[:1_000].any() and np.array_equal(whole[1_000:1_920], speech(1_000, 920))


def test_lost_packets_are_zeros_after_a_bounded_wait_and_counted():
    clock = Clock()
    mic = MicAssembler(clock, 40, 0)
    before = METRICS.get("venus_cloud_mic_samples_lost")
    mic.gate(True, 0)
    mic.packet(0, speech(0, 320))
    assert drain(mic) == []
    clock.set(STALL_S + 0.01)
    assert len(drain(mic)) >= 1
    assert METRICS.get("venus_cloud_mic_samples_lost") > before


def test_a_hole_with_later_samples_behind_it_does_not_hold_up_the_rest():
    mic = MicAssembler(Clock(), 40, 0)
    mic.gate(True, 0)
    mic.packet(0, speech(0, 320))
    for k in range(3, 40):
        mic.packet(k * 320, speech(k * 320, 320))
    units = drain(mic)
    assert units[0][0] == 0 and np.array_equal(units[3][1], speech(1920, 640)) and not units[1][1][:320].any()


def test_a_flood_is_bounded_and_goes_on():
    mic = MicAssembler(Clock(), 40, 0)
    mic.gate(True, 0)
    for k in range(2_000):
        mic.packet(k * 320, speech(k * 320, 320))
    units = drain(mic)
    assert len(units) * 640 <= len(mic._ring) and units[-1][0] + 640 == 2_000 * 320
    assert np.array_equal(units[-1][1], speech(units[-1][0], 640))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), min_size=1, max_size=8), st.sampled_from([20, 40, 100]))
def test_any_gate_pattern_loses_and_invents_nothing(pattern, unit_ms):
    """Open for a packets, closed for b: the units, patched, equal what was sent, zeros elsewhere."""
    clock = Clock()
    mic = MicAssembler(clock, unit_ms, 0)
    truth = np.zeros(0, np.int16)
    got = np.zeros(100 * 16_000, np.int16)
    pos = 0

    def collect():
        for at, samples, _, patches in drain(mic):
            got[at:at + len(samples)] = samples
            for p in patches:
                got[p.pos:p.pos + len(p.samples)] = p.samples

    for opened, closed in pattern:
        mic.gate(True, pos)
        for _ in range(opened):
            clock.set((pos + 320) / 16_000 + 0.003)
            mic.packet(pos, speech(pos, 320))
            truth = np.concatenate([truth, speech(pos, 320)])
            pos += 320
            collect()
        mic.gate(False, pos)
        for _ in range(closed):
            pos += 320
            truth = np.concatenate([truth, np.zeros(320, np.int16)])
            clock.set(pos / 16_000 + 0.003)
            collect()
    clock.set(pos / 16_000 + 1.0)
    collect()
    assert np.array_equal(got[:len(truth)], truth)


def test_an_impossible_position_is_refused_and_the_next_samples_are_heard():
    """Believed, it would put every later sample behind what was handed out: a deaf session and an endless run of empty units."""
    clock = Clock()
    mic = MicAssembler(clock, 40, 0)
    mic.device.saw(0)
    before = METRICS.get("venus_cloud_mic_positions_refused")
    mic.gate(True, 0)
    mic.packet(1 << 40, speech(0, 320))
    mic.gate(False, 1 << 50)
    mic.device.saw(1 << 50)
    for k in range(10):
        clock.set(k * 0.02)
        mic.packet(k * 320, speech(k * 320, 320))
    assert np.array_equal(np.concatenate([u[1] for u in drain(mic)]), speech(0, 3200))
    assert METRICS.get("venus_cloud_mic_positions_refused") == before + 3


def test_a_device_clock_that_stood_still_is_noticed_and_a_late_burst_is_not_mistaken_for_it():
    clock = Clock()
    mic = MicAssembler(clock, 40, 0)
    mic.gate(True, 0)
    for k in range(100):
        clock.set(k * 0.02)
        mic.packet(k * 320, speech(k * 320, 320))
    clock.set(7.0)  # five seconds without a packet: zeros went out in their place
    drain(mic)
    for k in range(100, 350):
        mic.packet(k * 320, speech(k * 320, 320))  # the link came back: all of it at once
    drain(mic)
    assert not mic.lost_sync
    clock.set(17.0)
    drain(mic)
    for k in range(350, 350 + 110):  # suspended for ten seconds: the device goes on where it stood
        clock.set(17.0 + (k - 350) * 0.02)
        mic.packet(k * 320, speech(k * 320, 320))
        drain(mic)
        assert k > 360 or not mic.lost_sync  # lateness counts from its own beginning, not from that of the burst
    assert mic.lost_sync
