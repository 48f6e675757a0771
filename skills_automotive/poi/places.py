"""The Places provider over the index of `index.py`: by kind (nearest first), by what it must offer, or by a name as it was heard.

The whole index lives in memory, so a forked process shares no file offset with its siblings and the file may be replaced.
Map data © OpenStreetMap contributors, ODbL 1.0.
"""
import json
import math
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Iterable, Sequence

from harness.host.errors import InvalidArgs, Unavailable
from harness.host.providers import Attribution, Place, Point, Wants
from skills_automotive.poi import hours
from skills_automotive.poi.attributes import NEEDS, PLUGS, lacks, unsure
from skills_automotive.poi.categories import ADDRESS, BY_NAME, STREET, kind_of, phrase
from skills_automotive.poi.corridor import Corridor
from skills_automotive.poi.entry import Entry
from skills_automotive.poi.names import Names, far_as
from skills_automotive.poi.schema import SCHEMA_VERSION
from skills_automotive.poi.text import plain
from skills_automotive.poi.wish import warm
from venus_edge.clock import Clock, SystemClock

FIRST_BOX_M, WIDER = 1000.0, 3.0
"""The nearest are looked for in boxes that grow by this factor, so that a common kind on a big map reads few rows."""
_SELECT = "select id, osm, kind, name, alt, lat, lon, street, prominence, hours, zone, country, tags from place"
_BRAND_KEYS = ("brand", "brand:en", "brand:zh", "operator", "network")


def open_places(cache_dir: Path, name: str = "monaco", clock: Clock | None = None) -> "SqlitePlaces":
    """Open `<cache_dir>/map/<name>/places.sqlite`; raises Unavailable naming what is missing or out of date."""
    path = Path(cache_dir) / "map" / name / "places.sqlite"
    if not path.is_file():
        raise Unavailable(f"places of map {name!r}: {path} is missing; run `make setup`", path=str(path))
    warm()  # skill processes are forked from this one: what is read now, none of them has to read
    return SqlitePlaces(path.read_bytes(), clock or SystemClock())


class SqlitePlaces:
    """harness.host.providers.Places over one index."""

    def __init__(self, index: bytes, clock: Clock):
        self._clock = clock
        self._base = sqlite3.connect(":memory:", check_same_thread=False)
        self._base.deserialize(index)
        meta = dict(self._base.execute("select key, value from meta"))
        if int(meta.get("schema", 0)) != SCHEMA_VERSION:
            raise Unavailable("the places index was made by another version; run `make setup`")
        self._meta = meta
        self._kinds = {name: number for number, name in self._base.execute("select number, name from kind")}
        self._entries: dict[int, Entry] = {}
        self._by_osm: dict[str, int] = {}
        self._by_brand: dict[str, list[int]] = defaultdict(list)
        alt = {}
        for row, osm, kind, name, others, lat, lon, street, prominence, opening, zone, country, tags in self._base.execute(_SELECT):
            tags = json.loads(tags)
            parsed = hours.parse(opening, lat, lon, zone, country) if opening else None
            self._entries[row] = Entry(osm, kind, name, lat, lon, street, prominence, tags, opening or "", parsed)
            self._by_osm[osm] = row
            alt[row] = json.loads(others)
            if kind not in (STREET, ADDRESS):
                for brand in {plain(text) for text in (name, *(tags[key] for key in _BRAND_KEYS if key in tags)) if text}:
                    self._by_brand[brand].append(row)
        self._names = Names(self._base, self._entries, alt, json.loads(meta.get("towns", "[]")))

    def search(self, *, near: Point, category: str | None = None, name: str | None = None, limit: int = 5, radius_m: float = 5000.0,
               wants: Wants | None = None, along: Sequence[tuple[float, float]] = ()) -> list[Place]:
        """Places of a kind, nearest first; or places whose name was heard, the likeliest first; or both together.

        `category` is a kind's name or any of its synonyms, or several kinds' names with "|" between them. A `name` that is only a
        kind ("the casino") gives that kind's places, the best known first. With `wants.brand` neither need be given.
        Raises InvalidArgs for an unknown category, attribute or plug, and when there is nothing to look for.
        """
        wants = wants or Wants()
        _check(wants)
        if not category and not (name or "").strip() and not wants.brand:
            raise InvalidArgs("category or name must be given", field="name")
        kinds = _kinds(category) if category else frozenset()
        line = Corridor(along, radius_m) if along else None
        measure = line.at if line else lambda entry: far_as(near, entry)
        only = kind_of(name) if name and not kinds else None
        if only:
            found = self._of_kinds(frozenset((only.name,)), near, radius_m, line)
            found.sort(key=lambda entry: far_as(near, entry) - 4000 * entry.prominence)  # renown is worth up to 4 km
        elif name:
            found = self._names.find(name, line.off if line else measure, radius_m, kinds)
        elif wants.brand:
            found = self._of_brand(wants.brand, kinds, measure, radius_m, line)
        else:
            found = self._nearest(kinds, near, radius_m, line, wants, limit)
            found.sort(key=measure)
        return self._answers(found, near, wants, limit)

    def get(self, place_id: str, *, near: Point | None = None) -> Place | None:
        """One place with its hours of today; None for an id that this map doesn't have."""
        row = self._by_osm.get(place_id)
        if row is None:
            return None
        entry = self._entries[row]
        place = self._place(entry, near or Point(entry.lat, entry.lon), *hours.state(entry.hours, self._clock.wall()))
        return place if entry.hours is None else _with(place, hours_today=hours.today(entry.hours, self._clock.wall()))

    def names(self) -> list[str]:
        """Names of places and streets, the best known first, then those that a driver needs, then streets."""
        ranked = sorted((-entry.prominence, entry.kind == STREET, entry.name) for entry in self._entries.values()
                        if entry.name and entry.kind != ADDRESS)
        return list(dict.fromkeys(name for *_, name in ranked))

    def attribution(self) -> Attribution:
        """The credit that whoever shows or speaks these places owes."""
        return Attribution(self._meta["credit"], self._meta["licence"], int(self._meta.get("synthetic", 0)) > 0)

    def _nearest(self, kinds: frozenset[str], near: Point, radius_m: float, line: Corridor | None, wants: Wants, limit: int) -> list[Entry]:
        """Of the kinds, within the radius: all, or at least enough of the nearest that aren't ruled out."""
        radius = radius_m if line else min(FIRST_BOX_M, radius_m)
        while True:
            found = [entry for entry in self._of_kinds(kinds, near, radius, line) if not lacks(entry.tags, wants)]
            if radius >= radius_m:
                return found
            if len(found) >= limit:
                wall = self._clock.wall()
                if not wants.open_now or sum(hours.state(entry.hours, wall)[0] is not False for entry in found) >= limit:
                    return found
            radius = min(radius * WIDER, radius_m)

    def _of_kinds(self, kinds: Iterable[str], near: Point, radius_m: float, line: Corridor | None) -> list[Entry]:
        rows: set[int] = set()
        for south, north, west, east in (line.boxes() if line else (_box(near, radius_m),)):
            for number in (self._kinds[kind] for kind in kinds if kind in self._kinds):
                rows.update(row for row, in self._base.execute(
                    "select id from place_box where min_kind = ? and max_kind = ? and min_lat between ? and ? and min_lon between ? and ?",
                    (number, number, south, north, west, east)))
        far = line.off if line else lambda entry: far_as(near, entry)
        return [entry for entry in map(self._entries.__getitem__, sorted(rows)) if far(entry) <= radius_m]

    def _of_brand(self, brand: tuple[str, ...], kinds: frozenset[str], measure, radius_m: float, line: Corridor | None) -> list[Entry]:
        rows = {row for spelling in (plain(name) for name in brand) for row in self._by_brand.get(spelling, ())}
        found = [entry for entry in map(self._entries.__getitem__, sorted(rows)) if (not kinds or entry.kind in kinds)
                 and (line.off(entry) if line else measure(entry)) <= radius_m]
        return sorted(found, key=measure)

    def _answers(self, found: list[Entry], near: Point, wants: Wants, limit: int) -> list[Place]:
        """The first `limit` that aren't ruled out, each with how many nearer ones are closed."""
        answers: list[Place] = []
        closed: list[float] = []
        wall = self._clock.wall()
        for entry in found:
            if lacks(entry.tags, wants):
                continue
            opened, *change = hours.state(entry.hours, wall)
            distance = far_as(near, entry)
            if wants.open_now and opened is False:
                closed.append(distance)
                continue
            answers.append(_with(self._place(entry, near, opened, *change), unsure=unsure(entry.tags, wants, opened),
                                 nearer_closed=sum(d < distance for d in closed)))
            if len(answers) == limit:
                break
        return answers

    def _place(self, entry: Entry, near: Point, opened: bool | None, change: str, in_s: float | None) -> Place:
        tags = entry.tags | {"prominence": entry.prominence}
        if entry.hours_text:
            tags["opening_hours"] = entry.hours_text
        name = entry.name
        if not name:
            tags["unnamed"] = True
            name = phrase(entry.kind, entry.street, "en")
        number, street = tags.get("addr:housenumber", ""), tags.get("addr:street", entry.street)
        return Place(id=entry.osm, name=name, category=entry.kind, point=Point(entry.lat, entry.lon), street=entry.street,
                     distance_m=round(far_as(near, entry), 1), open_now=opened, tags=tags, changes_at=change, changes_in_s=in_s,
                     phone=next((tags[key].split(";")[0].strip() for key in ("phone", "contact:phone") if key in tags), ""),
                     address=f"{number} {street}".strip() if number and street else "", synthetic="synthetic" in tags)


def _with(place: Place, **fields) -> Place:
    """`dataclasses.replace` without its cost: a search makes a dozen of them in well under a millisecond."""
    copy = object.__new__(Place)
    copy.__dict__.update(place.__dict__, **fields)
    return copy


def _box(near: Point, radius_m: float) -> tuple[float, float, float, float]:
    north = radius_m / 111_320
    east = north / max(0.05, math.cos(math.radians(near.lat)))
    return near.lat - north, near.lat + north, near.lon - east, near.lon + east


def _kinds(category: str) -> frozenset[str]:
    names = category.split("|")
    if all(name in BY_NAME for name in names):
        return frozenset(names)
    kind = kind_of(category)
    if kind is None:
        raise InvalidArgs(f"category {category!r} is unknown; known: {', '.join(sorted(BY_NAME))}", field="category")
    return frozenset((kind.name,))


def _check(wants: Wants) -> None:
    if unknown := wants.needs - NEEDS.keys():
        raise InvalidArgs(f"wants.needs: {', '.join(sorted(unknown))} unknown; known: {', '.join(NEEDS)}", field="needs")
    if wants.plug and wants.plug not in PLUGS:
        raise InvalidArgs(f"wants.plug: {wants.plug!r} is unknown; known: {', '.join(PLUGS)}", field="plug")
