"""The user and the device of `venus eval crash`: they outlive the process that is killed, and keep their own account.

A device plays in real time what it was given, also while nobody is there, and tells the next process what was heard. The user asks for
things, hears outcomes and counts; what a promise is, is an answer to `submit`.
"""
import asyncio
import json
import os
import random
import sys
import time
from collections import Counter

from harness.task import DELIVERY_END
from simulators.crash_child import SPECS
from simulators.crash_speech import CHARS_PER_S, TOPIC, WORD, Speech, Wish
from venus_edge.errors import VenusError

PHASES = ("accept", "run", "completed", "admission", "playing", "interrupted", "recovery")
"""Where the process is killed: before its answer to a request, while a skill runs, as its result comes, as a reply is admitted, while it
is played, right after an interruption was reported, and while it starts."""
TICK_S = 0.004
MOST_OPEN = 2
"""Promised things that the user waits for at once."""
SIGHT_S = 6.0
OPEN_S = 20.0
END_S = 15.0
SKILL = {spec.id: spec for spec in SPECS}
SLOW = ("find", "book")


class ChildFailed(VenusError):
    code = "crash_child"
    advice = "Look at the message; the evaluation did not come to its end."


class World:
    def __init__(self, store: str, rng: random.Random, mutate: str = "", story=None):
        self.store, self.rng, self.mutate, self.story = store, rng, mutate, story
        self.figures: Counter = Counter()
        self.kills: Counter = Counter()
        self.restarts = 0
        self.told_s: list[float] = []
        self.open_s: list[float] = []
        self.wishes: list[Wish] = []
        self.violations: list[str] = []
        self._words: Counter = Counter()
        self._notices: set[int] = set()
        self._effects: Counter = Counter()
        self._due: dict[int, float] = {}
        self._speech: Speech | None = None
        self._old: list[tuple[str, int]] = []
        """(segment, characters heard) of processes before this one."""
        self._process: asyncio.subprocess.Process | None = None
        self._generation, self._turn, self._open = 0, 0, False
        self._sights: list[tuple[str, int]] = []
        self._seen = asyncio.Event()
        self._states: list[dict] | None = None
        self._untold: set[str] = set()
        """Tasks whose telling has not ended, as far as the process said."""
        self._closed = asyncio.Event()
        self._failed = ""

    # -- the run

    async def play(self, kills: int) -> None:
        """So many kills, each followed by a restart; then the end in order."""
        device = asyncio.ensure_future(self._device())
        try:
            order: list[str] = []
            for _ in range(kills):
                if not order:
                    order = list(PHASES)
                    self.rng.shuffle(order)
                phase = order.pop()
                if phase == "recovery" and self.rng.random() < 0.5:
                    await self._start(wait=False)
                    await asyncio.sleep(self.rng.uniform(0.0, 0.6))
                    await self._kill("recovery")
                    continue
                await self._start()
                await self._kill(phase if await self._reach(phase) else "other")
            await self._start()
            await self._finish()
        finally:
            device.cancel()
            if self._process is not None and self._process.returncode is None:
                self._process.kill()
                await self._process.wait()
        if self._failed:
            raise ChildFailed(self._failed)

    async def _start(self, wait: bool = True) -> None:
        self._generation += 1
        self.restarts += self._generation > 1
        options = {"store": self.store, "generation": self._generation, "seed": self.rng.randrange(1 << 30), "mutate": self.mutate,
                   "slow_ms": self.rng.choice([0, 0, 0, 8, 30])}
        self._slow_s = options["slow_ms"] / 1e3
        self._began = time.monotonic()
        self._sights.clear()
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "simulators.crash_child", json.dumps(options), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, limit=1 << 22)
        self._reading = asyncio.ensure_future(self._read(self._process))
        if wait:
            await self._until(lambda: self._open or bool(self._failed), OPEN_S)
            if not self._open:
                raise ChildFailed(self._failed or f"the process did not open its session within {OPEN_S:g} s")

    async def _kill(self, phase: str) -> None:
        self.kills[phase] += 1
        self._tell(f"kill -9 ({phase})")
        self._open = False
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._reading  # all that it said before it died
        self._open = False
        self._due.clear()
        speech = self._speech
        if speech is not None and self.rng.random() < 0.5:  # half of the time it had not been sent to the end
            self._cut(speech, min(len(speech.text), speech.chars() + self.rng.randint(0, 20)), late=True)

    async def _reach(self, phase: str) -> bool:
        """Bring about what the phase is about, then wait for a random instant of it."""
        rng, short = self.rng, lambda: asyncio.sleep(self.rng.uniform(0.0, 0.004 + self._slow_s))
        await asyncio.sleep(rng.uniform(0.0, 0.4))
        if phase == "recovery":
            return True
        if phase == "accept":
            self._ask(rng.choice(list(SKILL)))
            await short()
            return True
        if phase == "run":
            if not await self._sight("began", ask=SLOW):
                return False
            await (asyncio.sleep(rng.uniform(0.0, 0.6)) if rng.random() < 0.5 else short())
            return True
        if phase in ("completed", "admission"):
            if not await self._sight("ended" if phase == "completed" else "delivering", ask=tuple(SKILL)):
                return False
            await short()
            return True
        if not await self._until(lambda: self._telling() is not None, SIGHT_S, ask=("look", "set")):
            return False
        speech = self._telling()
        await asyncio.sleep(rng.uniform(0.0, len(speech.text) / CHARS_PER_S))
        if phase == "interrupted" and not speech.over:
            self._cut(speech, speech.chars())
            await short()
        return True

    def _telling(self) -> Speech | None:
        one = self._speech
        return one if one is not None and one.outcomes and one.generation == self._generation else None

    async def _finish(self) -> None:
        await self._until(lambda: all(w.told or not w.promised for w in self.wishes) and self._speech is None and not self._untold, END_S, quiet=True)
        await asyncio.sleep(0.3)
        self._send(do="close")
        try:
            await asyncio.wait_for(self._closed.wait(), 10.0)
        except asyncio.TimeoutError:
            self._violation("nonterminal", "the harness did not close within 10 s")
        for wish in self.wishes:
            self._judge(wish)
        for task in self._states or ():
            if not task["closed"]:
                self._violation("nonterminal", f"{task['capability']} is {task['execution']}/{task['delivery']}")
        for n, began in self._due.items():
            self.told_s.append(time.monotonic() - began)
            self._tell(f"c{n} was never told")

    def _judge(self, wish: Wish) -> None:
        runs = {(g, x) for n, g, x, _ in self._words if n == wish.n}
        full = sum(min(self._words[wish.n, g, x, k] for k in range(3)) for g, x in runs)
        if full > 1:
            self._violation("duplicate", f"c{wish.n} heard in full {full} times")
        if self._effects[wish.key] > 1 and not SKILL[wish.skill].idempotent:
            self._violation("duplicate", f"c{wish.n} ({wish.skill}) had its effect {self._effects[wish.key]} times")
        if wish.promised and self._heard(wish.n) < 2 and wish.n not in self._notices and not wish.shown:
            self._violation("lost", f"c{wish.n} ({wish.skill}) was promised and never told")

    def _heard(self, n: int) -> int:
        """How many of the three words of an outcome were heard."""
        runs = {(g, x) for m, g, x, _ in self._words if m == n}
        return max((sum(self._words[n, g, x, k] > 0 for k in range(3)) for g, x in runs), default=0)

    # -- the user

    def _ask(self, skill: str) -> Wish:
        self._turn += 1
        wish = Wish(len(self.wishes), f"key-{len(self.wishes)}", skill, self._turn)
        self.wishes.append(wish)
        self._submit(wish)
        return wish

    def _submit(self, wish: Wish) -> None:
        self._tell(f"ask c{wish.n} {wish.skill}")
        self._send(do="submit", n=wish.n, key=wish.key, skill=wish.skill, turn=wish.turn, text=f"please c{wish.n}")

    def _user(self, quiet: bool = False, ask: tuple[str, ...] = ()) -> None:
        """Something new is wanted now and then."""
        waiting = sum(w.promised and not w.told or not w.promised and not w.forgotten for w in self.wishes)
        if not quiet and self._open and waiting < MOST_OPEN and self.rng.random() < (0.2 if ask else 0.02):
            self._ask(self.rng.choice(ask or tuple(SKILL)))

    async def _until(self, what, seconds: float, *, quiet: bool = False, ask: tuple[str, ...] = ()) -> bool:
        end = time.monotonic() + seconds
        while not what():
            if time.monotonic() > end or self._failed:
                return False
            self._user(quiet or not ask, ask)
            await asyncio.sleep(TICK_S)
        return True

    async def _sight(self, what: str, ask: tuple[str, ...]) -> bool:
        """Wait for something to happen from now on; react at once, not at the next tick."""
        self._sights.clear()
        end = time.monotonic() + SIGHT_S
        while time.monotonic() < end:
            if any(name == what and self.wishes[n].skill in ask for name, n in self._sights):
                return True
            self._user(ask=ask)
            self._seen.clear()
            try:
                await asyncio.wait_for(self._seen.wait(), 0.02)
            except asyncio.TimeoutError:
                pass
        return False

    # -- the device

    async def _device(self) -> None:
        while True:
            one = self._speech
            if one is not None:
                chars = one.chars()
                for n, at in one.outcomes.items():
                    if at < chars:
                        self._begins(n)
                if chars >= len(one.text):
                    self._cut(one, len(one.text))
            await asyncio.sleep(TICK_S)

    def _begins(self, n: int) -> None:
        """The user begins to hear of it, or to see it."""
        self.wishes[n].told = True
        began = self._due.pop(n, None)
        if began is not None:
            self.told_s.append(time.monotonic() - began)
            self._tell(f"c{n} told {self.told_s[-1]:.2f} s after the restart")

    def _cut(self, one: Speech, chars: int, late: bool = False) -> None:
        """It is silent from here on: what was heard counts, and is reported to whoever sent it, or later to the next process."""
        one.over, self._speech = True, None
        for match in WORD.finditer(one.text):
            if match.end() <= chars:
                self._words[tuple(map(int, match.groups()))] += 1
        spoken = {int(m[1]) for m in WORD.finditer(one.text)}
        for match in TOPIC.finditer(one.text):
            if one.outcomes and match.end() <= chars and int(match[1]) not in spoken:
                self._notices.add(int(match[1]))
        self._tell(f"heard {chars} of {len(one.text)} of {one.seg}: {one.text}")
        if one.generation == self._generation and self._open and not late:
            heard = one.text[:chars] if chars >= len(one.text) else one.text[:chars].rpartition(" ")[0]
            self._send(do="report", reply=one.reply, heard=heard, unheard=one.text[len(heard):].strip(), completed=chars >= len(one.text))
        else:
            self._old.append((one.seg, chars))

    async def _reattach(self) -> None:
        await asyncio.sleep(self.rng.choice([0.0, 0.05, 0.3]))
        if not self._open:
            return
        one = self._speech
        if one is not None and one.generation < self._generation:  # flushed, as a worker asks the device to
            self._cut(one, one.chars())
        for seg, chars in self._old[-4:]:
            self._send(do="segment", seg=seg, chars=chars)
        self._old.clear()

    # -- the process

    def _send(self, **order) -> None:
        if self._process.returncode is None and not self._process.stdin.is_closing():
            try:
                self._process.stdin.write((json.dumps(order) + "\n").encode())
            except (BrokenPipeError, ConnectionResetError):
                pass

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        generation = self._generation
        try:
            while line := await process.stdout.readline():
                if line.endswith(b"\n"):
                    getattr(self, "_on_" + (event := json.loads(line)).pop("ev"))(generation=generation, **event)
        except Exception as error:
            self._failed = self._failed or f"{type(error).__name__}: {error}"

    def _saw(self, what: str, n: int) -> None:
        self._sights.append((what, n))
        self._seen.set()

    def _on_open(self, generation: int, t: float, tasks: list[str]) -> None:
        self._open = True
        self._untold &= set(tasks)
        self.open_s.append(time.monotonic() - self._began)
        self._tell(f"process {generation} has opened the session, {len(tasks)} tasks")
        for wish in self.wishes:
            if wish.promised and not wish.shown and self._heard(wish.n) < 3 and wish.n not in self._notices:
                wish.told = False
                self._due[wish.n] = t
            elif not wish.promised and not wish.forgotten:
                wish.forgotten = self.rng.random() < 0.3
                if not wish.forgotten:
                    self._submit(wish)
        self._reattaching = asyncio.ensure_future(self._reattach())

    def _on_failed(self, generation: int, what: str) -> None:
        self._failed = what

    def _on_accepted(self, generation: int, n: int, task: str) -> None:
        self.wishes[n].promised = True
        self._tell(f"c{n} is promised")

    def _on_refused(self, generation: int, n: int, code: str) -> None:
        self.wishes[n].forgotten = True
        self._tell(f"c{n} was refused: {code}")

    def _on_began(self, generation: int, n: int, key: str) -> None:
        self._saw("began", n)

    def _on_ended(self, generation: int, n: int, key: str) -> None:
        self._saw("ended", n)

    def _on_effect(self, generation: int, n: int, key: str) -> None:
        self._effects[key] += 1
        self._tell(f"effect of c{n}")

    def _on_moved(self, generation: int, n: int, task: str, machine: str, to: str, reason: str) -> None:
        self._tell(f"  {task[-6:]} c{n} {machine} {to} {reason}")
        if machine == "delivery" and to in DELIVERY_END:
            self._untold.discard(task)
            if to == "delivered" and n >= 0 and self._heard(n) >= 2:  # enough of it, and nothing more to come
                self._due.pop(n, None)
                self.wishes[n].told = True
        else:
            self._untold.add(task)
        if to == "delivering" and n >= 0:
            self._saw("delivering", n)

    def _on_say(self, generation: int, reply: str, seg: str, kind: str, text: str) -> None:
        if self._speech is not None:
            self._violation("over_assistant", f"'{text[:30]}' while another reply is playing")
            self._cut(self._speech, self._speech.chars())
        one = Speech(reply, seg, kind, text, generation, time.monotonic() + 0.02)
        if kind in ("result", "notice", "question"):
            for match in (*TOPIC.finditer(text), *WORD.finditer(text)):
                begins = text.rfind(". ", 0, match.start()) + 1  # with its sentence
                one.outcomes[int(match[1])] = min(begins, one.outcomes.get(int(match[1]), begins))
        self._tell(f"say {kind} {seg}: {text}")
        self._speech = one

    def _on_shown(self, generation: int, n: int, task: str, reason: str) -> None:
        self._tell(f"shown c{n}: {reason}")
        if n >= 0:
            self.wishes[n].shown = True
            self._begins(n)

    def _on_states(self, generation: int, tasks: list[dict]) -> None:
        self._states = tasks

    def _on_closed(self, generation: int) -> None:
        self._closed.set()

    def _violation(self, kind: str, what: str) -> None:
        self.figures[kind] += 1
        self.violations.append(f"{kind}: {what}")
        self._tell(f"*** {kind}: {what}")

    def _tell(self, what: str) -> None:
        if self.story is not None:
            self.story(time.monotonic(), what)
