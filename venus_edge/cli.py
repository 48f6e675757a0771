"""The `venus` command: one small dispatcher over the entry-point group `venus.commands`, loaded only when called.

A command is a callable `main(argv: list[str]) -> int` whose docstring's first line is its summary in `venus --help`.
Dotted entry names are subcommands: `bench.voice` is `venus bench voice`.
"""
import importlib.metadata
import sys

from venus_edge.errors import VenusError
from venus_edge.process import leave

SUMMARIES = {
    "drive": "Play a scenario (or your own recording) through the whole system and judge it",
    "up": "Start the system without car and people; print how to join",
    "say": "Speak one request into the running system",
    "token": "Make a least-privilege join token for a device",
    "config": "Show or check the settings",
    "bench": "Measure: voice latency, barge-in, the harness, its parser",
    "eval": "Count what holds: whole drives, the ledger, crashes, the planner",
    "harness": "The harness as a service for front ends that are not ours",
}


def commands() -> dict[str, importlib.metadata.EntryPoint]:
    return {ep.name: ep for ep in importlib.metadata.entry_points(group="venus.commands")}


def usage(found: dict) -> str:
    heads: dict[str, list[str]] = {}
    for name in sorted(found):
        head, _, sub = name.partition(".")
        heads.setdefault(head, [])
        if sub:
            heads[head].append(sub)
    lines = ["usage: venus COMMAND [options]      (venus COMMAND --help shows examples)", ""]
    for head, subs in heads.items():
        lines.append(f"  {head:<8} {SUMMARIES.get(head, '')}{'  [' + ' | '.join(subs) + ']' if subs else ''}")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Dispatch; returns the exit status: 0 done, 1 a judged failure, 2 bad input, 130 interrupted."""
    argv = list(sys.argv[1:] if argv is None else argv)
    found = commands()
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(usage(found))
        return 0
    name, rest = argv[0], argv[1:]
    if name not in found and rest and f"{name}.{rest[0]}" in found:
        name, rest = f"{name}.{rest[0]}", rest[1:]
    if name not in found:
        subs = sorted(n.partition(".")[2] for n in found if n.startswith(name + "."))
        if subs and (not rest or rest[0] in ("-h", "--help")):
            print(f"usage: venus {name} {{{'|'.join(subs)}}} [options]")
            return 0 if rest else 2
        print(f"venus: unknown command '{' '.join(argv[:2 if subs else 1])}'; allowed: {', '.join(sorted(n.replace('.', ' ') for n in found))}",
              file=sys.stderr)
        return 2
    try:
        return int(found[name].load()(rest) or 0)
    except VenusError as err:
        print(f"venus {name.replace('.', ' ')}: {err.message}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def entry() -> None:
    """The `venus` script."""
    leave(main())


if __name__ == "__main__":
    entry()
