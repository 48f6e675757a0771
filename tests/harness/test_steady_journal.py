"""A store that refuses: a request is refused whole, whatever was accepted goes on to its end, and the records stay in order."""
import asyncio

import pytest
from faulty_store import FaultyStore
from harness_world import SPECS
from journal_stores import record

from harness import Aside, Contract, DelegateRequest, HarnessSettings, Plan, SkillSpec
from harness.errors import BadRequest, Closed, JournalFault
from harness.journal import replay
from harness.journal.steady import SteadyJournal
from harness.task import EXECUTION_END
from harness.testing import ListedCatalog, Script, ScriptedPlanner, scripted
from test_session_evidence import evidence
from venus_edge.testing import VirtualClock


async def test_only_a_new_task_is_refused_and_what_is_held_goes_first():
    """Transitions and notes wait here in order; nothing counts as durable until the store has them; then a new task may come."""
    store = FaultyStore()
    journal = SteadyJournal(store, "s")
    journal.append(record(1, machine="accept"))
    assert journal.durable() and journal.last == 1
    store.dead = True
    with pytest.raises(JournalFault, match="refused"):
        journal.append(record(9, task="other", machine="accept"))
    assert journal.last == 1
    for n in (2, 3):
        journal.append(record(n))
    held = journal.last
    journal.note("memory", {"a": 1}), journal.note("memory", {"a": 2})
    assert not journal.durable() and not journal.durable(held) and [r.n for r in journal.records()] == [1, 2, 3]
    with pytest.raises(JournalFault, match="refused"):
        await journal.flushed()
    with pytest.raises(JournalFault):
        journal.append(record(9, task="other", machine="accept"))
    store.dead = False
    assert not journal.durable(held) or journal.catch_up()
    await journal.flushed(held)
    assert journal.durable(held) and store.notes("s") == {"memory": {"a": 2}} and [r.n for r in store.session("s").records()] == [1, 2, 3]
    journal.append(record(4, task="other", machine="accept"))
    assert [r.n for r in store.session("s").records()] == [1, 2, 3, 4]


async def test_what_no_store_can_keep_is_refused_at_once_and_blocks_nothing():
    """Also while the store is away: it would be at the head of the queue for ever."""
    store = FaultyStore()
    journal = SteadyJournal(store, "s")
    journal.append(record(1, machine="accept"))
    store.dead = True
    with pytest.raises(BadRequest):
        journal.append(record(2, x=object()))
    with pytest.raises(BadRequest):
        journal.note("memory", object())
    store.dead = False
    assert journal.catch_up() and journal.durable()


async def test_what_is_forgotten_or_dropped_is_not_written_later():
    """A task that left the history while the store was away, and a session that was closed."""
    store = FaultyStore()
    journal = SteadyJournal(store, "s")
    journal.append(record(1, machine="accept"))
    store.dead = True
    journal.append(record(2)), journal.append(record(3, task="task-2", machine="execution"))
    journal.forget("task-1")
    store.dead = False
    assert journal.catch_up() and [r.task for r in store.session("s").records()] == ["task-2"]
    store.dead = True
    journal.append(record(4))
    journal.drop()
    store.dead = False
    assert store.sessions() == []
    with pytest.raises(Closed):
        journal.append(record(5))


# -- whole sessions

TWO = (Plan("new", "navigation.go", {"destination": "casino"}), Plan("new", "vehicle.set_window", {"window": "all"}))
PLANS = {"both": TWO, "he said left": Aside(), "the port": (Plan("update", "navigation.go", {"destination": "port"}),)}
SCRIPTS = {"navigation.go": Script("Four minutes.", after_s=1.6, memory=lambda m: {**m, "to": "casino"}), "vehicle.set_window": Script("Closed."),
           "poi.find": [Script("Two of them.", after_s=1.0), Script("No.", after_s=0.2, ok=False, code="unavailable")],
           "order.send": Script("Ordered.", after_s=0.4)}
STEPS = (("poi.find", {"query": "a"}, "new", "find"), (None, {}, "new", "both"), ("navigation.go", {"destination": "x"}, "update", "no, x"),
         (None, {}, "new", "he said left"), ("order.send", {}, "new", "order"), (None, {}, "new", "the port"), (None, {}, "cancel", "stop that"),
         ("no.skill", {}, "new", "fly"), (None, {}, "status", "how far"), (None, {}, "repeat", "again"))


async def play(store, during=lambda step: None):
    """Ten requests of every kind, one second apart; (world, evidence given, requests that were refused, log of faults)."""
    clock = VirtualClock()
    catalog = ListedCatalog(*SPECS, SkillSpec("order.send", timeout_s=20, idempotent=False), contracts=[Contract("navigation.go", {}, {})])
    world = scripted(SCRIPTS, catalog=catalog, clock=clock, planner=ScriptedPlanner(clock, PLANS), store=store,
                     settings=HarnessSettings(max_running=2))
    faults = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
    given, refused = [], 0
    for n, (capability, arguments, repair, prose) in enumerate(STEPS):
        during(n)
        world.talk.turn += 1
        given.append(evidence())
        try:
            world.session.accept(DelegateRequest(f"k{n}", world.talk.turn, 0, 0, prose, capability, arguments, repair), given[-1])
        except JournalFault:
            refused += 1
            world.session.regret("en")
        await world.talk.run(1)
    during(len(STEPS))
    await world.talk.run(30)
    return world, given, refused, faults


async def check(world, given, faults):
    """Every task has its two ends, evidence was let go of once for each, and the records tell what the ledger tells."""
    ledger, store = world.session.ledger, world.harness.store
    assert not faults, faults
    assert all(t.closed for t in ledger.tasks()), [(t.capability, t.execution, t.delivery) for t in ledger.tasks() if not t.closed]
    assert all(e.holder.count == 0 for e in given) and not world.session._evidence and not world.session._lane.runs
    assert list(replay(store.session("session")).values()) == ledger.tasks()
    assert set(store.notes("session")) <= {"memory"}
    keys = {t.key for t in ledger.tasks()}
    assert ("k1#1" in keys) is ("k1" in keys), "half of a sentence was lost"
    for task in ledger.tasks():
        assert sum(task.id == reply.task_id and task.text == reply.text for _, reply in world.talk.spoken) <= 1


async def test_without_faults_the_scenario_reaches_every_kind_of_step():
    """So that the sweep below is worth something: enough operations, every machine, every end but one."""
    store = FaultyStore()
    seen = []
    store.refuse = lambda number, machine: seen.append(machine)
    world, given, refused, faults = await play(store)
    await check(world, given, faults)
    assert refused == 0 and set(seen) == {"accept", "execution", "delivery", "link", "note"} and len(seen) >= 72
    ends = {t.execution for t in world.session.status()}
    assert ends == EXECUTION_END - {"expired"} and {"aside", "superseded"} <= {t.delivery_reason for t in world.session.status()}


@pytest.mark.parametrize("block", range(0, 72, 8))
@pytest.mark.parametrize("lasts", [1, 6])
async def test_a_fault_at_any_operation_costs_at_most_the_request_itself(block, lasts):
    """One refusal, or six in a row, at each operation in turn: the request is refused whole or nothing is lost, and the session lives."""
    for first in range(block, block + 8):
        store = FaultyStore(lambda number, machine: first <= number < first + lasts)
        world, given, refused, faults = await play(store)
        await check(world, given, faults)
        assert store.refused and refused <= lasts
        told = " ".join(world.talk.texts)
        assert refused or "Ordered." in told or "can't reach" in told  # it is not begun where its record may be lost


@pytest.mark.parametrize("dies", range(len(STEPS)))
async def test_a_store_that_is_gone_for_good_leaves_a_session_that_can_be_talked_to(dies):
    """Nothing more is accepted or admitted, and the user hears so; what runs ends, and closing ends everything."""
    store = FaultyStore()
    world, given, refused, faults = await play(store, lambda step: setattr(store, "dead", step >= dies))
    assert refused == len(STEPS) - dies and not faults
    assert all(t.execution in EXECUTION_END for t in world.session.status())
    told = [reply for _, reply in world.talk.spoken if reply.task_id == ""]
    assert 1 <= len(told) <= refused and all("can't take that" in reply.text for reply in told)
    closing = asyncio.ensure_future(world.harness.close())
    await world.clock.advance(3)
    await closing
    assert all(t.closed for t in world.session.status()) and all(e.holder.count == 0 for e in given) and world.harness.sessions() == []


async def test_letting_go_waits_for_what_the_store_has_not_taken():
    """A cancellation during an outage is on record when the next process begins, unless the store stays away."""
    for comes_back in (True, False):
        store = FaultyStore()
        world = scripted({"poi.find": Script("Two.", after_s=0.5)}, specs=SPECS, store=store)
        task = world.talk.ask("poi.find", {"query": "x"})
        await world.clock.advance(1)
        store.dead = True
        assert world.session.cancel(task)
        leaving = asyncio.ensure_future(world.session.leave())
        await world.clock.advance(3)
        assert not leaving.done()
        store.dead = not comes_back
        await world.clock.advance(1 if comes_back else 10)
        assert leaving.done() and store.session("session").records()[-1].dst == ("dropped" if comes_back else "pending")


async def test_a_result_is_not_admitted_before_its_record_is_kept():
    """The store comes back: then it is told, once."""
    store = FaultyStore()
    world = scripted({"navigation.go": Script("Four minutes.", after_s=0.5)}, specs=SPECS, store=store)
    task = world.talk.ask("navigation.go", {"destination": "casino"})
    await world.clock.advance(0.1)
    store.dead = True
    await world.talk.run(5)
    assert world.session.ledger.get(task).execution == "completed" and world.talk.texts == []
    store.dead = False
    await world.talk.run(5)
    assert world.talk.texts == ["Four minutes."] and world.session.ledger.get(task).delivery == "delivered"


async def test_work_that_must_not_run_twice_waits_for_its_record_or_fails():
    """Where the store can't say that it has it, it is not begun: the user is told, and it is retried first."""
    store = FaultyStore()
    spec = SkillSpec("order.send", timeout_s=20, idempotent=False)
    world = scripted({"order.send": Script("Ordered.")}, specs=[spec], store=store)
    task = world.talk.ask("order.send")
    store.dead = True
    await world.talk.run(3)
    assert not world.runner.calls and world.session.ledger.get(task).execution_reason == "unavailable"
    store.dead = False
    await world.talk.run(4)
    assert not world.runner.calls and "can't reach" in world.talk.texts[-1]


async def test_a_yes_that_could_not_be_taken_leaves_the_question_open():
    """"Shall I stop?" "Yes" while the store is away: the next yes still stops it."""
    store = FaultyStore()
    world = scripted({"poi.find": Script("Two.", after_s=80)}, specs=SPECS, store=store)
    task = world.talk.ask("poi.find", {"query": "x"})
    await world.talk.run(36)
    assert "Shall I stop" in world.talk.texts[-1] and world.session.question_open
    store.dead = True
    with pytest.raises(JournalFault):
        world.talk.ask(None, prose="yes please", same_turn=True)
    assert world.session.ledger.get(task).execution == "running" and world.session.question_open
    store.dead = False
    world.talk.ask(None, prose="yes please", same_turn=True)
    await world.talk.run(1)
    assert world.session.ledger.get(task).execution == "cancelled"
