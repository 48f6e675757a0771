"""`venus bench nav`: how long a typed navigation call takes to its result, through a real, locked skill process and the car's real policy.

Start: the call is given to the runner; end: its outcome is there, spoken sentence and all. `route_p50_ms` is navigation.go to another
place each time; beside it the maps provider's own time for the same routes in this process. The map is the shipped one.
"""
import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from pathlib import Path

from harness.execute.registry import Registry, load
from harness.execute.runner import SkillRunner
from harness.host.providers import Point
from harness.host.testing import MemoryVehicleBus, driving, hosted
from harness.sandbox.policy import Sandbox, Trust
from harness.task import SkillCall
from simulators.car.drive import Drive, DriveFile
from venus_edge import bench
from venus_edge.errors import ConfigError
from venus_edge.paths import cache_dir

SKILLS = ["skills_automotive.navigation"]
PROVIDERS = {"maps": "skills_automotive.navigation.valhalla_maps:open_maps", "places": "skills_automotive.poi.places:open_places"}
GOALS = ("the casino", "the oceanographic museum", "Rue Grimaldi", "the train station", "the exotic garden", "Avenue Princesse Grace",
         "Boulevard des Moulins", "the cathedral", "Port Hercule", "Boulevard du Jardin Exotique")
PACE_S = 0.03
"""Between two calls, so that the next process is ready: people don't ask faster."""
BATTERY = "Vehicle.Powertrain.TractionBattery."
DESTINATION = "Vehicle.Cabin.Infotainment.Navigation.DestinationSet."
ACROSS = (Point(43.7277, 7.4155), Point(43.7497, 7.4376))
"""The cars stand along the way between these, one end of the country and the other."""


def run(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="venus bench nav", description="Typed navigation call to result, through the skill worker.",
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="examples:\n  venus bench nav --json\n  venus bench nav --calls 500 --seed 3")
    parser.add_argument("--calls", type=int, default=200, help="routes to ask for, 200 to 5000 (default 200)")
    parser.add_argument("--seed", type=int, default=7, help="seed of the cars' positions (default 7)")
    parser.add_argument("--json", action="store_true", help="print nothing but one JSON line")
    args = parser.parse_args(argv)
    if not 200 <= args.calls <= 5000:
        raise ConfigError(f"--calls: {args.calls} is not 200 to 5000")
    ratio = bench.ref_ratio()
    with tempfile.TemporaryDirectory(prefix="venus-nav-") as folder:
        cache = cache_dir()
        if not all((cache / "map" / "monaco" / name).exists() for name in ("valhalla.json", "places.sqlite")):
            print("no map is set up here: building one (about two seconds)", file=sys.stderr)
            cache = load("skills_automotive.testing:build_map")(Path(folder))
        figures = asyncio.run(_measure(cache, args.calls, args.seed))
    found = bench.line("nav", figures, ratio=max(ratio, bench.ref_ratio()), seed=args.seed)
    if not args.json:
        for name, value in figures.items():
            print(f"{name:22} {value}")
    print(json.dumps(found))
    return 0


def _car(point: Point, heading: float) -> dict:
    return driving(30) | {"Vehicle.CurrentLocation.Latitude": point.lat, "Vehicle.CurrentLocation.Longitude": point.lon,
                          "Vehicle.CurrentLocation.Heading": heading, BATTERY + "StateOfCharge.Displayed": 64.0, BATTERY + "NetCapacity": 60,
                          BATTERY + "Range": 213_000, BATTERY + "Charging.MaxPower": 100_000.0, "Vehicle.Exterior.AirTemperature": 21.0,
                          "Vehicle.Cabin.HVAC.Station.Row1.Driver.Temperature": 21.0, DESTINATION + "Latitude": 0.0,
                          DESTINATION + "Longitude": 0.0}


async def _measure(cache: Path, calls: int, seed: int, others_calls: int = 25) -> dict:
    """The figures; `others_calls` of each other kind of call."""
    chance = random.Random(seed)
    registry = Registry.from_modules(SKILLS, PROVIDERS)
    maps = load(PROVIDERS["maps"])(cache)
    starts = _starts(maps, chance, 40)
    bus = MemoryVehicleBus(_car(*starts[0]))
    runner = SkillRunner(registry, lambda call: hosted(bus, task_id=call.task_id, task_version=call.task_version), cache_dir=cache,
                         sandbox=Sandbox(Trust.BUILTIN, data=(str(cache / "map"),)))
    await runner.start()

    async def ask(skill: str, arguments: dict, memory: dict) -> tuple[float, object]:
        await asyncio.sleep(PACE_S)
        began = time.perf_counter()
        outcome = await runner.run(SkillCall(skill, arguments, "bench", 1, "en", "driver", memory, 0.0))
        return (time.perf_counter() - began) * 1e3, outcome

    try:
        for k in range(10):  # the first calls find cold pages
            await ask("navigation.go", {"destination": GOALS[k % len(GOALS)]}, {})
        routes, own, failed, memory = [], [], 0, {}
        for k in range(calls):
            point, heading = starts[chance.randrange(len(starts))]
            _move(bus, point, heading)
            took, outcome = await ask("navigation.go", {"destination": GOALS[k % len(GOALS)]}, {})
            if not outcome.ok:
                failed += 1
                continue
            routes.append(took)
            memory = outcome.memory
            goal = Point(memory["destination"]["lat"], memory["destination"]["lon"])
            began = time.perf_counter()
            maps.route(point, goal, heading=heading)
            own.append((time.perf_counter() - began) * 1e3)
            if sys.stderr.isatty() and k % 20 == 0:
                print(f"\r{k}/{calls}", end="", file=sys.stderr)
        others = {}
        for name, skill, arguments in (("status", "navigation.status", {"what": "eta"}), ("alternatives", "navigation.alternatives", {}),
                                       ("via", "navigation.via", {"place": "pharmacy"}), ("reach", "navigation.reach", {"minutes": 5}),
                                       ("ev_charger", "navigation.ev", {"what": "charger"})):
            times = []
            for _ in range(others_calls):
                took, outcome = await ask(skill, arguments, memory)
                failed += not outcome.ok
                times.append(took)
            others[f"{name}_p50_ms"] = bench.percentile(times, 50)
    finally:
        await runner.close()
    return {"route_p50_ms": bench.percentile(routes, 50), "route_p95_ms": bench.percentile(routes, 95),
            "provider_p50_ms": bench.percentile(own, 50), "provider_p95_ms": bench.percentile(own, 95), "n": len(routes), "failed": failed, **others}


def _move(bus: MemoryVehicleBus, point: Point, heading: float) -> None:
    for leaf, value in (("Latitude", point.lat), ("Longitude", point.lon), ("Heading", heading)):
        bus.publish(f"Vehicle.CurrentLocation.{leaf}", value)


def _starts(maps, chance: random.Random, count: int) -> list[tuple[Point, float]]:
    """Places and directions of a car on the road, along one drive across the country."""
    route = maps.route(*ACROSS)
    drive = Drive(DriveFile(profile=[(0.0, 36.0)], shape=list(route.shape)))  # ten metres a second
    states = [drive.at(chance.uniform(0, route.length_m / 10)) for _ in range(count)]
    return [(Point(state.lat, state.lon), state.heading) for state in states]
