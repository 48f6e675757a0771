"""Yes/no questions of ours: put once, at a good moment, and open only once they were heard."""
import pytest
from desk_world import Desk

LATE = dict(ack_after_s=99, progress_after_s=99, offer_stop_after_s=3, give_up_after_s=20)


def offered(capability="poi.find", **settings):
    """A desk whose slow task has been offered to be stopped, heard to the end; (desk, task id, reply)."""
    desk = Desk(settings=LATE | settings)
    task = desk.ask(capability)
    desk.late.said(desk.late.due(desk.ledger.get(task), desk.desk._spec_of(capability), 2.6, 1), -9)  # the first progress
    reply = desk.wait(5)
    return desk, task, reply


def test_the_offer_to_stop_is_a_question_that_is_open_once_heard():
    """Not open while it is spoken; open from its last word until it expires."""
    desk, task, reply = offered()
    assert reply.kind == "question" and reply.text.startswith("This is taking long. Shall I stop")
    assert desk.desk.open_offer(desk.clock.now()) is None and desk.desk.answer("yes", "en") is None
    desk.play(reply)
    offer = desk.desk.open_offer(desk.clock.now())
    assert (offer.task_id, offer.kind, offer.on_yes, offer.on_no, offer.turn) == (task, "stop", "cancel", "keep", 1)
    desk.clock._now += 10.5
    assert desk.desk.open_offer(desk.clock.now()) is None and desk.desk.answer("yes", "en") is None


@pytest.mark.parametrize("heard, confirmed, is_open", [("This is taking", True, False), ("", True, False), (None, False, False),
                                                       ("This is taking long. Shall I stop working on the", True, True)])
def test_a_question_that_was_not_surely_heard_is_not_open(heard, confirmed, is_open):
    """Cut off early, or without the device's confirmation: "yes" can't be its answer. Nearly whole is heard."""
    desk, _, reply = offered()
    desk.play(reply, heard, confirmed=confirmed)
    assert (desk.desk.open_offer(desk.clock.now()) is not None) is is_open


@pytest.mark.parametrize("said, action", [("yes please", "cancel"), ("no, keep going", "keep"), ("stop it", "cancel"), ("go on", "keep"),
                                          ("嗯 好的", "cancel"), ("不用了", "keep"), ("继续吧", "keep")])
def test_an_answer_says_what_becomes_of_the_task_and_closes_the_question(said, action):
    """The action, a sentence that confirms it, and no second answer."""
    desk, task, reply = offered()
    desk.play(reply)
    answer = desk.desk.answer(said, "en" if said.isascii() else "zh")
    assert (answer.task_id, answer.action, answer.kind) == (task, action, "stop") and answer.text
    assert desk.desk.answer(said, "en") is None


def test_a_request_is_no_answer_and_leaves_the_question_open():
    """It goes to the planner; the answer may still come in the next turn, and not later."""
    desk, _, reply = offered()
    desk.play(reply)
    assert desk.desk.answer("No, take me to the port.", "en") is None
    assert desk.desk.answer("yes", "en", turn=desk.turn + 2) is None, "two turns on, a yes is about something else"
    assert desk.desk.answer("yes", "en", turn=desk.turn + 1) is None, "and it stays closed"


def test_an_answer_in_the_next_turn_counts():
    """The answer itself is a turn of its own."""
    desk, _, reply = offered()
    desk.play(reply)
    assert desk.desk.answer("yes", "en", turn=desk.turn + 1).action == "cancel"


def test_nothing_is_open_about_a_task_that_has_ended():
    """Its result came meanwhile: "yes" is about that, not about stopping."""
    desk, task, reply = offered()
    desk.play(reply)
    desk.done(task)
    assert desk.desk.open_offer(desk.clock.now()) is None


def test_kept_it_goes_on_and_is_asked_about_again_only_after_as_long_again():
    """The times of the offer and of giving up start with the answer."""
    desk, task, reply = offered()
    desk.play(reply)
    spec, at = desk.desk._spec_of("poi.find"), desk.clock.now()
    desk.desk.answer("no, keep going", "en")
    assert desk.late.give_up_at(desk.ledger.get(task), spec) == pytest.approx(at + 20)
    assert desk.wait(2.8) is None
    assert desk.wait(0.5).kind == "question"


def test_it_is_not_given_up_while_the_question_can_be_answered():
    """Offered late because the user spoke: there is time for an answer before the apology."""
    desk, task, reply = offered(give_up_after_s=4, offer_open_s=3)
    assert desk.late.give_up_at(desk.ledger.get(task), desk.desk._spec_of("poi.find")) == pytest.approx(desk.said[-1][0] + 3, abs=0.01)


def test_what_cannot_be_stopped_is_not_offered_to_be_stopped():
    """The user is told so instead; nothing is open then."""
    desk, _, reply = offered("vehicle.set_tailgate")
    assert reply.kind == "progress" and "can't stop" in reply.text
    desk.play(reply)
    assert desk.desk.open_offer(desk.clock.now()) is None


def test_a_declined_question_is_put_once_more():
    """The front end's refusal is normal, as for a reply."""
    desk, _, reply = offered()
    desk.desk.declined(reply.id)
    again = desk.wait(3)
    assert again.text == reply.text
    desk.desk.declined(again.id)
    assert desk.wait(5) is None


def test_while_a_question_is_open_no_other_notice_comes_between():
    """Progress of another task waits; a result does not."""
    desk, _, reply = offered(progress_after_s=9)
    other = desk.ask("navigation.go", same_turn=True)
    desk.play(reply)
    assert desk.wait(6) is None
    desk.done(other, "Four minutes.")
    assert desk.unit().text == "Four minutes."


def test_the_user_is_asked_once_whether_a_task_should_go_on_when_they_turned_to_something_else():
    """Policy `ask`: after the answer to the new request, one question; yes keeps it and it isn't asked again."""
    desk = Desk(settings=LATE | dict(offer_stop_after_s=99))
    scene = desk.ask("scene.look")
    desk.late.said(desk.late.due(desk.ledger.get(scene), desk.desk._spec_of("scene.look"), 2.6, 1), -9)
    assert desk.wait(2) is None
    new = desk.ask("navigation.go")
    assert desk.wait(0.5) is None, "the answer to the newest request goes first"
    desk.done(new, "Four minutes.")
    desk.play(desk.wait(1))
    question = desk.wait(2)
    assert question.text == "Should I go on with what you asked for?" and question.task_id == scene
    desk.play(question)
    assert desk.desk.open_offer(desk.clock.now()).kind == "go_on"
    answer = desk.desk.answer("yes please", "en", turn=desk.turn + 1)
    assert (answer.task_id, answer.action) == (scene, "keep")
    desk.told("Open.", capability="vehicle.set_window")
    desk.play(desk.wait(1))
    assert desk.wait(10) is None


@pytest.mark.parametrize("said, action", [("no thanks", "cancel"), ("stop it", "cancel"), ("go on", "keep"), ("算了", "cancel")])
def test_answers_to_whether_it_should_go_on(said, action):
    """Here no means stop."""
    desk = Desk(settings=LATE | dict(offer_stop_after_s=99))
    desk.ask("scene.look")
    desk.told("Four minutes.", capability="navigation.go")
    desk.play(desk.wait(1))
    question = desk.wait(3)
    while question.kind != "question":
        desk.play(question)
        question = desk.wait(3)
    desk.play(question)
    assert desk.desk.answer(said, "en" if said.isascii() else "zh").action == action


def test_talk_and_questions_about_the_task_are_not_something_else():
    """A newer turn without a request, a status question, or a correction of the same task: nothing is asked."""
    desk = Desk(settings=LATE | dict(offer_stop_after_s=99))
    scene = desk.ask("scene.look")
    desk.late.said(desk.late.due(desk.ledger.get(scene), desk.desk._spec_of("scene.look"), 2.6, 1), -9)
    desk.turn += 1
    status = desk.ask("harness.status")
    desk.done(status, "Working on it.")
    desk.play(desk.wait(1))
    assert desk.wait(8) is None


def test_a_question_among_the_outcomes_is_known_once_heard():
    """What a planner may take the next prose to answer: the newest question of which something was heard, for a while."""
    desk = Desk()
    task = desk.done(desk.ask(), "Which one do you mean?", kind="question")
    assert desk.desk.last_question(20) is None
    desk.play(desk.unit(), "Which one")
    assert desk.desk.last_question(20).id == task
    desk.clock._now += 21
    assert desk.desk.last_question(20) is None
