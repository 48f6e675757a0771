"""Times the places search and the making of its index: the half of `venus bench poi` that needs no skill process."""
import statistics
import sys
import time
from pathlib import Path
from typing import Callable

from harness.host.providers import Point
from skills_automotive.poi.extract import ProgressBar
from skills_automotive.poi.index import build
from skills_automotive.poi.lookup import CANDIDATES, REACH_M
from skills_automotive.poi.places import SqlitePlaces
from skills_automotive.poi.wish import understand
from venus_edge import bench
from venus_edge.clock import SystemClock
from venus_edge.errors import ConfigError

INDEX_RUNS = 3
OTHERS = ("restaurant", "charging station", "a free underground car park", "the oceanographic museum", "药店")


def index(extract: Path, target: Path, say: Callable[[str], None]) -> dict:
    """`index_<first word of the file's name>_s`, median of three, and how many places. Raises ConfigError for no extract."""
    seconds, counts = [], {}
    for number in range(INDEX_RUNS):
        say(f"index of {extract.name}, run {number + 1} of {INDEX_RUNS}")
        bar = ProgressBar(extract.name) if number == 0 and sys.stderr.isatty() else lambda share, count: None
        begin = time.perf_counter()
        try:
            counts = build(extract, target, bar)
        except (RuntimeError, FileNotFoundError) as err:  # RuntimeError: osmium's, for a file that it can't read
            raise ConfigError(f"--pbf: {extract} is no map extract: {err}") from err
        seconds.append(time.perf_counter() - begin)
    word = extract.name.partition("-")[0].partition(".")[0]
    return {f"index_{word}_s": round(statistics.median(seconds), 3), f"{word}_places": counts["places"]}


def queries(path: Path, query: str, here: Point, n: int) -> dict:
    """From the words to the places, `n` times over an index: taking the wish apart, and searching."""
    places = SqlitePlaces(path.read_bytes(), SystemClock())
    timed, found = _timed(places, query, here, n)
    others = {words: round(statistics.median(_timed(places, words, here, max(20, n // 10))[0]), 3) for words in OTHERS}
    return {"query_p50_ms": round(statistics.median(timed), 3), "query_p95_ms": bench.percentile(timed, 95), "found": found,
            "other_queries_p50_ms": others}


def _timed(places: SqlitePlaces, query: str, here: Point, n: int) -> tuple[list[float], int]:
    """Milliseconds of each query but the first, which fills caches, and how many places it found."""
    timed, found = [], []
    for number in range(n + 1):
        understand.cache_clear()
        begin = time.perf_counter()
        wish = understand(query)
        if wish.name:
            found = places.search(near=here, name=wish.name, limit=CANDIDATES, radius_m=REACH_M)
        else:
            found = places.search(near=here, category="|".join(wish.kinds), wants=wish.wants, limit=CANDIDATES, radius_m=REACH_M)
        if number:
            timed.append((time.perf_counter() - begin) * 1000)
    return timed, len(found)
