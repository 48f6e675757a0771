"""Permissions of host calls, and the end of forwarding."""
import asyncio

import pytest

from harness.execute.bridge import OPEN_CALLS_LIMIT, HostBridge, matches
from harness.execute.testing import MemoryBus
from harness.skill import Effects
from venus_edge.testing import VirtualClock

TEMPERATURE = "Vehicle.Cabin.HVAC.Station.Row1.Driver.Temperature"


@pytest.mark.parametrize("path,pattern,covered", [
    ("Vehicle.Speed", "Vehicle.Speed", True), ("Vehicle.Speed", "Vehicle.*", True), ("Vehicle.Cabin.Lights", "Vehicle.*", False),
    (TEMPERATURE, "Vehicle.Cabin.HVAC.Station.*.*.Temperature", True), (TEMPERATURE, "Vehicle.Cabin.**", True),
    ("Vehicle.Cabin", "Vehicle.Cabin.**", False), ("Vehicle.ADAS.ABS.IsEnabled", "Vehicle.Cabin.**", False),
    ("Vehicle.Speed", "", False), ("", "Vehicle.Speed", False), ("Vehicle.Speed.More", "Vehicle.Speed", False),
    ("Vehicle.Cabin.Door.Row1.DriverSide.IsLocked", "Vehicle.Cabin.Door.*.*.IsOpen", False),
])
def test_a_pattern_covers_part_by_part(path, pattern, covered):
    """A star never spans a dot: a permission for one leaf is none for a branch."""
    assert matches(path, (pattern,)) is covered


def bridge(bus, clock, deadline=10.0, **effects):
    return HostBridge("test.skill", Effects(**effects), bus, clock, deadline)


async def ask(host, **message):
    answers = []
    host.serve({"id": 1, **message}, answers.append)
    for _ in range(50):
        if answers:
            return answers[0]
        await asyncio.sleep(0)
    return None


async def test_an_effect_is_never_waited_for_beyond_the_calls_deadline():
    """A skill that asks for a minute gets what is left of its own time."""
    clock = VirtualClock(start=7.0)
    asked = []

    class Bus(MemoryBus):
        async def actuate(self, path, value, *, timeout_s=3.0):
            asked.append(timeout_s)
            return await super().actuate(path, value, timeout_s=timeout_s)

    host = bridge(Bus({TEMPERATURE: 20}, clock), clock, actuates=(TEMPERATURE,))
    assert (await ask(host, op="actuate", path=TEMPERATURE, value=22, timeout_s=60))["ok"]
    assert asked == [3.0]


async def test_a_stopped_bridge_forwards_nothing_and_answers_nothing():
    clock = VirtualClock()
    bus = MemoryBus({TEMPERATURE: 20}, clock)
    bus.travel_s[TEMPERATURE] = 1.0
    host, answers = bridge(bus, clock, actuates=(TEMPERATURE,)), []
    request = {"id": 1, "op": "actuate", "path": TEMPERATURE, "value": 22, "timeout_s": 3}
    host.serve(request, answers.append)
    await clock.advance(0.5)
    host.stop()
    await clock.advance(2.0)
    host.serve(request, answers.append)
    await clock.advance(2.0)
    assert answers == [] and bus.values[TEMPERATURE] == 20 and len(bus.actuated) == 1


@pytest.mark.parametrize("message,code", [
    ({"op": "fly"}, "internal"), ({"op": "get", "paths": []}, "invalid_args"), ({"op": "get"}, "invalid_args"),
    ({"op": "get", "paths": ["Vehicle.Speed"] * 65}, "invalid_args"), ({"op": "next", "subscription": 9}, "invalid_args"),
    ({"op": "actuate", "path": TEMPERATURE, "value": 1, "timeout_s": "x"}, "invalid_args"), ({"op": "position"}, "not_permitted"),
    ({"op": "get", "paths": ["Vehicle.Speed"]}, "not_found"), ({}, "invalid_args"),
])
async def test_odd_host_calls_get_an_error_and_no_more(message, code):
    host = bridge(MemoryBus(), VirtualClock(), reads=("Vehicle.Speed",), actuates=(TEMPERATURE,))
    answer = await ask(host, **message)
    assert answer["id"] == 1 and not answer["ok"] and answer["error"]["code"] == code


async def test_host_calls_at_once_are_bounded():
    clock = VirtualClock()
    bus = MemoryBus({TEMPERATURE: 20}, clock)
    bus.stuck = {TEMPERATURE}
    host, answers = bridge(bus, clock, actuates=(TEMPERATURE,)), []
    for number in range(OPEN_CALLS_LIMIT + 1):
        host.serve({"id": number, "op": "actuate", "path": TEMPERATURE, "value": 1, "timeout_s": 1}, answers.append)
    assert [(a["id"], a["error"]["code"]) for a in answers] == [(OPEN_CALLS_LIMIT, "unavailable")]
    await clock.advance(1.1)
    assert len(answers) == OPEN_CALLS_LIMIT + 1


async def test_a_signal_that_was_never_published_has_no_age():
    """Infinity isn't JSON: it travels as null."""
    class Bus(MemoryBus):
        async def get(self, *paths):
            from harness.host.providers import Signal
            return {path: Signal(path, None, float("inf")) for path in paths}

    answer = await ask(bridge(Bus(), VirtualClock(), reads=("Vehicle.Speed",)), op="get", paths=["Vehicle.Speed"])
    assert answer["value"] == {"Vehicle.Speed": {"value": None, "age_s": None}}
