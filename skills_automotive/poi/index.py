"""Makes the places index of a map: `python -m skills_automotive.poi.index <extract.osm.pbf> <places.sqlite>`.

Points of interest, streets and addresses of an OpenStreetMap extract go into one SQLite file with a full-text index (names in
all their languages) and a box index. It is written beside the target and moved into place whole. Monaco: 0.6 s, 1 MB;
Andorra: 2 s. Map data © OpenStreetMap contributors, ODbL 1.0.
"""
import json
import os
import sqlite3
import sys
from collections import defaultdict
from pathlib import Path
from typing import Callable

from skills_automotive.poi.categories import ADDRESS, KINDS, STREET
from skills_automotive.poi.extract import Extract, Grid, ProgressBar, metres, read
from skills_automotive.poi.schema import SCHEMA, SCHEMA_VERSION
from skills_automotive.poi.text import canonical, is_chinese, toneless
from skills_automotive.poi.zones import locate

LICENCE = "ODbL 1.0"
CREDIT = "© OpenStreetMap contributors"
PARKING_M = 150.0
"""A car park this near counts as parking at a place."""
SAME_PLACE_M = 60.0
_KEPT_TAGS = frozenset("cuisine phone contact:phone website contact:website operator brand brand:en brand:zh capacity fee stars wheelchair "
                       "addr:housenumber addr:street network parking covered internet_access wifi outdoor_seating takeaway drive_through "
                       "charging_station:output level charge maxheight synthetic".split())
_KEPT_PREFIXES = ("socket:", "diet:", "payment:")
_NAME_KEYS = ("alt_name", "official_name", "short_name", "loc_name", "old_name", "brand", "operator")
_PINYIN_KEYS = ("name:zh_pinyin", "name:zh-Latn-pinyin", "name:zh-Latn")
KIND_NUMBERS = {name: number for number, name in enumerate((*(kind.name for kind in KINDS), STREET, ADDRESS))}


def _names(tags: dict) -> list[str]:
    """Every name in a script that a driver of ours may speak or read: Latin (pinyin without its tones) and Chinese."""
    found = [v for k, v in tags.items() if (k.startswith("name:") or k in _NAME_KEYS or k.startswith(("alt_name:", "brand:"))) and v
             and not k.endswith(":wikidata") and not k.endswith(":wikipedia") and k not in _PINYIN_KEYS]
    for key in _PINYIN_KEYS:
        if key in tags:
            found += [toneless(tags[key]), toneless(tags[key]).replace(" ", "")]
    split = [part.strip() for v in found for part in v.split(";")]
    return sorted({v for v in split if v and v != tags.get("name")
                   and all(ord(c) < 0x250 or 0x4E00 <= ord(c) < 0xA000 or not c.isalpha() for c in v)})


def _prominence(tags: dict, big: bool) -> float:
    """0..1: how likely people know the place, from how much mappers and Wikipedia say about it."""
    languages = sum(k.startswith("name:") for k in tags)
    return min(1.0, 0.3 * ("wikidata" in tags) + 0.2 * ("wikipedia" in tags) + 0.04 * languages
               + 0.1 * (tags.get("tourism") == "attraction") + 0.05 * ("website" in tags or "contact:website" in tags) + 0.1 * big)


def _without_doubles(places: list[dict]) -> list[dict]:
    """A place drawn as a node and as a building is one place: the better described stays."""
    kept, by_name = [], defaultdict(list)
    for place in places:
        place["prominence"] = _prominence(place["tags"], place["big"])
    for place in sorted(places, key=lambda p: (-p["prominence"], p["osm"])):
        key = (place["kind"], canonical(place["tags"].get("name", "")))
        limit = SAME_PLACE_M if key[1] else 12.0
        if any(metres(place["at"], other) < limit for other in by_name[key]):
            continue
        by_name[key].append(place["at"])
        kept.append(place)
    return kept


def _kept(tags: dict) -> dict:
    return {key: value for key, value in tags.items() if key in _KEPT_TAGS or key.startswith(_KEPT_PREFIXES)}


def _full_text(name: str, alt: list[str], cuisine: str) -> str:
    """Words to find a place by; Chinese one character a word, so that any part of a name is found."""
    texts = [canonical(text) for text in (name, *alt, cuisine.replace("_", " ").replace(";", " ")) if text]
    words = {word for text in texts for run in text.split() for word in (run if is_chinese(run) else (run,))}
    return " ".join(sorted(words))


def build(extract: Path, target: Path, progress: Callable[[float | None, int], None] = lambda share, count: None) -> dict:
    """Index one extract; returns counts by what was indexed. Raises FileNotFoundError for a missing extract."""
    extract = Path(extract)
    if not extract.is_file():
        raise FileNotFoundError(f"map extract {extract} is missing")
    found = read(extract, progress)
    found.places = _without_doubles(found.places)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}.part")
    partial.unlink(missing_ok=True)
    base = sqlite3.connect(partial)
    try:
        base.executescript("pragma journal_mode = off; pragma synchronous = off;" + SCHEMA)  # the file is moved into place whole, or thrown away
        counts = _write(base, found, extract)
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


def _write(base: sqlite3.Connection, found: Extract, extract: Path) -> dict:
    places, boxes, words = [], [], []

    def add(osm, kind, name, alt, at, street, prominence, hours, tags):
        row = len(places) + 1
        zone, country = locate(round(at[0], 3), round(at[1], 3)) if hours else ("", "")
        places.append((row, osm, kind, name, json.dumps(alt, ensure_ascii=False), at[0], at[1], street, prominence, hours, zone, country,
                       json.dumps(tags, ensure_ascii=False)))
        number = KIND_NUMBERS[kind]
        boxes.append((row, at[0], at[0], at[1], at[1], number, number))
        words.append((row, _full_text(name, alt, tags.get("cuisine", ""))))

    car_parks = Grid()
    for place in found.places:
        if place["kind"] == "parking" and place["tags"].get("access") != "customers":
            car_parks.add(place["at"], "")
    for place in found.places:
        tags = place["tags"]
        kept = _kept(tags)
        if car_parks.nearest(place["at"])[0] <= PARKING_M:
            kept["parking:near"] = "yes"
        add(place["osm"], place["kind"], tags.get("name", ""), _names(tags), place["at"],
            tags.get("addr:street", "").split(";")[0] or found.streets.nearest(place["at"]), place["prominence"], tags.get("opening_hours"), kept)
    for name in sorted(found.streets.points):
        add(f"street:{name}", STREET, name, sorted(found.streets.names[name]), found.streets.middle(name), name, 0.0, None, {})
    for address, (at, street) in sorted(found.addresses.items()):
        add(f"address:{address}", ADDRESS, address, [], at, street, 0.0, None, {})
    base.executemany("insert into place values(?,?,?,?,?,?,?,?,?,?,?,?,?)", places)
    base.executemany("insert into place_box values(?,?,?,?,?,?,?)", boxes)
    base.executemany("insert into place_words(rowid, words) values(?,?)", words)
    base.executemany("insert into kind values(?,?)", [(number, name) for name, number in KIND_NUMBERS.items()])
    synthetic = sum("synthetic" in place["tags"] for place in found.places)
    base.executemany("insert into meta values(?,?)", [
        ("schema", str(SCHEMA_VERSION)), ("source", extract.name), ("credit", CREDIT), ("licence", LICENCE), ("synthetic", str(synthetic)),
        ("towns", json.dumps(sorted(found.towns), ensure_ascii=False))])
    return {"places": len(found.places), "named": sum("name" in p["tags"] for p in found.places), "streets": len(found.streets.points),
            "addresses": len(found.addresses)}


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print("usage: python -m skills_automotive.poi.index <extract.osm.pbf> <places.sqlite>", file=sys.stderr)
        return 2
    extract, target = Path(argv[0]), Path(argv[1])
    try:
        counts = build(extract, target, ProgressBar(f"places: {extract.name}"))
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
