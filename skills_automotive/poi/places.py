"""The Places provider over the index of `index.py`: by kind (nearest first) or by a name as it was heard.

The whole index lives in memory, so a forked process shares no file offset with its siblings and the file may be replaced.
Measured on Monaco (1,600 entries): a kind 0.3 ms, a name 2-6 ms.
Map data © OpenStreetMap contributors, ODbL 1.0.
"""
import json
import math
import sqlite3
from collections import defaultdict
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo

from opening_hours import OpeningHours
from rapidfuzz import fuzz, process

from harness.host.errors import InvalidArgs, Unavailable
from harness.host.providers import Place, Point
from skills_automotive.poi.categories import ADDRESS, BY_NAME, STREET, kind_of, phrase
from skills_automotive.poi.schema import SCHEMA_VERSION
from skills_automotive.poi.text import STREET_WORDS, canonical, plain, sounds
from venus_edge.clock import Clock, SystemClock

GOOD_ENOUGH = 74.0
"""The least score (0..100) at which a name counts as the one that was heard; measured in tests on 60 spoken forms."""
_CITY = frozenset("monaco monte carlo".split())
"""Said of half the names on the map, so a query may carry them in vain ("Fairmont Monte Carlo")."""
_KIND_WORDS = frozenset(w for kind in BY_NAME.values() for w in (canonical(t) for t in kind.en) if " " not in w)
_SELECT = "select id, osm, kind, name, alt, lat, lon, street, prominence, hours, tags from place"


def open_places(cache_dir: Path, name: str = "monaco", clock: Clock | None = None) -> "SqlitePlaces":
    """Open `<cache_dir>/map/<name>/places.sqlite`; raises Unavailable naming what is missing or out of date."""
    path = Path(cache_dir) / "map" / name / "places.sqlite"
    if not path.is_file():
        raise Unavailable(f"places of map {name!r}: {path} is missing; run `make setup`", path=str(path))
    return SqlitePlaces(path.read_bytes(), clock or SystemClock())


@lru_cache(maxsize=2048)
def _hours(text: str, timezone: str, country: str) -> OpeningHours | None:
    """Parsed opening hours; None for the few per cent of real strings that no grammar covers."""
    try:
        return OpeningHours(text, timezone=ZoneInfo(timezone), country=country)
    except Exception:  # the parser raises its own and plain errors alike; unknown hours are never "closed"
        return None


class SqlitePlaces:
    """harness.host.providers.Places over one index."""

    def __init__(self, index: bytes, clock: Clock, timezone: str = "Europe/Monaco", country: str = "MC"):
        self._clock, self._timezone, self._country = clock, timezone, country
        self._base = sqlite3.connect(":memory:", check_same_thread=False)
        self._base.deserialize(index)
        version = self._base.execute("select value from meta where key='schema'").fetchone()
        if version is None or int(version[0]) != SCHEMA_VERSION:
            raise Unavailable("the places index was made by another version; run `make setup`")
        self._rows = {row[0]: row for row in self._base.execute(_SELECT)}
        self._texts: list[str] = []  # canonical spellings, and beside them how they sound and whose they are
        self._owners: list[int] = []
        self._sounds: list[str] = []
        self._words: dict[int, frozenset] = {}
        self._own: dict[int, list[set]] = {}
        for row_id, row in self._rows.items():
            cuisine = json.loads(row[10]).get("cuisine", "").replace("_", " ").split(";")
            spellings = {canonical(t): t for t in (row[3], *json.loads(row[4])) if t}
            self._own[row_id] = [set(text.split()) for text in (*spellings, *map(canonical, cuisine)) if text]
            words = {w for own in self._own[row_id] for w in own}
            kind = BY_NAME.get(row[2])
            if kind and words:
                said = [canonical(w) for w in (kind.name.replace("_", " "), *kind.en, *kind.zh)]
                words |= {w for text in said for w in text.split()}
            self._words[row_id] = frozenset(words)
            for text in spellings:
                self._texts.append(text)
                self._sounds.append(sounds(text))
                self._owners.append(row_id)

    def search(self, *, near: Point, category: str | None = None, name: str | None = None, limit: int = 5,
               radius_m: float = 5000.0) -> list[Place]:
        """Places of a kind, nearest first; or places whose name was heard, the likeliest first; or both together.

        `category` is a kind's name or any of its synonyms. A `name` that is only a kind ("the casino") gives that kind's places,
        the best known first. Raises InvalidArgs for an unknown category, and when neither is given.
        """
        if not category and not (name or "").strip():
            raise InvalidArgs("category or name must be given", field="name")
        kind = None
        if category:
            kind = BY_NAME.get(category) or kind_of(category)
            if kind is None:
                raise InvalidArgs(f"category {category!r} is unknown; known: {', '.join(sorted(BY_NAME))}", field="category")
        if name and kind_of(name) and not kind:
            found = self._of_kind(kind_of(name).name, near, radius_m)
            found.sort(key=lambda row: self._metres(row, near) - 4000 * row[8])  # renown is worth up to 4 km
        elif name:
            found = self._named(name, near, radius_m, kind.name if kind else None)
        else:
            found = sorted(self._of_kind(kind.name, near, radius_m), key=lambda row: self._metres(row, near))
        return [self._place(row, near) for row in found[:limit]]

    def names(self) -> list[str]:
        """Names of places and streets, the best known first, then those that a driver needs, then streets."""
        ranked = sorted(((-row[8], row[2] == STREET, row[3]) for row in self._rows.values() if row[3] and row[2] != ADDRESS))
        return list(dict.fromkeys(name for *_, name in ranked))

    def _in_box(self, near: Point, radius_m: float) -> list[int]:
        north = radius_m / 111_320
        east = north / max(0.05, math.cos(math.radians(near.lat)))
        return [row for row, in self._base.execute(
            "select id from place_box where min_lat between ? and ? and min_lon between ? and ?",
            (near.lat - north, near.lat + north, near.lon - east, near.lon + east))]

    def _of_kind(self, kind: str, near: Point, radius_m: float) -> list[tuple]:
        rows = (self._rows[i] for i in self._in_box(near, radius_m))
        return [row for row in rows if row[2] == kind and self._metres(row, near) <= radius_m]

    def _named(self, heard: str, near: Point, radius_m: float, kind: str | None) -> list[tuple]:
        query = canonical(heard)
        scores: dict[int, float] = defaultdict(float)
        without_city = " ".join(w for w in query.split() if w not in _CITY)
        wordings = {query: 1.0}
        if without_city and not set(without_city.split()) <= _KIND_WORDS:
            wordings.setdefault(without_city, 0.97)
        for words, weight in wordings.items():
            self._spelled(words, weight, scores)
            for owner in self._sharing_words(words):
                scores[owner] = max(scores[owner], self._covered(words, owner) * weight)
        said, number = set(query.split()), next((w for w in plain(heard).split()[:1] if w.isdigit()), None)
        own_words, ranked = said - _KIND_WORDS - _CITY, []
        for owner, score in scores.items():
            row, words = self._rows[owner], self._words[owner]
            if row[2] == ADDRESS and (number is None or plain(row[3]).split()[0] != number):
                continue
            # "Condamine market" isn't the Condamine school: a kind that was said must be the place's own, or in its name.
            score += sum((3 if word in words else -12) for word in said & _KIND_WORDS)
            if own_words and max((fuzz.ratio(a, b) for a in own_words for b in words), default=0) < 60:
                score -= 20  # only the kind and the city agree: a car museum isn't the naval museum
            if score < GOOD_ENOUGH or (kind and row[2] != kind) or self._metres(row, near) > radius_m:
                continue
            score += 12 * row[8] - self._metres(row, near) / 1000
            score += {STREET: 8 if said & STREET_WORDS else -8, ADDRESS: 8}.get(row[2], -8 if said & STREET_WORDS else 0)
            ranked.append((-score, row[0]))
        ranked.sort()
        return [self._rows[i] for score, i in ranked if score <= ranked[0][0] + 15]

    def _spelled(self, query: str, weight: float, scores: dict[int, float]) -> None:
        """Whole names that are spelled or sound like the query; short ones must match better, as chance likens them."""
        for scorer, text, choices, short, share in ((fuzz.token_sort_ratio, query, self._texts, 86, 1.0),
                                                    (fuzz.ratio, sounds(query), self._sounds, 90, 0.97)):
            cutoff = GOOD_ENOUGH + 2 if len(text) > 8 else short
            for _, score, at in process.extract(text, choices, scorer=scorer, limit=40, score_cutoff=cutoff):
                owner = self._owners[at]
                scores[owner] = max(scores[owner], score * weight * share)

    def _sharing_words(self, query: str) -> list[int]:
        """Rows that have a word of the query, or one that begins with it, anywhere in their names."""
        words = [w for w in query.split() if len(w) > 2]
        if not words:
            return []
        match = " OR ".join(f'"{w}"*' for w in words)
        return [row for row, in self._base.execute(
            "select rowid from place_words where place_words match ? order by rank limit 200", (match,))]

    def _covered(self, query: str, owner: int) -> float:
        """How much of the query is accounted for by the words of one place and of its kind: 0, or 74..96."""
        words = self._words[owner]
        total = matched = 0.0
        for word in query.split():
            best = 100.0 if word in words else max((fuzz.ratio(word, w) for w in words), default=0.0)
            total += len(word)
            matched += len(word) * (best / 100 if best >= 78 else 0.0)
        if not total or matched / total < 0.9:
            return 0.0
        share = max((len(set(query.split()) & own) / len(own) for own in self._own[owner]), default=0.0)
        return 74 + 22 * share * matched / total if share else 0.0

    @staticmethod
    def _metres(row: tuple, near: Point) -> float:
        lat, lon = row[5], row[6]
        return math.hypot((lat - near.lat) * 111_320, (lon - near.lon) * 111_320 * math.cos(math.radians(near.lat)))

    def _place(self, row: tuple, near: Point) -> Place:
        _, osm, kind, name, _, lat, lon, street, prominence, hours, tags = row
        tags = json.loads(tags) | {"prominence": prominence}
        if hours:
            tags["opening_hours"] = hours
        if not name:
            tags["unnamed"] = True
            name = phrase(kind, street, "en")
        return Place(id=osm, name=name, category=kind, point=Point(lat, lon), street=street,
                     distance_m=round(self._metres(row, near), 1), open_now=self._open_now(hours), tags=tags)

    def _open_now(self, hours: str | None) -> bool | None:
        parsed = _hours(hours, self._timezone, self._country) if hours else None
        if parsed is None:
            return None
        now = datetime.fromtimestamp(self._clock.wall(), ZoneInfo(self._timezone))
        return None if parsed.is_unknown(now) else parsed.is_open(now)
