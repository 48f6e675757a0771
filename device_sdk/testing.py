"""For tests without a room: a scripted cloud behind an in-memory transport, a room with an echo, and an audio loop on virtual time.

    clock = VirtualClock()
    cloud = FakeCloud()
    device = Device(DeviceSettings(), clock, transport=cloud.transport)
    loop = AudioLoop(device, clock)
    await device.connect("memory://", "")
    await loop.run(0.5)
    cloud.say("seg-1", samples)
    await loop.run(2.0)
    assert cloud.ledger.get("seg-1").final
"""

from collections.abc import Callable

import numpy as np

from device_sdk import wire
from device_sdk.resample import Resampler
from venus_edge.testing import VirtualClock

MIC_BLOCK = 160


class MemoryTransport:
    """The device's end of a FakeCloud; everything arrives at once and in order, unless `lose` says otherwise."""

    def __init__(self, cloud: "FakeCloud"):
        self._cloud = cloud
        self.listener = None
        self.connected = False
        self.room, self.token = "memory", ""
        self.refuse: Exception | None = None
        """Every join meets this while it is set."""
        self.tokens: list[str] = []
        """The token of every join."""

    async def connect(self, url: str, token: str, listener) -> None:
        self.tokens.append(token)
        if self.refuse is not None:
            raise self.refuse
        self.listener = listener
        self.connected = True
        if self._cloud.present:
            listener.on_agent(self._cloud.identity)

    async def close(self) -> None:
        self.connected = False

    def send(self, topic: str, payload: bytes, *, reliable: bool = True, droppable: bool = False) -> bool:
        if not self.connected or not self._cloud.present:
            return False
        if self._cloud.lose(topic, payload, reliable):
            self._cloud.lost += 1
            return True  # a sender never learns of a loss
        self._cloud.receive(topic, payload, reliable)
        return True

    def call(self, method: str, payload: str) -> None:
        self._cloud.calls.append((method, payload))


class FakeCloud:
    """The whole cloud side of PROTOCOL.md: welcomes, acknowledges, keeps a playout ledger, and does what a test tells it."""

    def __init__(self, *, present: bool = True, welcome: bool = True, unit_ms: int = 200, rate: int = 24_000):
        self.identity = wire.AGENT_IDENTITY
        self.transport = MemoryTransport(self)
        self.present, self.welcome, self.acknowledge, self._unit_ms, self._rate = present, welcome, True, unit_ms, rate
        self.ctl: list = []
        self.mic: list[wire.MicPacket] = []
        self.reports: list[tuple[wire.PlayoutReport, bool]] = []
        self.order: list[str] = []
        """Kinds of everything received, in order: `ctl.gate`, `mic`, `playout`."""
        self.calls: list[tuple[str, str]] = []
        self.ledger = wire.PlayoutLedger()
        self.lose: Callable[[str, bytes, bool], bool] = lambda topic, payload, reliable: False
        self.lost = 0
        self._ids = 0

    # ---- what the device says ----------------------------------------------------------------------------------------

    def receive(self, topic: str, payload: bytes, reliable: bool) -> None:
        if topic == wire.TOPIC_MIC:
            self.mic.append(wire.MicPacket.unpack(payload))
            self.order.append("mic")
        elif topic == wire.TOPIC_PLAYOUT:
            report = wire.decode_report(payload)
            self.reports.append((report, reliable))
            self.order.append("playout")
            self.ledger.apply(report)
            if reliable and self.acknowledge:
                self.tell(wire.Ack(boot=report.boot, n=report.n))
        else:
            message = wire.decode_ctl(payload)
            self.ctl.append(message)
            self.order.append(f"ctl.{message.type}")
            if isinstance(message, wire.Hello) and self.welcome:
                self.tell(wire.answer_hello(message, "session-1", self._unit_ms))

    def of(self, kind: type) -> list:
        """Control messages of one type, in order of arrival."""
        return [message for message in self.ctl if isinstance(message, kind)]

    def heard(self, start: int, end: int) -> np.ndarray:
        """Microphone samples of [start, end) from the packets; zeros where nothing was sent."""
        out = np.zeros(end - start, np.int16)
        for packet in self.mic:
            first, last = max(start, packet.pos), min(end, packet.end)
            if last > first:
                out[first - start:last - start] = packet.samples[first - packet.pos:last - packet.pos]
        return out

    # ---- what it says to the device ----------------------------------------------------------------------------------

    def tell(self, message) -> None:
        self.transport.listener.on_message(wire.TOPIC_CTL, wire.encode_ctl(message))

    def begin(self, seg: str, *, ours: bool = True, rate: int | None = None, start: int = 0) -> str | None:
        """Open a speech stream; the id that the device feeds, or None if it refused."""
        attributes = {wire.ATTR_SAMPLE_RATE: str(rate or self._rate), wire.ATTR_NUM_CHANNELS: "1"}
        if ours:
            attributes |= {wire.ATTR_SEG: seg, wire.ATTR_START: str(start)}
        return self.transport.listener.on_speech_open(seg, attributes)

    def push(self, seg: str, start: int, samples: np.ndarray) -> None:
        self.transport.listener.on_speech(seg, start, samples)

    def end(self, seg: str, whole: bool = True) -> None:
        self.transport.listener.on_speech_end(seg, whole)

    def say(self, seg: str, samples: np.ndarray, *, ours: bool = True) -> None:
        """A whole segment at once, in chunks of 20 ms."""
        if self.begin(seg, ours=ours) is None:
            return
        step = self._rate // 50
        for i in range(0, len(samples), step):
            self.push(seg, i, samples[i:i + step])
        self.end(seg)

    def flush(self, seg: str = "", key: str | None = None) -> None:
        self.tell(wire.Flush(seg=seg, id=key or self._id("f")))

    def restore(self, reason: str = "backchannel") -> None:
        self.tell(wire.Restore(id=self._id("r"), reason=reason))

    def join(self) -> None:
        self.present = True
        self.transport.listener.on_agent(self.identity)

    def leave(self) -> None:
        self.present = False
        self.transport.listener.on_agent(None)

    def link(self, state: str, reason: str = "") -> None:
        """down | up | lost, as the transport would tell it."""
        self.transport.listener.on_link(state, reason)

    def _id(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}{self._ids}"


class EchoRoom:
    """How the loudspeaker sounds at the microphone: a synthetic decaying response with a first path, `gain_db` overall."""

    def __init__(self, rate: int = 24_000, *, gain_db: float = -6.0, t60_s: float = 0.2, path_s: float = 0.004, seed: int = 1):
        rng = np.random.default_rng(seed)
        n = round(0.12 * wire.MIC_RATE)
        response = rng.standard_normal(n) * np.exp(-6.9 * np.arange(n) / (wire.MIC_RATE * t60_s))
        response[0] = 4.0
        response *= 10 ** (gain_db / 20) / np.sqrt((response**2).sum())
        self._response = np.concatenate([np.zeros(round(path_s * wire.MIC_RATE)), response]).astype(np.float32)
        self._tail = np.zeros(len(self._response) - 1 + MIC_BLOCK, np.float32)
        self._resample = Resampler(rate, wire.MIC_RATE)

    def __call__(self, leaving: np.ndarray) -> np.ndarray:
        """10 ms that leave the loudspeaker in; the 160 samples that reach the microphone meanwhile out (float32)."""
        self._tail[:-MIC_BLOCK] = self._tail[MIC_BLOCK:]
        self._tail[-MIC_BLOCK:] = 0
        self._tail += np.convolve(self._resample(leaving).astype(np.float32), self._response)
        return self._tail[:MIC_BLOCK].copy()


class AudioLoop:
    """Drives a Device block by block on a virtual clock.

    `near(pos)` gives the 160 samples that people make at `pos` (default: silence). `room` adds the loudspeaker's echo.
    Keeps `speaker`: what left the loudspeaker, one row of samples at the device's rate, index 0 at device position 0.
    """

    def __init__(self, device, clock: VirtualClock, near: Callable[[int], np.ndarray] | None = None, room: EchoRoom | None = None):
        self.device, self.clock, self.near, self.room = device, clock, near, room
        self._rate = device.settings.out_rate
        self._block = self._rate // 100
        self._line = np.zeros(round(device.settings.dac_delay_s * self._rate), np.int16)
        self._left: list[np.ndarray] = []
        self._heard: list[np.ndarray] = []

    @property
    def speaker(self) -> np.ndarray:
        return np.concatenate(self._left) if self._left else np.zeros(0, np.int16)

    @property
    def mic(self) -> np.ndarray:
        """What the microphone heard."""
        return np.concatenate(self._heard) if self._heard else np.zeros(0, np.int16)

    async def run(self, seconds: float) -> None:
        for _ in range(round(seconds * 100)):
            await self.step()

    async def step(self) -> None:
        """One block of 10 ms."""
        pos = self.device.pos
        self._line = np.concatenate([self._line, self.device.render(self._block)])
        leaving, self._line = self._line[:self._block], self._line[self._block:]
        self._left.append(leaving)
        mic = np.zeros(MIC_BLOCK, np.float32) if self.near is None else self.near(pos).astype(np.float32)
        if self.room is not None:
            mic = mic + self.room(leaving)
        block = np.clip(np.rint(mic), -32768, 32767).astype(np.int16)
        self._heard.append(block)
        self.device.capture(block)
        await self.clock.advance(0.01)


class ScriptedVad:
    """A voice-activity judge for tests that are not about the model: speech wherever a frame is louder than `level`."""

    def __init__(self, level: float = 500.0):
        self._level = level

    def __call__(self, frame: np.ndarray) -> float:
        return 0.95 if float(np.abs(frame.astype(np.float32)).mean()) > self._level else 0.02

    def skip(self, frame: np.ndarray) -> None:
        pass

    def reset(self) -> None:
        pass
