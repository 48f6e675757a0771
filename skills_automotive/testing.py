"""For tests: the shipped map, built into a folder of the test's own (about two seconds)."""
from pathlib import Path

from skills_automotive.poi.index import build
from venus_edge.paths import map_extract
from venus_edge.setup.map_tiles import write_tiles


def build_map(cache_dir: Path, name: str = "monaco") -> Path:
    """Build routing tiles and the places index of a shipped extract under `cache_dir`, laid out as set-up does; returns it."""
    folder = Path(cache_dir) / "map" / name
    write_tiles(map_extract(name), folder)
    build(map_extract(name), folder / "places.sqlite")
    return Path(cache_dir)
