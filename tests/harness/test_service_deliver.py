"""The return path of the delegation service: replies out at the right moment, marks back, over broken streams and restarts."""
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from harness import BadRequest, HarnessSettings, MemoryStore, Moment, SkillSpec
from harness.journal.sqlite import SqliteStore
from harness.service import delegation_pb2 as pb
from harness.service import delegation_pb2_grpc as rpc
from harness.service.client import DelegationClient
from harness.service.errors import Replaced, ServiceUnavailable
from harness.service.testing import PlainFrontEnd, scripted_service
from harness.service.views import Delegate
from harness.testing import Script
from venus_edge.bind import free_port

SPECS = (SkillSpec("poi.find", timeout_s=20.0, slow=True), SkillSpec("fan.set"), SkillSpec("long.tale"))
SCRIPTS = {"poi.find": Script("Two of them.", after_s=0.05), "fan.set": Script("The fan is at three."),
           "long.tale": Script("First the harbour, then the casino, and last of all the old town on the rock.")}


def world(**options):
    return scripted_service(SCRIPTS, specs=SPECS, **options)


def ask(capability, turn=1, **fields):
    return Delegate("please", calls=((capability, {}),), turn=turn, **fields)


async def until(condition, within_s=5.0):
    end = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come true in time"
        await asyncio.sleep(0.01)
    return found


async def state(client, session, task_id):
    return next((t.execution, t.delivery, t.delivery_reason) for t in await client.tasks(session.id) if t.id == task_id)


@asynccontextmanager
async def talking(client, session, **options):
    async with client.deliver(session.id) as delivery, PlainFrontEnd(delivery, **options) as front_end:
        yield delivery, front_end


async def test_a_result_is_told_once_and_confirmed():
    """Invariant: admitted when the floor is free, delivered when the device says that it was heard."""
    async with world() as w:
        client = w.client()
        session = await client.open()
        async with talking(client, session) as (_, front_end):
            task, = await client.submit(session.id, ask("fan.set"), wait_s=5)
            assert await front_end.told(1) == ["The fan is at three."]
            assert front_end.spoken[0].task_id == task.id and front_end.spoken[0].kind == "result"
        assert await state(client, session, task.id) == ("completed", "delivered", "confirmed")


async def test_nothing_is_given_out_over_the_user():
    """Invariant: while the user speaks, or their turn is open, no reply comes; it comes right after."""
    async with world() as w:
        client = w.client()
        session = await client.open()
        async with talking(client, session) as (_, front_end):
            front_end.user_speaking = True
            await asyncio.sleep(0.1)
            await client.submit(session.id, ask("fan.set"), wait_s=5)
            await asyncio.sleep(0.4)
            assert front_end.spoken == []
            front_end.user_speaking, front_end.turn_open = False, True
            await asyncio.sleep(0.3)
            assert front_end.spoken == []
            front_end.turn_open = False
            assert await front_end.told(1) == ["The fan is at three."]


async def test_an_interrupted_reply_goes_on_where_it_was_cut():
    """Invariant: what the device confirmed is not said again."""
    async with world() as w:
        client = w.client()
        session = await client.open()
        async with talking(client, session) as (delivery, front_end):
            front_end.silent = True
            task, = await client.submit(session.id, ask("long.tale"), wait_s=5)
            await until(lambda: delivery._holds)
            text = SCRIPTS["long.tale"].text
            front_end.silent = False
            delivery.started(delivery._holds, "s")
            delivery.finished(delivery._holds, heard=text[:17], unheard=text[17:], completed=False)
            told, = await front_end.told(1)
            assert told.endswith(text[19:]) and "harbour" not in told
        assert await state(client, session, task.id) == ("completed", "delivered", "confirmed")


async def test_a_declined_reply_comes_once_more_and_then_stays_unspoken():
    """Invariant: a front end may decline; the session goes on."""
    async with world() as w:
        client = w.client()
        session = await client.open()
        async with client.deliver(session.id) as delivery, PlainFrontEnd(delivery) as front_end:
            front_end.silent = True
            task, = await client.submit(session.id, ask("fan.set"), wait_s=5)
            for _ in range(2):
                first = await until(lambda: delivery._holds)
                delivery.declined(first)
                await delivery.settled()
                assert delivery._holds == ""
            assert await state(client, session, task.id) == ("completed", "unspoken", "declined")
            front_end.silent = False
            await client.submit(session.id, ask("fan.set", 2))
            await front_end.told(1)


async def test_a_reply_that_never_arrived_is_offered_again():
    """Invariant: the stream breaks between the admission and the client: told after all, once, and as if for the first time."""
    async with world() as w:
        client = w.client()
        session = await client.open()
        async with talking(client, session) as (_, front_end):
            held = w.serving.service.book.get("local", session.id)
            path, lost = held.returns, []

            def lose(moment):
                if (reply := held.session.next_reply(moment)) is not None:
                    lost.append(reply)
                    raise ServiceUnavailable("a cut line")

            path._admit = lose
            task, = await client.submit(session.id, ask("fan.set"), wait_s=5)
            assert await front_end.told(1) == ["The fan is at three."]
            assert [r.text for r in lost] == front_end.texts and held.returns is not path
        done = w.harness.session(held.session.id).ledger.get(task.id)
        assert (done.delivery, done.declines, done.resumes) == ("delivered", 0, 0)


async def test_a_client_that_cannot_tell_is_told_nothing_twice():
    """Invariant: a front end that was restarted doesn't know whether its predecessor spoke: the reply is closed, and the next one comes."""
    async with world(settings=HarnessSettings(start_timeout_s=0.3)) as w:
        client = w.client()
        session = await client.open()
        async with talking(client, session) as (delivery, front_end):
            front_end.silent = True
            task, = await client.submit(session.id, ask("fan.set"), wait_s=5)
            await until(lambda: delivery._holds)
        async with talking(client, session) as (_, front_end):
            await asyncio.sleep(0.5)
            assert front_end.spoken == []
            assert await state(client, session, task.id) == ("completed", "unspoken", "not_started")
            await client.submit(session.id, ask("fan.set", 2))
            assert len(await front_end.told(1)) == 1


async def test_a_broken_connection_loses_and_repeats_nothing():
    """Invariant: streams end and come back by themselves; every result is told once, whatever was under way."""
    async with world() as w:
        client = w.client()
        session = await client.open()
        held = w.serving.service.book.get("local", session.id)
        async with talking(client, session) as (_, front_end):
            for turn in range(1, 9):
                await client.submit(session.id, ask("fan.set", turn))
                await asyncio.sleep(0.03 * (turn % 4))
                if held.returns is not None:
                    held.returns._fail(ServiceUnavailable("a cut line"))
            await until(lambda: sum(text.count("The fan is at three.") for text in front_end.texts) == 8, 15)
            await front_end.delivery.settled()
        tasks = await client.tasks(session.id)
        assert len(tasks) == 8 and {t.delivery for t in tasks} <= {"delivered", "merged"}


async def test_a_newer_stream_takes_the_place_of_the_older():
    """Invariant: one front end a session; the older is told why it ended."""
    async with world() as w:
        client = w.client()
        session = await client.open()
        async with client.deliver(session.id) as older:

            async def floor():
                for pos in range(0, 1 << 30, 16):
                    older.moment(Moment(pos, True, False, False, 0))
                    await asyncio.sleep(0)

            writing = asyncio.ensure_future(floor())  # what a client writes meanwhile must not hide the reason from it
            async with talking(client, session) as (_, front_end):
                with pytest.raises(Replaced):
                    await anext(older)
                writing.cancel()
                await client.submit(session.id, ask("fan.set"))
                await front_end.told(1)


async def test_a_closed_session_ends_its_delivery():
    """Invariant: iteration simply ends."""
    async with world() as w:
        client = w.client()
        session = await client.open()
        async with client.deliver(session.id) as delivery:
            await client.close_session(session.id)
            assert [reply async for reply in delivery] == []


async def test_bad_messages_are_refused_by_field_and_the_stream_lives():
    """Invariant: an error names the field; the next good moment works; a stream that doesn't begin with `open` is refused."""
    async with world() as w:
        client = w.client()
        session = await client.open()
        async with client.deliver(session.id) as delivery:
            for pos in (1000, 2000, 999):
                delivery.moment(Moment(pos, False, False, False, 0))
                await asyncio.sleep(0.05)
            delivery.moment(Moment(-1, False, False, False, 0))
            delivery.declined("")
            delivery._mark(pb.ToDelivery())
            delivery._mark(pb.ToDelivery(open=pb.OpenDelivery()))
            await until(lambda: len(delivery.refused) == 5)
            text = " ".join(err.message for err in delivery.refused)
            assert all(isinstance(err, BadRequest) for err in delivery.refused)
            assert "moment.pos" in text and "declined.reply_id" in text and "kind" in text
            await client.submit(session.id, ask("fan.set"), wait_s=5)
            delivery.moment(Moment(9000, False, False, False, 1))
            await asyncio.sleep(0.05)
            delivery.moment(Moment(12000, False, False, False, 1))
            assert (await asyncio.wait_for(anext(delivery), 5)).text == "The fan is at three."
        async with grpc.aio.insecure_channel(w.addr) as channel:
            call = rpc.DelegationStub(channel).Deliver()
            await call.write(pb.ToDelivery(moment=pb.Moment()))
            with pytest.raises(grpc.aio.AioRpcError, match="open"):
                await call.read()


async def test_a_device_that_was_started_anew_goes_on_in_its_session():
    """Invariant: positions that begin at 0 again don't hold the session up."""
    async with world() as w:
        client = w.client()
        session = await client.open()
        for turn, pos in ((1, 160_000_000), (2, 0)):
            async with talking(client, session, pos=pos) as (_, front_end):
                await client.submit(session.id, ask("fan.set", turn))
                assert len(await front_end.told(1)) == 1


async def test_moments_that_were_held_up_admit_nothing():
    """Invariant: of moments that come together only the newest counts: the floor may have been taken meanwhile."""
    async with world() as w:
        client = w.client()
        session = await client.open()
        await client.submit(session.id, ask("fan.set"), wait_s=5)
        async with grpc.aio.insecure_channel(w.addr) as channel:
            call = rpc.DelegationStub(channel).Deliver()
            await call.write(pb.ToDelivery(open=pb.OpenDelivery(session_id=session.id)))
            assert (await call.read()).WhichOneof("kind") == "opened"
            held = w.serving.service.book.get("local", session.id)
            for pos in range(0, 32_000, 3200):
                held.returns._take(pb.ToDelivery(moment=pb.Moment(pos=pos)))
            held.returns._take(pb.ToDelivery(moment=pb.Moment(pos=32_000, user_speaking=True)))
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(call.read(), 0.2)
            task, = await client.tasks(session.id)
            assert task.delivery == "pending"
            call.cancel()


async def test_a_restart_between_the_speech_and_its_report_repeats_nothing():
    """Invariant: the client holds a reply that it has spoken; the server dies before it is told; afterwards it is delivered, not told again."""
    store, port = MemoryStore(), free_port()
    client = DelegationClient(f"127.0.0.1:{port}")
    async with world(store=store, addr=f"127.0.0.1:{port}"):
        session = await client.open("car")
        delivery = client.deliver("car")
        await delivery.__aenter__()
        front_end = PlainFrontEnd(delivery)
        front_end.silent = True
        await front_end.__aenter__()
        task, = await client.submit("car", ask("fan.set"), wait_s=5)
        reply = await until(lambda: delivery._holds)
        delivery.started(reply, "s")
        await asyncio.sleep(0.1)
    front_end.silent = False
    delivery.finished(reply, heard="The fan is at three.", completed=True)
    async with world(store=store, addr=f"127.0.0.1:{port}"):
        await asyncio.wait_for(delivery.settled(), 10)
        assert await state(client, session, task.id) == ("completed", "delivered", "confirmed")
        await asyncio.sleep(0.3)
        assert front_end.texts == []
        await front_end.__aexit__()
        await delivery.__aexit__()
        await client.close()


SERVER = Path(__file__).with_name("service_server.py")


def start(addr: str, journal: Path) -> subprocess.Popen:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    proc = subprocess.Popen([sys.executable, str(SERVER), addr, str(journal)], stdout=subprocess.PIPE, text=True, env=env)
    assert proc.stdout.readline().startswith("READY ")
    return proc


@pytest.mark.parametrize("when", [pytest.param("queued", marks=pytest.mark.slow), "running", pytest.param("pending", marks=pytest.mark.slow),
                                  "given out"])
async def test_after_kill_9_the_result_is_delivered_once(tmp_path, when):
    """Invariant: a server with a durable journal dies at any point; its successor tells the result once, over the client's own streams."""
    addr, journal = f"127.0.0.1:{free_port()}", tmp_path / "journal.db"
    proc = start(addr, journal)
    try:
        async with DelegationClient(addr) as client:
            session = await client.open("car")
            async with talking(client, session) as (delivery, front_end):
                front_end.silent = when == "given out"
                front_end.user_speaking = when == "pending"
                asked = ask("slow.find" if when in ("queued", "running") else "fan.set")
                task, = await client.submit("car", asked, wait_s=0 if when in ("queued", "running") else 5)
                if when == "running":
                    await asyncio.sleep(0.2)
                if when == "given out":
                    await until(lambda: delivery._holds)
                proc.kill()
                await asyncio.to_thread(proc.wait)
                if when == "given out":  # as if the reply had been lost on its way
                    front_end.delivery._holds, front_end.silent = "", False
                proc = await asyncio.to_thread(start, addr, journal)
                front_end.user_speaking = False
                texts = await front_end.told(1, 10)
                await asyncio.sleep(0.3)
                assert front_end.texts == texts and len([t for t in texts if "three" in t or "Found" in t]) == 1
                again, = await client.submit("car", asked)
                assert again.id == task.id
                assert (await state(client, session, task.id))[1] == "delivered"
                await client.close_session("car")
        proc.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(proc.wait, 5) == 0
        store = SqliteStore(journal)
        await store.open()
        assert store.sessions() == []
        await store.close()
    finally:
        proc.kill()
        proc.wait()
        proc.stdout.close()


def test_the_command_serves_the_installed_skills_and_stops_on_sigterm(tmp_path):
    """Invariant: READY with the real address; a skill that needs a car says that there is none; SIGTERM ends it, and leaves the session."""
    journal, begin = tmp_path / "journal.db", "import sys; from harness.service.commands import serve; sys.exit(serve(sys.argv[1:]))"
    env = {**os.environ, "VENUS_DELEGATION_TOKENS": json.dumps({"a-token-of-acme-0123": "acme"})}
    proc = subprocess.Popen([sys.executable, "-c", begin, "--listen", "127.0.0.1:0", "--journal", str(journal)], stdout=subprocess.PIPE,
                            text=True, env=env)
    try:
        word, _, rest = proc.stdout.readline().partition(" ")
        ready = json.loads(rest)
        assert word == "READY" and ready["skills"] > 5 and ready["tenants"] == 1

        async def talk():
            async with DelegationClient(ready["addr"], "a-token-of-acme-0123") as client:
                await client.open("car")
                asked = Delegate("set it to twenty two degrees", calls=(("vehicle.set_temperature", {"celsius": 22}),), turn=1,
                                 provenance="live_speech")
                task, = await client.submit("car", asked, wait_s=10)
                assert (task.execution, task.execution_reason) == ("failed", "unavailable") and task.text
                return {c.id for c in await client.capabilities()}

        assert "vehicle.set_temperature" in asyncio.run(talk())
        began = time.monotonic()
        proc.send_signal(signal.SIGTERM)
        assert proc.wait(5) == 0 and time.monotonic() - began < 2.0
    finally:
        proc.kill()
        proc.wait()
        proc.stdout.close()

    async def left():
        store = SqliteStore(journal)
        await store.open()
        found = store.sessions()
        await store.close()
        return found

    assert asyncio.run(left()) == [("acme/car", "acme")]
