"""Parts of the delegation service without a server: who may call, what travels, what a slow reader loses, the generated code."""
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import BadRequest, Delivery, Execution, HeardWords, PreparedReply, Task, Transition, UnknownTask, UserWords
from harness.errors import HarnessError
from harness.host.absent import AbsentVehicleBus
from harness.host.errors import Unavailable
from harness.service import convert
from harness.service import delegation_pb2 as pb
from harness.service import errors
from harness.service.access import Access
from harness.service.book import Backlog
from harness.service.commands import serve
from harness.service.errors import NotAllowed, NotAuthorised, ServiceFault, from_message, to_message
from harness.service.generate import generate
from harness.service.views import Delegate
from venus_edge.errors import BusyError, ConfigError

TOKEN, READER = "a-token-of-acme-0123", "a-reader-of-acme-0123"
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
json_value = st.recursive(st.none() | st.booleans() | st.integers(-2**40, 2**40) | text, lambda v: st.lists(v, max_size=3), max_leaves=4)
position = st.integers(0, 2**40)
delegates = st.builds(
    Delegate, prose=text.filter(str.strip), turn=st.integers(0, 2**20), repair=st.sampled_from(("new", "update", "status")), opened_pos=position,
    calls=st.lists(st.tuples(st.sampled_from(("a.b", "c")), st.dictionaries(text, json_value, max_size=3)), max_size=3).map(tuple),
    lang=st.sampled_from(("", "en", "zh")), zone=st.sampled_from(convert.ZONES), provenance=st.sampled_from(("unknown", "live_speech", "x")),
    user=st.lists(st.builds(UserWords, st.integers(0, 9), text, position, position), max_size=3).map(tuple),
    assistant=st.lists(st.builds(HeardWords, text, text, position, st.booleans()), max_size=3).map(tuple))


@settings(max_examples=150, deadline=None)
@given(delegates)
def test_every_request_travels_without_loss(delegate):
    """Invariant: request → bytes → the harness's requests keep every field, and the evidence is cut as in the process."""
    message = pb.Request.FromString(convert.request_to(delegate).SerializeToString())
    requests, evidence = convert.requests_from(message, "zh")
    assert len(requests) == max(1, len(delegate.calls))
    for request in requests:
        assert (request.prose, request.turn, request.repair, request.zone, request.provenance, request.opened_pos) == (
            delegate.prose, delegate.turn, delegate.repair, delegate.zone, delegate.provenance, delegate.opened_pos)
        assert request.lang == (delegate.lang or "zh")
    assert [(r.capability, r.arguments) for r in requests] == (list(delegate.calls) or [(None, {})])
    assert len({r.key for r in requests}) == len(requests) and all(r.key.startswith(delegate.key) for r in requests)
    assert set(evidence.user) <= set(delegate.user) and all(w.end <= delegate.opened_pos for w in (*evidence.user, *evidence.assistant))
    assert all(w.confirmed for w in evidence.assistant)


tasks = st.builds(
    Task, id=text, key=text, lineage=text, version=st.integers(0, 99), capability=text, arguments=st.dictionaries(text, json_value, max_size=3),
    prose=text, turn=st.integers(0, 2**31), lang=text, zone=text, group=text, evidence=text, accepted_at=st.floats(0, 1e6), replaces=text,
    superseded_by=text, execution=st.sampled_from(Execution), execution_reason=text, ended_at=st.none() | st.floats(0, 1e6),
    delivery=st.sampled_from(Delivery), delivery_reason=text, kind=text, text=text, rest=text, reply=text, provenance=text)


@settings(max_examples=150, deadline=None)
@given(tasks, st.booleans())
def test_every_task_travels_with_its_words_or_without_any(task, words):
    """Invariant: ids and states always; words only for those who may speak, and then all of them."""
    view = convert.task_from(pb.Task.FromString(convert.task_to(task, 1e6, words).SerializeToString()))
    for name in ("id", "key", "lineage", "version", "capability", "turn", "lang", "zone", "provenance", "execution", "execution_reason",
                 "delivery", "delivery_reason", "replaces", "superseded_by"):
        assert getattr(view, name) == getattr(task, name), name
    assert (view.ended_s is None) == (task.ended_at is None) and view.live == task.live and view.closed == task.closed
    told = (view.prose, view.kind, view.text, view.rest)
    assert told == ((task.prose, task.kind, task.text, task.rest) if words else ("",) * 4)
    assert view.arguments == (task.arguments if words else {})


def test_words_that_are_no_utf8_travel_as_question_marks():
    """Invariant: a lone surrogate of a planner breaks no stream."""
    assert convert.reply_to(PreparedReply("r", "t", 1, "caf\ud800", "result", "en", 1)).text == "caf?"


def test_each_error_comes_back_as_what_it_was():
    """Invariant: class, message, data and retryable survive; what isn't ours is told by its type only; every code has a status."""
    known = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, errors.DelegationError) and "code" in vars(cls)]
    for cls in (*known[1:], BadRequest, UnknownTask, BusyError):
        back = from_message(to_message(cls("why", field="x")))
        assert type(back) is cls and (back.message, back.data, back.retryable) == ("why", {"field": "x"}, cls.retryable)
        assert cls.code in errors.STATUS or cls is ServiceFault
    hidden = from_message(to_message(ValueError("secret words")))
    assert isinstance(hidden, ServiceFault) and "secret" not in hidden.message
    assert from_message(to_message(HarnessError("x"))).data["cause"] == "harness"


async def test_a_backlog_loses_the_oldest_and_says_how_many():
    """Invariant: `dropped` counts everything that the reader didn't get one by one; after a snapshot there is no gap."""
    task = Task("t", "k", "t", 1, "c", {}, "", 1, "en", "driver", "", "", 0.0)
    backlog = Backlog(4)
    for n in range(3):
        backlog.put(Transition("execution", task, "", str(n), ""))
    assert (await backlog.next()).dst == "0" and backlog.dropped == 0
    for n in range(3, 9):
        backlog.put(Transition("execution", task, "", str(n), ""))
    assert backlog.dropped == 4 and await backlog.next() is None and backlog.gap
    backlog.caught_up()
    assert backlog.dropped == 8 and not backlog.gap
    backlog.put(Transition("execution", task, "", "last", ""))
    backlog.end("closed")
    assert (await backlog.next()).dst == "last" and await backlog.next() is None and backlog.ended == "closed"


# -- who may


def test_a_token_is_its_tenant_and_its_rights():
    """Invariant: the right token in the right scheme and nothing else; without tokens everybody is the local tenant."""
    access = Access({TOKEN: "acme", READER: {"tenant": "acme", "rights": []}})
    assert access.guarded and access.tenants() == {"acme"}
    grant = access.grant(f"Bearer {TOKEN}")
    grant.need("submit")
    grant.need("speak")
    with pytest.raises(NotAllowed, match="speak"):
        access.grant(f"bearer {READER}").need("speak")
    for given_ in ("", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer ", f"Bearer  {TOKEN}"):
        with pytest.raises(NotAuthorised) as err:
            access.grant(given_)
        assert TOKEN[:8] not in err.value.message
    assert Access().grant("").tenant == "local" and not Access().guarded


@pytest.mark.parametrize("tokens, complaint", [
    ("", "allowed"), ("[]", "allowed"), ("{}", "at least one"), ("{", "JSON"), (json.dumps({"short": "acme"}), "16 to 256"),
    (json.dumps({TOKEN: "a/b"}), "tenant"), (json.dumps({TOKEN: 7}), "allowed: a tenant"), (json.dumps({TOKEN: {"tenant": "a", "x": 1}}), "allowed"),
    (json.dumps({TOKEN: {"tenant": "a", "rights": ["fly"]}}), "rights"), (json.dumps({TOKEN: {"tenant": "a", "rights": "speak"}}), "rights")])
def test_a_wrong_tokens_file_is_one_line_that_names_it(tmp_path, tokens, complaint):
    """Invariant: the file, the entry and what is allowed; never a token."""
    file = tmp_path / "tokens.json"
    file.write_text(tokens)
    with pytest.raises(ConfigError, match=complaint) as err:
        Access.load(str(file))
    assert "tokens.json" in err.value.message and TOKEN not in err.value.message and "\n" not in err.value.message


def test_tokens_come_from_the_file_or_the_variable():
    """Invariant: a file that is named wins; a missing one is an error, not an open door."""
    env = {"VENUS_DELEGATION_TOKENS": json.dumps({TOKEN: "acme"})}
    assert Access.load("", env).grant(f"Bearer {TOKEN}").tenant == "acme"
    assert not Access.load("", {}).guarded
    with pytest.raises(ConfigError, match="no-such.json"):
        Access.load("no-such.json", env)


# -- the rest


async def test_an_absent_car_is_unavailable_whatever_is_asked():
    """Invariant: nothing is made up."""
    bus = AbsentVehicleBus()
    for call in (bus.get("Vehicle.Speed"), bus.actuate("Vehicle.Cabin.Door", True), bus.stop("Vehicle.Cabin.Door")):
        with pytest.raises(Unavailable, match="no car"):
            await call
    with pytest.raises(Unavailable):
        bus.subscribe("Vehicle.Speed")


def test_the_generated_code_matches_the_proto(tmp_path):
    """Invariant: delegation_pb2*.py are what delegation.proto gives."""
    generate(tmp_path)
    for name in ("delegation_pb2.py", "delegation_pb2_grpc.py"):
        assert (tmp_path / "harness/service" / name).read_text() == Path(convert.__file__).with_name(name).read_text()


def test_the_page_for_other_implementations_names_every_field():
    """Invariant: PROTOCOL.md has each message and each of its fields."""
    page = (Path(convert.__file__).parents[2] / "PROTOCOL.md").read_text(encoding="utf-8")
    section = page[page.index("## Delegation service"):]
    for service in pb.DESCRIPTOR.services_by_name.values():
        assert all(f"`{method.name}`" in section for method in service.methods)
    for message in pb.DESCRIPTOR.message_types_by_name.values():
        for field in message.fields:
            assert re.search(rf"\b{field.name}\b", section), f"{message.name}.{field.name}"


@pytest.mark.parametrize("argv, complaint", [
    (["--listen", "0.0.0.0:1"], "--listen.*TLS and a token"), (["--listen", "nowhere"], "--listen"), (["--tls-cert", "x"], "--tls-key"),
    (["--idle-ttl-s", "0"], "--idle-ttl-s"), (["--tokens", "no-such.json"], "no-such.json"), (["--journal", "ftp://x"], "journal")])
def test_a_wrong_option_is_one_line_that_names_it(argv, complaint):
    """Invariant: refused at once, before anything is started."""
    with pytest.raises(ConfigError, match=complaint):
        serve(["--listen", "127.0.0.1:0", *argv])
