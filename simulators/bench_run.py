"""What the benches share: a scenario made in code, played through the whole system, and its evidence."""
import sys
from pathlib import Path

import yaml

from simulators import scenario
from simulators.console import Console
from simulators.judge_evidence import Evidence
from simulators.run import Run, interruptible, new_run_dir, play
from venus_edge.clock import SystemClock
from venus_edge.settings import Settings

CRUISE_KMH = 50.0
PLACE_DARMES = (43.7316, 7.4163)


def play_script(name: str, script: list[dict], *, people: dict, max_s: float, out: str | None, quiet: bool, initial: dict | None = None) -> tuple[Run, Evidence, int]:
    """Play `script` (steps as in a scenario file) at 50 km/h; returns the run, its evidence and the exit status of the playing."""
    run_dir = new_run_dir(Path(out) if out else None)
    plan = {"name": name, "seed": 7, "max_s": max_s, "people": people, "script": script,
            "drive": {"start": list(PLACE_DARMES), "speed": [[0, CRUISE_KMH]], "initial": initial or {}}}
    path = run_dir / "scenario.yaml"
    path.write_text(yaml.safe_dump(plan, sort_keys=False, allow_unicode=True))
    checked = scenario.load(path)
    got: list[Run] = []

    async def main() -> int:
        got.append(await play(Settings.load(), path, run_dir, drive=checked.drive.drive_file(), max_s=max_s,
                              console=None if quiet else Console(sys.stdout), clock=SystemClock()))
        return 0

    status = interruptible(main())
    return (got[0], Evidence(got[0].events()), status) if got else (Run(run_dir), Evidence([]), status)
