"""`venus eval crash`: kill -9 of the harness's process at random instants of every phase, with the device and the user living on.

Figures: `lost` (promised by submit(), and neither told nor shown), `duplicate` (heard in full twice, or an effect that must not be repeated
had twice), `nonterminal`, `over_assistant`, all to be 0; `told_p100_s`: from a restarted process's open_session until the user begins to hear
of each unfinished thing (its result or that it failed), or sees it; kills per phase.
"""
import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from simulators.crash_child import MUTATIONS
from simulators.crash_world import PHASES, ChildFailed, World
from venus_edge import bench
from venus_edge.errors import ConfigError

KINDS = ("lost", "duplicate", "nonterminal", "over_assistant")
TOLD_S = 5.0
MOST_KILLS = 10_000
MOST_SHOWN = 10


def run(argv: list[str]) -> int:
    """Kill the harness's process with -9 again and again: nothing lost, nothing told or done twice, all told within 5 s."""
    parser = argparse.ArgumentParser(
        prog="venus eval crash", description=run.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n  venus eval crash --kills 100 --json\n  venus eval crash --kills 50 --store redis\n"
               "  venus eval crash --kills 30 --mutate no_wal     (must report what was lost)\n"
               "  venus eval crash --kills 10 --lanes 1 --story   (what happens, in order)\n"
               "exit status: 0 nothing lost or repeated, told within 5 s, every phase seen; 1 otherwise; 2 bad input")
    parser.add_argument("--kills", type=int, default=100, help=f"{len(PHASES)} to {MOST_KILLS} (default 100)")
    parser.add_argument("--seed", type=int, default=7, help="of what is asked and when is killed; real time does the rest")
    parser.add_argument("--store", choices=("sqlite", "redis"), default="sqlite")
    parser.add_argument("--lanes", type=int, default=2, help="processes that live and die beside each other (default 2)")
    parser.add_argument("--mutate", choices=sorted(MUTATIONS), help="switch a guard off: the evaluation must then report violations")
    parser.add_argument("--story", action="store_true", help="print what happens to stderr")
    parser.add_argument("--json", action="store_true", help="print one JSON line and nothing else")
    args = parser.parse_args(argv)
    if not len(PHASES) <= args.kills <= MOST_KILLS:
        raise ConfigError(f"--kills: {args.kills} is not {len(PHASES)} to {MOST_KILLS}")
    if not 1 <= args.lanes <= 16:
        raise ConfigError(f"--lanes: {args.lanes} is not 1 to 16")
    ratio, begin = bench.ref_ratio(), time.monotonic()
    try:
        worlds = asyncio.run(evaluate(args.kills, args.seed, args.store, args.lanes, args.mutate or "", story=args.story, progress=True))
    except ChildFailed as error:
        print(f"venus eval crash: {error.message}", file=sys.stderr)
        return 1
    figures, kills = sum((w.figures for w in worlds), Counter()), sum((w.kills for w in worlds), Counter())
    told, opened = [s for w in worlds for s in w.told_s], [s for w in worlds for s in w.open_s]
    missing = [phase for phase in PHASES if not kills[phase]]
    line = {**{kind: figures[kind] for kind in KINDS}, "told_p100_s": round(max(told), 3) if told else None,
            "told_p50_s": bench.percentile(told, 50) if told else None, "told": len(told), "kills": kills.total(),
            "restarts": sum(w.restarts for w in worlds), "open_p50_s": bench.percentile(opened, 50) if opened else None,
            "wishes": sum(len(w.wishes) for w in worlds), "promised": sum(wish.promised for w in worlds for wish in w.wishes),
            "phases": {phase: kills[phase] for phase in (*PHASES, "other")}, "store": args.store, "took_s": round(time.monotonic() - begin, 1),
            **({"mutate": args.mutate} if args.mutate else {}), **({"missing": missing} if missing else {})}
    for world in worlds:
        for what in world.violations[:MOST_SHOWN]:
            print(what, file=sys.stderr)
    if args.json:
        print(json.dumps(bench.line("eval crash", line, ratio=max(ratio, bench.ref_ratio()), seed=args.seed)))
    else:
        print("\n".join(f"{name:16} {value}" for name, value in line.items()))
    return 1 if missing or +figures or (told and max(told) > TOLD_S) else 0


async def evaluate(kills: int, seed: int, store: str = "sqlite", lanes: int = 1, mutate: str = "", *, story: bool = False,
                   progress: bool = False) -> list[World]:
    """The worlds after `kills` kills, shared out over `lanes` of them. Raises ChildFailed where a process can't work at all."""
    with tempfile.TemporaryDirectory(prefix="venus-crash-") as folder:
        server = None
        if store == "redis" and mutate != "no_wal":
            from harness.journal.testing import RedisServer

            server = RedisServer()
            server.start()
        try:
            worlds = []
            for lane in range(lanes):
                where = f"{server.url}?name=crash-{lane}" if server else str(Path(folder, f"journal-{lane}.sqlite"))
                worlds.append(World(where, random.Random(f"{seed}/{lane}"), mutate, _teller(lane) if story else None))
            shares = [kills // lanes + (lane < kills % lanes) for lane in range(lanes)]
            watching = asyncio.ensure_future(_watch(worlds, kills)) if progress else None
            try:
                await asyncio.gather(*(world.play(share) for world, share in zip(worlds, shares)))
            finally:
                if watching is not None:
                    watching.cancel()
            return worlds
        finally:
            if server is not None:
                server.stop()


async def _watch(worlds: list[World], kills: int) -> None:
    while True:
        await asyncio.sleep(10.0)
        print(f"{sum(w.kills.total() for w in worlds)} of {kills} kills", file=sys.stderr)


def _teller(lane: int):
    begin = time.monotonic()
    return lambda at, what: print(f"{lane} {at - begin:8.3f}  {what}", file=sys.stderr)
