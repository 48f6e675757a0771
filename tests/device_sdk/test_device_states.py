"""The device's states change only along the table."""

import random

import pytest

from device_sdk.states import ALLOWED, DeviceState, StateMachine


def test_every_state_is_in_the_table_and_can_be_left():
    assert set(ALLOWED) == set(DeviceState) and all(ALLOWED.values())


def test_no_walk_leaves_the_table():
    """10,000 random requests: each either follows the table and is told once, or is refused and changes nothing."""
    rng, told = random.Random(3), []
    machine = StateMachine(told.append)
    refused = 0
    for _ in range(10_000):
        before, wanted = machine.state, rng.choice(list(DeviceState))
        count = len(told)
        if wanted is before:
            machine.to(wanted)
            assert len(told) == count
        elif wanted in ALLOWED[before]:
            machine.to(wanted)
            assert machine.state is wanted and told[-1] is wanted and len(told) == count + 1
        else:
            refused += 1
            with pytest.raises(ValueError):
                machine.to(wanted)
            assert machine.state is before and len(told) == count
    assert refused > 1000 and set(told) == set(DeviceState)
