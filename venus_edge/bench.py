"""The one writer of bench lines: a JSON object with the figures, and what is needed to judge them on a shared machine."""
import hashlib
import json
import os
import platform
import statistics
import time
from pathlib import Path

from venus_edge.paths import cache_dir

NOISY_ABOVE = 1.3


def _work() -> float:
    """CPU-bound piece of work of fixed size; seconds of wall time."""
    begin = time.perf_counter()
    block = b"venus" * 4096
    for _ in range(400):
        block = hashlib.sha256(block).digest() * 640
    return time.perf_counter() - begin


def ref_ratio(quiet_file: Path | None = None) -> float:
    """Time of the reference work now against its best time ever seen on this machine: 1.0 is quiet, above 1.3 is noisy."""
    path = quiet_file or cache_dir() / "bench-reference.json"
    now = statistics.median(_work() for _ in range(5))
    try:
        quiet = min(now, json.loads(path.read_text())["seconds"])
    except (OSError, ValueError, KeyError):
        quiet = min(now, min(_work() for _ in range(10)))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"seconds": quiet}))
    except OSError:
        pass
    return round(now / quiet, 3)


def percentile(values, p: float) -> float:
    """Linear-interpolated percentile of a non-empty list, rounded to milliseconds."""
    xs = sorted(values)
    k = (len(xs) - 1) * p / 100
    low = int(k)
    high = min(low + 1, len(xs) - 1)
    return round(xs[low] + (xs[high] - xs[low]) * (k - low), 3)


def line(name: str, figures: dict, *, ratio: float | None = None, seed: int | None = None) -> dict:
    """The whole bench line: `figures` first, then the conditions they were measured under."""
    out = {"bench": name, **figures}
    if seed is not None:
        out["seed"] = seed
    if ratio is not None:
        out["ref_ratio"] = ratio
        if ratio > NOISY_ABOVE:
            out["noisy"] = True
    out["load"] = round(os.getloadavg()[0], 2)
    out["machine"] = f"{platform.machine()} {os.cpu_count()} cores, Python {platform.python_version()}"
    return out
