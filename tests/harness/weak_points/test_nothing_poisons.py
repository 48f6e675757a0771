"""Weak points of robustness: one slip of whoever is around the harness costs a sentence at most, never the session (Peer 7-10)."""
import asyncio
import datetime
import random

import pytest
from points_world import BOOK, FIND, GO, SPECS, Instant, accept, request

from harness import BadRequest, DelegateRequest, Harness, HarnessSettings, Moment, Plan, SkillBackend, SkillOutcome
from harness.deliver.gate import RATE
from harness.journal.backend import Gone
from harness.journal.sqlite import SqliteStore
from harness.journal.writer import DurableStore
from harness.testing import Conversation, ListedCatalog, Script, scripted
from venus_edge.metrics import METRICS
from venus_edge.testing import VirtualClock


async def test_a_front_end_that_delegates_again_instead_of_speaking_loses_nothing():
    """Peer 8, Odd 39: a result is admitted, and in that turn the model opens another delegate and never speaks the first.

    The first is offered again and then left for the screen; the second is told; the session goes on.
    """
    shown = []
    world = scripted({"poi.find": Script("Two of them."), "navigation.go": Script("Four minutes.")}, specs=SPECS)
    session = world.harness.open_session("b", on_screen=shown.append)
    talk = Conversation(session, world.clock)
    first = talk.ask("poi.find")
    reply = None
    while reply is None:
        await world.clock.advance(0.1)
        reply = session.next_reply(Moment(talk._pos, False, False, False, talk.turn))
    talk.turn += 1
    second = accept(session, talk.turn, "navigation.go")
    session.reply_declined(reply.id)
    for _ in range(40):  # the front end speaks everything but the first task's words
        await world.clock.advance(0.1)
        reply = session.next_reply(Moment(talk._pos, False, False, False, talk.turn))
        if reply is None:
            continue
        if "Two of them" in reply.text:
            session.reply_declined(reply.id)
        else:
            session.reply_started(reply.id, "s")
            session.reply_finished(reply.id, heard=reply.text, unheard="", completed=True, confirmed=True)
    ends = {t.id: (t.delivery, t.delivery_reason) for t in session.status()}
    assert ends == {first: ("unspoken", "declined"), second: ("delivered", "confirmed")} and [i.task_id for i in shown] == [first]


async def test_reports_in_any_order_about_anything_break_nothing():
    """Peer 10, Odd 41: unknown, repeated, too early, too late, contradictory reports: counted, ignored, and every result is told."""
    rng = random.Random(5)
    world = scripted({"poi.find": Script("Two of them are open."), "navigation.go": Script("Four minutes.", 0.3)}, specs=SPECS)
    session, talk, ids = world.session, world.talk, ["reply-unknown", ""]
    for n in range(150):
        for _ in range(rng.randrange(4)):
            reply = rng.choice(ids)
            words = rng.choice(["", "Two of them", "Two of them are open.", "something else " * 50])
            rng.choice([
                lambda: session.reply_started(reply, "seg"), lambda: session.reply_declined(reply), lambda: session.reply_returned(reply),
                lambda: session.reattach(reply, heard=words, unheard="", completed=rng.random() < 0.5),
                lambda: session.reply_finished(reply, heard=words, unheard=rng.choice(["", "x"]), completed=rng.random() < 0.5,
                                               confirmed=rng.random() < 0.5, stopped=rng.random() < 0.1)])()
        if n % 10 == 0:
            talk.ask(rng.choice(["poi.find", "navigation.go"]))
        await world.clock.advance(0.1)
        said = session.next_reply(Moment(talk._pos, rng.random() < 0.2, False, False, talk.turn))
        ids += [said.id] if said else []
    stale = METRICS.get("venus_harness_stale_reports_total")
    session.reply_finished("reply-unknown", heard="a", unheard="", completed=True, confirmed=True)
    assert METRICS.get("venus_harness_stale_reports_total") == stale + 1
    await world.clock.advance(30)  # whatever was in the air by then
    session.next_reply(Moment(talk._pos, False, False, False, talk.turn))
    last = talk.ask("poi.find")
    await talk.run(20)
    assert "Two of them are open." in talk.texts[0] and session.ledger.get(last).delivery == "delivered"
    assert all(t.closed for t in session.status())


async def test_a_device_whose_clock_begins_again_is_still_spoken_to():
    """Peer 10, Peer 11: after hours in one session the device restarts at sample 0, with the user having just spoken: not silent for hours."""
    world = scripted({"poi.find": Script("Two of them.")}, specs=SPECS)
    session = world.session
    for user_speaking in (True, False):
        session.next_reply(Moment(10 * 3600 * RATE + user_speaking, user_speaking, False, False, 0))
    world.talk.ask("poi.find")
    await world.talk.run(4)
    assert world.talk.texts == ["Two of them."] and world.talk.spoken[0][0] <= 0.5


async def test_a_packet_that_is_a_little_late_opens_no_gap_in_the_users_speech():
    """Peer 11: a unit whose position is behind the last one by less than a second is not taken for a restart: what was heard still counts."""
    world = scripted({"poi.find": Script("Two of them.")}, specs=SPECS)
    older = world.talk.ask("poi.find")
    await world.clock.advance(0.1)
    session, at = world.session, 100 * RATE
    session.next_reply(Moment(at, True, False, False, 2))
    assert session.next_reply(Moment(at - 800, False, False, False, 2)) is None and session.ledger.get(older).delivery == "pending"


class BrokenCatalog(ListedCatalog):
    """An installed skill whose own code is wrong, in one of several ways."""

    def __init__(self, how):
        super().__init__(FIND, GO)
        self.how = how

    def validate(self, skill_id, arguments):
        if skill_id == "poi.find" and self.how == "check":
            raise KeyError("x")
        if skill_id == "poi.find" and self.how == "no JSON":
            return {"when": datetime.datetime(2026, 1, 1)}
        return arguments

    def say(self, skill_id, outcome, lang, fields):
        if skill_id == "poi.find" and self.how == "wording":
            raise IndexError("x")
        return None if self.how == "no words" else ""


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("how", ["check", "no JSON", "wording", "no words"])
async def test_a_skill_whose_check_or_wording_is_wrong_costs_its_own_request(how, durable, tmp_path):
    """Peer 10: the user hears that it went wrong, the next request is served, with a durable journal and without."""
    store = SqliteStore(str(tmp_path / "j")) if durable else None
    if store:
        await store.open()
    catalog = BrokenCatalog(how)
    world = scripted({"poi.find": Script("", ok=False, code="not_found"), "navigation.go": Script("Four minutes.")}, catalog=catalog, store=store)
    for capability in ("poi.find", "navigation.go"):
        world.talk.ask(capability)
        for _ in range(8):  # each admission waits for the real store
            await world.talk.run(1)
            await world.session.settled()
    broken, good = world.session.status()
    assert (broken.execution, good.execution) == ("failed", "completed") and broken.execution_reason in ("internal", "not_found")
    assert len(world.talk.texts) == 2 and world.talk.texts[0] and world.talk.texts[1] == "Four minutes."
    assert broken.closed and good.closed
    await world.harness.close()


ODD = {"no text": dict(text=None), "bytes": dict(text=b"Two."), "list as memory": dict(memory=[1]), "number as code": dict(ok=False, code=7),
       "no reason": dict(outcome=None)}


@pytest.mark.parametrize("odd", [*ODD, "nothing", "a string", "no coroutine"])
async def test_what_a_backend_must_not_return_is_a_failure_and_not_a_task_without_end(odd):
    """Peer 7, Peer 10: a backend of others answers with the wrong types: the task fails within the second, with a sentence."""
    class Odd:
        async def run(self, call, on_progress):
            if odd in ODD:
                return SkillOutcome(**{"ok": True, "text": "Two."} | ODD[odd])
            return None if odd == "nothing" else "Two."

    class Backend(SkillBackend):
        def execute(self, call, context):
            return 7 if odd == "no coroutine" else super().execute(call, context)
    clock, catalog = VirtualClock(), ListedCatalog(*SPECS)
    session = Harness(Backend(catalog, Odd()), catalog, clock).open_session("a")
    talk = Conversation(session, clock)
    task = talk.ask("poi.find")
    await talk.run(6)
    kept = session.ledger.get(task)
    assert (kept.execution, kept.execution_reason, kept.delivery) == ("failed", "internal", "delivered") and len(talk.texts) == 1


PLANNED = {"nothing": None, "a plan alone": Plan("new", "poi.find"), "a text": "poi.find", "a number": 7, "texts": ("poi.find",),
           "no such operation": (Plan("undo", "poi.find"),), "no such capability": (Plan("new", "no.such"),), "no capability": (Plan("new"),),
           "arguments that are none": (Plan("new", "poi.find", 7),), "no JSON": (Plan("new", "poi.find", {"x": {1}}),),
           "two megabytes": (Plan("new", "poi.find", {"x": "y" * 2_000_000}),), "a fault": KeyError("x")}


@pytest.mark.parametrize("planned", PLANNED)
async def test_whatever_a_planner_answers_costs_a_sentence(planned):
    """Peer 10: a planner of others answers with the wrong things, or fails: the request has one end, in words, and the next one is served."""
    class Backend(SkillBackend):
        async def plan(self, asked):
            if isinstance(PLANNED[planned], Exception):
                raise PLANNED[planned]
            return PLANNED[planned]

    clock, catalog = VirtualClock(), ListedCatalog(*SPECS)
    session = Harness(Backend(catalog, Instant("Two of them.")), catalog, clock).open_session("a")
    talk = Conversation(session, clock)
    task = talk.ask(None, prose="find a charger")
    await talk.run(6)
    kept = session.ledger.get(task)
    assert (kept.execution, kept.delivery) == ("failed", "delivered") and len(talk.texts) == 1
    talk.ask("poi.find")
    await talk.run(3)
    assert talk.texts[1:] == ["Two of them."] and len(session.status()) == 2


@pytest.mark.parametrize("returned", [None, 7, ConnectionError()])
async def test_words_of_a_backend_that_are_no_text_leave_the_outcomes_own(returned):
    """Peer 10: `oralize` of a backend raises, or returns something else: the outcome's own words are told."""
    class Backend(SkillBackend):
        async def oralize(self, task, outcome):
            if isinstance(returned, Exception):
                raise returned
            return returned

    clock, catalog = VirtualClock(), ListedCatalog(*SPECS)
    session = Harness(Backend(catalog, Instant("Two of them.")), catalog, clock).open_session("a")
    talk = Conversation(session, clock)
    talk.ask("poi.find")
    await talk.run(3)
    assert talk.texts == ["Two of them."]


async def test_a_display_that_fails_stops_no_delivery():
    """Peer 10: on_screen raises on every item: the replies go on, and the items can still be asked for."""
    def broken(item):
        raise OSError
    world = scripted({"poi.find": Script("Two of them."), "navigation.go": Script("Four minutes.")}, specs=SPECS,
                     settings=HarnessSettings(max_declines=0))
    session = world.harness.open_session("b", on_screen=broken)
    talk = Conversation(session, world.clock)
    task = talk.ask("poi.find")
    await world.clock.advance(0.1)
    session.reply_declined(session.next_reply(Moment(talk._pos, False, False, False, 1)).id)
    talk.ask("navigation.go")
    await talk.run(3)
    assert talk.texts == ["Four minutes."] and [i.task_id for i in session.screen()] == [task]


@pytest.mark.parametrize("field, value", [
    ("key", "k" * 257), ("key", 7), ("prose", "w" * 4001), ("prose", None), ("capability", "c" * 129), ("capability", 5), ("lang", "e" * 17),
    ("lang", None), ("zone", "z" * 65), ("provenance", 1), ("arguments", {"x": "y" * 70_000}), ("arguments", {"x": float("nan")}),
    ("arguments", {"x": {1}}), ("arguments", []), ("repair", "undo")])
def test_a_request_no_journal_could_keep_is_refused_by_field_before_it_is_one(field, value):
    """Peer 10: one clear error that names the field, whatever a front end sends; nothing of it reaches the ledger."""
    with pytest.raises(BadRequest) as caught:
        request(1, **{"capability": "poi.find", field: value})
    assert caught.value.data["field"] == field and field in caught.value.message


def test_arguments_nested_beyond_measure_are_refused():
    """Peer 10: no RecursionError gets out."""
    deep = {}
    for _ in range(3000):
        deep = {"x": deep}
    with pytest.raises(BadRequest, match="arguments"):
        DelegateRequest("k", 1, 0, 0, "p", "poi.find", deep)


class DyingBackend:
    """A store's backend in memory that another process takes over when told so."""

    name, rest_s = "double", None

    def __init__(self):
        self.error = None

    def open(self):
        return []

    def write(self, ops):
        if self.error:
            raise self.error

    def records(self, journal):
        return []

    notes = records

    def close(self):
        pass


async def test_closing_ends_the_work_whatever_becomes_of_the_store():
    """Peer 10, Peer 17: the store is gone for good; closing the harness may say so, but nothing runs on, and every session is closed."""
    backend, clock = DyingBackend(), VirtualClock()
    store = DurableStore(backend)
    await store.open()
    world = scripted({"table.book": Script("Booked.", 50)}, specs=[BOOK], store=store, clock=clock)
    other = world.harness.open_session("other")
    for session in (world.session, other):
        accept(session, 1, "table.book")
    await world.session.settled()
    await clock.advance(0.1)
    backend.error = Gone("taken over")
    world.harness.store.note("session", "x", 1)
    for _ in range(200):
        if store.away:
            break
        await asyncio.sleep(0.01)
    closing = asyncio.ensure_future(world.harness.close())
    await clock.advance(3)
    await asyncio.wait({closing}, timeout=8)
    closing.exception()
    left = world.harness._shared.scheduler.snapshot().running
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    assert left == 0 and world.harness.sessions() == []
