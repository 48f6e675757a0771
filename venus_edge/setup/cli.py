"""Runs the set-up steps in order, the long independent ones beside each other, and skips what is up to date."""

import argparse
import fcntl
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from venus_edge.models import lock_path, read_lock
from venus_edge.paths import cache_dir, livekit_server, map_dir, map_extract, root
from venus_edge.setup import environment, livekit_server as server, map_tiles, model_files
from venus_edge.setup.checks import LIVEKIT_VERSION, check_machine
from venus_edge.setup.console import Console, SetupError, Stopped, disk_use, size_text
from venus_edge.setup.stamps import Stamps, digest

PLACES_MODULE = "skills_automotive.poi.index"
PEOPLE_MODULE = "simulators.people.prepare"
PLANNER_MODULE = "harness.plan.warm"


@dataclass(frozen=True)
class Step:
    """One part of set-up: done when its stamp holds `inputs` and `outputs` exist."""

    name: str
    inputs: str
    outputs: tuple[Path, ...]
    action: Callable[[Console], None]


def sources(*folders: str, ending: str = "*.py") -> list[Path]:
    """Files of ours whose change means that a step's result is out of date."""
    return sorted(path for folder in folders for path in (root() / folder).rglob(ending))


def index_places(console: Console) -> None:
    target = map_dir() / "places.sqlite"
    partial = target.with_name("places.part.sqlite")
    partial.unlink(missing_ok=True)
    environment.run_module(console, "places", PLACES_MODULE, map_extract(), partial, what="indexing places")
    partial.replace(target)
    console.say("places", f"done: {size_text(target.stat().st_size)}")


def prepare_planner(console: Console) -> None:
    console.say("planner", "computing the sentence vectors of the installed skills (cached)")
    environment.run_module(console, "planner", PLANNER_MODULE, what="preparing the planner")
    console.say("planner", "done")


def prepare_people(console: Console) -> None:
    console.say("people", "making the voices of the simulated people (cached)")
    environment.run_module(console, "people", PEOPLE_MODULE, what="speaking the scenarios")
    console.say("people", "done")


def prepare_venv(console: Console) -> None:
    environment.make_venv(console)
    stamps().clear("dependencies")  # the environment may be a new, empty one
    stamps().clear("project")


def stamps() -> Stamps:
    return Stamps(cache_dir() / "setup")


def plan() -> dict[str, Step]:
    """Every step with what it depends on. A checkout that moved gets a new environment and map configuration."""
    here, requirements = str(root()), root() / "requirements"
    lock = requirements / "lock.txt"
    packages = environment.venv_dir() / "bin"
    steps = [
        Step("venv", digest(here, requirements / "bootstrap.txt"), (packages / "python", packages / "uv"), prepare_venv),
        Step("dependencies", digest(here, lock), (packages / "python",), environment.install_dependencies),
        Step("project", digest(here, root() / "pyproject.toml"), (packages / "venus",), environment.install_project),
        Step("livekit", LIVEKIT_VERSION, (livekit_server(),), server.install_server),
        Step("models", digest(lock_path()), tuple(model_files.model_outputs(read_lock())), model_files.install_models),
        Step("map", digest(here, str(cache_dir()), lock, map_extract(), Path(map_tiles.__file__)),
             (map_dir() / "valhalla.json",), map_tiles.build_tiles),
    ]  # fmt: skip
    if environment.module_exists(PLACES_MODULE):
        inputs = digest(lock, map_extract(), *sources("skills_automotive/poi"), *sources("skills_automotive/poi", ending="*.toml"))
        steps.append(Step("places", inputs, (map_dir() / "places.sqlite",), index_places))
    if environment.module_exists(PLANNER_MODULE):
        inputs = digest(here, lock, *sources("harness/plan"), *sources("harness/plan", ending="*.toml"), *sources("skills_automotive"))
        steps.append(Step("planner", inputs, (), prepare_planner))
    if environment.module_exists(PEOPLE_MODULE):
        inputs = digest(lock_path(), *sources("simulators/people"), *sources("simulators/scenarios", ending="*.yaml"))
        steps.append(Step("people", inputs, (cache_dir() / "voices",), prepare_people))
    return {step.name: step for step in steps}


class Runner:
    """Runs chains of steps; the first failure stops the others."""

    def __init__(self, console: Console, steps: dict[str, Step]):
        self._console, self._steps, self._stamps = console, steps, stamps()
        self.failure: SetupError | None = None

    def chain(self, *names: str) -> None:
        for name in names:
            step = self._steps.get(name)
            if step is None or self._console.stopping.is_set():
                continue
            if self._stamps.fresh(name, step.inputs, step.outputs):
                continue
            try:
                step.action(self._console)
                self._stamps.write(name, step.inputs)
            except Stopped:
                return
            except (SetupError, OSError) as error:
                self.failure = self.failure or (error if isinstance(error, SetupError) else SetupError(f"{name}: {error}"))
                self._console.stop()
                return

    def beside(self, *names: str) -> threading.Thread:
        thread = threading.Thread(target=self.chain, args=names, name=f"set-up of {names[0]}")
        thread.start()
        return thread


def run_all(console: Console, steps: dict[str, Step]) -> SetupError | None:
    """The environment first; the server and the models beside the packages and the map; the people last."""
    runner = Runner(console, steps)
    threads: list[threading.Thread] = []
    try:
        runner.chain("venv")
        threads += [runner.beside("livekit"), runner.beside("models")]
        # Tiles and index come out of one folder, so the map is always laid before the places.
        runner.chain("dependencies", "project", "map", "places", "planner")
        threads[1].join()
        runner.chain("people")
        threads[0].join()
    except KeyboardInterrupt:
        console.stop()
        for thread in threads:
            thread.join()
        raise
    return runner.failure


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0 ready, 1 a step failed (run again to go on), 2 the machine lacks something, 130 interrupted."""
    parser = argparse.ArgumentParser(prog="python3 -m venus_edge.setup", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say which steps are due; exit 1 if any is")
    options = parser.parse_args(arguments)
    try:
        steps = plan()
        due = [step.name for step in steps.values() if not stamps().fresh(step.name, step.inputs, step.outputs)]
        if options.check or not due:
            print(f"set-up: due: {', '.join(due)}" if due else "set-up: up to date")
            return 1 if due else 0
        check_machine()
    except SetupError as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 2 if error.missing else 1
    return locked_run(due)


def locked_run(due: list[str]) -> int:
    """One set-up at a time in a checkout: a second one waits, then finds everything done."""
    folder = cache_dir() / "setup"
    folder.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell starts us with the first one ignored
        signal.signal(number, signal.default_int_handler)
    console = Console(folder)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            console.say("set-up", "another set-up runs in this checkout: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        console.say("set-up", f"due: {', '.join(due)}")
        try:
            failure = run_all(console, plan())
        except KeyboardInterrupt:
            print("set-up: interrupted; run it again to go on from here", file=sys.stderr)
            return 130
    if failure:
        print(f"set-up: {failure}\nset-up: run it again to go on from here", file=sys.stderr)
        return 2 if failure.missing else 1
    total = disk_use(environment.venv_dir()) + disk_use(cache_dir())
    console.say("set-up", f"ready: {size_text(total)} on disk")
    return 0
