"""The whole device on virtual time against a scripted cloud: session, reflexes, playout reports, link failures."""

import json

import numpy as np
import pytest

from device_sdk import Device, DeviceSettings, DeviceState, NotConnected, ProtocolRefused, AudioFormatError, wire
from device_sdk.testing import AudioLoop, FakeCloud, ScriptedVad
from venus_edge.errors import ConfigError
from venus_edge.testing import VirtualClock
from venus_edge.trace import Trace


def speech(seconds, seed=0):
    rng = np.random.default_rng(seed)
    n = round(24_000 * seconds)
    return (rng.integers(3000, 12_000, n) * rng.choice([-1, 1], n)).astype(np.int16)


class Bench:
    """A connected device without an echo canceller (the model-free tests), its cloud, its audio loop and what it told."""

    def __init__(self, talk=(), cloud=None, **settings):
        self.clock = VirtualClock()
        self.cloud = cloud or FakeCloud()
        self.events, self.states, self.trace = [], [], []
        trace = Trace("device", "", self.clock)
        trace.listeners.append(self.trace.append)
        self.device = Device(DeviceSettings(echo_cancellation=False, boot=99, **settings), self.clock, trace,
                             transport=self.cloud.transport, vad=ScriptedVad())
        self.device.on_event = self.events.append
        self.device.on_state = self.states.append
        self.talk = [(round(a * 16_000), round(b * 16_000)) for a, b in talk]
        self.loop = AudioLoop(self.device, self.clock, self._near)

    def _near(self, pos):
        at = np.arange(pos, pos + 160)
        loud = np.zeros(160, bool)
        for start, end in self.talk:
            loud |= (at >= start) & (at < end)
        return np.where(loud, 3000, at % 50).astype(np.int16)

    async def start(self):
        await self.device.connect("memory://", "")
        await self.loop.run(0.1)
        return self

    def traced(self, name):
        return [row for row in self.trace if row["ev"] == name]


async def test_hello_is_repeated_until_an_agent_welcomes():
    """The device joins before the agent: it says hello when somebody is there, again while unanswered, and never after."""
    bench = await Bench(cloud=FakeCloud(present=False)).start()
    assert bench.device.state is DeviceState.CONNECTING and bench.cloud.ctl == []
    bench.cloud.welcome = False
    bench.cloud.join()
    await bench.loop.run(1.0)
    assert 2 <= len(bench.cloud.of(wire.Hello)) <= 4
    bench.cloud.welcome = True
    await bench.loop.run(2.1)
    hellos = len(bench.cloud.of(wire.Hello))
    await bench.device.wait_ready(1.0)
    await bench.loop.run(5)
    assert len(bench.cloud.of(wire.Hello)) == hellos
    assert bench.device.state is DeviceState.LISTENING
    hello = bench.cloud.of(wire.Hello)[0]
    assert hello.protocols == [1] and hello.capabilities["out_rate"] == 24_000 and hello.boot == wire.boot_text(99)


async def test_refused_hello_is_an_error_for_the_caller():
    bench = await Bench(cloud=FakeCloud(welcome=False)).start()
    bench.cloud.tell(wire.Error(code="bad_version", message="field protocols: no version in common", allowed="2", re="hello"))
    with pytest.raises(ProtocolRefused, match="allowed: 2"):
        await bench.device.wait_ready(1.0)
    before = len(bench.cloud.of(wire.Hello))
    await bench.loop.run(3)
    assert len(bench.cloud.of(wire.Hello)) == before


async def test_nothing_but_hello_before_the_welcome_and_a_lost_session_is_begun_anew():
    """Speech before the welcome sends nothing; an agent that has no session (any more) is greeted again."""
    bench = await Bench(talk=[(0.2, 0.6), (3.0, 3.4)], cloud=FakeCloud(welcome=False)).start()
    await bench.loop.run(1.0)
    assert {m.type for m in bench.cloud.ctl} == {"hello"} and not bench.cloud.mic
    bench.cloud.welcome = True
    await bench.loop.run(1.0)
    assert bench.device.state is DeviceState.LISTENING
    hellos = len(bench.cloud.of(wire.Hello))
    bench.cloud.tell(wire.Error(code="no_session", message="say hello first", re="pong"))
    await bench.loop.run(2.0)
    assert bench.device.state is DeviceState.LISTENING and len(bench.cloud.of(wire.Hello)) == hellos + 1 and bench.cloud.mic


async def test_no_agent_in_time_is_an_error_for_the_caller():
    import asyncio

    bench = await Bench(cloud=FakeCloud(present=False)).start()
    waiting = asyncio.ensure_future(bench.device.wait_ready(2.0))
    await bench.loop.run(2.5)
    with pytest.raises(NotConnected, match="no welcome within 2 s"):
        await waiting


async def test_microphone_arrives_at_its_positions():
    """What the cloud assembles by position is what the microphone heard, from 300 ms before the onset on; the gate says so first."""
    bench = await Bench(talk=[(1.024, 2.0)]).start()
    await bench.loop.run(4)
    gates = bench.cloud.of(wire.Gate)
    assert [g.open for g in gates] == [True, False] and gates[0].pos == 16_384 - 4800 == gates[0].withheld
    heard = bench.cloud.heard(gates[0].pos, gates[1].pos)
    assert np.array_equal(heard, bench.loop.mic[gates[0].pos:gates[1].pos])
    assert [p.seq for p in bench.cloud.mic] == list(range(len(bench.cloud.mic))) and {p.boot for p in bench.cloud.mic} == {99}
    first_mic = bench.cloud.order.index("mic")
    assert "ctl.gate" in bench.cloud.order[:first_mic] and bench.cloud.order[-1] == "ctl.gate"
    assert [v.on for v in bench.cloud.of(wire.Vad)] == [True, False]


async def test_speech_is_played_reported_and_traced():
    """`played` in the ledger is what the recorded loudspeaker holds; first and last carry DAC positions."""
    bench = await Bench().start()
    bench.cloud.say("s1", speech(1.0))
    await bench.loop.run(1.5)
    state = bench.cloud.ledger.get("s1")
    out = bench.loop.speaker
    where = np.nonzero(out)[0]
    assert state.final and state.played == 24_000 == len(where)
    assert state.first_pos == round(where[0] * 16 / 24)
    first, last = bench.traced("seg.first")[0], bench.traced("seg.last")[0]
    assert first["pos"] == state.first_pos and last["pos"] == state.first_pos + 16_000
    assert json.loads(json.dumps(last, default=str))["state"] == "ended"
    assert bench.states == [DeviceState.CONNECTING, DeviceState.LISTENING, DeviceState.SPEAKING, DeviceState.LISTENING]


async def test_duck_comes_with_the_block_in_which_speech_is_noticed():
    """Onset to quieter loudspeaker: at most 100 ms to notice, one block to render, the DAC's delay."""
    bench = await Bench(talk=[(1.0, 2.0)]).start()
    bench.cloud.say("s1", np.full(72_000, 10_000, np.int16))
    await bench.loop.run(3)
    duck = bench.traced("duck")[0]
    assert 0 < duck["pos"] - 16_000 <= 1600 and duck["reason"] == "vad" and duck["seg"] == "s1"
    quiet = np.nonzero((bench.loop.speaker > 0) & (bench.loop.speaker < 1800))[0][0]
    assert quiet / 24_000 <= duck["pos"] / 16_000 + 0.01 + 0.04
    reflex = bench.cloud.of(wire.Reflex)[0]
    assert (reflex.action, reflex.reason, reflex.pos, reflex.seg, reflex.played) == ("duck", "vad", duck["pos"], "s1", duck["played"])


async def test_nothing_is_ducked_while_nothing_plays():
    bench = await Bench(talk=[(0.5, 1.0)]).start()
    await bench.loop.run(2)
    assert bench.traced("vad.on") and not bench.traced("duck")


async def test_restore_comes_from_the_cloud_once():
    """A restore undoes the ducking, its repeat does nothing, and the speech goes on to its end."""
    bench = await Bench(talk=[(1.0, 1.3)]).start()
    bench.cloud.say("s1", speech(3))
    await bench.loop.run(1.2)
    assert bench.device.player.ducked
    for _ in range(3):
        bench.cloud.tell(wire.Restore(id="r1", reason="backchannel"))
        await bench.loop.run(0.1)
    assert not bench.device.player.ducked
    assert [(r["ev"], r["reason"]) for r in bench.trace if r["ev"] in ("duck", "restore")] == [("duck", "vad"), ("restore", "cloud")]
    await bench.loop.run(3)
    assert bench.cloud.ledger.get("s1").played == 72_000


async def test_without_a_verdict_ducking_ends_by_itself():
    """Speech over and 1.5 s passed: the device restores by its own policy, not earlier and not while somebody still speaks."""
    bench = await Bench(talk=[(1.0, 1.3)]).start()
    bench.cloud.say("s1", speech(5))
    await bench.loop.run(5)
    duck, restore = bench.traced("duck")[0], bench.traced("restore")[0]
    assert restore["reason"] == "vad" and 0 <= restore["pos"] - duck["pos"] - 24_000 <= 320
    talker = await Bench(talk=[(1.0, 4.0)]).start()
    talker.cloud.say("s1", speech(6))
    await talker.loop.run(4.2)
    assert not talker.traced("restore")
    await talker.loop.run(1)
    assert talker.traced("restore")


async def test_flush_from_the_cloud_stops_within_a_block_and_is_answered():
    """Stop, fade, final report with the exact count; repeats of the same flush change nothing and touch no later segment."""
    bench = await Bench(talk=[(1.0, 1.8)]).start()
    bench.cloud.say("s1", speech(4))
    await bench.loop.run(1.3)
    told_at = bench.device.pos
    for _ in range(5):
        bench.cloud.flush("s1", key="f1")
        await bench.loop.run(0.1)
    bench.cloud.say("s2", speech(0.5))
    bench.cloud.flush("s1", key="f1")
    await bench.loop.run(2)
    state = bench.cloud.ledger.get("s1")
    assert state.state == "flushed" and state.why == "cloud"
    last = bench.traced("seg.last")[0]
    assert last["pos"] - told_at <= 640 + 160
    out = bench.loop.speaker
    assert np.count_nonzero(out[:round(last["pos"] * 1.5) + 10]) == state.played
    assert bench.cloud.ledger.get("s2").played == 12_000 and not bench.device.player.ducked
    assert len(bench.traced("flush")) == 1 and [r.action for r in bench.cloud.of(wire.Reflex)] == ["duck", "flush"]


async def test_flush_of_everything_does_not_stop_what_comes_later():
    """An empty segment id stops what is there; the repeats of that message must not stop the next answer."""
    bench = await Bench().start()
    bench.cloud.say("s1", speech(4))
    await bench.loop.run(0.5)
    bench.cloud.flush("", key="all")
    bench.cloud.say("s2", speech(0.5))
    for _ in range(4):
        await bench.loop.run(0.1)
        bench.cloud.flush("", key="all")
    await bench.loop.run(1)
    assert bench.cloud.ledger.get("s1").state == "flushed" and bench.cloud.ledger.get("s2").state == "ended"


async def test_user_stops_by_button():
    bench = await Bench().start()
    bench.cloud.say("s1", speech(4))
    await bench.loop.run(0.5)
    bench.device.stop_speaking()
    await bench.loop.run(0.3)
    assert bench.cloud.ledger.get("s1").why == "user" and bench.traced("flush")[0]["reason"] == "user"


async def test_link_down_plays_on_and_speech_stops_it():
    """Without a link the buffer plays; somebody who speaks over it for 0.7 s stops it; the cloud learns all on reconnect."""
    bench = await Bench(talk=[(2.0, 3.5)]).start()
    bench.cloud.say("s1", speech(6))
    await bench.loop.run(1.0)
    bench.cloud.link("down")
    bench.cloud.lose = lambda topic, payload, reliable: True
    await bench.loop.run(0.8)
    assert bench.device.state is DeviceState.RECONNECTING and bench.device.player.get("s1").played > 1.2 * 24_000
    await bench.loop.run(2)
    flush = bench.traced("flush")[0]
    assert flush["reason"] == "vad" and 0.7 - 0.032 < (flush["pos"] - 32_000) / 16_000 < 0.8
    bench.cloud.lose = lambda topic, payload, reliable: False
    assert not bench.cloud.ledger.get("s1").final
    bench.cloud.link("up")
    await bench.loop.run(0.1)
    state = bench.cloud.ledger.get("s1")
    assert state.final and state.why == "vad" and state.played == np.count_nonzero(bench.loop.speaker)
    assert bench.device.state is DeviceState.LISTENING


async def test_short_speech_over_a_dead_link_stops_nothing():
    bench = await Bench(talk=[(1.0, 1.2)]).start()
    bench.cloud.say("s1", speech(3))
    await bench.loop.run(0.5)
    bench.cloud.link("down")
    await bench.loop.run(4)
    assert not bench.traced("flush") and bench.device.player.get("s1").played == 72_000


async def test_microphone_is_held_back_while_the_link_is_down():
    """No packet is queued for a dead link; what was withheld is counted when the gate opens again."""
    bench = await Bench(talk=[(0.5, 4.0)]).start()
    await bench.loop.run(1.0)
    bench.cloud.link("down")
    await bench.loop.step()
    sent = len(bench.cloud.mic)
    await bench.loop.run(1.0)
    assert len(bench.cloud.mic) == sent
    end = bench.cloud.mic[-1].end
    bench.cloud.link("up")
    await bench.loop.run(0.2)
    opened = [g for g in bench.cloud.of(wire.Gate) if g.open][-1]
    assert opened.withheld == opened.pos - end and bench.cloud.mic[sent].gap and bench.cloud.mic[sent].pos == opened.pos


async def test_link_lost_for_good_ends_in_idle_and_may_connect_again():
    bench = await Bench().start()
    bench.cloud.say("s1", speech(1))
    await bench.loop.run(0.3)
    bench.cloud.link("lost", "ROOM_DELETED")
    await bench.loop.run(1.5)
    assert bench.device.state is DeviceState.IDLE and bench.device.player.get("s1").played == 24_000
    await bench.device.connect("memory://", "")
    await bench.loop.run(0.2)
    assert bench.device.state is DeviceState.LISTENING
    assert bench.cloud.ledger.get("s1").final, "the snapshot told the new session"


async def test_agent_that_leaves_and_returns_is_greeted_again():
    bench = await Bench().start()
    bench.cloud.leave()
    await bench.loop.run(0.2)
    assert bench.device.state is DeviceState.CONNECTING
    hellos = len(bench.cloud.of(wire.Hello))
    bench.cloud.join()
    await bench.loop.run(0.2)
    assert bench.device.state is DeviceState.LISTENING and len(bench.cloud.of(wire.Hello)) == hellos + 1


async def test_welcome_sets_packet_and_report_rates():
    bench = await Bench(talk=[(0.5, 2.0)], cloud=FakeCloud(welcome=False)).start()
    bench.cloud.tell(wire.Welcome(protocol=1, session="S", unit_ms=200, mic_packet_ms=40, report_ms=200))
    bench.cloud.say("s1", speech(1.2))
    await bench.loop.run(1.5)
    assert {len(p.samples) for p in bench.cloud.mic if not p.preroll} == {640}
    progress = [r.t for r, reliable in bench.cloud.reports if not reliable]
    assert np.allclose(np.diff(progress), 200_000, atol=1)


async def test_ping_is_answered_with_the_clock_pair():
    bench = await Bench().start()
    bench.cloud.tell(wire.Ping(n=5))
    pong = bench.cloud.of(wire.Pong)[0]
    assert pong.n == 5 and pong.pos == bench.device.pos and pong.t == round(bench.clock.now() * 1e6)


async def test_bad_messages_are_answered_at_most_once_a_second():
    """A peer that sends rubbish gets one typed error a second; the session lives on."""
    bench = await Bench().start()
    for _ in range(50):
        bench.cloud.transport.listener.on_message(wire.TOPIC_CTL, b'{"v":1,"type":"volume","level":9}')
    errors = bench.cloud.of(wire.Error)
    assert len(errors) == 1 and (errors[0].code, errors[0].re) == ("bad_field", "venus.ctl") and "volume.level" in errors[0].message
    await bench.loop.run(1.1)
    bench.cloud.transport.listener.on_message(wire.TOPIC_CTL, b"rubbish")
    assert len(bench.cloud.of(wire.Error)) == 2 and bench.device.state is DeviceState.LISTENING


@pytest.mark.parametrize(
    "attributes, field",
    [
        ({"sample_rate": "16000"}, "sample_rate"),
        ({}, "sample_rate"),
        ({"sample_rate": "24000", "num_channels": "2"}, "num_channels"),
        ({"sample_rate": "24000", "venus.seg": "other"}, "venus.seg"),
        ({"sample_rate": "24000", "venus.seg": "s", "venus.start": "-1"}, "venus.start"),
    ],
)
async def test_speech_streams_of_the_wrong_form_are_refused(attributes, field):
    """One error that names the attribute and what is allowed; nothing is queued."""
    bench = await Bench().start()
    assert bench.cloud.transport.listener.on_speech_open("s", attributes) is None
    error = bench.cloud.of(wire.Error)[0]
    assert field in error.message and error.re == "lk.audio_stream" and error.allowed
    assert bench.device.player.segments() == []


async def test_a_stock_agent_is_served_in_its_own_words():
    """Streams without our attribute: started and finished are told by RPC, with the position that was really played; a stock
    clear stops everything. Our own segments cause no such call."""
    bench = await Bench().start()
    bench.cloud.say("ours", speech(0.2))
    await bench.loop.run(0.5)
    assert bench.cloud.calls == []
    bench.cloud.say("stream-1", speech(2.0), ours=False)
    await bench.loop.run(0.5)
    assert bench.cloud.calls == [("lk.playback_started", "")]
    bench.cloud.transport.listener.on_clear_buffer()
    await bench.loop.run(0.2)
    method, payload = bench.cloud.calls[1]
    told = json.loads(payload)
    played = np.count_nonzero(bench.loop.speaker) - 4800
    assert method == "lk.playback_finished" and told["interrupted"] is True and told["playback_position"] == played / 24_000


async def test_a_broken_stream_may_be_resumed():
    """The rest of a segment may come in a second stream that starts where the first broke off."""
    bench = await Bench().start()
    x = speech(1.0)
    bench.cloud.begin("s1")
    bench.cloud.push("s1", 0, x[:12_000])
    bench.cloud.end("s1", whole=False)
    await bench.loop.run(0.8)
    assert bench.cloud.ledger.get("s1").state == "underrun"
    assert bench.cloud.begin("s1", start=12_000) == "s1"
    bench.cloud.push("s1", 12_000, x[12_000:])
    bench.cloud.end("s1")
    await bench.loop.run(1)
    out = bench.loop.speaker
    assert bench.cloud.ledger.get("s1").state == "ended" and np.array_equal(out[np.nonzero(out)[0]], x)


async def test_close_says_bye_and_stops():
    bench = await Bench(talk=[(0.2, 9.0)]).start()
    await bench.loop.run(0.5)
    await bench.device.close()
    assert bench.device.state is DeviceState.IDLE and bench.cloud.ctl[-1] == wire.Bye(reason="closed")
    sent = len(bench.cloud.mic)
    await bench.loop.run(0.5)
    assert len(bench.cloud.mic) == sent
    await bench.device.close()


async def test_blocks_of_the_wrong_form_are_refused():
    """A wrong length or type is one clear error before it can reach the native module."""
    bench = await Bench().start()
    with pytest.raises(AudioFormatError, match=r"n_out: must be 240 \(10 ms at 24000\), not 480"):
        bench.device.render(480)
    for mic in (np.zeros(441, np.int16), np.zeros(160, np.float32), np.zeros((160, 1), np.int16)):
        with pytest.raises(AudioFormatError, match=r"mic: must be int16\[160\]"):
            bench.device.capture(mic)


@pytest.mark.parametrize("name, value", [("out_rate", 22_050), ("gate", "open"), ("dac_delay_s", 2.0), ("vad_off", 0.9), ("boot", -1), ("duck_db", 3)])
def test_bad_settings_name_the_field(name, value):
    with pytest.raises(ConfigError, match=f"device.{name}: must be "):
        DeviceSettings(**{name: value})


class Probable(ScriptedVad):
    """Loud frames have the probability that the test sets."""

    def __init__(self, p):
        super().__init__()
        self.p = p

    def __call__(self, frame):
        return self.p if super().__call__(frame) > 0.5 else 0.0


@pytest.mark.parametrize("p, ducks_at_s", [(0.7, 1.0), (0.9, 0.6)])
async def test_echo_guard_asks_for_strong_evidence_at_the_first_speech_only(p, ducks_at_s):
    """In the first 400 ms of the very first speech a probable onset is taken for echo and only a strong one counts; later
    speech, and the second segment from its first sample, are judged as usual."""
    bench = Bench(talk=[(0.6, 0.8), (1.0, 1.2), (4.1, 4.4)])
    bench.device._gate._vad = Probable(p)
    await bench.start()
    await bench.loop.run(0.4)
    bench.cloud.say("s1", speech(1.5))  # handed over from 0.5 s on: the guard ends at 0.94 s
    await bench.loop.run(3.5)
    bench.cloud.say("s2", speech(1.0))  # from 4.0 s on
    await bench.loop.run(1.0)
    ducks = [row["pos"] / 16_000 for row in bench.traced("duck")]
    assert 0 <= ducks[0] - ducks_at_s <= 0.1
    assert any(0 <= at - 4.1 <= 0.1 for at in ducks)
