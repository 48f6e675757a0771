"""The session worker, a process of its own: joins one room as the agent and holds a conversation with each device that says hello.

    python -m cloud_core.worker      (VENUS_LIVEKIT_URL, VENUS_AGENT_TOKEN, VENUS_ENGINE_ADDR, VENUS_ENGINE_TOKEN)
"""
import asyncio
import logging
import os

from cloud_core.conversation import Conversation
from cloud_core.engine.client import EngineClient
from cloud_core.engine.errors import EngineError
from cloud_core.front_end import FrontEndInfo, PlayoutMark, SessionOptions
from cloud_core.mic import MicAssembler
from cloud_core.room import AgentRoom
from device_sdk import wire
from harness import Harness
from harness.catalog import RegistryCatalog
from harness.execute.registry import Registry
from harness.execute.runner import SkillRunner
from harness.host.remote import RemoteVehicleBus
from venus_edge import logs, loop_monitor, process
from venus_edge.clock import SystemClock
from venus_edge.errors import ConfigError, VenusError
from venus_edge.metrics import METRICS
from venus_edge.paths import cache_dir
from venus_edge.trace import Trace

log = logging.getLogger("venus.worker")

MESSAGES = {"flush": wire.Flush, "restore": wire.Restore, "volume": wire.Volume, "ping": wire.Ping}
ENGINE_WAIT_S = 90.0
MAX_CONVERSATIONS = 4
MIC_TRACE_EVERY = 16
"""Every so many live microphone packets leave a trace of their arrival: the way up is measured by them."""
GONE_KEEP_S = 30.0
"""A device that left may come back with the same boot and go on; after this long its conversation is closed."""


class Held:
    """One device's conversation and what belongs to it."""

    def __init__(self, boot: str):
        self.boot = boot
        self.ledger = wire.PlayoutLedger()
        self.conversation: Conversation | None = None
        self.task: asyncio.Task | None = None
        self.closing: asyncio.TimerHandle | None = None


class DeviceLink:
    """`Conversation.Link` over the room, bound to one device."""

    def __init__(self, room: AgentRoom, identity: str):
        self.room, self.identity = room, identity

    def control(self, type_: str, **fields) -> None:
        self.room.control(self.identity, MESSAGES[type_](**fields))

    async def open_speech(self, seg: str, rate: int):
        return await self.room.open_speech(self.identity, seg, rate)

    def user_text(self, turn: int, text: str, final: bool) -> None:
        self.room.user_text(self.identity, turn, text, final)

    def agent_text(self, seg: str, text: str, final: bool) -> None:
        self.room.agent_text(seg, text, final)

    def state(self, state: str) -> None:
        self.room.state(state)


class Worker:
    """Everything one room's agent holds. One conversation's fault ends that conversation alone."""

    def __init__(self):
        self.clock = SystemClock()
        self.trace = Trace("worker")
        self.held: dict[str, Held] = {}
        self.lang = os.environ.get("VENUS_LANGUAGE", "en")
        self.info: FrontEndInfo | None = None
        self._closers: list = []

    async def start(self) -> None:
        env = {}
        for name in ("VENUS_LIVEKIT_URL", "VENUS_AGENT_TOKEN", "VENUS_ENGINE_ADDR"):
            env[name] = os.environ.get(name, "")
            if not env[name]:
                raise ConfigError(f"{name}: not set")
        self.registry = Registry.from_entry_points()
        self.catalog = RegistryCatalog(self.registry)
        self.room = AgentRoom(wire.CAR_HOST_IDENTITY, self._control, self._mic, self._report, self._gone)
        self.runner = SkillRunner(self.registry, self._vehicle, self.clock, cache_dir())
        self.engine = EngineClient(env["VENUS_ENGINE_ADDR"], os.environ.get("VENUS_ENGINE_TOKEN", ""))
        self._closers = [self.runner.close, self.engine.close, self.room.leave]
        await asyncio.gather(self.runner.start(), self._engine_ready(), self.room.join(env["VENUS_LIVEKIT_URL"], env["VENUS_AGENT_TOKEN"]))
        self.room.state("listening")

    async def _engine_ready(self) -> None:
        deadline = self.clock.now() + ENGINE_WAIT_S
        while True:
            try:
                self.info = await self.engine.info()
                return
            except EngineError:
                if self.clock.now() > deadline:
                    raise
                await self.clock.sleep(0.1)

    def _vehicle(self, call) -> RemoteVehicleBus:
        return RemoteVehicleBus(self.room.effect, task_id=call.task_id, task_version=call.task_version, zone=call.zone)

    # ---- from the room -----------------------------------------------------------------------------------------------

    def _control(self, identity: str, message) -> None:
        held = self.held.get(identity)
        if message.type == "hello":
            self._hello(identity, message)
        elif held is None:
            self.room.control(identity, wire.Error(code="no_session", message="say hello first", re=message.type))
        elif message.type == "gate" and held.conversation:
            held.conversation.mic.gate(message.open, message.pos)
            held.conversation.wake()
        elif message.type == "pong" and held.conversation:
            held.conversation.mic.device.saw(message.pos)
        elif message.type == "bye":
            self._gone(identity)

    def _mic(self, identity: str, packet: wire.MicPacket) -> None:
        held = self.held.get(identity)
        if held and held.conversation:
            held.conversation.mic.packet(packet.pos, packet.samples, live=not packet.preroll)
            if not packet.preroll and packet.seq % MIC_TRACE_EVERY == 0:
                self.trace.event("mic.live", pos=packet.end)
            held.conversation.wake()

    def _report(self, identity: str, report: wire.PlayoutReport, reliable: bool) -> None:
        held = self.held.get(identity)
        if held is None or held.conversation is None:
            return
        state = held.ledger.apply(report)
        if reliable:
            self.room.control(identity, wire.Ack(boot=report.boot, n=report.n))
        if state is not None:
            held.conversation.report(PlayoutMark(state.seg, state.played, state.rate, str(state.state)))

    def _hello(self, identity: str, hello: wire.Hello) -> None:
        if self.info is None:
            return  # the engine is not up yet; a device repeats its hello until it is welcomed
        answer = wire.answer_hello(hello, self.session(identity), self.info.unit_ms)
        if isinstance(answer, wire.Error):
            self.room.control(identity, answer)
            return
        held = self.held.get(identity)
        if held is None or held.boot != hello.boot:
            if held is not None:
                self._close(identity)
            if len(self.held) >= MAX_CONVERSATIONS:
                self.room.control(identity, wire.Error(code="busy", message=f"{MAX_CONVERSATIONS} devices are in this room already", re="hello"))
                return
            held = self.held[identity] = Held(hello.boot)
            held.task = asyncio.create_task(self._converse(identity, held, hello.pos))
        elif held.closing:
            held.closing.cancel()
            held.closing = None
        self.room.control(identity, answer)

    @staticmethod
    def session(identity: str) -> str:
        return f"{os.environ.get('VENUS_SESSION', 'local')}-{identity}"[:64]

    async def _converse(self, identity: str, held: Held, pos: int) -> None:
        link = DeviceLink(self.room, identity)
        harness = session = None
        try:
            session = await self.engine.open(SessionOptions(self.session(identity), self.lang, pos))
            harness = Harness(self.catalog, self.runner, self.clock, observer=self._observe)
            mic = MicAssembler(self.clock, self.info.unit_ms, pos)
            mic.device.saw(pos)
            held.conversation = Conversation(link, session, harness, mic, self.clock, self.trace, self.lang)
            self.trace.event("session.ready", pos=pos, device=identity)
            await held.conversation.run()
        except asyncio.CancelledError:
            raise
        except Exception as err:
            METRICS.add("venus_worker_sessions_failed")
            log.exception("conversation %s ended by a fault", identity)
            cause = err.code if isinstance(err, VenusError) else "internal"
            self.held.pop(identity, None)
            self.room.control(identity, wire.Error(code="no_session", message=f"the session ended ({cause}); say hello to begin a new one"))
        finally:
            if harness is not None:
                await harness.close()
            if session is not None:
                await session.close()

    def _observe(self, transition) -> None:
        self.trace.event(transition.event, **transition.fields())

    def _gone(self, identity: str) -> None:
        held = self.held.get(identity)
        if held and not held.closing:
            held.closing = asyncio.get_running_loop().call_later(GONE_KEEP_S, self._close, identity)

    def _close(self, identity: str) -> None:
        held = self.held.pop(identity, None)
        if held and held.task:
            held.task.cancel()

    async def stop(self) -> None:
        tasks = [h.task for h in self.held.values() if h.task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(close() for close in self._closers), return_exceptions=True)
        self.trace.close()


async def main() -> None:
    logs.setup("worker")
    worker = Worker()
    try:
        await worker.start()
        process.ready(unit_ms=worker.info.unit_ms, front_end=worker.info.name)
        await process.until_stopped(worker.room.lost, asyncio.create_task(process.heartbeat()),
                                    asyncio.create_task(loop_monitor.watch("worker", worker.trace)))
    finally:
        await worker.stop()


if __name__ == "__main__":
    process.run(main)
