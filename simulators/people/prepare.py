"""Make every utterance beforehand, so that a drive never synthesises: `python -m simulators.people.prepare [scenario.yaml …]`.

Without arguments: all scenarios of the project and all bench lines. What is cached is left alone. Exit status 2 with one line where
a scenario is wrong.
"""
import sys
from pathlib import Path

from simulators.people import bench_lines
from simulators.people.cache import VoiceCache
from simulators.scenario import load
from venus_edge.errors import VenusError

SCENARIOS = Path(__file__).resolve().parent.parent / "scenarios"
POOR = 0.75
"""Utterances understood worse than this, whatever take, are pointed out."""


def wanted(paths: list[Path]) -> list[tuple[str, str]]:
    """(text, voice) of every line, each once. Raises ConfigError for a wrong scenario."""
    lines = []
    for path in paths or sorted(SCENARIOS.glob("*.yaml")):
        scenario = load(path)
        lines += [(step.say, scenario.people[step.who].voice) for step in scenario.script]
    return list(dict.fromkeys(lines + ([] if paths else bench_lines.every_line())))


def prepare(paths: list[Path], cache: VoiceCache | None = None, tell=print) -> int:
    """Make what is missing; returns how many were made. `tell(line)` gets the progress."""
    cache = cache or VoiceCache()
    lines = wanted(paths)
    missing = [line for line in lines if not cache.has(*line)]
    if missing:
        tell(f"people: {len(lines) - len(missing)} of {len(lines)} utterances are there, making {len(missing)}")
    for k, (text, voice) in enumerate(missing, 1):
        verdict = cache.make(text, voice)
        note = "" if verdict.score >= POOR else f"  (heard as {verdict.heard!r})"
        tell(f"people: {k}/{len(missing)} {voice}: {text}{note}")
    tell(f"people: {len(lines)} utterances ready")
    return len(missing)


def main(argv: list[str] | None = None) -> int:
    paths = [Path(a) for a in (sys.argv[1:] if argv is None else argv)]
    try:
        prepare(paths, tell=lambda line: print(line, flush=True))
    except VenusError as err:
        print(f"{err.code}: {err.message}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
