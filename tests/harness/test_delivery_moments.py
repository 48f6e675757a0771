"""When nothing is as quiet as it should be: a bounded wait, then the best moment; in a quiet session a quarter of a second."""
import pytest
from desk_world import Desk

RESTLESS = [True, True, False] * 60
"""Bursts with pauses of one unit: never the usual quiet."""


def speak_over(desk, flags, **more):
    """Units with the user speaking as `flags` say; (seconds waited, user had spoken in that unit) of the first reply."""
    began = desk.clock.now()
    for on in flags:
        if desk.unit(user_speaking=on, **more):
            return desk.clock.now() - began, on
    return None


@pytest.mark.parametrize("speech_s", [0.0, 0.5, 3.0, 8.0])
def test_a_quiet_session_waits_at_most_250_ms(speech_s):
    """From the end of speech to the admission, for an older result as for the newest answer."""
    for older in (0, 1):
        desk = Desk(settings=dict(ack_after_s=99))
        desk.told("Two of them.")
        desk.turn += older
        for _ in range(round(speech_s / 0.1)):
            assert desk.unit(user_speaking=True, turn_open=True) is None
        quiet_since = desk.clock.now()
        assert desk.wait(1) and desk.clock.now() - quiet_since <= 0.25


def test_after_the_bounded_wait_the_best_moment_is_taken():
    """Mostly one-unit pauses, and now and then two units: after ten seconds the reply waits for one of the longer ones."""
    desk = Desk(settings=dict(ack_after_s=99, resume_quiet_s=1, quiet_s=1.0))
    desk.told("Two of them.")
    desk.turn += 1
    pattern = ([True, False] * 7 + [True, False, False]) * 10
    waited, over_user = speak_over(desk, pattern)
    silent_before = pattern[round(waited / 0.1) - 2]
    assert 10 <= waited <= 12 and not over_user and silent_before is False, "the second unit of a long pause"


def test_the_demand_falls_so_that_the_wait_is_bounded():
    """One long pause long before, then only short ones: the next silent instant will do in the end, never one with speech."""
    desk = Desk(settings=dict(ack_after_s=99, quiet_s=1.0, best_moment_s=3.0))
    desk.told("Two of them.")
    desk.turn += 1
    waited, over_user = speak_over(desk, [True] + [False] * 9 + RESTLESS)
    assert 11 <= waited <= 13.3 and not over_user


def test_restless_speech_inside_an_open_turn_is_a_person():
    """However long it waits, nothing is said into it; it ends as expired, on the screen."""
    desk = Desk(settings=dict(ack_after_s=99))
    task = desk.told("Two of them.")
    assert speak_over(desk, RESTLESS * 4, turn_open=True) is None
    assert desk.state(task) == ("dropped", "expired") and len(desk.shown) == 1


@pytest.mark.parametrize("flags, least, most", [(dict(user_speaking=True, turn_open=True), 10, 10.5), (dict(turn_open=True), 10, 10.5),
                                                (dict(assistant_speaking=True), 30, 30.5)])
def test_noise_an_open_turn_and_a_lost_report_cannot_starve_it(flags, least, most):
    """Steady noise, a turn that never closes, a playout that never ends: a bounded wait, then it is told."""
    desk = Desk(settings=dict(ack_after_s=99))
    desk.told("Two of them.")
    assert desk.wait(60, **flags) is not None and least <= desk.clock.now() <= most
