"""`venus.effect` is written down twice, because the device SDK and the harness may not import each other: both must agree."""
import pytest
from device_sdk import wire
from harness.host import messages

REQUESTS = [
    wire.EffectRequest(key="k", op="get", paths=["Vehicle.Speed"]),
    wire.EffectRequest(key="k", op="actuate", path="Vehicle.Cabin.Infotainment.Media.Volume", value=40, timeout_s=2.5, zone="passenger",
                       task=wire.TaskRef(id="task-1", version=2), provenance="live_speech", confirm="c-1"),
    wire.EffectRequest(key="k", op="stop", path="Vehicle.Cabin.Door.Row1.DriverSide.Window.Position"),
]
ANSWERS = [
    messages.EffectAnswer(ok=True, signals={"Vehicle.Speed": messages.SignalValue(value=50.0, age_s=0.1), "Vehicle.X": messages.SignalValue(value=None, age_s=None)}),
    messages.EffectAnswer(ok=True, effect=messages.EffectResult(path="Vehicle.X", target=22.0, value=22.0, reached=True, took_s=0.3)),
    messages.EffectAnswer(ok=False, error=messages.ErrorBody(code="unsafe_now", message="moving", data={"reason": "moving", "speed": 50})),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: r.op)
def test_the_car_host_reads_what_a_device_writes(request_):
    got = messages.EffectRequest.model_validate_json(wire.encode_effect(request_))
    for name, value in request_.model_dump(exclude_none=True, exclude={"task"}).items():
        assert getattr(got, name) == value, name


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_device_reads_what_the_car_host_writes(answer):
    got = wire.decode_effect_answer(answer.model_dump_json(exclude_none=True))
    assert got.ok == answer.ok and (got.error.code if got.error else None) == (answer.error.code if answer.error else None)
    if answer.signals:
        assert {k: v.value for k, v in got.signals.items()} == {k: v.value for k, v in answer.signals.items()}


def test_both_have_the_same_operations_zones_and_fields():
    ours, theirs = wire.EffectRequest.model_json_schema(), messages.EffectRequest.model_json_schema()
    assert set(ours["properties"]) == set(theirs["properties"])
    for name in ("op", "zone"):
        assert ours["properties"][name]["enum"] == theirs["properties"][name]["enum"]
        assert ours["properties"][name].get("default") == theirs["properties"][name].get("default")
