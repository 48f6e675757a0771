"""Invariant: a wrong scenario is refused with one message that names the file, the place and what is allowed."""
from pathlib import Path

import pytest
import yaml

from simulators.car.drive import DriveFile
from simulators.scenario import load, parse
from venus_edge.errors import ConfigError

FIRST = Path("simulators/scenarios/first_drive.yaml")


def small(**change) -> dict:
    base = {"name": "small", "people": {"driver": {"voice": "marc"}},
            "script": [{"id": "a", "who": "driver", "say": "Hello.", "when": {"at_s": 0}}]}
    return base | change


def refused(data) -> str:
    with pytest.raises(ConfigError) as err:
        parse(data if isinstance(data, str) else yaml.safe_dump(data), "x.yaml")
    return err.value.message


def step(**change) -> list[dict]:
    return [small()["script"][0] | change]


def test_a_minimal_scenario_is_accepted_with_its_defaults():
    scenario = parse(yaml.safe_dump(small()))
    assert scenario.map == "monaco" and scenario.cabin.dac_delay_ms == 20 and scenario.steps[0].when.timeout_s == 20


@pytest.mark.parametrize("data, words", [
    (small(speeed=3), ["x.yaml", "unknown key 'speeed'", "allowed: name, seed, map"]),
    (small(script=step(expect={"herd": ["x"]})), ["script[0].expect", "unknown key 'herd'", "did you mean 'heard'", "within_s"]),
    (small(script=step(when={"quiet": 1})), ["script[0].when", "'quiet'", "quiet_s, speaking_s, at_s, after_s"]),
    (small(script=step(when={"quiet_s": 1, "at_s": 2})), ["script[0].when", "exactly one of", "quiet_s, at_s"]),
    (small(script=step(when={"timeout_s": 2})), ["script[0].when", "exactly one of", "given: none"]),
    (small(map="paris"), ["map", "'paris'", "allowed: monaco"]),
    (small(language="fr"), ["language", "'fr'", "allowed: en"]),
    (small(people={"driver": {"voice": "bob"}}), ["people.driver.voice", "'bob'", "marc, claire"]),
    (small(people={"driver": {"voice": "marc", "seat": "roof"}}), ["people.driver.seat", "'roof'", "rear_left"]),
    (small(people={"driver": {}}), ["people.driver", "'voice' is missing"]),
    (small(script=step(who="nobody")), ["script[0].who", "'nobody'", "allowed: driver"]),
    (small(script=step(say="Hello [pause] you")), ["script[0].say", "[pause 0.7]"]),
    (small(script=step(say="Hello [pause 9] you")), ["script[0].say", "[pause 9]", "5 seconds"]),
    (small(script=step(say="x" * 500)), ["script[0].say", "500 characters", "400"]),
    (small(script=step() * 2), ["script[1].id", "'a' is there twice"]),
    (small(script=step(expect={"supersedes": "b"})), ["script[0].expect.supersedes", "'b'", "allowed: true"]),
    (small(script=step(expect={"signal": {"path": "Vehicle.Sped", "equals": 1}})), ["signal[0].path", "Vehicle.Sped", "Vehicle.Speed"]),
    (small(script=step(expect={"signal": {"path": "Vehicle.Speed"}})), ["signal[0]", "equals or between"]),
    (small(script=step(expect={"task": {"execution": "DONE"}})), ["task.execution", "'DONE'", "COMPLETED"]),
    (small(script=step(expect={"assistant": {"goes_on": True, "stops": True}})), ["assistant", "either goes_on"]),
    (small(drive={"speed": [[5, 10], [3, 20]]}), ["drive", "speed", "times must rise"]),
    (small(drive={"speed": [[0, 900]]}), ["drive", "speed", "250"]),
    (small(drive={"start": [48.8, 2.3]}), ["drive.start", "outside the map monaco", "43.72"]),
    (small(drive={"initial": {"Vehicle.Nope": 1}}), ["drive", "Vehicle.Nope"]),
    (small(cabin={"echo_db": 90}), ["cabin.echo_db", "20", "90"]),
    (small(max_s=0), ["max_s", "0"]),
    (small(script=[]), ["script"]),
    ("name: [", ["x.yaml", "line", "YAML"]),
    ("name: a\nname: b\n", ["line 2", "'name' is there twice"]),
    ("- 1\n", ["must be a table"]),
    ("", ["must be a table"]),
    ("x: &a [*a]\n", ["x.yaml"]),
])  # fmt: skip
def test_what_is_wrong_is_named_with_its_place_and_the_allowed_values(data, words):
    message = refused(data)
    assert all(word in message for word in words), message
    assert "\n" not in message


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    for path in (tmp_path / "gone.yaml", tmp_path):
        with pytest.raises(ConfigError, match=str(path)):
            load(path)
    big = tmp_path / "big.yaml"
    big.write_text("#" * 300_000)
    with pytest.raises(ConfigError, match="256 KiB"):
        load(big)
    binary = tmp_path / "b.yaml"
    binary.write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(ConfigError, match="b.yaml"):
        load(binary)


def test_the_first_drive_holds_what_the_product_promises():
    scenario = load(FIRST)
    said = {s.id: s for s in scenario.steps}
    words = " ".join(s.say for s in scenario.steps)
    for promised in ("Find me a charging station nearby and take me there", "Set the temperature to twenty-two degrees", "Open the tailgate",
                     "mm-hmm", "No, take me to the casino instead"):
        assert promised in words
    assert said["tailgate"].when.min_kmh >= 45 and said["tailgate"].expect.refused == "unsafe_now"
    assert said["casino"].expect.supersedes == "station" and said["casino"].expect.assistant.stops
    assert said["listening"].expect.assistant.goes_on
    assert said["window"].expect.then_heard and scenario.drive.kmh(0) == 0 and scenario.drive.kmh(100) == 50


def test_the_plan_of_the_drive_is_what_the_vehicle_signals_take():
    plan = load(FIRST).drive
    assert DriveFile.model_validate(plan.drive_file()).profile[-1] == (240, 50)
    assert plan.kmh(39.5) == 25
