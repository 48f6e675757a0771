"""The screen: every outcome that was not spoken is offered there once, and nothing that is wrong or unwanted."""
import pytest
from desk_world import Desk

from venus_edge.metrics import METRICS


def decline(desk, times):
    for _ in range(times):
        desk.desk.declined(desk.wait(3).id)


def test_an_outcome_the_front_end_declines_is_offered_on_the_screen_once():
    """Retried by policy, then UNSPOKEN, then one item with all a screen needs; the session goes on."""
    desk = Desk(settings=dict(max_declines=2))
    task = desk.told("Two of them.")
    decline(desk, 3)
    assert desk.state(task) == ("unspoken", "declined")
    (item,) = desk.shown
    assert (item.task_id, item.task_version, item.kind, item.text, item.reason, item.lang) == (task, 1, "result", "Two of them.", "declined", "en")
    assert item.at == pytest.approx(desk.clock.wall() - desk.clock.now(), abs=0.01), "the wall time at which the work had ended"
    assert desk.desk.screen() == (item,) and desk.wait(5) is None
    desk.told("Three.")
    assert desk.wait(1).text == "Three."


@pytest.mark.parametrize("declines, offers", [(0, 1), (1, 2), (3, 4)])
def test_declines_are_retried_as_often_as_the_setting_says(declines, offers):
    """And no more often."""
    desk = Desk(settings=dict(max_declines=declines))
    task = desk.told("Two of them.")
    decline(desk, offers)
    assert desk.wait(5) is None and desk.state(task) == ("unspoken", "declined") and len(desk.said) == offers


def test_a_reply_that_never_starts_and_one_beyond_the_bound_are_shown():
    """Every way to UNSPOKEN ends on the screen."""
    desk = Desk(settings=dict(max_untold=1))
    first, second = desk.told("One."), desk.told("Two.")
    assert desk.state(first) == ("unspoken", "too_many")
    desk.unit()
    desk.clock._now += 11
    desk.unit()
    assert desk.state(second) == ("unspoken", "not_started")
    assert [(i.text, i.reason) for i in desk.shown] == [("One.", "too_many"), ("Two.", "not_started")]


def test_a_result_that_expired_is_shown_while_it_is_useful():
    """Just expired: shown with the time it is of; long ago, a failure or a question: not."""
    for kind, wait, shown in (("result", 65, 1), ("result", 500, 0), ("notice", 65, 0), ("question", 65, 0)):
        desk = Desk()
        task = desk.done(desk.ask(), "Two of them.", kind=kind)
        desk.clock._now += wait
        desk.unit(user_speaking=True)
        assert desk.state(task) == ("dropped", "expired") and len(desk.shown) == shown


def test_nothing_superseded_or_cancelled_is_shown():
    """Declined, but corrected or cancelled meanwhile: dropped in silence, on the screen too."""
    for how in ("superseded", "cancelled"):
        desk = Desk()
        task = desk.told("Two of them.", capability="navigation.go")
        reply = desk.unit()
        if how == "superseded":
            desk.ledger.accept(key="x", capability="navigation.go", arguments={}, turn=2, supersedes=task)
        else:
            desk.desk.abandon(task, "cancelled")
        desk.clock._now += 11  # it never starts
        desk.unit()
        assert desk.state(task) == ("dropped", how) and not desk.shown and reply is not None


def test_what_is_corrected_later_leaves_the_screen():
    """An item whose task is superseded is not among those a screen may show."""
    desk = Desk(settings=dict(max_declines=0))
    task = desk.told("Two of them.", capability="navigation.go")
    decline(desk, 1)
    assert [i.task_id for i in desk.desk.screen()] == [task]
    desk.ledger.accept(key="x", capability="navigation.go", arguments={}, turn=2, supersedes=task)
    assert desk.desk.screen() == ()


def test_the_screen_is_bounded():
    """The newest stay; what leaves is counted."""
    desk, before = Desk(settings=dict(screen_items=3, max_declines=0)), METRICS.get("venus_harness_screen_overflow_total")
    for n in range(5):
        desk.told(f"Result {n}.")
        decline(desk, 1)
    assert [i.text for i in desk.desk.screen()] == ["Result 2.", "Result 3.", "Result 4."] and len(desk.shown) == 5
    assert METRICS.get("venus_harness_screen_overflow_total") == before + 2


def test_what_was_told_is_not_shown():
    """Heard, merged or stopped: nothing on the screen."""
    desk = Desk()
    desk.told("One.", capability="vehicle.set_window")
    desk.done(desk.ask("poi.find", same_turn=True), "Two.")
    desk.play(desk.unit())
    desk.told("Three of them are free.")
    desk.play(desk.wait(1), "Three", stopped=True)
    desk.desk.close()
    assert desk.shown == [] and desk.ledger.untold() == []
