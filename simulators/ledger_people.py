"""The people of the ledger evaluation: each speaks, asks, corrects, cancels, repeats itself and talks over the assistant, at random."""
import random
from typing import TYPE_CHECKING

from harness import DelegateRequest, Evidence, UserWords
from harness.errors import JournalFault, UnknownTask
from simulators.ledger_device import Device
from simulators.ledger_oracle import Account
from simulators.ledger_skills import SPEC, Prose, Wish, behaviour

if TYPE_CHECKING:
    from simulators.ledger_sessions import World

RATE = 16_000
CORRECTABLE_S = 40.0
"""A request this young is still what a correction of its kind is about, whatever became of it."""
ACTIONS = {"typed": 30, "prose": 10, "parallel": 3, "correct": 9, "correct_planned": 4, "cancel_voice": 4, "cancel_planned": 3, "status": 5,
           "repeat": 4, "same_key": 6, "bad_arguments": 2, "unknown_capability": 2, "aside": 2, "unclear": 2, "planner_hangs": 1,
           "planner_breaks": 1, "chat": 5, "overload": 1}
KEEPS_REPEATING = 0.3
"""Share of the people who ever ask to hear something again: with the others every second hearing is a violation."""


class Person:
    """The user of one session. `speaking` and `turn_open` are the floor as the front end sees it."""

    def __init__(self, world: "World", index: int, rng: random.Random, quirks: float):
        self.world, self.index, self.rng = world, index, rng
        self.account: Account = Account(index)
        world.oracle.accounts[index] = self.account
        self.device = Device(index, rng, world.oracle, world.clock, quirks)
        self.turn = 0
        self.order: list[Wish] = []
        """What was asked of a skill, in the order in which the harness came to know it."""
        self.speaking = self.turn_open = False
        self._quiet_at = self._turn_ends = 0.0
        self._says = ""
        self._yields: float | None = None
        """When the front end has made up its mind that the assistant is to fall silent."""
        self._again: list[tuple[float, Wish]] = []
        self._since: dict[str, float | None] = {"speaking": None, "turn": None, "silent": 0.0}
        self.repeats_things = rng.random() < KEEPS_REPEATING
        self.left = False
        self.admitted_position = 0
        """Where the store stood when the last reply with an outcome was admitted; 0 for another."""

    # -- the floor

    def floor_taken(self) -> bool:
        """The user has the floor, by the stated rule: who speaks or holds a turn for 10 s without a pause is noise or a lost turn end."""
        now = self.world.clock.now()

        def lasts(name: str) -> float:
            return now - self._since[name] if self._since[name] is not None else 0.0

        noise = lasts("speaking") >= 10.0 - 1e-6
        if self.speaking and not noise:
            return True
        return self.turn_open and not (lasts("turn") >= 10.0 - 1e-6 and (noise or lasts("silent") >= 3.0 - 1e-6))

    def _floor(self) -> None:
        now = self.world.clock.now()
        for name, on in (("speaking", self.speaking), ("turn", self.turn_open), ("silent", not self.speaking)):
            if not on:
                self._since[name] = None
            elif self._since[name] is None:
                self._since[name] = now

    def step(self, unit_s: float, active: bool) -> None:
        """One unit of the person's life. `active`: something new may be wanted."""
        now, rng = self.world.clock.now(), self.rng
        self.device.step()
        if self.speaking and now >= self._quiet_at:
            self.speaking = False
        if self.turn_open and now >= self._turn_ends:
            self.turn_open = False
            says, self._says = self._says, ""
            if says and self.device.session is not None and not self.left:
                self._act(says)
        elif active and not self.speaking and not self.turn_open and not self.left:
            self._maybe_speak(now, rng, unit_s)
        if self._yields is not None and now >= self._yields:
            self._yields = None
            self.device.cut(stop=rng.random() < 0.2)
        if self.device.session is not None and not self.left:
            due, self._again = [w for t, w in self._again if t <= now], [(t, w) for t, w in self._again if t > now]
            for wish in due:
                self.world.oracle.event(self.index, "sent_again", f"q{wish.number}")
                self._send(wish)
            if active and rng.random() < 0.05 * unit_s:
                self._cancel()
        self._floor()

    def _maybe_speak(self, now: float, rng: random.Random, unit_s: float) -> None:
        if rng.random() < 0.35 * unit_s:
            self.speaking = self.turn_open = True
            self._quiet_at = now + rng.uniform(0.3, 2.0)
            self._turn_ends = self._quiet_at + rng.choice([0.1, 0.2, 0.4])
            self._says = rng.choices(list(ACTIONS), list(ACTIONS.values()))[0]
            if self._says == "repeat" and not self.repeats_things:
                self._says = "typed"
            if self.device.sounding and rng.random() < 0.7:
                self._yields = now + rng.choice([0.3, 0.5])
        elif rng.random() < 0.006 * unit_s:
            self.world.oracle.event(self.index, "noise")
            self.speaking, self._quiet_at = True, now + rng.uniform(11.0, 22.0)
        elif rng.random() < 0.004 * unit_s:
            self.world.oracle.event(self.index, "stuck_turn")
            self.turn_open, self._turn_ends, self._says = True, now + rng.uniform(11.0, 20.0), ""
        elif self.device.sounding and rng.random() < 0.08 * unit_s:  # a word in between, and the assistant yields
            self.speaking, self._quiet_at, self._yields = True, now + 0.4, now + 0.3

    # -- what is wanted

    def _act(self, says: str) -> None:
        self.turn += 1
        self.account.turns.append(self.world.clock.now())
        self.device.session.user_turn(self.turn)
        getattr(self, f"_{says}")()

    def _wish(self, capability: str, parent: Wish | None = None) -> Wish:
        number = len(self.account.wishes)
        wish = Wish(number, self.index, capability, behaviour(self.rng, capability), self.world.clock.now(), self.turn, parent=parent)
        self.account.wishes.append(wish)
        self.world.wishes[self.index, f"s{self.index}q{number}"] = wish
        return wish

    def _some_skill(self) -> str:
        return self.rng.choice(["find", "book", "book", "set", "set", "note", "look", "news", "trip", "call", "index"])

    def _request(self, capability: str = "", repair: str = "new", arguments: dict | None = None, say: str = "", event: str = "request",
                 sync: bool = False) -> Wish:
        """A typed request, or prose where `capability` is ''."""
        if not say and any(t > self.world.clock.now() - 20 and c != capability for t, c in self.account.requests[-3:]):
            self.world.oracle.event(self.index, "topic_change")
        wish = self._wish(capability or "prose")
        wish.key = f"key-{self.index}-{wish.number}"
        pos = round(self.world.clock.now() * RATE)
        words = say or f"please s{self.index}q{wish.number}"
        typed = capability if capability in SPEC or capability == "no.skill" else None
        wish.request = DelegateRequest(wish.key, self.turn, pos, wish.number, words, typed,
                                       wish.args | (arguments or {}) if typed else {}, repair, self.rng.choice(["en", "en", "zh"]))
        self.world.oracle.event(self.index, event, f"q{wish.number} {capability} {repair}")
        if capability in SPEC:
            self.order.append(wish)
        self._send(wish, sync)
        return wish

    def _send(self, wish: Wish, sync: bool = False) -> None:
        request, session = wish.request, self.device.session
        if request.repair in ("update", "cancel"):  # it counts when it arrives: one that the store refused is sent again
            (self.account.corrections if request.repair == "update" else self.account.cancels).append(self.world.clock.now())
        if wish.capability in SPEC:
            self.account.requests.append((self.world.clock.now(), wish.capability))
        words = UserWords(request.turn, request.prose, max(0, request.opened_pos - RATE), request.opened_pos)
        evidence = Evidence.freeze(request.opened_pos, request.opened_seq, [words])
        if not sync and self.rng.random() < 0.7:
            self.world.submit(self, wish, evidence)
            return
        try:
            self.world.oracle.accepted(wish, session.accept(request, evidence))
        except JournalFault:
            self.refused(wish)

    def refused(self, wish: Wish) -> None:
        """The store was away: the front end asks again with the same key."""
        self.world.oracle.event(self.index, "store_refused", f"q{wish.number}")
        wish.refused = True
        self._again.append((self.world.clock.now() + self.rng.uniform(0.5, 3.0), wish))

    # -- the actions

    def _typed(self) -> None:
        self._request(self._some_skill())

    def _prose(self) -> None:
        self._planned([self._some_skill()], "prose")

    def _parallel(self) -> None:
        self._planned([self._some_skill() for _ in range(self.rng.randint(2, 3))], "parallel")

    def _planned(self, capabilities: list[str], event: str, operation: str = "new", target=None, done=None, reply: str = "plan",
                 after_s: float | None = None) -> None:
        number = len(self.account.wishes)
        say = f"please s{self.index}q{number} {event}"
        prose = Prose(operation=operation, target=target, reply=reply, done=done,
                      after_s=self.rng.choice([0.0, 0.1, 1.0, 3.0]) if after_s is None else after_s)
        self.world.proses[say] = prose
        def answered(chosen: str | None) -> None:
            now = self.world.clock.now()
            for i, part in enumerate(prose.parts):
                if not part.planned:
                    part.planned = True
                    self.account.requests.append((now, part.capability))
                    if i:
                        self.order.append(part)
            if done is not None:
                done(chosen)

        prose.done = answered
        parent = self._request("", say=say, event=event)
        parts = [self._wish(capability, parent) for capability in capabilities]
        for part in parts:
            part.planned, part.key = False, parent.key
        self.order += parts[:1]
        prose.parts = tuple(parts)

    def _correct(self) -> None:
        asked = [w for w in self.order if w.planned and w.capability != "strict"]
        capability = self.rng.choice(asked[-4:]).capability if asked else self._some_skill()
        now, known = self.world.clock.now(), self.account.obsolete
        old = next((w for w in reversed(self.order) if w.capability == capability and w.planned
                    and not (w.number in known and known[w.number].reason == "superseded")), None)
        self._request(capability, "update", event="correction", sync=True)
        sure = old is not None and not self._fixed(old) and now - old.at < CORRECTABLE_S and not any(t >= old.at for t in self.account.crashes)
        tied = any(w.capability == capability and (w is not old and w.parent is not None and w.parent is old.parent  # asked in one breath
                                                   or (w.parent or w).refused) for w in self.order) if sure else True
        if not tied and not self._again:  # else in an order that only the store knows
            self.world.claim(old, "superseded")

    def _correct_planned(self) -> None:
        targets = [w for w in self.order if w.task_id and w.planned and w.parent is None and w.number not in self.account.obsolete]
        old = targets[-1] if targets else None
        self.account.corrections.append(self.world.clock.now())

        def done(chosen: str | None) -> None:
            self.account.corrections.append(self.world.clock.now())
            if old is not None and old.number not in self.account.obsolete and not self._gone(chosen) and not self._fixed(old):
                self.world.claim(old, "superseded")

        self._planned([old.capability if old else self._some_skill()], "correct_planned", "update" if old else "new",
                      (lambda: old.task_id) if old else None, done, after_s=self.rng.choice([0.0, 0.5]))

    def _fixed(self, wish: Wish) -> bool:
        """Its work is under way and can't be stopped: a correction is refused, and the user told so."""
        return not SPEC[wish.capability].cancellable and (wish.number, self.account.runs[wish.number]) not in self.account.ended

    def _gone(self, task_id: str | None) -> bool:
        return task_id is None or self.device.session is None or all(t.id != task_id for t in self.device.session.status())

    def _cancel_voice(self) -> None:
        self._request(self.rng.choice([self._some_skill(), ""]), "cancel", event="cancel_voice", say="stop that", sync=True)

    def _cancel_planned(self) -> None:
        targets = [w for w in self.order if w.task_id and w.parent is None and w.planned and SPEC[w.capability].cancellable]
        if not targets:
            return self._chat()
        old = targets[-1]

        def done(chosen: str | None) -> None:
            self.account.cancels.append(self.world.clock.now())
            if not self._gone(chosen):
                self.world.claim(old, "cancelled")

        self._planned([], "cancel_planned", "cancel", lambda: old.task_id, done, after_s=self.rng.choice([0.0, 0.3]))

    def _cancel(self) -> None:
        """Over the API, as a button would."""
        wishes = [w for w in self.account.wishes[-12:] if w.task_id and w.number not in self.account.obsolete]
        if not wishes:
            return
        wish = self.rng.choice(wishes[-4:])
        self.account.cancels.append(self.world.clock.now())
        try:
            stopped = self.device.session.cancel(wish.task_id)
        except UnknownTask:
            if wish.promised:
                self.world.oracle.violation(self.index, "lost", f"q{wish.number} was promised and is not known any more")
            return
        if stopped:
            self.world.oracle.event(self.index, "cancel", f"q{wish.number}")
            for part in [wish, *(w for w in self.order if w.parent is wish and w is self._first_part(wish))]:
                self.world.claim(part, "cancelled")

    def _first_part(self, parent: Wish) -> Wish | None:
        return next((w for w in self.account.wishes if w.parent is parent), None)

    def _status(self) -> None:
        self._request("", "status", event="status", say="how is it going", sync=True)

    def _repeat(self) -> None:
        self.account.repeats += 1
        self._request("", "repeat", event="repeat", say="say that again", sync=True).capability = "repeat"

    def _same_key(self) -> None:
        wishes = [w for w in self.account.wishes if w.request is not None and w.capability != "repeat"]
        if not wishes:
            return self._typed()
        wish = self.rng.choice(wishes[-6:])
        old = any(t > wish.at for t in self.account.crashes)
        self.world.oracle.event(self.index, "same_key_after_restart" if old else "same_key", f"q{wish.number}")
        self._send(wish)

    def _bad_arguments(self) -> None:
        self._request("strict", arguments={"level": "much"}, event="bad_arguments")

    def _unknown_capability(self) -> None:
        self._request("no.skill", event="unknown_capability")

    def _aside(self) -> None:
        self.account.asides.add(len(self.account.wishes))
        self._planned([], "aside", reply="aside")

    def _unclear(self) -> None:
        self._planned([], "unclear", reply="ask")

    def _planner_hangs(self) -> None:
        self._planned([], "planner_hangs", reply="ask", after_s=300.0)

    def _planner_breaks(self) -> None:
        self._planned([], "planner_breaks", reply="raise")

    def _chat(self) -> None:
        self.world.oracle.event(self.index, "chat")

    def _overload(self) -> None:
        self.world.oracle.event(self.index, "overload")
        for _ in range(self.rng.randint(6, 12)):
            self._request(self.rng.choice(["find", "index", "note"]), sync=True)
