"""A restart in the middle of a delivery: the device's own report decides, and without one nothing is said twice."""
import pytest
from desk_world import Desk, SlowJournal

from harness.task import Delivery

TEXT = "There are two chargers nearby. One is free, the other is not."


def in_air(text=TEXT, **ask):
    """A reply that is being spoken when the process dies; (desk after the restart, task id, reply)."""
    desk = Desk()
    task = desk.done(desk.ask(**ask), text)
    reply = desk.unit()
    desk.desk.started(reply.id)
    desk.restart()
    return desk, task, reply


def test_all_heard_is_delivered():
    """The device played it to the end while nobody listened to its reports."""
    desk, task, reply = in_air()
    assert desk.unit() is None, "nothing is admitted while it may still be playing"
    assert desk.desk.reattach(reply.id, heard=TEXT, unheard="", completed=True)
    assert desk.state(task) == ("delivered", "confirmed") and desk.wait(5) is None


@pytest.mark.parametrize("heard, unheard", [("There are two chargers nearby.", "One is free, the other is not."),
                                            ("There are two chargers nearby.", "")])
def test_a_part_heard_goes_on_from_there(heard, unheard):
    """Also where only the words spoken so far were noted."""
    desk, task, reply = in_air()
    assert desk.desk.reattach(reply.id, heard=heard, unheard=unheard, completed=False)
    assert desk.wait(2).text == "As I was saying, One is free, the other is not."


def test_nothing_heard_is_told_again():
    """The device lost it before its first sample: told whole, and that is no decline."""
    desk, task, reply = in_air()
    assert desk.desk.reattach(reply.id, heard="", unheard=TEXT, completed=False)
    assert desk.wait(2).text == TEXT and desk.ledger.get(task).declines == 0


def test_without_a_report_it_is_closed_and_shown():
    """Two seconds without a word from the device: UNSPOKEN, on the screen, never spoken again; then others are told."""
    desk, task, reply = in_air()
    began = desk.clock.now()
    desk.told("It is open.", capability="vehicle.set_window")
    assert desk.wait(5).text == "It is open." and 2 <= desk.clock.now() - began <= 2.2
    assert desk.state(task) == ("unspoken", "restart_unconfirmed") and [i.text for i in desk.shown] == [TEXT]
    assert desk.desk.reattach(reply.id, heard="", unheard=TEXT, completed=False) is False, "a late report changes nothing"
    assert desk.state(task) == ("unspoken", "restart_unconfirmed")


def test_a_report_of_another_reply_decides_nothing():
    """It is about something else."""
    desk, task, _ = in_air()
    assert desk.desk.reattach("reply-0", heard="", unheard=TEXT, completed=False) is False and desk.state(task)[0] == "delivering"


def test_a_joined_and_introduced_reply_is_taken_apart_again():
    """Two tasks in one reply, cut in the second one after its introduction: the first is told, the second goes on."""
    desk = Desk()
    old = desk.done(desk.ask("poi.find"), "Two of them are free, one is not.")
    new = desk.done(desk.ask("navigation.go"), "Four minutes.")
    reply = desk.unit()
    assert reply.text == "Four minutes. About the chargers: Two of them are free, one is not."
    desk.desk.started(reply.id)
    desk.restart()
    desk.desk.reattach(reply.id, heard="Four minutes. About the chargers: Two of them", unheard="are free, one is not.", completed=False)
    assert desk.state(new) == ("delivered", "confirmed") and desk.ledger.get(old).rest == "are free, one is not."


def test_a_resumed_reply_is_resumed_only_once_across_restarts():
    """Interrupted, resumed, and the process dies: whatever the device says, there is no third time."""
    for heard, end in (("As I was saying, One is free,", "unspoken"), ("", "unspoken"),
                       ("As I was saying, One is free, the other is not.", "delivered")):
        desk = Desk()
        task = desk.told(TEXT)
        desk.play(desk.unit(), "There are two chargers nearby.")
        reply = desk.wait(2)
        desk.desk.started(reply.id)
        desk.restart()
        desk.desk.reattach(reply.id, heard=heard, unheard=reply.text[len(heard):], completed=False)
        assert desk.wait(5) is None and desk.state(task)[0] == end


def test_an_admission_that_had_not_left_is_doubtful_too():
    """Recorded, then the process died: whether the reply left is unknown, so it is not spoken unasked."""
    desk = Desk(journal=SlowJournal())
    task = desk.told(TEXT)
    desk.unit()
    desk.restart()
    desk.journal.store()
    assert desk.wait(5) is None and desk.state(task) == ("unspoken", "restart_unconfirmed") and len(desk.shown) == 1


def test_waiting_and_interrupted_outcomes_are_told_after_a_restart():
    """One waits; another's interruption was recorded and not yet dealt with: each is told once, from where it was."""
    desk = Desk()
    waiting = desk.told("It is open.", capability="vehicle.set_window")
    cut = desk.done(desk.ask("poi.find"), TEXT)
    desk.ledger.deliver(cut, Delivery.DELIVERING, "reply-1")
    desk.ledger.deliver(cut, Delivery.INTERRUPTED, "heard 50%", rest="One is free, the other is not.")
    desk.restart()
    said = []
    while reply := desk.wait(3):
        said.append(reply.text)
        desk.play(reply)
    assert said == ["As I was saying, One is free, the other is not.", "About the window: It is open."]
    assert desk.state(waiting)[0] == desk.state(cut)[0] == "delivered"


def test_what_was_cancelled_while_in_doubt_is_not_told():
    """Abandoned before the device answers: dropped, not shown."""
    desk, task, reply = in_air()
    desk.desk.abandon(task, "cancelled")
    desk.desk.reattach(reply.id, heard="", unheard=TEXT, completed=False)
    assert desk.state(task) == ("dropped", "cancelled") and desk.wait(3) is None and not desk.shown
    desk, task, reply = in_air()
    desk.desk.abandon(task, "cancelled")
    assert desk.wait(3) is None and desk.state(task) == ("dropped", "cancelled") and not desk.shown


def test_closing_in_doubt_ends_it():
    """No task stays open."""
    desk, task, _ = in_air()
    desk.desk.close()
    assert desk.state(task) == ("unspoken", "session_closed") and desk.ledger.untold() == []


def test_a_reply_that_never_reached_a_front_end_that_came_back_is_offered_again():
    """Given out, and the connection broke before it was started: told once more, which is no decline; before a restart and after."""
    for restarts in (False, True):
        desk = Desk()
        task = desk.told(TEXT)
        desk.unit()
        if restarts:
            desk.restart()
        desk.desk.returned("")
        assert desk.state(task) == ("pending", "floor_taken") and desk.wait(1).text == TEXT and desk.ledger.get(task).declines == 0


def test_a_reply_that_the_front_end_holds_or_has_begun_stays_where_it_is():
    """Its marks will come."""
    desk = Desk()
    task = desk.told(TEXT)
    reply = desk.unit()
    desk.desk.returned(reply.id)
    assert desk.state(task)[0] == "delivering"
    desk.desk.started(reply.id)
    desk.desk.returned("")
    assert desk.state(task)[0] == "delivering" and desk.wait(2) is None
    desk.restart()
    desk.desk.returned(reply.id)
    assert desk.state(task)[0] == "delivering"


def test_work_that_goes_on_after_a_restart_is_not_acknowledged_again():
    """Its progress is told, at its time."""
    desk = Desk(settings=dict(ack_after_s=0.0))
    task = desk.ask()
    desk.play(desk.unit())
    desk.restart()
    desk.late.taken_up(task)
    assert desk.wait(5).kind == "progress"
