"""The scenario file: a drive, a cabin, people and their script, with what is expected of the assistant. YAML, checked whole.

    scenario = load("simulators/scenarios/first_drive.yaml")      # raises ConfigError naming file, field and what is allowed
"""
import difflib
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from simulators.car import vss
from simulators.car.drive import DriveFile
from simulators.people import catalogue
from venus_edge.errors import ConfigError

SEATS = ("driver", "passenger", "rear_left", "rear_right")
MAPS = {"monaco": (43.720, 43.755, 7.400, 7.445)}
"""Maps that a scenario may name, with their bounds: south, north, west, east."""
MAX_BYTES = 256 * 1024
EXECUTION = ("COMPLETED", "FAILED", "CANCELLED", "EXPIRED", "SUPERSEDED")
DELIVERY = ("NONE", "PENDING", "DELIVERING", "DELIVERED", "INTERRUPTED", "UNSPOKEN", "MERGED", "DROPPED")


class Part(BaseModel):
    """Refuses keys it doesn't know and says which ones it does."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data):
        if not isinstance(data, dict):
            raise ValueError(f"must be a table with the keys {', '.join(cls.model_fields)}, not {type(data).__name__}")
        for key in data:
            if key not in cls.model_fields:
                near = difflib.get_close_matches(str(key), cls.model_fields, 1)
                raise ValueError(f"unknown key {key!r}{f' (did you mean {near[0]!r}?)' if near else ''}; "
                                 f"allowed: {', '.join(cls.model_fields)}")
        return data


def _one_of(value, allowed, what: str = "value"):
    if value not in allowed:
        raise ValueError(f"unknown {what} {value!r}; allowed: {', '.join(map(str, allowed))}")
    return value


def _signal_path(path: str) -> str:
    specs = vss.load()
    if path not in specs:
        near = difflib.get_close_matches(path, specs, 3)
        raise ValueError(f"no VSS 6.0 signal {path!r}{f'; near it: {chr(44).join(near)}' if near else ''}")
    return path


class DrivePlan(Part):
    """How the car moves. The map's bounds hold `start` and `shape`."""

    start: tuple[float, float] = (43.7316, 7.4163)
    """[lat, lon]"""
    speed: tuple[tuple[float, float], ...] = Field(default=((0.0, 0.0),), min_length=1, max_length=1000)
    """[s, km/h] pairs, linear between."""
    shape: tuple[tuple[float, float], ...] = Field(default=(), max_length=10_000)
    """The way, as [lat, lon] points; without it the car stays at `start` on the map."""
    initial: dict[str, Any] = Field(default_factory=dict)
    """Start values by VSS path."""
    faults: dict[str, str] = Field(default_factory=dict)
    """none | jam | no_provider | slow, by VSS path."""

    def drive_file(self, begin: str = "ready") -> dict:
        """What the vehicle-signal server takes as VENUS_DRIVE."""
        return {"profile": [list(p) for p in self.speed], "start": list(self.start), "shape": [list(p) for p in self.shape],
                "begin": begin, "initial": dict(self.initial), "faults": dict(self.faults)}

    @model_validator(mode="after")
    def _drivable(self):
        try:
            DriveFile.model_validate(self.drive_file())
        except ValidationError as err:
            first = err.errors()[0]
            field = {"profile": "speed"}.get(str(first["loc"][0]), str(first["loc"][0])) if first["loc"] else "drive"
            raise ValueError(f"{field}: {first['msg'].removeprefix('Value error, ')}") from None
        return self

    def kmh(self, t: float) -> float:
        """The planned speed `t` seconds after the beginning."""
        before = [p for p in self.speed if p[0] <= t]
        after = [p for p in self.speed if p[0] > t]
        if not before or not after:
            return (before or after)[-1 if before else 0][1]
        (t0, v0), (t1, v1) = before[-1], after[0]
        return v0 + (v1 - v0) * (t - t0) / (t1 - t0)


class CabinPlan(Part):
    """Sound levels in dB against the driver's normal speech at the microphone."""

    noise_db_at_50: float = Field(default=-13.0, ge=-60, le=10)
    echo_db: float = Field(default=0.0, ge=-60, le=20)
    dac_delay_ms: float = Field(default=20.0, ge=0, le=200)


class Person(Part):
    voice: str
    seat: str = "driver"

    @field_validator("voice")
    @classmethod
    def _voice(cls, value):
        return _one_of(value, catalogue.VOICES, "voice")

    @field_validator("seat")
    @classmethod
    def _seat(cls, value):
        return _one_of(value, SEATS, "seat")


class When(Part):
    """The moment a line is said: exactly one trigger, by what can be heard in the car; gives up waiting after `timeout_s`."""

    quiet_s: float | None = Field(default=None, ge=0, le=60)
    """The answer to the previous line has been heard and the loudspeaker silent that long (without any answer for
    PATIENCE_S the person goes on)."""
    speaking_s: float | None = Field(default=None, ge=0, le=60)
    """The loudspeaker has been speaking that long, without a longer pause, since the previous line ended."""
    at_s: float | None = Field(default=None, ge=0, le=3600)
    """That long after the script began."""
    after_s: float | None = Field(default=None, ge=0, le=300)
    """That long after the previous line ended."""
    timeout_s: float = Field(default=20.0, gt=0, le=300)
    """Counted from the end of the previous line; then it is said all the same, and the trace says so."""
    min_kmh: float | None = Field(default=None, ge=0, le=250)
    """And not slower than that."""
    max_kmh: float | None = Field(default=None, ge=0, le=250)
    """And not faster than that."""

    @model_validator(mode="after")
    def _exactly_one(self):
        triggers = ("quiet_s", "speaking_s", "at_s", "after_s")
        given = [name for name in triggers if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"needs exactly one of {', '.join(triggers)}; given: {', '.join(given) or 'none'}")
        return self


class Understood(Part):
    capability: str | None = Field(default=None, pattern=r"^[a-z_]+(\.[a-z_]+)+$")
    arguments: dict[str, Any] = Field(default_factory=dict)


class TaskState(Part):
    execution: str | tuple[str, ...] | None = None
    delivery: str | tuple[str, ...] | None = None

    @field_validator("execution", "delivery")
    @classmethod
    def _state(cls, value, info):
        for state in (value,) if isinstance(value, str) else value or ():
            _one_of(state, EXECUTION if info.field_name == "execution" else DELIVERY, "state")
        return value


class SignalState(Part):
    path: str
    equals: Any = None
    between: tuple[float, float] | None = None

    @field_validator("path")
    @classmethod
    def _path(cls, value):
        return _signal_path(value)

    @model_validator(mode="after")
    def _one_way(self):
        if (self.equals is None) == (self.between is None):
            raise ValueError("needs either equals or between")
        if self.between is not None and self.between[0] > self.between[1]:
            raise ValueError(f"between: {self.between[0]:g} is above {self.between[1]:g}")
        return self


class Floor(Part):
    """What the assistant does with the floor when the line is said over it."""

    goes_on: Literal[True] | None = None
    stops: Literal[True] | None = None

    @model_validator(mode="after")
    def _one_way(self):
        if (self.goes_on is None) == (self.stops is None):
            raise ValueError("needs either goes_on: true or stops: true")
        return self


class Expect(Part):
    """What must come of a line. Phrases are judged by their sound, `a|b` accepts either, numbers exactly."""

    heard: tuple[str, ...] = ()
    heard_numbers: tuple[float, ...] = ()
    not_heard: tuple[str, ...] = ()
    within_s: float | None = Field(default=None, gt=0, le=60)
    """From the line's last sample to the first sample of its answer."""
    understood: Understood | None = None
    task: TaskState | None = None
    signal: tuple[SignalState, ...] = ()
    refused: str | bool | None = None
    """The code or reason that the car host gives, true for any, false for none."""
    assistant: Floor | None = None
    supersedes: str | Literal[True] | None = None
    """The id of the line whose task is replaced, or true for the latest one."""
    then_heard: tuple[str, ...] = ()
    """Heard after the first answer: the result of a slow task, once."""

    @field_validator("heard", "heard_numbers", "not_heard", "then_heard", "signal", mode="before")
    @classmethod
    def _as_list(cls, value):
        return value if isinstance(value, (list, tuple)) else [value]


class Step(Part):
    """One line of the script."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")
    who: str
    say: str
    when: When
    expect: Expect | None = None

    @field_validator("say")
    @classmethod
    def _sayable(cls, value):
        try:
            catalogue.pieces(value)
        except ConfigError as err:
            raise ValueError(err.message) from None
        return value


class Scenario(Part):
    name: str = Field(min_length=1, max_length=80)
    seed: int = Field(default=1, ge=0, le=2**31)
    map: str = "monaco"
    language: str = "en"
    max_s: float = Field(default=180.0, gt=0, le=3600)
    drive: DrivePlan = Field(default_factory=DrivePlan)
    cabin: CabinPlan = Field(default_factory=CabinPlan)
    people: dict[str, Person] = Field(min_length=1, max_length=8)
    script: tuple[Step, ...] = Field(min_length=1, max_length=200)

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.script

    @field_validator("map")
    @classmethod
    def _map(cls, value):
        return _one_of(value, MAPS, "map")

    @field_validator("language")
    @classmethod
    def _language(cls, value):
        return _one_of(value, ("en",), "language")

    @model_validator(mode="after")
    def _fits_together(self):
        south, north, west, east = MAPS[self.map]
        for name, points in (("start", [self.drive.start]), ("shape", self.drive.shape)):
            for lat, lon in points:
                if not (south <= lat <= north and west <= lon <= east):
                    raise ValueError(f"drive.{name}: [{lat}, {lon}] lies outside the map {self.map}: "
                                     f"latitude {south}..{north}, longitude {west}..{east}")
        seen: list[str] = []
        for k, step in enumerate(self.script):
            if step.id in seen:
                raise ValueError(f"script[{k}].id: {step.id!r} is there twice")
            if step.who not in self.people:
                raise ValueError(f"script[{k}].who: {step.who!r} is none of the people; allowed: {', '.join(self.people)}")
            replaced = step.expect.supersedes if step.expect else None
            if isinstance(replaced, str) and replaced not in seen:
                raise ValueError(f"script[{k}].expect.supersedes: {replaced!r} is no earlier line; allowed: true, {', '.join(seen) or 'none yet'}")
            seen.append(step.id)
        return self


class _Loader(yaml.SafeLoader):
    """Refuses a key that is there twice: YAML would silently keep the last."""

    def construct_mapping(self, node, deep=False):
        keys = []
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in keys:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is there twice", key_node.start_mark)
            keys.append(key)
        return super().construct_mapping(node, deep)


def _place(loc: tuple) -> str:
    """('script', 2, 'expect') -> script[2].expect"""
    out = ""
    for part in loc:
        if isinstance(part, int):
            out += f"[{part}]"
        elif not part.startswith(("function-", "literal", "tuple", "str", "bool", "constrained")):
            out += f".{part}" if out else part
    return out


def parse(text: str, source: str = "scenario") -> Scenario:
    """The scenario in `text`; raises ConfigError `<source>: <field>: what is wrong; allowed: …`."""
    if len(text.encode()) > MAX_BYTES:
        raise ConfigError(f"{source}: longer than {MAX_BYTES // 1024} KiB")
    try:
        data = yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as err:
        mark = getattr(err, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        raise ConfigError(f"{source}: {where}not readable as YAML: {getattr(err, 'problem', None) or err}") from None
    try:
        return Scenario.model_validate(data)
    except ValidationError as err:
        first = err.errors()[0]
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "missing":
            place = _place(first["loc"][:-1])
            message = f"the key {first['loc'][-1]!r} is missing"
        else:
            place = _place(first["loc"])
        if first["type"] not in ("value_error", "missing") and not isinstance(first.get("input"), (dict, list)):
            message += f", not {first['input']!r}"
        raise ConfigError(": ".join(filter(None, (source, place, message)))) from None


def load(path: Path | str) -> Scenario:
    """Read and check a scenario file; raises ConfigError."""
    path = Path(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{path}: longer than {MAX_BYTES // 1024} KiB")
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as err:
        raise ConfigError(f"{path}: can't be read: {getattr(err, 'strerror', None) or err}") from None
    return parse(text, str(path))
