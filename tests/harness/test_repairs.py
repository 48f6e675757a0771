"""Corrections, cancellations, "how is it going?" and "say that again"."""
from harness_world import state, states, world

from harness.testing import Script


async def test_a_correction_supersedes_the_running_task():
    """"No, the casino": a new version in the same lineage; the old run is stopped and nothing of it is ever said."""
    talk, runner, seen = world({"navigation.go": [Script("To the port.", after_s=5), Script("To the casino.")]})
    old = talk.ask("navigation.go", {"destination": "port"})
    await talk.run(0.3)
    new = talk.ask("navigation.go", {"destination": "casino"}, repair="update")
    await talk.run(10)
    task = talk.harness.ledger.get(new)
    assert (task.version, task.lineage, task.replaces) == (2, old, old)
    assert state(talk, old) == ("superseded", "dropped", "superseded")
    assert talk.texts == ["To the casino."]
    assert [e[1] for e in runner.events] == ["started", "cancelled", "started", "finished"]


async def test_a_late_return_of_a_superseded_task_is_counted_and_never_spoken():
    """A run that ignores its cancellation and succeeds later changes nothing; its successor waits for it, at most a second."""
    talk, runner, _ = world({"navigation.go": [Script("To the port.", after_s=0.5, ignores_cancel_s=3,
                                                      memory=lambda m: {"route": "port"}), Script("To the casino.")]})
    old = talk.ask("navigation.go", {"destination": "port"})
    await talk.run(0.2)
    talk.ask("navigation.go", {"destination": "casino"}, repair="update")
    await talk.run(10)
    assert [t for t in talk.texts if "To the" in t] == ["To the casino."]
    assert talk.harness.ledger.counters()["late_returns"] == 1
    assert talk.harness.memory == {} and state(talk, old)[0] == "superseded"
    started = [at for at, what, _ in runner.events if what == "started"]
    assert 1.0 <= started[1] - 0.2 <= 1.2


async def test_a_correction_while_the_reply_is_spoken_drops_its_rest():
    """Superseded in the air: interrupted, then dropped, not resumed."""
    talk, _, seen = world({"navigation.go": [Script("To the port, along the quay."), Script("To the casino.")]})
    old = talk.ask("navigation.go", {"destination": "port"})
    await talk.run(0.3)
    new = talk.ask("navigation.go", {"destination": "casino"}, repair="update")
    talk.interrupt("To the port,")
    await talk.run(10)
    assert talk.texts[1:] == ["To the casino."]
    assert states(seen, old, "delivery") == ["pending", "delivering", "interrupted", "dropped"]
    assert state(talk, new)[1] == "delivered"


async def test_a_correction_of_something_just_told_keeps_its_lineage():
    """A minute later it is still the same matter; much later it is a new one."""
    talk, *_ = world()
    first = talk.ask("navigation.go", {"destination": "port"})
    await talk.run(20)
    second = talk.ask("navigation.go", {"destination": "casino"}, repair="update")
    await talk.run(120)
    third = talk.ask("navigation.go", {"destination": "port"}, repair="update")
    ledger = talk.harness.ledger
    assert ledger.get(second).lineage == first and ledger.get(first).superseded_by == second
    assert ledger.get(third).lineage == third


async def test_a_correction_goes_to_its_own_group_first():
    """"No, the casino" corrects the route, not the window that was asked for later."""
    talk, *_ = world({"navigation.go": Script(after_s=5)})
    route = talk.ask("navigation.go", {"destination": "port"})
    window = talk.ask("vehicle.set_window", {"position": 0})
    await talk.run(0.1)
    new = talk.ask("navigation.go", {"destination": "casino"}, repair="update")
    assert talk.harness.ledger.get(new).replaces == route and not talk.harness.ledger.get(window).superseded_by


async def test_cancel_stops_the_newest_running_task_and_says_so():
    """Acknowledged without waiting; the run is cancelled, its result never told, the confirmation names the matter."""
    talk, runner, _ = world({"poi.find": Script("Too late.", after_s=5), "navigation.go": Script(after_s=5)})
    older = talk.ask("poi.find", {"query": "charger"})
    newer = talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(0.3)
    talk.ask(None, repair="cancel", prose="never mind")
    assert state(talk, newer)[0] == "cancelling", "acknowledged at once"
    await talk.clock.advance(0.05)
    assert state(talk, newer) == ("cancelled", "dropped", "cancelled")
    await talk.run(3)
    assert "Okay, I've stopped working on the route to casino." in talk.texts
    assert state(talk, older)[0] == "running"


async def test_cancel_drops_what_is_finished_and_untold():
    """A finished but untold result can be cancelled: dropped, not spoken."""
    talk, *_ = world({"navigation.go": Script("Four minutes.")})
    talk.user_speaking = True
    task = talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(0.5)
    talk.ask(None, repair="cancel", prose="forget it")
    talk.user_speaking = False
    await talk.run(5)
    assert talk.texts == ["Okay, I'll say no more about the route to casino."]
    assert state(talk, task) == ("completed", "dropped", "cancelled")


async def test_cancel_with_nothing_to_cancel_is_answered():
    """And a second cancel for the same task doesn't find it again."""
    talk, *_ = world()
    talk.ask(None, repair="cancel", prose="cancel that")
    await talk.run(3)
    assert talk.texts == ["There's nothing under way that I could stop."]


async def test_a_run_that_ignores_cancellation_is_given_up_after_a_second():
    """CANCELLED within a second whatever the run does; the user is told that it may go on; what it returns later is not spoken."""
    talk, *_ = world({"navigation.go": Script("Surprise.", after_s=0.5, ignores_cancel_s=20)}, ack_after_s=60)
    task = talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(0.2)
    talk.harness.cancel(task)
    await talk.run(1.1)
    assert state(talk, task)[0] == "cancelled" and talk.harness.ledger.get(task).execution_reason == "unresponsive"
    await talk.run(30)
    assert len(talk.texts) == 1 and "isn't stopping" in talk.texts[0] and talk.harness.ledger.counters()["late_returns"] == 1


async def test_status_is_told_from_the_ledger():
    """"How is it going?" names what runs, for how long, and the skill's latest progress; then what is idle."""
    talk, *_ = world({"poi.find": Script("Here.", after_s=8, progress=((3, "I'm comparing three of them."),))})
    talk.ask("poi.find", {"query": "charger"})
    await talk.run(6)
    talk.ask(None, repair="status", prose="how is it going?")
    await talk.run(1.5)
    assert talk.texts[-1] == "I'm working on the charger, for 6 seconds now. I'm comparing three of them."
    await talk.run(20)
    talk.ask(None, repair="status", prose="how is it going?")
    await talk.run(3)
    assert talk.texts[-1] == "I'm not working on anything right now."


async def test_repeat_says_the_last_outcome_again_because_it_was_asked_for():
    """As a reply of its own; acknowledgements are no outcomes; without any there is nothing to repeat."""
    talk, *_ = world({"poi.find": Script("Two chargers.", after_s=2)})
    talk.ask(None, repair="repeat", prose="say that again")
    await talk.run(3)
    talk.ask("poi.find", {"query": "charger"})
    await talk.run(6)
    talk.ask(None, repair="repeat", prose="say that again")
    await talk.run(3)
    assert talk.texts[0] == "There's nothing to repeat yet." and talk.texts[-2:] == ["Two chargers.", "Two chargers."]


async def test_repeat_takes_the_place_of_an_interrupted_rest():
    """"Say that again" in the middle: the whole text is said anew and the rest is not resumed as well."""
    talk, *_ = world({"navigation.go": Script("It is four minutes away along the quay.")})
    task = talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(0.4)
    talk.interrupt("It is four")
    again = talk.ask(None, repair="repeat", prose="what?")
    await talk.run(10)
    assert talk.texts[1:] == ["It is four minutes away along the quay."]
    assert state(talk, task)[1:] == ("merged", f"told with {again}")


async def test_what_a_correction_made_wrong_is_not_repeated():
    """After "no, the casino", "say that again" never repeats the old answer."""
    talk, *_ = world({"navigation.go": [Script("To the port."), Script("To the casino.", after_s=60)]})
    talk.ask("navigation.go", {"destination": "port"})
    await talk.run(3)
    talk.ask("navigation.go", {"destination": "casino"}, repair="update")
    talk.ask(None, repair="repeat", prose="say that again")
    await talk.run(2)
    assert talk.texts == ["To the port.", "There's nothing to repeat yet."]


async def test_the_user_taking_the_floor_cancels_what_its_skill_says():
    """on_interrupt = cancel stops the task at the next understood turn; the others go on."""
    talk, *_ = world({"scene.look": Script(after_s=9), "navigation.go": Script(after_s=9)})
    look, go = talk.ask("scene.look"), talk.ask("navigation.go", {"destination": "casino"}, same_turn=True)
    await talk.run(0.2)
    talk.harness.user_turn(talk.turn + 1)
    await talk.run(0.2)
    assert state(talk, look) == ("cancelled", "dropped", "user_took_the_floor") and state(talk, go)[0] == "running"


async def test_a_task_is_corrected_once():
    """The next correction goes to the correction, not again to what it replaced, whatever their groups are."""
    talk, *_ = world({"navigation.go": Script(after_s=5)})
    first = talk.ask("navigation.go", {"destination": "port"})
    second = talk.ask("vehicle.set_window", {"position": 0}, repair="update")
    third = talk.ask("navigation.go", {"destination": "casino"}, repair="update")
    ledger = talk.harness.ledger
    assert ledger.get(second).replaces == first and ledger.get(third).replaces == second
    assert [ledger.get(t).version for t in (first, second, third)] == [1, 2, 3]


async def test_a_second_cancel_does_not_find_what_is_being_cancelled():
    """It takes the next one, or says that there is none."""
    talk, *_ = world({"navigation.go": Script(after_s=5, ignores_cancel_s=0.9)})
    talk.ask("navigation.go", {"destination": "casino"})
    await talk.run(0.3)
    talk.ask(None, repair="cancel", prose="cancel")
    talk.ask(None, repair="cancel", prose="cancel", same_turn=True)
    await talk.run(6)
    said = " ".join(talk.texts)
    assert said.count("stopped working on") == 1 and said.count("nothing under way") == 1
