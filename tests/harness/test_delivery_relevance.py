"""Relevance at the moment of admission: topics that changed, replies that wait for the store, words that are replaced or merged."""
import pytest
from desk_world import Desk, SlowJournal

from harness.errors import Closed
from harness.task import Execution
from venus_edge.metrics import METRICS


def test_a_result_whose_policy_is_drop_is_dropped_when_the_user_asked_for_something_else():
    """Recorded with its reason, offered on the screen, never spoken; the newer answer is."""
    desk = Desk()
    old = desk.ask("web.search")
    new = desk.ask("navigation.go")
    desk.done(old, "It was founded in 1863.")
    desk.done(new, "Four minutes.")
    reply = desk.wait(1)
    assert reply.text == "Four minutes."
    desk.play(reply)
    assert desk.wait(5) is None and desk.state(old) == ("dropped", "topic_changed")
    assert [(i.task_id, i.text, i.reason) for i in desk.shown] == [(old, "It was founded in 1863.", "topic_changed")]


def test_by_default_an_older_result_is_introduced():
    """Policy `introduce`, and also `drop` where the user only talked."""
    desk = Desk()
    desk.done(desk.ask("web.search"), "It was founded in 1863.")
    desk.turn += 1
    assert desk.wait(1).text == "About what you asked for: It was founded in 1863."


def test_the_newest_answer_leads_and_the_others_follow_bounded():
    """Five ready results: the newest first, two more introduced in the same reply, the others in replies of their own."""
    desk = Desk(settings=dict(max_join=3, max_join_chars=400))
    ids = [desk.ask("poi.find") for _ in range(5)]
    for n, task in enumerate(ids):
        desk.done(task, f"Result {n}.")
    first = desk.wait(1)
    about = "About the chargers: "
    assert first.text == f"Result 4. {about}Result 3. {about}Result 2."
    desk.play(first)
    second = desk.wait(1)
    assert second.text == f"{about}Result 1. {about}Result 0."
    desk.play(second)
    assert [desk.state(t)[0] for t in ids] == ["merged", "delivered", "merged", "merged", "delivered"]


def test_what_does_not_fit_is_queued_and_a_shorter_one_may_still_join():
    """The limit is on the whole reply."""
    desk = Desk(settings=dict(max_join_chars=60))
    short = desk.told("Yes.", capability="vehicle.set_window")
    long = desk.done(desk.ask("poi.find", same_turn=True), "There are two of them, both a little out of the way.")
    newest = desk.done(desk.ask("navigation.go"), "Four minutes.")
    assert [p.task_id for p in (desk.wait(1), desk.desk._air)[1].parts] == [newest, short] and desk.state(long)[0] == "pending"


# -- the store

def test_a_reply_leaves_only_after_its_admission_is_stored():
    """DELIVERING is written, and the reply comes with the first unit after the store has it."""
    desk = Desk(journal=SlowJournal())
    task = desk.told("Four minutes.")
    assert [desk.unit() for _ in range(3)] == [None] * 3 and desk.state(task)[0] == "delivering"
    desk.journal.store()
    reply = desk.unit()
    assert reply.text == "Four minutes." and desk.ledger.get(task).reply == reply.id
    desk.play(reply)
    assert desk.moves(task) == ["pending", "delivering", "delivered"]


def test_later_records_do_not_hold_a_stored_admission_back():
    """A busy session writes all the time: what counts is the reply's own record."""
    desk = Desk(journal=SlowJournal())
    desk.told("Four minutes.")
    desk.unit()
    desk.journal.store()
    desk.ask("poi.find", same_turn=True)
    assert desk.unit().text == "Four minutes."


def test_a_reply_that_lost_the_floor_while_it_waited_is_taken_back_without_a_decline():
    """The user speaks before the store is done: PENDING again with the reason floor_taken, and told later, whole."""
    desk = Desk(journal=SlowJournal())
    task = desk.told("Four minutes.")
    desk.unit()
    assert desk.unit(user_speaking=True, turn_open=True) is None
    assert desk.state(task) == ("pending", "floor_taken") and desk.ledger.get(task).declines == 0
    for _ in range(8):  # however often
        desk.unit()
        desk.unit(user_speaking=True, turn_open=True)
    desk.unit()
    desk.journal.store()
    assert desk.unit().text == "Four minutes." and desk.ledger.get(task).declines == 0


@pytest.mark.parametrize("what", ["superseded", "cancelled", "expired"])
def test_what_becomes_obsolete_while_it_waits_for_the_store_is_never_given_out(what):
    """Superseded, cancelled or expired between choice and admission: dropped, the other part is told."""
    desk = Desk(journal=SlowJournal())
    other = desk.told("It is open.", capability="vehicle.set_window", ttl_s=500.0)
    task = desk.done(desk.ask("navigation.go", same_turn=True, ttl_s=20.0), "Four minutes.")
    desk.unit()
    assert desk.state(task)[0] == desk.state(other)[0] == "delivering"
    if what == "superseded":
        desk.ledger.accept(key="x", capability="navigation.go", arguments={}, turn=desk.turn, supersedes=task)
    elif what == "cancelled":
        desk.desk.abandon(task, "cancelled")
    else:
        desk.clock._now += 21
    desk.unit()
    desk.unit()
    desk.journal.store()
    desk.unit()
    assert desk.texts == ["It is open."] and desk.state(task) == ("dropped", what)


def test_a_newer_turn_takes_a_waiting_reply_back():
    """Chosen as the newest answer, and then no longer that: it is chosen anew, with an introduction."""
    desk = Desk(journal=SlowJournal())
    desk.told("Four minutes.")
    desk.unit()
    desk.turn += 1
    desk.unit()
    desk.journal.store()
    desk.wait(1)
    desk.journal.store()
    assert desk.wait(1).text == "About the chargers: Four minutes."


def test_notices_do_not_wait_for_the_store():
    """An acknowledgement has no record: it is said at once."""
    desk = Desk(journal=SlowJournal(), settings=dict(ack_after_s=0.0))
    desk.ask()
    assert desk.unit().kind == "ack"


def test_a_store_that_refuses_costs_a_delay_and_no_session():
    """A record is refused in the middle of an admission: nothing is given out, and all is told once the store takes it."""
    class Refusing(SlowJournal):
        refuses = ""

        def append(self, record):
            if record.task == self.refuses and record.dst == "delivering":
                raise Closed("full")
            super().append(record)

        def durable(self, n=None):
            return True

    desk = Desk(journal=Refusing())
    first = desk.told("It is open.", capability="vehicle.set_window")
    second = desk.done(desk.ask("navigation.go", same_turn=True), "Four minutes.")
    desk.journal.refuses = second
    assert desk.unit() is None and desk.state(first) == ("pending", "floor_taken") and desk.state(second)[0] == "pending"
    desk.journal.refuses = ""
    assert desk.wait(0.6).text == "It is open. Four minutes."


# -- replaced and merged

def test_an_undelivered_outcome_can_be_reworded():
    """Only the new words are spoken; the ledger has them; the kind may change too."""
    desk = Desk()
    desk.turn = 1
    task = desk.done(desk.ask(same_turn=True), "Two of them.")
    assert desk.desk.replace(task, "Three of them.", kind="notice")
    reply = desk.unit()
    assert (reply.text, reply.kind) == ("Three of them.", "notice") and desk.ledger.get(task).text == "Three of them."
    desk.play(reply)
    assert desk.wait(3) is None and desk.texts == ["Three of them."]


def test_what_is_in_the_air_or_told_is_not_reworded_or_merged():
    """False, and nothing changes."""
    desk = Desk()
    task = desk.told("Two of them.")
    reply = desk.unit()
    assert desk.desk.replace(task, "Three.") is False and desk.desk.merge(task, "x") is False
    desk.play(reply)
    assert desk.desk.replace(task, "Three.") is False and desk.desk.merge(task, "x") is False
    assert desk.state(task) == ("delivered", "confirmed") and desk.ledger.get(task).text == "Two of them."


@pytest.mark.parametrize("new, then, state", [
    ("There are two chargers nearby. Both are free. The nearer one is on the left.", "As I was saying, Both are free. The nearer one is on the left.",
     "pending"),
    ("There are two chargers nearby. Both are taken.", "As I was saying, Both are taken.", "pending"),
    ("Both are taken. There are two chargers nearby.", "Both are taken.", "pending"),
    ("There are two chargers nearby.", None, "dropped")])
def test_replacing_an_interrupted_outcome_repeats_nothing_that_was_heard(new, then, state):
    """Sentences that were heard are left out of the new words; where none is left, nothing is said."""
    desk = Desk()
    task = desk.told("There are two chargers nearby. One is free. The other is not.")
    desk.play(desk.unit(), "There are two chargers nearby.")
    assert desk.desk.replace(task, new) and desk.state(task)[0] == state
    reply = desk.wait(2)
    assert (reply.text if reply else None) == then
    if reply is None:
        assert desk.state(task) == ("dropped", "already_heard") and not desk.shown


def test_a_waiting_admission_is_taken_back_to_be_reworded_merged_or_abandoned():
    """Chosen but not stored: it has not left, so it can still change."""
    for act, text in ((lambda d, t: d.replace(t, "Three."), "Three."), (lambda d, t: d.merge(t, "x"), None),
                      (lambda d, t: d.abandon(t, "cancelled"), None)):
        desk = Desk(journal=SlowJournal())
        task = desk.told("Two of them.")
        desk.unit()
        act(desk.desk, task)
        desk.unit()
        desk.journal.store()
        desk.unit()
        assert desk.texts == ([text] if text else []) and desk.ledger.get(task).declines == 0


def test_merged_outcomes_are_recorded_and_silent():
    """Told by another reply: MERGED with its id."""
    desk = Desk()
    task = desk.told("Two of them.")
    assert desk.desk.merge(task, "task-9") and desk.state(task) == ("merged", "told with task-9")
    assert desk.wait(2) is None and not desk.shown


# -- reports

def test_marks_for_an_old_reply_have_no_effect_but_a_count():
    """After a truncation its late reports change nothing of the next reply."""
    desk = Desk()
    first = desk.told("There are two chargers nearby. One of them is free right now.")
    old = desk.unit()
    desk.play(old, "There are two chargers nearby.")
    new = desk.wait(2)
    before, state = METRICS.get("venus_harness_stale_reports_total"), desk.state(first)
    desk.desk.started(old.id)
    desk.desk.finished(old.id, heard=old.text, unheard="", completed=True, confirmed=True, stopped=False)
    desk.desk.finished(old.id, heard="", unheard=old.text, completed=False, confirmed=True, stopped=True)
    desk.desk.declined(old.id)
    assert METRICS.get("venus_harness_stale_reports_total") == before + 4 and desk.state(first) == state == ("delivering", new.id)
    desk.play(new)
    assert desk.state(first) == ("delivered", "confirmed")


def test_a_task_that_is_being_cancelled_says_nothing_more():
    """No progress of what the user has just stopped."""
    desk = Desk(settings=dict(ack_after_s=0.0))
    task = desk.ask()
    desk.ledger.execute(task, Execution.CANCELLING, "cancelled")
    assert desk.wait(15) is None


def test_progress_of_a_result_that_is_ready_in_the_same_instant_is_skipped():
    """Both due at once: only the result is told."""
    desk = Desk(settings=dict(ack_after_s=0.0))
    task = desk.ask()
    desk.play(desk.unit())
    desk.clock._now = 2.5
    desk.done(task, "Two of them.")
    desk.play(desk.wait(1))
    assert desk.texts[1:] == ["Two of them."] and desk.wait(5) is None
