"""Where things lie: the checkout, the cache that set-up fills, and the folder that runs write to.

Standard library only: set-up imports this before any dependency exists.
"""

import os
from pathlib import Path


def root() -> Path:
    """The checkout (the folder that holds `venus_edge/`)."""
    return Path(__file__).resolve().parent.parent


def cache_dir() -> Path:
    """What set-up made and can make again: `VENUS_CACHE`, else `.cache/` in the checkout."""
    chosen = os.environ.get("VENUS_CACHE")
    return Path(chosen).expanduser().resolve() if chosen else root() / ".cache"


def out_dir() -> Path:
    """Where each run leaves its folder: `VENUS_OUT`, else `out/` in the checkout."""
    chosen = os.environ.get("VENUS_OUT")
    return Path(chosen).expanduser().resolve() if chosen else root() / "out"


def livekit_server() -> Path:
    """The LiveKit server that set-up built, or a link to the one found on PATH."""
    return cache_dir() / "bin" / "livekit-server"


def map_dir(name: str = "monaco") -> Path:
    """Routing tiles, their `valhalla.json` and the places index of one map."""
    return cache_dir() / "map" / name


def map_extract(name: str = "monaco") -> Path:
    """The OpenStreetMap extract that ships with the skills; its file name carries the date of the data."""
    found = sorted((root() / "skills_automotive" / "data").glob(f"{name}-*.osm.pbf"))
    if not found:
        raise FileNotFoundError(f"no extract of map {name!r} in skills_automotive/data")
    return found[-1]
