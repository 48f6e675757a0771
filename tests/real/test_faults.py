"""A part dies while somebody talks to the system: what the operators' page promises, in the running system."""
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys

import numpy as np
import psutil
import pytest
from live import LiveDevice, LiveSystem, StockClient, until
from test_device_livekit import Agent, RealLoop, Server, make_device, numbered
from test_system import SCENARIO, one_line, ours, venus

from device_sdk import AudioFormatError, Device, DeviceState, wire
from venus_edge.clock import SystemClock
from venus_edge.paths import cache_dir, root
from venus_edge.tokens import mint

SPEED, ABOUT, WARM, OPEN = "How fast are we going?", "What can you do?", "Set the temperature to twenty-two degrees", "Open the tailgate"
FIND = "Find a charging station"
CAR_HOST, WORKER, ENGINE, SIGNALS, LIVEKIT = "harness.host.car", "cloud_core.worker", "cloud_core.engine.server", "simulators.car.signals", "livekit-server"
AGAIN_S = 15.0
"""In this time after a death the device has a session again, and a new request is answered."""


async def kill(system, part) -> psutil.Process:
    process = system.process(part)
    process.kill()
    await until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE, 3, f"{part} is dead")
    return process


async def restarted(system, part, dead) -> psutil.Process:
    return await until(lambda: (p := system.process(part)) and p.pid != dead.pid and p, AGAIN_S, f"{part} is started again")


async def healthy(system) -> None:
    await until(lambda: system.health()[0] == 200, AGAIN_S, "all processes serve")


async def die_while_speaking(system, device, client, part) -> None:
    """Kill `part` in the middle of an answer: what has arrived is played; then hello, a new session, a new answer."""
    welcomes = len(device.of("welcome"))
    device.people.say(ABOUT)
    seg = await until(lambda: next((s for s in device.device.player.live if s.played > 12_000), None), 12, "the assistant speaks")
    begin = asyncio.get_running_loop().time()
    dead = await kill(system, part)
    had = seg.rx
    await until(lambda: seg.state.final, 10, "the segment that broke off is over")
    assert seg.played == seg.rx >= had and not seg.gaps[:-1], (seg.played, seg.rx, had, seg.gaps)
    await until(lambda: len(device.of("welcome")) > welcomes, AGAIN_S, f"a new session after the death of {part}")
    await restarted(system, part, dead)
    await device.ask(SPEED, client, AGAIN_S, standing)
    assert asyncio.get_running_loop().time() - begin < 25


def cant(words: str) -> bool:
    return any(word in words.lower() for word in ("can't", "cannot", "couldn't", "not available", "unavailable", "isn't answering"))


def standing(words: str) -> bool:
    return "standing" in words.lower()


def warm(words: str) -> bool:
    """It was done: the value is told."""
    return "22" in words or "twenty-two" in words.lower()


async def without_the_car_host(system, device, client) -> None:
    """Dead, and not yet back: the request is answered, by what can't be done. Back: it is done."""
    new = await restarted(system, CAR_HOST, await kill(system, CAR_HOST))
    new.send_signal(signal.SIGSTOP)  # it stays away until the answer is there
    try:
        refused = await device.ask(WARM, client, 20, cant)
    finally:
        new.send_signal(signal.SIGCONT)
    assert not warm(refused.text), refused
    await healthy(system)
    await device.ask(WARM, client, 20, warm)


async def test_deaths_of_the_worker_and_of_the_car_host(tmp_path):
    """One system, one device, two deaths; every request has its answer."""
    with LiveSystem(tmp_path) as system:
        async with StockClient(system) as client, LiveDevice(system, [SPEED, ABOUT, WARM]) as device:
            await without_the_car_host(system, device, client)
            await die_while_speaking(system, device, client, WORKER)


async def admitted(system, task: str = "", kind: str = "result", since: float = 0.0, within_s: float = AGAIN_S) -> dict:
    """The first reply about a task (any, where none is given) that a worker admitted since."""
    def found():
        return next((r for r in system.trace("worker", "reply.admit") if r["kind"] == kind and task in ("", r["task"]) and r["t"] > since), None)
    return await until(found, within_s, f"a {kind} is admitted")


async def ended(system, task: str, within_s: float) -> str:
    """How the telling of a task ended."""
    ends = ("delivered", "unspoken", "merged", "dropped")
    rows = await until(lambda: [r["to"] for r in system.trace("worker", "task.delivery") if r["task"] == task and r["to"] in ends], within_s,
                       "what came of it is told")
    return rows[0]


async def cut_in_the_middle_of_a_reply(system, device) -> None:
    """The worker dies while it tells a result: what the device played of it is not said again, and the rest is."""
    device.people.say(FIND)
    reply = await admitted(system)
    row = await until(lambda: next((r for r in system.trace("worker", "segment") if r["reply"] == reply["reply"]), None), 5, "it is spoken")
    seg = await until(lambda: next((s for s in device.device.player.live if s.id == row["seg"] and s.played > 24_000), None), 10, "it is heard")
    await kill(system, WORKER)
    spans = [span for r in system.trace("worker", "segment") + system.trace("worker", "segment.more") if r["seg"] == seg.id for span in r["spans"]]
    ready = len(system.trace("worker", "session.ready"))
    await until(lambda: len(system.trace("worker", "session.ready")) > ready, AGAIN_S, "a new session")
    end = await ended(system, reply["task"], 20)
    heard = " ".join(text.strip() for text, _, last in spans if last <= seg.played).split()
    again = [r["text"] for r in system.trace("worker", "reply.admit")
             if r["task"] == reply["task"] and r["reply"] != reply["reply"] and r["kind"] == "result"]
    assert heard and end in ("delivered", "unspoken") and len(again) <= 1, (heard, end, again)
    words = reply["text"].split()
    if again:
        left = len(words) - len(heard)
        assert words[-1] == again[0].split()[-1] and len(again[0].split()) <= left + 3 + len("As I was saying,".split()), (words, heard, again)
    else:
        assert end == "unspoken" or len(heard) >= 0.8 * len(words), (words, heard)


async def cut_while_a_task_runs(system, device) -> None:
    """The worker dies while the car host keeps a request waiting: it is done after all, once the device is welcomed, and told within 5 s."""
    host = system.process(CAR_HOST)
    host.send_signal(signal.SIGSTOP)
    try:
        device.people.say(WARM)
        task = (await until(lambda: next((r for r in system.trace("worker", "task.execution") if r["capability"] == "vehicle.set_temperature"
                                          and r["to"] == "running"), None), 12, "it runs"))["task"]
        ready = len(system.trace("worker", "session.ready"))
        await kill(system, WORKER)
    finally:
        host.send_signal(signal.SIGCONT)
    welcomed = (await until(lambda: system.trace("worker", "session.ready")[ready:], AGAIN_S, "a new session"))[0]["t"]
    told = await admitted(system, task, since=welcomed)
    assert warm(told["text"]) and told["t"] - welcomed < 5, (told, told["t"] - welcomed)
    assert await ended(system, task, 10) == "delivered"


async def test_deaths_of_the_worker_in_the_middle_of_a_reply_and_of_a_task(tmp_path):
    """What was promised is kept by the next process: nothing is lost, nothing is said twice."""
    with LiveSystem(tmp_path) as system:
        async with LiveDevice(system, [FIND, WARM]) as device:
            await cut_in_the_middle_of_a_reply(system, device)
            await cut_while_a_task_runs(system, device)


@pytest.mark.slow
async def test_deaths_of_the_engine_and_of_the_vehicle_signals(tmp_path):
    """The engine in the middle of an answer; the signals: nothing that needs a parked car is done while they are away."""
    with LiveSystem(tmp_path) as system:
        async with StockClient(system) as client, LiveDevice(system, [SPEED, ABOUT, OPEN]) as device:
            await die_while_speaking(system, device, client, ENGINE)
            new = await restarted(system, SIGNALS, await kill(system, SIGNALS))
            new.send_signal(signal.SIGSTOP)
            try:
                await device.ask(OPEN, client, 20, cant)
            finally:
                new.send_signal(signal.SIGCONT)
            assert not [row for row in system.trace("carhost", "effect") if row["verdict"] == "allow"]
            await healthy(system)
            await device.ask(SPEED, client, 20, standing)


@pytest.mark.slow
async def test_death_of_the_livekit_server(tmp_path):
    """It is restarted on its port: device, agent and car host are all in the room again, and a request is carried out."""
    with LiveSystem(tmp_path) as system:
        async with LiveDevice(system, [SPEED, WARM], token=lambda: system.token("device-test")) as device:
            welcomes = len(device.of("welcome"))
            await kill(system, LIVEKIT)
            await until(lambda: device.device.state is DeviceState.RECONNECTING, 5, "the device notices")
            await until(lambda: device.device.state is DeviceState.LISTENING and len(device.of("welcome")) > welcomes, 60, "a new session")
            await healthy(system)
            async with StockClient(system) as client:
                await device.ask(WARM, client, 20, warm)


@pytest.mark.slow
async def test_a_second_device_of_the_same_name_takes_over_and_stays(tmp_path):
    """The first is put out and doesn't fight; the second has a session of its own, also after the first's would have been forgotten."""
    with LiveSystem(tmp_path) as system:
        async with StockClient(system) as client, LiveDevice(system, [SPEED], boot=1) as first:
            await first.ask(SPEED, client)
            async with LiveDevice(system, [SPEED], boot=2) as second:
                await until(lambda: first.device.state is DeviceState.IDLE, 5, "the first is out")
                assert first.of("link")[-1]["reason"] == "DUPLICATE_IDENTITY"
                await second.ask(SPEED, client)
                await asyncio.sleep(31)
                await second.ask(SPEED, client)
                assert second.device.state is DeviceState.LISTENING and len(second.of("welcome")) == 1 and not second.of("error")
                assert first.device.state is DeviceState.IDLE and len(system.trace("worker", "session.ready")) == 2


class Shifted(SystemClock):
    """Wall time off by `seconds`, for tokens of another hour."""

    def __init__(self, seconds: float):
        self._seconds = seconds

    def wall(self) -> float:
        return super().wall() + self._seconds


async def test_a_wrong_token_is_one_clear_error(tmp_path):
    """Expired, too early, of another secret, no token, for another room: named, status 2, never quoted, no process left."""
    server = await Server(tmp_path).ready()
    try:
        good = {"identity": "device-1", "room": "venus"}
        cases = {
            "expired": (mint(server.key, server.secret, ttl_s=60, clock=Shifted(-3600), **good), "token", "expired"),
            "early": (mint(server.key, server.secret, clock=Shifted(3600), **good), "token", "not valid yet"),
            "secret": (mint(server.key, "x" * 32, **good), "token", "signature"),
            "nonsense": ("nonsense", "token", "no token"),
            "other room": (mint(server.key, server.secret, identity="device-1", room="other"), "no agent is in room 'other'", "token"),
        }
        env = {**os.environ, "VENUS_LIVEKIT_URL": server.url, "VENUS_SCENARIO": SCENARIO, "VENUS_OUT": str(tmp_path), "VENUS_AGENT_WAIT_S": "2"}
        started = {name: subprocess.Popen([sys.executable, "-m", "simulators.car.cabin"], cwd=root(), env={**env, "VENUS_DEVICE_TOKEN": token},
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for name, (token, *_) in cases.items()}
        for name, process in started.items():
            out, err = await asyncio.to_thread(process.communicate, timeout=40)
            own = [line for line in err.splitlines() if " livekit " not in line]  # the native module's log of the refusal
            assert process.returncode == 2 and len(own) == 1 and all(word in own[0] for word in cases[name][1:]), (name, process.returncode, err)
            assert "Traceback" not in err and "eyJ" not in err + out, (name, err)
        cache = tmp_path / "cache"
        (cache / "run").mkdir(parents=True)
        for item in cache_dir().iterdir():
            if item.name != "run":
                (cache / item.name).symlink_to(item)
        state = {"pid": os.getpid(), "url": server.url, "key": server.key, "secret": "y" * 32, "room": "venus"}
        (cache / "run" / "up.json").write_text(json.dumps(state))
        said = await asyncio.to_thread(venus, "say", SPEED, VENUS_CACHE=str(cache))
        one_line(said, "token is refused", "signature")
        assert "eyJ" not in said.stderr
    finally:
        server.stop()
    assert not ours(str(tmp_path))


def test_say_without_a_system_is_one_line(tmp_path):
    one_line(venus("say", SPEED, VENUS_CACHE=str(tmp_path)), "no system is running")


@pytest.mark.parametrize("block", [
    np.zeros(480, np.int16), np.zeros(441, np.int16), np.zeros(159, np.int16), np.zeros(0, np.int16), np.zeros((160, 2), np.int16),
    np.zeros(160, np.float32), np.zeros(160, np.int32), np.zeros(160, ">i2"), b"\0" * 320, [0] * 160, None],
    ids=["48 kHz", "44.1 kHz", "short", "empty", "stereo", "float", "int32", "big-endian", "bytes", "list", "nothing"])
def test_a_microphone_of_another_format_is_a_typed_error(block):
    """The native echo canceller would abort the process: the device names the field first, and takes the next good block."""
    device = Device(clock=SystemClock())
    with pytest.raises(AudioFormatError, match=r"mic: must be int16\[160\] \(10 ms at 16000\)") as caught:
        device.capture(block)
    assert caught.value.data["field"] == "mic" and caught.value.code == "bad_audio" and device.pos == 0
    device.render()
    device.capture(np.zeros(320, np.int16)[::2])
    assert device.pos == 160


@pytest.mark.parametrize("n", [160, 480, 0, -1, 240.5, "240"])
def test_a_loudspeaker_of_another_block_is_a_typed_error(n):
    device = Device(clock=SystemClock())
    with pytest.raises(AudioFormatError, match=r"n_out: must be 240 \(10 ms at 24000\)"):
        device.render(n)
    with contextlib.suppress(AudioFormatError):
        device.set_dac_delay(9.0)
    assert len(device.render(240)) == 240


@pytest.mark.slow
async def test_a_server_that_is_away_for_long_is_joined_again(tmp_path):
    """Longer than LiveKit's client tries by itself: the device goes on with a fresh token, and the new agent welcomes it."""
    server = await Server(tmp_path).ready()
    command = server.process.args
    made = []

    def token():
        made.append(server.token("device-1"))
        return made[-1]

    device, _ = make_device()
    links = []
    device.on_event = lambda e: links.append((e["state"], e["reason"])) if e["ev"] == "link" else None
    loop = RealLoop(device, numbered(lambda: False))
    agent = await Agent(server).join()
    await device.connect(server.url, token)
    audio = asyncio.create_task(loop.run())
    later = None
    try:
        await device.wait_ready(5)
        server.process.kill()
        server.process.wait()
        await until(lambda: len(links) >= 2, 40, "LiveKit's client gives up")
        assert links[1][0] == "down" and device.state is DeviceState.RECONNECTING
        server.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        await server.ready()
        later = await Agent(server).join()
        await device.wait_ready(20)
        assert device.state is DeviceState.LISTENING and links[-1][0] == "up" and len(made) >= 2 and later.of(wire.Hello)
    finally:
        audio.cancel()
        await device.close()
        for each in filter(None, (agent, later)):
            await each.leave()
        server.stop()
