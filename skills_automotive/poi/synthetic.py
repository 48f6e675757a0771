"""Makes up places for a map that has roads only: `python -m skills_automotive.poi.synthetic <roads.osm.pbf> <out.osm.pbf>`.

The open extract of Shanghai's centre that ships here holds no place at all, and a Chinese search must be tried on something. So
this puts invented shops beside the real road junctions: always the same ones for the same roads. Every one is tagged
`synthetic=yes`, has an invented name that belongs to no business known to us and a telephone number that can't exist, and is
spoken of as made up. The roads are © OpenStreetMap contributors, ODbL 1.0, and so is what comes out.
"""
import math
import random
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import osmium

SEED = 20260701
FIRST_ID = 1_000_000_000_000_000
"""Far above every id that OpenStreetMap has given."""
MARK = {"synthetic": "yes", "note": "invented place for tests, not in OpenStreetMap"}
BESIDE_M = 28.0
_NO_SHOPS = ("隧道", "高架")
"""Tunnels and elevated roads: nothing opens on them."""


class Roads:
    """The junctions of an extract: points where roads of different names meet, in a fixed order."""

    def __init__(self, path: Path):
        names: dict[int, set[str]] = defaultdict(set)
        at: dict[int, tuple[float, float]] = {}
        for obj in osmium.FileProcessor(str(path)).with_locations():
            name = obj.tags.get("name", "") if obj.is_way() and "highway" in obj.tags else ""
            if name and not any(word in name for word in _NO_SHOPS):
                for node in obj.nodes:
                    if node.location.valid():
                        names[node.ref].add(name)
                        at[node.ref] = (node.location.lat, node.location.lon)
        self.junctions = [(at[ref], sorted(met)) for ref, met in sorted(names.items()) if len(met) > 1]


def places(junctions: list, seed: int = SEED) -> list[tuple[tuple[float, float], dict[str, str]]]:
    """((lat, lon), tags) of every invented place. Raises ValueError for a map without junctions of named roads."""
    if not junctions:
        raise ValueError("no two named roads meet on this map")
    chance, made = random.Random(seed), []
    table = tomllib.loads(Path(__file__).with_name("synthetic.toml").read_text(encoding="utf-8"))
    for kind in table["kind"]:
        for n in range(kind["count"]):
            name = kind["names"][n % len(kind["names"])]
            (lat, lon), streets = chance.choice(junctions)
            angle, away = chance.uniform(0, 2 * math.pi), chance.uniform(0.6, 1.4) * BESIDE_M
            at = (lat + away * math.sin(angle) / 111_320, lon + away * math.cos(angle) / 111_320 / math.cos(math.radians(lat)))
            made.append((at, _tags(chance, dict(kind["tags"]), kind.get("hours"), name, chance.choice(streets), len(made))))
    return made


def _tags(chance: random.Random, tags: dict, hours: str | None, name: list[str], street: str, number: int) -> dict[str, str]:
    if name[0]:
        tags |= {"name": name[0], "name:zh": name[0], "name:zh_pinyin": name[1], "name:en": name[2], "branch": f"{street}店"}
        if chance.random() < 0.75:
            tags["phone"] = f"+86 21 0{number:03} {chance.randrange(10_000):04}"  # no number there begins with 0
    if hours and chance.random() < 0.8:
        tags["opening_hours"] = hours
    tags |= {"addr:street": street, "addr:housenumber": str(chance.randrange(1, 900))}
    if chance.random() < 0.4:
        tags["wheelchair"] = chance.choice(("yes", "yes", "no"))
    kind = tags.get("amenity", "")
    if kind == "charging_station":
        power = chance.choice((7, 60, 120, 180))
        tags |= {"socket:gb_ac": "4", "socket:gb_ac:output": "7 kW"} if power == 7 else {"socket:gb_dc": "6", "socket:gb_dc:output": f"{power} kW"}
        tags["fee"] = "yes"
    elif kind == "parking":
        tags |= {"parking": chance.choice(("underground", "surface", "multi-storey")), "fee": chance.choice(("yes", "yes", "no")),
                 "capacity": str(chance.randrange(20, 400))}
    elif kind == "toilets":
        tags["fee"] = "no"
    elif kind in ("restaurant", "cafe"):
        if chance.random() < 0.5:
            tags["internet_access"] = "wlan"
        if chance.random() < 0.3:
            tags["outdoor_seating"] = chance.choice(("yes", "no"))
    return tags | MARK


def write(roads: Path, target: Path) -> int:
    """Copy the roads and add the places; returns how many. The target is made whole or not at all."""
    made = places(Roads(roads).junctions)
    partial = target.with_name("part-" + target.name)
    partial.unlink(missing_ok=True)
    header = osmium.io.Header()
    header.set("generator", "skills_automotive.poi.synthetic")
    writer = osmium.SimpleWriter(str(partial), header=header)
    try:
        done = False
        for obj in osmium.FileProcessor(str(roads)):
            if not obj.is_node() and not done:
                _add(writer, made)
                done = True
            if obj.id < FIRST_ID:  # the file that ships here is input as good as the one it was made from
                writer.add(obj)
    finally:
        writer.close()
    partial.replace(target)
    return len(made)


def _add(writer: osmium.SimpleWriter, made: list) -> None:
    for number, ((lat, lon), tags) in enumerate(made):
        writer.add_node(osmium.osm.mutable.Node(id=FIRST_ID + number, version=1, location=(round(lon, 7), round(lat, 7)), tags=tags))


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print("usage: python -m skills_automotive.poi.synthetic <roads.osm.pbf> <out.osm.pbf>", file=sys.stderr)
        return 2
    try:
        count = write(Path(argv[0]), Path(argv[1]))
    except (RuntimeError, ValueError) as err:
        print(f"synthetic: {argv[0]}: {err}", file=sys.stderr)
        return 2
    print(f"synthetic: {count} invented places in {Path(argv[1]).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
