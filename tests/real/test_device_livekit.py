"""The device in a real LiveKit room: speech one way, microphone packets the other, and nobody but the agent obeyed."""

import asyncio
import secrets
import socket
import subprocess

import numpy as np
import pytest
import yaml
from livekit import api, rtc

from device_sdk import Device, DeviceSettings, DeviceState, NotConnected, wire
from device_sdk.testing import ScriptedVad
from venus_edge.clock import SystemClock
from venus_edge.errors import ConfigError
from venus_edge.metrics import METRICS
from venus_edge.paths import livekit_server
from venus_edge.trace import Trace

ROOM = "test-room"


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A LiveKit server on loopback with a secret of its own."""

    def __init__(self, folder):
        self.key, self.secret, self.port = "devkey", secrets.token_hex(16), free_port()
        udp = free_port(socket.SOCK_DGRAM)
        config = {
            "port": self.port, "bind_addresses": ["127.0.0.1"],
            "rtc": {"node_ip": "127.0.0.1", "use_external_ip": False, "enable_loopback_candidate": True, "ips": {"includes": ["127.0.0.1/32"]},
                    "udp_port": udp, "tcp_port": 0, "stun_servers": ["127.0.0.1:3478"]},
            "keys": {self.key: self.secret}, "room": {"auto_create": True}, "logging": {"level": "error"},
        }
        path = folder / "livekit.yaml"
        path.write_text(yaml.safe_dump(config))
        path.chmod(0o600)
        self.process = subprocess.Popen([str(livekit_server()), "--config", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.url = f"ws://127.0.0.1:{self.port}"

    async def ready(self):
        for _ in range(200):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                return self
            except OSError:
                await asyncio.sleep(0.05)
        raise AssertionError("the server did not start")

    def token(self, identity, kind="standard"):
        grants = api.VideoGrants(room_join=True, room=ROOM, can_update_own_metadata=True)
        return api.AccessToken(self.key, self.secret).with_identity(identity).with_kind(kind).with_grants(grants).to_jwt()

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


@pytest.fixture
async def server(tmp_path):
    server = Server(tmp_path)
    try:
        yield await server.ready()
    finally:
        server.stop()


class Agent:
    """The least of an agent: joins with a kind=agent token, welcomes, acknowledges, and keeps what it got."""

    def __init__(self, server, identity=wire.AGENT_IDENTITY, kind="agent"):
        self.server, self.identity, self.kind = server, identity, kind
        self.room, self.ctl, self.mic, self.reports = rtc.Room(), [], [], []
        self.ledger, self.tasks = wire.PlayoutLedger(), set()

    async def join(self):
        self.room.on("data_received", self._data)
        config = rtc.RtcConfiguration(ice_servers=[rtc.IceServer(urls=["stun:127.0.0.1:3478"])])
        await self.room.connect(self.server.url, self.server.token(self.identity, self.kind), rtc.RoomOptions(auto_subscribe=False, rtc_config=config))
        return self

    def _data(self, packet):
        if packet.topic == wire.TOPIC_MIC:
            self.mic.append(wire.MicPacket.unpack(packet.data))
        elif packet.topic == wire.TOPIC_PLAYOUT:
            report = wire.decode_report(packet.data)
            self.reports.append(report)
            self.ledger.apply(report)
        elif packet.topic == wire.TOPIC_CTL:
            message = wire.decode_ctl(packet.data)
            self.ctl.append(message)
            if isinstance(message, wire.Hello) and self.kind == "agent":
                self.tell(wire.answer_hello(message, "S-1", 200))

    def tell(self, message):
        task = asyncio.create_task(self.room.local_participant.publish_data(
            wire.encode_ctl(message), topic=wire.TOPIC_CTL, destination_identities=["device-1"]))
        self.tasks.add(task)

    async def say(self, seg, samples):
        writer = await self.room.local_participant.stream_bytes(
            seg, topic=wire.TOPIC_SPEECH, destination_identities=["device-1"],
            attributes={"sample_rate": "24000", "num_channels": "1", "venus.seg": seg, "venus.start": "0"})
        for i in range(0, len(samples), 960):
            await writer.write(samples[i:i + 960].tobytes())
        await writer.aclose()

    def of(self, kind):
        return [m for m in self.ctl if isinstance(m, kind)]

    async def leave(self):
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.room.disconnect()


class RealLoop:
    """Calls the device every 10 ms of the system clock, as an audio backend would; keeps what went to the DAC."""

    def __init__(self, device, near):
        self.device, self.near, self.out = device, near, []
        self.mic = []

    async def run(self):
        clock = SystemClock()
        begun = clock.now()
        while True:
            self.out.append(self.device.render(240))
            block = self.near(self.device.pos)
            self.mic.append(block)
            self.device.capture(block)
            await clock.sleep(begun + len(self.out) * 0.01 - clock.now())


async def until(condition, seconds=8.0, what="condition"):
    for _ in range(round(seconds * 100)):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"not within {seconds} s: {what}")


def make_device(**settings):
    trace = Trace("device", "")
    rows = []
    trace.listeners.append(rows.append)
    return Device(DeviceSettings(echo_cancellation=False, boot=7, **settings), SystemClock(), trace, vad=ScriptedVad()), rows


def numbered(talking):
    """A microphone whose samples tell their position; loud while `talking()`."""

    def near(pos):
        at = np.arange(pos, pos + 160)
        return (at % 199 + (4000 if talking() else 0)).astype(np.int16)

    return near


async def test_a_session_through_the_real_server(server):
    """Join before the agent, be welcomed, speak and be heard at exact positions, hear a segment and report it exactly, be
    ducked and flushed; close with a bye."""
    device, rows = make_device()
    talk = False
    loop = RealLoop(device, numbered(lambda: talk))
    await device.connect(server.url, server.token("device-1"))
    audio = asyncio.create_task(loop.run())
    agent = Agent(server)
    try:
        await agent.join()
        await device.wait_ready(5)
        assert device.state is DeviceState.LISTENING

        talk = True
        await asyncio.sleep(0.6)
        talk = False
        await until(lambda: any(not g.open for g in agent.of(wire.Gate)), what="gate closed")
        gates = agent.of(wire.Gate)
        heard = np.concatenate([p.samples for p in agent.mic])
        mic = np.concatenate(loop.mic)
        assert agent.mic[0].pos == gates[0].pos and agent.mic[-1].end == gates[-1].pos
        assert all(a.end == b.pos and a.seq + 1 == b.seq for a, b in zip(agent.mic, agent.mic[1:]))
        assert np.array_equal(heard, mic[gates[0].pos:gates[-1].pos])

        speech = np.random.default_rng(0).integers(2000, 9000, 24_000).astype(np.int16)
        await agent.say("seg-1", speech)
        await until(lambda: (s := agent.ledger.get("seg-1")) and s.final, what="seg-1 final")
        out = np.concatenate(loop.out)
        assert agent.ledger.get("seg-1").played == 24_000 and np.array_equal(out[np.nonzero(out)[0]], speech)

        before = len(out)
        await agent.say("seg-2", np.tile(speech, 5))
        await until(lambda: (s := agent.ledger.get("seg-2")) and s.played > 4800, what="seg-2 playing")
        talk = True
        await until(lambda: any(r["ev"] == "duck" for r in rows), 2, "duck")
        agent.tell(wire.Flush(seg="seg-2", id="f1"))
        await until(lambda: agent.ledger.get("seg-2").final, 2, "flushed")
        talk = False
        state = agent.ledger.get("seg-2")
        assert (state.state, state.why) == ("flushed", "cloud")
        assert state.played == np.count_nonzero(np.concatenate(loop.out)[before:])
        assert [r.action for r in agent.of(wire.Reflex)] == ["duck", "flush"]

        agent.tell(wire.Ping(n=3))
        await until(lambda: agent.of(wire.Pong), 2, "pong")
        await device.close()
        await until(lambda: agent.of(wire.Bye), 2, "bye")
        assert device.state is DeviceState.IDLE
    finally:
        audio.cancel()
        await device.close()
        await agent.leave()


async def test_only_an_agent_is_obeyed(server):
    """A standard participant that calls itself venus-agent can neither welcome, speak, flush nor clear."""
    device, rows = make_device()
    loop = RealLoop(device, numbered(lambda: False))
    intruder = Agent(server, kind="standard")
    await intruder.join()
    await device.connect(server.url, server.token("device-1"))
    audio = asyncio.create_task(loop.run())
    ignored = METRICS.get("venus_device_messages_ignored"), METRICS.get("venus_device_streams_ignored")
    try:
        intruder.tell(wire.Welcome(protocol=1, session="evil", unit_ms=200))
        await intruder.say("evil-1", np.full(4800, 9000, np.int16))
        with pytest.raises(rtc.RpcError):
            await intruder.room.local_participant.perform_rpc(destination_identity="device-1", method="lk.clear_buffer", payload="")
        await until(lambda: METRICS.get("venus_device_messages_ignored") > ignored[0], 3, "message ignored")
        await until(lambda: METRICS.get("venus_device_streams_ignored") > ignored[1], 3, "stream ignored")
        assert device.state is DeviceState.CONNECTING and device.player.segments() == [] and not np.concatenate(loop.out).any()
        assert not intruder.mic and not intruder.ctl
    finally:
        audio.cancel()
        await device.close()
        await intruder.leave()


async def test_reconnect_resumes_the_session(server):
    """The link is rebuilt under a segment that plays: it plays on, and the agent ends up with the exact count."""
    device, _ = make_device()
    links = []
    device.on_event = lambda e: links.append(e["state"]) if e["ev"] == "link" else None
    loop = RealLoop(device, numbered(lambda: False))
    agent = await Agent(server).join()
    await device.connect(server.url, server.token("device-1"))
    audio = asyncio.create_task(loop.run())
    try:
        await device.wait_ready(5)
        speech = np.random.default_rng(1).integers(2000, 9000, 72_000).astype(np.int16)
        await agent.say("seg-1", speech)
        await until(lambda: (s := agent.ledger.get("seg-1")) and s.played > 12_000, what="playing")
        await device._transport._room.simulate_scenario(rtc.SimulateScenarioKind.SIMULATE_NODE_FAILURE)
        await until(lambda: "up" in links, 10, "link up again")
        await until(lambda: agent.ledger.get("seg-1").final, 6, "final report")
        assert agent.ledger.get("seg-1").played == 72_000
        out = np.concatenate(loop.out)
        assert np.array_equal(out[np.nonzero(out)[0]], speech)
        await until(lambda: device.state is DeviceState.LISTENING, 5, "listening")
    finally:
        audio.cancel()
        await device.close()
        await agent.leave()


async def test_a_server_that_refuses_is_one_clear_error(server):
    """A wrong token, nobody listening, and URLs that are no use."""
    for url, token, error in (
        (server.url, "not-a-token", NotConnected),
        (f"ws://127.0.0.1:{free_port()}", server.token("device-1"), NotConnected),
        ("http://127.0.0.1:1", "x", ConfigError),
        ("ws://example.com", "x", ConfigError),
    ):
        device, _ = make_device()
        with pytest.raises(error):
            await device.connect(url, token)
        assert device.state is DeviceState.IDLE
