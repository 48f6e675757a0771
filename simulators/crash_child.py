"""The process that `venus eval crash` kills: a harness with a durable store and scripted skills, told what to do on stdin.

    python -m simulators.crash_child '{"store": "/tmp/x/journal.sqlite", "generation": 3, "slow_ms": 0, "mutate": ""}'

One JSON object a line each way. What happens is written to stdout at once and unbuffered, so that a kill can't take it back.
In:  submit (n, key, skill, turn, text) · report (reply, heard, unheard, completed) · segment (seg, chars) · close
Out: open · accepted (n, task) · refused (n) · began, effect, ended (n, key) · moved (task, machine, to, reason) · say (reply, seg, kind, text)
     · shown (task, n) · states (tasks) · closed
"""
import asyncio
import dataclasses
import json
import logging
import os
import random
import sys
import time
from unittest import mock

from harness import DelegateRequest, Harness, MemoryStore, Moment, SkillBackend, SkillCall, SkillOutcome, SkillSpec, open_store
from harness.errors import HarnessError
from harness.testing import ListedCatalog
from simulators.ledger_mutations import mutated
from venus_edge.clock import SystemClock
from venus_edge.errors import VenusError

SESSION = "crash"
UNIT_S = 0.02
ANY = frozenset({"*"})
SPECS = (
    SkillSpec("look", derived=ANY),
    SkillSpec("find", slow=True, timeout_s=10.0, derived=ANY),
    SkillSpec("set", idempotent=False, derived=ANY),
    SkillSpec("book", slow=True, timeout_s=10.0, idempotent=False, derived=ANY),
)
TAKES_S = {"look": 0.0, "find": 0.5, "set": 0.0, "book": 0.6}
MUTATIONS = {"no_wal": "", "no_flush_before_run": "flush_before_run", "no_flush_on_submit": "durable_submit", "rerun_all": "rerun_only_idempotent",
             "redeliver_blindly": "recovery_delivering", "no_durable_admission": "durable_admission"}


def emit(what: str, **fields) -> None:
    os.write(1, (json.dumps({"ev": what, **fields}) + "\n").encode())


class Skills:
    """Each run says when it begins, has its effect and ends; its words name the request, the process and the run."""

    def __init__(self, generation: int, seed: int):
        self.generation, self.runs, self.rng = generation, 0, random.Random(seed)

    async def run(self, call: SkillCall, on_progress) -> SkillOutcome:
        n, key = call.arguments["n"], call.key
        self.runs += 1
        run = self.runs
        emit("began", n=n, key=key)
        takes = TAKES_S[call.skill_id]
        at = self.rng.choice([0.0, takes / 2, takes])
        await asyncio.sleep(at)
        if call.skill_id in ("set", "book"):
            emit("effect", n=n, key=key)
        await asyncio.sleep(takes - at)
        emit("ended", n=n, key=key)
        words = " ".join(f"c{n}g{self.generation}x{run}w{k}" for k in range(3))
        return SkillOutcome(True, "done", f"{words}.")


def store_of(options: dict):
    """The store to use; `slow_ms` makes each of its commits take so long, as a busy disk does."""
    if options["mutate"] == "no_wal":
        return MemoryStore()
    store = open_store(options["store"])
    if options["slow_ms"]:
        write = store._backend.write

        def slowly(ops):
            time.sleep(options["slow_ms"] / 1e3)
            write(ops)
        mock.patch.object(store._backend, "write", slowly).start()
    return store


class Worker:
    """The session worker in miniature: units, replies, reports."""

    def __init__(self, options: dict):
        self.catalog = ListedCatalog(*SPECS, sentences={(spec.id, "topic"): "thing c{n}q" for spec in SPECS})
        self.backend = SkillBackend(self.catalog, Skills(options["generation"], options["seed"]))
        self.harness = Harness(self.backend, self.catalog, SystemClock(), store=store_of(options))
        self.generation, self.session = options["generation"], None
        self.speaking, self.turn, self.segments = "", 0, 0
        self.numbers: dict[str, int] = {}
        """Task: the request that made it."""

    async def run(self) -> None:
        await self.harness.start()
        self.session = self.harness.open_session(SESSION, observer=self._moved, on_screen=self._shown)
        for task in self.session.status():
            self.numbers[task.id] = task.arguments.get("n", -1)
        emit("open", t=time.monotonic(), tasks=list(self.numbers))
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        units = asyncio.ensure_future(self._units())
        running: set[asyncio.Task] = set()
        while line := await reader.readline():
            order = json.loads(line)
            if order["do"] == "close":
                break
            if order["do"] == "submit":
                task = asyncio.ensure_future(self._submit(order))
                running.add(task)
                task.add_done_callback(running.discard)
            elif order["do"] == "report":
                self.speaking = "" if self.speaking == order["reply"] else self.speaking
                self.session.reply_finished(order["reply"], heard=order["heard"], unheard=order["unheard"], completed=order["completed"],
                                            confirmed=True)
            else:
                self._segment(order)
        units.cancel()
        emit("states", tasks=[dataclasses.asdict(task) | {"closed": task.closed} for task in self.session.status()])
        await self.harness.close()
        emit("closed")

    async def _submit(self, order: dict) -> None:
        self.turn = max(self.turn, order["turn"])
        pos = round(time.monotonic() * 16_000)
        request = DelegateRequest(order["key"], order["turn"], pos, order["n"], order["text"], order["skill"], {"n": order["n"]})
        try:
            task_id = await self.harness.submit(SESSION, request)
        except HarnessError as error:
            emit("refused", n=order["n"], code=error.code)
            return
        self.numbers[task_id] = order["n"]
        emit("accepted", n=order["n"], task=task_id)

    def _segment(self, order: dict) -> None:
        """What the device tells of a segment that a process before this one sent."""
        reply_id, spans = self.session.doubtful(order["seg"])
        if reply_id:
            heard = " ".join(words for words, end in spans if end <= order["chars"])
            unheard = " ".join(words for words, end in spans if end > order["chars"])
            self.session.reattach(reply_id, heard=heard, unheard=unheard, completed=not unheard)

    async def _units(self) -> None:
        while True:
            reply = self.session.next_reply(Moment(round(time.monotonic() * 16_000), False, False, bool(self.speaking), self.turn))
            if reply is not None:
                self.segments += 1
                seg, self.speaking = f"seg-{self.generation}-{self.segments}", reply.id
                spans, at = [], 0
                for word in reply.text.split():
                    at = reply.text.index(word, at) + len(word)
                    spans.append((word, at))
                self.session.reply_started(reply.id, seg)
                self.session.reply_speech(reply.id, seg, spans)
                emit("say", reply=reply.id, seg=seg, kind=reply.kind, text=reply.text)
            await asyncio.sleep(UNIT_S)

    def _moved(self, transition) -> None:
        task = transition.task
        self.numbers[task.id] = task.arguments.get("n", -1)
        emit("moved", n=self.numbers[task.id], task=task.id, machine=transition.machine, to=transition.dst, reason=transition.reason)

    def _shown(self, item) -> None:
        emit("shown", n=self.numbers.get(item.task_id, -1), task=item.task_id, reason=item.reason)


def main() -> int:
    options = json.loads(sys.argv[1])
    logging.getLogger("harness").setLevel(logging.ERROR)  # that a session was left behind is the point here
    with mutated(MUTATIONS.get(options["mutate"], "")):
        try:
            asyncio.run(Worker(options).run())
        except VenusError as error:
            emit("failed", what=error.message)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
