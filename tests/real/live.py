"""A device, a person and a stock client in a running system: what the tests of the whole product share."""
import asyncio
import contextlib
import json
import secrets
import time
import urllib.request
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
from livekit import rtc
from test_system import Up, ours

from device_sdk import Device, DeviceSettings, wire
from simulators.car.acoustics import CabinSettings
from simulators.car.cabin import Cabin
from simulators.car.script import Facts, Line
from simulators.people.cache import VoiceCache
from simulators.scenario import When
from venus_edge.clock import SystemClock
from venus_edge.tokens import mint
from venus_edge.trace import Trace

RTC = rtc.RtcConfiguration(ice_servers=[rtc.IceServer(urls=["stun:127.0.0.1:3478"])])
ROOM = "venus"


class LiveSystem(Up):
    """`venus up` with a secret that the test knows, and traces in `folder`."""

    def __init__(self, folder: Path, **env: str):
        self.folder, self.secret = folder, secrets.token_hex(20)
        super().__init__(VENUS_LIVEKIT_SECRET=self.secret, VENUS_TRACE_DIR=str(folder), VENUS_ROOM=ROOM, **env)

    def __exit__(self, *exc):
        """Stops it; nothing that it started may be left."""
        pids = [p.pid for p in psutil.Process(self.proc.pid).children(recursive=True)] if self.proc.poll() is None else []
        super().__exit__(*exc)
        end = time.monotonic() + 5
        while left := [pid for pid in pids if psutil.pid_exists(pid)] + ours(str(self.folder)):
            assert time.monotonic() < end, f"still running: {left}"
            time.sleep(0.1)
        self.proc.stdout.close()
        self.proc.stderr.close()

    def process(self, module: str) -> psutil.Process | None:
        """The running process of one part, by a word of its command line."""
        for child in psutil.Process(self.proc.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if any(module in word for word in child.cmdline()):
                    return child
        return None

    def metrics(self) -> dict[str, float]:
        text = urllib.request.urlopen(self.state["metrics"], timeout=2).read().decode()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in text.splitlines())}

    def token(self, identity: str, role: str = "device", **kw) -> str:
        return mint("venus", self.secret, identity=identity, room=ROOM, role=role, **kw)

    def trace(self, src: str, ev: str) -> list[dict]:
        """The events `ev` of one process so far; of every life of it."""
        path = self.folder / f"{src}.trace.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [row for row in rows if row["ev"] == ev]


async def until(condition, seconds: float, what: str):
    """Poll until `condition()` is true; its value. Fails naming `what`."""
    end = asyncio.get_running_loop().time() + seconds
    while not (found := condition()):
        assert asyncio.get_running_loop().time() < end, f"not within {seconds} s: {what}"
        await asyncio.sleep(0.02)
    return found


class OnDemand:
    """A script for the cabin whose lines are said when the test wants."""

    def __init__(self, texts, voice: str = "marc"):
        cache = VoiceCache()
        self._lines = {text: Line(text, "driver", text, cache.get(text, voice), When(after_s=0.0)) for text in texts}
        self._due: deque[str] = deque()
        self.ends: list[int] = []
        """Position after the last sample of each line said."""

    done = False

    def lines(self):
        return tuple(self._lines.values())

    def start(self, pos: int) -> None:
        pass

    def say(self, text: str) -> None:
        self._due.append(text)

    def tick(self, facts: Facts):
        if not self._due:
            return ()
        line = self._lines[self._due.popleft()]
        self.ends.append(facts.pos + len(line.samples))
        return (line,)


@dataclass
class Stream:
    """One `lk.transcription` text stream as a stock client gets it; attributes of the header, then with those of the trailer."""

    sender: str
    header: dict
    text: str = ""
    attributes: dict = field(default_factory=dict)
    over: bool = False


class StockClient:
    """A plain room client (token of an observer, or of a device that says no hello): reads state and transcripts, sends nothing."""

    def __init__(self, system: LiveSystem, role: str = "observer"):
        self.system, self.role, self.room = system, role, rtc.Room()
        self.packets: list[str] = []
        """Topics of the data packets that came."""
        self.streams: list[Stream] = []
        self.states: list[str] = []
        self._tasks: set[asyncio.Task] = set()

    async def __aenter__(self):
        self.room.on("participant_attributes_changed", self._attributes)
        self.room.on("data_received", lambda packet: self.packets.append(packet.topic))
        self.room.register_text_stream_handler(wire.TOPIC_TRANSCRIPTION, self._opened)
        await self.room.connect(self.system.state["url"], self.system.token(f"{self.role}-{secrets.token_hex(3)}", self.role),
                                rtc.RoomOptions(auto_subscribe=False, rtc_config=RTC))
        return self

    async def __aexit__(self, *exc):
        await self.room.disconnect()

    @property
    def agent(self) -> rtc.RemoteParticipant | None:
        return next((p for p in self.room.remote_participants.values() if p.kind == rtc.ParticipantKind.PARTICIPANT_KIND_AGENT), None)

    def _attributes(self, changed: dict, participant) -> None:
        if "lk.agent.state" in changed and participant.kind == rtc.ParticipantKind.PARTICIPANT_KIND_AGENT:
            self.states.append(changed["lk.agent.state"])

    def _opened(self, reader, sender: str) -> None:
        stream = Stream(sender, dict(reader.info.attributes or {}))
        self.streams.append(stream)
        task = asyncio.create_task(self._read(reader, stream))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read(self, reader, stream: Stream) -> None:
        with contextlib.suppress(rtc.StreamError):
            stream.text = await reader.read_all()
            stream.attributes = dict(reader.info.attributes or {})
        stream.over = True

    def of(self, sender: str) -> list[Stream]:
        return [s for s in self.streams if s.sender == sender]


@dataclass(frozen=True)
class Answer:
    """What one request led to: the spoken text, and seconds from its last sample to the first of the answer."""

    text: str
    latency_s: float


class LiveDevice:
    """The device SDK in a parked car's cabin, in real time, with a person who says what the test wants."""

    def __init__(self, system: LiveSystem, texts, identity: str = "device-test", boot: int | None = None, **connect):
        self.system, self.identity, self._connect = system, identity, connect
        self.rows: list[dict] = []
        self.events: list[dict] = []
        trace = Trace("device", "")
        trace.listeners.append(self.rows.append)
        self.device = Device(DeviceSettings(boot=boot), SystemClock(), trace)
        self.device.on_event = self.events.append
        self.people = OnDemand(texts)
        self.cabin = Cabin(self.device, self.people, CabinSettings(), clock=SystemClock(), keep=True)
        self._sound: asyncio.Task | None = None

    async def __aenter__(self):
        await self.device.connect(self.system.state["url"], self._connect.pop("token", self.system.token(self.identity)), **self._connect)
        self._sound = asyncio.create_task(self.cabin.run(600.0, lambda: False))
        await self.device.wait_ready(15)
        return self

    async def join(self) -> "LiveDevice":
        return await self.__aenter__()

    async def __aexit__(self, *exc):
        self._sound.cancel()
        await asyncio.gather(self._sound, return_exceptions=True)
        await self.device.close()

    def heard(self, start: int = 0) -> np.ndarray:
        """What left the loudspeaker, int16 at 24 kHz, from device position `start` on."""
        return self.cabin.loudspeaker[start * 3 // 2:]

    def of(self, ev: str, since: int = 0) -> list[dict]:
        return [e for e in self.events[since:] if e["ev"] == ev]

    async def ask(self, text: str, client: StockClient, within_s: float = 15.0, wanted=bool) -> Answer:
        """Say it, and wait until what was said in answer, played to its end, is `wanted` (default: anything)."""
        mark, streams, asked = len(self.events), len(client.streams), len(self.people.ends)
        self.people.say(text)

        def answer() -> Answer | None:
            segments = self.of("segment", mark)
            over = {e["seg"] for e in segments if e["state"] in ("ended", "flushed", "lost")}
            if not over or not self._idle() or not all(s.over for s in client.streams[streams:]):
                return None
            words = " ".join(s.text.strip() for s in client.of(wire.AGENT_IDENTITY) if s.header.get("lk.segment_id", "").removeprefix("SG_") in over)
            return Answer(words, (segments[0]["pos"] - self.people.ends[asked]) / wire.MIC_RATE) if wanted(words) else None

        try:
            return await until(answer, within_s, f"an answer to {text!r}")
        except AssertionError as err:
            raise AssertionError(f"{err}; transcripts: {[(s.sender, s.text) for s in client.streams[streams:]]}") from None

    def _idle(self) -> bool:
        return not self.device.player.live
