"""Who may import whom, as the contracts in pyproject.toml say it."""

import subprocess
import sys

import pytest

from venus_edge.paths import root

# The contracts of import-linter work on whole packages; these are the doors that stay open inside a closed one.
OPEN_DOORS = {
    "cloud_core": {"device_sdk": ("device_sdk.wire", "device_sdk.gates")},
    "trt_engines": {"cloud_core": ("cloud_core.venus",), "device_sdk": (), "harness": ()},
    "simulators": {"cloud_core": ("cloud_core.speech",)},
    "skills_automotive": {"harness": ("harness.skill", "harness.host"), "skills_glasses": ()},
    "skills_glasses": {"harness": ("harness.skill", "harness.host"), "skills_automotive": ()},
}


@pytest.fixture(scope="module")
def graph():
    import grimp

    packages = [
        "venus_edge", "device_sdk", "harness", "skills_automotive", "skills_glasses", "cloud_core", "trt_engines", "simulators",
    ]  # fmt: skip
    return grimp.build_graph(*packages, cache_dir=None)


def through_other_doors(graph, importer: str, imported: str, doors: tuple[str, ...]) -> list[str]:
    """Imports of `imported` from `importer` that use none of the open doors."""
    found = []
    for module in sorted(graph.modules):
        if module != importer and not module.startswith(importer + "."):
            continue
        for target in sorted(graph.find_modules_directly_imported_by(module)):
            inside = target == imported or target.startswith(imported + ".")
            open_door = any(target == door or target.startswith(door + ".") for door in doors)
            if inside and not open_door:
                found.append(f"{module} imports {target}")
    return found


def test_folders_keep_the_import_contract():
    linter = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()", "--no-cache"]
    done = subprocess.run(linter, cwd=root(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "importer, imported", [(importer, imported) for importer, doors in OPEN_DOORS.items() for imported in doors]
)
def test_only_the_open_doors_are_used(graph, importer, imported):
    assert through_other_doors(graph, importer, imported, OPEN_DOORS[importer][imported]) == []


def test_an_import_through_a_closed_door_is_found():
    """The check itself can fail."""
    import grimp

    graph = grimp.ImportGraph()
    graph.add_import(importer="simulators.car.bus", imported="cloud_core.engine.server")
    graph.add_import(importer="simulators.people.ear", imported="cloud_core.speech.recogniser")
    found = through_other_doors(graph, "simulators", "cloud_core", ("cloud_core.speech",))
    assert found == ["simulators.car.bus imports cloud_core.engine.server"]
