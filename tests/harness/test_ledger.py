"""The task ledger's two state machines: whatever happens in whatever order, their promises hold."""
import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from ledger_walk import TEXT, TTL_S, Walk

from harness.errors import IllegalTransition
from harness.ledger import DELIVERY_MOVES, EXECUTION_MOVES, GUARDS, MOST_DECLINES, TELLS, Ledger
from harness.task import DELIVERY_END, EXECUTION_END, Delivery, Execution
from venus_edge.testing import VirtualClock

E, D = Execution, Delivery


class LedgerMachine(RuleBasedStateMachine):
    """Any sequence of the walk's moves; hypothesis looks for the shortest that breaks a promise."""

    def __init__(self):
        super().__init__()
        self.walk = Walk()

    @rule(data=st.data(), move=st.sampled_from(Walk.MOVES))
    def any_move(self, data, move):
        move(self.walk, lambda options: data.draw(st.sampled_from(options)))

    @invariant()
    def promises_hold(self):
        self.walk.check()

    def teardown(self):
        self.walk.finish()


LedgerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None,
                                           suppress_health_check=[HealthCheck.too_slow])
TestLedgerMachine = LedgerMachine.TestCase


def walk(seed, steps=60, guards=tuple(GUARDS)):
    choose = random.Random(seed).choice
    one = Walk(guards)
    for _ in range(steps):
        choose(Walk.MOVES)(one, choose)
        one.check()
    one.finish()
    return one.seen


def test_random_walks_reach_every_state_and_break_nothing():
    """150 seeded walks keep every promise, and each state of both machines was entered many times."""
    seen = sum((walk(seed) for seed in range(150)), Counter())
    assert all(seen[state] >= 10 for state in (*E, *D) if state is not D.NONE), seen


@pytest.mark.parametrize("name", GUARDS)
def test_random_walks_find_a_guard_that_is_switched_off(name):
    """The walks are not blind: without any one of the guards they break a promise."""
    with pytest.raises((AssertionError, IllegalTransition)):
        for seed in range(300):
            walk(seed, guards=set(GUARDS) - {name})


def completed(clock, **options):
    ledger = Ledger(clock, **options)
    task = ledger.accept(key="k", capability="x.y", arguments={}, ttl_s=TTL_S)
    ledger.execute(task.id, E.RUNNING)
    ledger.execute(task.id, E.COMPLETED)
    return ledger, task.id


def violate(name, ledger, task_id, clock):
    """One attempt to break the promise that the guard keeps."""
    if name == "kind":
        other = ledger.accept(key="other", capability="x.y", arguments={})
        ledger.execute(other.id, E.CANCELLED)
        return ledger.deliver(other.id, D.PENDING, kind="result", text=TEXT)
    if name == "rest":
        return ledger.deliver(task_id, D.PENDING, kind="result", text="")
    if name == "superseded":
        ledger.deliver(task_id, D.PENDING, kind="result", text=TEXT)
        ledger.deliver(task_id, D.DELIVERING)
        ledger.accept(key="new", capability="x.y", arguments={}, supersedes=task_id)
        return ledger.deliver(task_id, D.PENDING)
    ledger.deliver(task_id, D.PENDING, kind="result", text=TEXT)
    if name == "fresh":
        clock._now += TTL_S + 1
        return ledger.deliver(task_id, D.DELIVERING)
    for _ in range(MOST_DECLINES + 1):
        ledger.deliver(task_id, D.DELIVERING)
        if name == "resumed":
            ledger.deliver(task_id, D.INTERRUPTED, rest=TEXT)
        ledger.deliver(task_id, D.PENDING)


@pytest.mark.parametrize("name", GUARDS)
def test_each_guard_stops_what_nothing_else_stops(name):
    """A guard that is switched off lets its violation through, so the guard is what keeps the promise."""
    clock = VirtualClock()
    with pytest.raises(IllegalTransition):
        violate(name, *completed(clock), clock)
    clock = VirtualClock()
    violate(name, *completed(clock, guards=set(GUARDS) - {name}), clock)


def test_the_tables_name_every_state_and_ends_are_ends():
    """Both tables are total, terminal states lead nowhere, and every terminal state can be reached."""
    assert set(EXECUTION_MOVES) == set(E) and set(DELIVERY_MOVES) == set(D)
    assert all(not EXECUTION_MOVES[end] for end in EXECUTION_END) and all(not DELIVERY_MOVES[end] for end in DELIVERY_END)
    assert EXECUTION_END <= frozenset().union(*EXECUTION_MOVES.values())
    assert DELIVERY_END <= frozenset().union(*DELIVERY_MOVES.values())
    assert E.SUPERSEDED not in TELLS


def test_a_late_return_cannot_revive():
    """Once superseded, cancelled or expired, a task can't complete and can't be told."""
    clock = VirtualClock()
    ledger = Ledger(clock)
    old = ledger.accept(key="a", capability="x.y", arguments={})
    ledger.execute(old.id, E.RUNNING)
    new = ledger.accept(key="b", capability="x.y", arguments={}, supersedes=old.id)
    assert (new.version, new.lineage) == (2, old.id)
    old = ledger.get(old.id)
    assert (old.execution, old.delivery, old.delivery_reason) == (E.SUPERSEDED, D.DROPPED, "superseded")
    with pytest.raises(IllegalTransition):
        ledger.execute(old.id, E.COMPLETED)
    with pytest.raises(IllegalTransition):
        ledger.deliver(old.id, D.PENDING, kind="result", text="late")


def test_what_was_heard_cannot_be_unheard():
    """An interruption can't leave more to say than there was."""
    ledger, task_id = completed(VirtualClock())
    ledger.deliver(task_id, D.PENDING, kind="result", text="hello")
    ledger.deliver(task_id, D.DELIVERING)
    with pytest.raises(IllegalTransition, match="grew"):
        ledger.deliver(task_id, D.INTERRUPTED, rest="hello again")
    assert ledger.deliver(task_id, D.INTERRUPTED, rest="lo").rest == "lo"


def test_observers_see_every_transition_and_cannot_break_one():
    """An observer's exception is swallowed; what it is told has ids and states, no words."""
    told = []

    def observer(transition):
        told.append((transition.event, transition.fields()))
        raise RuntimeError

    ledger, task_id = completed(VirtualClock(), observer=observer)
    ledger.deliver(task_id, D.PENDING, kind="result", text="secret words")
    assert [(event, f["from"], f["to"]) for event, f in told] == [
        ("task.execution", "", "queued"), ("task.execution", "queued", "running"),
        ("task.execution", "running", "completed"), ("task.delivery", "none", "pending")]
    assert set(told[0][1]) == {"task", "version", "capability", "from", "to", "reason"}
    assert "secret" not in str(told)


def test_counters_count_what_happened():
    """Counters give every state entered, duplicates, late returns, and what is open now."""
    ledger, task_id = completed(VirtualClock())
    ledger.accept(key="k", capability="x.y", arguments={})
    ledger.late_return(task_id)
    ledger.deliver(task_id, D.PENDING, kind="result", text="hello")
    assert ledger.counters() == {"accepted": 1, "duplicate_keys": 1, "late_returns": 1, "execution.running": 1,
                                 "execution.completed": 1, "delivery.pending": 1, "live": 0, "untold": 1}
