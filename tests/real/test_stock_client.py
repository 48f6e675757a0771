"""What anybody else in the room sees and can do: stock clients read state and transcripts; intruders and garbage change nothing."""
import asyncio
import json
import secrets

import numpy as np
import pytest
from live import RTC, LiveDevice, LiveSystem, StockClient, until
from livekit import rtc

from device_sdk import DeviceState, wire
from simulators.judge_audio import real_recogniser, resample
from simulators.phonetic import score
from venus_edge.metrics import METRICS
from venus_edge.stack import AGENT, CAR_HOST

SPEED, ABOUT = "How fast are we going?", "What can you do?"


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    with LiveSystem(tmp_path_factory.mktemp("stock")) as up:
        yield up


async def test_a_stock_client_reads_state_and_both_transcripts(system):
    """A client that knows LiveKit's conventions alone follows a spoken request, whether it only watches or could speak too."""
    async with StockClient(system) as watcher, StockClient(system, "device") as silent, LiveDevice(system, [ABOUT]) as device:
        assert watcher.agent.identity == AGENT and watcher.agent.attributes["lk.agent.state"] == "listening"
        answer = await device.ask(ABOUT, watcher)
        await until(lambda: watcher.states and watcher.states[-1] == "listening", 3, "listening again")
        for client in (watcher, silent):
            assert client.states in (["thinking", "speaking", "listening"], ["speaking", "listening"]), client.states
            assert {s.sender for s in client.streams} == {device.identity, AGENT} and all(s.over for s in client.streams)
            assert {s.attributes.get("lk.transcription_final") for s in client.streams} <= {"true", "false"}
            users = client.of(device.identity)
            assert len({s.header["lk.segment_id"] for s in users}) == 1 and users[0].header["lk.segment_id"].startswith("SG_")
            assert [s.header["lk.transcription_final"] for s in users] == ["false"] * (len(users) - 1) + ["true"]
            assert score(ABOUT, users[-1].text) > 0.8
            agent = client.of(AGENT)
            assert len({s.header["lk.segment_id"] for s in agent}) == len(agent), "one stream per segment of speech"
            assert all(s.attributes["lk.transcription_final"] == "true" for s in agent)
            assert " ".join(s.text.strip() for s in agent) == answer.text
            assert client.packets == [], "what device and agent tell each other is for nobody else"
        ends = {row["seg"]: row for row in system.trace("worker", "segment.end")}
        for s in watcher.of(AGENT):
            end = ends[s.header["lk.segment_id"].removeprefix("SG_")]
            assert end["confirmed"] and end["completed"] and end["heard"].split() == s.text.split()
        heard = real_recogniser()(resample(device.heard(device.people.ends[0]), 24_000))
        assert score(answer.text, heard) > 0.8, (answer.text, heard)


class Intruder:
    """Somebody with a device's token who says no hello and tries what the protocol knows."""

    def __init__(self, system):
        self.room, self.identity = rtc.Room(), f"intruder-{secrets.token_hex(3)}"
        self.system = system

    async def __aenter__(self):
        await self.room.connect(self.system.state["url"], self.system.token(self.identity), rtc.RoomOptions(auto_subscribe=False, rtc_config=RTC))
        await self.room.local_participant.set_attributes({"x": "1"})  # so that the others know it at once, and not in 3 s
        return self

    async def __aexit__(self, *exc):
        await self.room.disconnect()

    async def send(self, topic, payload, to=()):
        await self.room.local_participant.publish_data(payload, reliable=True, topic=topic, destination_identities=list(to))

    async def effect(self, path, value):
        """The car host's answer to an actuation in the agent's name."""
        request = {"v": 1, "key": secrets.token_hex(4), "op": "actuate", "path": path, "value": value, "zone": "driver", "provenance": "live_speech"}
        return json.loads(await self.room.local_participant.perform_rpc(destination_identity=CAR_HOST, method="venus.effect", payload=json.dumps(request)))

    async def everything(self, device, seg, boot):
        """Every message of both sides, to everybody, in the middle of the assistant's speech."""
        noise = (np.random.default_rng(0).standard_normal(320) * 8000).astype(np.int16)
        report = wire.PlayoutReport(boot=boot, n=99_999, seg=seg, r=24_000, played=0, buf=0, rx=0, t=1, pos=1, st="flushed", dac=0, gaps=[], vol=1.0,
                                    out="spk", why="user", first_pos=-1)
        for message in (wire.Flush(seg=seg, id="i1"), wire.Flush(seg="", id="i2"), wire.Volume(level=0.0), wire.Restore(id="i3", reason="x"),
                        wire.Welcome(protocol=1, session="evil", unit_ms=200), wire.Error(code="no_session", message="gone", re="mic"),
                        wire.Bye(reason="closed"), wire.Gate(open=True, pos=0, withheld=0), wire.Vad(on=True, pos=0),
                        wire.Reflex(action="flush", reason="user", pos=0, seg=seg, played=0)):
            await self.send(wire.TOPIC_CTL, wire.encode_ctl(message))
        for i in range(20):
            await self.send(wire.TOPIC_MIC, wire.MicPacket(i, int(boot, 36), device.device.pos + 320 * i, noise, False, False).pack())
        await self.send(wire.TOPIC_PLAYOUT, wire.encode_report(report))
        with pytest.raises(rtc.RpcError):
            await self.room.local_participant.perform_rpc(destination_identity=device.identity, method="lk.clear_buffer", payload="")
        stream = await self.room.local_participant.stream_bytes("evil-1", topic=wire.TOPIC_SPEECH, destination_identities=[device.identity], attributes={
            "sample_rate": "24000", "num_channels": "1", "venus.seg": "evil-1", "venus.start": "0"})
        await stream.write(noise.tobytes())
        await stream.aclose()


async def test_an_intruder_changes_nothing_and_is_counted(system):
    """While the assistant speaks: not its speech, not the volume, not the session, not the car."""
    before = METRICS.get("venus_device_messages_ignored"), METRICS.get("venus_device_streams_ignored")
    async with StockClient(system) as client, LiveDevice(system, [ABOUT], identity="device-intruded") as device, Intruder(system) as intruder:
        asking = asyncio.create_task(device.ask(ABOUT, client))
        seg = await until(lambda: device.device.player.playing()[0], 10, "the assistant speaks")
        await intruder.everything(device, seg, device.device._boot)
        answer = await intruder.effect("Vehicle.Cabin.HVAC.Station.Row1.Driver.Temperature", 28)
        assert not answer["ok"] and answer["error"]["code"] == "not_permitted", answer
        await asking
        last = device.of("segment")[-1]
        assert (last["seg"], last["state"]) == (seg, "ended") and device.device.player.volume == 1.0
        assert device.device.player.get("evil-1") is None and device.device.state is DeviceState.LISTENING
        assert not device.of("bye") and not device.of("reflex") and len(device.of("welcome")) == 1
        end = await until(lambda: next((row for row in system.trace("worker", "segment.end") if row["seg"] == seg), None), 5, "the worker's account")
        assert end["completed"] and end["confirmed"], end
        assert METRICS.get("venus_device_messages_ignored") - before[0] >= 30
        assert METRICS.get("venus_device_streams_ignored") - before[1] == 1
        await until(lambda: system.metrics().get("venus_carhost_callers_refused_total", 0) >= 1, 5, "the car host's counter")
        assert len(client.of(device.identity)) == len([s for s in client.streams if s.sender != AGENT]), "it has no conversation of its own"
        assert not [row for row in system.trace("worker", "session.ready") if row["device"] == intruder.identity]


async def test_a_flood_of_garbage_does_not_end_a_session(system):
    """2000 malformed packets, from an intruder and from the device's own connection: the same session answers afterwards."""
    rng = np.random.default_rng(1)
    whole = wire.MicPacket(0, 1, 0, np.zeros(320, np.int16), False, False).pack()
    garbage = [b"", b"{", b"[]", b"null", b'{"v":1}', b'{"v":2,"type":"hello"}', b'{"v":1,"type":"hello","protocols":"x"}', b"VM", whole[:-3], whole + b"xx",
               b"VM\x02" + whole[3:], b"\xff" * 300, b'{"v":1,"type":"gate","open":1,"pos":-1}', b"9" * 9000, rng.bytes(900)]
    async with StockClient(system) as client, LiveDevice(system, [SPEED], identity="device-flooded") as device, Intruder(system) as intruder:
        sessions = len(system.trace("worker", "session.ready"))
        invalid = system.metrics().get("venus_cloud_messages_invalid", 0)
        own = device.device._transport._room.local_participant
        for i in range(1000):
            topic = wire.TOPIC_MIC if i % 2 else wire.TOPIC_CTL
            await intruder.send(topic, garbage[i % len(garbage)])
            await own.publish_data(garbage[i % len(garbage)], reliable=True, topic=topic, destination_identities=[AGENT])
        answer = await device.ask(SPEED, client)
        assert "standing" in answer.text.lower() and len(system.trace("worker", "session.ready")) == sessions
        assert len(device.of("welcome")) == 1 and device.device.state is DeviceState.LISTENING
        await until(lambda: system.metrics().get("venus_cloud_messages_invalid", 0) - invalid >= 900, 6, "garbage counted")
