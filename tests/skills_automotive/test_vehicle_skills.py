"""The vehicle skills with a vehicle in memory: done only when the car got there, refused in words, never guessed."""
import pytest

from harness.execute.testing import MemoryBus, run_skill
from harness.host.errors import InvalidArgs, NotPermitted, UnsafeNow
from skills_automotive.vehicle.body import LOCKS, TAILGATE, VOLUME, SetLock, SetTailgate, SetVolume, SetWindow
from skills_automotive.vehicle.climate import AdjustTemperature, SetFan, SetSeatHeating, SetTemperature
from skills_automotive.vehicle.status import Status
from venus_edge.testing import VirtualClock

DRIVER_C = "Vehicle.Cabin.HVAC.Station.Row1.Driver.Temperature"
PASSENGER_C = "Vehicle.Cabin.HVAC.Station.Row1.Passenger.Temperature"
WINDOW = "Vehicle.Cabin.Door.{}Side.Window.Position"
CLOSED = {WINDOW.format(seat): 0 for seat in ("Row1.Driver", "Row1.Passenger", "Row2.Driver", "Row2.Passenger")}


async def test_the_temperature_is_confirmed_only_when_it_was_reached():
    """Reached: the new value is told. Not reached: it is said to have been asked for, and no more."""
    bus = MemoryBus({DRIVER_C: 20.0})
    assert (await run_skill(SetTemperature, {"celsius": 22}, bus=bus)).text == "It's set to twenty-two degrees."
    assert bus.values[DRIVER_C] == 22.0
    bus = MemoryBus({DRIVER_C: 20.0}, clock=(clock := VirtualClock()))
    bus.stuck = {DRIVER_C}
    import asyncio
    running = asyncio.ensure_future(run_skill(SetTemperature, {"celsius": 22.5}, bus=bus))
    await clock.advance(4.0)
    outcome = await running
    assert (outcome.ok, outcome.code) == (False, "timeout")
    assert outcome.text == "I asked for twenty-two point five degrees, but the car hasn't changed it yet."


@pytest.mark.parametrize("zone,speaker,paths,text", [
    ("speaker", "driver", [DRIVER_C], "It's set to nineteen degrees."),
    ("speaker", "passenger", [PASSENGER_C], "It's set to nineteen degrees."),
    ("passenger", "driver", [PASSENGER_C], "It's set to nineteen degrees on the passenger's side."),
    ("all", "driver", [DRIVER_C, PASSENGER_C], "It's set to nineteen degrees everywhere."),
    ("speaker", "rear_left", ["Vehicle.Cabin.HVAC.Station.Row2.Driver.Temperature"], "It's set to nineteen degrees."),
])
async def test_a_zone_means_its_own_signals(zone, speaker, paths, text):
    """The speaker's own zone by default; another one is named in the answer."""
    bus = MemoryBus({})
    outcome = await run_skill(SetTemperature, {"celsius": 19, "zone": zone}, bus=bus, zone=speaker)
    assert sorted(path for path, _ in bus.actuated) == sorted(paths) and outcome.text == text


async def test_left_and_right_follow_the_drivers_side():
    """In a right-hand-drive car the rear left seat is on the passenger's side."""
    bus = MemoryBus(CLOSED | {"Vehicle.Cabin.DriverPosition": "RIGHT"})
    await run_skill(SetWindow, {"position": 50, "window": "rear_left"}, bus=bus)
    assert bus.actuated == [(WINDOW.format("Row2.Passenger"), 50)]


@pytest.mark.parametrize("celsius,sentence", [(40, "I can set it between sixteen and thirty degrees."),
                                              (15.5, "I can set it between sixteen and thirty degrees.")])
async def test_a_temperature_out_of_range_is_refused_with_the_range(celsius, sentence):
    bus = MemoryBus({})
    outcome = await run_skill(SetTemperature, {"celsius": celsius}, bus=bus)
    assert (outcome.code, outcome.text, bus.actuated) == ("invalid_args", sentence, [])


@pytest.mark.parametrize("now,delta,then,text", [
    (20.0, 2, 22.0, "It's twenty-two degrees now."), (20.0, -2.5, 17.5, "It's seventeen point five degrees now."),
    (29.0, 2, 30.0, "That's as warm as it goes: thirty degrees."), (17.0, -3, 16.0, "That's as cool as it goes: sixteen degrees."),
    (None, 2, None, "I can't reach that right now."),
])
async def test_a_step_starts_from_the_current_setting_and_stops_at_the_range(now, delta, then, text):
    bus = MemoryBus({DRIVER_C: now})
    outcome = await run_skill(AdjustTemperature, {"delta": delta}, bus=bus)
    assert (bus.values[DRIVER_C], outcome.text) == (then, text)


@pytest.mark.parametrize("error,text", [
    (UnsafeNow("no", reason="moving", speed=50), "I can't open the tailgate while we're driving at fifty kilometres per hour."),
    (UnsafeNow("no", reason="state_unknown"), "I can't open the tailgate, because I don't know if we're moving."),
    (UnsafeNow("no", reason="not_in_park", speed=0), "I can open the tailgate only with the car in park."),
    (UnsafeNow("no"), "I can't move the tailgate while we're driving."),
    (NotPermitted("no", reason="zone", zone="rear_left"), "I'm not allowed to do that by voice."),
])
async def test_a_refused_tailgate_says_why(error, text):
    bus = MemoryBus({TAILGATE: False})
    bus.refusals[TAILGATE] = error
    outcome = await run_skill(SetTailgate, {"open": True}, bus=bus)
    assert (outcome.ok, outcome.code, outcome.text) == (False, error.code, text)


async def test_a_window_tells_that_it_moves_and_then_that_it_arrived():
    """The end is told only at the end; what still moves has its progress sentence ready from the start."""
    import asyncio
    clock = VirtualClock()
    path = WINDOW.format("Row1.Driver")
    bus = MemoryBus(CLOSED | {path: 100}, clock=clock)
    bus.travel_s[path] = 5.0
    said = []
    running = asyncio.ensure_future(run_skill(SetWindow, {"position": 0, "window": "driver"}, bus=bus,
                                              on_progress=lambda outcome, text: said.append((outcome, text))))
    await clock.advance(4.9)
    assert not running.done() and said == [("progress", "The driver's window is still moving.")]
    await clock.advance(0.2)
    assert (await running).text == "The driver's window is closed."


@pytest.mark.parametrize("arguments,text", [
    ({"position": 0, "window": "driver"}, "The driver's window is already closed."),
    ({"position": 100, "window": "all"}, "All the windows are open."), ({"position": 50}, "The window is fifty percent open."),
])
async def test_windows_in_words(arguments, text):
    assert (await run_skill(SetWindow, arguments, bus=MemoryBus(CLOSED))).text == text


async def test_a_jammed_window_is_not_said_to_be_closed():
    import asyncio
    clock = VirtualClock()
    path = WINDOW.format("Row1.Driver")
    bus = MemoryBus(CLOSED | {path: 100}, clock=clock)
    bus.stuck = {path}
    running = asyncio.ensure_future(run_skill(SetWindow, {"position": 0}, bus=bus))
    await clock.advance(12.1)
    assert (await running).text == "I asked, but it hasn't moved." and bus.values[path] == 100


async def test_all_locks_must_move_before_the_doors_are_locked():
    import asyncio
    bus = MemoryBus(dict.fromkeys(LOCKS, False))
    assert (await run_skill(SetLock, {"locked": True}, bus=bus)).text == "The doors are locked."
    assert all(bus.values[path] for path in LOCKS)
    clock = VirtualClock()
    bus = MemoryBus(dict.fromkeys(LOCKS, True), clock=clock)
    bus.stuck = {LOCKS[2]}
    running = asyncio.ensure_future(run_skill(SetLock, {"locked": False}, bus=bus))
    await clock.advance(3.1)
    assert (await running).code == "timeout"


@pytest.mark.parametrize("arguments,now,then,text", [
    ({"delta": 10}, 40, 50, "The volume is at fifty percent."), ({"delta": 10}, 95, 100, "The volume is at one hundred percent."),
    ({"level": 0}, 40, 0, "The sound is off."), ({"delta": -60}, 40, 0, "The sound is off."),
])
async def test_volume_by_level_or_step(arguments, now, then, text):
    bus = MemoryBus({VOLUME: now})
    outcome = await run_skill(SetVolume, arguments, bus=bus)
    assert (bus.values[VOLUME], outcome.text) == (then, text)


async def test_volume_needs_exactly_one_of_level_and_step_and_keeps_to_the_cars_limit():
    assert (await run_skill(SetVolume, {}, bus=MemoryBus({VOLUME: 1}))).code == "invalid_args"
    assert (await run_skill(SetVolume, {"level": 1, "delta": 1}, bus=MemoryBus({VOLUME: 1}))).code == "invalid_args"
    bus = MemoryBus({VOLUME: 40})
    bus.refusals[VOLUME] = InvalidArgs("no", reason="moving_limit", field="Volume", low=0.0, high=80.0, step=1.0)
    outcome = await run_skill(SetVolume, {"level": 100}, bus=bus)
    assert outcome.text == "While we're driving, the volume goes up to eighty percent."


async def test_fan_and_seat_heating():
    bus = MemoryBus({})
    assert (await run_skill(SetFan, {"level": 50}, bus=bus)).text == "The fan is at fifty percent."
    assert (await run_skill(SetSeatHeating, {"level": 2}, bus=bus)).text == "Your seat heating is on level two."
    assert (await run_skill(SetSeatHeating, {"level": 0, "seat": "passenger"}, bus=bus)).text == "The seat heating on the passenger's side is off."
    assert bus.values["Vehicle.Cabin.Seat.Row1.DriverSide.HeatingCooling"] == 67
    assert bus.values["Vehicle.Cabin.Seat.Row1.PassengerSide.HeatingCooling"] == 0
    assert (await run_skill(SetSeatHeating, {"level": 4}, bus=bus)).text == "The seat heating has levels zero to three."


CAR = CLOSED | dict.fromkeys(LOCKS, True) | {path.replace("IsLocked", "IsOpen"): False for path in LOCKS} | {
    "Vehicle.Speed": 49.8, "Vehicle.Powertrain.Range": 213_000, "Vehicle.Powertrain.TractionBattery.StateOfCharge.Displayed": 63.7,
    DRIVER_C: 21.5, "Vehicle.Cabin.HVAC.AmbientAirTemperature": 23.2, "Vehicle.Exterior.AirTemperature": -3.0}


@pytest.mark.parametrize("what,changes,text", [
    ("speed", {}, "We're doing fifty kilometres per hour."), ("speed", {"Vehicle.Speed": 0.0}, "We're standing still."),
    ("speed", {"Vehicle.Speed": None}, "The car doesn't tell me that right now."),
    ("range", {}, "We can go about two hundred and thirteen kilometres."), ("battery", {}, "The battery is at sixty-four percent."),
    ("temperature", {}, "It's set to twenty-one point five degrees, and it's about twenty-three in here."),
    ("outside_temperature", {}, "It's minus three degrees outside."), ("window", {}, "All windows are closed."),
    ("window", {WINDOW.format("Row1.Driver"): 40, WINDOW.format("Row2.Passenger"): 1},
     "The driver's window and the rear right window are open."),
    ("doors", {}, "All doors are closed and locked."), ("doors", {LOCKS[1]: False}, "All doors are closed, but not all are locked."),
    ("doors", {"Vehicle.Cabin.Door.Row1.PassengerSide.IsOpen": True}, "The passenger's door is open."),
    ("destination", {}, "No destination is set."),
])
async def test_questions_are_answered_from_the_signals(what, changes, text):
    assert (await run_skill(Status, {"what": what}, bus=MemoryBus(CAR | changes))).text == text
