"""Temperature, fan and seat heating."""
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from harness.skill import Args, Effects, Result, Skill, SkillContext
from skills_automotive.vehicle.effects import reach, read
from skills_automotive.vehicle.zones import DRIVER_POSITION, seat_of, side_words

LOW_C, HIGH_C = 16.0, 30.0
STATION = "Vehicle.Cabin.HVAC.Station.{}.{}.{}"
WORDING = Path(__file__).with_name("wording.toml")
HEAT = (0, 33, 67, 100)
"""Seat heating level 0..3 as VSS's per cent."""
Zone = Literal["speaker", "driver", "passenger", "all"]


async def stations(ctx: SkillContext, zone: str, leaf: str) -> list[str]:
    """The climate stations of a zone; "all" is the front ones, which set the cabin."""
    seats = [("Row1", "Driver"), ("Row1", "Passenger")] if zone == "all" else [await seat_of(ctx, zone)]
    return [STATION.format(row, side, leaf) for row, side in seats]


class Climate(Result):
    """A setting of one or more stations."""

    zone: str
    celsius: float | None = None
    level: int | None = None

    def spoken(self, lang: str) -> dict[str, Any]:
        return {"celsius": self.celsius, "level": self.level, "side": side_words(self.zone, lang)}


def _outcome(base: str, zone: str, ctx: SkillContext) -> str:
    """The speaker's own zone isn't named."""
    return base if zone in ("speaker", ctx.zone) else f"{base}_side"


class SetTemperature(Skill):
    id = "vehicle.set_temperature"
    version = "1.0.0"
    summary = {"en": "Set the cabin temperature in degrees Celsius.", "zh": "设置车内温度（摄氏度）。"}
    examples = {"en": [
        ("Set the temperature to twenty-two degrees", {"celsius": 22}),
        ("Set it to twenty one and a half for the passenger", {"celsius": 21.5, "zone": "passenger"}),
    ]}
    effects = Effects(reads=(DRIVER_POSITION,), actuates=("Vehicle.Cabin.HVAC.Station.*.*.Temperature",))
    timeout_s = 6.0
    supersedes = "temperature"
    wording = WORDING
    Result = Climate

    class Args(Args):
        celsius: float = Field(ge=LOW_C, le=HIGH_C)
        zone: Zone = "speaker"

    async def run(self, args, ctx):
        celsius = round(args.celsius * 2) / 2  # the car takes half degrees
        paths = await stations(ctx, args.zone, "Temperature")
        await reach(ctx, dict.fromkeys(paths, celsius), 3.0, celsius=celsius)
        return self.Result(outcome=_outcome("done", args.zone, ctx), celsius=celsius, zone=args.zone)


class AdjustTemperature(Skill):
    id = "vehicle.adjust_temperature"
    version = "1.0.0"
    summary = {"en": "Make the cabin warmer or cooler by some degrees.", "zh": "将车内温度调高或调低若干度。"}
    examples = {"en": [("Make it two degrees warmer", {"delta": 2}), ("A bit cooler, please", {"delta": -2})]}
    effects = Effects(reads=(DRIVER_POSITION, "Vehicle.Cabin.HVAC.Station.*.*.Temperature"),
                      actuates=("Vehicle.Cabin.HVAC.Station.*.*.Temperature",))
    timeout_s = 6.0
    idempotent = False
    supersedes = "temperature"
    derived = frozenset({"delta"})
    wording = WORDING
    Result = Climate

    class Args(Args):
        delta: float = Field(ge=-14, le=14)
        zone: Zone = "speaker"

    async def run(self, args, ctx):
        paths = await stations(ctx, args.zone, "Temperature")
        wanted = float(await read(ctx, paths[0])) + args.delta
        celsius = round(min(HIGH_C, max(LOW_C, wanted)) * 2) / 2
        await reach(ctx, dict.fromkeys(paths, celsius), 3.0, celsius=celsius)
        base = "most" if wanted > HIGH_C else "least" if wanted < LOW_C else "done"
        return self.Result(outcome=base if base != "done" else _outcome(base, args.zone, ctx), celsius=celsius, zone=args.zone)


class SetFan(Skill):
    id = "vehicle.set_fan"
    version = "1.0.0"
    summary = {"en": "Set the fan speed in per cent.", "zh": "设置风量百分比。"}
    examples = {"en": [("Set the fan to fifty percent", {"level": 50}), ("Turn off the fan", {"level": 0})]}
    effects = Effects(reads=(DRIVER_POSITION,), actuates=("Vehicle.Cabin.HVAC.Station.*.*.FanSpeed",))
    timeout_s = 6.0
    supersedes = "fan"
    derived = frozenset({"level"})
    wording = WORDING
    Result = Climate

    class Args(Args):
        level: int = Field(ge=0, le=100)

    async def run(self, args, ctx):
        paths = await stations(ctx, "speaker" if ctx.zone.startswith("rear") else "all", "FanSpeed")
        await reach(ctx, dict.fromkeys(paths, args.level), 3.0, level=args.level)
        return self.Result(outcome="done" if args.level else "off", level=args.level, zone="speaker")


class SetSeatHeating(Skill):
    id = "vehicle.set_seat_heating"
    version = "1.0.0"
    summary = {"en": "Set the seat heating to a level from 0 (off) to 3.", "zh": "设置座椅加热档位，0（关闭）到3。"}
    examples = {"en": [("Turn on the seat heating", {"level": 2}), ("Passenger seat heating off", {"level": 0, "seat": "passenger"})]}
    effects = Effects(reads=(DRIVER_POSITION,), actuates=("Vehicle.Cabin.Seat.*.*.HeatingCooling",))
    timeout_s = 6.0
    supersedes = "seat_heating"
    derived = frozenset({"level"})
    wording = WORDING
    Result = Climate

    class Args(Args):
        level: int = Field(ge=0, le=3)
        seat: Literal["speaker", "driver", "passenger"] = "speaker"

    async def run(self, args, ctx):
        row, side = await seat_of(ctx, args.seat)
        await reach(ctx, {f"Vehicle.Cabin.Seat.{row}.{side}Side.HeatingCooling": HEAT[args.level]}, 3.0, level=args.level)
        return self.Result(outcome=_outcome("done" if args.level else "off", args.seat, ctx), level=args.level, zone=args.seat)
