"""The journal: the ledger can be rebuilt from it, a contradiction is refused, and it forgets with the ledger."""
import dataclasses

import pytest

from harness.errors import CorruptJournal
from harness.journal import MemoryJournal, replay
from harness.ledger import Ledger
from harness.task import Delivery, Execution
from venus_edge.testing import VirtualClock


def some_history(ledger):
    first = ledger.accept(key="a", capability="poi.find", arguments={"query": "pharmacy"}, turn=1)
    ledger.execute(first.id, Execution.RUNNING)
    ledger.execute(first.id, Execution.COMPLETED, "done")
    ledger.deliver(first.id, Delivery.PENDING, kind="result", text="Two of them. One is near.")
    ledger.deliver(first.id, Delivery.DELIVERING)
    ledger.deliver(first.id, Delivery.INTERRUPTED, rest="One is near.")
    second = ledger.accept(key="b", capability="poi.find", arguments={"query": "bakery"}, turn=2, supersedes=first.id)
    ledger.execute(second.id, Execution.RUNNING)
    return first.id, second.id


def test_a_ledger_restored_from_its_journal_goes_on():
    """The restored ledger holds equal tasks, keeps keys and open work, and writes on without clashing."""
    clock = VirtualClock()
    ledger = Ledger(clock)
    first, second = some_history(ledger)
    again = Ledger.restore(ledger.journal, clock)
    assert again.tasks() == ledger.tasks()
    assert again.seen("a") == first and [t.id for t in again.live()] == [second]
    again.execute(second, Execution.FAILED, "internal")
    numbers = [record.n for record in again.journal.records()]
    assert numbers == sorted(set(numbers))
    assert replay(again.journal)[second].execution is Execution.FAILED


def test_a_record_that_does_not_follow_is_refused():
    """A gap, a repeated acceptance or a transition out of nowhere is CorruptJournal, naming the record."""
    ledger = Ledger(VirtualClock())
    some_history(ledger)
    rows = ledger.journal.records()
    for broken in (rows[1:], [r for r in rows if r.n != 5], rows + [dataclasses.replace(rows[0], n=99)]):
        journal = MemoryJournal()
        for row in broken:
            journal.append(row)
        with pytest.raises(CorruptJournal, match="record "):
            replay(journal)


def test_the_journal_forgets_with_the_ledger():
    """A thousand closed tasks leave no more records than the history's tasks made."""
    ledger = Ledger(VirtualClock(), history=10)
    for n in range(1000):
        task = ledger.accept(key=f"k{n}", capability="x.y", arguments={})
        ledger.execute(task.id, Execution.CANCELLED, "cancelled")
        ledger.deliver(task.id, Delivery.DROPPED, "cancelled")
    assert len(ledger.tasks()) == 10 and len(ledger.journal) == 30
    assert ledger.counters()["accepted"] == 1000
