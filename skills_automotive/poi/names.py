"""Places by a name as it was heard: spelling, sound, shared words; Chinese by its characters, and by pinyin where the map has it.

Pinyin comes from the map's own `name:zh_pinyin` tags alone: a name without one can't be found by how it sounds.
"""
import math
import sqlite3
from collections import Counter, defaultdict

from rapidfuzz import fuzz, process

from skills_automotive.poi.categories import ADDRESS, BY_NAME, STREET, kind_of
from skills_automotive.poi.entry import Entry
from skills_automotive.poi.text import STREET_WORDS, canonical, is_chinese, plain, sounds

GOOD_ENOUGH = 74.0
"""The least score (0..100) at which a name counts as the one that was heard; measured in tests on 60 spoken forms."""
FULL_TEXT_LIMIT = 200
COMMON = 0.03
"""A word in more than this share of a map's names says little about which is meant."""
_KIND_WORDS = frozenset(w for kind in BY_NAME.values() for w in (canonical(t) for t in kind.en) if " " not in w)
_ZH_KINDS = sorted({word for kind in BY_NAME.values() for word in kind.zh}, key=len, reverse=True)


class Names:
    """The names of one index, in memory."""

    def __init__(self, base: sqlite3.Connection, entries: dict[int, Entry], alt: dict[int, list[str]], towns: list[str]):
        self._base, self._entries = base, entries
        self._city = (frozenset(word for town in towns for word in canonical(town).split()) | _common(entries)) - _KIND_WORDS
        self._texts: list[str] = []  # canonical spellings, and beside them how they sound and whose they are
        self._owners: list[int] = []
        self._sounds: list[str] = []
        self._words: dict[int, frozenset[str]] = {}
        self._own: dict[int, list[set[str]]] = {}
        self._characters: list[tuple[str, int]] = []
        for row, entry in entries.items():
            self._add(row, entry, alt[row])

    def _add(self, row: int, entry: Entry, alt: list[str]) -> None:
        cuisine = entry.tags.get("cuisine", "").replace("_", " ").split(";")
        spellings = dict.fromkeys(canonical(t) for t in (entry.name, *alt) if t)
        self._own[row] = [set(text.split()) for text in (*spellings, *map(canonical, cuisine)) if text]
        words = {w for own in self._own[row] for w in own}
        kind = BY_NAME.get(entry.kind)
        if kind and words:
            said = [canonical(w) for w in (kind.name.replace("_", " "), *kind.en, *kind.zh)]
            words |= {w for text in said for w in text.split()}
        self._words[row] = frozenset(words)
        for text in spellings:
            self._texts.append(text)
            self._sounds.append(sounds(text))
            self._owners.append(row)
            if is_chinese(text):
                self._characters.append((text.replace(" ", ""), row))

    def find(self, heard: str, metres, radius_m: float, kinds: frozenset[str]) -> list[Entry]:
        """Entries that may be meant, the likeliest first. `metres(entry)`: distance to where the search begins; `kinds`: empty for any."""
        scores: dict[int, float] = defaultdict(float)
        query = canonical(heard)
        if is_chinese(query):
            self._by_characters(query.replace(" ", ""), scores)
        else:
            without_city = " ".join(w for w in query.split() if w not in self._city)
            wordings = {query: 1.0}
            if without_city and not set(without_city.split()) <= _KIND_WORDS:
                wordings.setdefault(without_city, 0.97)
            for words, weight in wordings.items():
                self._spelled(words, weight, scores)
                for owner in self._sharing_words(words):
                    scores[owner] = max(scores[owner], self._covered(words, owner) * weight)
        return self._ranked(heard, query, scores, metres, radius_m, kinds)

    def _ranked(self, heard: str, query: str, scores: dict[int, float], metres, radius_m: float, kinds: frozenset[str]) -> list[Entry]:
        said, number = set(query.split()), next((w for w in plain(heard).split()[:1] if w.isdigit()), None)
        own_words, ranked = said - _KIND_WORDS - self._city, []
        for owner, score in scores.items():
            entry, words = self._entries[owner], self._words[owner]
            if entry.kind == ADDRESS and (number is None or plain(entry.name).split()[0] != number):
                continue
            # "Condamine market" isn't the Condamine school: a kind that was said must be the place's own, or in its name.
            score += sum((3 if word in words else -12) for word in said & _KIND_WORDS)
            if own_words and not is_chinese(query) and max((fuzz.ratio(a, b) for a in own_words for b in words), default=0) < 60:
                score -= 20  # only the kind and the city agree: a car museum isn't the naval museum
            if score < GOOD_ENOUGH or (kinds and entry.kind not in kinds):
                continue
            distance = metres(entry)
            if distance > radius_m:
                continue
            score += 12 * entry.prominence - distance / 1000
            score += {STREET: 8 if said & STREET_WORDS else -8, ADDRESS: 8}.get(entry.kind, -8 if said & STREET_WORDS else 0)
            ranked.append((-score, owner))
        ranked.sort()
        return [self._entries[i] for score, i in ranked if score <= ranked[0][0] + 15]

    def _by_characters(self, query: str, scores: dict[int, float]) -> None:
        """Chinese names: whole, as a part of the name, or with a word for the kind that the name lacks ("外婆家餐厅")."""
        ending = next((word for word in _ZH_KINDS if query.endswith(word) and len(query) - len(word) >= 2), "")
        for text, share in ((query, 1.0), (query.removesuffix(ending), 0.97)) if ending else ((query, 1.0),):
            for name, owner in self._characters:
                if share < 1 and kind_of(ending).name != self._entries[owner].kind:
                    continue
                score = fuzz.ratio(text, name)
                if len(text) >= 2 and (text in name or len(name) >= 3 and name in text):
                    both = sorted((len(text), len(name)))
                    score = max(score, 80 + 16 * both[0] / both[1])
                elif len(text) < 4:
                    continue  # one character of three is another name
                scores[owner] = max(scores[owner], score * share)

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
            f"select rowid from place_words where place_words match ? order by rank limit {FULL_TEXT_LIMIT}", (match,))]

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


def _common(entries: dict[int, Entry]) -> frozenset[str]:
    """Words that so many places have in their names that they tell them apart no more than a town's name does ("Monte Carlo")."""
    named = [entry.name for entry in entries.values() if entry.name and entry.kind not in (STREET, ADDRESS)]
    counts = Counter(word for name in named for word in set(canonical(name).split()))
    return frozenset(word for word, count in counts.items() if len(named) > 100 and count > COMMON * len(named)) - STREET_WORDS


def far_as(near, entry: Entry) -> float:
    """Straight-line metres between a point and an entry."""
    return math.hypot((entry.lat - near.lat) * 111_320, (entry.lon - near.lon) * 111_320 * math.cos(math.radians(near.lat)))
