"""Skills that behave and skills that don't, for the tests of the runner; imported by its skill processes."""
import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from pydantic import Field

from harness.skill import Args, Effects, Result, Skill, SkillError

SPEED, TEMPERATURE, TAILGATE = "Vehicle.Speed", "Vehicle.Cabin.HVAC.Station.Row1.Driver.Temperature", "Vehicle.Body.Trunk.Rear.IsOpen"


class Anything(Result):
    value: Any = None


class _Base(Skill):
    version = "1"
    summary = {"en": "For tests.", "zh": "测试用。"}
    wording = Path(__file__).with_name("execute_wording.toml")
    Result = Anything
    timeout_s = 2.0


class Echo(_Base):
    id = "test.echo"

    class Args(Args):
        value: Any = None
        number: int = Field(default=0, ge=0, le=9)

    async def run(self, args, ctx):
        ctx.memory["last"] = args.value
        return self.Result(value={"value": args.value, "lang": ctx.lang, "zone": ctx.zone, "task": [ctx.task_id, ctx.task_version],
                                  "memory": dict(ctx.memory), "pid": os.getpid()})


class Hang(_Base):
    id = "test.hang"
    timeout_s = 0.3

    async def run(self, args, ctx):
        while True:
            pass


class Stubborn(_Base):
    """Refuses every gentle way of ending it."""

    id = "test.stubborn"
    timeout_s = 0.3

    async def run(self, args, ctx):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            try:
                time.sleep(0.05)
            except BaseException:
                continue


class Polite(_Base):
    """Tidies up when it is asked to stop, and tries to act on the way out."""

    id = "test.polite"
    timeout_s = 0.3
    effects = Effects(actuates=(TEMPERATURE,))

    async def run(self, args, ctx):
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            await ctx.vehicle.actuate(TEMPERATURE, 30.0)
            raise


class Bomb(_Base):
    id = "test.bomb"

    async def run(self, args, ctx):
        kept = []
        while True:
            kept.append(bytearray(32 << 20))


class Crash(_Base):
    id = "test.crash"

    async def run(self, args, ctx):
        os.kill(os.getpid(), signal.SIGSEGV)


class Leave(_Base):
    id = "test.leave"

    async def run(self, args, ctx):
        os._exit(0)


class Fault(_Base):
    id = "test.fault"

    async def run(self, args, ctx):
        raise KeyError("a secret word of the user")


class Refuse(_Base):
    id = "test.refuse"

    async def run(self, args, ctx):
        raise SkillError("not_found", "nothing there", query="a unicorn")


class Undeclared(_Base):
    """Declares the reading of the speed, and tries more."""

    id = "test.undeclared"
    effects = Effects(reads=(SPEED,))

    class Args(Args):
        what: str

    async def run(self, args, ctx):
        if args.what == "actuate":
            await ctx.vehicle.actuate(TAILGATE, True)
        elif args.what == "get":
            await ctx.vehicle.get("Vehicle.VehicleIdentification.VIN")
        elif args.what == "position":
            await ctx.position()
        elif args.what == "maps":
            ctx.maps.street(None)
        return self.Result(value=(await ctx.vehicle.get(SPEED))[SPEED].value)


class Warm(_Base):
    """Sets a temperature and tells how far it is."""

    id = "test.warm"
    effects = Effects(reads=("Vehicle.CurrentLocation.*",), actuates=("Vehicle.Cabin.HVAC.Station.*.*.Temperature",))

    class Args(Args):
        celsius: float

    async def run(self, args, ctx):
        ctx.progress("ack", celsius=args.celsius)
        point = await ctx.position()
        effect = await ctx.vehicle.actuate(TEMPERATURE, args.celsius)
        return self.Result(value=[effect.reached, effect.value, point.lat, point.lon])


class Watch(_Base):
    id = "test.watch"
    effects = Effects(reads=(SPEED,))

    async def run(self, args, ctx):
        seen = []
        async for signal_ in ctx.vehicle.subscribe(SPEED):
            seen.append(signal_.value)
            if len(seen) == 3:
                return self.Result(value=seen)


class Flood(_Base):
    id = "test.flood"

    class Args(Args):
        how: str

    async def run(self, args, ctx):
        if args.how == "result":
            return self.Result(value="x" * 400_000)
        if args.how == "odd":
            return self.Result(value=float("nan"))
        while True:
            ctx.progress("ack", celsius=1, padding="x" * 1000)
            await asyncio.sleep(0)


class Spawn(_Base):
    """Leaves a process of its own behind."""

    id = "test.spawn"

    async def run(self, args, ctx):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
        return self.Result(value=child.pid)


class Look(_Base):
    """Tells what a skill process can see."""

    id = "test.look"

    async def run(self, args, ctx):
        import resource
        return self.Result(value={
            "env": sorted(os.environ), "fds": len(os.listdir("/proc/self/fd")), "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
            "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0], "threads": len(os.listdir("/proc/self/task")),
            "output": [os.readlink(f"/proc/self/fd/{number}") for number in (0, 1, 2)], "parent": os.getppid()})


class Wait(_Base):
    id = "test.wait"
    timeout_s = 5.0

    class Args(Args):
        seconds: float

    async def run(self, args, ctx):
        ctx.progress("ack", celsius=0)
        await asyncio.sleep(args.seconds)
        return self.Result(value="waited")


SKILLS = [Echo, Hang, Stubborn, Polite, Bomb, Crash, Leave, Fault, Refuse, Undeclared, Warm, Watch, Flood, Spawn, Look, Wait]
