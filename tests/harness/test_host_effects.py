"""The host: policy at the moment of the effect, one action a key, bounded state; with the remote side in front."""

import asyncio
import json
import math

import pytest

from harness.host.effects import CONFIRM_S, EffectHost
from harness.host.errors import (
    DeadlinePassed, HostError, InvalidArgs, NeedsConfirmation, NotFound, NotPermitted, Unavailable, UnsafeNow,
)  # fmt: skip
from harness.host.remote import RemoteVehicleBus
from harness.host.testing import PARKED, MemoryVehicleBus, driving, hosted
from venus_edge.metrics import METRICS
from venus_edge.testing import VirtualClock
from venus_edge.trace import Trace

TEMP = "Vehicle.Cabin.HVAC.Station.Row1.Driver.Temperature"
GATE = "Vehicle.Body.Trunk.Rear.IsOpen"
WINDOW = "Vehicle.Cabin.Door.Row1.DriverSide.Window.Position"
BODY = {WINDOW.replace("Driver", "Passenger"): 0, TEMP: 20.0, GATE: False, WINDOW: 100, "Vehicle.Body.Trunk.Rear.Position": 0, "Vehicle.CurrentLocation.Latitude": None}


def make(values=PARKED, **more):
    bus = MemoryVehicleBus(values | BODY, **more)
    return bus, EffectHost(bus, clock=bus.clock)


def request(**fields):
    return json.dumps({"v": 1, "key": "k1", "op": "actuate", "path": TEMP, "value": 22.0, "zone": "driver", "provenance": "live_speech"} | fields)


async def ask(host, **fields):
    return json.loads(await host.handle(request(**fields)))


async def test_actuation_answers_with_the_documented_shape():
    """The answer is the one of the wire table, and the bus saw the command once."""
    bus, host = make()
    answer = await ask(host)
    assert answer == {"v": 1, "ok": True, "effect": {"path": TEMP, "target": 22.0, "value": 22.0, "reached": True, "took_s": 0.0}}
    assert bus.actuated == [(TEMP, 22.0)]


async def test_same_key_never_acts_twice():
    """Repeated and concurrent duplicates share the first one's answer; another request under the key is refused."""
    bus, host = make(delay_s=1.0)
    calls = [asyncio.ensure_future(host.handle(request())) for _ in range(5)]
    await bus.clock.advance(2.0)
    answers = {call.result() for call in calls} | {await host.handle(request())}
    assert len(answers) == 1 and bus.actuated == [(TEMP, 22.0)]
    assert (await ask(host, value=25.0))["error"]["code"] == "invalid_args"
    assert bus.actuated == [(TEMP, 22.0)]


async def test_caller_that_gives_up_stops_nothing():
    """A cancelled call leaves the effect running, and its answer is there for the repetition."""
    bus, host = make(delay_s=1.0)
    call = asyncio.ensure_future(host.handle(request()))
    await bus.clock.advance(0.5)
    call.cancel()
    await bus.clock.advance(1.0)
    assert json.loads(await host.handle(request()))["ok"] and bus.actuated == [(TEMP, 22.0)]


async def test_keys_and_running_effects_are_bounded():
    """Old keys are dropped and counted; more effects at once than allowed are unavailable, not queued."""
    bus = MemoryVehicleBus(PARKED | BODY)
    host, before = EffectHost(bus, clock=bus.clock, max_keys=8, max_running=2), METRICS.get("venus_carhost_keys_dropped_total")
    for i in range(30):
        assert (await ask(host, key=f"k{i}"))["ok"]
    assert len(host._answers) == 8 and METRICS.get("venus_carhost_keys_dropped_total") - before == 22
    bus.delay_s = 5.0
    tasks = [asyncio.ensure_future(host.handle(request(key=p, path=p, value=50))) for p in (WINDOW, WINDOW.replace("Driver", "Passenger"))]
    await bus.clock.advance(0.1)
    refused = await asyncio.wait_for(ask(host, key="s3"), 2)
    assert refused["error"]["code"] == "unavailable" and refused["error"]["retryable"]
    await bus.clock.advance(10)
    await asyncio.gather(*tasks)


async def test_policy_is_checked_at_the_moment_of_the_effect():
    """The same request is refused while moving and asked about once parked; the state is read each time."""
    bus, host = make(driving(50))
    refused = await ask(host, path=GATE, value=True)
    assert refused["error"]["code"] == "unsafe_now" and refused["error"]["data"] == {"reason": "moving", "speed": 50}
    bus.values |= PARKED
    assert (await ask(host, path=GATE, value=True, key="k2"))["error"]["code"] == "needs_confirmation"
    bus.ages["Vehicle.Speed"] = 1.5
    assert (await ask(host, path=GATE, value=True, key="k3"))["error"]["data"]["reason"] == "state_unknown"
    assert bus.actuated == []


async def test_state_that_cannot_be_read_counts_as_moving():
    """A bus that fails to give the state refuses what needs a parked car, and does the harmless."""
    bus, host = make()
    real = bus.get

    async def broken(*paths):
        if "Vehicle.Speed" in paths:
            await bus.clock.sleep(99)
        return await real(*paths)

    bus.get = broken
    task = asyncio.ensure_future(ask(host, path=GATE, value=True))
    await bus.clock.advance(1.0)
    assert (await task)["error"]["data"]["reason"] == "state_unknown"
    del bus.values["Vehicle.Exterior.LightIntensity"]  # a car without one of the signals still has the others
    bus.get = real
    assert (await ask(host, path=GATE, value=True, key="k2"))["error"]["code"] == "needs_confirmation"


async def test_confirmation_is_bound_to_task_version_arguments_zone_time_and_motion():
    """Only the exact request that was asked about, in time and in the same state, is done; a token works once."""
    bus, host = make()

    async def token(n):
        return (await ask(host, key=f"q{n}", path=GATE, value=True, task={"id": "t", "version": 1}))["error"]["data"]["confirm"]

    async def answer(n, yes, **fields):
        return await ask(host, **{"key": f"a{n}", "path": GATE, "value": True, "task": {"id": "t", "version": 1}, "confirm": yes} | fields)

    assert not (await answer(0, await token(0), task={"id": "t", "version": 2}))["ok"]
    assert not (await answer(1, await token(1), zone="passenger"))["ok"]
    assert not (await answer(2, await token(2), path="Vehicle.Body.Trunk.Rear.Position", value=100))["ok"]
    assert not (await answer(3, "yes-forged"))["ok"]
    late = await token(4)
    await bus.clock.advance(CONFIRM_S + 0.1)
    assert not (await answer(4, late))["ok"]
    moved = await token(5)
    bus.values |= driving(10)
    assert (await answer(5, moved))["error"]["code"] == "unsafe_now"
    bus.values |= PARKED
    assert bus.actuated == []
    good = await token(6)
    assert (await answer(6, good))["ok"] and bus.actuated == [(GATE, True)]
    assert not (await answer(7, good))["ok"] and len(bus.actuated) == 1


async def test_only_live_speech_actuates():
    """A tool, a scene text or nothing named can't authorise an effect."""
    bus, host = make()
    for i, who in enumerate(["tool", "model", "scene", "unknown"]):
        assert (await ask(host, key=str(i), provenance=who))["error"]["data"]["reason"] == "provenance"
    bare = json.loads(request(key="bare"))
    del bare["provenance"]
    assert not json.loads(await host.handle(json.dumps(bare)))["ok"] and bus.actuated == []


@pytest.mark.parametrize(
    "payload, word",
    [
        ("not json", "request"), ("[]", "request"), (request(op="drive"), "op"), (request(path=None), "path"), (request(value=None), "value"),
        (request(zone="roof"), "zone"), (request(timeout_s=-1), "timeout_s"), (request(timeout_s=1000), "timeout_s"), (request(extra=1), "extra"),
        (request(value={"a": 1}), "value"), (request(path="Vehicle.*"), "path"), (request(key=""), "key"), (request(v=2), "v"),
        (request(value="x" * 20_000), "request"), (json.dumps({"v": 1, "key": "k", "op": "get", "paths": []}), "paths"),
    ],
)  # fmt: skip
async def test_bad_requests_name_the_field(payload, word):
    """Bad input gives one typed error naming the field, touches nothing, and the host lives on."""
    bus, host = make()
    answer = json.loads(await host.handle(payload))
    assert answer["error"]["code"] == "invalid_args" and word in answer["error"]["message"]
    assert bus.actuated == [] and (await ask(host))["ok"]


async def test_later_command_and_stop_end_the_earlier_wait():
    """A stop halts at once without a question, from any seat; who waited for the target learns it wasn't reached."""
    bus, host = make(delay_s=5.0)
    closing = asyncio.ensure_future(ask(host, path=WINDOW, value=0, timeout_s=12))
    await bus.clock.advance(1.0)
    stopped = await ask(host, key="k2", op="stop", path=WINDOW, value=None, zone="passenger", provenance="system")
    assert stopped["effect"]["target"] == "stop" and bus.stopped == [WINDOW]
    first = await closing
    assert first["ok"] and first["effect"]["reached"] is False and first["effect"]["value"] == 100
    assert (await ask(host, key="k3", op="stop", path=TEMP, value=None))["error"]["code"] == "invalid_args"


async def test_effects_are_traced():
    """Each effect leaves one trace event with verdict and reason."""
    bus, rows = MemoryVehicleBus(driving(50) | BODY), []
    trace = Trace("carhost", directory="", clock=bus.clock)
    trace.listeners.append(rows.append)
    host = EffectHost(bus, clock=bus.clock, trace=trace)
    await ask(host, task={"id": "task-1", "version": 1})
    await ask(host, key="k2", path=GATE, value=True)
    await ask(host, key="k3", op="get", paths=["Vehicle.Speed"], path=None, value=None)
    assert [(r["ev"], r["op"], r["path"], r["value"], r["verdict"], r["reason"]) for r in rows] == [
        ("effect", "actuate", TEMP, 22.0, "allow", ""), ("effect", "actuate", GATE, True, "refuse", "moving")]
    assert rows[0]["task"] == "task-1" and rows[0]["reached"] is True


async def test_remote_bus_is_a_vehicle_bus():
    """get and actuate work as on the bus itself, and errors come back typed with their data."""
    bus = MemoryVehicleBus(driving(50) | BODY)
    remote = hosted(bus, task_id="t1", task_version=3, zone="driver")
    got = await remote.get("Vehicle.Speed", "Vehicle.CurrentLocation.Latitude")
    assert got["Vehicle.Speed"].value == 50.0 and got["Vehicle.CurrentLocation.Latitude"].value is None
    assert math.isinf(got["Vehicle.CurrentLocation.Latitude"].age_s)
    assert (await remote.actuate(TEMP, 21.5)).reached
    with pytest.raises(UnsafeNow) as caught:
        await remote.actuate(GATE, True)
    assert caught.value.data == {"reason": "moving", "speed": 50}
    with pytest.raises(InvalidArgs) as caught:
        await remote.actuate(TEMP, 40.0)
    assert (caught.value.data["low"], caught.value.data["high"], caught.value.data["step"]) == (16, 30, 0.5)
    with pytest.raises(NotPermitted):
        await remote.get("Vehicle.VehicleIdentification.VIN")
    with pytest.raises(NotFound):
        await remote.get("Vehicle.Cabin.Nope")
    bus.unprovided.add(TEMP)
    with pytest.raises(Unavailable):
        await remote.actuate(TEMP, 20.0)
    with pytest.raises(Unavailable, match="subscribed"):
        remote.subscribe(TEMP)
    bus.unprovided.clear()
    bus.values |= PARKED
    host = EffectHost(bus, clock=bus.clock)
    with pytest.raises(NeedsConfirmation) as caught:
        await hosted(bus, host).actuate(GATE, True)
    assert (await hosted(bus, host, confirm=caught.value.data["confirm"]).actuate(GATE, True)).reached


async def test_lost_call_is_repeated_once_under_the_same_key():
    """Whatever the network loses, the host acts at most once and the caller gets a typed error or the answer."""
    bus, host = make()
    lose = ["answer"]

    async def call(payload, timeout_s):
        answer = await host.handle(payload)
        if lose:
            lose.pop()
            raise ConnectionError("lost")
        return answer

    remote = RemoteVehicleBus(call)
    assert (await remote.actuate(TEMP, 24.0)).reached and bus.actuated == [(TEMP, 24.0)]
    lose += ["answer", "answer"]
    with pytest.raises(Unavailable):
        await remote.actuate(TEMP, 25.0)
    assert bus.actuated == [(TEMP, 24.0), (TEMP, 25.0)]

    async def silent(payload, timeout_s):
        raise TimeoutError

    async def nonsense(payload, timeout_s):
        return "<html>"

    with pytest.raises(DeadlinePassed):
        await RemoteVehicleBus(silent).get("Vehicle.Speed")
    with pytest.raises(HostError):
        await RemoteVehicleBus(nonsense).get("Vehicle.Speed")


async def test_memory_bus_double_behaves_as_the_contract():
    """The shipped double: stuck actuators time out unreached, subscribers get current values and the newest change."""
    clock = VirtualClock()
    bus = MemoryVehicleBus(PARKED | BODY, clock=clock)
    bus.stuck.add(TEMP)
    task = asyncio.ensure_future(bus.actuate(TEMP, 22.0, timeout_s=3.0))
    await clock.advance(3.0)
    effect = await task
    assert (effect.reached, effect.value, effect.took_s) == (False, 20.0, 3.0)
    stream = bus.subscribe("Vehicle.Speed")
    assert (await anext(stream)).value == 0.0
    waiting = asyncio.ensure_future(anext(stream))
    await clock.advance(0)
    for kmh in range(100):
        bus.publish("Vehicle.Speed", float(kmh))
    assert (await waiting).value == 99.0
    await stream.aclose()
    bus.reachable = False
    with pytest.raises(Unavailable):
        await bus.get("Vehicle.Speed")
