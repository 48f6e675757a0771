"""The skills against the real safety policy of the car host: what is refused, asked back or done at a given speed and seat."""
import pytest

from harness.execute.testing import MemoryBus, run_skill
from harness.host.effects import EffectHost
from harness.host.remote import RemoteVehicleBus
from skills_automotive.vehicle.body import LOCKS, TAILGATE, VOLUME, SetLock, SetTailgate, SetVolume, SetWindow
from skills_automotive.vehicle.climate import SetFan, SetSeatHeating, SetTemperature

PARK = "Vehicle.Powertrain.Transmission.IsParkLockEngaged"
WINDOW = "Vehicle.Cabin.Door.Row1.DriverSide.Window.Position"
REAR = "Vehicle.Cabin.Door.Row2.DriverSide.Window.Position"


async def ask(skill, arguments, speed, *, park=False, zone="driver"):
    """(outcome, the car's values) of one skill through the policy."""
    car = MemoryBus({"Vehicle.Speed": speed, "Vehicle.IsMoving": speed > 0, PARK: park, TAILGATE: False, VOLUME: 40, WINDOW: 0, REAR: 0,
                     "Vehicle.Cabin.DriverPosition": "LEFT"} | dict.fromkeys(LOCKS, True))
    host = EffectHost(car)

    async def call(payload, timeout_s):
        return await host.handle(payload)

    outcome = await run_skill(skill, arguments, bus=RemoteVehicleBus(call, task_id="t", task_version=1, zone=zone), zone=zone)
    return outcome, car


@pytest.mark.parametrize("skill,arguments,speed,park,zone,code,text", [
    (SetTailgate, {"open": True}, 50.2, False, "driver", "unsafe_now",
     "I can't open the tailgate while we're driving at fifty kilometres per hour."),
    (SetTailgate, {"open": True}, 0.0, False, "driver", "unsafe_now", "I can open the tailgate only with the car in park."),
    (SetTailgate, {"open": True}, 0.0, True, "driver", "needs_confirmation", "Should I really open the tailgate?"),
    (SetTailgate, {"open": True}, 0.0, True, "rear_left", "not_permitted", "I'm not allowed to do that by voice."),
    (SetLock, {"locked": False}, 30.0, False, "driver", "unsafe_now",
     "I can't unlock the doors while we're driving at thirty kilometres per hour."),
    (SetVolume, {"level": 100}, 50.0, False, "driver", "invalid_args", "While we're driving, the volume goes up to eighty percent."),
    (SetWindow, {"position": 100, "window": "driver"}, 50.0, False, "rear_left", "not_permitted",
     "That window isn't yours to move from here."),
    (SetWindow, {"position": 100}, 130.0, False, "driver", "needs_confirmation", "We're driving fast. Should I really open it?"),
])
async def test_a_refusal_is_said_with_its_reason_and_nothing_moves(skill, arguments, speed, park, zone, code, text):
    outcome, car = await ask(skill, arguments, speed, park=park, zone=zone)
    assert (outcome.ok, outcome.code, outcome.text) == (False, code, text) and car.actuated == []


@pytest.mark.parametrize("skill,arguments,zone,values", [
    (SetTemperature, {"celsius": 22}, "driver", {"Vehicle.Cabin.HVAC.Station.Row1.Driver.Temperature": 22.0}),
    (SetTemperature, {"celsius": 18.5}, "rear_right", {"Vehicle.Cabin.HVAC.Station.Row2.Passenger.Temperature": 18.5}),
    (SetFan, {"level": 50}, "driver", {"Vehicle.Cabin.HVAC.Station.Row1.Passenger.FanSpeed": 50}),
    *((SetSeatHeating, {"level": level}, "passenger", {"Vehicle.Cabin.Seat.Row1.PassengerSide.HeatingCooling": value})
      for level, value in enumerate((0, 33, 67, 100))),
    (SetVolume, {"delta": 10}, "driver", {VOLUME: 50}), (SetLock, {"locked": True}, "driver", dict.fromkeys(LOCKS, True)),
    (SetWindow, {"position": 50}, "rear_left", {REAR: 50}),
])
async def test_what_is_free_is_done_at_fifty(skill, arguments, zone, values):
    """Every value a skill sends is one that the policy takes."""
    outcome, car = await ask(skill, arguments, 50.0, zone=zone)
    assert outcome.ok, outcome
    assert {path: car.values[path] for path in values} == values
