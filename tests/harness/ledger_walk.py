"""A walk over the ledger that tries every move on every task and keeps its own account of what was heard and what ended.

`choose(options)` decides: a property test's draw or a seeded generator. A broken promise is an AssertionError.
"""
from collections import Counter

from harness.errors import IllegalTransition, UnknownTask
from harness.journal import replay
from harness.ledger import DELIVERY_MOVES, EXECUTION_MOVES, GUARDS, MOST_DECLINES, Ledger
from harness.task import DELIVERY_END, EXECUTION_END, Delivery, Execution
from venus_edge.testing import VirtualClock

E, D = Execution, Delivery
TEXT = "abcdefghij"
TTL_S = 60.0
HISTORY = 6
MOST = 10
"""Tasks in one walk: few, so that the moves meet."""
KINDS = ["result", "notice", "question"]
RUNS = [(E.RUNNING, E.COMPLETED), (E.RUNNING, E.COMPLETED), (E.RUNNING, E.FAILED), (E.CANCELLED,), (E.EXPIRED,),
        (E.RUNNING, E.CANCELLING, E.CANCELLED)]


class Walk:
    def __init__(self, guards=tuple(GUARDS)):
        self.clock = VirtualClock()
        self.keys, self.ids = [], []
        self.ends, self.delivery_ends, self.heard, self.fully = {}, {}, {}, Counter()
        self.seen = Counter()
        self.wrong = []
        """What the observer found: the ledger swallows its exceptions."""
        self.ledger = Ledger(self.clock, observer=self.observe, history=HISTORY, guards=guards)
        for end, kind in ((E.COMPLETED, "result"), (E.COMPLETED, "result"), (E.FAILED, "notice")):
            self.run((E.RUNNING, end), kind, TEXT)

    def observe(self, transition):
        task, to = transition.task, transition.dst
        self.seen[to] += 1
        if transition.machine == "execution" and to in EXECUTION_END:
            self.ends.setdefault(task.id, []).append(to)
        if transition.machine == "delivery":
            if to in DELIVERY_END:
                self.delivery_ends.setdefault(task.id, []).append(to)
            if to == D.DELIVERING:
                told = task.kind == "notice" or task.execution in (E.COMPLETED, E.FAILED)
                for wrong, what in ((task.superseded_by, "superseded"), (not told, "cancelled or expired"),
                                    (task.live or task.execution is E.SUPERSEDED, "unfinished or superseded"),
                                    (self.clock.now() - (task.ended_at or 0.0) > TTL_S, "too old")):
                    if wrong:
                        self.wrong.append(f"admitted although {what}")

    # -- what can happen

    def request(self, choose):
        old = self.pick(choose) if choose([False, True]) else None
        if len(self.ids) >= MOST:
            return
        new = self.enter(supersedes=old.id if old else "")
        if old is None:
            assert new.version == 1
            return
        assert (new.lineage, new.replaces) == (old.lineage, old.id) and new.version > old.version
        if self.ledger.knows(old.id):
            old = self.ledger.get(old.id)
            assert old.superseded_by == new.id
            assert old.delivery not in (D.PENDING, D.INTERRUPTED), "a superseded outcome still waits to be told"

    def same_key(self, choose):
        key = choose(self.keys)
        before = self.ledger.tasks()
        try:
            task = self.ledger.accept(key=key, capability="x.y", arguments={"other": 1})
            assert task.id == self.ids[self.keys.index(key)] and task.arguments == {}
        except UnknownTask:
            assert not self.ledger.knows(self.ids[self.keys.index(key)])
        assert self.ledger.tasks() == before

    def whole_run(self, choose):
        """The usual way to an outcome that waits to be told."""
        if len(self.ids) < MOST:
            self.run(choose(RUNS), choose(KINDS), choose([TEXT, TEXT, TEXT, ""]))

    def any_execution(self, choose):
        """Legal or not: start, complete late, cancel, expire, revive."""
        task, to = self.pick(choose), choose(list(E))
        try:
            self.ledger.execute(task.id, to, "why")
        except IllegalTransition:
            assert to not in EXECUTION_MOVES[task.execution]
            assert self.ledger.get(task.id) == task, "a refused move changed the task"
        else:
            assert task.execution not in EXECUTION_END, "an ended task was moved"

    def telling(self, choose):
        """Admit, confirm, interrupt, decline, resume, drop: moves that the table allows for a task that is untold."""
        task = self.pick(choose, lambda t: t.untold)
        for _ in range(choose([1, 2, 3, 4])):
            if task is None or not self.ledger.knows(task.id) or not self.ledger.get(task.id).untold:
                return
            task = self.ledger.get(task.id)
            moves = sorted(DELIVERY_MOVES[task.delivery])
            on = [to for to in moves if to not in DELIVERY_END]  # going on is worth more tries than ending
            self.tell(task, choose(moves + 4 * on), choose)

    def any_delivery(self, choose):
        """Legal or not."""
        self.tell(self.pick(choose), choose(list(D)), choose, kind=choose(KINDS), text=TEXT)

    def time_passes(self, choose):
        self.clock._now += choose([0.1, 40.0, 100.0])

    MOVES = (request, same_key, whole_run, any_execution, telling, any_delivery, time_passes)

    # -- how

    def pick(self, choose, which=lambda task: True):
        ids = [i for i in self.ids if self.ledger.knows(i) and which(self.ledger.get(i))]
        return self.ledger.get(choose(ids)) if ids else None

    def enter(self, **more):
        key = f"k{len(self.keys)}"
        self.keys.append(key)
        task = self.ledger.accept(key=key, capability="x.y", arguments={}, ttl_s=TTL_S, group="g", **more)
        self.ids.append(task.id)
        self.heard[task.id] = Counter()
        return task

    def run(self, end, kind, text):
        task = self.enter()
        for to in end:
            task = self.ledger.execute(task.id, to)
        self.attempt(task, D.PENDING, kind=kind, text=text)

    def tell(self, task, to, choose, **more):
        """One attempt; what a report says was heard counts as heard, whatever the ledger makes of it."""
        if task.delivery is D.DELIVERING and to in (D.DELIVERED, D.MERGED):
            self.hear(task, task.rest)
        if task.delivery is D.DELIVERING and to is D.INTERRUPTED:
            share = choose(list(range(len(task.rest) + 1)))
            self.hear(task, task.rest[:share])
            more["rest"] = task.rest[share:]
        self.attempt(task, to, **more)

    def attempt(self, task, to, **more):
        try:
            after = self.ledger.deliver(task.id, to, "why", **more)
        except IllegalTransition:
            assert self.ledger.get(task.id) == task, "a refused move changed the task"
        else:
            assert to in DELIVERY_MOVES[task.delivery]
            assert after.declines <= MOST_DECLINES and after.resumes <= 1
            assert after.rest or to in (D.INTERRUPTED, *DELIVERY_END), "nothing to say, and still to be told"

    def hear(self, task, part):
        self.fully[task.id] += part == task.text
        self.heard[task.id].update(part)

    # -- what must hold

    def check(self):
        assert not self.wrong, self.wrong
        assert all(count <= 1 for heard in self.heard.values() for count in heard.values()), "heard twice"
        assert all(count <= 1 for count in self.fully.values()), "spoken in full twice"
        assert all(len(ends) == 1 for ends in (*self.ends.values(), *self.delivery_ends.values())), "two ends"
        assert list(replay(self.ledger.journal).values()) == self.ledger.tasks(), "the journal tells another story"
        assert sum(t.closed for t in self.ledger.tasks()) <= HISTORY
        assert len(self.ledger.journal) <= 16 * len(self.ledger.tasks())

    def finish(self):
        """Whatever the state, every accepted request can be brought to exactly one end of either kind."""
        for task in self.ledger.live():
            if task.execution is E.RUNNING:
                self.ledger.execute(task.id, E.CANCELLING)
            self.ledger.execute(task.id, E.CANCELLED, "closed")
        for task in self.ledger.open():
            self.ledger.deliver(task.id, D.DROPPED, "closed")
        assert set(self.ends) == set(self.delivery_ends) == set(self.ids) and self.ledger.open() == []
        self.check()
