"""`venus drive`, `venus say` and the benches: the commands that need the simulated car."""
import argparse
import sys
from pathlib import Path

from venus_edge.errors import ConfigError
from venus_edge.settings import Settings

_RAW = argparse.RawDescriptionHelpFormatter
FIRST_DRIVE = "simulators/scenarios/first_drive.yaml"


def drive(argv: list[str]) -> int:
    """Play a scenario through the whole system, print the conversation, judge it."""
    parser = argparse.ArgumentParser(
        prog="venus drive", description=drive.__doc__, formatter_class=_RAW,
        epilog=f"examples:\n  venus drive {FIRST_DRIVE}\n  venus drive {FIRST_DRIVE} --json\n  venus drive --driver recording.wav\n"
               f"  venus drive {FIRST_DRIVE} --mutate repeated     (damages the evidence: must fail)\n"
               "exit status: 0 every expectation held; 1 one failed or the run broke off; 2 bad input")
    parser.add_argument("scenario", nargs="?", default=FIRST_DRIVE, help=f"scenario file (default {FIRST_DRIVE})")
    parser.add_argument("--driver", metavar="WAV", help="a recording of a real person in place of the script's voice; nothing is expected of it")
    parser.add_argument("--listen", action="store_true", help="play the cabin live on this machine's loudspeaker")
    parser.add_argument("--json", action="store_true", help="print nothing but one JSON line at the end")
    parser.add_argument("--out", metavar="DIR", help="folder for the run's folder (default out/)")
    parser.add_argument("--config", metavar="FILE", help="settings file")
    parser.add_argument("--mutate", metavar="GUARD", help="after the run, damage its evidence (stale, repeated or heard): the judge must then report it")
    args = parser.parse_args(argv)

    from simulators import scenario
    from simulators.console import Console
    from simulators.run import RunFailed, interruptible, new_run_dir, once

    settings = Settings.load(args.config)
    plan = scenario.load(args.scenario)
    if args.mutate:
        from simulators.judge import MUTATIONS

        if args.mutate not in MUTATIONS:
            raise ConfigError(f"--mutate: '{args.mutate}' is not one of {', '.join(MUTATIONS)}")
    wav = None
    if args.driver:
        from simulators.people import recording

        wav = Path(args.driver)
        said = recording.utterances(wav)
        max_s = sum(len(u) for u in said) / 16_000 + 30.0 * len(said) + 30.0
    else:
        max_s = plan.max_s
    run_dir = new_run_dir(Path(args.out) if args.out else None)
    console = Console(sys.stdout, json_only=args.json)

    async def main() -> int:
        try:
            summary = await once(settings, plan, Path(args.scenario), run_dir, max_s=max_s, console=None if args.json else console, driver_wav=wav,
                                 listen=args.listen, mutate_kind=args.mutate)
        except RunFailed as err:
            console.verdict({"passed": False, "expectations": 0, "failed": 0, "failures": [], "loop_block_max_ms": 0, "stale": 0, "repeated": 0,
                             "error": err.message}, run_dir)
            print(f"venus drive: {err.message}", file=sys.stderr)
            return 1
        console.verdict(summary, run_dir)
        return 0 if summary["passed"] else 1

    return interruptible(main())


def say(argv: list[str]) -> int:
    """Speak one request into the running system and print what comes back."""
    parser = argparse.ArgumentParser(
        prog="venus say", description=say.__doc__, formatter_class=_RAW,
        epilog='examples:\n  venus say "Set the temperature to twenty-two degrees"\n  venus say "How fast are we going?" --json\nNeeds a running `venus up`.')
    parser.add_argument("text", help="what to say, in English")
    parser.add_argument("--voice", default="marc", help="one of the people's voices (default marc)")
    parser.add_argument("--out", metavar="WAV", help="keep the answer as a recording")
    parser.add_argument("--json", action="store_true", help="one JSON object: understood, answers, latency_s")
    args = parser.parse_args(argv)
    from simulators.say import run

    return run(args.text, args.voice, args.out, args.json)


def bench_voice(argv: list[str]) -> int:
    """User's last sample to the first sample of the answer at the loudspeaker, through everything."""
    parser = argparse.ArgumentParser(prog="venus bench voice", description=bench_voice.__doc__, formatter_class=_RAW,
                                     epilog="examples:\n  venus bench voice --turns 20 --json\n  venus bench voice --turns 8")
    parser.add_argument("--turns", type=int, default=20, help="1 to 20 requests (default 20)")
    parser.add_argument("--json", action="store_true", help="print nothing but one JSON line")
    parser.add_argument("--out", metavar="DIR", help="folder for the run's folder (default out/)")
    args = parser.parse_args(argv)
    from simulators.bench_voice import run

    return run(args.turns, args.json, args.out)


def bench_bargein(argv: list[str]) -> int:
    """Interruptions and backchannels: how fast the loudspeaker ducks and falls silent, and what is kept as heard."""
    parser = argparse.ArgumentParser(prog="venus bench bargein", description=bench_bargein.__doc__, formatter_class=_RAW,
                                     epilog="examples:\n  venus bench bargein --trials 20 --json\n  venus bench bargein --trials 4\n"
                                            "  venus bench bargein --trials 4 --mutate heard     (must report heard_text_errors)")
    parser.add_argument("--trials", type=int, default=20, help="interruptions, 2 to 40; half as many backchannels come between them (default 20)")
    parser.add_argument("--json", action="store_true", help="print nothing but one JSON line")
    parser.add_argument("--out", metavar="DIR", help="folder for the run's folder (default out/)")
    parser.add_argument("--mutate", choices=("heard",), help="claim one more span as heard than was played: must be reported")
    args = parser.parse_args(argv)
    from simulators.bench_bargein import run

    return run(args.trials, args.json, args.out, args.mutate)


def eval_drive(argv: list[str]) -> int:
    """Play a scenario several times and count what held, over all runs."""
    parser = argparse.ArgumentParser(
        prog="venus eval drive", description=eval_drive.__doc__, formatter_class=_RAW,
        epilog="examples:\n  venus eval drive --runs 5 --json\n  venus eval drive my_scenario.yaml --runs 3\n"
               "  venus eval drive --runs 1 --mutate repeated --json     (must report a violation)\nexit status: 0 every run passed; 1 one failed; 2 bad input")
    parser.add_argument("scenario", nargs="?", default=FIRST_DRIVE, help=f"scenario file (default {FIRST_DRIVE})")
    parser.add_argument("--runs", type=int, default=5, help="1 to 50, one after the other (default 5)")
    parser.add_argument("--json", action="store_true", help="print nothing but one JSON line")
    parser.add_argument("--out", metavar="DIR", help="folder for the runs' folders (default out/)")
    parser.add_argument("--mutate", metavar="GUARD", help="damage each run's evidence (stale, repeated or heard): the judge must then report it")
    args = parser.parse_args(argv)
    from simulators.eval_drive import run

    return run(args.scenario, args.runs, args.json, args.out, args.mutate)


def eval_ledger(argv: list[str]) -> int:
    """Randomised harness sessions against an account of their own; counts what was lost, repeated or told too late."""
    from simulators.eval_ledger import run

    return run(argv)


def eval_crash(argv: list[str]) -> int:
    """Kill the harness's process at random points; counts what was lost, repeated or told too late."""
    from simulators.eval_crash import run

    return run(argv)
