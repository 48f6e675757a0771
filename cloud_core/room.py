"""The session worker's side of the room: who may send what, messages in and out, transcripts and state for stock clients."""
import asyncio
import logging
from collections import deque
from urllib.parse import urlparse

from livekit import rtc

from cloud_core.errors import SessionLost
from device_sdk import wire
from venus_edge.bind import is_loopback
from venus_edge.clock import Clock, SystemClock
from venus_edge.metrics import METRICS
from venus_edge.redact import without_tokens

log = logging.getLogger("venus.room")

CONTROL_QUEUE = 256
TEXT_QUEUE = 64
COMPLAIN_EVERY_S = 1.0
"""One error message a device and second: a flood of bad messages must not push flushes out of the queue."""


class Speech:
    """One `lk.audio_stream` byte stream to the device."""

    def __init__(self, writer):
        self._writer = writer

    async def write(self, data: bytes) -> None:
        await self._writer.write(data)

    async def close(self) -> None:
        await self._writer.aclose()


class AgentRoom:
    """Joins as the agent; `on_control(identity, message)`, `on_mic(identity, packet)`, `on_report(identity, report, reliable)`, `on_gone(identity)`.

    Everything from a participant that isn't a standard one, or that isn't valid, is refused, counted and answered with a typed error.
    """

    def __init__(self, car_host: str, on_control, on_mic, on_report, on_gone, clock: Clock | None = None):
        self.room = rtc.Room()
        self.car_host = car_host
        self._on_control, self._on_mic, self._on_report, self._on_gone = on_control, on_mic, on_report, on_gone
        self.clock = clock or SystemClock()
        self._complained: dict[str, float] = {}
        self._out: deque = deque()
        self._out_wake = asyncio.Event()
        self._texts: asyncio.Queue = asyncio.Queue(TEXT_QUEUE)
        self._agent_streams: dict[str, object] = {}
        self.lost: asyncio.Future = asyncio.get_running_loop().create_future()
        self._tasks: list[asyncio.Task] = []

    async def join(self, url: str, token: str) -> None:
        """Connect (5 s) and start the writers. Raises SessionLost."""
        self.room.on("data_received", self._data)
        self.room.on("participant_disconnected", self._gone)
        self.room.on("disconnected", self._disconnected)
        loopback = is_loopback(urlparse(url).hostname or "")
        config = rtc.RtcConfiguration(ice_servers=[rtc.IceServer(urls=["stun:127.0.0.1:3478"])]) if loopback else None
        options = rtc.RoomOptions(auto_subscribe=False, dynacast=False, connect_timeout=5.0, **({"rtc_config": config} if config else {}))
        try:
            await self.room.connect(url, token, options)
        except rtc.ConnectError as err:
            raise SessionLost(f"room: cannot join {urlparse(url).netloc}: {without_tokens(str(err))}") from None
        self._tasks = [asyncio.create_task(self._write_control()), asyncio.create_task(self._write_texts())]

    def _disconnected(self, reason) -> None:
        if not self.lost.done():
            self.lost.set_exception(SessionLost(f"room: disconnected ({reason})"))

    def _gone(self, participant) -> None:
        self._complained.pop(participant.identity, None)
        self._on_gone(participant.identity)

    # ---- in ----------------------------------------------------------------------------------------------------------

    def _data(self, packet: rtc.DataPacket) -> None:
        who = packet.participant
        if who is None or who.kind != rtc.ParticipantKind.PARTICIPANT_KIND_STANDARD or who.identity == self.car_host:
            METRICS.add("venus_cloud_messages_rejected")
            return
        try:
            if packet.topic == wire.TOPIC_MIC:
                self._on_mic(who.identity, wire.MicPacket.unpack(packet.data))
            elif packet.topic == wire.TOPIC_PLAYOUT:
                self._on_report(who.identity, wire.decode_report(packet.data), packet.kind == rtc.DataPacketKind.KIND_RELIABLE)
            elif packet.topic == wire.TOPIC_CTL:
                self._on_control(who.identity, wire.decode_ctl(packet.data))
        except wire.WireError as err:
            METRICS.add("venus_cloud_messages_invalid")
            self.complain(who.identity, wire.Error(code=err.code, message=err.message[:400], allowed=str(err.allowed)[:400], re=packet.topic))
        except Exception as err:  # the library would log it with its arguments, which may hold words
            METRICS.add("venus_cloud_messages_failed")
            log.error("a message of %s on %s failed: %s", who.identity, packet.topic, type(err).__name__)

    # ---- out ---------------------------------------------------------------------------------------------------------

    def control(self, identity: str, message) -> None:
        """Queue a control message; the oldest is dropped and counted when the queue is full."""
        if len(self._out) >= CONTROL_QUEUE:
            self._out.popleft()
            METRICS.add("venus_cloud_control_dropped")
        self._out.append((identity, wire.encode_ctl(message)))
        self._out_wake.set()

    def complain(self, identity: str, error: wire.Error) -> None:
        """Tell a device what was wrong, once a second at most."""
        now = self.clock.now()
        if now - self._complained.get(identity, -COMPLAIN_EVERY_S) >= COMPLAIN_EVERY_S:
            self._complained[identity] = now
            self.control(identity, error)

    async def _write_control(self) -> None:
        while True:
            await self._out_wake.wait()
            self._out_wake.clear()
            while self._out:
                identity, payload = self._out.popleft()
                try:
                    await self.room.local_participant.publish_data(payload, reliable=True, destination_identities=[identity], topic=wire.TOPIC_CTL)
                except Exception as err:  # a link that breaks under a message must not end the writer: no flush would go out again
                    METRICS.add("venus_cloud_control_failed")
                    log.warning("control message not sent: %s", type(err).__name__)

    async def open_speech(self, identity: str, seg: str, rate: int) -> Speech:
        writer = await self.room.local_participant.stream_bytes(
            seg, topic=wire.TOPIC_SPEECH, destination_identities=[identity],
            attributes={wire.ATTR_SAMPLE_RATE: str(rate), wire.ATTR_NUM_CHANNELS: "1", wire.ATTR_SEG: seg, wire.ATTR_START: "0"})
        return Speech(writer)

    async def effect(self, payload: str, timeout_s: float) -> str:
        """Ask the car host; raises what the room's RPC raises."""
        return await self.room.local_participant.perform_rpc(destination_identity=self.car_host, method=wire.RPC_EFFECT, payload=payload,
                                                             response_timeout=timeout_s, max_round_trip_latency=2.0)

    # ---- stock clients -----------------------------------------------------------------------------------------------

    def state(self, state: str) -> None:
        """`lk.agent.state`: initializing | idle | listening | thinking | speaking."""
        self._text(("state", state))

    def user_text(self, identity: str, turn: int, text: str, final: bool) -> None:
        """One whole `lk.transcription` stream per version of the user's words, same segment id."""
        self._text(("user", identity, f"SG_user_{turn}", text, final))

    def agent_text(self, seg: str, text: str, final: bool) -> None:
        """One `lk.transcription` stream per speech segment, its clauses as chunks."""
        self._text(("agent", f"SG_{seg}", text, final))

    def _text(self, item) -> None:
        try:
            self._texts.put_nowait(item)
        except asyncio.QueueFull:
            METRICS.add("venus_cloud_transcripts_dropped")

    async def _write_texts(self) -> None:
        me = self.room.local_participant
        while True:
            item = await self._texts.get()
            try:
                if item[0] == "state":
                    await me.set_attributes({"lk.agent.state": item[1]})
                elif item[0] == "user":
                    _, identity, sid, text, final = item
                    writer = await me.stream_text(topic=wire.TOPIC_TRANSCRIPTION, sender_identity=identity, attributes={
                        "lk.segment_id": sid, "lk.transcription_final": str(final).lower()})
                    await writer.write(text)
                    await writer.aclose()
                else:
                    _, sid, text, final = item
                    writer = self._agent_streams.get(sid)
                    if writer is None and not text:
                        continue  # its stream was closed already
                    if writer is None:
                        writer = self._agent_streams[sid] = await me.stream_text(topic=wire.TOPIC_TRANSCRIPTION, attributes={
                            "lk.segment_id": sid, "lk.transcription_final": "false"})
                    if text:
                        await writer.write(text + " ")
                    if final:
                        self._agent_streams.pop(sid, None)
                        await writer.aclose(attributes={"lk.transcription_final": "true"})
                    for old in list(self._agent_streams)[:-8]:
                        await self._agent_streams.pop(old).aclose()
            except Exception as err:  # a transcript that can't be sent must not end the conversation
                METRICS.add("venus_cloud_transcripts_failed")
                log.warning("transcript or state not sent: %s", type(err).__name__)

    async def leave(self) -> None:
        self.lost.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.room.disconnect()
