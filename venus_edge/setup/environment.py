"""The virtual environment: created, filled from the hashed lock, trimmed of what nothing here uses, the project on top.

Only this step and the model and server downloads touch the network; afterwards everything works offline.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from venus_edge.paths import cache_dir, root
from venus_edge.setup.console import Console, disk_use, size_text

BLOCK = 4096  # bytes; the page size of the supported systems, so a hole never splits a mapped page
SPARSE_MIN = 1 << 20  # bytes; below this a hole saves too little to be worth a rewrite

# Packages whose own test suites come inside their wheels (22 MB).
TESTS_INSIDE = ("numpy", "scipy")

# Command-line tools inside the routing wheel that neither set-up nor a skill starts (35 MB).
UNUSED_ROUTING_TOOLS = (
    "valhalla_add_landmarks",
    "valhalla_add_predicted_traffic",
    "valhalla_convert_transit",
    "valhalla_ingest_transit",
    "valhalla_service",
)


def venv_dir() -> Path:
    return root() / ".venv"


def venv_python() -> Path:
    return venv_dir() / "bin" / "python"


def tool_env() -> dict:
    """Environment for pip, uv and our own modules: every cache under the checkout, no question asked.

    pip's mirror and certificate settings are handed to uv, which does not read them.
    """
    env = dict(os.environ)
    env.update(
        PIP_CACHE_DIR=str(cache_dir() / "pip"),
        PIP_DISABLE_PIP_VERSION_CHECK="1",
        PIP_NO_INPUT="1",
        UV_CACHE_DIR=str(cache_dir() / "uv"),
        UV_PYTHON_DOWNLOADS="never",
        UV_NO_PROGRESS="1",
    )
    if "PIP_INDEX_URL" in env:
        env.setdefault("UV_DEFAULT_INDEX", env["PIP_INDEX_URL"])
    if "PIP_CERT" in env:
        env.setdefault("SSL_CERT_FILE", env["PIP_CERT"])
    env.pop("VIRTUAL_ENV", None)  # another environment of the user's shell must not be filled by mistake
    env.pop("PYTHONHOME", None)
    return env


def make_venv(console: Console) -> None:
    """The environment with the pinned installer; one that is half made, moved or without its Python is made anew."""
    if not venv_answers():
        console.say("venv", f"making .venv with Python {sys.version.split()[0]}")
        make = [sys.executable, "-m", "venv", "--clear", venv_dir()]
        console.run("venv", make, what="making the environment", env=tool_env())
    console.run(
        "venv",
        [venv_python(), "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps", "--only-binary", ":all:",
         "--no-cache-dir", "-r", root() / "requirements" / "bootstrap.txt"],
        what="installing the installer", env=tool_env(),
    )  # fmt: skip


def install_dependencies(console: Console) -> None:
    """Every package of the lock, hashes required. After an interruption all are laid anew, from what was fetched."""
    marker = cache_dir() / "setup" / "dependencies.begun"
    again = ["--reinstall"] if marker.exists() else []
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()
    console.say("dependencies", "fetching and installing what requirements/lock.txt names (about 360 MB)")
    console.run(
        "dependencies",
        [venv_dir() / "bin" / "uv", "pip", "install", "--python", venv_python(), "--require-hashes", "--no-deps",
         "--only-binary", ":all:", *again, "-r", root() / "requirements" / "lock.txt"],
        what="installing", env=tool_env(), cwd=root(),
    )  # fmt: skip
    saved = trim(venv_dir())
    shutil.rmtree(cache_dir() / "uv", ignore_errors=True)
    marker.unlink()
    console.say("dependencies", f"done: {size_text(disk_use(venv_dir()))} on disk ({size_text(saved)} trimmed)")


def install_project(console: Console) -> None:
    """Our own packages, editable, with the `venus` command and the entry points of pyproject.toml; needs no network."""
    console.run(
        "project",
        [venv_dir() / "bin" / "uv", "pip", "install", "--python", venv_python(), "--offline", "--no-deps",
         "--no-build-isolation", "--config-settings", "editable_mode=compat", "--editable", "."],
        what="installing the project", env=tool_env(), cwd=root(),
    )  # fmt: skip
    # What a build left in the checkout would hide commands that were added since from programs started there.
    shutil.rmtree(root() / "venus_edge.egg-info", ignore_errors=True)
    shutil.rmtree(cache_dir() / "uv", ignore_errors=True)


def run_module(console: Console, step: str, module: str, *arguments: object, what: str) -> str:
    """Run one of our modules in the environment, from the checkout."""
    return console.run(step, [venv_python(), "-m", module, *arguments], what=what, env=tool_env(), cwd=root())


def module_exists(module: str) -> bool:
    """Whether a module of ours is in this checkout (it may not be, in a cut-down one)."""
    return root().joinpath(*module.split(".")).with_suffix(".py").is_file()


def trim(venv: Path) -> int:
    """Free disk without changing what runs, and return the bytes: unused tools and test suites go, zeros become holes.

    The routing wheels pad every library to 2 MiB pages: half of their 540 MB is zeros.
    """
    before = disk_use(venv)
    for packages in venv.glob("lib/python3.*/site-packages"):
        for tool in UNUSED_ROUTING_TOOLS:
            (packages / "valhalla" / "bin" / tool).unlink(missing_ok=True)
        for package in TESTS_INSIDE:
            for tests in list(packages.glob(f"{package}/**/tests")):
                shutil.rmtree(tests, ignore_errors=True)
        for path in packages.glob("*.libs/*"):
            if path.is_file() and not path.is_symlink() and path.stat().st_size >= SPARSE_MIN:
                make_sparse(path)
    return before - disk_use(venv)


def make_sparse(path: Path) -> None:
    """Rewrite a file with holes where whole blocks are zero; its content stays the same to the byte."""
    data, zeros = path.read_bytes(), bytes(BLOCK)
    if not any(data.startswith(zeros, start) for start in range(0, len(data), BLOCK)):
        return
    partial = path.with_name(path.name + ".part")
    with partial.open("wb") as sink:
        for start in range(0, len(data), BLOCK):
            if not data.startswith(zeros, start):
                sink.seek(start)
                sink.write(data[start : start + BLOCK])
        sink.truncate(len(data))
    shutil.copystat(path, partial)
    os.replace(partial, path)


def venv_answers() -> bool:
    """Whether the environment was made here, and its Python is new enough and has pip (the system's may have gone)."""
    activate = venv_dir() / "bin" / "activate"
    probe = "import pip, sys; sys.exit(sys.version_info < (3, 11))"
    try:
        made_here = str(venv_dir()) in activate.read_text()
        done = subprocess.run([venv_python(), "-c", probe], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return made_here and done.returncode == 0
