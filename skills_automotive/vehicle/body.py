"""Windows, tailgate, locks and volume. The car's host decides what is safe now; these say so in words."""
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from harness.skill import Args, Effects, Result, Skill
from skills_automotive.vehicle.effects import reach, read
from skills_automotive.vehicle.zones import DRIVER_POSITION, WINDOWS, seat_of, window_words

WINDOW = "Vehicle.Cabin.Door.{}.{}Side.Window.Position"
TAILGATE = "Vehicle.Body.Trunk.Rear.IsOpen"
LOCKS = tuple(f"Vehicle.Cabin.Door.{row}.{side}Side.IsLocked" for row in ("Row1", "Row2") for side in ("Driver", "Passenger"))
VOLUME = "Vehicle.Cabin.Infotainment.Media.Volume"
WORDING = Path(__file__).with_name("wording.toml")


class SetWindow(Skill):
    id = "vehicle.set_window"
    version = "1.0.0"
    summary = {"en": "Open or close a window; position 100 is open, 0 closed.", "zh": "打开或关闭车窗；100为全开，0为关闭。"}
    examples = {"en": [
        ("Close the driver's window", {"position": 0, "window": "driver"}), ("Open my window half way", {"position": 50}),
        ("Open all the windows", {"position": 100, "window": "all"}),
    ]}
    effects = Effects(reads=(DRIVER_POSITION, "Vehicle.Cabin.Door.*.*.Window.Position"),
                      actuates=("Vehicle.Cabin.Door.*.*.Window.Position",))
    safety = "zoned"
    timeout_s = 15.0
    slow = True
    supersedes = "window"
    derived = frozenset({"position"})
    wording = WORDING

    class Args(Args):
        position: int = Field(ge=0, le=100)
        window: Literal["speaker", "driver", "passenger", "rear_left", "rear_right", "all"] = "speaker"

    class Result(Result):
        window: str
        position: int

        def spoken(self, lang: str) -> dict[str, Any]:
            words = window_words(self.window, lang)
            verb = "" if lang == "zh" else " are" if self.window == "all" else " is"
            return {"window": words, "window_is": words[:1].upper() + words[1:] + verb, "percent": self.position}

    async def run(self, args, ctx):
        zones = WINDOWS if args.window == "all" else (args.window,)
        paths = [WINDOW.format(*await seat_of(ctx, zone)) for zone in zones]
        state = "closed" if args.position == 0 else "open" if args.position == 100 else "partly"
        signals = await ctx.vehicle.get(*paths)
        if all(signals[path].value == args.position for path in paths):
            return self.Result(outcome=f"already_{state}", window=args.window, position=args.position)
        words = window_words(args.window, ctx.lang)
        ctx.progress("progress", window_is=words if ctx.lang == "zh" else words[:1].upper() + words[1:]
                     + (" are" if args.window == "all" else " is"))
        await reach(ctx, dict.fromkeys(paths, args.position), 12.0, window=words)
        return self.Result(outcome=state, window=args.window, position=args.position)


class SetTailgate(Skill):
    id = "vehicle.set_tailgate"
    version = "1.0.0"
    summary = {"en": "Open or close the tailgate; only while parked.", "zh": "打开或关闭后备箱，仅限停车时。"}
    examples = {"en": [("Open the tailgate", {"open": True}), ("Close the boot", {"open": False})]}
    effects = Effects(actuates=(TAILGATE,))
    safety = "parked_only"
    timeout_s = 12.0
    supersedes = "tailgate"
    wording = WORDING

    class Args(Args):
        open: bool

    class Result(Result):
        open: bool

    async def run(self, args, ctx):
        await reach(ctx, {TAILGATE: args.open}, 9.0)
        return self.Result(outcome="opened" if args.open else "closed", open=args.open)


class SetLock(Skill):
    id = "vehicle.set_lock"
    version = "1.0.0"
    summary = {"en": "Lock or unlock all doors.", "zh": "锁上或解锁所有车门。"}
    examples = {"en": [("Lock the doors", {"locked": True}), ("Unlock the car", {"locked": False})]}
    effects = Effects(actuates=LOCKS)
    safety = "parked_only"
    timeout_s = 6.0
    supersedes = "lock"
    wording = WORDING

    class Args(Args):
        locked: bool

    class Result(Result):
        locked: bool

    async def run(self, args, ctx):
        await reach(ctx, dict.fromkeys(LOCKS, args.locked), 3.0)
        return self.Result(outcome="locked" if args.locked else "unlocked", locked=args.locked)


class SetVolume(Skill):
    id = "vehicle.set_volume"
    version = "1.0.0"
    summary = {"en": "Set the volume to a level, or change it by a step.", "zh": "将音量设为某个值，或调高调低。"}
    examples = {"en": [("Turn the volume up", {"delta": 10}), ("Set the volume to thirty percent", {"level": 30}), ("Mute", {"level": 0})]}
    effects = Effects(reads=(VOLUME,), actuates=(VOLUME,))
    timeout_s = 5.0
    idempotent = False
    supersedes = "volume"
    derived = frozenset({"level", "delta"})
    wording = WORDING

    class Args(Args):
        level: int | None = Field(default=None, ge=0, le=100)
        delta: int | None = Field(default=None, ge=-100, le=100)

        @model_validator(mode="after")
        def _one_of_them(self):
            if (self.level is None) == (self.delta is None):
                raise ValueError("exactly one of level and delta must be given")
            return self

    class Result(Result):
        level: int

        def spoken(self, lang: str) -> dict[str, Any]:
            return {"level": self.level}

    async def run(self, args, ctx):
        level = args.level if args.delta is None else min(100, max(0, int(await read(ctx, VOLUME)) + args.delta))
        await reach(ctx, {VOLUME: level}, 2.0, level=level)
        return self.Result(outcome="muted" if level == 0 else "done", level=level)
