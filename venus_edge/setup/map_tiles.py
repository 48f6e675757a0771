"""Routing tiles of the map that ships with the skills, built by the same release that reads them.

`build_tiles` runs in set-up; `python -m venus_edge.setup.map_tiles EXTRACT FOLDER` is its half inside the environment.
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from venus_edge.paths import map_dir, map_extract
from venus_edge.setup.console import Console, SetupError, disk_use, size_text
from venus_edge.setup.environment import run_module

STEP = "map"


def build_tiles(console: Console) -> None:
    """Build beside the final place, then move: a reader never sees half a map."""
    final = map_dir()
    partial = final.with_name(final.name + ".part")
    shutil.rmtree(partial, ignore_errors=True)
    run_module(console, STEP, "venus_edge.setup.map_tiles", map_extract(), partial, what="building routing tiles")
    config_path = partial / "valhalla.json"
    config_path.write_text(config_path.read_text().replace(str(partial), str(final)))
    old = final.with_name(final.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if final.exists():
        os.replace(final, old)
    os.replace(partial, final)
    shutil.rmtree(old, ignore_errors=True)
    tiles = sum(1 for _ in final.glob("tiles/**/*.gph"))
    console.say(STEP, f"done: {map_extract().name}, {tiles} tiles, {size_text(disk_use(final))}")


def write_tiles(extract: Path, folder: Path) -> None:
    """Inside the environment: write `valhalla.json` and `tiles/` for one extract."""
    valhalla = importlib.import_module("valhalla")  # an environment without the skills extra has none
    config_module = importlib.import_module("valhalla.config")
    tiles = folder / "tiles"
    tiles.mkdir(parents=True, exist_ok=True)
    archive = folder / "tiles.tar"
    archive.touch()  # the configuration maker insists that both places exist
    config = config_module.get_config(tile_extract=str(archive), tile_dir=str(tiles), verbose=False)
    archive.unlink()
    # No archive, borders or time zones: one small country needs none, and they are separate downloads.
    config["mjolnir"].update(tile_extract="", admin="", timezone="", concurrency=2)
    config_path = folder / "valhalla.json"
    config_path.write_text(json.dumps(config, indent=1))
    builder = Path(valhalla.__file__).parent / "bin" / "valhalla_build_tiles"
    # The builder leaves lists of odd ways in its working folder, which nothing reads.
    done = subprocess.run([builder, "-c", config_path, extract.resolve()], cwd=folder, check=False)
    for left in folder.glob("*.txt"):
        left.unlink()
    if done.returncode or not any(tiles.glob("**/*.gph")):
        raise SetupError(f"the tile builder ended with {done.returncode} and left no tiles")


if __name__ == "__main__":
    write_tiles(Path(sys.argv[1]), Path(sys.argv[2]))
