"""What a place's tags tell about what was wanted of it: yes, no, or nothing. The table of attributes is needs.toml."""
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

from harness.host.providers import Wants

PLUGS = {
    "type2": ("socket:type2", "socket:type2_cable"),
    "ccs": ("socket:type2_combo", "socket:type1_combo", "socket:ccs"),
    "chademo": ("socket:chademo",),
    "gbt": ("socket:gb_dc", "socket:gb_ac"),
    "tesla": ("socket:tesla_supercharger", "socket:tesla_supercharger_ccs", "socket:nacs", "socket:tesla_destination"),
    "schuko": ("socket:schuko", "socket:typee"),
}
_NONE = ("no", "0", "none")
_POWER = re.compile(r"(\d+(?:[.,]\d+)?)\s*(kva|kw|w)?", re.I)


@dataclass(frozen=True)
class Need:
    """One attribute: the tags that tell it, the words that ask for it, and how it is spoken of, by language."""

    name: str
    yes: frozenset[str]
    no: frozenset[str]
    kinds: frozenset[str]
    """Kinds of place that it makes sense for; empty: all."""
    words: dict[str, tuple[str, ...]]
    having: dict[str, str]
    whether: dict[str, str]

    def told(self, tags: dict) -> bool | None:
        """Whether a place with these tags has it; None where they don't tell."""
        for told, listed in ((True, self.yes), (False, self.no)):
            for tag in listed:
                key, _, value = tag.partition("=")
                if key in tags and (value == "*" or value in tags[key].split(";")):
                    return told
        return None


def _read() -> dict[str, Need]:
    table = tomllib.loads(Path(__file__).with_name("needs.toml").read_text(encoding="utf-8"))
    return {name: Need(name, frozenset(row["yes"]), frozenset(row["no"]), frozenset(row.get("kinds", ())),
                       {lang: tuple(row[lang]) for lang in ("en", "zh")}, {lang: row[f"{lang}_having"] for lang in ("en", "zh")},
                       {lang: row[f"{lang}_whether"] for lang in ("en", "zh")}) for name, row in table.items()}


NEEDS = _read()
def lacks(tags: dict, wants: Wants) -> bool:
    """Whether a place surely isn't what was wanted, opening hours apart."""
    if wants.cuisine and not ("cuisine" in tags and set(wants.cuisine) & set(_split(tags["cuisine"]))):
        return True
    return any(told is False for _, told in _told(tags, wants))


def unsure(tags: dict, wants: Wants, open_now: bool | None) -> tuple[str, ...]:
    """What was wanted and isn't told of a place."""
    names = tuple(name for name, told in _told(tags, wants) if told is None)
    return names + (("hours",) if wants.open_now and open_now is None else ())


def _told(tags: dict, wants: Wants) -> Iterator[tuple[str, bool | None]]:
    for name in sorted(wants.needs):
        yield name, NEEDS[name].told(tags)
    if wants.plug:
        yield "plug", has_plug(tags, wants.plug)
    if wants.min_power_kw:
        power = power_kw(tags, wants.plug)
        yield "power", None if power is None else power >= wants.min_power_kw


def _split(values: str) -> list[str]:
    return [value.strip().lower().replace(" ", "_") for value in values.split(";")]


def plugs(tags: dict) -> list[str] | None:
    """The kinds of plug at a charging station; None where the map doesn't tell."""
    if not any(key.startswith("socket:") and key.count(":") == 1 for key in tags):
        return None
    return [plug for plug, keys in PLUGS.items() if any(tags.get(key, "no") not in _NONE for key in keys)]


def has_plug(tags: dict, plug: str) -> bool | None:
    """Whether there is such a plug; the plugs that a map lists are taken for all there are."""
    found = plugs(tags)
    return None if found is None else plug in found


def power_kw(tags: dict, plug: str = "") -> float | None:
    """The greatest output of a station, of one plug where that is told; None where nothing is told."""
    keys = [f"{key}:output" for key in PLUGS.get(plug, ())]
    told = [tags[key] for key in keys if key in tags]
    told = told or [value for key, value in tags.items() if key.endswith(":output")]
    found = [_kilowatts(*match.groups()) for value in told for match in _POWER.finditer(value)]
    return max(found, default=None)


def _kilowatts(number: str, unit: str | None) -> float:
    value = float(number.replace(",", "."))
    return value / 1000 if (unit or "").lower() == "w" or value > 2000 else value
