"""The interaction loop: what it sends, stops, confirms and hands to the harness, with a scripted front end and device."""
import asyncio
from dataclasses import dataclass, field

import numpy as np
import pytest

from cloud_core.conversation import Conversation
from cloud_core.engine.errors import UnitRefused
from cloud_core.front_end import (Decision, DelegateEvent, Overlap, PlayoutMark, SegmentChunk, Span, UserText, Verdict)
from cloud_core.mic import MicAssembler
from harness import Harness, JournalFault, MemoryJournal, MemoryStore, SkillBackend, SkillOutcome, SkillSpec
from venus_edge.clock import SystemClock
from venus_edge.trace import Trace

RATE = 24_000
WORDS = (Span("The nearest one", 0, 12_000), Span("is on Rue Grimaldi.", 12_000, 36_000))


@dataclass
class FakeLink:
    """A whole device: takes speech, keeps what it was told."""

    told: list = field(default_factory=list)
    sent: dict = field(default_factory=dict)
    states: list = field(default_factory=list)

    def control(self, type_, **fields):
        self.told.append((type_, fields))

    async def open_speech(self, seg, rate):
        self.sent[seg] = 0
        link = self

        class Stream:
            async def write(self, data):
                link.sent[seg] += len(data) // 2

            async def close(self):
                pass

        return Stream()

    def user_text(self, turn, text, final):
        pass

    def agent_text(self, seg, text, final):
        pass

    def state(self, state):
        self.states.append(state)


class Script:
    """A front end that answers unit n with what the test put at n, and speaks each admitted reply as one segment."""

    def __init__(self, at=None):
        self.at, self.units, self.k = at or {}, [], 0

    async def step(self, unit):
        self.units.append(unit)
        n, self.k = self.k, self.k + 1
        chunks = tuple(SegmentChunk(f"seg-{r.id}", 0, RATE, np.ones(36_000, np.int16), WORDS, True, r.id, 1) for r in unit.replies)
        return self.at.get(n, Decision(unit.seq, segments=chunks))


class Catalog:
    def contracts(self):
        return ()

    def has(self, skill_id):
        return not skill_id.startswith("harness.")

    def validate(self, skill_id, arguments):
        return arguments

    def spec(self, skill_id):
        return SkillSpec(skill_id)


class Runner:
    async def run(self, call, on_progress):
        return SkillOutcome(True, text="The nearest one is on Rue Grimaldi.")


async def converse(at, seconds, during=None, store=None, harness=None):
    """Run a conversation with a closed gate for `seconds`; `during(conversation, link)` runs beside it. `harness`: a session of a
    conversation before this one; it stays open."""
    clock, link, front, going_on = SystemClock(), FakeLink(), Script(at), harness is not None
    harness = harness or Harness(SkillBackend(Catalog(), Runner()), Catalog(), clock, store=store).open_session("device")
    mic = MicAssembler(clock, 40, 0)
    mic.gate(False, 0)
    events = []
    trace = Trace("worker", "")
    trace.listeners.append(events.append)
    conversation = Conversation(link, front, harness, mic, clock, trace)
    task = asyncio.create_task(conversation.run())
    try:
        if during:
            await during(conversation, link)
        await asyncio.sleep(seconds)
        if task.done():
            task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if not going_on:
            await harness.close()
    return conversation, link, front, harness, events


def ask(n=2):
    return {n: Decision(n, user=(UserText(1, "Find a charging station", 0, 1000, True),),
                        delegates=(DelegateEvent("d1", n, 1000, 1, "Find a charging station", "poi.find", {"query": "charging station"}, key="k1"),))}


async def until(condition, seconds=3.0):
    for _ in range(int(seconds / 0.01)):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("not reached")


async def test_a_request_becomes_a_spoken_reply_that_counts_only_when_confirmed():
    """Delivered follows the device's word, never what was pushed."""
    async def during(c, link):
        await until(lambda: link.sent)
        seg = next(iter(link.sent))
        await until(lambda: link.sent[seg] == 36_000)
        assert c.harness.ledger.tasks()[-1].delivery.value == "delivering"
        c.report(PlayoutMark(seg, 36_000, RATE, "ended"))
        await until(lambda: c.harness.ledger.tasks()[-1].delivery.value == "delivered")

    _, link, front, _, events = await converse(ask(), 0.1, during)
    assert [e["heard"] for e in events if e["ev"] == "segment.end"] == ["The nearest one is on Rue Grimaldi."]
    assert any(m.state == "ended" for u in front.units for m in u.playout)


async def test_an_interruption_is_flushed_on_the_device_and_only_the_heard_words_stay():
    async def during(c, link):
        await until(lambda: link.sent)
        seg = next(iter(link.sent))
        c._apply(Decision(99, overlaps=(Overlap(seg, Verdict.FLUSH, "interruption", 5_000),)), 6_000)
        await until(lambda: any(t == "flush" and f["seg"] == seg for t, f in link.told))
        c.report(PlayoutMark(seg, 13_000, RATE, "flushed"))
        c.report(PlayoutMark(seg, 13_000, RATE, "flushed"))

    c, link, _, _, events = await converse(ask(), 0.7, during)
    ends = [e for e in events if e["ev"] == "segment.end"]
    assert len(ends) == 1 and ends[0]["heard"] == "The nearest one" and ends[0]["unheard"] == "is on Rue Grimaldi." and ends[0]["confirmed"]
    assert sum(t == "flush" for t, _ in link.told) <= 2


async def test_without_an_answer_to_the_flush_the_last_confirmed_sample_counts_not_what_was_sent():
    async def during(c, link):
        await until(lambda: link.sent and next(iter(link.sent.values())) == 36_000)
        c.report(PlayoutMark(next(iter(link.sent)), 12_500, RATE, "playing"))
        c.flush(next(iter(link.sent)))

    _, link, _, _, events = await converse(ask(), 0.8, during)
    end = [e for e in events if e["ev"] == "segment.end"][0]
    assert end["heard"] == "The nearest one" and not end["confirmed"] and sum(t == "flush" for t, _ in link.told) >= 4


async def test_a_backchannel_restores_and_stops_nothing():
    async def during(c, link):
        await until(lambda: link.sent)
        c._apply(Decision(99, overlaps=(Overlap(next(iter(link.sent)), Verdict.RESTORE, "backchannel", 5_000),)), 6_000)

    _, link, _, _, events = await converse(ask(), 0.3, during)
    assert [t for t, _ in link.told] == ["restore"] and not [e for e in events if e["ev"] == "segment.end"]


async def test_the_same_delegate_twice_is_one_task():
    at = ask(2) | {3: ask(3)[3]}
    *_, harness, _ = await converse(at, 0.5)
    assert len(harness.ledger.tasks()) == 1


async def test_units_keep_coming_in_order_while_the_gate_is_closed():
    _, _, front, _, _ = await converse({}, 0.6)
    assert [u.pos for u in front.units] == list(range(0, 640 * len(front.units), 640)) and all(u.gated for u in front.units)
    assert 10 <= len(front.units) <= 16


def speak(seg, n, samples, last, turn=1):
    return Decision(n, segments=(SegmentChunk(seg, 0, RATE, np.ones(samples, np.int16), (Span("words", 0, samples),), last, None, turn),))


async def test_a_device_that_stops_by_itself_does_not_hold_up_the_next_segment():
    """A button or the reflex flushed an unfinished segment: the sender must not wait for credit that never comes."""
    async def during(c, link):
        await until(lambda: link.sent.get("a"))
        c.report(PlayoutMark("a", 2_400, RATE, "flushed"))
        c._apply(speak("b", 99, 4_800, True), 0)
        await until(lambda: link.sent.get("b") == 4_800)

    await converse({2: speak("a", 2, 10 * RATE, False)}, 0.05, during)


async def test_the_rest_of_a_flushed_segment_opens_no_second_stream():
    """Its remaining clauses were being made when it was stopped: sent, they would be speech after a stop."""
    opened = []

    async def during(c, link):
        open_speech = link.open_speech

        async def counted(seg, rate):
            opened.append(seg)
            return await open_speech(seg, rate)

        c.sender._open = counted
        c._apply(speak("a", 98, 4_800, False), 0)
        await until(lambda: link.sent.get("a") == 4_800)
        c.flush("a")
        await asyncio.sleep(0.05)
        more = SegmentChunk("a", 4_800, RATE, np.ones(4_800, np.int16), (Span("more", 4_800, 9_600),), True, None, 1)
        c._apply(Decision(99, segments=(more,)), 0)
        await asyncio.sleep(0.05)
        c.report(PlayoutMark("a", 2_000, RATE, "flushed"))
        c._apply(Decision(100, segments=(more,)), 0)
        await asyncio.sleep(0.1)

    await converse({}, 0.05, during)
    assert opened == ["a"]


async def test_a_segment_closed_here_that_still_sounds_is_stopped_and_its_end_reaches_the_front_end():
    """The link was away and the end was assumed: what goes on playing would be said twice when it is taken up again."""
    async def during(c, link):
        await until(lambda: link.sent)
        seg = next(iter(link.sent))
        c._assume(seg, "lost")
        link.told.clear()
        c.report(PlayoutMark(seg, 12_500, RATE, "playing"))
        assert [(t, f["seg"]) for t, f in link.told if t == "flush"] == [("flush", seg)] and not c.timeline.speaking()

    _, _, front, _, events = await converse(ask(), 0.2, during)
    marks = [m for u in front.units for m in u.playout]
    assert [m.state for m in marks if m.final] == ["lost"] and len([e for e in events if e["ev"] == "segment.end"]) == 1


async def test_replies_wait_while_the_device_is_away():
    async def during(c, link):
        c.away = True
        await asyncio.sleep(0.4)
        assert not link.sent and c.harness.ledger.tasks()
        c.away = False
        await until(lambda: link.sent)

    await converse(ask(), 0.05, during)


async def test_a_refused_unit_costs_its_reply_one_try_and_not_the_session():
    class Refusing(Script):
        refused = 0

        async def step(self, unit):
            if unit.replies and not self.refused:
                self.refused += 1
                raise UnitRefused("replies[0]: needs an id and a text")
            return await super().step(unit)

    front = Refusing(ask())

    async def during(c, link):
        c.engine = front
        await until(lambda: front.refused and link.sent, 6.0)

    await converse({}, 0.05, during)


async def test_a_fault_in_a_report_ends_the_session_instead_of_passing_unseen():
    class Faulty:
        def __init__(self, session):
            self.session = session

        def __getattr__(self, name):
            return getattr(self.session, name) if name != "reply_finished" else lambda *a, **k: 1 / 0

    async def during(c, link):
        await until(lambda: link.sent)
        c.harness = Faulty(c.harness)
        c.report(PlayoutMark(next(iter(link.sent)), 36_000, RATE, "ended"))

    with pytest.raises(ZeroDivisionError):
        await converse(ask(), 0.3, during)


async def test_the_device_is_asked_for_its_clock(monkeypatch):
    monkeypatch.setattr("cloud_core.conversation.PING_S", 0.1)
    _, link, *_ = await converse({}, 0.5)
    assert [f["n"] for t, f in link.told if t == "ping"][:3] == [1, 2, 3]


# -- requests that can't be taken, and sessions that go on


class Refusing(MemoryStore):
    """A store that takes no new task while it is `away`."""

    def __init__(self):
        super().__init__()
        self.away = False

    def session(self, session_id, tenant=""):
        store = self

        class Journal(MemoryJournal):
            def append(self, record):
                if store.away and record.machine == "accept":
                    raise JournalFault("journal double: away")
                super().append(record)
        self._journals.setdefault(session_id, (tenant, Journal()))
        return self._journals[session_id][1]


def delegates(n, *events):
    return {n: Decision(n, user=(UserText(1, "words", 0, 1000, True),), delegates=events)}


@pytest.mark.parametrize("why", ["journal", "bad_request"])
async def test_a_request_that_cannot_be_taken_costs_itself_only_and_is_told(why):
    """A journal that is away, prose that is too long: traced without words, the user hears it, and the next request is answered."""
    store = Refusing()
    store.away = why == "journal"
    prose = "please " * (1 if why == "journal" else 1000)
    at = delegates(2, DelegateEvent("d1", 2, 1000, 1, prose, "poi.find", {"query": "x"}, key="k1"),
                   DelegateEvent("d2", 2, 1000, 1, prose, "poi.find", {"query": "y"}, key="k2"))

    async def during(c, link):
        await until(lambda: link.sent)
        store.away = False
        assert c.harness.ledger.tasks() == [] and not any(held.holders for held in c.media._audio)
        c.report(PlayoutMark(next(iter(link.sent)), 36_000, RATE, "ended"))
        c._delegate(DelegateEvent("d3", 9, 9000, 1, "find one", "poi.find", {"query": "z"}, key="k3"))
        await until(lambda: len(link.sent) == 2)

    _, _, front, _, events = await converse(at, 0.1, during, store)
    refused = [e for e in events if e["ev"] == "delegate.refused"]
    assert [e["code"] for e in refused] == [why] * 2 and "please" not in str(refused)
    said = [r.text for u in front.units for r in u.replies]
    assert len(said) == 2 and "can't take that" in said[0] and said[1] == "The nearest one is on Rue Grimaldi."


async def test_a_new_front_end_goes_on_with_the_session_and_its_turns():
    """The first conversation ends in the middle of a reply: the device tells the next what it played, and the rest is told. A front end
    that counts its turns anew does not make the new request an old one."""
    session = None

    async def broken_off(c, link):
        nonlocal session
        session = c.harness
        await until(lambda: link.sent and next(iter(link.sent.values())) == 36_000)
        c.harness.user_turn(7)

    harness = Harness(SkillBackend(Catalog(), Runner()), Catalog(), SystemClock())
    first, link, *_ = await converse(ask(), 0.05, broken_off, harness=harness.open_session("device"))
    seg = next(iter(link.sent))
    assert session.ledger.tasks()[0].delivery == "delivering"

    async def goes_on(c, link):
        c.report(PlayoutMark(seg, 11_000, RATE, "playing"))
        assert ("flush", seg) in [(t, f.get("seg")) for t, f in link.told], "it still sounds, and will be said by another segment"
        c.report(PlayoutMark(seg, 13_000, RATE, "flushed"))
        await until(lambda: link.sent)

    second, _, front, _, _ = await converse({}, 0.05, goes_on, harness=session)
    said = [r.text for u in front.units for r in u.replies]
    assert len(said) == 1 and said[0].endswith("is on Rue Grimaldi.") and "nearest" not in said[0]
    at = {n: Decision(n, user=(UserText(1, "and another", 0, 1000, True),),
                      delegates=(DelegateEvent("d9", n, 1000, 1, "and another", "poi.find", {"query": "y"}, key="k9"),)) for n in (2,)}
    third, _, _, _, events = await converse(at, 0.3, harness=session)
    assert session.ledger.tasks()[-1].turn == session.turn == third.turn == 8
    assert [e["turn"] for e in events if e["ev"] in ("user.text", "delegate")] == [8, 8]
    await harness.close()


@pytest.mark.parametrize("complete, state, told", [
    (True, "ended", []), (False, "ended", ["is on Rue Grimaldi."]), (True, "lost", ["is on Rue Grimaldi."])])
async def test_what_the_device_played_to_the_end_counts_as_told_only_if_it_was_all_of_it(complete, state, told):
    """A front end that died before its last clause: the device's segment ended, the reply did not."""
    harness = Harness(SkillBackend(Catalog(), Runner()), Catalog(), SystemClock())
    session = harness.open_session("device")

    class HalfWay(Script):
        async def step(self, unit):
            self.units.append(unit)
            words = WORDS if complete and state == "ended" else WORDS[:1]
            chunks = tuple(SegmentChunk("seg-1", 0, RATE, np.ones(words[-1].end, np.int16), words, complete, r.id, 1) for r in unit.replies)
            n, self.k = self.k, self.k + 1
            return self.at.get(n, Decision(unit.seq, segments=chunks))

    async def broken_off(c, link):
        c.engine = HalfWay(ask())
        await until(lambda: link.sent.get("seg-1"))
    await converse({}, 0.05, broken_off, harness=session)

    async def reported(c, link):
        c.report(PlayoutMark("seg-1", 36_000 if complete and state == "ended" else 12_000, RATE, state))
        await asyncio.sleep(1.2)

    _, _, front, _, _ = await converse({}, 0.1, reported, harness=session)
    said = [r.text for u in front.units for r in u.replies]
    assert len(said) == len(told) and all(s.endswith(t) for s, t in zip(said, told))
    assert session.ledger.tasks()[0].delivery == ("delivering" if told else "delivered")
    await harness.close()
