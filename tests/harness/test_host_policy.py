"""The voice safety policy: default deny, fresh state, zones, confirmations."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.host import policy
from harness.host.errors import NeedsConfirmation, UnsafeNow
from harness.host.effects import refusal
from harness.host.policy import Allow, Class, Reading, Refuse, decide
from harness.host.testing import PARKED, driving

GATE = "Vehicle.Body.Trunk.Rear.IsOpen"
TEMP = "Vehicle.Cabin.HVAC.Station.Row1.Driver.Temperature"
WINDOW = "Vehicle.Cabin.Door.Row1.{}.Window.Position"
LOCK = "Vehicle.Cabin.Door.Row1.DriverSide.IsLocked"


def state(values=PARKED, at=100.0, **more):
    return {path: Reading(value, at) for path, value in (values | more).items()}


def verdict(path, value, zone="driver", values=PARKED, now=100.0, confirmed=False, at=100.0):
    answer = decide(path, value, zone, state(values, at), now, confirmed)
    return "allow" if isinstance(answer, Allow) else f"{answer.code}:{answer.reason}"


@pytest.mark.parametrize(
    "path, value, zone, values, expected",
    [
        (TEMP, 22.0, "driver", driving(130), "allow"),
        (TEMP, 22.3, "driver", PARKED, "invalid_args:value"),
        (TEMP, 15.5, "driver", PARKED, "invalid_args:value"),
        (TEMP, 30.5, "driver", PARKED, "invalid_args:value"),
        (TEMP, "22", "driver", PARKED, "invalid_args:value"),
        (TEMP, True, "driver", PARKED, "invalid_args:value"),
        (TEMP, math.nan, "driver", PARKED, "invalid_args:value"),
        (TEMP, 22.0, "passenger", PARKED, "not_permitted:zone"),
        (TEMP.replace("Driver", "Passenger"), 22.0, "passenger", PARKED, "allow"),
        (TEMP.replace("Row1", "Row2"), 22.0, "rear_left", PARKED, "allow"),
        (TEMP.replace("Row1", "Row2"), 22.0, "rear_right", PARKED, "not_permitted:zone"),
        (TEMP.replace("Row1", "Row2"), 22.0, "rear_right", PARKED | {policy.DRIVER_POSITION: "RIGHT"}, "allow"),
        (TEMP.replace("Row1", "Row2"), 22.0, "passenger", PARKED, "allow"),
        (TEMP, 22.0, "unknown", PARKED, "not_permitted:zone"),
        ("Vehicle.Cabin.Infotainment.Media.Volume", 100, "unknown", PARKED, "allow"),
        ("Vehicle.Cabin.Infotainment.Media.Volume", 100, "driver", driving(30), "invalid_args:moving_limit"),
        ("Vehicle.Cabin.Infotainment.Navigation.DestinationSet.Latitude", 43.7391234, "driver", driving(50), "allow"),
        (WINDOW.format("DriverSide"), 100, "driver", driving(50), "allow"),
        (WINDOW.format("DriverSide"), 100, "passenger", PARKED, "not_permitted:zone"),
        (WINDOW.format("DriverSide"), 100, "driver", driving(130), "needs_confirmation:moving"),
        (WINDOW.format("DriverSide"), 20, "driver", driving(130), "allow"),
        (WINDOW.format("DriverSide"), 0, "driver", driving(130), "allow"),
        ("Vehicle.Cabin.Door.Row2.DriverSide.Window.Position", 50, "rear_left", PARKED, "allow"),
        ("Vehicle.Cabin.Door.Row2.DriverSide.Window.Position", 50, "rear_left", PARKED | {policy.WINDOW_CHILD_LOCK: True}, "not_permitted:child_lock"),
        ("Vehicle.Cabin.Door.Row2.DriverSide.Window.Position", 50, "rear_left", PARKED | {policy.DOOR_CHILD_LOCKS[0]: True}, "not_permitted:child_lock"),
        ("Vehicle.Cabin.Door.Row2.DriverSide.Window.Position", 50, "driver", PARKED | {policy.WINDOW_CHILD_LOCK: True}, "allow"),
        ("Vehicle.Cabin.Sunroof.Switch", "OPEN", "driver", driving(130), "needs_confirmation:moving"),
        ("Vehicle.Cabin.Sunroof.Switch", "TILT_UP", "driver", driving(130), "allow"),
        ("Vehicle.Cabin.Seat.Row1.PassengerSide.Backrest.Recline", 50, "passenger", driving(30), "needs_confirmation:moving"),
        (GATE, True, "driver", driving(50), "unsafe_now:moving"),
        (GATE, False, "driver", driving(50), "unsafe_now:moving"),
        (GATE, True, "driver", driving(0), "unsafe_now:not_in_park"),
        (GATE, True, "driver", PARKED, "needs_confirmation:opening"),
        (GATE, False, "driver", PARKED, "allow"),
        (GATE, True, "rear_left", PARKED, "not_permitted:zone"),
        ("Vehicle.Body.Trunk.Rear.Switch", "INACTIVE", "rear_left", driving(50), "allow"),
        (LOCK, True, "driver", driving(50), "allow"),
        (LOCK, False, "driver", driving(50), "unsafe_now:moving"),
        (LOCK, False, "driver", PARKED, "allow"),
        ("Vehicle.Cabin.Seat.Row1.DriverSide.Position", 200, "driver", driving(1), "unsafe_now:moving"),
        ("Vehicle.Body.Lights.LightSwitch", "OFF", "driver", driving(50), "unsafe_now:moving"),
        ("Vehicle.Body.Lights.LightSwitch", "BEAM", "driver", driving(50), "allow"),
        ("Vehicle.Body.Lights.LightSwitch", "OFF", "driver", PARKED, "allow"),
        ("Vehicle.Body.Lights.LightSwitch", "OFF", "driver", PARKED | {policy.LIGHT: 5.0}, "needs_confirmation:dark"),
        ("Vehicle.Body.Windshield.Front.Wiping.Mode", "OFF", "driver", driving(50), "unsafe_now:moving"),
        ("Vehicle.Cabin.HVAC.IsFrontDefrosterActive", False, "driver", driving(50), "unsafe_now:moving"),
        ("Vehicle.Cabin.HVAC.IsFrontDefrosterActive", True, "driver", driving(50), "allow"),
        ("Vehicle.ADAS.CruiseControl.IsActive", True, "driver", PARKED, "not_permitted:never"),
        ("Vehicle.Chassis.ParkingBrake.IsEngaged", False, "driver", PARKED, "not_permitted:never"),
        ("Vehicle.Powertrain.Transmission.SelectedGear", 127, "driver", PARKED, "not_permitted:never"),
        ("Vehicle.Cabin.Infotainment.HMI.FontSize", "LARGE", "driver", PARKED, "not_permitted:not_listed"),
        ("Vehicle.Speed", 0.0, "driver", PARKED, "not_permitted:not_listed"),
    ],
)  # fmt: skip
def test_policy_table(path, value, zone, values, expected):
    """One line a rule: path, value, speaker's seat and vehicle state decide, nothing else."""
    assert verdict(path, value, zone, values) == expected


def test_tailgate_at_50_says_moving_and_the_speed():
    """The refusal carries what the spoken sentence needs."""
    answer = decide(GATE, True, "driver", state(driving(50)), 100.0)
    assert answer == Refuse("unsafe_now", "moving", {"speed": 50})
    error = refusal(answer)
    assert isinstance(error, UnsafeNow) and error.data == {"reason": "moving", "speed": 50}


@pytest.mark.parametrize("missing", [policy.SPEED, policy.PARK_LOCK])
def test_missing_or_stale_state_counts_as_moving(missing):
    """Without a Speed or park lock of the last second, nothing that needs a parked car is done, confirmed or not."""
    for values, at in [({k: v for k, v in PARKED.items() if k != missing}, 100.0), (PARKED, 98.9), (PARKED, 101.1)]:
        readings = state(values)
        if missing in readings:
            readings[missing] = Reading(values[missing], at)
        for confirmed in (False, True):
            answer = decide(GATE, True, "driver", readings, 100.0, confirmed)
            assert isinstance(answer, Refuse) and (answer.code, answer.reason) == ("unsafe_now", "state_unknown")
    assert isinstance(decide(GATE, True, "driver", state(PARKED, 99.1), 100.0, True), Allow)


def test_confirmation_answers_the_question_and_overrides_nothing():
    """`confirmed` turns needs_confirmation into a yes, and no other refusal."""
    assert verdict(GATE, True, confirmed=True) == "allow"
    assert verdict(WINDOW.format("DriverSide"), 100, values=driving(130), confirmed=True) == "allow"
    assert verdict(GATE, True, values=driving(5), confirmed=True) == "unsafe_now:moving"
    assert verdict("Vehicle.ADAS.CruiseControl.IsActive", True, confirmed=True) == "not_permitted:never"
    assert isinstance(refusal(decide(GATE, True, "driver", state(), 100.0)), NeedsConfirmation)


_TREE = json.loads((Path(__file__).parents[2] / "simulators/car/data/vss_release_6.0.json").read_text())


def _leaves(nodes, prefix=""):
    for name, node in nodes.items():
        path = f"{prefix}.{name}" if prefix else name
        yield from _leaves(node["children"], path) if node["type"] == "branch" else [path]


ALL_PATHS = list(_leaves(_TREE))
LISTED = set(policy.allowed_paths())
VALUES = st.one_of(st.booleans(), st.integers(-200, 300), st.floats(), st.sampled_from(["OPEN", "OFF", "INACTIVE", "CLOSE", "", "x" * 40]), st.none(), st.lists(st.integers(), max_size=2))
STATES = st.dictionaries(st.sampled_from(policy.STATE_PATHS), st.builds(Reading, VALUES, st.floats(90, 110)), max_size=9)


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(ALL_PATHS) | st.text(max_size=40), VALUES, st.sampled_from(policy.ZONES), STATES, st.booleans())
def test_no_path_outside_the_list_is_ever_allowed(path, value, zone, readings, confirmed):
    """Default deny: whatever the value, speaker, state and confirmation, an unlisted path is refused for good."""
    answer = decide(path, value, zone, readings, 100.0, confirmed)
    if path not in LISTED:
        assert isinstance(answer, Refuse) and answer.code == "not_permitted"


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(sorted(p for p in LISTED if policy.rule_for(p).cls is Class.PARKED_ONLY)), VALUES, st.sampled_from(policy.ZONES), STATES, st.booleans())
def test_parked_only_is_never_allowed_unless_parked(path, value, zone, readings, confirmed):
    """Whatever else holds: an allowed parked-only effect had a fresh zero speed and park lock, or is a halt or a lock."""
    answer = decide(path, value, zone, readings, 100.0, confirmed)
    rule = policy.rule_for(path)
    if isinstance(answer, Allow) and value != "INACTIVE" and (not rule.guarded or value in rule.guarded):
        assert readings[policy.SPEED].value == 0 and abs(readings[policy.SPEED].at - 100) <= 1
        assert readings[policy.PARK_LOCK].value is True and abs(readings[policy.PARK_LOCK].at - 100) <= 1


def test_list_is_about_a_hundred_and_disjoint_from_never():
    """The list stays small enough to read, names no path twice, and grants nothing of driving itself."""
    from harness.host.paths import expand

    every = [path for rule in policy.POLICY for path in expand(rule.pattern)]
    assert len(every) == len(set(every)) and 90 <= len(every) <= 160
    granted = [p for p in every if p.startswith(("Vehicle.ADAS", "Vehicle.MotionManagement", "Vehicle.Chassis", "Vehicle.Powertrain.Transmission"))]
    assert granted == []


def test_reading_is_limited_too():
    """The cloud reads what the skills need, and not who sits in the car or which car it is."""
    assert policy.may_read("Vehicle.Speed") and policy.may_read("Vehicle.CurrentLocation.Latitude")
    assert not policy.may_read("Vehicle.VehicleIdentification.VIN") and not policy.may_read("Vehicle.Driver.Identifier.Subject")
