"""What the tests of weak points share: requests, a backend that keeps what it was given, and measuring without a wall clock."""
import gc
import time
import tracemalloc
from contextlib import contextmanager
from dataclasses import dataclass

from harness import DelegateRequest, Evidence, Moment, SkillBackend, SkillOutcome, SkillSpec
from harness.capture.reserved import DEFAULT
from harness.deliver.gate import RATE
from harness.testing import ListedCatalog

FIND = SkillSpec("poi.find", timeout_s=60.0, ack_after_s=999.0, first_progress_s=999.0)
GO = SkillSpec("navigation.go", timeout_s=60.0, ack_after_s=999.0, first_progress_s=999.0)
BOOK = SkillSpec("table.book", timeout_s=60.0, ack_after_s=999.0, first_progress_s=999.0, idempotent=False)
SPECS = (FIND, GO, BOOK)
"""None of them is acknowledged or tells its progress: what is spoken is the outcome alone."""


def request(n=1, capability="poi.find", prose="find a charger", **more):
    more = {"turn": n, "opened_pos": 0, "opened_seq": 0, "arguments": {} if capability is None else {"query": "charger"}} | more
    return DelegateRequest(key=more.pop("key", f"k{n}"), prose=prose, capability=capability, **more)


def accept(session, n=1, capability="poi.find", evidence=None, **more):
    """A request enters a session directly; its task id."""
    return session.accept(request(n, capability, **more), evidence or Evidence.freeze(0, 0))


def moment(clock, turn=0, **flags):
    base = dict(user_speaking=False, turn_open=False, assistant_speaking=False)
    return Moment(round(clock.now() * RATE), **{**base, **flags}, turn=turn)


def spelled(text):
    """The control tokens that a text spells."""
    return [name for name in DEFAULT.names if name.lower() in str(text).lower()]


@dataclass
class Instant:
    """Runs every skill at once."""

    text: str = "Done."

    async def run(self, call, on_progress):
        return SkillOutcome(True, text=self.text)


class Keeping(SkillBackend):
    """Keeps what a worker and a planner are given; plans nothing but what `plans` holds."""

    def __init__(self, catalog: ListedCatalog, runner, planned=None):
        super().__init__(catalog, runner)
        self.planned, self.contexts, self.asked, self.calls = planned, [], [], []

    async def plan(self, asked):
        self.asked.append(asked)
        return self.planned or await super().plan(asked)

    async def execute(self, call, context):
        self.calls.append(call)
        self.contexts.append(context)
        return await super().execute(call, context)


@contextmanager
def traced():
    """tracemalloc around a block: call what is given to get the bytes held more than at its beginning."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]

    def grown():
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    try:
        yield grown
    finally:
        tracemalloc.stop()


def cpu(work, times=3):
    """CPU seconds of this thread for `work()`, the best of some tries: other processes don't count."""
    best = float("inf")
    for _ in range(times):
        begin = time.thread_time()
        work()
        best = min(best, time.thread_time() - begin)
    return best
