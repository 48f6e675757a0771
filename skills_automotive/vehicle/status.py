"""vehicle.status: what the car's signals say, in a sentence."""
from pathlib import Path
from typing import Any, Literal

from harness.skill import Args, Effects, Result, Skill, SkillContext
from skills_automotive import spoken
from skills_automotive.vehicle.body import LOCKS, WINDOW
from skills_automotive.vehicle.climate import stations
from skills_automotive.vehicle.effects import read
from skills_automotive.vehicle.zones import DRIVER_POSITION, WINDOWS, door_words, seat_of, window_words
from venus_edge.wording import LANGUAGES

SPEED = "Vehicle.Speed"
RANGE = "Vehicle.Powertrain.Range"
BATTERY = "Vehicle.Powertrain.TractionBattery.StateOfCharge.Displayed"
CABIN = "Vehicle.Cabin.HVAC.AmbientAirTemperature"
OUTSIDE = "Vehicle.Exterior.AirTemperature"
SPEED_AGE_S = 2.0


class Status(Skill):
    id = "vehicle.status"
    version = "1.0.0"
    summary = {"en": "Answer a question about the car: speed, range, battery, temperatures, windows, doors, destination.",
               "zh": "回答关于车辆的问题：速度、续航、电量、温度、车窗、车门、目的地。"}
    examples = {"en": [
        ("How fast are we going?", {"what": "speed"}), ("What's our range?", {"what": "range"}),
        ("How full is the battery?", {"what": "battery"}), ("What's the temperature in here?", {"what": "temperature"}),
        ("How cold is it outside?", {"what": "outside_temperature"}), ("Is a window open?", {"what": "window"}),
        ("Are the doors locked?", {"what": "doors"}), ("Where are we going?", {"what": "destination"}),
    ]}
    effects = Effects(reads=(SPEED, RANGE, BATTERY, CABIN, OUTSIDE, DRIVER_POSITION, "Vehicle.Cabin.HVAC.Station.*.*.Temperature",
                             "Vehicle.Cabin.Door.*.*.Window.Position", "Vehicle.Cabin.Door.*.*.IsOpen", "Vehicle.Cabin.Door.*.*.IsLocked"))
    timeout_s = 4.0
    wording = Path(__file__).with_name("wording.toml")

    class Args(Args):
        what: Literal["speed", "range", "battery", "temperature", "outside_temperature", "window", "doors", "destination"]

    class Result(Result):
        value: float | None = None
        second: float | None = None
        words: dict[str, str] = {}

        def spoken(self, lang: str) -> dict[str, Any]:
            return {"value": self.value, "second": self.second, "words": self.words.get(lang, "")}

    async def run(self, args, ctx):
        return await getattr(self, f"_{args.what}")(ctx)

    async def _speed(self, ctx: SkillContext):
        speed = round(abs(await read(ctx, SPEED, SPEED_AGE_S)))
        return self.Result(outcome="speed" if speed else "standing", value=speed)

    async def _range(self, ctx: SkillContext):
        metres = float(await read(ctx, RANGE))
        return self.Result(outcome="range", value=metres, words={lang: spoken.distance(metres, lang) for lang in LANGUAGES})

    async def _battery(self, ctx: SkillContext):
        return self.Result(outcome="battery", value=round(await read(ctx, BATTERY)))

    async def _temperature(self, ctx: SkillContext):
        path, = await stations(ctx, "speaker", "Temperature")
        signals = await ctx.vehicle.get(path, CABIN)
        setting, cabin = signals[path].value, signals[CABIN].value
        if setting is None or cabin is None:
            return self.Result(outcome="temperature_set" if cabin is None else "temperature_cabin",
                               value=await read(ctx, path if cabin is None else CABIN))
        return self.Result(outcome="temperature", value=setting, second=round(cabin))

    async def _outside_temperature(self, ctx: SkillContext):
        return self.Result(outcome="outside", value=round(await read(ctx, OUTSIDE)))

    async def _window(self, ctx: SkillContext):
        seats = {zone: await seat_of(ctx, zone) for zone in WINDOWS}
        paths = {zone: WINDOW.format(*seat) for zone, seat in seats.items()}
        signals = await ctx.vehicle.get(*paths.values())
        open_ones = [zone for zone, path in paths.items() if (signals[path].value or 0) > 0]
        if not open_ones:
            return self.Result(outcome="windows_closed")
        words = {lang: spoken.listed([window_words(zone, lang) for zone in open_ones], lang) for lang in LANGUAGES}
        words["en"] = words["en"][:1].upper() + words["en"][1:]
        return self.Result(outcome="window_open" if len(open_ones) == 1 else "windows_open", words=words)

    async def _doors(self, ctx: SkillContext):
        seats = {zone: await seat_of(ctx, zone) for zone in WINDOWS}
        paths = {zone: f"Vehicle.Cabin.Door.{row}.{side}Side.IsOpen" for zone, (row, side) in seats.items()}
        signals = await ctx.vehicle.get(*paths.values(), *LOCKS)
        open_ones = [zone for zone, path in paths.items() if signals[path].value]
        if open_ones:
            words = {lang: spoken.listed([door_words(zone, lang) for zone in open_ones], lang) for lang in LANGUAGES}
            words["en"] = words["en"][:1].upper() + words["en"][1:]
            return self.Result(outcome="door_open" if len(open_ones) == 1 else "doors_open", words=words)
        return self.Result(outcome="doors_locked" if all(signals[path].value for path in LOCKS) else "doors_unlocked")

    async def _destination(self, ctx: SkillContext):
        goal = ctx.memory.get("destination")
        return self.Result(outcome="destination", words=goal["said"]) if goal else self.Result(outcome="no_destination")
