"""The session worker: who gets a conversation, how it ends, and what a device that leaves, returns or restarts finds."""
import asyncio
import contextlib

import numpy as np
import pytest

from cloud_core import worker as worker_module
from cloud_core.engine.errors import EngineUnavailable, NotAuthorised
from cloud_core.front_end import Decision, FrontEndInfo
from cloud_core.worker import MAX_CONVERSATIONS, Worker
from device_sdk import wire
from harness import DelegateRequest, Evidence, Harness, MemoryStore, SkillBackend, SkillSpec
from harness.testing import ListedCatalog, Script, ScriptedRunner


class Room:
    """A whole room: keeps what each device was told."""

    def __init__(self):
        self.told = []

    def control(self, identity, message):
        self.told.append((identity, message))

    complain = control

    def of(self, kind, identity="device-1"):
        return [m for i, m in self.told if i == identity and m.type == kind]

    def user_text(self, *args):
        pass

    def agent_text(self, *args):
        pass

    def state(self, state):
        pass


class Engine:
    """A front end that listens; `down` refuses to open, `kill()` ends what is open."""

    def __init__(self):
        self.down, self.opened, self.open_sessions, self.dead = False, 0, 0, False

    async def open(self, options):
        await asyncio.sleep(0)
        if self.down:
            raise EngineUnavailable("engine: not there")
        self.opened, self.open_sessions, self.dead = self.opened + 1, self.open_sessions + 1, False
        return self

    async def step(self, unit):
        if self.dead:
            raise EngineUnavailable("engine: gone")
        return Decision(unit.seq)

    async def close(self):
        self.open_sessions -= 1


@contextlib.asynccontextmanager
async def working(store=None, scripts=None):
    worker = Worker()
    worker.room, worker.engine, worker.info = Room(), Engine(), FrontEndInfo("x", 40, 24_000, ("en",))
    runner, catalog = ScriptedRunner(worker.clock, scripts or {}), ListedCatalog(SkillSpec("poi.find", timeout_s=20))
    worker.harness = Harness(SkillBackend(catalog, runner), catalog, worker.clock, store=store)
    worker.calls = runner.calls
    await worker.harness.start()
    worker._closers = [worker._end_harness]
    try:
        yield worker
    finally:
        await worker.stop(leave=worker._leaving)
        assert worker.engine.open_sessions == 0


def hello(boot="b1", pos=0):
    return wire.Hello(protocols=[1], boot=boot, pos=pos, t=0)


def packet(boot, pos, seq=0):
    return wire.MicPacket(seq, wire.boot_number(boot), pos, np.ones(320, np.int16))


async def until(condition, seconds=3.0):
    for _ in range(int(seconds / 0.01)):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("not reached")


async def welcomed(worker, identity="device-1", boot="b1"):
    worker._control(identity, hello(boot))
    await until(lambda: worker.room.of("welcome", identity))
    return worker.held[identity]


async def test_a_device_is_welcomed_only_when_the_engine_has_its_session_and_no_hot_loop_runs_before():
    async with working() as worker:
        worker.engine.down = True
        worker._control("device-1", hello())
        await asyncio.sleep(0.05)
        assert worker.room.told == [] and not worker.held
        worker.engine.down = False
        await welcomed(worker)


async def test_a_conversation_ends_with_its_engine_and_the_next_hello_begins_a_new_one():
    async with working() as worker:
        held = await welcomed(worker)
        worker.engine.dead = True
        await until(lambda: worker.room.of("error"))
        assert worker.room.of("error")[0].code == "no_session" and not worker.held and held.task.done()
        worker._control("device-1", hello())
        await until(lambda: len(worker.room.of("welcome")) == 2)
        assert worker.engine.opened == 2


async def test_a_repeated_hello_is_answered_within_the_same_conversation():
    async with working() as worker:
        held = await welcomed(worker)
        worker._control("device-1", hello())
        assert worker.held["device-1"] is held and len(worker.room.of("welcome")) == 2 and worker.engine.opened == 1


async def test_a_device_that_returns_goes_on_and_is_not_closed_later(monkeypatch):
    """Whatever it sends first shows that it is here; until then no reply is spoken into the void."""
    monkeypatch.setattr(worker_module, "GONE_KEEP_S", 0.1)
    async with working() as worker:
        held = await welcomed(worker)
        worker._gone("device-1")
        assert held.conversation.away
        worker._mic("device-1", packet("b1", 0))
        assert not held.conversation.away
        await asyncio.sleep(0.2)
        assert worker.held["device-1"] is held and not held.task.done()


async def test_a_device_that_stays_away_is_closed(monkeypatch):
    monkeypatch.setattr(worker_module, "GONE_KEEP_S", 0.05)
    async with working() as worker:
        held = await welcomed(worker)
        worker._gone("device-1")
        await until(lambda: held.task.done())
        assert not worker.held


async def test_the_timer_of_a_lost_conversation_does_not_close_the_next_one_of_that_device(monkeypatch):
    monkeypatch.setattr(worker_module, "GONE_KEEP_S", 0.15)
    async with working() as worker:
        await welcomed(worker)
        worker._gone("device-1")
        worker.engine.dead = True
        await until(lambda: not worker.held)
        worker._control("device-1", hello())
        await until(lambda: len(worker.room.of("welcome")) == 2)
        held = worker.held["device-1"]
        await asyncio.sleep(0.3)
        assert worker.held["device-1"] is held and not held.task.done()


async def test_a_bye_ends_the_conversation_at_once():
    async with working() as worker:
        held = await welcomed(worker)
        worker._control("device-1", wire.Bye(reason="closed"))
        await until(lambda: held.task.done() and worker.engine.open_sessions == 0)
        assert not worker.held


async def test_audio_and_reports_of_an_earlier_boot_are_not_heard():
    """Another boot counts on another clock: one stale packet would put every later one behind what was handed out."""
    async with working() as worker:
        held = await welcomed(worker, boot="b2")
        worker._mic("device-1", packet("b1", 32_000))
        report = wire.PlayoutReport(boot="b1", n=9, seg="s", r=24_000, played=0, buf=0, rx=0, t=0, pos=0, st="queued")
        worker._report("device-1", report, True)
        assert held.conversation.mic._newest < 16_000 and held.ledger.get("s") is None and not worker.room.of("ack")
        worker._mic("device-1", packet("b2", held.conversation.mic.cursor + 640))
        assert held.conversation.mic._newest > 640


async def test_a_device_that_restarted_gets_a_new_conversation_that_the_end_of_the_old_one_does_not_touch():
    async with working() as worker:
        old = await welcomed(worker, boot="b1")
        worker._control("device-1", hello("b2"))
        await until(lambda: old.task.done() and len(worker.room.of("welcome")) == 2 and worker.engine.open_sessions == 1)
        await asyncio.sleep(0.05)
        assert worker.held["device-1"].boot == "b2" and not worker.held["device-1"].task.done()


async def test_a_device_that_left_makes_room_for_one_that_is_here():
    async with working() as worker:
        for k in range(MAX_CONVERSATIONS):
            await welcomed(worker, f"device-{k}")
        worker._control("device-new", hello())
        assert worker.room.of("error", "device-new")[0].code == "busy"
        worker._gone("device-2")
        await welcomed(worker, "device-new")
        assert "device-2" not in worker.held and len(worker.held) == MAX_CONVERSATIONS


async def test_a_wrong_engine_token_ends_the_start_at_once():
    class Refusing:
        async def info(self):
            raise NotAuthorised("authorization: a bearer token is needed")

    worker = Worker()
    worker.engine = Refusing()
    with pytest.raises(NotAuthorised):
        await asyncio.wait_for(worker._engine_ready(), 1.0)


async def test_a_fault_is_logged_without_its_words(caplog):
    async with working() as worker:
        held = await welcomed(worker)
        held.conversation._fault = ValueError("the user said take me to the casino")
        await until(lambda: held.task.done())
        assert "ValueError" in caplog.text and "casino" not in caplog.text


# -- what was asked outlives the conversation it was asked in


def delegate(worker, held, prose="find one", key="k1"):
    session = held.conversation.harness
    return session, session.accept(DelegateRequest(key, 1, 0, 0, prose, "poi.find", {"query": "x"}), Evidence.freeze(0, 0))


SLOW = {"poi.find": Script("Two of them.", after_s=0.5)}


async def test_work_goes_on_when_the_engine_dies_and_is_told_in_the_next_conversation():
    """The same session, the same run; the device says hello with the same boot."""
    async with working(scripts=SLOW) as worker:
        held = await welcomed(worker)
        session, task = delegate(worker, held)
        await asyncio.sleep(0.05)
        worker.engine.dead = True
        await until(lambda: worker.room.of("error"))
        assert worker.harness.sessions() == [session.id] and session.ledger.get(task).execution == "running"
        worker._control("device-1", hello())
        await until(lambda: len(worker.room.of("welcome")) == 2)
        assert worker.held["device-1"].conversation.harness is session and not worker._waiting
        await until(lambda: session.ledger.get(task).execution == "completed")
        assert len(worker.calls) == 1


async def test_work_that_no_conversation_comes_back_for_is_closed(monkeypatch):
    monkeypatch.setattr(worker_module, "GONE_KEEP_S", 0.1)
    async with working(scripts=SLOW) as worker:
        session, task = delegate(worker, await welcomed(worker))
        worker.engine.dead = True
        await until(lambda: not worker.harness.sessions())
        assert session.ledger.get(task).execution_reason == "session_closed" and worker.harness.store.sessions() == []


async def test_a_fault_of_the_session_itself_is_not_kept():
    """What went wrong may be in the session: the next conversation begins with a fresh one."""
    async with working() as worker:
        held = await welcomed(worker)
        first = held.conversation.harness
        held.conversation._fault = ValueError("broken")
        await until(lambda: held.task.done())
        assert not worker._waiting and not worker.harness.sessions()
        worker._control("device-1", hello())
        await until(lambda: len(worker.room.of("welcome")) == 2)
        assert worker.held["device-1"].conversation.harness is not first


async def test_a_device_that_says_bye_and_hello_at_once_gets_a_session_of_its_own():
    """The old one is still being closed: the new one waits for that, under the same name, so that a restart finds it, and its records
    are not dropped with the old one's."""
    async with working(scripts={"poi.find": Script(after_s=50, ignores_cancel_s=0.4)}) as worker:
        held = await welcomed(worker)
        old, _ = delegate(worker, held)
        await asyncio.sleep(0.05)
        worker._control("device-1", wire.Bye(reason="closed"))
        worker._control("device-1", hello())
        await until(lambda: len(worker.room.of("welcome")) == 2)
        new, task = delegate(worker, worker.held["device-1"])
        assert new is not old and new.id == old.id == "device-1/b1"
        await asyncio.sleep(0.6)
        assert worker.harness.sessions() == [new.id] and worker.harness.store.sessions() == [(new.id, "")] and new.ledger.knows(task)


async def test_a_worker_that_goes_for_a_fault_leaves_its_sessions_to_the_next():
    """Its room is lost: the work is taken up by the process that is started after it. An orderly end leaves nothing."""
    store = MemoryStore()
    async with working(store, SLOW) as worker:
        session, task = delegate(worker, await welcomed(worker))
        await asyncio.sleep(0.05)
        worker._leaving = True
    assert store.sessions() == [(session.id, "")]
    async with working(store, SLOW) as worker:
        held = await welcomed(worker)
        again = held.conversation.harness
        assert [t.id for t in again.status()] == [task]
        await until(lambda: again.ledger.get(task).execution == "completed")
    assert store.sessions() == []


async def test_what_was_left_behind_is_not_forgotten_while_its_device_is_coming_back(monkeypatch):
    """It has said hello and the engine takes its time: its session's records are kept for it, and those of others go."""
    monkeypatch.setattr(worker_module, "FORGET_AGAIN_S", 0.05)
    store = MemoryStore()
    async with working(store, SLOW) as worker:
        _, task = delegate(worker, await welcomed(worker))
        delegate(worker, await welcomed(worker, "device-2"))
        worker._leaving = True
    async with working(store, SLOW) as worker:
        opened, slow = worker.engine.open, asyncio.Event()

        async def open_slowly(options):
            await slow.wait()
            return await opened(options)
        worker.engine.open = open_slowly
        worker._control("device-1", hello())
        worker._forget_left()
        await asyncio.sleep(0.1)
        slow.set()
        await until(lambda: worker.room.of("welcome"))
        assert [t.id for t in worker.held["device-1"].conversation.harness.status()] == [task]
        await until(lambda: [name for name, _ in store.sessions()] == ["device-1/b1"])
