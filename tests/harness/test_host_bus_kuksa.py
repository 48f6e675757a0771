"""KuksaBus against the signal server: current value reached, stops, typed errors. Uses the real gRPC on loopback."""

import asyncio
import math
from contextlib import asynccontextmanager

import pytest

from harness.host.bus_kuksa import KuksaBus
from harness.host.effects import EffectHost
from harness.host.errors import InvalidArgs, NotFound, NotPermitted, Unavailable
from harness.host.paths import expand, proof, reached
from harness.host.remote import RemoteVehicleBus
from simulators.car.actuators import Fault
from simulators.car.signals import SignalServer
from venus_edge.clock import SystemClock

TOKEN = "bus-token-0123456789"
TEMP = "Vehicle.Cabin.HVAC.Station.Row1.Driver.Temperature"
WINDOW = "Vehicle.Cabin.Door.Row1.DriverSide.Window"
GATE = "Vehicle.Body.Trunk.Rear"


@asynccontextmanager
async def car(drive="", token=TOKEN):
    server = SignalServer({"VENUS_BUS_ADDR": "127.0.0.1:0", "VENUS_BUS_TOKEN": TOKEN, "VENUS_DRIVE": drive})
    await server.start()
    bus = KuksaBus(server.addr, token)
    try:
        yield server, bus
    finally:
        await bus.close()
        await server.stop()


async def test_get_gives_values_ages_and_unknowns():
    """Fresh safety state, a rounded 32-bit float, and a signal that nobody published."""
    async with car('{"initial": {"' + TEMP + '": 21.7}}') as (_, bus):
        assert (await bus.server()).startswith("venus-edge-signals")
        got = await bus.get("Vehicle.Speed", TEMP, "Vehicle.Trailer.IsConnected")
        assert got["Vehicle.Speed"].value == 0 and -0.1 < got["Vehicle.Speed"].age_s < 0.6
        assert got[TEMP].value == 21.7
        assert got["Vehicle.Trailer.IsConnected"].value is None and math.isinf(got["Vehicle.Trailer.IsConnected"].age_s)
        with pytest.raises(NotFound):
            await bus.get("Vehicle.Nope")


async def test_actuate_waits_for_the_current_value():
    """Reached only after the part's own delay; the fan and a percent window too; an int fits where it is one."""
    async with car() as (server, bus):
        effect = await bus.actuate(TEMP, 22)
        assert effect.reached and effect.value == 22.0 and 0.2 < effect.took_s < 2.0
        assert server.store.value(TEMP) == 22.0
        effect = await bus.actuate(f"{WINDOW}.Position", 80.0, timeout_s=5)
        assert effect.reached and abs(effect.value - 80) <= 1


async def test_jam_and_slow_are_not_reached_in_time():
    """What didn't move is reported as not reached, with the value it has."""
    async with car() as (server, bus):
        server.actuators.fail(TEMP, Fault.JAM)
        effect = await bus.actuate(TEMP, 25.0, timeout_s=0.6)
        assert not effect.reached and effect.value == 20.0 and effect.took_s < 1.5
        server.actuators.fail(TEMP, Fault.SLOW)
        assert not (await bus.actuate(TEMP, 25.0, timeout_s=0.5)).reached


async def test_open_tailgate_is_proved_by_its_position():
    """IsOpen is true at the first crack, so "open" is reached only when the lid is at its end."""
    async with car() as (server, bus):
        effect = await bus.actuate(f"{GATE}.IsOpen", True, timeout_s=0.7)
        assert not effect.reached and effect.value is True and server.store.value(f"{GATE}.Position") < 60
        effect = await bus.actuate(f"{GATE}.IsOpen", True, timeout_s=8)
        assert effect.reached and server.store.value(f"{GATE}.Position") == 100


async def test_stop_halts_a_window_within_300_ms():
    """The window stays where it was; a car without a switch provider is stopped at its present position."""
    async with car() as (server, bus):
        closing = asyncio.ensure_future(bus.actuate(f"{WINDOW}.Position", 0, timeout_s=2.0))
        await asyncio.sleep(0.5)
        effect = await bus.stop(f"{WINDOW}.Position")
        assert effect.reached and effect.took_s < 0.3 and 60 < effect.value < 100
        at = server.store.value(f"{WINDOW}.Position")
        assert at == effect.value
        await asyncio.sleep(0.5)
        assert server.store.value(f"{WINDOW}.Position") == at
        assert not (await closing).reached
        server.store.release(server.actuators, [f"{WINDOW}.Switch"])
        closing = asyncio.ensure_future(bus.actuate(f"{WINDOW}.Position", 0, timeout_s=1.0))
        await asyncio.sleep(0.3)
        effect = await bus.stop(f"{WINDOW}.Position")
        assert effect.reached and effect.value > 40
        await closing
        with pytest.raises(InvalidArgs):
            await bus.stop(TEMP)


async def test_errors_are_typed():
    """Each gRPC fault is its host error; a wrong token and an absent bus too."""
    async with car() as (server, bus):
        with pytest.raises(InvalidArgs, match="0..100"):
            await bus.actuate(f"{WINDOW}.Position", 150)
        with pytest.raises(InvalidArgs, match="uint8"):
            await bus.actuate(f"{WINDOW}.Position", 50.5)
        with pytest.raises(InvalidArgs):
            await bus.actuate("Vehicle.Speed", 50.0)
        with pytest.raises(NotFound):
            await bus.actuate("Vehicle.Cabin", 1)
        with pytest.raises(Unavailable, match="provider"):
            await bus.actuate("Vehicle.Body.Horn.IsActive", True)
        wrong = KuksaBus(server.addr, "wrong")
        with pytest.raises(NotPermitted):
            await wrong.server()
        await wrong.close()
    absent = KuksaBus("127.0.0.1:9", TOKEN)
    with pytest.raises(Unavailable):
        await absent.get("Vehicle.Speed")
    await absent.close()


async def test_whole_host_over_the_bus():
    """Remote side → policy → gRPC → moving part: the set temperature is reached, the tailgate at 50 km/h is refused."""
    async with car('{"profile": [[0, 50]]}') as (server, bus):
        host = EffectHost(bus, clock=SystemClock())

        async def call(payload, timeout_s):
            return await host.handle(payload)

        remote = RemoteVehicleBus(call, task_id="t", task_version=1)
        assert (await remote.actuate(TEMP, 22.0)).reached
        with pytest.raises(Exception) as caught:
            await remote.actuate(f"{GATE}.IsOpen", True)
        assert caught.value.code == "unsafe_now" and caught.value.data == {"reason": "moving", "speed": 50}
        assert server.store.targets.get(f"{GATE}.IsOpen") is None
        server.drive.start = lambda: None
        server.driving.cancel()  # the signals stop coming: one second later nobody knows the speed
        await asyncio.sleep(1.2)
        with pytest.raises(Exception) as caught:
            await remote.actuate(f"{GATE}.IsOpen", True)
        assert caught.value.data["reason"] == "state_unknown"


async def test_subscribe_ends_cleanly_and_loses_no_last_value():
    """Current values first, then the newest; closing the iterator frees the server's subscription."""
    async with car() as (server, bus):
        stream = bus.subscribe(TEMP)
        assert (await anext(stream)).value == 20.0
        for i in range(50):
            server.store.publish(TEMP, 16.0 + i)
        values = [(await anext(stream)).value]
        while values[-1] != 65.0:
            values.append((await anext(stream)).value)
        await stream.aclose()
        for _ in range(100):
            if not server.store._subscriptions:
                break
            await asyncio.sleep(0.01)
        assert not server.store._subscriptions


@pytest.mark.parametrize(
    "value, target, datatype, unit, expected",
    [
        (22.04, 22.0, "float", "celsius", True), (22.06, 22.0, "float", "celsius", False), (1, 0, "uint8", "percent", False),
        (49, 50, "uint8", "percent", True), (99, 100, "uint8", "percent", False), (43.7316001, 43.7316, "double", "degrees", True),
        (43.7317, 43.7316, "double", "degrees", False), (True, 1, "boolean", "", False), (True, True, "boolean", "", True),
        ("OPEN", "OPEN", "string", "", True), (None, 0, "uint8", "percent", False), (3, 4, "uint8", "", False),
    ],
)  # fmt: skip
def test_reached_by_datatype(value, target, datatype, unit, expected):
    """The tolerance follows the datatype, and a window 1 % open isn't closed."""
    assert reached(value, target, datatype, unit) is expected


def test_path_families():
    """Braces expand in order, and what proves an opening is its position."""
    assert expand("A.{B,C}.D{1,2}") == ["A.B.D1", "A.B.D2", "A.C.D1", "A.C.D2"]
    assert proof(f"{GATE}.IsOpen", True) == (f"{GATE}.Position", 100) and proof(f"{GATE}.IsOpen", False) == (f"{GATE}.IsOpen", False)
    assert proof(TEMP, 20.0) == (TEMP, 20.0)
