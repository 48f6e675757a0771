"""Actuators and the drive on virtual time."""

import pytest

from harness.host.policy import allowed_paths
from simulators.car import vss
from simulators.car.actuators import ActuatorBank
from simulators.car.drive import Drive, DriveFile, DrivePublisher, read_drive
from simulators.car.signals_store import BadValue, NoProvider, SignalStore
from venus_edge.testing import VirtualClock

TEMP = "Vehicle.Cabin.HVAC.Station.Row1.Driver.Temperature"
WINDOW = "Vehicle.Cabin.Door.Row1.DriverSide.Window"
GATE = "Vehicle.Body.Trunk.Rear"


@pytest.fixture
def car():
    clock = VirtualClock()
    store = SignalStore(clock=clock)
    return clock, store, ActuatorBank(store)


async def test_set_point_arrives_after_a_quarter_second(car):
    """The current value is the old one until the part has acknowledged."""
    clock, store, bank = car
    bank.start()
    store.actuate([(TEMP, 22.0)])
    await clock.advance(0.24)
    assert store.value(TEMP) == 20.0
    await clock.advance(0.02)
    assert store.value(TEMP) == 22.0


async def test_newer_command_replaces_the_older(car):
    """Only the last of two commands arrives."""
    clock, store, bank = car
    bank.start()
    store.actuate([(TEMP, 22.0)])
    await clock.advance(0.1)
    store.actuate([(TEMP, 25.0)])
    await clock.advance(0.2)
    assert store.value(TEMP) == 20.0
    await clock.advance(1.0)
    assert store.value(TEMP) == 25.0


async def test_window_moves_at_twenty_percent_a_second_and_reports_at_10_hz(car):
    """A closing window takes 5 s, its position falls monotonically, and it is open until it is at 0."""
    clock, store, bank = car
    bank.start()
    assert store.value(f"{WINDOW}.Position") == 100
    store.actuate([(f"{WINDOW}.Position", 0)])
    seen = []
    for _ in range(60):
        await clock.advance(0.1)
        seen.append(store.value(f"{WINDOW}.Position"))
        assert store.value(f"{WINDOW}.IsOpen") is (seen[-1] != 0)
    assert seen == sorted(seen, reverse=True) and len(set(seen)) > 45
    assert seen[24] == 50 and seen[48] > 0 and seen[50] == 0
    assert store.value(f"{WINDOW}.Switch") == "INACTIVE"


async def test_inactive_switch_halts_a_window_where_it_is(car):
    """Halting keeps the position of that instant, at once and for good."""
    clock, store, bank = car
    bank.start()
    store.actuate([(f"{WINDOW}.Switch", "CLOSE")])
    await clock.advance(1.25)
    store.actuate([(f"{WINDOW}.Switch", "INACTIVE")])
    assert store.value(f"{WINDOW}.Position") == 75
    await clock.advance(10)
    assert store.value(f"{WINDOW}.Position") == 75
    store.actuate([(f"{WINDOW}.IsOpen", False)])
    await clock.advance(3.8)
    assert store.value(f"{WINDOW}.Position") == 0


async def test_tailgate_takes_four_seconds_and_is_open_from_the_first_crack(car):
    """IsOpen is true as soon as it isn't closed, as VSS defines it; the position tells when it is fully open."""
    clock, store, bank = car
    bank.start()
    store.actuate([(f"{GATE}.IsOpen", True)])
    await clock.advance(0.2)
    assert store.value(f"{GATE}.IsOpen") is True and store.value(f"{GATE}.Position") < 10
    await clock.advance(3.7)
    assert store.value(f"{GATE}.Position") < 100
    await clock.advance(0.2)
    assert store.value(f"{GATE}.Position") == 100


async def test_faults_jam_no_provider_and_slow(car):
    """Each fault behaves as named, and healing ends it."""
    clock, store, bank = car
    bank.start()
    bank.fail(TEMP, "jam")
    store.actuate([(TEMP, 22.0)])
    await clock.advance(30)
    assert store.value(TEMP) == 20.0
    bank.fail(TEMP, "slow")
    store.actuate([(TEMP, 22.0)])
    await clock.advance(1.2)
    assert store.value(TEMP) == 20.0
    await clock.advance(0.1)
    assert store.value(TEMP) == 22.0
    bank.fail(TEMP, "no_provider")
    with pytest.raises(NoProvider):
        store.actuate([(TEMP, 23.0)])
    bank.fail(TEMP, "none")
    store.actuate([(TEMP, 23.0)])
    await clock.advance(1)
    assert store.value(TEMP) == 23.0
    store.actuate([(f"{WINDOW}.Position", 0)])
    await clock.advance(1)
    bank.fail(f"{WINDOW}.Position", "jam")
    at = store.value(f"{WINDOW}.Position")
    await clock.advance(10)
    assert 0 < store.value(f"{WINDOW}.Position") <= at


async def test_every_policy_path_is_a_vss_actuator_and_most_have_a_part(car):
    """The policy names no path that VSS lacks; what the simulated car can't move is the known rest."""
    _, store, bank = car
    bank.start()
    specs = vss.load()
    assert [p for p in allowed_paths() if p not in specs or specs[p].kind != "actuator"] == []
    rest = {p for p in allowed_paths() if p not in bank.paths}
    assert all("Trunk.Front" in p or "Body.Hood" in p or (".Door." in p and p.endswith("IsOpen")) for p in rest), rest
    assert all(store.value(p) is not None for p in bank.paths if "DestinationSet" not in p)


async def test_no_task_is_left_after_close(car):
    """Closing ends what moves."""
    clock, store, bank = car
    bank.start()
    store.actuate([(f"{WINDOW}.Position", 0)])
    await clock.advance(0.5)
    await bank.close()
    at = store.value(f"{WINDOW}.Position")
    await clock.advance(5)
    assert store.value(f"{WINDOW}.Position") == at


def test_tree_is_vss_6_and_checks_values():
    """1,263 leaves; a value outside type, range or choice is named with what is allowed."""
    specs = vss.load()
    kinds = [spec.kind for spec in specs.values()]
    assert (len(specs), kinds.count("actuator"), kinds.count("sensor"), kinds.count("attribute")) == (1263, 643, 490, 130)
    assert vss.check(specs[f"{WINDOW}.Position"], 50) == ""
    for path, value in [(f"{WINDOW}.Position", 101), (f"{WINDOW}.Position", 5.5), (f"{WINDOW}.Position", True),
                        ("Vehicle.Speed", float("nan")), ("Vehicle.Speed", "fast"), ("Vehicle.Speed", 1e39),
                        (f"{WINDOW}.Switch", "HALF"), (f"{WINDOW}.IsOpen", 1)]:
        assert path in vss.check(specs[path], value), (path, value)
    with pytest.raises(BadValue):
        SignalStore(clock=VirtualClock()).publish(f"{WINDOW}.Position", -1)


def test_drive_integrates_its_speed_along_the_shape():
    """10 s up to 36 km/h and 10 s at it are 150 m; the car is where that is on the line, and stays at its end."""
    lat, m = 43.7316, 1 / 111_195.0
    drive = Drive(DriveFile(profile=[(0, 0), (10, 36), (100, 36)], shape=[(lat, 7.4), (lat + 100 * m, 7.4), (lat + 200 * m, 7.4)]))
    state = drive.at(20)
    assert state.driven_m == pytest.approx(150) and state.lat == pytest.approx(lat + 150 * m, abs=2e-6) and state.heading == pytest.approx(0)
    assert drive.at(5).speed == pytest.approx(18)
    assert drive.at(90).lat == pytest.approx(lat + 200 * m) and drive.at(500).speed == 36


def test_drive_is_in_park_before_the_first_motion_and_after_the_last_only():
    """Standing in traffic is not parked."""
    drive = Drive(DriveFile(profile=[(0, 0), (5, 0), (10, 50), (20, 0), (30, 0), (35, 50), (40, 0)]))
    assert [drive.at(t).parked for t in (0, 4.9, 7, 25, 37, 40, 60)] == [True, True, False, False, False, True, True]
    assert Drive(DriveFile()).at(1e6).parked and not Drive(DriveFile(profile=[(0, 50)])).at(0).parked


async def test_drive_refreshes_the_safety_state_and_the_rest_only_on_change():
    """Speed and park lock are never older than a tick even when parked; the position is published once."""
    clock = VirtualClock()
    store = SignalStore(clock=clock)
    drive = DrivePublisher(store, Drive(read_drive('{"initial": {"Vehicle.Exterior.AirTemperature": 12.5}}')))
    drive.start()
    ActuatorBank(store).start(drive.drive.file.initial)
    import asyncio

    task = asyncio.ensure_future(drive.run())
    await clock.advance(5.05)
    for path in ("Vehicle.Speed", "Vehicle.Powertrain.Transmission.IsParkLockEngaged", "Vehicle.Powertrain.Transmission.CurrentGear"):
        assert clock.wall() - store.current[path].wall <= 0.11
    assert clock.wall() - store.current["Vehicle.CurrentLocation.Latitude"].wall > 5
    assert store.value("Vehicle.Exterior.AirTemperature") == 12.5 and store.value("Vehicle.Powertrain.Range") == 213_300
    task.cancel()


async def test_drive_waits_for_its_beginning():
    """Before `begin` the car stays at time 0."""
    clock = VirtualClock()
    store = SignalStore(clock=clock)
    drive = DrivePublisher(store, Drive(DriveFile(profile=[(0, 0), (10, 50)], begin="signal")))
    drive.start()
    import asyncio

    task = asyncio.ensure_future(drive.run())
    await clock.advance(20)
    assert store.value("Vehicle.Speed") == 0
    drive.begin()
    await clock.advance(5.15)
    assert store.value("Vehicle.Speed") == pytest.approx(25, abs=0.6)
    task.cancel()
