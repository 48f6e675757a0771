"""Cases that other systems' users reported, as far as a harness answers for them (Case 1, Case 2, ...)."""
import asyncio
import random

import pytest
from points_world import BOOK, FIND, GO, SPECS, Keeping, accept, moment, request

from harness import Evidence, Harness, HarnessSettings, Moment, Plan, SkillOutcome, SkillSpec
from harness.task import DELIVERY_END, EXECUTION_END
from harness.testing import Conversation, ListedCatalog, Script, ScriptedPlanner, scripted
from venus_edge.testing import VirtualClock

LONG = "The nearest one is on Rue Grimaldi. It has four free places and it is open all night long."


async def test_after_a_cough_the_speech_goes_on_from_the_heard_word():
    """Case 1: 300 ms of noise and no words flush the reply: it is taken up within 2.5 s, at the clause that was cut, heard once in all."""
    world = scripted({"poi.find": Script(LONG)}, specs=SPECS)
    talk = Conversation(world.session, world.clock, unit_s=0.04)
    talk.ask("poi.find")
    await talk.run(3)
    talk.interrupt("The nearest one is on Rue Grimaldi.")
    cut, talk.user_speaking = world.clock.now(), True
    await talk.run(0.3)
    talk.user_speaking = False
    await talk.run(12)
    (_, _), (resumed, second) = talk.spoken
    assert resumed - cut <= 2.5 and second.text.endswith("It has four free places and it is open all night long.")
    assert "Rue Grimaldi" not in second.text


async def test_noise_just_before_the_first_word_does_not_cost_the_reply():
    """Case 2, Case 6: a burst of one unit as the reply is admitted, and one that flushes it before its first sample: told whole, once."""
    world = scripted({"poi.find": Script("Two of them.", 1)}, specs=SPECS)
    talk = Conversation(world.session, world.clock, unit_s=0.04)
    task = talk.ask("poi.find")
    await talk.run(0.96)
    talk.user_speaking = True
    await talk.run(0.04)
    talk.user_speaking = False
    await talk.run(0.4)
    assert talk.speaking is not None
    talk.interrupt("")
    await talk.run(5)
    assert talk.texts == ["Two of them."] * 2 and world.session.ledger.get(task).delivery == "delivered"
    assert [list(h) for h in world.session.ledger.get(task).heard] == [[0, 12]]


async def test_when_both_begin_at_once_the_user_has_the_floor_and_there_is_one_answer():
    """Case 4: the result is ready in the very unit in which the user begins: not a word until they have ended, then one reply."""
    world = scripted({"poi.find": Script("Two of them.", 0.5)}, specs=SPECS)
    talk = Conversation(world.session, world.clock, unit_s=0.04)
    talk.ask("poi.find")
    await talk.run(0.48)
    talk.user_speaking = talk.turn_open = True
    await talk.run(1.2)
    assert talk.texts == []
    talk.user_speaking = talk.turn_open = False
    await talk.run(3)
    assert talk.texts == ["Two of them."]


async def test_an_interrupted_side_effect_happens_once_and_its_result_is_told():
    """Case 7, Case 38: the user talks over the work and over its answer, and the front end sends the same request again: one run, one result."""
    world = scripted({"table.book": Script("Booked for eight.", 3)}, specs=SPECS)
    talk = world.talk
    task = talk.ask("table.book", {"guests": "two"}, prose="book for two", key="span-1")
    await talk.run(1)
    talk.user_speaking = talk.turn_open = True
    await talk.run(1)
    talk.user_speaking = talk.turn_open = False
    assert talk.ask("table.book", {"guests": "two"}, prose="book for two", key="span-1") == task
    await talk.run(2)
    talk.interrupt(talk.speaking.text[:0])
    assert talk.ask("table.book", {"guests": "two"}, prose="book for two", key="span-1") == task
    await talk.run(8)
    assert len(world.runner.calls) == 1 and sum("Booked for eight." in t for t in talk.texts) == 2  # cut before its first word, then whole
    assert world.session.ledger.get(task).delivery == "delivered" and len(world.session.status()) == 1


async def test_the_same_side_effect_asked_again_while_it_runs_happens_once():
    """Case 7: "did you book it? book it!" under a key of its own while the first runs: one run; both requests end, told once."""
    world = scripted({"table.book": Script("Booked for eight.", 3)}, specs=SPECS)
    talk = world.talk
    for key in ("span-1", "span-2"):
        talk.ask("table.book", {"guests": "two"}, prose="book for two", key=key)
        await talk.run(1)
    await talk.run(8)
    assert len(world.runner.calls) == 1 and sum("Booked for eight." in t for t in talk.texts) == 1
    assert all(t.closed for t in world.session.status())


@pytest.mark.parametrize("at", range(20))
async def test_what_must_not_be_stopped_is_not_stopped_at_any_moment(at):
    """Case 9: a protected task of 1.6 s and its answer, interrupted at twenty moments: it runs once, to its end, and its words are all heard."""
    spec = SkillSpec("gate.open", timeout_s=30, cancellable=False, idempotent=False, ack_after_s=999, first_progress_s=999)
    world = scripted({"gate.open": Script("The gate is open. Drive in now, please.", 1.6)}, specs=[spec])
    talk = world.talk
    task = talk.ask("gate.open")
    await talk.run(0.2 * at + 0.1)
    talk.turn += 1
    world.session.user_turn(talk.turn)
    assert not world.session.ledger.get(task).live or world.session.cancel(task) is False
    if talk.speaking:
        talk.interrupt(talk.speaking.text[:3 * (at - 7)])
    await talk.run(12)
    kept = world.session.ledger.get(task)
    assert [what for _, what, _ in world.runner.events] == ["started", "finished"]
    assert (kept.execution, kept.delivery) == ("completed", "delivered") and max(to for _, to in kept.heard) >= 0.8 * len(kept.text)


async def test_a_lookup_survives_a_word_ten_milliseconds_later():
    """Case 18: a short sentence just after the request: the lookup runs on, and the answer is its result, not an invention."""
    world = scripted({"poi.find": Script("Yes, you are on file.", 1)}, specs=[SkillSpec("poi.find")])
    world.talk.ask("poi.find", prose="am I on file")
    await world.clock.advance(0.01)
    world.talk.turn += 1
    world.session.user_turn(world.talk.turn)
    await world.talk.run(6)
    assert [what for _, what, _ in world.runner.events] == ["started", "finished"]
    assert sum("Yes, you are on file." in text for text in world.talk.texts) == 1


STEP = 0.25


@pytest.mark.parametrize("stubborn_s", [0.0, 30.0])
@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("at", range(12))
async def test_cut_at_any_await_a_call_ends_within_a_second_once(at, typed, stubborn_s):
    """Case 8, Case 17, Case 32, Case 44: planning, queued, running, progress, wording, stubborn: cancelled at each quarter of a second.

    A terminal state within 1 s, one such transition, one terminal delivery, a late return counted and discarded, and nothing spoken of it.
    """
    clock = VirtualClock()
    planner = ScriptedPlanner(clock, {"find it": (Plan("new", "poi.find", {}),)}, after_s=0.8)
    script = Script("Two of them.", 1.5, progress=((0.5, "Still looking."),), ignores_cancel_s=stubborn_s)
    world = scripted({"poi.find": script, "navigation.go": Script("Four minutes.", 0.4)}, specs=[FIND, GO], planner=planner, clock=clock,
                     settings=HarnessSettings(max_running=1))
    session, talk = world.session, world.talk
    accept(session, 1, "navigation.go")
    task = accept(session, 1, "poi.find" if typed else None, key="it", prose="find it", arguments={})
    for _ in range(at):
        await clock.advance(STEP)
    session.cancel(task)
    await clock.advance(1.0)
    assert session.ledger.get(task).execution in EXECUTION_END
    talk.turn = 1
    await talk.run(40)
    moves = [(t.machine, t.dst) for t in world.seen if t.task.id == task]
    assert sum(m == "execution" and d in EXECUTION_END for m, d in moves) == 1 == sum(m == "delivery" and d in DELIVERY_END for m, d in moves)
    told = [r.text for _, r in talk.spoken if r.task_id == task]
    assert not any("Two of them" in text for text in told), told
    late = stubborn_s > 0 and any(what == "cancelled" for _, what, _ in world.runner.events)
    assert session.ledger.live() == [] and session.ledger.counters()["late_returns"] == late


async def test_each_reply_is_in_the_language_of_its_request():
    """Case 21: zh, en, zh and mixed in one session, with notices and failures: languages are never mixed in a reply; slots stay exact."""
    slow = SkillSpec("poi.find", timeout_s=60, slow=True)
    world = scripted({"poi.find": [Script("有两个。", 4), Script("Two of them.", 4), Script("", ok=False, code="not_found", after_s=4)]},
                     specs=[slow, GO])
    talk = world.talk
    for lang, prose in (("zh", "找充电站"), ("en", "find a charger"), ("zh", "帮我 find the airport")):
        talk.ask("poi.find", {"query": prose}, prose=prose, lang=lang)
        await talk.run(1)
    await talk.run(30)
    assert {c.arguments["query"] for c in world.runner.calls} == {"找充电站", "find a charger", "帮我 find the airport"}
    for _, reply in talk.spoken:
        text = reply.text.replace("帮我 find the airport", "").replace("找充电站", "").replace("find a charger", "").replace("charger", "")
        assert any("一" <= c <= "鿿" for c in text) is (reply.lang == "zh"), reply
        assert reply.lang == "en" or not any(c.isascii() and c.isalpha() for c in text), reply
    assert {r.lang for _, r in talk.spoken} == {"en", "zh"} and all(t.closed for t in world.session.status())


async def test_a_verdict_on_a_reply_in_the_air_is_the_last_of_it():
    """Case 28: at 40 % of a reply its task is withdrawn and the front end stops: nothing of the rest is said later, shown, or repeated."""
    shown = []
    world = scripted({"poi.find": Script(LONG)}, specs=SPECS)
    session = world.harness.open_session("b", on_screen=shown.append)
    talk = Conversation(session, world.clock)
    task = talk.ask("poi.find")
    await talk.run(2)
    assert session.cancel(task)
    talk.interrupt(LONG[:36])
    repeated = talk.ask(None, repair="repeat", prose="say that again")
    await talk.run(20)
    assert session.ledger.get(task).delivery == "dropped" and not shown and session.ledger.get(repeated).closed
    assert not any("open all night" in text for text in talk.texts[1:])


async def test_fifty_sessions_never_hear_of_each_other():
    """Case 33: each with a canary in words, arguments, memory, progress and result, all at once: no call, reply or event holds another's."""
    clock, catalog = VirtualClock(), ListedCatalog(SkillSpec("poi.find", timeout_s=60, slow=True))

    class Echo:
        calls = []

        async def run(self, call, on_progress):
            self.calls.append(call)
            on_progress("progress", f"Looking for {call.arguments['query']}.")
            await clock.sleep(3 + len(call.session) % 3)
            return SkillOutcome(True, text=f"Found {call.arguments['query']}.", memory=call.memory | {"last": call.arguments["query"]})
    backend = Keeping(catalog, Echo(), (Plan("new", "poi.find", {"query": "x"}),))
    harness, talks, kept = Harness(backend, catalog, clock), [], {}
    for n in range(50):
        name = f"session{n:02d}"
        kept[name] = []
        session = harness.open_session(name, tenant=f"tenant{n % 5}", observer=kept[name].append, on_screen=kept[name].append)
        talks.append(Conversation(session, clock))
        talks[-1].ask("poi.find", {"query": f"canary{n:02d}"}, prose=f"find canary{n:02d}")
    for _ in range(60):
        await clock.advance(0.1)
        for talk in talks:
            await talk.run(0)
            reply = talk.session.next_reply(moment(clock, talk.turn))
            if reply:
                talk.spoken.append((clock.now(), reply))
                talk.session.reply_finished(reply.id, heard=reply.text, unheard="", completed=True, confirmed=True)
    for n, talk in enumerate(talks):
        mine = repr((talk.texts, kept[talk.session.id], talk.session.status(), talk.session.memory, talk.session.screen(),
                     [c for c in backend.calls if c.session == talk.session.id]))
        assert f"Found canary{n:02d}." in " ".join(talk.texts)
        assert [k for k in range(50) if f"canary{k:02d}" in mine] == [n]


@pytest.mark.parametrize("kind", ["ack", "progress", "question", "result", "notice"])
@pytest.mark.parametrize("share", [0.0, 0.4, 0.95])
async def test_whatever_is_spoken_can_be_interrupted_at_any_point(kind, share):
    """Case 35: acknowledgement, filler, offer, result and failure, cut before the first word, within, and at the tail: the session goes on."""
    script = {"result": Script(LONG), "notice": Script("", ok=False, code="internal")}.get(kind, Script(LONG, 40))
    world = scripted({"poi.find": script, "navigation.go": Script("Four minutes.")}, specs=[SkillSpec("poi.find", timeout_s=90, slow=True), GO])
    talk = world.talk
    task = talk.ask("poi.find")
    for _ in range(800):
        await talk.run(0.1)
        if talk.speaking and talk.speaking.kind == kind:
            break
    assert talk.speaking.kind == kind
    talk.interrupt(talk.speaking.text[:round(share * len(talk.speaking.text))])
    talk.user_speaking = talk.turn_open = True
    await talk.run(1)
    assert talk.speaking is None
    talk.user_speaking = talk.turn_open = False
    talk.ask("navigation.go")
    await talk.run(70)
    assert sum("Four minutes." in text for text in talk.texts) == 1 and world.session.ledger.get(task).closed
    assert all(t.closed for t in world.session.status())


async def test_nothing_the_front_end_calls_waits_for_a_tool():
    """Case 38, Case 43: a tool sleeps, hangs and ignores its end; accept, next_reply and every report return at once, without being awaited."""
    world = scripted({"poi.find": Script(after_s=5), "table.book": Script(after_s=1e6, ignores_cancel_s=1e6)}, specs=[FIND, BOOK])
    session, rng = world.session, random.Random(3)
    for n in range(40):
        accept(session, n + 1, rng.choice(["poi.find", "table.book"]))
        session.cancel(session.status()[-1].id)
        before = world.clock.now()
        given = [session.next_reply(Moment(n, False, False, False, n)), session.reply_started("x", "y"), session.user_turn(n),
                 session.reply_finished("x", heard="", unheard="", completed=True, confirmed=True), session.reply_declined("x"), session.screen()]
        assert not any(asyncio.iscoroutine(one) or asyncio.isfuture(one) for one in given) and world.clock.now() == before
    assert isinstance(session.accept(request(99), Evidence.freeze(0, 0)), str)
