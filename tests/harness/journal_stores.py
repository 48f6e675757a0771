"""What the journal's tests share: the three stores, a real Redis server, and records as a ledger makes them."""
import itertools

import pytest

from harness.journal import MemoryStore, Record
from harness.journal.redis import RedisStore
from harness.journal.sqlite import SqliteStore
from harness.journal.testing import RedisServer
from harness.ledger import Ledger
from harness.task import Delivery, Execution
from venus_edge.testing import VirtualClock

NAMES = itertools.count()


@pytest.fixture(scope="module")
def redis_server():
    with RedisServer() as server:
        yield server


class Place:
    """Where one test's store lies; `store()` is a new object over the same place, as after a restart."""

    def __init__(self, kind, path, url):
        self.kind, self.path, self.url = kind, path, url
        self.name = f"t{next(NAMES)}"
        self._memory = MemoryStore()

    def store(self, **limits):
        return {"memory": lambda: self._memory, "sqlite": lambda: SqliteStore(self.path, **limits),
                "redis": lambda: RedisStore(self.url, self.name, **limits)}[self.kind]()


@pytest.fixture(params=["memory", "sqlite", "redis"])
def place(request, tmp_path):
    url = request.getfixturevalue("redis_server").url if request.param == "redis" else ""
    return Place(request.param, tmp_path / "journal.sqlite", url)


@pytest.fixture(params=["sqlite", "redis"])
def durable_place(request, tmp_path):
    url = request.getfixturevalue("redis_server").url if request.param == "redis" else ""
    return Place(request.param, tmp_path / "journal.sqlite", url)


def record(n, task="task-1", machine="execution", **changes):
    return Record(n, n / 8, task, machine, "", "queued", "why", changes)


def a_conversation(ledger):
    """Transitions of every kind; returns the ids of its tasks."""
    first = ledger.accept(key="a", capability="poi.find", arguments={"query": "药店", "near": [43.73, 7.42]}, turn=1, prose="附近的药店")
    ledger.execute(first.id, Execution.RUNNING)
    ledger.execute(first.id, Execution.COMPLETED, "done")
    ledger.deliver(first.id, Delivery.PENDING, kind="result", text="Two of them. One is near.")
    ledger.deliver(first.id, Delivery.DELIVERING)
    ledger.deliver(first.id, Delivery.INTERRUPTED, rest="One is near.")
    second = ledger.accept(key="b", capability="poi.find", arguments={"query": "bakery"}, turn=2, supersedes=first.id)
    ledger.execute(second.id, Execution.RUNNING)
    return [first.id, second.id]


def a_ledger(journal, **options):
    return Ledger(VirtualClock(1000.0), journal=journal, **options)
