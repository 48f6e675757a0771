"""Ready phrases (phrases.toml), asides (asides.toml) and control words (controls.toml); their vectors, kept on disk."""
import hashlib
import logging
import tomllib
from functools import lru_cache
from pathlib import Path

import numpy as np

from harness.plan.embed import Embedder
from harness.plan.text import asked, clean
from venus_edge.paths import cache_dir

log = logging.getLogger(__name__)
HERE = Path(__file__).parent


@lru_cache(maxsize=1)
def wishes() -> dict[str, tuple[str, ...]]:
    """Group -> its sentences, cleaned."""
    return _sentences(HERE / "phrases.toml", "wish")


@lru_cache(maxsize=1)
def asides() -> dict[str, tuple[str, ...]]:
    """Kind of aside -> its sentences, cleaned."""
    return _sentences(HERE / "asides.toml", "aside")


@lru_cache(maxsize=1)
def controls() -> dict[str, tuple[str, ...]]:
    """Operation on a task -> its sentences, cleaned."""
    return _sentences(HERE / "controls.toml", "control")


def ready_texts() -> list[str]:
    """Every sentence of the files, in the order in which their vectors are kept."""
    return [t for bank in (wishes(), asides(), controls()) for texts in bank.values() for t in texts]


def _sentences(path: Path, table: str) -> dict[str, tuple[str, ...]]:
    with open(path, "rb") as f:
        rows = tomllib.load(f)[table]
    return {name: tuple(asked(clean(t)) for texts in row.values() for t in texts) for name, row in rows.items()}


def kept_vectors(texts: list[str], embedder: Embedder) -> np.ndarray:
    """The vectors of many texts; from the cache folder where they were computed before (7 ms each else)."""
    digest = hashlib.sha256("\n".join([embedder.name, *texts]).encode()).hexdigest()[:24]
    path = cache_dir() / f"planner-{digest}.npy"
    try:
        stored = np.load(path, allow_pickle=False)
        if stored.shape[0] == len(texts):
            return stored.astype(np.float32)
    except (OSError, ValueError):
        pass
    vectors = (embedder.embed(texts) if texts else np.zeros((0, 1), np.float32)).astype(np.float16)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{digest[:6]}.part.npy")
        np.save(part, vectors, allow_pickle=False)
        part.replace(path)
    except OSError as error:
        log.info("planner: vectors are not kept (%s)", type(error).__name__)
    return vectors.astype(np.float32)  # by way of float16, so that the first run judges as every later one
