"""Random sessions of the ledger evaluation: several at once in one harness, on virtual time, with its process killed and started again.

    result = play(seed=7, group=12)          # sessions 48 to 51 of seed 7, always the same

The people keep their own account (ledger_oracle.py); after the last word there is quiet, and every task must come to its end.
"""
import asyncio
import random
import traceback
from collections import Counter
from dataclasses import dataclass, field

from harness import Evidence, Harness, HarnessSettings, Moment, SchedulerLimits, SkillBackend, phrases
from harness.errors import Closed, JournalFault, UnknownSession
from harness.task import DELIVERY_END, EXECUTION_END, Task
from simulators.ledger_clock import CountingLoop, ProcessClock, WorldClock
from simulators.ledger_oracle import Claim, Oracle
from simulators.ledger_people import RATE, Person
from simulators.ledger_skills import SPEC, WORD, Planner, Prose, Runner, Wish, catalog
from simulators.ledger_store import LossyStore

GROUP = 4
"""Sessions that share one harness."""
QUIET_S = 240.0
"""After the last word everything must have ended within this."""
EVENTS = ("request", "prose", "parallel", "correction", "correct_planned", "cancel", "cancel_voice", "cancel_planned", "status", "repeat", "same_key",
          "same_key_after_restart", "barge_in", "stop", "decline", "never_started", "lost_report", "late_report", "duplicate_report",
          "old_segment_report", "unconfirmed_report", "reattach", "skill_failure", "hang", "late_return", "slow", "restart", "handover",
          "lost_records", "clock_skew", "wall_jump", "store_stall", "store_refused", "store_full", "sent_again", "topic_change", "overload",
          "busy", "noise", "stuck_turn", "bad_arguments", "unknown_capability", "aside", "unclear", "planner_hangs", "planner_breaks", "closed_early",
          "screen_item", "chat", "superseded", "expired")
"""What every evaluation must have seen of each at least once."""
KILL_WHEN = ("any", "any", "playing", "playing", "admitted", "effect", "effect", "effect_behind", "effect_behind", "submitting", "admission_behind",
             "admission_behind")
"""At what sight the process is killed; after MOST_WAIT_S without it, anyway."""
MOST_WAIT_S = 8.0
SETTLES_S = 3.0
"""A store that was away has everything again so long after it answered."""


@dataclass
class Result:
    """One group's figures, events and violations (session, time, kind, what)."""

    figures: Counter = field(default_factory=Counter)
    events: Counter = field(default_factory=Counter)
    violations: list = field(default_factory=list)


class World:
    def __init__(self, seed: int, group: int, story=None, sessions: int = GROUP):
        self.rng = rng = random.Random(f"{seed}/{group}")
        self.clock = WorldClock(start=1000.0)
        self.oracle = Oracle(self.clock, story)
        self.wishes: dict[tuple[int, str], Wish] = {}
        self.proses: dict[str, Prose] = {}
        self.unit_s = rng.choice([0.1, 0.2])
        quirks = rng.choice([0.0, 1.0, 1.0, 2.0])
        self.people = [Person(self, group * sessions + k, random.Random(f"{seed}/{group}/{k}"), quirks) for k in range(sessions)]
        self.settings = HarnessSettings(max_running=rng.choice([2, 8]), max_queued=rng.choice([2, 8, 32]))
        self.limits = SchedulerLimits(max_running=rng.choice([4, 16, 64]), max_running_per_tenant=32)
        self.store = LossyStore(self.clock, rng)
        self.skew = ProcessClock(self.clock)
        self.harness: Harness | None = None
        self.runner: Runner | None = None
        self._states: dict[int, dict[str, Task]] = {p.index: {} for p in self.people}
        self._claims: list[Claim] = []
        self._away_at = 0.0
        self._submits: set[asyncio.Task] = set()
        self._open_at: dict[int, float] = {}
        self._own: asyncio.Task | None = None

    # -- processes

    async def _start(self) -> None:
        self.runner = Runner(self.clock, self.wishes, self.oracle)
        backend = SkillBackend(catalog(), self.runner, Planner(self.clock, self.proses, self.oracle))
        self.harness = Harness(backend, backend.catalog, self.skew, settings=self.settings, limits=self.limits, store=self.store)
        await self.harness.start()

    def _open(self, person: Person) -> None:
        states, runner = self._states[person.index], self.runner

        def saw(transition) -> None:
            if runner.dead:
                return
            states[transition.task.id] = transition.task
            if transition.machine == "delivery" and transition.dst in DELIVERY_END:
                person.account.ended_at[transition.task.id] = self.clock.now()
                if transition.reason in ("expired", "superseded"):
                    self.oracle.events[transition.reason] += 1
            if transition.reason == "busy":
                self.oracle.events["busy"] += 1
            t = transition
            self.oracle.tell(person.index, f"  {t.task.id[-4:]} {t.machine} {t.src} > {t.dst} {t.reason}")

        before = dict(states)
        states.clear()
        def shown(item) -> None:
            if not runner.dead:
                person.account.shown[item.task_id] = item.text
                self.oracle.event(person.index, "screen_item", item.reason)
                self.oracle.saw(person.index, "the screen", [item.text])

        person.device.session = self.harness.open_session(self._name(person), observer=saw, on_screen=shown)
        for task in person.device.session.status():
            states[task.id] = task
        for wish in person.account.wishes:  # what was not written may be gone
            if wish.task_id and wish.task_id not in states and not wish.promised:
                wish.task_id = ""
        self.oracle.tell(person.index, f"opened with {len(states)} of {len(before)} tasks")

    @staticmethod
    def _name(person: Person) -> str:
        return f"ledger-{person.index}"

    def submit(self, person: Person, wish: Wish, evidence: Evidence) -> None:
        async def sending(harness: Harness) -> None:
            try:
                task_id = await harness.submit(self._name(person), wish.request, evidence)
            except JournalFault:
                person.refused(wish)
            except (Closed, UnknownSession):
                pass
            except Exception:
                self._fault(person, traceback.format_exc())
            else:
                self.oracle.accepted(wish, task_id)
                wish.promised = True

        task = asyncio.ensure_future(sending(self.harness))
        self._submits.add(task)
        task.add_done_callback(self._submits.discard)

    def claim(self, wish: Wish, reason: str) -> None:
        """From now on the wish's outcome is not wanted; a crash may undo that until it is written."""
        self.oracle.claim(wish, reason, 1 << 60)
        self._claims.append(self.oracle.accounts[wish.session].obsolete[wish.number])

    def _loop_fault(self, loop: asyncio.AbstractEventLoop, context: dict) -> None:
        """An exception that nobody awaited: a callback of the harness failed."""
        if self.runner is not None and not self.runner.dead:
            self.oracle.violation(self.people[0].index, "faults", f"{context['message']}: {context.get('exception')!r}")

    def _fault(self, person: Person, what: str) -> None:
        self.oracle.violation(person.index, "faults", what)

    async def _kill(self) -> None:
        """kill -9: what was under way stops where it is; the device plays on."""
        rng = self.rng
        self.runner.dead = True
        committed = self.store.committed
        self.oracle.events["store_full"] += self.store.refused
        self.store = self.store.killed(self.clock)
        await self._end_tasks()
        lost, jump, mono = self.store.lost, 0.0, 0.0
        if rng.random() < 0.3:
            jump = rng.choice([-180.0, -5.0, 5.0, 120.0])
        if rng.random() < 0.3:
            mono = rng.choice([-900.0, 5000.0])
        self.skew = ProcessClock(self.clock, self.skew.mono_s + mono, self.skew.wall_s + jump)
        for person in self.people:
            self.oracle.event(person.index, "restart")
            self.oracle.events["lost_records"] += lost > 0
            self.oracle.events["clock_skew"] += mono != 0
            self.oracle.events["wall_jump"] += jump != 0
            self._forget(person, committed, jump)
        await self._start()

    async def _end_tasks(self) -> None:
        """All that the dead process had under way, and what begins because that ends; in the order in which it was begun."""
        while others := [t for t in asyncio.all_tasks() if t is not self._own]:
            for task in sorted(others, key=lambda t: int(t.get_name().rpartition("-")[2])):
                task.cancel()
            await self.clock.settle()

    async def _hand_over(self) -> None:
        """The orderly way: this process lets go, another takes up."""
        self.runner.dead = True
        done = asyncio.ensure_future(self.harness.abandon())
        while not done.done():
            await self.clock.advance(0.05)
            self.store.tick()
        done.result()
        self.store = self.store.killed(self.clock)  # abandon() closes the store: nothing is lost
        for person in self.people:
            self.oracle.event(person.index, "handover")
            self._forget(person, 1 << 61, 0.0)
        await self._start()

    def _forget(self, person: Person, committed: int, jump: float) -> None:
        device = person.device
        if device.session is not None:
            one = device.speaking
            now = device.speaking.chars(self.clock.now()) if one is not None else 0
            end = len(one.reply.text) if one is not None else 0
            device.silence(self.rng.choice([end, self.rng.randint(now, end)]))
        device.session = None
        self.oracle.crash(person.index, committed, jump)
        if not person.left:
            self._open_at[person.index] = self.clock.now() + self.rng.choice([0.0, 0.3, 2.0])

    def _kill_now(self, when: str, since: float) -> bool:
        behind = self.store.queued > self.store.committed
        if when == "any" or self.clock.now() - since > MOST_WAIT_S:
            return True
        if when == "playing":
            return any(p.device.sounding for p in self.people)
        if when == "admitted":
            return any(p.device.waiting or p.device.speaking and not p.device.sounding for p in self.people)
        if when == "submitting":
            return bool(self._submits)
        if when == "admission_behind":
            return behind and any(p.device.sounding and p.admitted_position > self.store.committed for p in self.people)
        return (behind or when == "effect") and any(
            w.session == p.index and p.account.effects[w.key] and (w.number, p.account.runs[w.number]) not in p.account.ended
            for p in self.people for w in p.account.wishes[-8:])

    # -- time

    async def play(self) -> Result:
        self._own = asyncio.current_task()
        asyncio.get_running_loop().set_exception_handler(self._loop_fault)
        rng, start = self.rng, self.clock.now()
        active_s = rng.uniform(60.0, 100.0)
        kills = sorted(start + rng.uniform(3.0, active_s + 10.0) for _ in range(rng.choice([0, 1, 2, 3, 4])))
        handover = start + rng.uniform(5.0, active_s) if rng.random() < 0.1 else None
        closing = {p.index: start + rng.uniform(5.0, active_s) for p in self.people if rng.random() < 0.05}
        when = rng.choice(KILL_WHEN)
        await self._start()
        for person in self.people:
            self._open(person)
        quiet_since = None
        while True:
            now = self.clock.now()
            active = now - start < active_s
            if kills and now >= kills[0] and self._kill_now(when, kills[0]):
                kills.pop(0)
                when = rng.choice(KILL_WHEN)
                await self._kill()
            elif handover is not None and now >= handover and not self._open_at:
                handover = None
                await self._hand_over()
            for index in [i for i, at in self._open_at.items() if at <= now]:
                del self._open_at[index]
                self._reopen(next(p for p in self.people if p.index == index))
            if active and rng.random() < 0.012 * self.unit_s:
                self.oracle.events["store_stall"] += 1
                self.store.stall(now + rng.choice([0.5, 1.5, 6.0, 12.0]))
            for person in self.people:
                self._unit(person, active)
                if person.index in closing and now >= closing[person.index] and person.device.session is not None and not person.left:
                    await self._close(person)
            await self.clock.advance(self.unit_s)
            self.store.tick()
            await self.clock.settle()
            self._away_at = now if self.store.away else self._away_at
            if now - self._away_at > SETTLES_S:  # while it is away, records may wait outside of it
                for claim in self._claims:
                    claim.position = self.store.queued
                self._claims.clear()
            if not active and not kills and handover is None and not self._open_at:
                quiet_since = quiet_since or now
                if now - quiet_since > QUIET_S or self._all_over():
                    break
        await self._end()
        return Result(self.oracle.figures, self.oracle.events, self.oracle.violations)

    def _reopen(self, person: Person) -> None:
        try:
            self._open(person)
        except Exception:
            self._fault(person, traceback.format_exc())
            person.left = True
            return
        if self.rng.random() < 0.8:
            person.device.later(self.rng.choice([0.0, 0.4, 1.5]), lambda session: person.device.reattach())

    def _unit(self, person: Person, active: bool) -> None:
        try:
            person.step(self.unit_s, active)
            session = person.device.session
            if session is None or person.left:
                return
            moment = Moment(round(self.clock.now() * RATE), person.speaking, person.turn_open, person.device.sounding, person.turn)
            reply = session.next_reply(moment)
            if reply is not None:
                self.oracle.admitted(person.index, reply, user_busy=person.floor_taken(), device_busy=person.device.busy)
                person.admitted_position = self.store.queued if WORD.search(reply.text) else 0
                person.device.take(reply)
            for item in session.screen():
                if item.task_id not in person.account.shown:
                    self.oracle.violation(person.index, "faults", f"the screen shows {item.task_id} and was not told")
        except Exception:
            self._fault(person, traceback.format_exc())

    async def _close(self, person: Person) -> None:
        """In the middle of everything."""
        self.oracle.event(person.index, "closed_early")
        person.account.closed_early, person.left = True, True
        person.device.silence(0)
        await self._closed(person)

    async def _closed(self, person: Person) -> None:
        done = asyncio.ensure_future(self.harness.close(self._name(person)))
        for _ in range(100):
            if done.done():
                break
            await self.clock.advance(0.05)
            self.store.tick()
        if not done.done():
            self.oracle.violation(person.index, "nonterminal", "close() did not return within 5 s")
        elif done.exception() is not None:
            self._fault(person, repr(done.exception()))
        person.device.session = None

    def _all_over(self) -> bool:
        return not any(p.device.busy or p.device.due for p in self.people) and all(
            task.closed for p in self.people if p.device.session is not None for task in p.device.session.status())

    async def _end(self) -> None:
        for person in self.people:
            states = self._states[person.index]
            self.oracle.finish(person.index, states)
            for wish in person.account.wishes:
                self._count(wish, person)
            if person.device.session is not None:
                await self._closed(person)
            for task in states.values():
                if task.execution not in EXECUTION_END or task.delivery not in DELIVERY_END:
                    self.oracle.violation(person.index, "nonterminal", f"after close: {task.capability} is {task.execution}/{task.delivery}")
        self.oracle.events["store_full"] += self.store.refused
        self.harness.forget_left()  # sessions that were closed, and the store had not written that when the process died
        self.store.stall(0.0)
        await self.store.close()
        left = self.store.sessions()
        if left:
            self.oracle.violation(self.people[0].index, "leaked", f"{left} are left in the store of closed sessions")
        self.runner.dead = True
        await self._end_tasks()

    def _count(self, wish: Wish, person: Person) -> None:
        if wish.capability in SPEC and person.account.runs[wish.number]:
            self.oracle.events["skill_failure"] += not wish.b.ok or wish.b.raises
            self.oracle.events["hang"] += wish.b.after_s > 100
            self.oracle.events["slow"] += 10 <= wish.b.after_s < 100


def play(seed: int, group: int, story=None) -> Result:
    """One group of sessions. `story(session, time, what)` is told what happens."""
    phrases._wording()._turn.clear()  # its variants take turns for the whole process: a replay must begin with the same
    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        return runner.run(World(seed, group, story).play())

