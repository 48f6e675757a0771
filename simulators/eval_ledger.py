"""`venus eval ledger`: random sessions of the harness on virtual time, judged by the account that the simulated people keep themselves.

Figures, all to be 0: `duplicate` (an outcome heard in full twice, taken up more than once again, or an effect that must not be repeated had
twice), `obsolete_spoken` (admitted though corrected, cancelled, come back late or too old), `lost` (promised, and neither heard nor left out
for a reason that the account bears out, nor shown where it was not spoken), `nonterminal`, `over_user`, `over_assistant` (admitted while the
user has the floor, or another reply is in the air), `leaked` (words of one session in another) and `faults` (exceptions out of the public API).
"""
import argparse
import json
import logging
import multiprocessing
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed

from simulators.ledger_mutations import GUARDS, MUST_SHOW, mutated
from simulators.ledger_oracle import KINDS
from simulators.ledger_sessions import EVENTS, GROUP, Result, play
from venus_edge import bench
from venus_edge.errors import ConfigError

MOST_SESSIONS = 1_000_000
CHUNK = 8
"""Groups that one worker plays before it reports."""
MOST_SHOWN = 10
EVERY_S = 5.0


def run(argv: list[str]) -> int:
    """Random sessions against an independent account: nothing lost, repeated, revived or told over the user."""
    parser = argparse.ArgumentParser(
        prog="venus eval ledger", description=run.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n  venus eval ledger --sessions 10000 --seed 7 --json\n  venus eval ledger --only 188 --seed 7     (one session's story)\n"
               "  venus eval ledger --sessions 400 --mutate fresh     (one guard off: must report violations)\n"
               "  venus eval ledger --sessions 400 --mutate all       (each guard in turn: every one must show)\n"
               "exit status: 0 no violation, and every kind of event was seen (--mutate all: every guard showed); 1 otherwise; 2 bad input")
    parser.add_argument("--sessions", type=int, default=2000, help=f"{GROUP} to {MOST_SESSIONS}, rounded up: {GROUP} share a harness (default 2000)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    parser.add_argument("--only", type=int, metavar="SESSION", help="play the group of this session again and print what happened in it")
    parser.add_argument("--mutate", choices=[*GUARDS, "all"], metavar="GUARD", help=f"switch a guard off: {', '.join(GUARDS)}, or all in turn")
    parser.add_argument("--json", action="store_true", help="print one JSON line and nothing else")
    args = parser.parse_args(argv)
    if not GROUP <= args.sessions <= MOST_SESSIONS:
        raise ConfigError(f"--sessions: {args.sessions} is not {GROUP} to {MOST_SESSIONS}")
    if not 1 <= args.jobs <= 256:
        raise ConfigError(f"--jobs: {args.jobs} is not 1 to 256")
    if args.only is not None and args.only < 0:
        raise ConfigError(f"--only: {args.only} is not 0 or more")
    logging.getLogger("harness").setLevel(logging.CRITICAL)  # thousands of skills fail on purpose
    if args.only is not None:
        return _story(args.seed, args.only, "" if args.mutate == "all" else args.mutate or "")
    groups = -(-args.sessions // GROUP)
    if args.mutate == "all":
        return _each(groups, args)
    begin = time.monotonic()
    result = evaluate(groups, args.seed, args.jobs, args.mutate or "", progress=True)
    missing = [kind for kind in EVENTS if not result.events[kind]]
    figures = {**{kind: result.figures[kind] for kind in KINDS}, "sessions": groups * GROUP, "took_s": round(time.monotonic() - begin, 1),
               **({"mutate": args.mutate} if args.mutate else {}), **({"missing": missing} if missing else {}),
               "events": {kind: result.events[kind] for kind in EVENTS}}
    for session, at, kind, what in result.violations[:MOST_SHOWN]:
        print(f"session {session}: {kind} at {at:.1f} s: {what}", file=sys.stderr)
    if missing:
        print(f"never happened: {', '.join(missing)}; more sessions are needed", file=sys.stderr)
    _print(figures, args)
    return 1 if missing or +result.figures else 0


def evaluate(groups: int, seed: int, jobs: int = 1, guard: str = "", *, first: int = 0, progress: bool = False) -> Result:
    """Groups `first` to `first + groups - 1` of a seed, summed up; `guard` is switched off in all of them."""
    total, done, shown = Result(), 0, time.monotonic()
    chunks = [(seed, at, min(CHUNK, first + groups - at), guard) for at in range(first, first + groups, CHUNK)]
    if jobs == 1:
        results = map(_chunk, chunks)
    else:
        pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_quiet)
        futures = [pool.submit(_chunk, chunk) for chunk in chunks]
        results = (future.result() for future in as_completed(futures))
    try:
        for result in results:
            total.figures += result.figures
            total.events += result.events
            total.violations += result.violations
            done += 1
            if progress and time.monotonic() - shown > EVERY_S:
                shown = time.monotonic()
                print(f"{min(done * CHUNK, groups) * GROUP} of {groups * GROUP} sessions, {total.figures.total()} violations", file=sys.stderr)
    finally:
        if jobs > 1:
            pool.shutdown(wait=False, cancel_futures=True)
    total.violations.sort()
    return total


def until_shown(guard: str, seed: int, groups: int) -> tuple[int, Counter]:
    """(groups played, figures) until the missing guard shows, at most `groups`."""
    figures: Counter = Counter()
    with mutated(guard):
        for group in range(groups):
            figures += play(seed, group).figures
            if figures[MUST_SHOW[guard]]:
                return group + 1, figures
    return groups, figures


def _chunk(chunk: tuple[int, int, int, str]) -> Result:
    seed, first, count, guard = chunk
    total = Result()
    with mutated(guard):
        for group in range(first, first + count):
            result = play(seed, group)
            total.figures += result.figures
            total.events += result.events
            total.violations += result.violations
    return total


def _quiet() -> None:
    logging.getLogger("harness").setLevel(logging.CRITICAL)


def _each(groups: int, args: argparse.Namespace) -> int:
    """Every guard in turn: which figure it must show, and after how many sessions it did."""
    shown, silent = {}, []
    for guard in GUARDS:
        played, figures = until_shown(guard, args.seed, groups)
        fired = figures[MUST_SHOW[guard]]
        shown[guard] = {"must_show": MUST_SHOW[guard], "sessions": played * GROUP, **{kind: figures[kind] for kind in KINDS if figures[kind]}}
        if not fired:
            silent.append(guard)
        print(f"{guard:24} {MUST_SHOW[guard]:16} {f'after {played * GROUP} sessions' if fired else 'NEVER'}", file=sys.stderr)
    _print({"guards": len(GUARDS), "fired": len(GUARDS) - len(silent), "silent": silent, "mutate": "all", "shown": shown}, args)
    return 1 if silent else 0


def _story(seed: int, session: int, guard: str) -> int:
    def tell(index: int, at: float, what: str) -> None:
        if index == session:
            print(f"{at:9.2f}  {what}")

    with mutated(guard):
        result = play(seed, session // GROUP, tell)
    found = Counter(kind for index, _, kind, _ in result.violations if index == session)
    print(f"session {session} of seed {seed}: {', '.join(f'{n} {kind}' for kind, n in found.items()) or 'no violation'}")
    return 1 if found else 0


def _print(figures: dict, args: argparse.Namespace) -> None:
    if args.json:
        print(json.dumps(bench.line("eval ledger", figures, seed=args.seed)))
        return
    for name, value in figures.items():
        if isinstance(value, dict) and name == "events":
            value = ", ".join(f"{kind} {n}" for kind, n in value.items())
        if name != "shown":
            print(f"{name:16} {value}")
