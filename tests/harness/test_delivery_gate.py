"""The gate: never over a person, and never blocked for ever by what is no person."""
import pytest

from harness.deliver.gate import RATE, Gate, Moment
from harness.settings import HarnessSettings

UNIT_S = 0.1


class Floor:
    """Units of 100 ms into one gate."""

    def __init__(self):
        self.gate, self.pos = Gate(HarnessSettings()), 0

    def pass_s(self, seconds, user=False, turn=False, assistant=False):
        """Whether the gate was free at any of these units, for a reply that needs the usual quiet."""
        free = []
        for _ in range(round(seconds / UNIT_S)):
            self.pos += round(UNIT_S * RATE)
            self.gate.see(Moment(self.pos, user, turn, assistant, 1))
            free.append(self.free())
        return any(free)

    def free(self, quiet_s=0.15):
        return self.gate.free(after_user_s=quiet_s, after_assistant_s=quiet_s)


@pytest.mark.parametrize("who", ["user", "turn", "assistant"])
def test_nothing_over_anyone(who):
    """A speaking user, an open turn and a speaking assistant each block."""
    floor = Floor()
    assert floor.pass_s(0.1)
    assert not floor.pass_s(5, **{who: True})


@pytest.mark.parametrize("who", ["user", "assistant"])
def test_a_quiet_session_waits_at_most_250_ms(who):
    """From the last busy unit to the first free one: some quiet, and no more than 250 ms of it."""
    floor = Floor()
    floor.pass_s(2, **{who: True})
    assert not floor.pass_s(UNIT_S)
    assert floor.pass_s(0.25 - UNIT_S)


def test_a_long_turn_with_pauses_is_a_person():
    """Fifteen seconds of speech with short pauses inside one turn: the gate never opens."""
    floor = Floor()
    for _ in range(15):
        assert not floor.pass_s(0.7, user=True, turn=True) and not floor.pass_s(0.3, turn=True)


def test_steady_noise_does_not_starve():
    """A voice-activity flag without a single pause for ten seconds is noise: the gate opens then, and not before."""
    floor = Floor()
    assert not floor.pass_s(9.9, user=True, turn=True)
    assert floor.pass_s(1, user=True, turn=True)


def test_a_turn_that_never_closes_does_not_starve():
    """Open for ten seconds with nobody speaking for three: not believed any more."""
    floor = Floor()
    floor.pass_s(2, user=True, turn=True)
    assert not floor.pass_s(7.5, turn=True)
    assert floor.pass_s(1, turn=True)


def test_lost_playout_reports_do_not_starve():
    """An assistant that speaks for thirty seconds without a pause has lost its reports."""
    floor = Floor()
    assert not floor.pass_s(29.5, assistant=True)
    assert floor.pass_s(1, assistant=True)


def test_the_risk_of_an_instant_is_how_far_its_silence_is_from_the_longest_of_late():
    """1 right after a word, falling as the pause grows, 0 where it is as quiet as it ever got; and 0 with nobody there."""
    floor = Floor()
    floor.pass_s(1)
    assert floor.gate.risk == 0.0
    floor.pass_s(0.5, user=True)
    floor.pass_s(1.0)
    floor.pass_s(0.5, user=True)
    risks = [(floor.pass_s(UNIT_S), round(floor.gate.risk, 1))[1] for _ in range(12)]
    assert risks == [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0, 0.0, 0.0]


def test_pauses_of_long_ago_do_not_count():
    """What was quiet half a minute ago says nothing of now: the yardstick is the last ten to twenty seconds."""
    floor = Floor()
    floor.pass_s(0.5, user=True)
    floor.pass_s(5.0)
    for _ in range(60):
        floor.pass_s(0.3, user=True)
        floor.pass_s(0.2)
    assert floor.gate.risk == 0.0
