"""What is said while a task takes its time, and when it is given up."""
import pytest
from harness_world import POI, state, states, world

from harness import SkillSpec
from harness.testing import Script


def kinds(talk):
    return [(round(at, 1), reply.kind) for at, reply in talk.spoken]


async def test_a_slow_task_is_acknowledged_at_once_and_tells_its_progress():
    """Acknowledgement within two units, progress at 2.5 s and 10 s in the skill's words, the offer at 30 s, the result once."""
    talk, *_ = world({"poi.find": Script("Two chargers nearby.", after_s=33, progress=((2, "I found the area."),))},
                     sentences={("poi.find", "ack"): "Looking for a {query}."})
    talk.ask("poi.find", {"query": "charger"})
    await talk.run(40)
    assert talk.texts[0] == "Looking for a charger."
    assert [k for _, k in kinds(talk)] == ["ack", "progress", "progress", "question", "result"]
    times = [t for t, _ in kinds(talk)]
    assert times[0] <= 0.2 and 2.5 <= times[1] <= 3 and 10 <= times[2] <= 10.5 and 30 <= times[3] <= 30.5
    assert talk.texts[1] == "I found the area." and "the charger" in talk.texts[2].lower() and "Shall I stop" in talk.texts[3]
    assert talk.texts[4] == "Two chargers nearby."


async def test_no_acknowledgement_where_the_result_is_quicker():
    """A result within 0.8 s comes alone; a later one is acknowledged within a second."""
    talk, *_ = world({"navigation.go": [Script("Quick.", after_s=0.5), Script("Slow.", after_s=1.5)]})
    talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(5)
    assert talk.texts == ["Quick."]
    began = talk.clock.now()
    talk.ask("navigation.go", {"destination": "port"})
    await talk.run(10)
    assert [k for _, k in kinds(talk)[1:]] == ["ack", "result"] and talk.spoken[1][0] - began <= 1.0


async def test_a_question_during_a_slow_task_is_answered_at_once_and_the_result_follows_once():
    """The slow task's result comes later, introduced, exactly once."""
    talk, *_ = world({"poi.find": Script("Two chargers nearby.", after_s=6), "navigation.go": Script("Four minutes.")})
    slow = talk.ask("poi.find", {"query": "charger"})
    await talk.run(2)
    asked = talk.clock.now()
    talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(15)
    assert next(at for at, r in talk.spoken if r.text == "Four minutes.") - asked <= 0.3
    assert [t for t in talk.texts if "chargers" in t] == ["About the charger: Two chargers nearby."]
    assert state(talk, slow)[:2] == ("completed", "delivered")


async def test_a_task_that_goes_on_is_cancelled_with_an_apology():
    """At 30 s an offer, at 45 s CANCELLED; the apology is told, the result never."""
    talk, runner, seen = world({"poi.find": Script("Far too late.", after_s=80)})
    task = talk.ask("poi.find", {"query": "charger"})
    await talk.run(100)
    assert states(seen, task, "execution") == ["queued", "running", "cancelling", "cancelled"]
    assert "couldn't finish the charger in time" in talk.texts[-1] and "Far too late." not in talk.texts
    assert state(talk, task) == ("cancelled", "delivered", "confirmed")
    assert [what for _, what, _ in runner.events] == ["started", "cancelled"]


async def test_a_run_past_its_own_deadline_is_a_spoken_timeout():
    """A runner that doesn't keep the skill's timeout is cut off by the harness, with a second's grace."""
    talk, _, seen = world({"navigation.go": Script("Too late.", after_s=50)})
    task = talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(10.9)
    assert state(talk, task)[0] == "running"
    await talk.run(10)
    assert state(talk, task)[0] == "failed" and talk.harness.ledger.get(task).execution_reason == "timeout"
    assert talk.texts[-1] == "Sorry, the route to casino took too long."


async def test_progress_is_not_repeated_and_not_said_over_a_finished_task():
    """The skill's words are said once; when the result is there, no progress follows."""
    talk, *_ = world({"poi.find": Script("Here.", after_s=11, progress=((1, "Searching the old town."),))})
    talk.ask("poi.find", {"query": "charger"})
    await talk.run(20)
    assert talk.texts.count("Searching the old town.") == 1
    assert talk.texts[-1] == "Here." and [k for _, k in kinds(talk)][-1] == "result"


async def test_all_times_are_the_skills_or_the_settings():
    """A skill's own first progress time and changed settings are kept."""
    spec = SkillSpec(POI.id, timeout_s=90, slow=True, first_progress_s=5.0)
    talk, *_ = world({"poi.find": Script("Here.", after_s=20)}, specs=(spec,), progress_after_s=15.0)
    talk.ask("poi.find", {"query": "charger"})
    await talk.run(25)
    assert [round(t) for t, k in kinds(talk) if k == "progress"] == [5, 15]


async def test_a_request_that_waited_too_long_for_a_place_has_expired():
    """Queued beyond its time: EXPIRED, never run, and the user is told."""
    talk, runner, _ = world({"poi.find": Script("Here.", after_s=40)}, max_running=1)
    talk.ask("poi.find", {"query": "charger"})
    second = talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(30)
    assert state(talk, second) == ("expired", "delivered", "confirmed")
    assert [c.skill_id for c in runner.calls] == ["poi.find"]
    assert any("didn't get round to the route to casino" in text for text in talk.texts)


async def test_an_acknowledgement_comes_for_the_newest_question_only():
    """Missed because the user went on to something else: not said afterwards."""
    talk, *_ = world({"poi.find": Script("Here.", after_s=2)})
    talk.user_speaking = True
    talk.ask("poi.find", {"query": "charger"})
    await talk.run(0.5)
    talk.turn += 1
    talk.user_speaking = False
    await talk.run(6)
    assert talk.texts == ["About the charger: Here."]


async def test_notices_about_one_task_keep_their_distance():
    """An acknowledgement that could only come late isn't followed by progress at once."""
    talk, *_ = world({"poi.find": Script("Here.", after_s=8)}, notice_gap_s=3.0)
    talk.user_speaking = True
    talk.ask("poi.find", {"query": "charger"})
    await talk.run(2.2)
    talk.user_speaking = False
    await talk.run(12)
    assert [k for _, k in kinds(talk)] == ["ack", "progress", "result"]
    assert talk.spoken[1][0] - talk.spoken[0][0] >= 3.0


@pytest.mark.parametrize("after_s, progress, offers", [(0.4, 0, 0), (3, 1, 0), (12, 2, 0), (35, 2, 1)])
async def test_the_number_of_messages_fits_how_long_it_takes(after_s, progress, offers):
    """0.4 s: the result alone. 3 s: an acknowledgement and one progress. 12 s: two. 35 s: two and the offer to stop."""
    talk, *_ = world({"poi.find": Script("Here.", after_s=after_s)}, specs=(SkillSpec("poi.find", timeout_s=90),))
    talk.ask("poi.find", {"query": "charger"})
    await talk.run(after_s + 5)
    assert [k for _, k in kinds(talk)] == ["ack"] * (after_s > 1) + ["progress"] * progress + ["question"] * offers + ["result"]
    if after_s > 1:
        assert talk.spoken[0][0] <= 1.0


@pytest.mark.parametrize("after_s", [0.4, 3, 12, 35])
async def test_no_message_is_said_over_the_user(after_s):
    """The user speaks for most of the time: whatever is said begins in a pause, and the result is among it once."""
    talk, *_ = world({"poi.find": Script("Here.", after_s=after_s)}, specs=(SkillSpec("poi.find", timeout_s=90),))
    talk.ask("poi.find", {"query": "charger"})
    for n in range(round(after_s + 5)):
        talk.user_speaking = talk.turn_open = n % 3 != 2
        before = len(talk.spoken)
        await talk.run(1)
        assert len(talk.spoken) == before or not talk.user_speaking
    talk.user_speaking = talk.turn_open = False
    await talk.run(5)
    assert talk.texts.count("Here.") == 1


async def test_every_time_is_the_capabilitys_own_where_it_has_one():
    """Acknowledgement, both progress sentences, the offer and giving up, each at its own second; another skill keeps the settings'."""
    spec = SkillSpec(POI.id, timeout_s=90, ack_after_s=0.3, first_progress_s=4.0, progress_after_s=8.0, offer_stop_after_s=12.0,
                     give_up_after_s=24.0)
    talk, *_ = world({"poi.find": Script("Far too late.", after_s=80), "navigation.go": Script("Here.", after_s=9)},
                     specs=(spec, SkillSpec("navigation.go", timeout_s=90)))
    task = talk.ask("poi.find", {"query": "charger"})
    await talk.run(30)
    assert [k for _, k in kinds(talk)][:4] == ["ack", "progress", "progress", "question"]
    assert all(at <= said <= at + 0.11 for at, (said, _) in zip((0.3, 4, 8, 12), talk.spoken))
    assert state(talk, task)[0] == "cancelled" and "couldn't finish the charger in time" in talk.texts[-1]
    assert 24 <= talk.spoken[-1][0] <= 25
    began, said = talk.clock.now(), len(talk.spoken)
    talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(12)
    assert [r.kind for _, r in talk.spoken[said:]] == ["ack", "progress", "result"]
    assert all(at <= t - began <= at + 0.21 for at, (t, _) in zip((0.8, 2.5, 9), talk.spoken[said:]))


async def test_an_acknowledgement_of_an_instant_skill_may_be_switched_on():
    """ack_after_s 0 acknowledges at once even what is not slow."""
    talk, *_ = world({"poi.find": Script("Here.", after_s=0.5)}, specs=(SkillSpec("poi.find", ack_after_s=0.0),))
    talk.ask("poi.find", {"query": "charger"})
    await talk.run(4)
    assert [k for _, k in kinds(talk)] == ["ack", "result"] and talk.spoken[0][0] <= 0.2


async def test_a_reissued_request_is_spoken_once():
    """The same idempotency key again, before and after the result: one task, one run, one reply."""
    talk, runner, _ = world({"poi.find": Script("Here.", after_s=2)})
    first = talk.ask("poi.find", {"query": "charger"}, key="same")
    await talk.run(1)
    assert talk.ask("poi.find", {"query": "charger"}, key="same", same_turn=True) == first
    await talk.run(10)
    assert talk.ask("poi.find", {"query": "charger"}, key="same", same_turn=True) == first
    await talk.run(10)
    assert talk.texts.count("Here.") == 1 and len(runner.calls) == 1
