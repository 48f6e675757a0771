"""`venus bench poi`: how long "sushi near me open now" takes, as a query and through a skill's own process, and how long an index.

- query: from the words to the places: taking the wish apart and searching (a first run, which fills the caches, is left out);
- worker: a typed call of poi.find to its spoken outcome, through the session worker's real skill processes, driving times included;
- index: reading an extract and writing its places index, the median of three.
"""
import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from harness.execute.registry import Registry, load
from harness.execute.runner import SkillRunner
from harness.execute.testing import MemoryBus
from harness.host.providers import Point
from harness.task import SkillCall
from venus_edge import bench
from venus_edge.errors import ConfigError
from venus_edge.paths import map_extract
from venus_edge.setup.map_tiles import write_tiles

QUERY = "sushi near me open now"
HERE = Point(43.7316, 7.4163)
SKILLS, MEASURE = "skills_automotive.poi", "skills_automotive.poi.measure"
PROVIDERS = {"maps": "skills_automotive.navigation.valhalla_maps:open_maps", "places": "skills_automotive.poi.places:open_places"}
PAUSE_S, WARM_CALLS = 0.05, 5


def run(argv: list[str]) -> int:
    """Time the places search, its skill and its index."""
    parser = argparse.ArgumentParser(
        prog="venus bench poi", description=run.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n  venus bench poi --json\n  venus bench poi --pbf andorra-2025-01.osm.pbf     (adds index_andorra_s)\n"
               "The search and the worker are measured on the map that ships with the skills, from one of its squares.")
    parser.add_argument("--n", type=int, default=200, help="timed queries and timed calls, 20 to 5000 (default 200)")
    parser.add_argument("--pbf", metavar="FILE", help="an extract of your own to index too: the figure's name comes from the file's first word")
    parser.add_argument("--json", action="store_true", help="print nothing but one JSON line")
    args = parser.parse_args(argv)
    if not 20 <= args.n <= 5000:
        raise ConfigError(f"--n: {args.n} is not 20 to 5000")
    if args.pbf and not Path(args.pbf).is_file():
        raise ConfigError(f"--pbf: {args.pbf} is no file")
    ratio = bench.ref_ratio()
    with tempfile.TemporaryDirectory(prefix="venus-poi-") as folder:
        figures = measure(Path(args.pbf) if args.pbf else None, Path(folder), args.n, quiet=args.json)
    for name, value in () if args.json else figures.items():
        print(f"{name:<24} {value}")
    print(json.dumps(bench.line("poi", figures, ratio=max(ratio, bench.ref_ratio())), ensure_ascii=False))
    return 0


def measure(extract: Path | None, folder: Path, n: int, quiet: bool) -> dict:
    """All figures; `extract`: a further one to index. Raises ConfigError for a file that is no extract."""
    say = (lambda line: None) if quiet else lambda line: print(line, file=sys.stderr, flush=True)
    index, queries = load(f"{MEASURE}:index"), load(f"{MEASURE}:queries")
    target = folder / "map" / "monaco" / "places.sqlite"
    figures: dict = {"query": QUERY, "n": n} | index(map_extract(), target, say)
    if extract:
        figures |= index(extract, folder / "further.sqlite", say)
    say(f"{n} queries")
    figures |= queries(target, QUERY, HERE, n)
    say(f"{n} calls through the skill processes")
    write_tiles(map_extract(), target.parent)
    return figures | asyncio.run(_calls(folder, n))


async def _calls(cache: Path, n: int) -> dict:
    """The same through a session worker's skill processes; a call that fails is counted."""
    bus = MemoryBus({"Vehicle.CurrentLocation.Latitude": HERE.lat, "Vehicle.CurrentLocation.Longitude": HERE.lon})
    runner = SkillRunner(Registry.from_modules([SKILLS], PROVIDERS), lambda call: bus, cache_dir=cache)
    await runner.start()
    timed, failed, outcome = [], 0, None
    try:
        for number in range(n + WARM_CALLS):
            call = SkillCall(task_id=f"bench-{number}", task_version=1, skill_id="poi.find", arguments={"query": QUERY}, lang="en",
                             zone="driver", memory={}, timeout_s=4.0)
            begin = time.perf_counter()
            outcome = await runner.run(call)
            if number >= WARM_CALLS:  # the first ones wait for the pool to fill
                timed.append((time.perf_counter() - begin) * 1000)
                failed += not outcome.ok
            await asyncio.sleep(PAUSE_S)  # the pool is refilled between calls, as it is between a user's requests
    finally:
        await runner.close()
    return {"worker_p50_ms": round(statistics.median(timed), 2), "worker_p95_ms": bench.percentile(timed, 95), "worker_calls": len(timed),
            "worker_failed": failed, "answer": outcome.text}
