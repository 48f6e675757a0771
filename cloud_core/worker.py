"""The session worker, a process of its own: joins one room as the agent and holds a conversation with each device that says hello.

    python -m cloud_core.worker      (VENUS_LIVEKIT_URL, VENUS_AGENT_TOKEN, VENUS_ENGINE_ADDR, VENUS_ENGINE_TOKEN)
"""
import asyncio
import logging
import os
import traceback
from pathlib import Path

from cloud_core.conversation import Conversation
from cloud_core.engine.client import EngineClient
from cloud_core.engine.errors import EngineError
from cloud_core.errors import SessionLost
from cloud_core.front_end import FrontEndInfo, PlayoutMark, SessionOptions
from cloud_core.mic import MicAssembler
from cloud_core.room import AgentRoom
from device_sdk import wire
from harness import DelegateBackend, Harness, SchedulerLimits, ScreenItem, Session, SkillBackend, open_store
from harness.catalog import RegistryCatalog
from harness.execute.registry import Registry
from harness.execute.runner import CALLS_LIMIT, SkillRunner
from harness.host.remote import RemoteVehicleBus
from harness.plan.rules import RulePlanner
from venus_edge import logs, loop_monitor, process
from venus_edge.clock import SystemClock
from venus_edge.errors import ConfigError, VenusError
from venus_edge.ids import new_id
from venus_edge.metrics import METRICS
from venus_edge.paths import cache_dir
from venus_edge.trace import Trace

log = logging.getLogger("venus.worker")

MESSAGES = {"flush": wire.Flush, "restore": wire.Restore, "volume": wire.Volume, "ping": wire.Ping, "screen": wire.Screen}
ENGINE_WAIT_S = 90.0
MAX_CONVERSATIONS = 4
MIC_TRACE_EVERY = 16
"""Every so many live microphone packets leave a trace of their arrival: the way up is measured by them."""
GONE_KEEP_S = 30.0
"""A device that left may come back with the same boot and go on; after this long its conversation is closed. So long also wait for it
the tasks of a conversation that lost its engine, and what an earlier process left behind."""
FORGET_AGAIN_S = 1.0


class Held:
    """One device's conversation and what belongs to it. `conversation` is there once the device was welcomed."""

    def __init__(self, identity: str, boot: str, welcome: wire.Welcome):
        self.identity, self.boot, self.welcome = identity, boot, welcome
        self.boot_number = wire.boot_number(boot)
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
        self._tasks: set[asyncio.Task] = set()
        """Every conversation, also those that are just being closed."""
        self._waiting: dict[str, asyncio.TimerHandle] = {}
        """Harness sessions that go on without a conversation, and when each is given up."""
        self._leaving = False

    async def start(self) -> None:
        env = {}
        for name in ("VENUS_LIVEKIT_URL", "VENUS_AGENT_TOKEN", "VENUS_ENGINE_ADDR"):
            env[name] = os.environ.get(name, "")
            if not env[name]:
                raise ConfigError(f"{name}: not set")
        self.registry = Registry.from_entry_points()
        self.catalog = RegistryCatalog(self.registry)
        self.room = AgentRoom(wire.CAR_HOST_IDENTITY, self._control, self._mic, self._report, self._gone, self.clock)
        self.runner = SkillRunner(self.registry, self._vehicle, self.clock, cache_dir())
        self.harness = Harness(self._backend(), self.catalog, self.clock,
                               store=open_store(os.environ.get("VENUS_JOURNAL", "")),
                               limits=SchedulerLimits(max_running=CALLS_LIMIT, max_running_per_tenant=CALLS_LIMIT))
        self.engine = EngineClient(env["VENUS_ENGINE_ADDR"], os.environ.get("VENUS_ENGINE_TOKEN", ""), os.environ.get("VENUS_ENGINE_CA", ""))
        self._closers = [self._end_harness, self.engine.close, self.room.leave]
        await self.harness.start()
        await asyncio.gather(self.runner.start(), self._engine_ready(), self.room.join(env["VENUS_LIVEKIT_URL"], env["VENUS_AGENT_TOKEN"]))
        asyncio.get_running_loop().call_later(GONE_KEEP_S, self._forget_left)  # from here on a device can come back
        self.room.state("listening")

    def _forget_left(self) -> None:
        if any(held.conversation is None for held in self.held.values()):  # one that has just come back is still waiting for the engine
            asyncio.get_running_loop().call_later(FORGET_AGAIN_S, self._forget_left)
        else:
            self.harness.forget_left()

    async def _end_harness(self) -> None:
        await (self.harness.abandon() if self._leaving else self.harness.close())

    def _backend(self) -> DelegateBackend:
        """The installed skills with the offline planner; with VENUS_LLM_URL set, an endpoint that plans and answers before it."""
        backend = SkillBackend(self.catalog, self.runner, RulePlanner(), owns_runner=True)
        if not os.environ.get("VENUS_LLM_URL"):
            return backend
        from harness.llm import LLMBackend, LLMClient, LLMSettings

        return LLMBackend(backend, LLMClient(LLMSettings.from_env(), self.clock))

    async def _engine_ready(self) -> None:
        deadline = self.clock.now() + ENGINE_WAIT_S
        while True:
            try:
                self.info = await self.engine.info()
                return
            except EngineError as err:
                if not err.retryable or self.clock.now() > deadline:
                    raise
                await self.clock.sleep(0.1)

    def _vehicle(self, call) -> RemoteVehicleBus:
        return RemoteVehicleBus(self.room.effect, task_id=call.task_id, task_version=call.task_version, zone=call.zone,
                                provenance=call.provenance, confirm=call.confirm)

    # ---- from the room -----------------------------------------------------------------------------------------------

    def _control(self, identity: str, message) -> None:
        if message.type == "hello":
            self._hello(identity, message)
            return
        held = self._heard_from(identity)
        if held is None:
            METRICS.add("venus_cloud_messages_without_session")
            self.room.complain(identity, wire.Error(code="no_session", message="say hello first", re=message.type))
        elif message.type == "gate" and held.conversation:
            held.conversation.mic.gate(message.open, message.pos)
            held.conversation.wake()
        elif message.type == "pong" and held.conversation:
            held.conversation.mic.device.saw(message.pos)
        elif message.type == "bye":
            self._close(held)

    def _mic(self, identity: str, packet: wire.MicPacket) -> None:
        held = self._heard_from(identity)
        if held and held.conversation:
            if packet.boot != held.boot_number:  # left over from before the device restarted: another clock
                METRICS.add("venus_cloud_messages_of_another_boot")
                return
            held.conversation.mic.packet(packet.pos, packet.samples, live=not packet.preroll)
            if not packet.preroll and packet.seq % MIC_TRACE_EVERY == 0:
                self.trace.event("mic.live", pos=packet.end)
            held.conversation.wake()

    def _report(self, identity: str, report: wire.PlayoutReport, reliable: bool) -> None:
        held = self._heard_from(identity)
        if held is None or held.conversation is None:
            return
        if report.boot != held.boot:
            METRICS.add("venus_cloud_messages_of_another_boot")
            return
        state = held.ledger.apply(report)
        if reliable:
            self.room.control(identity, wire.Ack(boot=report.boot, n=report.n))
        if state is not None:
            held.conversation.report(PlayoutMark(state.seg, state.played, state.rate, str(state.state)))

    def _hello(self, identity: str, hello: wire.Hello) -> None:
        if self.info is None:
            return  # the engine is not up yet; a device repeats its hello until it is welcomed
        answer = wire.answer_hello(hello, new_id(), self.info.unit_ms)  # an id that no other conversation has
        if isinstance(answer, wire.Error):
            self.room.complain(identity, answer)
            return
        held = self._heard_from(identity)
        if held is not None and held.boot != hello.boot:
            self._close(held)
            held = None
        if held is None:
            if not self._has_room():
                self.room.complain(identity, wire.Error(code="busy", message=f"{MAX_CONVERSATIONS} devices are in this room already", re="hello"))
                return
            held = self.held[identity] = Held(identity, hello.boot, answer)
            held.task = asyncio.create_task(self._converse(held, hello.pos))
            self._tasks.add(held.task)
            held.task.add_done_callback(self._tasks.discard)
        elif held.conversation is not None:
            self.room.control(identity, held.welcome)

    def _has_room(self) -> bool:
        """A device that left makes room for one that is here."""
        if len(self.held) >= MAX_CONVERSATIONS:
            left = next((h for h in self.held.values() if h.closing), None)
            if left is not None:
                self._close(left)
        return len(self.held) < MAX_CONVERSATIONS

    async def _converse(self, held: Held, pos: int) -> None:
        """Open the engine's session, welcome the device, converse. Without an engine the device isn't welcomed and says hello again."""
        harness = session = fault = None
        try:
            mic = MicAssembler(self.clock, self.info.unit_ms, pos)
            mic.device.saw(pos)
            session = await self.engine.open(SessionOptions(held.welcome.session, self.lang, pos))
            harness = await self._session(held)
            held.conversation = Conversation(DeviceLink(self.room, held.identity), session, harness, mic, self.clock, self.trace, self.lang)
            held.conversation.away = held.closing is not None
            self.trace.event("session.ready", pos=pos, device=held.identity)
            self.room.control(held.identity, held.welcome)
            await held.conversation.run()
        except asyncio.CancelledError:
            raise
        except Exception as err:
            fault = err
            self._failed(held, err)
        finally:
            self._forget(held)
            try:
                if harness is not None:
                    await self._let_go(harness, fault)
            finally:
                if session is not None:
                    await session.close()

    async def _session(self, held: Held) -> Session:
        """The harness session of this device since its boot: it goes on after a restart of this process, and after a conversation that
        lost its engine."""
        name = f"{held.identity}/{held.boot}"
        waiting = self._waiting.pop(name, None)
        if waiting is not None:
            waiting.cancel()
            return self.harness.session(name)
        if name in self.harness.sessions():  # the device said bye, and its session is just being closed
            await self.harness.close(name)
        return self.harness.open_session(name, observer=self._observe, on_screen=lambda item: self._show(held.identity, item))

    async def _let_go(self, harness: Session, fault: Exception | None) -> None:
        """A conversation ended. What was asked in it goes on where only the engine or the device's clock was lost."""
        if self._leaving:
            return
        if isinstance(fault, (EngineError, SessionLost)):
            self._waiting[harness.id] = asyncio.get_running_loop().call_later(GONE_KEEP_S, self._give_up, harness.id)
        elif harness.id in self.harness.sessions():
            await self.harness.close(harness.id)

    def _give_up(self, name: str) -> None:
        if self._waiting.pop(name, None) is not None:
            closing = asyncio.create_task(self.harness.close(name))
            self._tasks.add(closing)
            closing.add_done_callback(self._tasks.discard)

    def _show(self, identity: str, item: ScreenItem) -> None:
        """What was not spoken after all goes to the device's display, if it has one."""
        self.trace.event("reply.screen", task=item.task_id, kind=item.kind, reason=item.reason)
        self.room.control(identity, wire.Screen(id=item.id, task=item.task_id, kind=item.kind, text=item.text, reason=item.reason,
                                                lang=item.lang))

    def _failed(self, held: Held, err: Exception) -> None:
        METRICS.add("venus_worker_sessions_failed")
        self._forget(held)  # before the device is told: its next hello begins anew
        if isinstance(err, VenusError):
            log.error("conversation %s ended: %s: %s", held.identity, err.code, err.message)
        else:  # never the error's own text: it may quote words
            frames = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(traceback.extract_tb(err.__traceback__)[-4:]))
            log.error("conversation %s ended by a fault: %s at %s", held.identity, type(err).__name__, frames)
        if held.conversation is not None:
            cause = err.code if isinstance(err, VenusError) else "internal"
            self.room.control(held.identity, wire.Error(code="no_session", message=f"the session ended ({cause}); say hello to begin a new one"))

    def _observe(self, transition) -> None:
        self.trace.event(transition.event, **transition.fields())

    # ---- devices that leave ------------------------------------------------------------------------------------------

    def _heard_from(self, identity: str) -> Held | None:
        """What is held of a device that is evidently here."""
        held = self.held.get(identity)
        if held is not None and held.closing is not None:
            held.closing.cancel()
            held.closing = None
            if held.conversation is not None:
                held.conversation.away = False
        return held

    def _gone(self, identity: str) -> None:
        held = self.held.get(identity)
        if held is not None and held.closing is None:
            held.closing = asyncio.get_running_loop().call_later(GONE_KEEP_S, self._close, held)
            if held.conversation is not None:
                held.conversation.away = True

    def _forget(self, held: Held) -> None:
        """By the object, not the identity: a newer conversation of the same device is not touched."""
        if held.closing is not None:
            held.closing.cancel()
            held.closing = None
        if self.held.get(held.identity) is held:
            del self.held[held.identity]

    def _close(self, held: Held) -> None:
        self._forget(held)
        if held.task is not None:
            held.task.cancel()

    async def stop(self, *, leave: bool = False) -> None:
        """End everything. `leave`: the process goes for a fault, and the next one takes the sessions up from the journal."""
        self._leaving = leave
        for waiting in self._waiting.values():
            waiting.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for failed in await asyncio.gather(*(close() for close in self._closers), return_exceptions=True):
            if isinstance(failed, Exception):
                log.warning("closing failed: %s", type(failed).__name__)
        self.trace.close()


async def main() -> None:
    logs.setup("worker")
    worker, leave = Worker(), True
    try:
        await worker.start()
        process.ready(unit_ms=worker.info.unit_ms, front_end=worker.info.name)
        await process.until_stopped(worker.room.lost, asyncio.create_task(process.heartbeat()),
                                    asyncio.create_task(loop_monitor.watch("worker", worker.trace)))
        leave = False
    finally:
        await worker.stop(leave=leave)


if __name__ == "__main__":
    process.run(main)
