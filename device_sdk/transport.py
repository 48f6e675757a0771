"""The device's side of the room: one bounded outgoing queue with one writer, and who may be obeyed.

Only a participant of kind AGENT is listened to; whatever others send is ignored and counted. The native module aborts the
process on some wrong arguments and leaks a cancelled connect, so nothing here is cancelled half-way.
"""

import asyncio
import logging
from collections import deque
from typing import Protocol
from urllib.parse import urlparse

import numpy as np
from livekit import rtc

from device_sdk.errors import NotConnected, TokenRefused
from device_sdk.wire import topics as wire
from venus_edge.clock import Clock
from venus_edge.errors import ConfigError
from venus_edge.metrics import METRICS
from venus_edge.redact import guard, why_refused, without_tokens

guard("livekit")  # the native module logs a refused token in full
log = logging.getLogger("venus.device.transport")

QUEUE_ITEMS = 256
CONNECT_TIMEOUT_S = 5.0
CLOSE_DRAIN_S = 0.5
CLOSE_LINGER_S = 0.1
"""A packet handed over is not on the wire yet; leaving at once would lose the last one."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Listener(Protocol):
    """What a transport tells the device; every call comes on the event loop's thread."""

    def on_agent(self, identity: str | None) -> None:
        """An agent is there to be spoken to, or none any more."""

    def on_message(self, topic: str, payload: bytes) -> None:
        """Data from the agent."""

    def on_speech_open(self, name: str, attributes: dict[str, str]) -> str | None:
        """A speech stream begins: the segment id to feed it to, or None to refuse it."""

    def on_speech(self, seg: str, start: int, samples: np.ndarray) -> None: ...

    def on_speech_end(self, seg: str, whole: bool) -> None:
        """The stream ended; `whole` is False if it broke off."""

    def on_link(self, state: str, reason: str = "") -> None:
        """down | up (again) | lost (for good: connect again with a fresh token)"""

    def on_clear_buffer(self) -> None:
        """A stock agent asks to drop what is buffered."""


class Transport(Protocol):
    room: str
    """Name of the room that was joined; "" before."""
    token: str
    """The newest token that the server gave for joining again; "" if none."""

    async def connect(self, url: str, token: str, listener: Listener) -> None: ...

    async def close(self) -> None: ...

    def send(self, topic: str, payload: bytes, *, reliable: bool = True, droppable: bool = False) -> bool:
        """Queue for the agent, in order; False if there is none or it was dropped. `droppable` ones go first when full."""

    def call(self, method: str, payload: str) -> None:
        """Tell a stock agent something by RPC; nobody waits for the answer."""


class LiveKitTransport:
    """A Transport over a LiveKit room."""

    def __init__(self, clock: Clock, *, agent_identity: str = "", allow_insecure: bool = False):
        self._clock, self._agent_identity, self._allow_insecure = clock, agent_identity, allow_insecure
        self._room: rtc.Room | None = None
        self._leaving = False
        self._listener: Listener | None = None
        self.agent: str | None = None
        self.room = self.token = ""
        self._out: deque[tuple[str, bytes, bool, bool]] = deque()
        self._wake = asyncio.Event()
        self._writing = False
        self._tasks: set[asyncio.Task] = set()
        self._writer: asyncio.Task | None = None

    # ---- joining and leaving -----------------------------------------------------------------------------------------

    async def connect(self, url: str, token: str, listener: Listener) -> None:
        """Join the room. Raises ConfigError for a URL that is no use, TokenRefused, or NotConnected if the server can't be reached."""
        parts = urlparse(url)
        if parts.scheme not in ("ws", "wss") or not parts.hostname:
            raise ConfigError(f"url: must be ws://host:port or wss://host, not {url!r}", field="url")
        loopback = parts.hostname in LOOPBACK
        if parts.scheme == "ws" and not loopback and not self._allow_insecure:
            raise ConfigError("url: ws:// is for this machine only; use wss://", field="url")
        self._listener = listener
        room = self._room = rtc.Room()
        self._leaving = False
        # handlers before connect: what the server sends at once would be missed otherwise
        room.on("data_received", self._data)
        room.on("participant_connected", lambda p: self._look_for_agent())
        room.on("participant_active", lambda p: self._look_for_agent())
        room.on("participant_disconnected", lambda p: self._look_for_agent(gone=p.identity))
        room.on("reconnecting", lambda: listener.on_link("down"))
        room.on("reconnected", self._reconnected)
        room.on("disconnected", lambda reason: self._disconnected(room, reason))
        room.on("token_refreshed", self._token_refreshed)
        room.register_byte_stream_handler(wire.TOPIC_SPEECH, self._speech_opened)
        servers = [rtc.IceServer(urls=["stun:127.0.0.1:3478"])] if loopback else []  # never a public one from this machine alone
        options = rtc.RoomOptions(
            auto_subscribe=False, dynacast=False, connect_timeout=CONNECT_TIMEOUT_S,
            rtc_config=rtc.RtcConfiguration(ice_servers=servers),
            data_stream=rtc.DataStreamOptions(max_payload_byte_length=wire.SPEECH_STREAM_MAX_BYTES),
        )
        joining = asyncio.ensure_future(room.connect(url, token, options))
        try:
            await asyncio.shield(joining)
        except rtc.ConnectError as err:
            self._room = None
            if why := why_refused(str(err)):
                raise TokenRefused(f"token: refused by {parts.netloc}: {why}", field="token") from None
            raise NotConnected(f"room: can't join {parts.netloc}: {without_tokens(str(err))}", field="url") from None
        except asyncio.CancelledError:
            self._room = None
            joining.add_done_callback(lambda done: done.exception() or asyncio.ensure_future(room.disconnect()))
            raise
        room.local_participant.register_rpc_method(wire.RPC_CLEAR_BUFFER, self._clear_buffer)
        # A participant without a track is made known to the others only every 3 s, but at once when it has attributes.
        try:
            await room.local_participant.set_attributes({"venus.playout": "v1;stamped"})
        except Exception as err:  # a token without that right still works, only later
            log.info("attributes not set: %s", type(err).__name__)
        self._writer = asyncio.create_task(self._write())
        if not room.isconnected():
            await self.close()
            raise NotConnected("room: lost again while joining")
        self.room = room.name
        self._look_for_agent()

    async def close(self) -> None:
        """Send what is queued (for half a second at most) and leave."""
        room = self._room
        if room is None or self._leaving:
            return
        self._leaving = True
        if room.isconnected():
            deadline = self._clock.now() + CLOSE_DRAIN_S
            while (self._out or self._writing) and self._clock.now() < deadline:
                await self._clock.sleep(0.01)
            await self._clock.sleep(CLOSE_LINGER_S)
        tasks = list(self._tasks) + ([self._writer] if self._writer else [])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._out.clear()
        self.agent = self._room = None
        await room.disconnect()

    # ---- who is there ------------------------------------------------------------------------------------------------

    def _is_agent(self, participant) -> bool:
        return participant.kind == rtc.ParticipantKind.PARTICIPANT_KIND_AGENT and (
            not self._agent_identity or participant.identity == self._agent_identity)

    def _look_for_agent(self, gone: str = "") -> None:
        if self._room is None:
            return
        if gone and gone == self.agent:
            self._set_agent(None)
        if self.agent is None:
            for participant in self._room.remote_participants.values():
                if participant.identity != gone and self._is_agent(participant):
                    self._set_agent(participant.identity)
                    break

    def _set_agent(self, identity: str | None) -> None:
        self.agent = identity
        self._out.clear()  # what was meant for another agent is of no use to this one
        self._listener.on_agent(identity)

    def _reconnected(self) -> None:
        self._look_for_agent()
        self._listener.on_link("up")

    def _token_refreshed(self) -> None:
        # the event carries no token and the client has no public name for it; the release is pinned
        self.token = getattr(self._room, "_token", None) or self.token

    def _disconnected(self, room: rtc.Room, reason) -> None:
        if room is not self._room:
            return
        self.agent = None
        if not self._leaving:
            self._listener.on_link("lost", rtc.DisconnectReason.Name(reason) if isinstance(reason, int) else str(reason))

    # ---- in ----------------------------------------------------------------------------------------------------------

    def _data(self, packet) -> None:
        if packet.participant is None or packet.participant.identity != self.agent:
            METRICS.add("venus_device_messages_ignored")
            return
        self._listener.on_message(packet.topic or "", packet.data)

    def _speech_opened(self, reader, identity: str) -> None:
        if identity != self.agent:
            METRICS.add("venus_device_streams_ignored")
            reader.close()
            return
        attributes = dict(reader.info.attributes or {})
        seg = self._listener.on_speech_open(reader.info.name or reader.info.stream_id, attributes)
        if seg is None:
            METRICS.add("venus_device_streams_ignored")
            reader.close()
            return
        start = int(attributes.get(wire.ATTR_START, "0"))
        task = asyncio.create_task(self._read_speech(reader, seg, start))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read_speech(self, reader, seg: str, start: int) -> None:
        rest, whole = b"", False
        try:
            async for chunk in reader:
                chunk = rest + chunk
                rest = chunk[len(chunk) & ~1:]
                samples = np.frombuffer(chunk[:len(chunk) & ~1], "<i2").astype(np.int16)
                if len(samples):
                    self._listener.on_speech(seg, start, samples)
                    start += len(samples)
            whole = True
        except rtc.StreamError:
            METRICS.add("venus_device_streams_broken")
        finally:
            reader.close()
            self._listener.on_speech_end(seg, whole)

    def _clear_buffer(self, call) -> str:
        if call.caller_identity != self.agent:
            raise rtc.RpcError(rtc.RpcError.ErrorCode.APPLICATION_ERROR, "only the agent may clear the buffer")
        self._listener.on_clear_buffer()
        return ""

    # ---- out ---------------------------------------------------------------------------------------------------------

    def send(self, topic: str, payload: bytes, *, reliable: bool = True, droppable: bool = False) -> bool:
        if self.agent is None:
            METRICS.add("venus_device_sends_without_agent")
            return False
        if len(self._out) >= QUEUE_ITEMS:
            METRICS.add("venus_device_sends_dropped")
            victim = next((i for i, item in enumerate(self._out) if item[3]), None)
            if victim is None:
                return False
            del self._out[victim]
        self._out.append((topic, payload, reliable, droppable))
        METRICS.peak("venus_device_send_queue_max", len(self._out))
        self._wake.set()
        return True

    async def _write(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._out:
                topic, payload, reliable, _ = self._out.popleft()
                room, agent = self._room, self.agent
                if room is None or agent is None:
                    continue
                self._writing = True
                try:
                    await room.local_participant.publish_data(payload, reliable=reliable, destination_identities=[agent], topic=topic)
                except Exception as err:  # a link that breaks under a packet must not end the writer
                    METRICS.add("venus_device_sends_failed")
                    log.debug("not sent: %s on %s", type(err).__name__, topic)
                finally:
                    self._writing = False

    def call(self, method: str, payload: str) -> None:
        if self.agent is None or self._room is None or len(self._tasks) > QUEUE_ITEMS:
            METRICS.add("venus_device_sends_without_agent")
            return
        task = asyncio.create_task(self._call(self.agent, method, payload))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _call(self, agent: str, method: str, payload: str) -> None:
        try:
            await self._room.local_participant.perform_rpc(destination_identity=agent, method=method, payload=payload)
        except rtc.RpcError as err:
            METRICS.add("venus_device_calls_failed")
            log.debug("call of %s failed: %s", method, err.code)
