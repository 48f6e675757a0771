"""A session taken up after its process died: cut between any two records it is whole again, in the right order, with every end told."""
import asyncio

import pytest
from harness_world import SPECS, state

from harness import (Aside, Contract, DelegateRequest, Evidence, Harness, HarnessSettings, JournalFault, MemoryStore, Plan, Record, SkillBackend,
                     SkillSpec, UnknownSession)
from harness.journal import MemoryJournal
from harness.testing import ListedCatalog, Script, ScriptedPlanner, World, scripted
from venus_edge.errors import BusyError
from venus_edge.metrics import METRICS
from venus_edge.testing import VirtualClock


class LoggedJournal(MemoryJournal):
    __slots__ = ("log",)

    def append(self, record):
        super().append(record)
        self.log.append(("append", record))

    def forget(self, task_id):
        super().forget(task_id)
        self.log.append(("forget", task_id))


class LoggedStore(MemoryStore):
    """Keeps what was asked of it, in order."""

    def __init__(self):
        super().__init__()
        self.log = []

    def session(self, session_id, tenant=""):
        if session_id not in self._journals:
            journal = LoggedJournal()
            journal.log = self.log
            self._journals[session_id] = (tenant, journal)
        return self._journals[session_id][1]

    def note(self, session_id, key, value):
        super().note(session_id, key, value)
        self.log.append(("note", key, value))

    def at(self, count):
        """A store as it was after the first `count` operations."""
        store = MemoryStore()
        for what, *rest in self.log[:count]:
            if what == "note":
                store.note("session", *rest)
            else:
                getattr(store.session("session"), what)(*rest)
        return store


TWO = (Plan("new", "navigation.go", {"destination": "casino"}), Plan("new", "vehicle.set_window", {"window": "all"}))
PLANS = {"both": TWO, "he said left": Aside(), "the port": (Plan("update", "navigation.go", {"destination": "port"}),), "stop": (Plan("cancel"),),
         "stop and go": (Plan("cancel", "poi.find"), Plan("new", "navigation.go", {"destination": "home"}))}
ORDER = SkillSpec("order.send", timeout_s=20, idempotent=False)
SCRIPTS = {"navigation.go": Script("Four minutes.", after_s=1.6, memory=lambda m: {**m, "to": "casino"}), "vehicle.set_window": Script("Closed."),
           "poi.find": Script("Two of them.", after_s=3.0), "order.send": Script("Ordered.", after_s=0.6)}
STEPS = (("poi.find", {"query": "a"}, "new", "find"), (None, {}, "new", "both"), ("order.send", {}, "new", "order"), (None, {}, "new", "the port"),
         ("poi.find", {"query": "b"}, "new", "find b"), (None, {}, "new", "stop and go"), (None, {}, "new", "he said left"),
         (None, {}, "status", "how far"), ("no.skill", {}, "new", "fly"), ("poi.find", {"query": "c"}, "new", "c"), (None, {}, "cancel", "stop"),
         (None, {}, "repeat", "again"))


def world_of(store=None, *, specs=(*SPECS, ORDER), scripts=SCRIPTS, answers=PLANS, after_s=0.0, **settings):
    clock = VirtualClock()
    catalog = ListedCatalog(*specs, contracts=[Contract("navigation.go", {}, {})])
    return scripted(scripts, catalog=catalog, clock=clock, planner=ScriptedPlanner(clock, answers, after_s), store=store,
                    settings=HarnessSettings(**settings))


async def story():
    """A conversation of every kind of request; the store with its log, and the run's world."""
    store = LoggedStore()
    world = world_of(store)
    for n, (capability, arguments, repair, prose) in enumerate(STEPS):
        world.talk.ask(capability, arguments, repair=repair, prose=prose, key=f"k{n}")
        await world.talk.run(1)
    await world.talk.run(40)
    return store, world


async def taken_up(store, **more) -> World:
    """Another process takes the session up from the store."""
    return await world_of(MemoryStore(), **more).restart(store)


@pytest.mark.parametrize("block", range(8))
async def test_cut_between_any_two_records_every_task_comes_to_its_ends(block):
    """The process dies after each operation of the story in turn. What was told is not told again; what was not is told, shown or dropped
    for a reason; work that must not run twice runs at most once; both requests of one sentence are there."""
    store, _ = await story()
    total = len(store.log)
    assert total > 90
    for count in range(1 + block * total // 8, 1 + (block + 1) * total // 8):
        cut = store.at(count)
        before = {r.task: r for r in cut.session("session").records()}
        order = next((r.task for r in cut.session("session").records() if r.changes.get("key") == "k2"), "")
        begun = {r.task for r in cut.session("session").records() if r.task == order and r.dst == "running"}
        again = await taken_up(cut)
        await again.talk.run(60)
        ledger = again.session.ledger
        where = f"after {count} of {total}: {store.log[count - 1][:2]}"
        assert set(before) <= {t.id for t in ledger.tasks()}, where
        assert all(t.closed for t in ledger.tasks()), (where, [(t.capability, t.execution, t.delivery) for t in ledger.tasks() if not t.closed])
        assert not [c for c in again.runner.calls if c.task_id in begun], f"{where}: ran twice"
        for task in ledger.tasks():
            told = [reply for _, reply in again.talk.spoken if task.text and task.text in reply.text and reply.kind == "result"]
            own = [r for r in told if r.task_id == task.id]
            assert len(own) <= 1 and not (own and task.superseded_by), where
            if task.id in begun and ledger.get(task.id).execution_reason == "restarted":
                assert any(task.text in reply.text for at, reply in again.talk.spoken if at <= 5.0), f"{where}: not told within 5 s"
        keys = {t.key for t in ledger.tasks()}
        assert ("k1#1" in keys) is ("k1" in keys) and ("k5#1" in keys) is ("k5" in keys), where
        assert set(cut.notes("session")) <= {"memory"}, where


@pytest.mark.parametrize("heard, told", [("To the port. Close", ["Closed."]), ("To the port. Closed.", [])])
async def test_a_reply_of_several_tasks_is_taken_apart_as_it_was_put_together(heard, told):
    """The next process knows in which order it told them, whatever order it takes work up in."""
    specs = [SkillSpec("navigation.go", priority="background"), SkillSpec("vehicle.set_window")]
    world = world_of(specs=specs, scripts={"navigation.go": Script("To the port.", after_s=1), "vehicle.set_window": Script("Closed.", after_s=0.5)})
    go, window = world.talk.ask("navigation.go", {"destination": "x"}), world.talk.ask("vehicle.set_window", {"window": "all"}, same_turn=True)
    world.talk.user_speaking = True
    await world.talk.run(2)
    world.talk.user_speaking = False
    await world.talk.run(1)
    reply = world.talk.speaking
    assert reply.text == "To the port. Closed."
    again = await taken_up(world.harness.store, specs=specs)
    again.session.reattach(reply.id, heard=heard, unheard=reply.text[len(heard):], completed=False)
    await again.talk.run(6)
    assert [t.replace("As I was saying, ", "") for t in again.talk.texts] == told
    assert state(again.talk, go)[1] == "delivered" and state(again.talk, window)[1] in ("delivered", "merged")


async def test_a_skill_that_was_removed_meanwhile_ends_its_tasks_with_a_sentence():
    """Queued, running, planned: none hangs, none is replanned as something else, each is told."""
    world = world_of(scripts={"poi.find": Script(after_s=50), "vehicle.set_window": Script(after_s=50)}, max_running=1)
    running, queued = world.talk.ask("poi.find", {"query": "x"}), world.talk.ask("vehicle.set_window", {"window": "all"}, prose="")
    await world.clock.advance(0.2)
    store = world.harness.store
    again = await taken_up(store, specs=[SkillSpec("other")])
    await again.talk.run(12)
    reasons = {again.session.ledger.get(t).execution_reason for t in (running, queued)}
    assert reasons == {"restarted", "unknown_capability"} and not again.runner.calls
    assert all(state(again.talk, t)[1] in ("delivered", "merged") for t in (running, queued))
    assert "can't do that" in " ".join(again.talk.texts) and "interrupted" in " ".join(again.talk.texts)


async def test_the_most_urgent_work_is_taken_up_first():
    """One place: safety, then what the newest turn asked, then what had begun, then the rest; background last."""
    specs = [SkillSpec("a.back", timeout_s=90, priority="background"), SkillSpec("b.old", timeout_s=90),
             SkillSpec("c.safe", timeout_s=90, priority="safety"), SkillSpec("d.new", timeout_s=90), SkillSpec("e.begun", timeout_s=90)]
    store = MemoryStore()
    world = scripted({s.id: Script(after_s=80) for s in specs}, specs=specs, store=store, settings=HarnessSettings(max_running=1, queue_ttl_s=500))
    for capability in ("e.begun", "a.back", "b.old", "c.safe", "d.new"):
        world.talk.ask(capability)
    await world.clock.advance(0.2)
    again = await World(world.harness, world.session, world.talk, world.runner, world.clock, []).restart(store)
    again.runner.scripts.update({s.id: Script(after_s=1) for s in specs})
    await again.talk.run(12)
    assert [c.skill_id for c in again.runner.calls] == ["c.safe", "d.new", "e.begun", "b.old", "a.back"]


async def test_work_that_had_begun_and_gets_no_place_any_more_ends_too():
    """It ran in the dead process, waits here for `queue_ttl_s`, and is told as not done; and one that is cancelled meanwhile is cancelled."""
    store = MemoryStore()
    world = scripted({"poi.find": Script(after_s=500)}, specs=SPECS, store=store, settings=HarnessSettings(max_running=3, queue_ttl_s=5))
    tasks = [world.talk.ask("poi.find", {"query": name}, same_turn=True) for name in "abc"]
    await world.clock.advance(0.2)
    world.session.settings = HarnessSettings(max_running=1, queue_ttl_s=5)
    again = await world.restart(store)
    ledger = again.session.ledger
    assert [ledger.get(t).execution for t in tasks] == ["running"] * 3 and len(again.session._lane.runs) == 3
    assert again.session.cancel(tasks[2]) and ledger.get(tasks[2]).execution == "cancelled"
    await again.talk.run(12)
    assert state(again.talk, tasks[1])[:2] == ("failed", "delivered") and ledger.get(tasks[1]).execution_reason == "queued_too_long"
    assert "didn't get round to" in " ".join(again.talk.texts) and state(again.talk, tasks[2])[1:] == ("dropped", "cancelled")


async def test_an_apology_that_was_due_is_told_after_the_restart():
    """Given up on for taking too long, and the process died before the run had ended."""
    store = LoggedStore()
    world = world_of(store, scripts={"poi.find": Script(after_s=500, ignores_cancel_s=0.5)})
    task = world.talk.ask("poi.find", {"query": "x"})
    while world.session.ledger.get(task).execution != "cancelling":
        await world.talk.run(1)
    again = await taken_up(store.at(len(store.log)))
    await again.talk.run(8)
    assert state(again.talk, task)[:2] == ("cancelled", "delivered") and "in time" in again.talk.texts[-1]


async def test_what_was_cancelled_while_it_was_spoken_is_not_taken_up_after_a_restart():
    """The cancellation is on record, not only in the process that died: the device reports a part, and the rest stays unsaid."""
    world = world_of(scripts={"poi.find": Script("There are two of them. One is free.")})
    task = world.talk.ask("poi.find", {"query": "x"})
    await world.talk.run(1)
    reply = world.talk.speaking
    assert world.session.cancel(task) and world.session.ledger.get(task).delivery == "delivering"
    again = await taken_up(world.harness.store)
    again.session.reattach(reply.id, heard="There are two of them.", unheard="One is free.", completed=False)
    await again.talk.run(5)
    assert state(again.talk, task)[1:] == ("dropped", "cancelled") and again.talk.texts == []


async def test_a_correction_in_prose_is_still_one_after_a_restart():
    """It was not planned yet: planned now, it takes the place of what it corrects instead of being done besides."""
    port = {"the port": (Plan("new", "navigation.go", {"destination": "port"}),)}
    world = world_of(scripts={"navigation.go": Script("There.", after_s=4)}, answers=port, after_s=2)
    old = world.talk.ask("navigation.go", {"destination": "casino"})
    new = world.talk.ask(None, prose="the port", repair="update")
    await world.clock.advance(0.2)
    again = await taken_up(world.harness.store, scripts={"navigation.go": Script("There.", after_s=4)}, answers=port, after_s=2)
    await again.talk.run(12)
    ledger = again.session.ledger
    assert ledger.get(old).superseded_by == new and ledger.get(new).arguments == {"destination": "port"} and again.talk.texts.count("There.") == 1


async def test_what_was_told_can_be_repeated_after_a_restart():
    """And what was cancelled can't."""
    world = world_of(scripts={"poi.find": Script("Two of them.")})
    world.talk.ask("poi.find", {"query": "x"})
    await world.talk.run(3)
    again = await taken_up(world.harness.store)
    again.talk.turn = 5
    again.talk.ask(None, repair="repeat", prose="again", key="again")
    await again.talk.run(3)
    assert again.talk.texts == ["Two of them."]


async def test_records_of_another_kind_begin_the_session_anew_and_are_gone():
    """A field that this version doesn't know, a missing one, contradicting records: the next request works, and its records can be read."""
    for broken in ({"field_of_the_future": 1}, {"id": "x"}, None):
        store = MemoryStore()
        world = world_of(store)
        world.talk.ask("poi.find", {"query": "x"})
        await world.clock.advance(0.1)
        records = store.session("session").records()
        torn = MemoryStore()
        if broken is None:
            torn.session("session").append(Record(7, 0.0, "task-z", "execution", "queued", "running", "", {}))
        else:
            changes = {**records[0].changes, **broken} if "id" not in broken else broken
            torn.session("session").append(Record(1, 0.0, records[0].task, "accept", "", "queued", "", changes))
        unreadable = METRICS.snapshot().get("venus_harness_sessions_unreadable_total", 0)
        again = await taken_up(torn)
        assert METRICS.snapshot()["venus_harness_sessions_unreadable_total"] == unreadable + 1 and again.session.status() == ()
        task = again.talk.ask("poi.find", {"query": "x"}, key="new")
        await again.talk.run(12)
        assert state(again.talk, task)[:2] == ("completed", "delivered")
        third = await again.restart(torn)
        assert [t.id for t in third.session.status()] == [task]


async def test_a_session_whose_records_cannot_be_read_now_can_be_taken_up_later():
    """The store fails once: the session stays left behind, and nothing is begun over its records."""
    class Failing(MemoryStore):
        fails = 1

        def notes(self, session_id):
            self.fails -= 1
            if self.fails >= 0:
                raise JournalFault("journal double: not readable")
            return super().notes(session_id)
    store = Failing()
    world = world_of(store, scripts={"poi.find": Script("Two of them.")})
    task = world.talk.ask("poi.find", {"query": "x"})
    await world.clock.advance(0.2)
    await world.session.leave()
    harness = Harness(world.harness.backend, world.harness.backend.catalog, world.clock, store=store)
    await harness.start()
    with pytest.raises(JournalFault):
        harness.open_session("session")
    assert harness.sessions() == []
    assert [t.id for t in harness.open_session("session").status()] == [task]
    assert harness.forget_left() == 0 and store.sessions() == [("session", "")]


# -- leaving and closing


async def test_a_session_that_was_let_go_is_taken_up_by_the_same_process_too():
    """Not begun anew over its own records."""
    world = world_of(scripts={"poi.find": Script("Two of them.", after_s=2)})
    task = world.talk.ask("poi.find", {"query": "x"})
    await world.clock.advance(0.5)
    await world.harness.abandon("session")
    with pytest.raises(UnknownSession):
        world.harness.session("session")
    session = world.harness.open_session("session")
    assert [t.id for t in session.status()] == [task]
    await world.clock.advance(3)
    assert session.ledger.get(task).execution == "completed" and len(world.runner.calls) == 2
    await world.harness.close()
    assert world.harness.store.sessions() == []


async def test_leaving_records_what_ended_by_itself_and_nothing_that_was_only_stopped():
    """A run that finishes although it was stopped has had its effect: told by the next process, not done again."""
    specs = [SkillSpec("order.send", timeout_s=20, idempotent=False), SkillSpec("poi.find", timeout_s=90)]
    scripts = {"order.send": Script("Ordered.", after_s=5, ignores_cancel_s=0.3), "poi.find": Script("Two.", after_s=1)}
    world = world_of(specs=specs, scripts=scripts)
    seen = []
    world.session.observer = seen.append
    order, find = world.talk.ask("order.send"), world.talk.ask("poi.find")
    await world.clock.advance(0.2)
    seen.clear()
    leaving = asyncio.ensure_future(world.session.leave())
    await world.clock.advance(1)
    await leaving
    assert [(t.task.id, str(t.dst)) for t in seen] == [(order, "completed"), (order, "pending")]
    again = await taken_up(world.harness.store, specs=specs, scripts=scripts)
    await again.talk.run(8)
    told = " ".join(again.talk.texts)
    assert [c.skill_id for c in again.runner.calls] == ["poi.find"] and (told.count("Ordered."), told.count("Two.")) == (1, 1)
    assert state(again.talk, find)[1] == "delivered"


async def test_a_reply_that_was_chosen_but_had_not_left_waits_for_the_next_process():
    """Its admission was not in the store yet when this one let go: it is told, not taken for heard."""
    class Slow(MemoryJournal):
        def durable(self, n=None):
            return False
    store = MemoryStore()
    store._journals["session"] = ("", Slow())
    world = world_of(store, scripts={"poi.find": Script("Two of them.")})
    task = world.talk.ask("poi.find", {"query": "x"})
    await world.talk.run(1)
    assert world.session.holding and world.session.ledger.get(task).delivery == "delivering"
    await world.session.leave()
    kept = MemoryStore()
    for record in store.session("session").records():
        kept.session("session").append(record)
    again = await taken_up(kept)
    await again.talk.run(3)
    assert again.talk.texts == ["Two of them."]


async def test_closing_twice_at_once_is_one_end_and_its_name_is_free_only_then():
    """The second caller waits for the same end; one that is called off leaves it going; a session of that name can't be begun in between,
    so that its records are never dropped with the old one's."""
    world = world_of(scripts={"poi.find": Script(after_s=50, ignores_cancel_s=30)})
    world.talk.ask("poi.find", {"query": "x"})
    await world.clock.advance(0.2)
    first, second = (asyncio.ensure_future(world.harness.close("session")) for _ in range(2))
    await world.clock.advance(0.2)
    first.cancel()
    await asyncio.sleep(0)
    with pytest.raises(BusyError, match="open already"):
        world.harness.open_session("session")
    assert world.harness.sessions() == ["session"] and not second.done()
    await world.clock.advance(2)
    await second
    session = world.harness.open_session("session")
    session.accept(DelegateRequest("k", 1, 0, 0, "x", "navigation.go", {"destination": "x"}), Evidence.freeze(0, 0))
    await world.clock.advance(1)
    assert world.harness.store.sessions() == [("session", "")] and world.harness.session("session") is session


async def test_a_left_session_takes_no_more_part():
    """No reply, no report, no request: what another process may be doing now is not disturbed."""
    world = world_of(scripts={"poi.find": Script("Two of them."), "navigation.go": Script("There.")})
    world.talk.ask("poi.find", {"query": "x"})
    await world.talk.run(0.3)
    reply = world.talk.speaking
    world.talk.ask("navigation.go", {"destination": "x"})
    await world.clock.advance(0.1)
    await world.session.leave()
    before = list(world.harness.store.session("session").records())
    world.session.reply_finished(reply.id, heard=reply.text, unheard="", completed=True, confirmed=True)
    await world.clock.advance(3)
    world.talk.speaking = None
    await world.talk.run(5)
    assert world.harness.store.session("session").records() == before and len(world.talk.texts) == 1


async def test_one_sessions_fault_does_not_keep_the_others_from_ending():
    """The harness closes all of them, and then its store."""
    class Broken(MemoryStore):
        closed = False

        def drop(self, session_id):
            if session_id == "b":
                raise RuntimeError("no")
            super().drop(session_id)

        async def close(self):
            self.closed = True
    store = Broken()
    harness = Harness(SkillBackend(ListedCatalog(*SPECS), None), ListedCatalog(*SPECS), VirtualClock(), store=store)
    for name in "abc":
        harness.open_session(name).accept(DelegateRequest("k", 1, 0, 0, "", "no.skill"), Evidence.freeze(0, 0))
    await harness.close()
    assert harness.sessions() == [] and [name for name, _ in store.sessions()] == ["b"] and store.closed
