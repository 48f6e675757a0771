"""How places are spoken of: their names, where they are, what they have, and what isn't known of them. Wording in phrases.toml."""
import re
from pathlib import Path
from typing import Any

from harness.host.providers import Place
from skills_automotive import spoken
from skills_automotive.poi.attributes import NEEDS, PLUGS
from skills_automotive.poi.categories import BY_NAME, Kind, phrase
from skills_automotive.poi.hours import spoken_time
from venus_edge.numbers import say_number
from venus_edge.wording import LANGUAGES, Wording

_WORDS = Wording(Path(__file__).with_name("phrases.toml"))
_ARTICLES = ("le ", "la ", "les ", "l'", "the ")
SOON_S = 24 * 3600.0
NO_DETOUR_S = 30.0


def phrased(key: str, lang: str, **fields: Any) -> str:
    """One fragment of phrases.toml."""
    return _WORDS.say(key, lang, **fields)


def in_both(words, place: Place) -> dict[str, str]:
    """`words` (said or kind_words) of a place in every language."""
    return {lang: words(place, lang) for lang in LANGUAGES}


def said(place: Place, lang: str) -> str:
    """How to speak of a place: "the Casino de Monte Carlo", "Rue Grimaldi", "a charging station on Avenue Albert II"."""
    kind: Kind | None = BY_NAME.get(place.category)
    if place.tags.get("unnamed") and kind:
        return phrase(place.category, place.street, lang)
    name = " ".join(place.name.replace(" - ", " ").replace("•", " ").replace("’", "'").split())
    if lang == "zh" or kind is None:
        return name
    if place.category == "station" and "gare" not in name.lower() and "station" not in name.lower():
        name += " station"
    return f"the {name}" if kind.landmark and kind.name != "town" and not name.lower().startswith(_ARTICLES) else name


def kind_words(place: Place, lang: str) -> str:
    """The plain word for its kind: "charging station"."""
    kind = BY_NAME.get(place.category)
    return (kind.zh if lang == "zh" else kind.en)[0] if kind else ""


def away(seconds: float | None, distance_m: float, lang: str, *, there: bool = False) -> str:
    """"about four minutes away", "about eight hundred metres away in a straight line"; `there`: counted from the destination."""
    key = "away" if not there else "from_there"
    if seconds is None:
        return phrased(f"{key}.straight", lang, distance=spoken.distance(distance_m, lang))
    return phrased(f"{key}.drive", lang, minutes=spoken.minutes(seconds, lang))


def detour(seconds: float | None, lang: str) -> str:
    """What a stop adds to the way; where no map tells, that it isn't known."""
    if seconds is None:
        return phrased("detour.unknown", lang)
    return phrased("detour.none", lang) if seconds < NO_DETOUR_S else phrased("detour.some", lang, minutes=spoken.minutes(seconds, lang))


def where(name: str, unnamed: bool, street: str, lang: str, *, copula: bool) -> str:
    """"Planet Sushi on Rue Grimaldi"; for a nameless place the street alone; in Chinese with its verb, where the sentence needs one."""
    if unnamed:
        return phrased("where.unnamed", lang, street=street) if street else ""
    text = phrased("where.street", lang, name=name, street=street) if street and street not in name else name
    return phrased("where.is", lang, place=text) if copula else text


def having(names: list[str], plug: str, power_kw: float, lang: str) -> list[str]:
    """What was wanted and is there: ["with wheelchair access", "free of charge"]; `power_kw` is what was wanted at least."""
    found = [NEEDS[name].having[lang] for name in names if name in NEEDS]
    if "plug" in names:
        found.append(phrased("having.plug", lang, plug=plug_name(plug, lang)))
    if "power" in names:
        found.append(phrased("having.at_least", lang, power=say_number(power_kw, lang)))
    return found


def whether(names: list[str], plug: str, lang: str) -> list[str]:
    """What was wanted and isn't known: ["whether it's free"]."""
    found = [NEEDS[name].whether[lang] for name in names if name in NEEDS]
    if "plug" in names:
        found.append(phrased("whether.plug", lang, plug=plug_name(plug, lang)))
    if "power" in names:
        found.append(phrased("whether.power", lang))
    if "hours" in names:
        found.insert(0, phrased("whether.hours", lang))
    return found


def plug_name(plug: str, lang: str) -> str:
    """A kind of plug in words."""
    return phrased(f"plug.{plug}", lang) if plug in PLUGS else plug


def until(changes_at: str, lang: str, *, in_s: float | None = None) -> str:
    """" until nine in the evening" where the change is near enough to be worth a word, else ""."""
    if not changes_at or in_s is None or in_s > SOON_S:
        return ""
    return phrased("until", lang, time=spoken_time(changes_at, lang))


def hours_today(place: Place, lang: str) -> str:
    """A sentence about today's hours: the times, closed all day, round the clock, or unknown."""
    spans = place.hours_today
    if spans is None:
        return phrased("hours.unknown", lang)
    if not spans:
        return phrased("hours.none", lang)
    if len(spans) == 1 and spans[0][0][11:16] == spans[0][1][11:16] == "00:00":
        return phrased("hours.always", lang)
    texts = [phrased("hours.span", lang, begin=spoken_time(begin, lang), end=spoken_time(end, lang)) for begin, end in spans]
    now = phrased({True: "hours.open", False: "hours.closed", None: "hours.maybe"}[place.open_now], lang)
    return phrased("hours.today", lang, spans=listed(texts, lang), now=now)


def listed(items: list[str], lang: str, *, last: str = "and") -> str:
    """"a, b and c", or with "or"."""
    if lang == "zh" or len(items) < 2:
        return "、".join(items) if lang == "zh" else "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def number(phone: str, lang: str) -> str:
    """A phone number digit by digit, in the groups it is written in: "plus three seven seven, nine nine"."""
    groups = [part for group in re.findall(r"\+?\d+", phone) for part in ([group] if len(group) <= 4 else re.findall(r"\+?\d{1,3}", group))]
    said_groups = []
    for group in groups:
        digits = [("幺" if digit == "1" else say_number(int(digit), "zh")) if lang == "zh" else say_number(int(digit)) for digit in group.lstrip("+")]
        plus = phrased("plus", lang) if group.startswith("+") else ""
        said_groups.append(plus + ("" if lang == "zh" else " ").join(digits))
    return ("，" if lang == "zh" else ", ").join(said_groups)


def cardinal(n: int, lang: str) -> str:
    """A small count before a noun."""
    return "两" if lang == "zh" and n == 2 else say_number(n, lang)


def address(place: Place, lang: str) -> str:
    """House number and street, the number in words; "" where the map has none."""
    house, street = place.tags.get("addr:housenumber", ""), place.tags.get("addr:street", place.street)
    if not house or not street:
        return ""
    words = re.sub(r"\d+", lambda m: f" {_house_number(m[0], lang)} ", house)
    words = " ".join(words.split())
    return phrased("address", lang, number=words if lang == "en" else words.replace(" ", ""), street=street)


def _house_number(digits: str, lang: str) -> str:
    """Long ones digit by digit, as people read them."""
    if len(digits) > (2 if lang == "zh" else 3):
        return ("" if lang == "zh" else " ").join(say_number(int(digit), lang) for digit in digits)
    return say_number(int(digits), lang)


def ordinal_word(n: int, lang: str) -> str:
    """"second", "twelfth"; in Chinese the number that follows 第."""
    return say_number(n, "zh") if lang == "zh" else phrased("ordinals", lang).split()[n - 1]
