"""The skills, the planner and the user's wishes of the ledger evaluation. Every outcome has words of its own, so that each can be
followed to the ear; every effect is written down with the key it was made for.

Words: `s3r17x2w5` is word 5 of what run 2 of request 17 of session 3 brought; `s3q17` names the request itself; `s3m` is its memory.
"""
import asyncio
import random
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Callable

from harness import Ask, Aside, Contract, DelegateRequest, Plan, PlanRequest, SkillCall, SkillOutcome, SkillSpec
from harness.testing import ListedCatalog
from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from simulators.ledger_oracle import Oracle

ANY = frozenset({"*"})
SPECS = (
    SkillSpec("find", timeout_s=90.0, slow=True, supersedes="find", result_ttl_s=40.0, derived=ANY),
    SkillSpec("book", timeout_s=20.0, slow=True, supersedes="book", idempotent=False, derived=ANY),
    SkillSpec("set", supersedes="set", idempotent=False, derived=ANY),
    SkillSpec("note", supersedes="note", derived=ANY),
    SkillSpec("look", timeout_s=20.0, supersedes="look", on_interrupt="cancel", derived=ANY),
    SkillSpec("news", timeout_s=20.0, supersedes="news", on_topic_change="drop", result_ttl_s=12.0, derived=ANY),
    SkillSpec("trip", timeout_s=60.0, slow=True, supersedes="trip", on_interrupt="ask", offer_stop_after_s=12.0, give_up_after_s=25.0, derived=ANY),
    SkillSpec("call", timeout_s=15.0, supersedes="call", idempotent=False, cancellable=False, derived=ANY),
    SkillSpec("index", timeout_s=30.0, supersedes="index", priority="background", max_running=2, derived=ANY),
    SkillSpec("strict", supersedes="strict", derived=ANY),
)
SPEC = {spec.id: spec for spec in SPECS}
WORD = re.compile(r"s(\d+)r(\d+)x(\d+)([wbp])(\d+)")
CANARY = re.compile(r"s(\d+)(?:[rqx]\d|m)")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    q: str
    level: int = 1


def catalog() -> ListedCatalog:
    """All skills; each names what it is about by its request."""
    contracts = [Contract(spec.id, {"en": spec.id, "zh": spec.id}, {}, derived=ANY, group=spec.supersedes) for spec in SPECS]
    return ListedCatalog(*SPECS, models={"strict": _Strict}, sentences={(spec.id, "topic"): "thing {q}" for spec in SPECS}, contracts=contracts)


@dataclass
class Behaviour:
    """How each run of a request goes. Seconds from the run's start."""

    after_s: float = 0.0
    words: int = 6
    sentences: int = 1
    brief: bool = False
    ok: bool = True
    code: str = ""
    says: bool = True
    """The outcome brings words of its own; a failure without them is worded by the harness."""
    raises: bool = False
    ignores_cancel_s: float = 0.0
    progress_s: tuple[float, ...] = ()
    effect_at: float = 0.5
    """Share of the run after which it has its effect."""
    not_started: bool = False
    """The first run fails before the skill's code ran."""


def behaviour(rng: random.Random, capability: str) -> Behaviour:
    slow = capability in ("find", "book", "trip", "look", "index")
    after = rng.choice([0.0, 0.0, 0.2, 1.2, 3.0]) if not slow else rng.choice([0.0, 0.4, 1.5, 4.0, 12.0])
    kind = rng.random()
    got = Behaviour(after, rng.randint(3, 14), rng.choice([1, 1, 2, 4]), effect_at=rng.choice([0.0, 0.5, 1.0]))
    if rng.random() < 0.12:
        got.words, got.sentences, got.brief = rng.randint(18, 30), 4, rng.random() < 0.5
    if kind < 0.10:
        got.ok, got.code, got.says = False, rng.choice(["unavailable", "not_found", "unsafe_now", "needs_input"]), rng.random() < 0.5
    elif kind < 0.13:
        got.raises = True
    elif kind < 0.17:
        got.after_s = 500.0  # it hangs
        got.ignores_cancel_s = rng.choice([0.0, 500.0])
    elif kind < 0.28:
        got.after_s = max(after, 2.0)
        got.ignores_cancel_s = rng.choice([0.3, 0.6, 4.0])
    elif kind < 0.31:
        got.not_started = True
    if rng.random() < 0.4:
        got.progress_s = (0.3, 2.0, 8.0)
    return got


def text_of(session: int, number: int, run: int, b: Behaviour) -> str:
    """The outcome's words, in sentences."""
    words = [f"s{session}r{number}x{run}w{k}" for k in range(b.words)]
    per = max(1, -(-len(words) // b.sentences))
    return " ".join(" ".join(words[i:i + per]) + "." for i in range(0, len(words), per))


@dataclass
class Wish:
    """One thing the user wants done: what it is, how its runs go, and what prose stands for it."""

    number: int
    session: int
    capability: str
    b: Behaviour
    at: float
    turn: int
    key: str = ""
    request: DelegateRequest | None = None
    parent: "Wish | None" = None
    """The prose that it is a part of."""
    planned: bool = True
    """The harness knows what it is (prose: once the planner has answered)."""
    task_id: str = ""
    promised: bool = False
    """submit() returned: no crash may lose it."""
    refused: bool = False
    """The store was away when it was asked for."""

    @property
    def args(self) -> dict:
        return {"q": f"s{self.session}q{self.number}"}


@dataclass
class Prose:
    """What the planner answers to one prose, and how long it thinks. `parts`: new requests; else one operation on a target."""

    parts: tuple[Wish, ...] = ()
    operation: str = "new"
    target: "Callable[[], str | None] | None" = None
    reply: str = "plan"
    """plan | ask | aside | hang | raise"""
    after_s: float = 0.0
    done: "Callable[[str | None], None] | None" = None
    chosen: list[str | None] = field(default_factory=list)


class Planner:
    """Answers each prose as the user meant it, the same way each time it is asked."""

    def __init__(self, clock, proses: dict[str, Prose], account: "Oracle"):
        self._clock, self._proses, self._account = clock, proses, account

    async def plan(self, request: PlanRequest):
        session = int(CANARY.search(request.prose)[1])
        self._account.saw(session, "planner", [request.prose, *request.said, request.heard, request.question, repr(request.memory),
                                               *(f"{t.prose} {t.arguments}" for t in request.tasks)])
        prose = self._proses[request.prose]
        if prose.after_s:
            await self._clock.sleep(prose.after_s)
        if prose.reply == "raise":
            raise RuntimeError("no plan")
        if prose.reply == "ask":
            return Ask("Which one do you mean?")
        if prose.reply == "aside":
            return Aside()
        if not prose.chosen:
            prose.chosen.append(prose.target() if prose.target else None)
        target = prose.chosen[0]
        if prose.done is not None:
            prose.done(target)
        for part in prose.parts:
            part.planned = True
        if prose.operation in ("cancel", "status"):
            return (Plan(prose.operation, None, {}, target),)
        return tuple(Plan(prose.operation, part.capability, part.args, target) for part in prose.parts)

    async def aclose(self) -> None:
        return None


class Runner:
    """Runs what the user asked for, as its behaviour says. One for each process; `dead` once that was killed."""

    def __init__(self, clock, wishes: dict[tuple[int, str], Wish], account: "Oracle"):
        self._clock, self._wishes, self._account = clock, wishes, account
        self.dead = False

    async def run(self, call: SkillCall, on_progress) -> SkillOutcome:
        if self.dead:  # begun by a process that was killed
            await asyncio.Event().wait()
        session = int(call.session.rpartition("-")[2])
        wish = self._wishes[session, call.arguments["q"]]
        self._account.saw(session, "memory", [repr(call.memory), repr(call.arguments)])
        b, spec, began = wish.b, SPEC[wish.capability], self._clock.now()
        run = self._account.run_began(wish)
        if b.not_started and run == 1:
            return SkillOutcome(False, "unavailable", code="unavailable", started=False)
        try:
            for at in b.progress_s:
                if at < b.after_s:
                    await self._until(began + at)
                    on_progress("progress", f"Looking at s{session}r{wish.number}x{run}p0")
            await self._until(began + b.after_s * b.effect_at)
            self._effect(wish, call, spec)
            await self._until(began + b.after_s)
        except asyncio.CancelledError:
            if self.dead or not b.ignores_cancel_s:
                raise
            await self._clock.sleep(b.ignores_cancel_s)
            if self.dead:
                raise
            self._account.returned_late(wish, run)
        if b.raises:
            raise RuntimeError("the skill broke")
        text = text_of(session, wish.number, run, b) if b.says else ""
        brief = f"In short s{session}r{wish.number}x{run}b0." if b.brief else ""
        self._account.run_ended(wish, run, text)
        memory = {**call.memory, "canary": f"s{session}m"} if wish.capability == "note" else dict(call.memory)
        return SkillOutcome(b.ok, "done" if b.ok else b.code, text, brief, code=b.code, memory=memory)

    async def _until(self, when: float) -> None:
        if when > self._clock.now():
            await self._clock.sleep(when - self._clock.now())

    def _effect(self, wish: Wish, call: SkillCall, spec: SkillSpec) -> None:
        if not self.dead and not spec.idempotent:
            self._account.effect(wish, call.key)
