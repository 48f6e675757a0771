"""Test doubles for whoever uses the harness: a catalog of listed skills, a runner that follows a script, a front end and a
device in miniature, and whole sessions of them on a virtual clock.

    world = scripted({"poi.find": Script(text="Two of them.", after_s=3.0)}, specs=[SkillSpec("poi.find", slow=True)])
    task = world.talk.ask("poi.find", {"query": "charger"}, prose="find a charger")
    await world.talk.run(5)
    assert world.talk.texts == ["Okay, one moment.", "Two of them."]
"""
import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Callable, Sequence

from pydantic import BaseModel

from harness.deliver.desk import PreparedReply
from harness.evidence import DelegateRequest, Evidence
from harness.deliver.gate import RATE, Moment
from harness.backend_skills import SkillBackend
from harness.harness import Harness
from harness.journal import Store
from harness.ledger import Transition
from harness.schedule.limits import SchedulerLimits
from harness.plan.contracts import Ask, Contract, Planned, Planner, PlanRequest
from harness.session import Session
from harness.settings import HarnessSettings
from harness.task import SkillCall, SkillOutcome, SkillSpec
from venus_edge.clock import Clock
from venus_edge.testing import VirtualClock


class ListedCatalog:
    """Skills by spec. `models`: pydantic arguments by skill id (a skill without one takes any arguments); `sentences`: the
    skills' own sentences by (skill id, outcome)."""

    def __init__(self, *specs: SkillSpec, models: dict[str, type[BaseModel]] | None = None,
                 sentences: dict[tuple[str, str], str] | None = None, contracts: Sequence[Contract] = ()):
        self._contracts = tuple(contracts)
        self._specs = {spec.id: spec for spec in specs}
        self._models, self._sentences = models or {}, sentences or {}

    def has(self, skill_id: str) -> bool:
        return skill_id in self._specs

    def contracts(self) -> tuple[Contract, ...]:
        return self._contracts

    def validate(self, skill_id: str, arguments: dict) -> dict:
        model = self._models.get(skill_id)
        return model.model_validate(arguments).model_dump() if model else arguments

    def spec(self, skill_id: str) -> SkillSpec:
        return self._specs[skill_id]

    def say(self, skill_id: str, outcome: str, lang: str, fields: dict) -> str:
        return self._sentences.get((skill_id, outcome), "").format(**fields)


@dataclass(frozen=True)
class Script:
    """How one call of a skill goes. Times in seconds of the injected clock, from the call's start."""

    text: str = "Done."
    after_s: float = 0.0
    ok: bool = True
    code: str = ""
    progress: tuple[tuple[float, str], ...] = ()
    """(when, spoken text)."""
    error: Exception | None = None
    """Raised instead of an outcome."""
    memory: Callable[[dict], dict] | None = None
    """What the skill makes of the session memory."""
    brief: str = ""
    fields: dict = field(default_factory=dict)
    """What the outcome holds besides, such as the host's token of a question (`confirm`)."""
    started: bool = True
    """False with `ok=False`: it failed before the skill's code ran."""
    ignores_cancel_s: float = 0.0
    """Goes on for so long after its first cancellation, and then returns its outcome all the same."""


@dataclass
class ScriptedRunner:
    """Runs scripts by skill id: one, or a sequence used call by call (the last one repeats). Keeps what happened."""

    clock: Clock
    scripts: dict[str, Script | Sequence[Script]] = field(default_factory=dict)
    kept: int = 1000
    calls: deque[SkillCall] = field(init=False)
    events: deque[tuple[float, str, str]] = field(init=False)
    """(time, started | finished | cancelled, task id)."""

    def __post_init__(self):
        self.calls, self.events = deque(maxlen=self.kept), deque(maxlen=4 * self.kept)
        self._used: dict[str, int] = {}

    async def run(self, call: SkillCall, on_progress: Callable[[str, str], None]) -> SkillOutcome:
        self.calls.append(call)
        self._note("started", call)
        script = self._next(call.skill_id)
        began = self.clock.now()
        # Ends with the event loop's other tasks, so that a test that leaves a stubborn run behind doesn't hang.
        alive = asyncio.ensure_future(asyncio.Event().wait()) if script.ignores_cancel_s else None
        try:
            for at, text in script.progress:
                await self.clock.sleep(at - (self.clock.now() - began))
                on_progress("progress", text)
            await self.clock.sleep(script.after_s - (self.clock.now() - began))
        except asyncio.CancelledError:
            self._note("cancelled", call)
            if alive is None:
                raise
            going_on = asyncio.ensure_future(self.clock.sleep(script.ignores_cancel_s))
            await asyncio.wait({going_on, alive}, return_when=asyncio.FIRST_COMPLETED)
            going_on.cancel()
        finally:
            if alive is not None:
                alive.cancel()
        self._note("finished", call)
        if script.error:
            raise script.error
        return SkillOutcome(script.ok, "done" if script.ok else script.code, script.text, script.brief, code=script.code,
                            fields=dict(script.fields), memory=script.memory(dict(call.memory)) if script.memory else dict(call.memory),
                            started=script.started, took_s=self.clock.now() - began)

    def _next(self, skill_id: str) -> Script:
        script = self.scripts.get(skill_id, Script())
        if isinstance(script, Script):
            return script
        used = self._used.get(skill_id, 0)
        self._used[skill_id] = used + 1
        return script[min(used, len(script) - 1)]

    def _note(self, what: str, call: SkillCall) -> None:
        self.events.append((self.clock.now(), what, call.task_id))


class Conversation:
    """A front end and a device in miniature: units on a virtual clock, replies spoken at a steady rate.

    `spoken` holds what was admitted, as (time, reply). Set `user_speaking` and `turn_open` to occupy the floor;
    `interrupt(heard=…)` flushes the reply that is being spoken.
    """

    def __init__(self, session: Session, clock: VirtualClock, *, unit_s: float = 0.1, chars_per_s: float = 15.0):
        self.session, self.clock = session, clock
        self.unit_s, self.chars_per_s = unit_s, chars_per_s
        self.user_speaking = self.turn_open = False
        self.turn = 0
        self.spoken: list[tuple[float, PreparedReply]] = []
        self.speaking: PreparedReply | None = None
        self._until = 0.0
        self._asked = 0

    @property
    def harness(self) -> Session:
        return self.session

    @property
    def texts(self) -> list[str]:
        return [reply.text for _, reply in self.spoken]

    def ask(self, capability: str | None, arguments: dict | None = None, *, prose: str = "please", key: str = "",
            repair: str = "new", lang: str = "en", same_turn: bool = False) -> str:
        """The user asks for something, in a turn of its own; the task id."""
        if not same_turn:
            self.turn += 1
            self.session.user_turn(self.turn)
        self._asked += 1
        pos = self._pos
        request = DelegateRequest(key or f"key-{self._asked}", self.turn,
                                  pos, pos, prose, capability, arguments or {}, repair, lang)
        return self.session.accept(request, Evidence.freeze(pos, pos))

    async def run(self, seconds: float) -> None:
        """Let so much time pass, unit by unit."""
        for _ in range(round(seconds / self.unit_s)):
            await self.clock.advance(self.unit_s)
            if self.speaking and self.clock.now() >= self._until - 1e-9:
                reply, self.speaking = self.speaking, None
                self.session.reply_finished(reply.id, heard=reply.text, unheard="", completed=True, confirmed=True)
            reply = self.session.next_reply(Moment(self._pos, self.user_speaking, self.turn_open,
                                                   self.speaking is not None, self.turn))
            if reply is not None:
                assert self.speaking is None, "a reply was admitted over another"
                self.spoken.append((self.clock.now(), reply))
                self._speak(reply, f"seg-{len(self.spoken)}")

    def _speak(self, reply: PreparedReply, seg: str) -> None:
        lasts_s = len(reply.text) / self.chars_per_s
        self.session.reply_started(reply.id, seg)
        self.session.reply_speech(reply.id, seg, [(reply.text, round(lasts_s * RATE))])
        self.speaking, self._until = reply, self.clock.now() + lasts_s

    def interrupt(self, heard: str, *, stopped: bool = False) -> None:
        """The user takes the floor; `heard`: the beginning of the reply that was played."""
        reply, self.speaking = self.speaking, None
        assert reply is not None and reply.text.startswith(heard), "nothing is being spoken that begins so"
        self.session.reply_finished(reply.id, heard=heard, unheard=reply.text[len(heard):], completed=False,
                                    confirmed=True, stopped=stopped)

    @property
    def _pos(self) -> int:
        return round(self.clock.now() * RATE)


@dataclass
class ScriptedPlanner:
    """Answers prose by a table: prose -> what is planned; what is not in it is asked back. Takes `after_s` each time."""

    clock: Clock
    answers: dict[str, Planned]
    after_s: float = 0.0
    asked: list[PlanRequest] = field(default_factory=list)

    async def plan(self, request: PlanRequest) -> Planned:
        self.asked.append(request)
        if self.after_s:
            await self.clock.sleep(self.after_s)
        return self.answers.get(request.prose, Ask("What do you mean?"))

    async def aclose(self) -> None:
        return None


@dataclass
class World:
    """A harness with one session, its parts, and every transition so far."""

    harness: Harness
    session: Session
    talk: Conversation
    runner: ScriptedRunner
    clock: VirtualClock
    seen: list[Transition]

    async def restart(self, store: Store | None = None) -> "World":
        """Another process takes up the session from its records: this one stops where it is. Time passes only as far as a run needs
        that ignores its cancellation.

        `store`: another object of the same store, where that is not a MemoryStore.
        """
        leaving = asyncio.gather(*(self.harness.session(name).leave() for name in self.harness.sessions()))
        await self.clock.advance(0)
        while not leaving.done():
            await self.clock.advance(0.1)
        runner, backend = ScriptedRunner(self.clock, self.runner.scripts), self.harness.backend
        harness = Harness(SkillBackend(backend.catalog, runner, backend.planner), backend.catalog, self.clock, settings=self.session.settings,
                          store=store or self.harness.store)
        await harness.start()
        world = _world(harness, runner, self.clock, self.session.id)
        world.talk.turn, world.talk._asked = self.talk.turn, self.talk._asked
        return world


def scripted(scripts: dict[str, Script | Sequence[Script]] | None = None, *, specs: Sequence[SkillSpec] = (), catalog: ListedCatalog | None = None,
             clock: VirtualClock | None = None, planner: Planner | None = None, store: Store | None = None,
             settings: HarnessSettings | None = None, limits: SchedulerLimits | None = None, session_id: str = "session") -> World:
    """A harness of scripted skills on a virtual clock, with one open session. `store` must be open."""
    clock = clock or VirtualClock()
    runner, catalog = ScriptedRunner(clock, scripts or {}), catalog or ListedCatalog(*specs)
    harness = Harness(SkillBackend(catalog, runner, planner), catalog, clock, settings=settings, limits=limits, store=store)
    return _world(harness, runner, clock, session_id)


def _world(harness: Harness, runner: ScriptedRunner, clock: VirtualClock, session_id: str) -> World:
    seen: list[Transition] = []
    session = harness.open_session(session_id, observer=seen.append)
    return World(harness, session, Conversation(session, clock), runner, clock, seen)
