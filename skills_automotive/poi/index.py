"""Makes the places index of a map: `python -m skills_automotive.poi.index <extract.osm.pbf> <places.sqlite>`.

Points of interest, streets and addresses of an OpenStreetMap extract go into one SQLite file with a full-text index (names in
all their languages) and a box index. It is written beside the target and moved into place whole. Monaco: 1 s, 1 MB.
Map data © OpenStreetMap contributors, ODbL 1.0.
"""
import json
import math
import os
import sqlite3
import sys
from collections import defaultdict
from pathlib import Path

import osmium

from skills_automotive.poi.categories import ADDRESS, STREET, of_tags
from skills_automotive.poi.schema import SCHEMA, SCHEMA_VERSION
from skills_automotive.poi.text import canonical

_KEPT_TAGS = ("cuisine", "phone", "website", "operator", "brand", "capacity", "fee", "stars", "wheelchair", "addr:housenumber",
              "socket:type2", "socket:type2_combo", "socket:chademo", "network", "parking")
_NAME_KEYS = ("alt_name", "official_name", "short_name", "loc_name", "old_name", "brand", "operator")
_PRIVATE = ("private", "no", "permit", "residents")
SAME_PLACE_M = 60.0
STREET_M = 120.0
_ROADS = frozenset("motorway trunk primary secondary tertiary unclassified residential living_street pedestrian road".split())
"""Ways that people give as an address; service roads, steps and footways can be searched but name no place."""


def _metres(a, b) -> float:
    return math.hypot((a[0] - b[0]) * 111_320, (a[1] - b[1]) * 111_320 * math.cos(math.radians(a[0])))


def _centre(points):
    lats, lons = [p[0] for p in points], [p[1] for p in points]
    return (min(lats) + max(lats)) / 2, (min(lons) + max(lons)) / 2


def _located(obj):
    """(lat, lon) points of a node, way or assembled area; empty when the extract cuts it off."""
    if obj.is_node():
        return [(obj.location.lat, obj.location.lon)]
    nodes = [n for ring in obj.outer_rings() for n in ring] if obj.is_area() else obj.nodes
    return [(n.location.lat, n.location.lon) for n in nodes if n.location.valid()]


class Streets:
    """The named roads while the index is made: which one is nearest to a point, and a point on each."""

    CELL = 0.002  # degrees, about 200 m

    def __init__(self):
        self.points: dict[str, list] = defaultdict(list)
        self.names: dict[str, set] = defaultdict(set)
        self._grid = defaultdict(list)

    def add(self, tags: dict, points: list) -> None:
        name = tags["name"]
        self.points[name] += points
        self.names[name] |= {v for k, v in tags.items() if k.startswith("name:") or k in ("alt_name", "old_name")}
        if tags["highway"] in _ROADS and tags.get("tunnel") in (None, "no"):  # a place above a tunnel isn't on it
            for a, b in zip(points, points[1:]):
                steps = max(1, int(_metres(a, b) / 20))
                for i in range(steps + 1):
                    p = (a[0] + (b[0] - a[0]) * i / steps, a[1] + (b[1] - a[1]) * i / steps)
                    self._grid[int(p[0] / self.CELL), int(p[1] / self.CELL)].append((p, name))

    def nearest(self, point) -> str:
        y, x = int(point[0] / self.CELL), int(point[1] / self.CELL)
        near = [(_metres(p, point), name) for dy in (-1, 0, 1) for dx in (-1, 0, 1)
                for p, name in self._grid.get((y + dy, x + dx), ())]
        best = min(near, default=(math.inf, ""))
        return best[1] if best[0] <= STREET_M else ""

    def middle(self, name: str):
        """The street's own point nearest to its centre, so that a route can end on it."""
        centre = _centre(self.points[name])
        return min(self.points[name], key=lambda p: _metres(p, centre))


def _names(tags: dict) -> list[str]:
    """Every name in a script that a driver of ours may speak or read: Latin and Chinese."""
    found = [v for k, v in tags.items() if (k.startswith("name:") or k in _NAME_KEYS or k.startswith("alt_name:")) and v]
    split = [part.strip() for v in found for part in v.split(";")]
    return sorted({v for v in split if v != tags.get("name") and all(ord(c) < 0x250 or 0x4E00 <= ord(c) < 0xA000 or not c.isalpha()
                                                                    for c in v)})


def _prominence(tags: dict, big: bool) -> float:
    """0..1: how likely people know the place, from how much mappers and Wikipedia say about it."""
    languages = sum(k.startswith("name:") for k in tags)
    return min(1.0, 0.3 * ("wikidata" in tags) + 0.2 * ("wikipedia" in tags) + 0.04 * languages
               + 0.1 * (tags.get("tourism") == "attraction") + 0.05 * ("website" in tags or "contact:website" in tags) + 0.1 * big)


def _read(extract: Path, say):
    streets, places, addresses = Streets(), [], {}
    reader = osmium.FileProcessor(str(extract)).with_areas(
        osmium.filter.KeyFilter("amenity", "shop", "tourism", "leisure", "office", "healthcare", "historic", "natural", "building",
                                "railway", "aeroway"))
    for count, obj in enumerate(reader):
        if count % 50_000 == 0:
            say(f"read {count:,} objects, {len(places):,} places")
        if obj.is_relation() or not obj.tags:
            continue
        if obj.is_area() and obj.from_way():
            continue  # a closed way comes as a way too
        tags = dict(obj.tags)
        is_street = obj.is_way() and "highway" in tags and "name" in tags and tags["highway"] not in (
            "platform", "proposed", "construction", "bus_stop", "elevator", "corridor")
        kind = None if is_street else of_tags(tags)
        if not (is_street or kind or "addr:housenumber" in tags):
            continue
        points = _located(obj)
        if not points:
            continue
        if is_street:
            streets.add(tags, points)
            continue
        at = _centre(points)
        if "addr:housenumber" in tags and "addr:street" in tags:
            street = tags["addr:street"].split(";")[0]
            addresses.setdefault(f"{tags['addr:housenumber']} {street}", (at, street))
        if kind and tags.get("access") not in _PRIVATE and (tags.get("name") or kind not in ("sight", "shop", "office", "school",
                                                                                               "park", "swimming_pool", "sports")):
            letter = "a" if obj.is_area() else obj.type_str()
            places.append({"osm": f"{letter}{obj.orig_id() if obj.is_area() else obj.id}", "kind": kind, "tags": tags,
                           "at": at, "prominence": _prominence(tags, len(points) > 1)})
    return streets, places, addresses


def _without_doubles(places: list[dict]) -> list[dict]:
    """A place drawn as a node and as a building is one place: the better described stays."""
    kept, by_name = [], defaultdict(list)
    for place in sorted(places, key=lambda p: (-p["prominence"], p["osm"])):
        key = (place["kind"], canonical(place["tags"].get("name", "")))
        limit = SAME_PLACE_M if key[1] else 12.0
        if any(_metres(place["at"], other) < limit for other in by_name[key]):
            continue
        by_name[key].append(place["at"])
        kept.append(place)
    return kept


def build(extract: Path, target: Path, say=lambda line: None) -> dict:
    """Index one extract; returns counts by what was indexed. Raises FileNotFoundError for a missing extract."""
    if not Path(extract).is_file():
        raise FileNotFoundError(f"map extract {extract} is missing")
    streets, places, addresses = _read(Path(extract), say)
    places = _without_doubles(places)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}.part")
    partial.unlink(missing_ok=True)
    base = sqlite3.connect(partial)
    try:
        base.executescript(SCHEMA)

        def add(osm, kind, name, alt, at, street, prominence, hours, tags):
            row = base.execute("insert into place(osm,kind,name,alt,lat,lon,street,prominence,hours,tags) values(?,?,?,?,?,?,?,?,?,?)",
                               (osm, kind, name, json.dumps(alt, ensure_ascii=False), at[0], at[1], street, prominence, hours,
                                json.dumps(tags, ensure_ascii=False))).lastrowid
            base.execute("insert into place_box values(?,?,?,?,?)", (row, at[0], at[0], at[1], at[1]))
            cuisine = tags.get("cuisine", "").replace("_", " ").replace(";", " ")
            words = {canonical(text) for text in (name, *alt, cuisine) if text}
            base.execute("insert into place_words(rowid, words) values(?,?)", (row, " ".join(sorted(words))))

        for place in places:
            tags = place["tags"]
            add(place["osm"], place["kind"], tags.get("name", ""), _names(tags), place["at"],
                tags.get("addr:street", "").split(";")[0] or streets.nearest(place["at"]), place["prominence"], tags.get("opening_hours"),
                {k: tags[k] for k in _KEPT_TAGS if k in tags})
        for name in sorted(streets.points):
            add(f"street:{name}", STREET, name, sorted(streets.names[name]), streets.middle(name), name, 0.0, None, {})
        for address, (at, street) in sorted(addresses.items()):
            add(f"address:{address}", ADDRESS, address, [], at, street, 0.0, None, {})
        counts = {"places": len(places), "named": sum("name" in p["tags"] for p in places), "streets": len(streets.points),
                  "addresses": len(addresses)}
        base.executemany("insert into meta values(?,?)", [("schema", str(SCHEMA_VERSION)), ("source", Path(extract).name),
                                                          ("licence", "© OpenStreetMap contributors, ODbL 1.0")])
        base.commit()
        base.execute("insert into place_words(place_words) values('optimize')")
        base.commit()
    except BaseException:
        base.close()
        partial.unlink(missing_ok=True)
        raise
    base.close()
    os.replace(partial, target)
    return counts


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print("usage: python -m skills_automotive.poi.index <extract.osm.pbf> <places.sqlite>", file=sys.stderr)
        return 2
    extract, target = Path(argv[0]), Path(argv[1])
    try:
        counts = build(extract, target, lambda line: print(f"places: {line}", flush=True))
    except FileNotFoundError as err:
        print(f"places: {err}", file=sys.stderr)
        return 2
    except RuntimeError as err:  # osmium's error for a file that it can't read
        print(f"places: {extract} is no map extract: {err}", file=sys.stderr)
        return 2
    print("places: " + ", ".join(f"{n:,} {what}" for what, n in counts.items()) + f" in {target.name}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
