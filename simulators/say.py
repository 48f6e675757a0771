"""`venus say "…"`: one request, spoken by a simulated person in a parked car, into the running system; the answer as text and sound."""
import asyncio
import contextlib
import json
import logging
import os
import wave
from pathlib import Path
from typing import Any

import numpy as np
from livekit import rtc

from device_sdk import Device, DeviceSettings
from device_sdk.wire import TOPIC_TRANSCRIPTION
from simulators.car.acoustics import MIC_RATE, SPEAKER_RATE, CabinSettings
from simulators.car.cabin import Cabin
from simulators.car.script import Line, ScriptedPeople
from simulators.people import catalogue
from simulators.people.cache import VoiceCache
from simulators.run import interruptible
from simulators.scenario import When
from venus_edge.clock import SystemClock
from venus_edge.errors import ConfigError
from venus_edge.ids import new_id
from venus_edge.paths import cache_dir
from venus_edge.redact import without_tokens, why_refused
from venus_edge.tokens import mint
from venus_edge.trace import Trace

AGENT_WAIT_S = 20.0
ANSWER_WAIT_S = 8.0
MAX_S = 60.0
TAIL_S = 2.5


def run(text: str, voice: str, out: str | None, as_json: bool) -> int:
    if not text.strip() or len(text) > 300:
        raise ConfigError("text: 1 to 300 characters are needed")
    if voice not in catalogue.VOICES:
        raise ConfigError(f"--voice: '{voice}' is not one of {', '.join(catalogue.VOICES)}")
    logging.getLogger("livekit").setLevel(logging.CRITICAL)  # what it would say of a failed join, the error says
    return interruptible(_say(text, voice, Path(out) if out else None, as_json))


def running_system() -> dict[str, Any]:
    """How to join what `venus up` started; raises ConfigError when nothing runs."""
    try:
        state = json.loads((cache_dir() / "run" / "up.json").read_text())
        os.kill(state["pid"], 0)
        return state
    except (OSError, ValueError, KeyError):
        raise ConfigError("no system is running here; start one with `venus up`") from None


async def _say(text: str, voice: str, out: Path | None, as_json: bool) -> int:
    system = running_system()
    sound = await asyncio.to_thread(VoiceCache().get, text, voice)
    clock = SystemClock()
    heard: list[tuple[str, str]] = []
    observer = await _observe(system, heard)
    device = Device(DeviceSettings(), clock, Trace("device"))
    script = ScriptedPeople([Line("say", "driver", text, sound, When(after_s=0.3))])
    cabin = Cabin(device, script, CabinSettings(), clock=clock, keep=True)
    first: list[int] = []
    device.on_event = lambda e: first.append(e["pos"]) if e["ev"] == "segment" else None
    state = {"begun": False}

    def over() -> bool:
        if not state["begun"] or not script.done:
            return False
        end = script.said[-1][2]
        if cabin.ear.last_sound <= end:
            return cabin.pos - end > ANSWER_WAIT_S * MIC_RATE
        return cabin.pos - cabin.ear.last_sound > TAIL_S * MIC_RATE

    try:
        identity = f"device-say-{new_id()[-6:].lower()}"
        await device.connect(system["url"], mint(system["key"], system["secret"], identity=identity, room=system["room"]))
        playing = asyncio.create_task(cabin.run(MAX_S + AGENT_WAIT_S, over))
        await device.wait_ready(AGENT_WAIT_S)
        state["begun"] = True
        cabin.begin()
        await playing
    finally:
        with contextlib.suppress(Exception):
            await asyncio.wait_for(device.close(), 2.0)
        await observer.disconnect()
    end = script.said[-1][2] if script.said else 0
    latency = round((first[0] - end) / MIC_RATE, 3) if first else None
    if out:
        _write(out, cabin.loudspeaker[end * SPEAKER_RATE // MIC_RATE:])
    understood = [t for who, t in heard if who == "user"]
    answers = [t.strip() for who, t in heard if who == "agent"]
    if as_json:
        print(json.dumps({"said": text, "understood": understood, "answers": answers, "latency_s": latency}, ensure_ascii=False))
    else:
        print(f"said        {text}")
        for line in understood:
            print(f"understood  {line}")
        for line in answers:
            print(f"answer      {line}")
        print(f"latency     {latency:.2f} s" if latency is not None else "no answer")
    return 0 if answers else 1


async def _observe(system: dict, heard: list[tuple[str, str]]) -> rtc.Room:
    """A hidden participant that reads `lk.transcription` as any stock client would."""
    room = rtc.Room()
    tasks: set[asyncio.Task] = set()

    async def read(reader, identity: str) -> None:
        text = await reader.read_all()
        attributes = reader.info.attributes or {}
        if identity.startswith("device"):
            if attributes.get("lk.transcription_final") == "true":
                heard.append(("user", text))
        else:
            heard.append(("agent", text))

    def stream(reader, identity: str) -> None:
        task = asyncio.create_task(read(reader, identity))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    room.register_text_stream_handler(TOPIC_TRANSCRIPTION, stream)
    token = mint(system["key"], system["secret"], identity=f"observer-{new_id()[-6:].lower()}", room=system["room"], role="observer")
    try:
        await room.connect(system["url"], token, rtc.RoomOptions(auto_subscribe=False, connect_timeout=5.0, rtc_config=rtc.RtcConfiguration(
            ice_servers=[rtc.IceServer(urls=["stun:127.0.0.1:3478"])])))
    except rtc.ConnectError as err:
        refused = why_refused(str(err))
        why = f"its token is refused, {refused}" if refused else without_tokens(str(err))
        raise ConfigError(f"the system that `venus up` started can't be joined at {system['url']}: {why}") from err
    return room


def _write(path: Path, samples: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as f:
        f.setnchannels(1)
        f.setsampwidth(2)
        f.setframerate(SPEAKER_RATE)
        f.writeframes(samples.astype("<i2").tobytes())
