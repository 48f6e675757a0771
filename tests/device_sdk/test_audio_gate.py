"""The gate sends each microphone sample at most once, in order, at its exact position, with a pre-roll and a count of the rest."""

import numpy as np
import pytest

from device_sdk.gates import AudioGate, GateMode, SpeechDetector
from device_sdk.gates.audio import Audio, Closed, Opened
from device_sdk.gates.speech import FRAME, SpeechOff, SpeechOn
from device_sdk.testing import ScriptedVad

RATE = 16_000


def numbered(n, loud):
    """Samples that tell their own position (mod 211), loud inside the given spans."""
    x = (np.arange(n) % 211 + 1).astype(np.int16)
    for start, end in loud:
        x[start:end] += 5000
    return x


def feed(gate, x, start=0, **kw):
    out = []
    for i in range(0, len(x) - 159, 160):
        out += [(start + i + 160, o) for o in gate.feed(x[i:i + 160], start + i, **kw)]
    return out


def of(out, kind):
    return [o for _, o in out if isinstance(o, kind)]


def test_positions_preroll_and_withheld_are_exact():
    """Every packet's samples are those of the microphone at its position; the first holds the 300 ms before the onset; what is
    missing is exactly what `withheld` says."""
    x = numbered(RATE * 6, [(20_480, 36_000), (60_001, 70_000)])
    gate = AudioGate(ScriptedVad(1000))
    out = feed(gate, x)
    packets = of(out, Audio)
    for packet in packets:
        assert np.array_equal(packet.samples, x[packet.pos:packet.pos + len(packet.samples)])
        assert len(packet.samples) <= 4800
    onsets = [o.pos for o in of(out, SpeechOn)]
    assert onsets[0] == 20_480 and len(onsets) == 2
    prerolls = [p for p in packets if p.preroll]
    assert [(p.pos, len(p.samples)) for p in prerolls] == [(onset - 4800, 4800) for onset in onsets]
    assert all(p.gap for p in prerolls) and sum(p.gap for p in packets) == 2
    sent = 0
    for _, o in out:
        if isinstance(o, Opened):
            assert o.withheld == o.pos - sent
            sent = o.pos
        elif isinstance(o, Audio):
            assert o.pos == sent
            sent += len(o.samples)
        elif isinstance(o, Closed):
            assert o.pos == sent
    assert len(of(out, Opened)) == len(of(out, Closed)) == 2


def test_opened_comes_before_its_packets_and_closed_after():
    gate = AudioGate(ScriptedVad(1000))
    out = [type(o).__name__ for _, o in feed(gate, numbered(RATE * 3, [(8000, 16_000)]))]
    assert out[:3] == ["SpeechOn", "Opened", "Audio"] and out[-1] == "Closed" and out[out.index("SpeechOff"):][-1] == "Closed"


def test_live_packets_are_20_ms():
    gate = AudioGate(ScriptedVad(1000))
    packets = of(feed(gate, numbered(RATE * 3, [(8000, 24_000)])), Audio)
    live = [len(p.samples) for p in packets if not p.preroll]
    assert set(live[:-1]) == {320} and live[-1] <= 320


def test_preroll_never_repeats_what_was_sent():
    """Speech that begins 200 ms after the gate closed has only 200 ms of pre-roll."""
    x = numbered(RATE * 5, [(8192, 16_384), (27_648, 36_000)])
    out = feed(AudioGate(ScriptedVad(1000)), x)
    packets = of(out, Audio)
    assert all(b.pos >= a.pos + len(a.samples) for a, b in zip(packets, packets[1:]))
    assert len(of(out, Opened)) == 2 and of(out, Opened)[1].withheld < 4800


def test_speech_is_noticed_within_100_ms():
    """Onset to notice: two frames and the rest of one, whatever the alignment."""
    for start in range(16_000, 16_512, 37):
        out = feed(AudioGate(ScriptedVad(1000)), numbered(RATE * 2, [(start, 30_000)]))
        noticed = next(at for at, o in out if isinstance(o, SpeechOn))
        assert noticed - start <= 0.1 * RATE


def test_a_click_is_no_speech_and_a_short_pause_no_end():
    x = numbered(RATE * 5, [(16_384, 16_600), (32_768, 40_000), (45_000, 52_000)])
    out = feed(AudioGate(ScriptedVad(1000)), x)
    assert len(of(out, SpeechOff)) == 1
    on = of(out, SpeechOn)
    assert [o.again for o in on] == [False, True] and on[0].pos >= 32_000


def test_offset_is_dated_back_to_the_last_voiced_frame():
    out = feed(AudioGate(ScriptedVad(1000)), numbered(RATE * 4, [(16_384, 32_768)]))
    noticed, off = next((at, o) for at, o in out if isinstance(o, SpeechOff))
    assert off.pos == 32_768 and abs(noticed - off.pos - 0.48 * RATE) <= FRAME


def test_hysteresis_table():
    """On needs two frames in a row at 0.5; between the thresholds speech stays but does not begin; strict asks for 0.85."""
    detector = SpeechDetector()
    steps = [(0.6, None), (0.4, None), (0.6, None), (0.6, SpeechOn)] + [(0.4, None)] * 30 + [(0.1, None)] * 14 + [(0.1, SpeechOff)]
    for k, (p, kind) in enumerate(steps):
        got = detector.feed(p, k * FRAME)
        assert (got is None) if kind is None else isinstance(got, kind), (k, got)
    strict = SpeechDetector()
    assert all(strict.feed(0.8, k * FRAME, strict=True) is None for k in range(10))
    strict.feed(0.9, 10 * FRAME, strict=True)
    assert strict.feed(0.9, 11 * FRAME, strict=True).pos == 10 * FRAME


def test_always_on_sends_everything():
    x = numbered(RATE * 2, [])
    out = feed(AudioGate(ScriptedVad(1000), mode=GateMode.ALWAYS), x)
    sent = np.concatenate([p.samples for p in of(out, Audio)])
    assert np.array_equal(sent, x[:len(sent)]) and len(x) - len(sent) < 320 and not of(out, Closed)


def test_push_to_talk_follows_the_button():
    """Speech alone sends nothing; the button opens with what was said just before it."""
    gate = AudioGate(ScriptedVad(1000), mode=GateMode.PUSH_TO_TALK)
    x = numbered(RATE * 2, [(0, RATE * 2)])
    assert not of(feed(gate, x), Audio)
    gate.talking = True
    out = feed(gate, x, start=RATE * 2)
    assert of(out, Opened)[0].pos == RATE * 2 + 160 - 4800
    gate.talking = False
    assert of(feed(gate, x[:160], start=RATE * 4), Closed)[0].pos == RATE * 4 + 160


def test_disabled_holds_back_and_opens_in_the_middle_of_speech():
    """Nobody was there to hear the beginning: what follows starts with 300 ms of it, and the count is right."""
    gate = AudioGate(ScriptedVad(1000))
    gate.enabled = False
    x = numbered(RATE * 2, [(0, RATE * 2)])
    assert not of(feed(gate, x), Audio)
    gate.enabled = True
    opened = of(feed(gate, x[:160], start=RATE * 2), Opened)[0]
    assert opened.pos == opened.withheld == RATE * 2 + 160 - 4800


@pytest.mark.parametrize("level, asked", [(3, 0), (300, 1)])
def test_the_energy_floor_spares_the_model(level, asked):
    """Below the floor the model isn't run; above it, it is."""

    class Counting(ScriptedVad):
        calls = 0

        def __call__(self, frame):
            self.calls += 1
            return super().__call__(frame)

    vad = Counting(1000)
    feed(AudioGate(vad, floor_dbfs=-60), np.full(RATE, level, np.int16))
    assert (vad.calls > 0) == bool(asked)


def test_a_calm_stretch_refreshes_the_model_and_speech_never_does():
    """The model's state drifts in long noise until it is deaf: 3 s of calm reset it, and nothing resets it while somebody speaks."""
    class Judge:
        def __init__(self):
            self.probability, self.resets = 0.05, 0

        def __call__(self, frame):
            return self.probability

        def skip(self, frame):
            pass

        def reset(self):
            self.resets += 1

    judge = Judge()
    gate = AudioGate(judge)
    block = np.full(160, 300, np.int16)
    for k in range(700):
        gate.feed(block, k * 160)
    assert judge.resets == 2
    judge.probability = 0.9
    for k in range(700, 1400):
        gate.feed(block, k * 160)
    assert judge.resets == 2 and gate.speaking
