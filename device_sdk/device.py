"""The device: microphone blocks in, loudspeaker blocks out, and everything between them and the agent in the room.

    device = Device(DeviceSettings(), SystemClock(), Trace("device"))
    await device.connect(url, token)
    # every 10 ms, on the event loop's thread:
    speaker_block = device.render(240)
    device.capture(mic_block)

The audio loop is also the device's heartbeat: reports, reflexes and repeated messages are due by block, so nothing else
needs a timer and a test on virtual time runs the same code.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from device_sdk.errors import AudioFormatError, NotConnected, ProtocolRefused, WireError
from device_sdk.events import DeviceEvent
from device_sdk.gates.audio import Audio, Closed, Opened
from device_sdk.gates.speech import SpeechOff, SpeechOn
from device_sdk.greeting import Greeting
from device_sdk.hearing import MIC_BLOCK, Hearing
from device_sdk.playout import Player
from device_sdk.playout_reports import PlayoutReporter
from device_sdk.reflex import Reflex, ReflexAction
from device_sdk.rejoin import Membership, TokenSource
from device_sdk.settings import DeviceSettings
from device_sdk.speech_in import check_stream, stock_call
from device_sdk.states import DeviceState, StateMachine
from device_sdk.transport import LiveKitTransport, Transport
from device_sdk.wire import ctl, topics
from device_sdk.wire.mic_packet import MicPacket
from device_sdk.wire.models import boot_text
from device_sdk.wire.playout_report import encode_report
from venus_edge.clock import Clock, SystemClock
from venus_edge.errors import ConfigError
from venus_edge.metrics import METRICS
from venus_edge.trace import Trace

ERROR_EVERY_S = 1.0


class Device:
    """One device in one room. All methods belong to the event loop's thread; `render` and `capture` never block.

    `on_state(DeviceState)` and `on_event(DeviceEvent)` are called as it happens; keep them short.
    """

    def __init__(self, settings: DeviceSettings | None = None, clock: Clock | None = None, trace: Trace | None = None,
                 transport: Transport | None = None, vad=None):
        self.settings = s = settings or DeviceSettings()
        self.clock = clock or SystemClock()
        self._trace = trace or Trace("device", clock=self.clock)
        self._transport = transport or LiveKitTransport(self.clock, agent_identity=s.agent_identity, allow_insecure=s.allow_insecure)
        self.on_state: Callable[[DeviceState], None] = lambda state: None
        self.on_event: Callable[[DeviceEvent], None] = lambda event: None
        self.pos = 0
        self.boot = int.from_bytes(os.urandom(4), "little") if s.boot is None else s.boot
        self._boot = boot_text(self.boot)
        self.player = Player(s.out_rate, s.dac_delay_s, start_s=s.start_s, buffer_s=s.buffer_s)
        self._reporter = PlayoutReporter(self.player, self._boot, out=s.output)
        self._reflex = Reflex(self.player, self._reflex_acted, duck_db=s.duck_db, verdict_s=s.verdict_s,
                              offline_flush_s=s.offline_flush_s)
        self._hearing = Hearing(s, vad)
        self._gate = self._hearing.gate
        self._block = s.out_rate // 100
        self._states = StateMachine(lambda state: self.on_state(state))
        self._ready = asyncio.Event()
        self._agent: str | None = None
        self._welcome: ctl.Welcome | None = None
        self._refused: ProtocolRefused | None = None
        self._link_up = False
        self._seq = 0
        self._greeting = Greeting()
        self._session = ""
        self._next_error = 0.0
        self._closing: asyncio.Task | None = None
        self._membership = Membership(self._transport, self.clock, s.rejoin_s, self.boot, lambda: self.on_link("up"), self._lost)

    # ---- joining and leaving -----------------------------------------------------------------------------------------

    @property
    def state(self) -> DeviceState:
        return self._states.state

    async def connect(self, url: str, token: TokenSource) -> None:
        """Join the room; `wait_ready` tells when an agent has welcomed us. Raises ConfigError, TokenRefused or NotConnected.

        A room that is lost later is joined again by itself (`rejoin_s`), with a fresh token where `token` is a function.
        """
        if self._closing is not None:
            await self._closing
        if self.state is not DeviceState.IDLE:
            raise ConfigError("device: has joined a room already; close it first")
        self._states.to(DeviceState.CONNECTING)
        self._refused = None
        self._link_up = True  # before the transport speaks: it may meet the agent at once
        try:
            await self._membership.join(url, token, self)
        except BaseException:
            self._link_up = False
            self._states.to(DeviceState.IDLE)
            raise
        self._reflex.link(True)

    def _lost(self, reason: str) -> None:
        self.on_event({"ev": "link", "state": "lost", "reason": reason})
        self._states.to(DeviceState.STOPPING)
        self._closing = asyncio.ensure_future(self._leave())

    async def wait_ready(self, timeout_s: float = 10.0) -> None:
        """Until welcomed; the audio loop must be running. Raises ProtocolRefused, or NotConnected when it takes too long."""
        waiter = asyncio.ensure_future(self._ready.wait())
        timer = asyncio.ensure_future(self.clock.sleep(timeout_s))
        await asyncio.wait({waiter, timer}, return_when=asyncio.FIRST_COMPLETED)
        waiter.cancel()
        timer.cancel()
        if self._refused is not None:
            raise self._refused
        if self._welcome is None:
            there = f"{self._agent} does not answer" if self._agent else f"no agent is in room {self._transport.room!r}, which the token names"
            raise NotConnected(f"agent: no welcome within {timeout_s:g} s: {there}")

    async def close(self) -> None:
        """Say bye and leave the room. Safe in any state."""
        if self._closing is not None:
            await self._closing
        await self._membership.stop()
        if self.state is DeviceState.IDLE:
            await self._transport.close()
            return
        self._states.to(DeviceState.STOPPING)
        self._gate.enabled = False
        self._send(ctl.Bye(reason="closed"))
        await self._leave()

    async def _leave(self) -> None:
        await self._transport.close()
        self._link_up = False
        self._forget_agent()
        self._states.to(DeviceState.IDLE)
        self._closing = None

    # ---- the audio side ----------------------------------------------------------------------------------------------

    def render(self, n_out: int | None = None) -> np.ndarray:
        """What goes to the DAC now: int16, 10 ms at the loudspeaker's rate. Raises AudioFormatError on another length."""
        if n_out not in (None, self._block):
            raise AudioFormatError(f"n_out: must be {self._block} (10 ms at {self.settings.out_rate}), not {n_out!r}", field="n_out")
        block = self.player.render(self._block, self.pos, self.clock.now())
        self._hearing.rendered(block, self.pos, self.player.sounding)
        return block

    def capture(self, mic: np.ndarray) -> None:
        """The microphone block that has just ended: int16, 160 samples at 16 kHz. Raises AudioFormatError on anything else."""
        if not isinstance(mic, np.ndarray) or mic.dtype != np.int16 or mic.shape != (MIC_BLOCK,):
            found = f"{mic.dtype}{list(mic.shape)}" if isinstance(mic, np.ndarray) else type(mic).__name__
            raise AudioFormatError(f"mic: must be int16[{MIC_BLOCK}] (10 ms at 16000), not {found}", field="mic")
        start = self.pos
        self.pos += MIC_BLOCK
        self._gate.enabled = self._welcome is not None and self._link_up and self.state is not DeviceState.STOPPING
        for output in self._hearing.feed(mic, start):
            self._gate_said(output)
        self._reflex.tick(self.pos)
        self._tell_playout()
        self._say_hello()
        self._update_state()

    def talk(self, on: bool) -> None:
        """Push-to-talk: the button is down (True) or up."""
        self._gate.talking = on

    def stop_speaking(self) -> None:
        """The user wants silence (a button): stop everything that is being said."""
        self._reflex.flush(None, "user", self.pos)

    def set_dac_delay(self, seconds: float) -> None:
        """The audio backend learned a better figure."""
        self.player.set_dac_delay(seconds)
        self._hearing.set_dac_delay(seconds)

    def _gate_said(self, output) -> None:
        match output:
            case SpeechOn(pos=pos, again=again):
                self._reflex.speech(True, pos, self.pos)
                if not again:
                    self._event({"ev": "vad", "on": True, "pos": pos}, "vad.on")
                    self._send(ctl.Vad(on=True, pos=pos))
            case SpeechOff(pos=pos):
                self._reflex.speech(False, pos, self.pos)
                self._event({"ev": "vad", "on": False, "pos": pos}, "vad.off")
                self._send(ctl.Vad(on=False, pos=pos))
            case Opened(pos=pos, withheld=withheld):
                self._event({"ev": "gate", "open": True, "pos": pos, "withheld": withheld}, "gate.open")
                self._send(ctl.Gate(open=True, pos=pos, withheld=withheld))
            case Closed(pos=pos):
                self._event({"ev": "gate", "open": False, "pos": pos}, "gate.close")
                self._send(ctl.Gate(open=False, pos=pos))
            case Audio(pos=pos, samples=samples, gap=gap, preroll=preroll):
                packet = MicPacket(self._seq, self.boot, pos, samples, gap, preroll)
                self._seq = (self._seq + 1) % 2**32
                self._transport.send(topics.TOPIC_MIC, packet.pack(), droppable=True)

    # ---- playout -----------------------------------------------------------------------------------------------------

    def _tell_playout(self) -> None:
        events = self.player.events
        while events:
            e = events.popleft()
            if e.kind == "gap":
                self._trace.event("playout.gap", e.pos, seg=e.seg, start=e.start, len=e.length)
                continue
            self._trace.event(f"seg.{e.kind}", e.pos, seg=e.seg, played=e.played, len=e.length, state=e.state or "playing")
            self.on_event({"ev": "segment", "pos": e.pos, "seg": e.seg, "played": e.played, "length": e.length,
                           "state": str(e.state or "playing")})
            self._mirror(e)
        for report, reliable in self._reporter.due_reports(self.clock.now()):
            if self._welcome is not None:
                self._transport.send(topics.TOPIC_PLAYOUT, encode_report(report), reliable=reliable, droppable=not reliable)

    def _mirror(self, event) -> None:
        """Tell a stock agent in its own words; ours reads the reports."""
        segment = self.player.get(event.seg)
        if segment is None or segment.meta is None or segment.meta.ours:
            return
        self._transport.call(*stock_call(event, self.player.out_rate))

    def _snapshot(self) -> None:
        """Where everything stands, for an agent that may have missed some of it."""
        self._send(ctl.Gate(open=self._gate.open, pos=self.pos))
        for report in self._reporter.snapshot(self.clock.now()):
            self._transport.send(topics.TOPIC_PLAYOUT, encode_report(report))

    def _reflex_acted(self, action: ReflexAction) -> None:
        self._trace.event(action.action, action.pos, reason=action.reason, seg=action.seg, played=action.played)
        self.on_event({"ev": "reflex", "action": action.action, "reason": action.reason, "pos": action.pos, "seg": action.seg,
                       "played": action.played})
        self._send(ctl.Reflex(action=action.action, reason=action.reason, pos=action.pos, seg=action.seg, played=action.played))

    # ---- what the transport tells (Listener) -------------------------------------------------------------------------

    def on_agent(self, identity: str | None) -> None:
        self._forget_agent()
        self._agent = identity
        self._refused = None  # another agent may speak our protocol
        self._greeting.new_agent(self.clock.now())
        self.on_event({"ev": "agent", "identity": identity})

    def on_message(self, topic: str, payload: bytes) -> None:
        if topic != topics.TOPIC_CTL:
            METRICS.add("venus_device_messages_ignored")
            return
        try:
            message = ctl.decode_ctl(payload)
        except WireError as err:
            METRICS.add("venus_device_messages_invalid")
            if self.clock.now() >= self._next_error:
                self._next_error = self.clock.now() + ERROR_EVERY_S
                self._send(ctl.Error(code=err.code, message=err.message, allowed=err.allowed[:2000], re=topic))
            return
        match message:
            case ctl.Welcome():
                self._welcomed(message)
            case ctl.Ping(n=n):
                self._send(ctl.Pong(n=n, pos=self.pos, t=self._now_us()))
            case ctl.Flush(seg=seg, id=key):
                self._reflex.cloud_flush(key, seg or None, self.pos)
            case ctl.Restore(id=key):
                self._reflex.cloud_restore(key, self.pos)
            case ctl.Volume(level=level):
                self.player.volume = level
            case ctl.Screen():
                self.on_event({"ev": "screen", **message.model_dump(include={"id", "task", "kind", "text", "reason", "lang"})})
            case ctl.Ack(boot=boot, n=n):
                if boot == self._boot:
                    self._reporter.ack(n)
            case ctl.Error():
                self._error(message)
            case ctl.Bye(reason=reason):
                self._forget_agent()
                self._agent = None
                self.on_event({"ev": "bye", "reason": reason})
            case _:
                METRICS.add("venus_device_messages_unexpected")

    def on_speech_open(self, name: str, attributes: dict[str, str]) -> str | None:
        try:
            seg, meta = check_stream(name, attributes, self.settings.out_rate)
        except WireError as err:
            METRICS.add("venus_device_streams_invalid")
            self._send(ctl.Error(code=err.code, message=err.message, allowed=err.allowed, re=topics.TOPIC_SPEECH))
            return None
        return seg if self.player.open(seg, meta) else None

    def on_speech(self, seg: str, start: int, samples: np.ndarray) -> None:
        if start == 0:
            self._trace.event("seg.rx", self.pos, seg=seg)
        self.player.push(seg, start, samples)

    def on_speech_end(self, seg: str, whole: bool) -> None:
        if whole:
            self.player.end(seg)  # one that broke off may be resumed; the player gives it up after a while

    def on_link(self, state: str, reason: str = "") -> None:
        if self._membership.rejoining:
            return  # it learns by itself how its attempts end
        self._link_up = state == "up"
        self._reflex.link(self._link_up)
        if state == "lost" and self.state not in (DeviceState.STOPPING, DeviceState.IDLE):
            self._forget_agent()
            self._agent = None
            if not self._membership.again(reason):
                self._lost(reason)
                return
            state = "down"
        self.on_event({"ev": "link", "state": state, "reason": reason})
        if state == "up" and self._welcome is not None:
            self._hello_now()
            self._snapshot()
        self._update_state()

    def on_clear_buffer(self) -> None:
        self._reflex.flush(None, "cloud", self.pos)

    # ---- hello and welcome -------------------------------------------------------------------------------------------

    def _say_hello(self) -> None:
        if self._agent is not None and self._welcome is None and self._refused is None and self._link_up \
                and self._greeting.due(self.clock.now()):
            self._hello_now()

    def _hello_now(self) -> None:
        self._send(ctl.Hello(protocols=list(topics.PROTOCOLS), boot=self._boot, pos=self.pos, t=self._now_us(),
                             capabilities={"out_rate": self.settings.out_rate, **self.settings.capabilities}))

    def _welcomed(self, welcome: ctl.Welcome) -> None:
        if welcome.protocol not in topics.PROTOCOLS:
            self._error(ctl.Error(code="bad_version", message="field protocol: none of those offered", re="hello"))
            return
        again = self._welcome is not None and self._welcome.session == welcome.session
        if welcome.session != self._session:
            self.player.abandon()
        self._welcome, self._session = welcome, welcome.session
        self._reporter.report_s = welcome.report_ms / 1000
        self._gate.packet = welcome.mic_packet_ms * topics.MIC_RATE // 1000
        if again:
            return
        self._greeting.welcomed(self.clock.now())
        if self.player.segments():
            self._snapshot()
        self._ready.set()
        self.on_event({"ev": "welcome", "session": welcome.session})
        self._update_state()

    def _forget_agent(self) -> None:
        self._welcome = None
        self._ready.clear()

    def _error(self, error: ctl.Error) -> None:
        self.on_event({"ev": "error", "code": error.code, "message": error.message})
        if error.code == "no_session" and self._welcome is not None:  # the agent lost it: begin a new one
            self._forget_agent()
            self.player.abandon()
            self._greeting.session_lost(self.clock.now())
        if error.re == "hello" and error.code != "busy":  # a full room may have a place later: the greeting goes on
            self._refused = ProtocolRefused(f"agent: {error.message}; allowed: {error.allowed}")
            self._ready.set()

    # ---- small parts -------------------------------------------------------------------------------------------------

    def _send(self, message: ctl.Ctl) -> None:
        """To the agent: within a session and while the link is up (a snapshot follows when it comes back)."""
        always = isinstance(message, ctl.Hello | ctl.Error | ctl.Bye)
        if self._agent is not None and (always or self._welcome is not None) and (self._link_up or isinstance(message, ctl.Bye)):
            self._transport.send(topics.TOPIC_CTL, ctl.encode_ctl(message))

    def _event(self, event: DeviceEvent, trace: str) -> None:
        fields: dict[str, Any] = {"withheld": event["withheld"]} if "withheld" in event else {}
        self._trace.event(trace, event["pos"], **fields)
        self.on_event(event)

    def _now_us(self) -> int:
        return round(self.clock.now() * 1e6)

    def _update_state(self) -> None:
        if self.state in (DeviceState.IDLE, DeviceState.STOPPING):
            return
        if not self._link_up:
            wanted = DeviceState.RECONNECTING
        elif self.player.sounding:
            wanted = DeviceState.SPEAKING
        elif self._welcome is None:
            wanted = DeviceState.CONNECTING
        else:
            wanted = DeviceState.LISTENING
        self._states.to(wanted)
