"""A delivery desk with its ledger on a clock that is stepped unit by unit: outcomes in, replies out, no skills in between."""
from dataclasses import dataclass, field

from harness.deliver.desk import DeliveryDesk
from harness.deliver.gate import RATE, Moment
from harness.journal import MemoryJournal
from harness.deliver.late import LatePolicy
from harness.ledger import Ledger
from harness.phrases import Words
from harness.settings import HarnessSettings
from harness.task import Delivery, Execution, SkillSpec
from harness.testing import ListedCatalog
from venus_edge.testing import VirtualClock

UNIT_S = 0.1
SPECS = (SkillSpec("poi.find", timeout_s=90), SkillSpec("navigation.go", supersedes="navigation"), SkillSpec("vehicle.set_window"),
         SkillSpec("scene.look", on_interrupt="ask", timeout_s=60), SkillSpec("web.search", on_topic_change="drop", timeout_s=60),
         SkillSpec("vehicle.set_tailgate", cancellable=False, timeout_s=90))


class SlowJournal(MemoryJournal):
    """Records reach the store only when the test says so."""

    __slots__ = ("stored",)

    def __init__(self):
        super().__init__()
        self.stored = 0

    def durable(self, n=None):
        return (self.last if n is None else n) <= self.stored

    def store(self):
        self.stored = self.last


@dataclass
class Desk:
    specs: tuple = SPECS
    journal: object = None
    settings: dict = field(default_factory=dict)
    sentences: dict = field(default_factory=dict)
    clock: VirtualClock = field(default_factory=VirtualClock)

    def __post_init__(self):
        self.journal = self.journal if self.journal is not None else MemoryJournal()
        self.seen, self.shown, self.said = [], [], []
        self.turn, self.asked = 0, 0
        self.start(Ledger(self.clock, journal=self.journal, observer=self.seen.append))

    def start(self, ledger):
        settings = HarnessSettings(**self.settings)
        self.catalog = ListedCatalog(*self.specs, sentences=self.sentences)
        words = Words(self.catalog)
        self.ledger, self.late = ledger, LatePolicy(settings, words)
        self.desk = DeliveryDesk(ledger, self.clock, settings, self.late, words,
                                 lambda c: self.catalog.spec(c) if self.catalog.has(c) else None, self.shown.append)

    def restart(self):
        """The process dies and another takes the session up, as recovery does."""
        self.start(Ledger.restore(self.journal, self.clock, observer=self.seen.append))
        for task in self.ledger.open():
            if task.delivery in (Delivery.PENDING, Delivery.INTERRUPTED):
                self.desk.take_up(task)
            elif task.delivery is Delivery.DELIVERING:
                self.desk.doubt(task)

    def ask(self, capability="poi.find", *, same_turn=False, **more):
        """A request that runs; its id."""
        self.turn += not same_turn
        self.asked += 1
        task = self.ledger.accept(key=f"key-{self.asked}", capability=capability, arguments=more.pop("arguments", {"query": "chargers"}),
                                  turn=self.turn, **more)
        return self.ledger.execute(task.id, Execution.RUNNING).id

    def done(self, task_id, text="Two of them.", kind="result", brief=""):
        """The work has ended; its outcome waits to be told."""
        ok = kind == "result"
        self.ledger.execute(task_id, Execution.COMPLETED if ok else Execution.FAILED, "" if ok else "needs_input")
        self.late.forget(task_id)
        self.desk.tell(task_id, kind, text, brief)
        return task_id

    def told(self, text="Two of them.", **more):
        return self.done(self.ask(**more), text)

    def unit(self, **flags):
        """One unit passes; the reply that was admitted at its end, or None."""
        self.clock._now += UNIT_S
        base = dict(pos=round(self.clock.now() * RATE), user_speaking=False, turn_open=False, assistant_speaking=False, turn=self.turn)
        reply = self.desk.next(Moment(**{**base, **flags}), self.turn)
        if reply is not None:
            self.said.append((round(self.clock.now(), 1), reply))
        return reply

    def wait(self, seconds, **flags):
        """Units until a reply comes, at most so many seconds of them."""
        for _ in range(round(seconds / UNIT_S)):
            reply = self.unit(**flags)
            if reply is not None:
                return reply
        return None

    def play(self, reply, heard=None, *, confirmed=True, stopped=False):
        """The reply is spoken, to its end or as far as `heard`."""
        assert heard is None or reply.text.startswith(heard), (heard, reply.text)
        self.desk.started(reply.id)
        self.clock._now += len(heard if heard is not None else reply.text) / 15
        self.desk.finished(reply.id, heard=reply.text if heard is None else heard, unheard="" if heard is None else reply.text[len(heard):],
                           completed=heard is None, confirmed=confirmed, stopped=stopped)

    def state(self, task_id):
        task = self.ledger.get(task_id)
        return str(task.delivery), task.delivery_reason

    def moves(self, task_id):
        return [str(t.dst) for t in self.seen if t.task.id == task_id and t.machine == "delivery"]

    @property
    def texts(self):
        return [reply.text for _, reply in self.said]
