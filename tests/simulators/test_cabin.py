"""The cabin around a real device SDK on virtual time: positions, recordings, the pace of the loop."""
import asyncio
import wave

import numpy as np
import pytest

from device_sdk import Device, DeviceSettings
from device_sdk.testing import FakeCloud, ScriptedVad
from simulators.car.acoustics import BLOCK, MIC_RATE, SPEAKER_BLOCK, SPEAKER_RATE, CabinSettings, responses
from simulators.car.cabin import LATE_S, Cabin
from simulators.car.cabin_process import Options
from simulators.car.script import Line, ScriptedPeople
from simulators.people.voices import levelled, trimmed
from simulators.scenario import When
from venus_edge.errors import ConfigError
from venus_edge.testing import VirtualClock
from venus_edge.trace import Trace

QUIET = CabinSettings(noise_db_at_50=-60, echo_db=0)


def words(seconds: float, seed: int = 5) -> np.ndarray:
    x = np.random.default_rng(seed).standard_normal(round(seconds * MIC_RATE)) * 0.1
    return levelled(trimmed(x * (0.6 + 0.4 * np.sin(np.arange(len(x)) / 400))))


class Tape:
    """An audio device that plays `sound` (24 kHz) from block 0 and keeps what it hears; `busy` is called in each block."""

    def __init__(self, sound: np.ndarray = np.zeros(0, np.int16), busy=lambda n: None):
        self.pos, self._sound, self._busy, self.heard = 0, sound, busy, []

    def render(self, n: int) -> np.ndarray:
        first = self.pos * 3 // 2
        part = self._sound[first:first + n]
        return np.concatenate([part, np.zeros(n - len(part), np.int16)])

    def capture(self, mic: np.ndarray) -> None:
        assert mic.dtype == np.int16 and mic.shape == (BLOCK,)
        self._busy(len(self.heard))
        self.heard.append(mic)
        self.pos += BLOCK

    @property
    def mic(self) -> np.ndarray:
        return np.concatenate(self.heard)


def lines(*items) -> tuple[ScriptedPeople, list]:
    trace, rows = Trace("people", directory=""), []
    trace.listeners.append(rows.append)
    return ScriptedPeople([Line(f"l{k}", "driver", "", samples, When(**when)) for k, (samples, when) in enumerate(items)], trace), rows


def blocks(cabin: Cabin, seconds: float) -> None:
    for _ in range(round(seconds * 100)):
        cabin.step()


def test_the_words_lie_at_the_microphone_where_the_trace_says():
    """utter.begin/utter.end are the mouth's samples: the microphone has the first path of both within 10 ms."""
    said = words(0.777)
    script, rows = lines((said, {"at_s": 0.5}))
    device = Tape()
    cabin = Cabin(device, script, QUIET, clock=VirtualClock())
    cabin.begin()
    blocks(cabin, 2)
    begin, end = (next(r["pos"] for r in rows if r["ev"] == ev) for ev in ("utter.begin", "utter.end"))
    assert (begin, end) == (MIC_RATE // 2, MIC_RATE // 2 + len(said))
    mic = device.mic.astype(np.float64)
    lag = int(np.argmax(np.correlate(mic[begin:end + 800], said.astype(np.float64), "valid")))
    assert lag == int(np.argmax(np.abs(responses()["driver"])))  # the way from the mouth to the microphone, 2 ms
    level = np.abs(mic).max() * 0.01
    assert 0 <= np.flatnonzero(np.abs(mic) > level)[0] - begin < 160
    last_direct = np.flatnonzero(np.abs(said) > np.abs(said).max() * 0.01)[-1]
    assert abs(begin + last_direct - end) < 160


def test_the_loudspeaker_reaches_the_microphone_after_the_dac_delay():
    sound = np.zeros(SPEAKER_RATE, np.int16)
    sound[2400:12_000] = np.random.default_rng(2).integers(-3000, 3000, 9600)
    first = {}
    for delay_ms in (0, 20, 55):
        device = Tape(sound)
        cabin = Cabin(device, lines()[0], CabinSettings(-60, 0, delay_ms), clock=VirtualClock(), keep=True)
        blocks(cabin, 1)
        loud = np.flatnonzero(np.abs(device.mic.astype(int)) > 200)
        first[delay_ms] = loud[0]
        played = np.flatnonzero(cabin.loudspeaker)
        assert played[0] == pytest.approx(2400 + delay_ms * 24, abs=3)
    assert first[20] - first[0] == 320 and first[55] - first[0] == 880
    assert 1600 <= first[0] <= 1600 + 100


def test_the_microphone_hears_people_road_and_assistant_at_once(tmp_path):
    sound = np.random.default_rng(2).integers(-3000, 3000, SPEAKER_RATE).astype(np.int16)
    power = {}
    for name, tape, kmh, script in (("road", Tape(), 50, lines()[0]), ("road+echo", Tape(sound), 50, lines()[0]),
                                    ("all", Tape(sound), 50, lines((words(1.0), {"at_s": 0}))[0]), ("parked", Tape(), 0, lines()[0])):
        cabin = Cabin(tape, script, clock=VirtualClock(), speed=lambda kmh=kmh: kmh)
        cabin.begin()
        blocks(cabin, 1)
        power[name] = np.mean(tape.mic.astype(float) ** 2)
    assert power["parked"] < power["road"] / 10 < power["road+echo"] / 50 and power["all"] > 1.2 * power["road+echo"]


def test_who_talks_over_the_assistant_raises_the_voice_and_who_hums_does_not():
    sound, heard = np.full(SPEAKER_RATE, 200, np.int16), {}  # loud enough to be speech, faint at the microphone
    for name, text, tape in (("alone", "No.", Tape()), ("over", "No.", Tape(sound)), ("hum", "mm-hmm", Tape(sound))):
        script = ScriptedPeople([Line("a", "driver", text, words(0.5), When(at_s=0.3))])
        cabin = Cabin(tape, script, CabinSettings(-60, -60), clock=VirtualClock())
        cabin.begin()
        blocks(cabin, 1)
        heard[name] = np.sqrt(np.mean(tape.mic.astype(float) ** 2))
    assert 20 * np.log10(heard["over"] / heard["alone"]) == pytest.approx(5, abs=0.1)
    assert heard["hum"] == pytest.approx(heard["alone"], rel=0.01)


def test_both_recordings_hold_every_sample_from_device_sample_zero(tmp_path):
    sound = (np.arange(SPEAKER_RATE) % 2000).astype(np.int16)
    device = Tape(sound)
    cabin = Cabin(device, lines()[0], clock=VirtualClock(), out_dir=tmp_path / "run", keep=True)
    blocks(cabin, 0.5)
    cabin.close()
    for name, rate, kept in (("speaker.wav", SPEAKER_RATE, cabin.loudspeaker), ("mic.wav", MIC_RATE, device.mic)):
        with wave.open(str(tmp_path / "run" / name)) as f:
            assert (f.getframerate(), f.getnchannels(), f.getsampwidth()) == (rate, 1, 2)
            assert np.array_equal(np.frombuffer(f.readframes(f.getnframes()), "<i2"), kept)
    assert np.array_equal(cabin.loudspeaker[480:], sound[:len(cabin.loudspeaker) - 480])


def test_memory_of_the_loudspeaker_is_bounded():
    cabin = Cabin(Tape(), lines()[0], clock=VirtualClock(), keep=True, keep_s=0.2)
    blocks(cabin, 1)
    assert len(cabin.loudspeaker) == 0.2 * SPEAKER_RATE


def test_a_microphone_too_loud_is_cut_at_full_scale_and_counted():
    loud = np.full(8000, 32_000, np.int16)
    cabin = Cabin(Tape(), lines((loud, {"at_s": 0}))[0], clock=VirtualClock())
    cabin.begin()
    blocks(cabin, 0.5)
    assert cabin.figures.clipped > 0 and np.abs(cabin.device.mic.astype(int)).max() <= 32768


async def test_blocks_come_at_their_absolute_times():
    clock = VirtualClock()
    device = Tape()
    cabin = Cabin(device, lines()[0], clock=clock)
    task = asyncio.create_task(cabin.run(max_s=1.0, until=lambda: False))
    await clock.advance(0.5)
    assert len(device.heard) == 50
    await clock.advance(0.6)
    figures = await task
    assert figures.blocks == 100 and figures.late == 0


async def test_late_blocks_are_caught_up_counted_and_none_is_left_out():
    """The event loop stands still for 300 ms in block 20: the sound goes on whole, and is on time again soon after."""
    clock = VirtualClock()

    def busy(n):
        if n == 20:
            clock._now += 0.3

    device = Tape(busy=busy)
    cabin = Cabin(device, lines()[0], clock=clock)
    task = asyncio.create_task(cabin.run(max_s=1.0, until=lambda: False))
    await clock.advance(1.2)
    figures = await task
    assert figures.blocks == 100 == len(device.heard)
    assert 25 <= figures.late <= 31 and figures.late_max_ms == pytest.approx(290, abs=1 + LATE_S * 1000)


async def test_catching_up_lets_the_event_loop_run_in_between():
    clock = VirtualClock()
    cabin = Cabin(Tape(busy=lambda n: setattr(clock, "_now", clock._now + (2.0 if n == 5 else 0.0))), lines()[0], clock=clock)
    turns = []

    async def other():
        while cabin.figures.blocks < 200:
            turns.append(cabin.figures.blocks)
            await asyncio.sleep(0)

    watcher = asyncio.create_task(other())
    task = asyncio.create_task(cabin.run(max_s=2.0, until=lambda: False))
    await clock.advance(4.0)
    await asyncio.gather(task, watcher)
    assert max(b - a for a, b in zip(turns, turns[1:])) <= 8


async def test_the_run_ends_three_quiet_seconds_after_everything_is_said():
    clock = VirtualClock()
    script, rows = lines((words(0.5), {"at_s": 0.2}))
    cabin = Cabin(Tape(np.concatenate([np.zeros(24_000, np.int16), np.full(24_000, 4000, np.int16)])), script, clock=clock)
    cabin.begin()
    task = asyncio.create_task(cabin.run(max_s=60))
    await clock.advance(20)
    figures = await task
    assert figures.blocks * BLOCK == pytest.approx((2.02 + 3.0) * MIC_RATE, abs=3 * BLOCK) and figures.utterances == 1


async def test_the_real_device_hears_the_driver_and_plays_the_answer_where_it_says(tmp_path):
    """The device's own playout positions and the recorded loudspeaker agree to the sample; the people are on the cloud's packets."""
    clock, cloud = VirtualClock(), FakeCloud()
    trace, events = Trace("device", directory="", clock=clock), []
    trace.listeners.append(events.append)
    device = Device(DeviceSettings(dac_delay_s=0.02, echo_cancellation=False, gate="always"), clock, trace, transport=cloud.transport,
                    vad=ScriptedVad())
    said = words(0.8)
    script, rows = lines((said, {"at_s": 0.3}))
    cabin = Cabin(device, script, CabinSettings(-60, -60), clock=clock, keep=True)
    await device.connect("memory://", "")
    task = asyncio.create_task(cabin.run(max_s=4, until=lambda: False))
    await clock.advance(0.5)
    cabin.begin()
    await clock.advance(0.5)
    answer = np.random.default_rng(4).integers(-8000, 8000, 12_000).astype(np.int16)
    cloud.say("seg-1", answer)
    await clock.advance(4)
    await task
    first = next(e for e in events if e["ev"] == "seg.first")
    assert cloud.ledger.get("seg-1").final and cloud.ledger.get("seg-1").played == 12_000
    at = round(first["pos"] * SPEAKER_RATE / MIC_RATE)
    lag = int(np.argmax(np.correlate(cabin.loudspeaker[at - 240:at + 12_240].astype(float), answer.astype(float), "valid"))) - 240
    assert abs(lag) <= 2
    begin = next(r["pos"] for r in rows if r["ev"] == "utter.begin")
    heard = cloud.heard(begin, begin + len(said) + 800).astype(float)
    lag = int(np.argmax(np.correlate(heard, said.astype(float), "valid")))
    assert 16 <= lag <= 160
    await device.close()


GOOD = {"VENUS_LIVEKIT_URL": "ws://127.0.0.1:1", "VENUS_DEVICE_TOKEN": "t", "VENUS_SCENARIO": "simulators/scenarios/first_drive.yaml",
        "VENUS_OUT": "out"}


@pytest.mark.parametrize("change, words_", [
    ({"VENUS_LIVEKIT_URL": ""}, ["VENUS_LIVEKIT_URL", "missing"]),
    ({"VENUS_DEVICE_TOKEN": ""}, ["VENUS_DEVICE_TOKEN", "missing"]),
    ({"VENUS_SCENARIO": "nowhere.yaml"}, ["nowhere.yaml", "can't be read"]),
    ({"VENUS_LISTEN": "yes"}, ["VENUS_LISTEN", "allowed: 0, 1"]),
    ({"VENUS_AGENT_WAIT_S": "soon"}, ["VENUS_AGENT_WAIT_S", "600"]),
])
def test_a_wrong_setting_of_the_process_is_named(change, words_):
    with pytest.raises(ConfigError) as err:
        Options.from_env(GOOD | change)
    assert all(w in err.value.message for w in words_)
    assert Options.from_env(GOOD).agent_wait_s == 60
