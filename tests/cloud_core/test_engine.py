"""The engine server over real gRPC on loopback: it equals the in-process front end, and one session's fault is its own."""
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import fields, is_dataclass

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade_fixtures import cabin, cascade
from cloud_core import front_end as fe
from cloud_core.engine import EngineClient, InProcessEngine, convert
from cloud_core.engine import engine_pb2 as pb
from cloud_core.engine.errors import (EngineBusy, EngineTimeout, EngineUnavailable, NotAuthorised, OptionsRefused, SessionFailed, UnitRefused, UnknownRuntime)
from cloud_core.engine.generate import generate
from cloud_core.engine.runtimes import load
from cloud_core.engine.server import serve
from cloud_core.front_end import AudioPatch, Decision, FrontEndInfo, SessionOptions, UnitInput
from venus_edge.errors import ConfigError

UNIT = np.zeros(320, np.int16)


class Scripted:
    """A whole front end for tests of the transport: echoes, or does what its session is told by name."""

    info = FrontEndInfo("scripted", 40, 24_000, ("en",))

    def __init__(self):
        self.open_sessions = 0

    def open(self, options):
        front, name = self, options.session
        if name == "refuse":
            error = ValueError("secret words of the user")
            raise error
        front.open_sessions += 1

        class Session:
            def step(self, unit):
                if name == "crash" and unit.seq == 1:
                    raise RuntimeError("secret words of the user")
                if name == "slow":
                    time.sleep(0.6)
                return Decision(unit.seq, turn_open=unit.gated, dropped=tuple(r.id for r in unit.replies))

            def close(self):
                front.open_sessions -= 1

        return Session()

    def close(self):
        pass


class Running:
    """`async with Running(front_end) as (client, addr, front_end)`: a server on a free port and a client of it."""

    def __init__(self, front_end=None, token="", client_token=None, sessions=4):
        self.front_end, self.token, self.sessions = front_end or Scripted(), token, sessions
        self.client_token = token if client_token is None else client_token

    async def __aenter__(self):
        self.server, self.addr, self.service = await serve(self.front_end, "127.0.0.1:0", self.token, self.sessions)
        self.client = EngineClient(self.addr, self.client_token)
        return self.client, self.addr, self.front_end

    async def __aexit__(self, *_):
        await self.client.close()
        await self.server.stop(0.2)
        self.service.close()


def equal(a, b) -> bool:
    if is_dataclass(a):
        return type(a) is type(b) and all(equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(equal, a, b))
    return a == b


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
count = st.integers(0, 2**40)
rate = st.integers(1, 48_000)
samples = st.lists(st.integers(-32768, 32767), max_size=40).map(lambda x: np.array(x, np.int16))
real = st.floats(allow_nan=False, allow_infinity=False)
json_value = st.recursive(st.none() | st.booleans() | st.integers(-2**40, 2**40) | real | text, lambda v: st.lists(v, max_size=3), max_leaves=4)


def tuples(strategy):
    return st.lists(strategy, max_size=3).map(tuple)


units = st.builds(
    fe.UnitInput, count, count, samples, st.booleans(), tuples(st.builds(fe.AudioPatch, count, samples)), tuples(st.binary(max_size=20)),
    tuples(st.builds(fe.PlayoutMark, text, count, rate, text, st.booleans())), tuples(st.builds(fe.AdmittedReply, text, text, text, text)))
decisions = st.builds(
    fe.Decision, count, st.sampled_from(fe.Kind),
    tuples(st.builds(fe.SegmentChunk, text, count, rate, samples, tuples(st.builds(fe.Span, text, count, count)), st.booleans(), st.none() | text, count)),
    tuples(st.builds(fe.UserText, count, text, count, count, st.booleans(), text, real, st.booleans())),
    tuples(st.builds(fe.DelegateEvent, text, count, count, count, text, st.none() | text, st.dictionaries(text, json_value, max_size=3), text, text, text)),
    tuples(st.builds(fe.Overlap, text, st.sampled_from(fe.Verdict), text, count)), st.booleans(), st.booleans(), tuples(text),
    st.dictionaries(text, real, max_size=3))


@settings(max_examples=150, deadline=None)
@given(units)
def test_every_unit_travels_without_loss(unit):
    """Invariant: unit → bytes → unit is the identity, field by field."""
    assert equal(convert.unit_from(pb.Unit.FromString(convert.unit_to(unit).SerializeToString())), unit)


@settings(max_examples=150, deadline=None)
@given(decisions)
def test_every_decision_travels_without_loss(decision):
    """Invariant: decision → bytes → decision is the identity; None and the empty string stay different."""
    assert equal(convert.decision_from(pb.Decision.FromString(convert.decision_to(decision).SerializeToString())), decision)


async def test_over_grpc_the_cascade_decides_as_in_process():
    """Invariant: the same units give the same words, requests and kinds over gRPC and in-process."""
    sound = cabin(("Take me to the casino.",), tail_s=1.2)

    async def converse(engine):
        session, out = await engine.open(SessionOptions("same")), []
        for k in range(len(sound) // 320):
            out.append(await session.step(UnitInput(k, k * 320, sound[k * 320:(k + 1) * 320])))
        await session.close()
        return [(d.seq, d.kind, [u.text for u in d.user], [(g.capability, g.arguments, g.opened_pos) for g in d.delegates], d.user_speaking, d.turn_open)
                for d in out]

    async with Running(cascade()) as (client, _, front_end):
        assert (await client.info()) == front_end.info
        remote = await converse(client)
    assert remote == await converse(InProcessEngine(cascade()))
    assert any(row[3] for row in remote)


@pytest.mark.parametrize("unit, field", [(UnitInput(1, 320, np.zeros(10, np.int16)), "audio"), (UnitInput(1, 320, np.zeros(320, np.float32)), "audio"),
                                         (UnitInput(1, 0, UNIT), "pos"), (UnitInput(1, 320, UNIT, frames=("x",)), "frames"),
                                         (UnitInput(1, 320, UNIT, backfill=(AudioPatch(0, np.zeros(3)),)), "backfill")])
async def test_a_bad_unit_is_refused_by_field_and_the_session_lives(unit, field):
    """Invariant: the typed error names the field, over gRPC as in-process, and the next good unit is answered."""
    async with Running(cascade()) as (client, _, _front):
        for engine in (client, InProcessEngine(cascade())):
            session = await engine.open(SessionOptions("bad"))
            await session.step(UnitInput(0, 0, UNIT))
            if engine is client or field != "frames":
                with pytest.raises(UnitRefused, match=field):
                    await session.step(unit)
            assert (await session.step(UnitInput(1, 320, UNIT))).seq == 1
            await session.close()


async def test_one_sessions_crash_ends_only_that_session():
    """Invariant: the crashed one gets a typed error without the exception's words; its neighbour goes on; its place is free again."""
    async with Running(sessions=2) as (client, _, front_end):
        good, bad = await client.open(SessionOptions("good")), await client.open(SessionOptions("crash"))
        await bad.step(UnitInput(0, 0, UNIT))
        with pytest.raises(SessionFailed) as err:
            await bad.step(UnitInput(1, 320, UNIT))
        assert "secret" not in str(err.value)
        with pytest.raises(SessionFailed):
            await bad.step(UnitInput(2, 2*320, UNIT))
        assert (await good.step(UnitInput(0, 0, UNIT, replies=(fe.AdmittedReply("r", "x"),)))).dropped == ("r",)
        third = await client.open(SessionOptions("third"))
        await third.close()
        await good.close()
        await asyncio.sleep(0.05)
        assert front_end.open_sessions == 0


async def test_a_failing_open_is_an_error_of_that_session_alone():
    """Invariant: the server goes on serving."""
    async with Running() as (client, _, _front):
        with pytest.raises(SessionFailed) as err:
            await client.open(SessionOptions("refuse"))
        assert "secret" not in str(err.value)
        await (await client.open(SessionOptions("fine"))).close()


async def test_the_session_limit_is_told_and_freed():
    """Invariant: one more than the limit is refused as busy; after a close there is room."""
    async with Running(sessions=1) as (client, _, _front):
        first = await client.open(SessionOptions("a"))
        with pytest.raises(EngineBusy, match="allowed: 1"):
            await client.open(SessionOptions("b"))
        await first.close()
        await asyncio.sleep(0.05)
        await (await client.open(SessionOptions("c"))).close()


async def test_a_missed_deadline_ends_the_session():
    """Invariant: no decision in time is a typed, retryable error, and the session says so again afterwards."""
    async with Running() as (client, _, _front):
        session = await client.open(SessionOptions("slow"), step_s=0.2)
        for _ in range(2):
            with pytest.raises(EngineTimeout):
                await session.step(UnitInput(0, 0, UNIT))


async def test_alternation_is_strict():
    """Invariant: a second step before the first one's decision is refused, and the first is still answered."""
    async with Running() as (client, _, _front):
        session = await client.open(SessionOptions("slow"))
        first = asyncio.ensure_future(session.step(UnitInput(0, 0, UNIT)))
        await asyncio.sleep(0.05)
        with pytest.raises(SessionFailed, match="previous"):
            await session.step(UnitInput(1, 320, UNIT))
        assert (await first).seq == 0


async def test_a_wrong_token_is_refused_everywhere():
    """Invariant: info and sessions need the token; health doesn't."""
    async with Running(token="right", client_token="wrong") as (client, addr, _front):
        with pytest.raises(NotAuthorised):
            await client.info()
        with pytest.raises(NotAuthorised):
            await client.open(SessionOptions("x"))
        async with grpc.aio.insecure_channel(addr) as channel:
            check = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service="venus.engine.v1.Engine"))
        assert check.status == health_pb2.HealthCheckResponse.SERVING


async def test_refused_options_name_the_option():
    """Invariant: the cascade's own message arrives typed."""
    async with Running(cascade()) as (client, _, _front):
        with pytest.raises(OptionsRefused, match="lang.*allowed: en"):
            await client.open(SessionOptions("x", lang="xx"))


async def test_no_server_is_unavailable():
    """Invariant: a dead address is a typed, retryable error."""
    client = EngineClient("127.0.0.1:1")
    with pytest.raises(EngineUnavailable):
        await client.open(SessionOptions("x"))
    await client.close()


async def test_a_bind_beyond_loopback_without_tls_and_token_is_refused():
    """Invariant: the message says what is missing."""
    with pytest.raises(ConfigError, match="TLS and a token"):
        await serve(Scripted(), "0.0.0.0:0")
    with pytest.raises(ConfigError, match="CA file"):
        EngineClient("192.0.2.1:50551")


async def test_a_busy_port_is_named():
    """Invariant: two servers can't take one port; the second says which setting to change."""
    async with Running() as (_, addr, _front):
        with pytest.raises(ConfigError, match="VENUS_ENGINE_ADDR"):
            await serve(Scripted(), addr)


def test_an_unknown_runtime_names_the_known_ones():
    """Invariant: the error lists what the entry points offer."""
    with pytest.raises(UnknownRuntime, match="cascade"):
        load("nonsense")


def test_the_generated_code_matches_the_proto(tmp_path):
    """Invariant: engine_pb2*.py are what engine.proto gives."""
    generate(tmp_path)
    for name in ("engine_pb2.py", "engine_pb2_grpc.py"):
        made = (tmp_path / "cloud_core/engine" / name).read_text()
        assert made == open(os.path.join(os.path.dirname(convert.__file__), name)).read()


def test_the_process_says_ready_serves_and_stops_on_sigterm():
    """Invariant: READY carries addr, runtime and unit_ms; a session works; SIGTERM ends it within 2 s with a session open."""
    env = {**os.environ, "VENUS_ENGINE_ADDR": "127.0.0.1:0", "VENUS_ENGINE_TOKEN": "t"}
    proc = subprocess.Popen([sys.executable, "-m", "cloud_core.engine.server"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    try:
        word, _, rest = proc.stdout.readline().partition(" ")
        ready = json.loads(rest)
        assert word == "READY" and ready["runtime"] == "cascade" and ready["unit_ms"] == 20

        async def talk():
            client = EngineClient(ready["addr"], "t")
            session = await client.open(SessionOptions("p"))
            assert (await session.step(UnitInput(0, 0, UNIT))).seq == 0
            begun = time.monotonic()
            proc.send_signal(signal.SIGTERM)
            await asyncio.to_thread(proc.wait, 5)
            took = time.monotonic() - begun
            with pytest.raises((EngineUnavailable, SessionFailed)):
                await session.step(UnitInput(1, 320, UNIT))
            await client.close()
            return took

        assert asyncio.run(talk()) < 2.0 and proc.returncode == 0
    finally:
        proc.kill()
        proc.communicate()


def test_a_wrong_address_is_one_line_and_status_2():
    """Invariant: bad configuration ends the process with one line that names the setting, and no traceback."""
    env = {**os.environ, "VENUS_ENGINE_ADDR": "0.0.0.0:1"}
    done = subprocess.run([sys.executable, "-m", "cloud_core.engine.server"], capture_output=True, text=True, env=env, timeout=20)
    assert done.returncode == 2 and "VENUS_ENGINE_ADDR" in done.stderr and done.stderr.count("\n") == 1
