"""The delegation service over real gRPC on loopback: requests, tasks, watching, cancelling; tenants and limits."""
import asyncio
import time

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from pydantic import BaseModel, Field

from harness import BadRequest, SkillSpec, UnknownSession, UnknownTask
from harness.plan.contracts import Contract, Plan
from harness.service import delegation_pb2 as pb
from harness.service import delegation_pb2_grpc as rpc
from harness.service.client import DelegationClient
from harness.service.errors import NotAllowed, NotAuthorised, ServiceFault, ServiceTimeout, ServiceUnavailable, TooLarge
from harness.service.limits import ServiceLimits
from harness.service.server import SERVICE, serve
from harness.service.testing import scripted_service
from harness.service.views import Change, Delegate, SessionClosed, Snapshot
from harness.testing import ListedCatalog, Script, ScriptedPlanner
from venus_edge.clock import SystemClock
from venus_edge.errors import BusyError, ConfigError
from venus_edge.testing import VirtualClock

ACME, ACME2, OTHER, QUIET = "acme-token-0123456789", "acme-reader-0123456789", "other-token-0123456789", "acme-submit-0123456789"
TOKENS = {ACME: "acme", OTHER: "other", ACME2: {"tenant": "acme", "rights": []}, QUIET: {"tenant": "acme", "rights": ["submit"]}}


class Level(BaseModel):
    level: int = Field(ge=0, le=100)


SPECS = (SkillSpec("poi.find", timeout_s=20.0, slow=True), SkillSpec("fan.set", derived=frozenset({"level"})), SkillSpec("slow.work", timeout_s=30.0),
         SkillSpec("fixed.work", timeout_s=30.0, cancellable=False))
CONTRACTS = (Contract("fan.set", {"en": "Set the fan."}, Level.model_json_schema(), derived=frozenset({"level"}), group="fan"),)
SCRIPTS = {"poi.find": Script("Two of them.", after_s=0.05), "slow.work": Script("Done at last.", after_s=25.0),
           "fixed.work": Script("Done.", after_s=1.0)}


def world(**options):
    catalog = ListedCatalog(*SPECS, models={"fan.set": Level}, contracts=CONTRACTS)
    return scripted_service(SCRIPTS, catalog=catalog, **options)


def find(turn=1, **fields):
    return Delegate("find a charger", calls=(("poi.find", {"query": "charger"}),), turn=turn, **fields)


def work(turn=1, capability="slow.work", **fields):
    return Delegate("work", calls=((capability, {}),), turn=turn, **fields)


async def until(condition, within_s=5.0):
    end = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come true in time"
        await asyncio.sleep(0.01)
    return found


async def test_a_request_comes_back_with_its_result():
    """Invariant: one call with `wait_s` is a whole round: the task has ended, with the words that are to be told."""
    async with world() as w:
        client = w.client()
        session = await client.open("glasses-7", lang="zh")
        assert (session.id, session.tenant, session.lang, session.existed) == ("glasses-7", "local", "zh", False)
        task, = await client.submit(session.id, find(provenance="live_speech", zone="passenger"), wait_s=5)
        assert (task.execution, task.kind, task.text, task.arguments) == ("completed", "result", "Two of them.", {"query": "charger"})
        assert (task.lang, task.zone, task.provenance, task.turn) == ("zh", "passenger", "live_speech", 1)
        assert task.ended_s is not None and not task.live and not task.closed
        call, = w.runner.calls
        assert (call.session, call.provenance, call.zone, call.lang) == ("local/glasses-7", "live_speech", "passenger", "zh")
        assert await client.tasks(session.id) and (await client.open("glasses-7")).existed


async def test_a_provenance_that_is_not_told_may_not_move_the_car():
    """Invariant: who doesn't say that an occupant spoke has not said so."""
    async with world() as w:
        client = w.client()
        session = await client.open()
        task, = await client.submit(session.id, find())
        assert task.provenance == "unknown"


async def test_the_same_key_is_the_same_task():
    """Invariant: a repetition, also of several calls, makes nothing new and runs nothing twice."""
    async with world() as w:
        client = w.client()
        session = await client.open()
        asked = Delegate("both", calls=(("poi.find", {}), ("fan.set", {"level": 3})), turn=1)
        first = await client.submit(session.id, asked, wait_s=5)
        again = await asyncio.gather(*(client.submit(session.id, asked) for _ in range(5)))
        assert [t.key for t in first] == [f"{asked.key}#1", f"{asked.key}#2"]
        assert {tuple(t.id for t in tasks) for tasks in again} == {tuple(t.id for t in first)}
        assert sorted(c.skill_id for c in w.runner.calls) == ["fan.set", "poi.find"]


async def test_prose_goes_to_the_planner_with_the_words_said_before():
    """Invariant: the planner gets the prose and the evidence's words, and its plan is carried out."""
    from harness import HeardWords, UserWords

    clock = SystemClock()
    planner = ScriptedPlanner(clock, {"a bit cooler please": (Plan("new", "fan.set", {"level": 7}),)})
    async with world(planner=planner, clock=clock) as w:
        client = w.client()
        session = await client.open()
        said = (UserWords(1, "it is hot", 100, 900), UserWords(1, "later", 1001, 1200))
        heard = (HeardWords("s", "Is it?", 950), HeardWords("s", "unconfirmed", 960, confirmed=False))
        asked = Delegate("a bit cooler please", turn=2, opened_pos=1000, user=said, assistant=heard)
        task, = await client.submit(session.id, asked, wait_s=5)
        assert (task.capability, task.arguments, task.execution) == ("fan.set", {"level": 7}, "completed")
        assert planner.asked[0].said == ("it is hot",) and planner.asked[0].heard == "Is it?"


async def test_capabilities_carry_the_schema_of_their_arguments():
    """Invariant: what is offered is what the harness checks against."""
    async with world() as w:
        capability, = await w.client().capabilities()
        assert capability.id == "fan.set" and capability.summary == {"en": "Set the fan."} and capability.derived == {"level"}
        assert capability.schema["properties"]["level"]["maximum"] == 100 and capability.cancellable and capability.group == "fan"


# -- watching


async def test_a_watcher_sees_a_snapshot_and_then_every_transition():
    """Invariant: from acceptance to the end, in order, with the words where something is to be told."""
    async with world() as w:
        client = w.client()
        session = await client.open()
        stream = client.watch(session.id)
        assert await anext(stream) == Snapshot(())
        task, = await client.submit(session.id, find())
        seen = [await anext(stream) for _ in range(4)]
        assert [(c.machine, c.src, c.dst) for c in seen] == [
            ("execution", "", "queued"), ("execution", "queued", "running"), ("execution", "running", "completed"), ("delivery", "none", "pending")]
        assert {c.task.id for c in seen} == {task.id} and seen[-1].task.text == "Two of them."
        await client.close_session(session.id)
        rest = [item async for item in stream]
        assert rest[-1] == SessionClosed("closed") and rest[-2].dst == "dropped"


async def test_watching_goes_on_after_the_server_was_started_again():
    """Invariant: the same iterator lives through a restart on the same address: a snapshot of what is known, then transitions."""
    from harness import MemoryStore

    store = MemoryStore()
    async with world(store=store) as w:
        addr, client = w.addr, DelegationClient(w.addr)
        session = await client.open("car")
        first, = await client.submit(session.id, find(), wait_s=5)
        stream = client.watch(session.id)
        assert [t.id for t in (await anext(stream)).tasks] == [first.id]
    coming = asyncio.ensure_future(anext(stream))
    async with world(store=store, addr=addr):
        assert [t.id for t in (await asyncio.wait_for(coming, 10)).tasks] == [first.id]
        second, = await client.submit(session.id, find(2))
        change = await anext(stream)
        assert isinstance(change, Change) and change.task.id == second.id
        await stream.aclose()
        await client.close()


async def test_a_slow_watcher_loses_the_oldest_and_is_told_how_many():
    """Invariant: the session goes on at full speed; the reader gets a count of what it lost and a snapshot that is right again."""
    async with world(limits=ServiceLimits(watch_backlog=8)) as w:
        async with grpc.aio.insecure_channel(w.addr, options=(("grpc.http2.lookahead_bytes", 0),)) as channel:
            client = w.client()
            session = await client.open()
            call = rpc.DelegationStub(channel).Watch(pb.WatchRequest(session_id=session.id))
            assert (await call.read()).WhichOneof("kind") == "snapshot"
            held = w.serving.service.book.get("local", session.id)
            prose = "words " * 600
            turn = 0
            while not any(b.dropped for b in held.backlogs):  # until what the connection holds back for the reader is full
                turn += 1
                await client.submit(session.id, Delegate(prose, calls=(("fan.set", {"level": 1}),), turn=turn), wait_s=5)
                assert turn < 500
            last, tasks = 0, {}
            while True:
                event = await asyncio.wait_for(call.read(), 5)
                last = max(last, event.dropped)
                if event.WhichOneof("kind") == "snapshot":
                    tasks |= {t.id: t.execution for t in event.snapshot.tasks}
                    if last and not event.snapshot.next:
                        break
            assert last > 0 and len(tasks) == turn and set(tasks.values()) == {"completed"}


# -- cancelling


async def test_a_cancellation_is_acknowledged_within_50_ms():
    """Invariant: the answer doesn't wait for the run to die; the run is dead soon after, and only that one."""
    async with world() as w:
        client = w.client()
        session = await client.open()
        tasks = [(await client.submit(session.id, work(turn)))[0].id for turn in range(1, 7)]
        spared, took = tasks.pop(), []
        for task_id in tasks:
            began = time.perf_counter()
            assert await client.cancel(session.id, task_id)
            took.append(time.perf_counter() - began)
        assert sorted(took)[2] < 0.05
        await until(lambda: {task for _, what, task in w.runner.events if what == "cancelled"} == set(tasks))
        await asyncio.sleep(0)
        assert {t.id: t.execution for t in await client.tasks(session.id)} == {**dict.fromkeys(tasks, "cancelled"), spared: "running"}
        assert not await client.cancel(session.id, tasks[0])


async def test_what_cannot_be_stopped_says_so():
    """Invariant: no pretence; and a task of another session is unknown."""
    async with world() as w:
        client = w.client()
        session, other = await client.open(), await client.open()
        task, = await client.submit(session.id, work(capability="fixed.work"))
        await until(lambda: w.runner.events)
        assert not await client.cancel(session.id, task.id)
        with pytest.raises(UnknownTask):
            await client.cancel(other.id, task.id)


# -- who may


async def test_a_tenant_sees_only_its_own_sessions():
    """Invariant: another tenant's session is not found, whatever is asked of it; the same name is another session."""
    async with world(tokens=TOKENS) as w:
        acme, other = w.client(ACME), w.client(OTHER)
        session = await acme.open("car")
        task, = await acme.submit(session.id, find(), wait_s=5)
        for call in (other.tasks("car"), other.submit("car", find()), other.cancel("car", task.id), other.close_session("car"),
                     anext(other.watch("car")), other.deliver("car").__aenter__()):
            with pytest.raises(UnknownSession):
                await call
        assert not (await other.open("car")).existed and await other.tasks("car") == ()
        await other.close_session("car")
        assert [t.id for t in await acme.tasks("car")] == [task.id]
        with pytest.raises(BadRequest, match="tenant"):
            await other.open("x", tenant="acme")


async def test_a_wrong_token_is_refused_everywhere_but_at_the_health_service():
    """Invariant: no call answers without a token of this server, and none tells whether a session exists."""
    async with world(tokens=TOKENS) as w:
        await w.client(ACME).open("car")
        for client in (w.client(), w.client("x" * 20), w.client(ACME[:-1])):
            for call in (client.open(), client.tasks("car"), client.submit("car", find()), client.cancel("car", "t"), client.capabilities(),
                         client.close_session("car"), anext(client.watch("car")), client.deliver("car").__aenter__()):
                with pytest.raises(NotAuthorised):
                    await call
        async with grpc.aio.insecure_channel(w.addr) as channel:
            check = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=SERVICE))
        assert check.status == health_pb2.HealthCheckResponse.SERVING


async def test_without_the_right_to_speak_no_word_leaves():
    """Invariant: a token that may only look, or only submit, sees ids and states; it can't take replies, or submit."""
    async with world(tokens=TOKENS) as w:
        full, reader, submitter = w.client(ACME), w.client(ACME2), w.client(QUIET)
        session = await full.open("car")
        task, = await full.submit("car", find(), wait_s=5)
        asked, = await submitter.submit("car", find(2), wait_s=5)
        seen = [*await reader.tasks("car"), asked, *(await anext(reader.watch("car"))).tasks]
        assert len(seen) == 5 and all((t.prose, t.arguments_json, t.kind, t.text, t.rest) == ("",) * 5 for t in seen)
        assert task.text and seen[0].execution == "completed"
        for call in (reader.submit("car", find()), reader.cancel("car", task.id), reader.deliver("car").__aenter__(),
                     submitter.deliver("car").__aenter__()):
            with pytest.raises(NotAllowed):
                await call


# -- limits and faults


@pytest.mark.parametrize("fields, field", [
    ({"key": ""}, "request.key"), ({"key": "a b"}, "request.key"), ({"turn": -1}, "request.turn"), ({"repair": "undo"}, "request.repair"),
    ({"lang": "fr"}, "request.lang"), ({"zone": "roof"}, "request.zone"), ({"provenance": "Live"}, "request.provenance"),
    ({"prose": "x" * 4001}, "request.prose"), ({"prose": " ", "calls": []}, "request.prose"),
    ({"calls": [pb.Call(capability="a")] * 9}, "request.calls"), ({"calls": [pb.Call(capability="")]}, r"request.calls\[0\].capability"),
    ({"calls": [pb.Call(capability="a"), pb.Call(capability="a", arguments_json="[1]")]}, r"request.calls\[1\].arguments_json"),
    ({"calls": [pb.Call(capability="a", arguments_json='{"x": NaN}')]}, "arguments_json"),
    ({"calls": [pb.Call(capability="a", arguments_json='{"x": 1e999}')]}, "arguments_json"),
    ({"calls": [pb.Call(capability="a", arguments_json=r'{"x": "\ud800"}')]}, "arguments_json"),
    ({"calls": [pb.Call(capability="a", arguments_json="[" * 30000)]}, "arguments_json"),
    ({"calls": [pb.Call(capability="a", arguments_json='{"x": "' + "y" * 70000 + '"}')]}, "arguments_json"),
    ({"evidence": pb.Words(opened_pos=-1)}, "request.evidence.opened_pos"),
    ({"evidence": pb.Words(user=[pb.UserWords()] * 65)}, "request.evidence.user"),
    ({"evidence": pb.Words(assistant=[pb.HeardWords(text="x" * 2001)])}, r"request.evidence.assistant\[0\].text"),
])
async def test_a_bad_field_is_refused_by_name(fields, field):
    """Invariant: INVALID_ARGUMENT that names the field; no task; the next good request is taken."""
    async with world() as w:
        async with grpc.aio.insecure_channel(w.addr) as channel:
            stub = rpc.DelegationStub(channel)
            client = w.client()
            session = await client.open()
            request = pb.Request(**{"key": "k", "prose": "words", "turn": 1, **fields})
            with pytest.raises(grpc.aio.AioRpcError, match=field) as err:
                await stub.Submit(pb.SubmitRequest(session_id=session.id, request=request))
            assert err.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert await client.tasks(session.id) == () and (await client.submit(session.id, find()))[0].id


async def test_other_calls_name_their_bad_fields_too():
    """Invariant: as above for sessions, waits, pages and tasks."""
    async with world() as w:
        client = w.client()
        session = await client.open()
        for call, field in ((client.open("a/b"), "session_id"), (client.open("x" * 65), "session_id"), (client.open(lang="fr"), "lang"),
                            (client.tasks("../x"), "session_id"), (client.cancel(session.id, ""), "task_id"),
                            (client.submit(session.id, find(), wait_s=61), "wait_ms"),
                            (client.submit(session.id, Delegate(calls=(("a", {"x": {1}}),))), "calls")):
            with pytest.raises(BadRequest, match=field):
                await call
        with pytest.raises(UnknownSession):
            await client.tasks("never-opened")


async def test_a_message_that_is_too_large_is_refused_before_it_is_read():
    """Invariant: typed, not retryable, and the connection lives on."""
    async with world(limits=ServiceLimits(max_message_bytes=8192)) as w:
        client = w.client()
        session = await client.open()
        with pytest.raises(TooLarge):
            await client.submit(session.id, Delegate("x" * 3000, calls=(("poi.find", {"q": "y" * 9000}),)))
        assert await client.submit(session.id, find(), wait_s=5)


async def test_long_histories_come_in_pages():
    """Invariant: no answer is larger than the limit allows, and nothing is missing or doubled."""
    async with world(limits=ServiceLimits(max_message_bytes=16384)) as w:
        client = w.client()
        session = await client.open()
        ids = [(await client.submit(session.id, Delegate("w" * 3000, calls=(("fan.set", {"level": 1}),), turn=i)))[0].id for i in range(1, 12)]
        assert [t.id for t in await client.tasks(session.id)] == ids
        assert [t.id for t in (await anext(client.watch(session.id))).tasks] == ids
        async with grpc.aio.insecure_channel(w.addr) as channel:
            page = await rpc.DelegationStub(channel).List(pb.ListRequest(session_id=session.id))
        assert page.next and page.ByteSize() <= 16384


async def test_limits_are_told_and_freed():
    """Invariant: one more than the limit is busy (retryable); after a close there is room; another tenant is not concerned."""
    limits = ServiceLimits(sessions_per_tenant=2, streams_per_session=1, waits_per_session=1)
    async with world(tokens=TOKENS, limits=limits) as w:
        acme, other = w.client(ACME), w.client(OTHER)
        await acme.open("a")
        await acme.open("b")
        with pytest.raises(BusyError, match="at most 2"):
            await acme.open("c")
        assert await other.open("c") and (await acme.open("a")).existed
        first = acme.watch("a")
        await anext(first)
        with pytest.raises(BusyError, match="watch"):
            await anext(acme.watch("a"))
        await first.aclose()
        held = w.serving.service.book.get("acme", "a")
        await until(lambda: not held.backlogs)
        waiting = asyncio.ensure_future(acme.submit("a", work(), wait_s=20))
        await until(lambda: held.waits)
        with pytest.raises(BusyError, match="wait"):
            await acme.submit("a", work(2), wait_s=20)
        assert len(await acme.tasks("a")) == 1
        await acme.close_session("a")
        assert [t.id for t in await waiting] and await acme.open("c")


async def test_an_idle_session_is_closed_and_leaves_nothing():
    """Invariant: by the injected clock; one that is watched is not idle; the journal's records go with it."""
    clock = VirtualClock()
    async with world(clock=clock, limits=ServiceLimits(idle_ttl_s=100, sweep_s=10)) as w:
        client = w.client()
        await client.open("idle")
        await client.open("watched")
        stream = client.watch("watched")
        await anext(stream)
        await client.submit("idle", Delegate("x", calls=(("fan.set", {"level": 1}),)))
        assert {name for name, _ in w.harness.store.sessions()} == {"local/idle", "local/watched"}
        await clock.advance(99)
        assert await client.tasks("idle")
        await clock.advance(99)
        assert await client.tasks("idle")  # a call is use
        await clock.advance(115)
        await until(lambda: w.harness.sessions() == ["local/watched"])
        with pytest.raises(UnknownSession):
            await client.tasks("idle")
        assert [name for name, _ in w.harness.store.sessions()] == ["local/watched"]
        await stream.aclose()


async def test_one_clients_fault_touches_nobody_else(monkeypatch):
    """Invariant: a fault inside one call is told by its type, without its words, and other sessions don't notice."""
    async with world() as w:
        client = w.client()
        good, bad = await client.open(), await client.open()
        stream = client.watch(good.id)
        await anext(stream)

        def broken(*_):
            raise RuntimeError("secret words of the user")

        monkeypatch.setattr(type(w.harness.session(f"local/{bad.id}")), "accept", broken)
        with pytest.raises(ServiceFault) as err:
            await client.submit(bad.id, find())
        assert "secret" not in str(err.value)
        monkeypatch.undo()
        task, = await client.submit(good.id, find())
        assert (await anext(stream)).task.id == task.id and await client.submit(bad.id, find(), wait_s=5)
        await stream.aclose()


async def test_a_stopping_server_is_a_retryable_error():
    """Invariant: `stop` ends within its grace with streams open; clients are told to come back."""
    async with world() as w:
        client = w.client()
        session = await client.open()
        stream = client.watch(session.id, resume=False)
        await anext(stream)
        coming = asyncio.ensure_future(anext(stream))
        began = time.monotonic()
        await w.serving.stop(0.2)
        assert time.monotonic() - began < 2.0
        with pytest.raises(ServiceUnavailable):
            await coming
        with pytest.raises((ServiceUnavailable, ServiceTimeout)):
            await client.tasks(session.id)


async def test_beyond_loopback_tls_and_tokens_are_needed():
    """Invariant: the message names the setting and what is missing; a busy port is named too."""
    async with world() as w:
        with pytest.raises(ConfigError, match="listen.*TLS and a token"):
            await serve(w.harness, "0.0.0.0:0")
        with pytest.raises(ConfigError, match="busy"):
            await serve(w.harness, w.addr)
    with pytest.raises(ConfigError, match="CA file"):
        DelegationClient("192.0.2.1:50561")
