"""Weak points of scheduling, cancelling, freshness and delivery, each at what was measured of it (Peer 11-20)."""
import ast
import functools
from pathlib import Path

import pytest
from points_world import GO, SPECS, Keeping, accept, moment

import harness as package
from harness import Delivery, Evidence, Harness, HarnessSettings, SchedulerLimits, SkillBackend, SkillOutcome, SkillSpec
from harness.capture import Audio, EvidenceRing, RingLimits, SpanLimits
from harness.llm.settings import LLMSettings
from harness.plan.contracts import Contract
from harness.schedule.limits import LaneLimits
from harness.service.limits import ServiceLimits
from harness.testing import Conversation, ListedCatalog, Script, scripted
from venus_edge.metrics import METRICS
from venus_edge.testing import VirtualClock

GENERAL = Contract("general.task", {"en": "Anything.", "zh": "任何事。"}, {"type": "object", "properties": {}}, "general")
DIRECT = Contract("direct.answer", {"en": "A question.", "zh": "问题。"}, {"type": "object", "properties": {}}, "direct")


@functools.cache
def attributes_read():
    """The names of all attributes that code of the harness reads."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(package.__file__).parent.rglob("*.py")]
    return {n.attr for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}


@pytest.mark.parametrize("model", [HarnessSettings, SchedulerLimits, LaneLimits, ServiceLimits, RingLimits, SpanLimits, LLMSettings, SkillSpec])
def test_every_setting_is_read_somewhere(model):
    """Peer 13: a time limit that nothing reads is worse than none."""
    names = set(getattr(model, "model_fields", None) or model.__dataclass_fields__)
    read = attributes_read()
    if model is HarnessSettings:
        read = read | set(LaneLimits.model_fields)  # handed on by name: Session
    assert sorted(names - read) == []


class Counting(SkillBackend):
    """Serves `general` and `direct` besides the skills, in three stages, and counts what runs at once."""

    def __init__(self, catalog, runner, clock, stage_s=0.1):
        super().__init__(catalog, runner)
        self.clock, self.stage_s, self.now, self.peak, self.ended = clock, stage_s, 0, 0, []

    def contracts(self):
        return (GENERAL, DIRECT)

    async def execute(self, call, context):
        self.now += 1
        self.peak = max(self.peak, self.now)
        try:
            for _ in range(2):
                await self.clock.sleep(self.stage_s)
            return SkillOutcome(True, text="Done.")
        finally:
            self.now -= 1

    async def oralize(self, task, outcome):
        await self.clock.sleep(self.stage_s)
        self.ended.append(self.clock.now())
        return outcome.text


@pytest.mark.parametrize("most", [8, 16])
async def test_general_tasks_of_a_hundred_sessions_share_the_processs_places(most):
    """Peer 15, Scale 5: 100 sessions ask for a general task at once: never more run than the process may run, and all are done."""
    clock, catalog = VirtualClock(), ListedCatalog(*SPECS)
    backend = Counting(catalog, None, clock)
    harness = Harness(backend, catalog, clock, limits=SchedulerLimits(max_running=most, max_running_per_tenant=most))
    sessions = [harness.open_session(f"s{n}") for n in range(100)]
    for n, session in enumerate(sessions):
        accept(session, 1, "general.task" if n % 10 else "poi.find", arguments={})
    await clock.advance(100 / most * 0.3 + 1)
    assert backend.peak == most and {t.execution for s in sessions for t in s.status()} == {"completed"}
    assert len(backend.ended) == 100


async def test_only_what_runs_is_running():
    """Peer 16: one place, three tasks of several stages: at no time are two RUNNING, and who waits is QUEUED, in the order asked."""
    clock, catalog = VirtualClock(), ListedCatalog(*SPECS)
    backend = Counting(catalog, None, clock, 1.0)
    session = Harness(backend, catalog, clock).open_session("a", settings=HarnessSettings(max_running=1))
    tasks = [accept(session, 1, "poi.find", key=f"k{n}") for n in range(3)]
    states = []
    for _ in range(95):
        await clock.advance(0.1)
        states.append("".join(t.execution[0] for t in session.status()))
    assert list(dict.fromkeys(states)) == ["rqq", "crq", "ccr", "ccc"], states
    assert [t.id for t in session.status()] == tasks and backend.peak == 1


@pytest.mark.parametrize("lang, chinese", [("en", False), ("zh", True)])
async def test_a_cancellation_is_answered_in_the_language_it_was_asked_in(lang, chinese):
    """Peer 17, Odd 23: running, waiting to be told, stubborn, and nothing there: each in that language, and the result is never spoken."""
    for script in (Script("Two of them.", 30), Script("Two of them.", 30, ignores_cancel_s=30), Script("Two of them."), None):
        world = scripted({"poi.find": script or Script()}, specs=SPECS)
        talk = world.talk
        if script is not None:
            talk.ask("poi.find", lang=lang)
            talk.user_speaking = script.after_s == 0
            await talk.run(1)
            talk.user_speaking = False
        task = talk.ask(None, repair="cancel", prose="stop that", lang=lang)
        await talk.run(8)
        assert world.session.ledger.get(task).delivery == "delivered" and talk.texts and not any("Two of" in t for t in talk.texts)
        assert all(any("一" <= c <= "鿿" for c in text) is chinese for text in talk.texts), talk.texts


async def test_a_finished_result_that_was_cancelled_is_never_spoken():
    """Peer 17, Odd 24: accepted once, the second time there is nothing to cancel; one that was told already is refused."""
    world = scripted({"poi.find": Script("Two of them.")}, specs=SPECS)
    world.talk.user_speaking = True
    task = world.talk.ask("poi.find")
    await world.talk.run(1)
    assert [world.session.cancel(task) for _ in range(2)] == [True, False]
    world.talk.user_speaking = False
    told = world.talk.ask("poi.find")
    await world.talk.run(4)
    assert len(world.talk.texts) == 1 and world.session.cancel(told) is False
    assert [t.delivery for t in world.session.status()] == ["dropped", "delivered"]


@pytest.mark.parametrize("capability, script", [
    ("poi.find", Script("Late.")), ("poi.find", Script("Late.", ok=False, code="not_found")), ("poi.find", Script(error=KeyError())),
    ("general.task", Script("Late.")), ("direct.answer", Script("Late.")), ("no.such", None), (None, None)])
async def test_every_kind_of_outcome_expires(capability, script):
    """Peer 18, Odd 32: skill, general, direct, failures and refusals alike: too old at the moment of admission is recorded, never spoken.

    The age counts from the end of the work, for there is no other time at which an answer was fresh.
    """
    clock = VirtualClock()
    runner = scripted({capability or "": script or Script()}, clock=clock).runner

    class Backend(SkillBackend):
        def contracts(self):
            return (GENERAL, DIRECT)
    catalog = ListedCatalog(*SPECS)
    session = Harness(Backend(catalog, runner), catalog, clock, settings=HarnessSettings(max_wait_s=500)).open_session("a")
    task = accept(session, 1, capability, arguments={})
    for _ in range(62):
        await clock.advance(1)
        assert session.next_reply(moment(clock, 1, user_speaking=True, turn_open=True)) is None
    for _ in range(20):
        await clock.advance(0.1)
        assert session.next_reply(moment(clock, 1)) is None
    kept = session.ledger.get(task)
    assert (kept.delivery, kept.delivery_reason) == ("dropped", "expired") and kept.text


async def test_a_hundred_results_nobody_takes_are_all_accounted_for():
    """Peer 19: 100 finish in a session nobody speaks in (they kept 16): each waits or is closed with a reason, counted, and shown."""
    shown = []
    clock, catalog = VirtualClock(), ListedCatalog(*SPECS)
    session = Harness(SkillBackend(catalog, scripted({}, clock=clock).runner), catalog, clock, settings=HarnessSettings(
        max_queued=200, max_untold=16)).open_session("a", on_screen=shown.append)
    overflow = METRICS.get("venus_harness_untold_overflow_total")
    tasks = [accept(session, n + 1) for n in range(100)]
    await clock.advance(1)
    ends = [(t.execution, t.delivery, t.delivery_reason) for t in session.status()]
    assert [t.id for t in session.status()] == tasks
    assert ends == [("completed", "unspoken", "too_many")] * 84 + [("completed", "pending", "")] * 16
    assert [i.task_id for i in shown] == tasks[:84] and METRICS.get("venus_harness_untold_overflow_total") - overflow == 84


async def test_delivering_means_given_out_and_the_order_of_the_rest_stays_open():
    """Peer 20, Odd 28: three results at once: never two replies out, and a newer question's answer overtakes those that wait."""
    world = scripted({"poi.find": Script("A first answer of some length, which can't be joined with the next one."),
                      "navigation.go": Script("Four minutes.")}, specs=SPECS, settings=HarnessSettings(max_join=1))
    talk, session = world.talk, world.session
    most = []
    session.observer = lambda t: most.append(sum(x.delivery is Delivery.DELIVERING for x in session.status()))
    older = [talk.ask("poi.find", {"n": n}) for n in range(3)]
    await talk.run(1)
    assert talk.speaking is not None and [session.ledger.get(t).delivery for t in older].count("delivering") == 1
    newest = talk.ask("navigation.go")
    await talk.run(60)
    order = [reply.task_id for _, reply in talk.spoken]
    assert max(most) == 1 and order[1] == newest and sorted(order) == sorted([*older, newest])


async def test_one_reply_is_out_at_a_time_whatever_the_front_end_says_of_its_speech():
    """Peer 20: a reply was given out and nothing is heard of it: no second one follows until it is started and ended, declined or lost."""
    world = scripted({"poi.find": Script("Two of them."), "navigation.go": Script("Four minutes.")}, specs=SPECS,
                     settings=HarnessSettings(max_join=1))
    session, clock = world.session, world.clock
    for n, capability in enumerate(("poi.find", "navigation.go")):
        accept(session, n + 1, capability)
    given = []
    for _ in range(95):
        await clock.advance(0.1)
        given += filter(None, [session.next_reply(moment(clock, 2))])
    assert len(given) == 1 and [t.delivery for t in session.status()].count("delivering") == 1
    session.reply_declined(given[0].id)
    await clock.advance(0.1)
    assert session.next_reply(moment(clock, 2)).task_id != given[0].task_id


async def test_between_two_results_there_is_no_more_than_a_breath():
    """Peer 34, Odd 29: two results that can't be joined: the second begins within 250 ms of the end of the first (theirs 2.5 s and more)."""
    world = scripted({"poi.find": Script("Two of them are open now."), "navigation.go": Script("Four minutes.")}, specs=SPECS,
                     settings=HarnessSettings(max_join=1))
    talk = Conversation(world.session, world.clock, unit_s=0.04)
    talk.ask("poi.find")
    talk.ask("navigation.go", same_turn=True)
    await talk.run(6)
    (first, a), (second, _) = talk.spoken
    assert first <= 0.25 and 0 < second - (first + len(a.text) / 15) <= 0.25


async def test_a_single_word_in_a_quiet_second_is_respected():
    """Peer 12: loudness of a whole second hides a short word; here one unit of 40 ms in which somebody speaks keeps an older reply back."""
    world = scripted({"poi.find": Script("Two of them.", 1.0)}, specs=SPECS)
    talk = Conversation(world.session, world.clock, unit_s=0.04)
    talk.ask("poi.find")
    talk.turn += 1
    await talk.run(0.92)
    talk.user_speaking = True
    await talk.run(0.04)
    word, talk.user_speaking = world.clock.now(), False
    await talk.run(2)
    assert 0.15 <= talk.spoken[0][0] - word <= 0.25


async def test_hung_tasks_of_one_session_cost_another_no_time_and_end_with_a_word():
    """Peer 13, Odd 34, Odd 35: 8 tasks that never end and ignore being cancelled (12 s of silence for the other session there).

    The other session's answer comes at once; each hung task ends at its own limit, and the user is told.
    """
    spec = SkillSpec("poi.find", timeout_s=5.0, retries=0)
    world = scripted({"poi.find": Script(after_s=1e6, ignores_cancel_s=1e6), "navigation.go": Script("Four minutes.")}, specs=[spec, GO])
    hung = [world.talk.ask("poi.find", same_turn=True) for _ in range(8)]
    other = Conversation(world.harness.open_session("b"), world.clock)
    other.ask("navigation.go")
    await other.run(1)
    assert other.texts == ["Four minutes."] and other.spoken[0][0] <= 0.2
    await world.talk.run(30)
    ends = {(t.execution, t.execution_reason) for t in world.session.status()}
    assert ends == {("failed", "timeout")} and len(hung) == 8 and all(t.closed for t in world.session.status())
    assert any(reply.kind == "notice" for _, reply in world.talk.spoken)


async def test_what_waits_can_be_told_in_one_reply():
    """Peer 18: two results are merged into one reply, which is heard once; both are accounted for."""
    world = scripted({"poi.find": Script("Two chargers."), "navigation.go": Script("Four minutes.")}, specs=SPECS)
    talk, session = world.talk, world.session
    talk.user_speaking = True
    one, two = talk.ask("poi.find"), talk.ask("navigation.go", same_turn=True)
    await talk.run(1)
    assert session.merge(one, two) and session.replace(two, "Two chargers, four minutes away.")
    talk.user_speaking = False
    await talk.run(6)
    assert talk.texts == ["Two chargers, four minutes away."]
    assert [session.ledger.get(t).delivery for t in (one, two)] == ["merged", "delivered"]


async def test_audio_of_the_moment_reaches_a_general_task():
    """Peer 26: "what was that sound?" as a general task: the worker gets the audio before the request, and can read it while it runs."""
    clock, catalog = VirtualClock(), ListedCatalog(*SPECS)

    class Backend(Keeping):
        def contracts(self):
            return (GENERAL,)

        async def execute(self, call, context):
            heard = b"".join(bytes(m.view) for m in context.evidence.media)
            return SkillOutcome(True, text=f"It had {len(heard) // 2} samples, loudest {max(heard)}.")
    session = Harness(Backend(catalog, None), catalog, clock).open_session("a")
    ring = EvidenceRing()
    for n in range(20):
        ring.received(Audio(n * 16_000, bytes([n]) * 32_000, n))
        ring.consumed((n + 1) * 16_000, n)
    task = accept(session, 1, "general.task", Evidence.freeze(20 * 16_000, 19, media=ring.freeze(20 * 16_000, 19, 12.0)), arguments={})
    await clock.advance(0.1)
    assert session.ledger.get(task).text == "It had 192000 samples, loudest 19."
