"""RPC `venus.effect` over a real LiveKit server: the car host as a process, the signal server as a process, an agent."""

import asyncio
import json
import os
import secrets
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.request

import pytest
from livekit import api, rtc

from harness.host.errors import NotPermitted, UnsafeNow
from harness.host.messages import METHOD
from harness.host.remote import RemoteVehicleBus
from venus_edge import paths

ROOM = "car-host-test"
TEMP = "Vehicle.Cabin.HVAC.Station.Row1.Driver.Temperature"
GATE = "Vehicle.Body.Trunk.Rear.IsOpen"


def _free(kind=socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class LiveKit:
    """A loopback-only LiveKit server with a secret of its own."""

    def __init__(self, folder):
        binary = paths.livekit_server()
        if not binary.exists():
            pytest.fail(f"{binary.name} is missing in .cache/bin: run `make setup`", pytrace=False)
        self.port, udp, self.secret = _free(), _free(socket.SOCK_DGRAM), secrets.token_hex(16)
        config = folder / "livekit.yaml"
        config.write_text(
            f'port: {self.port}\nbind_addresses: ["127.0.0.1"]\nrtc:\n  node_ip: 127.0.0.1\n  use_external_ip: false\n'
            f'  enable_loopback_candidate: true\n  ips: {{includes: ["127.0.0.1/32"]}}\n  udp_port: {udp}\n  tcp_port: 0\n'
            f'  stun_servers: ["127.0.0.1:3478"]\nkeys: {{testkey: "{self.secret}"}}\nroom: {{auto_create: true, empty_timeout: 60}}\n')
        self.log = open(folder / "livekit.log", "w")
        self.process = subprocess.Popen([binary, "--config", config], stdout=self.log, stderr=self.log)
        self.url = f"ws://127.0.0.1:{self.port}"
        for _ in range(200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=1)
                return
            except OSError:
                time.sleep(0.05)
        pytest.fail((folder / "livekit.log").read_text()[-2000:])

    def token(self, identity, kind="standard"):
        grants = api.VideoGrants(room_join=True, room=ROOM, can_publish_data=True, can_subscribe=True, agent=kind == "agent")
        return api.AccessToken("testkey", self.secret).with_identity(identity).with_kind(kind).with_grants(grants).to_jwt()

    def close(self):
        self.process.terminate()
        self.process.wait(10)
        self.log.close()


def _spawn(module, **env):
    process = subprocess.Popen([sys.executable, "-m", module], stdout=subprocess.PIPE, text=True, env={**os.environ, **env})
    line = process.stdout.readline()
    if not line.startswith("READY "):
        process.kill()
        pytest.fail(f"{module} did not get ready: {line!r}")
    return process, json.loads(line[6:])


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    """LiveKit, the signals of a car at 50 km/h, and its car host."""
    folder, started = tmp_path_factory.mktemp("carhost"), []
    livekit = LiveKit(folder)
    try:
        token = secrets.token_hex(16)
        signals, ready = _spawn("simulators.car.signals", VENUS_BUS_ADDR="127.0.0.1:0", VENUS_BUS_TOKEN=token, VENUS_DRIVE='{"profile": [[0, 50]]}')
        started.append(signals)
        host, _ = _spawn("harness.host.car", VENUS_LIVEKIT_URL=livekit.url, VENUS_HOST_TOKEN=livekit.token("car-host"),
                         VENUS_BUS_ADDR=ready["addr"], VENUS_BUS_TOKEN=token, VENUS_TRACE_DIR=str(folder))
        started.append(host)
        yield livekit, folder, ready["addr"]
        for process in reversed(started):
            begin = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0 and time.monotonic() - begin < 2.5
    finally:
        for process in started:
            process.kill()
            process.stdout.close()
            process.wait()
        livekit.close()


class Caller:
    """A participant that asks for effects."""

    def __init__(self, livekit, identity="venus-agent", kind="agent"):
        self.livekit, self.identity, self.kind = livekit, identity, kind

    async def __aenter__(self):
        self.room = rtc.Room()
        await self.room.connect(self.livekit.url, self.livekit.token(self.identity, self.kind))
        for _ in range(100):
            if "car-host" in self.room.remote_participants:
                return self
            await asyncio.sleep(0.05)
        pytest.fail("the car host is not in the room")

    async def __aexit__(self, *_exc):
        await self.room.disconnect()

    async def call(self, payload, timeout_s):
        return await self.room.local_participant.perform_rpc(
            destination_identity="car-host", method=METHOD, payload=payload, response_timeout=timeout_s, max_round_trip_latency=2.0)

    def bus(self, **task):
        return RemoteVehicleBus(self.call, **task)


async def test_agent_actuates_and_is_refused_through_the_room(system):
    """The temperature reaches its target in the car; the tailgate at 50 km/h is refused with reason and speed."""
    livekit, folder, _ = system
    async with Caller(livekit) as caller:
        bus = caller.bus(task_id="task-1", task_version=2)
        effect = await bus.actuate(TEMP, 22.0)
        assert effect.reached and effect.value == 22.0
        assert (await bus.get(TEMP))[TEMP].value == 22.0
        with pytest.raises(UnsafeNow) as caught:
            await bus.actuate(GATE, True)
        assert caught.value.data == {"reason": "moving", "speed": 50}
        times = []
        for _ in range(30):
            begin = time.perf_counter()
            await bus.get("Vehicle.Speed")
            times.append(time.perf_counter() - begin)
        print(f"venus.effect get p50 {statistics.median(times) * 1e3:.1f} ms, max {max(times) * 1e3:.1f} ms")
    rows = [json.loads(line) for line in (folder / "carhost.trace.jsonl").read_text().splitlines()]
    effects = [(r["path"], r["verdict"], r["reason"], r["task"]) for r in rows if r["ev"] == "effect"]
    assert effects == [(TEMP, "allow", "", "task-1"), (GATE, "refuse", "moving", "task-1")]


@pytest.mark.parametrize("identity, kind", [("device-1", "standard"), ("other-agent", "agent"), ("venus-agent", "standard")])
async def test_nobody_but_the_agent_is_answered(system, identity, kind):
    """The right name with a token of another kind, and the right kind with another name, are both refused."""
    async with Caller(system[0], identity, kind) as caller:
        with pytest.raises(NotPermitted) as caught:
            await caller.bus().actuate(TEMP, 25.0)
        assert caught.value.data["reason"] == "caller"


async def test_car_host_joins_again_after_the_room_was_closed(system):
    """The server closes the room; the host comes back by itself and answers."""
    livekit, _, _ = system
    async with api.LiveKitAPI(livekit.url.replace("ws", "http", 1), "testkey", livekit.secret) as admin:
        await admin.room.delete_room(api.DeleteRoomRequest(room=ROOM))
    await asyncio.sleep(0.3)
    async with Caller(livekit) as caller:
        for attempt in range(40):  # the participant is there a moment before its method is
            try:
                assert (await caller.bus().get("Vehicle.Speed"))["Vehicle.Speed"].value == pytest.approx(50)
                break
            except Exception:
                if attempt == 39:
                    raise
                await asyncio.sleep(0.1)


def test_wrong_tokens_and_missing_settings_are_one_line(system):
    """A refused bus token, a refused join token, a missing variable: one line naming it, status 2, no traceback."""
    livekit, _, addr = system
    good = {"VENUS_LIVEKIT_URL": livekit.url, "VENUS_HOST_TOKEN": livekit.token("car-host-2"), "VENUS_BUS_ADDR": addr, "VENUS_BUS_TOKEN": "x"}
    for change, word in [({}, "VENUS_BUS_TOKEN"), ({"VENUS_HOST_TOKEN": "nonsense", "VENUS_BUS_ADDR": "127.0.0.1:9"}, "VENUS_HOST_TOKEN"),
                         ({"VENUS_HOST_TOKEN": ""}, "VENUS_HOST_TOKEN"), ({"VENUS_LIVEKIT_URL": "http://x"}, "VENUS_LIVEKIT_URL")]:
        done = subprocess.run([sys.executable, "-m", "harness.host.car"], env={**os.environ, **good, **change}, capture_output=True, text=True, timeout=40)
        assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
        assert [word in line for line in done.stderr.splitlines() if line.startswith("config:")] == [True], done.stderr
