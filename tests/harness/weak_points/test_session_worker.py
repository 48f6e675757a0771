"""Weak points where the session worker meets the harness: what a front end sends and what a store refuses cost one request (Peer 10, 26)."""
import asyncio

import numpy as np
import pytest
from points_world import FIND, SPECS, Instant

from cloud_core.conversation import Conversation
from cloud_core.front_end import Decision, DelegateEvent
from cloud_core.mic import MicAssembler
from harness import Harness, Moment, SkillBackend
from harness.evidence import AudioClip
from harness.journal.writer import DurableStore
from harness.testing import ListedCatalog
from venus_edge.clock import SystemClock
from venus_edge.trace import Trace


class Link:
    """A device that is there and plays nothing."""

    async def open_speech(self, seg, rate):
        raise ConnectionError

    def __getattr__(self, name):
        return lambda *args, **fields: None


class AwayBackend:
    """A store's backend that refuses everything while `away`."""

    name, rest_s = "double", None

    def __init__(self):
        self.away = False

    def open(self):
        return []

    def write(self, ops):
        if self.away:
            raise OSError("no space left on device")

    def records(self, journal):
        return []

    notes = records

    def close(self):
        pass


class Quiet:
    """A front end that hears and says nothing, but opens the delegates of `at` with its n-th unit."""

    def __init__(self, at=None):
        self.at, self.n = at or {}, 0

    async def step(self, unit):
        self.n += 1
        return Decision(unit.seq, delegates=self.at.get(self.n, ()))


def conversation(harness, front=None):
    clock = SystemClock()
    return Conversation(Link(), front or Quiet(), harness, MicAssembler(clock, 40, 0), clock, Trace("worker", ""))


def event(key, **more):
    return DelegateEvent(**({"span": key, "turn": 1, "opened_pos": 0, "opened_seq": 0, "prose": "find a charger", "capability": "poi.find",
                             "arguments": {"query": "charger"}, "key": key} | more))


@pytest.mark.parametrize("wrong", [dict(prose="w" * 5000), dict(arguments={"x": float("nan")}), dict(provenance="The Radio!"), dict(repair="undo")])
async def test_a_malformed_delegate_costs_itself_and_not_the_conversation(wrong):
    """Peer 10: whatever a front end makes of a span: the request is refused, the next one is taken."""
    harness = Harness(SkillBackend(ListedCatalog(*SPECS), Instant()), ListedCatalog(*SPECS)).open_session("a")
    talk = conversation(harness)
    talk._apply(Decision(1, delegates=(event("wrong", **wrong), event("right"))), 640)
    await asyncio.sleep(0)
    assert [t.key for t in harness.status()] == ["right"]
    await harness.close()


async def test_a_store_that_is_away_costs_the_request_and_not_the_conversation():
    """Peer 10: nothing can be recorded for a while: the user is told, the conversation goes on, and the next request is taken."""
    backend = AwayBackend()
    store = DurableStore(backend)
    await store.open()
    harness = Harness(SkillBackend(ListedCatalog(*SPECS), Instant()), ListedCatalog(*SPECS), store=store).open_session("a")
    talk = conversation(harness)
    backend.away = True
    store.note("a", "x", 1)
    async with asyncio.timeout(5):
        while not store.away:
            await asyncio.sleep(0.01)
    talk._apply(Decision(1, delegates=(event("refused"),)), 640)
    told = harness.next_reply(Moment(1600, False, False, False, 1))
    assert told is not None and told.kind == "notice" and harness.status() == ()
    backend.away = False
    async with asyncio.timeout(5):
        while store.away:
            await asyncio.sleep(0.01)
    talk._apply(Decision(2, delegates=(event("taken"),)), 1280)
    await harness.settled()
    assert [t.key for t in harness.status()] == ["taken"]
    await harness.close()
    await store.close()


async def test_what_the_microphone_heard_before_the_request_reaches_the_worker_of_the_task():
    """Peer 26: through the session worker: the sound of the units before the opening, and none after it, is in the task's evidence."""
    heard = []

    class Backend(SkillBackend):
        async def execute(self, call, context):
            heard.extend((m.start, m.end, bytes(m.view)) for m in context.evidence.media if isinstance(m, AudioClip))
            return await super().execute(call, context)
    catalog = ListedCatalog(FIND)
    harness = Harness(Backend(catalog, Instant()), catalog).open_session("a")
    talk = conversation(harness, Quiet({20: (event("k", opened_pos=10 * 640, opened_seq=9),)}))
    talk.mic.gate(True, 0)
    for n in range(40):
        talk.mic.packet(n * 640, np.full(640, n + 1, np.int16), live=True)
    running = asyncio.create_task(talk.run())
    async with asyncio.timeout(5):
        while not heard:
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await harness.close()
    samples = np.frombuffer(b"".join(data for *_, data in heard), np.int16)
    assert (heard[0][0], heard[-1][1]) == (0, 10 * 640) and list(samples[::640]) == list(range(1, 11))
