"""Levels, directions and complaints in a text ("full", "a bit warmer", "太热了") and the number they stand for in a slot."""
import json
import re
import tomllib
from functools import lru_cache
from pathlib import Path

from harness.plan.compile import Slot

FILE = Path(__file__).with_name("scales.toml")
_ORDER = ("mute", "half", "full", "high", "low", "crack", "off", "shut", "on", "open")
_SHARE = {"off": 0.0, "mute": 0.0, "shut": 0.0, "crack": 0.2, "low": 0.25, "half": 0.5, "high": 0.75, "full": 1.0, "open": 1.0}
_CONCEPT = {"#" + name: name for name in _ORDER}


@lru_cache(maxsize=1)
def _tables() -> dict[str, dict[str, re.Pattern]]:
    with open(FILE, "rb") as f:
        whole = tomllib.load(f)
    return {table: {name: _pattern(line) for name, line in rows.items()} for table, rows in whole.items()}


def _pattern(line: str) -> re.Pattern:
    english, _, chinese = line.partition("|")
    latin = sorted((p.strip() for p in english.split(",") if p.strip()), key=len, reverse=True)
    han = sorted((p.strip() for p in chinese.split(",") if p.strip()), key=len, reverse=True)
    # "turn it off", "switch the heating on": the particle may stand apart from its verb, so the bare particle counts.
    return re.compile(r"(?<![a-z'])(?:" + "|".join(map(re.escape, latin)) + r")(?![a-z])" + ("|" + "|".join(map(re.escape, han)) if han else ""))


def levels(text: str) -> list[str]:
    """Names of the levels said, the most telling first."""
    low = text.lower()
    table = _tables()["level"]
    return [name for name in _ORDER if table[name].search(low)]


def direction(text: str) -> int:
    """+1 more, -1 less, 0 none. What is asked for wins over what is complained of."""
    low = text.lower()
    complaints, rest = [], low
    for sign, name in ((1, "more"), (-1, "less")):
        for m in _tables()["complaint"][name].finditer(low):
            complaints.append((m.start(), sign))
            rest = rest[:m.start()] + " " * (m.end() - m.start()) + rest[m.end():]
    asked = [(m.start(), m.start() - m.end(), sign) for sign, name in ((1, "more"), (-1, "less"))
             for m in _tables()["direction"][name].finditer(rest)]
    state = _STATE.search(low)
    if state and (state["up"] or state["down"] or state["up2"] or state["down2"]):
        return 1 if state["up"] or state["up2"] else -1
    if asked:
        # A word that stands in both tables' longer phrases ("turn the heat down"): the last one decides.
        return max(asked)[2]
    if complaints:
        return min(complaints)[1]
    return (1 if state["more"] else -1) if state else 0


_STATE = re.compile(r"(?:有点儿?|有些|太|好|真|特别|非常|够|挺|很|怪)(?P<less>热|闷|吵|响|烫)|(?:有点儿?|有些|太|好|真|特别|非常|够|挺|很|怪)(?P<more>冷|凉|冻|冰)|(?:再|更)(?P<up>热|暖|高|大"
                    r"|响)|(?:再|更)(?P<down>冷|凉|低|小|轻)|(?P<up2>[热暖高大响])(?:一?点儿?|一?些)|(?P<down2>[冷凉低小轻])(?:一?点儿?|一?些)")


def complains(text: str) -> bool:
    low = text.lower()
    state = _STATE.search(low)
    return bool(state and (state["less"] or state["more"])) or any(p.search(low) for p in _tables()["complaint"].values())


def level_value(slot: Slot, text: str) -> float | None:
    """The number that the levels said mean for an unsigned slot; None where they mean nothing for it."""
    learned = {}
    for value, said in slot.values.items():
        levels_of = {w: k for w, k in said.items() if w in _CONCEPT}
        for concept, count in levels_of.items():  # "Fan on full" teaches what full is, not what on is
            if count == max(levels_of.values()):
                learned.setdefault(_CONCEPT[concept], float(json.loads(value)))
    said = levels(text)
    if "off" in learned and re.match(r"no (?!longer|more )[a-z]+(?: [a-z]+)?$", text, re.I):
        said = ["off"]  # "no fan, please"
    for name in said:
        if name in learned:
            return learned[name]
        if slot.low is None or slot.high is None:
            continue
        if name == "on" or (name in ("open", "shut") and not {"open", "shut"} & set(learned)):
            continue
        if name == "crack" and not learned.keys() & {"open", "shut", "crack"}:
            continue
        if name in ("off", "mute") and slot.low != 0:
            continue
        return _scaled(slot, _SHARE[name])
    return None


def switched_on(slot: Slot) -> float | None:
    """The value that "on" stands for in an example."""
    for value, said in slot.values.items():
        if "#on" in said and said["#on"] == max(said.values()) and not {"#full", "#open"} & {w for w, k in said.items() if k == said["#on"]}:
            return float(json.loads(value))
    return None


def _scaled(slot: Slot, share: float) -> float:
    """A share of the range; a short scale (a few steps) has its ends for low and high."""
    steps = slot.high - slot.low
    if steps <= 5 and 0 < share < 1:
        return {0.25: slot.low + 1, 0.2: slot.low + 1, 0.75: slot.high}.get(share, float(int(slot.low + steps * share + 0.5)))
    return slot.low + steps * share


def step(slot: Slot) -> float | None:
    """Size of the unsaid step of a signed slot, from its examples."""
    sizes = [abs(float(json.loads(v))) for v in slot.values]
    return min(sizes) if sizes else None
