"""A route in words, English and Chinese: what it is called, what comes next, and the sentence for every kind of maneuver.

The routing engine has no Chinese, so both languages are written here from its maneuver types (narrative.toml).
"""
from pathlib import Path

from harness.host.providers import Maneuver, Route
from skills_automotive import spoken
from skills_automotive.navigation.valhalla_answers import ARRIVALS
from venus_edge.numbers import say_number
from venus_edge.wording import Wording

WORDS = Wording(Path(__file__).with_name("narrative.toml"))
KINDS = {0: "straight", 1: "start", 2: "start", 3: "start", 4: "arrive", 5: "arrive_right", 6: "arrive_left", 7: "straight", 8: "straight",
         9: "slight_right", 10: "right", 11: "sharp_right", 12: "uturn_right", 13: "uturn_left", 14: "sharp_left", 15: "left",
         16: "slight_left", 17: "ramp", 18: "ramp_right", 19: "ramp_left", 20: "exit_right", 21: "exit_left", 22: "keep_straight",
         23: "keep_right", 24: "keep_left", 25: "merge", 26: "roundabout", 27: "leave_roundabout", 28: "ferry", 29: "leave_ferry",
         37: "merge_right", 38: "merge_left"}
ROUNDABOUT, LEAVE_ROUNDABOUT = 26, 27
QUIET = frozenset((0, 1, 2, 3, 7, 8, 22, LEAVE_ROUNDABOUT))
"""Nothing is to be done there, or it was said when the roundabout was."""
_MINOR = ("tunnel", "rond-point", "giratoire", "bretelle", "échangeur", "voie ")
_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth".split()


def via(route: Route, destination_street: str) -> str:
    """The street that tells the way best: the longest, a tunnel or roundabout only for want of another. "" when there is none."""
    lengths = street_lengths(route)
    others = {name: length for name, length in lengths.items() if name != destination_street}
    return max(others, key=others.get) if others else ""


def apart(route: Route, other: Route, destination_street: str) -> str:
    """The street that tells this way from another: its longest that the other doesn't use; "" when there is none."""
    lengths = street_lengths(route)
    own = {name: length for name, length in lengths.items() if name not in other.streets and name != destination_street}
    return max(own, key=own.get) if own else ""


def street_lengths(route: Route) -> dict[str, float]:
    """Metres on each named street, tunnels and roundabouts at a quarter."""
    lengths: dict[str, float] = {}
    for maneuver in route.maneuvers:
        if maneuver.street:
            weight = 0.25 if maneuver.street.lower().startswith(_MINOR) else 1.0
            lengths[maneuver.street] = lengths.get(maneuver.street, 0.0) + maneuver.length_m * weight
    return lengths


def phrase(maneuvers: tuple[Maneuver, ...], at: int, lang: str) -> str:
    """What to do at maneuver `at`, without distance: "turn right onto Rue Grimaldi" / "右转进入Rue Grimaldi"."""
    maneuver = maneuvers[at]
    kind, street = KINDS.get(maneuver.type, "straight"), maneuver.street
    fields = {"exit": ""}
    if maneuver.type == ROUNDABOUT:
        leave = maneuvers[at + 1] if at + 1 < len(maneuvers) and maneuvers[at + 1].type == LEAVE_ROUNDABOUT else None
        street = leave.street if leave else ""
        if 0 < maneuver.exit < len(_ORDINALS):
            kind = "roundabout_exit"
            fields["exit"] = say_number(maneuver.exit, "zh") if lang == "zh" else _ORDINALS[maneuver.exit]
    zh = lang == "zh"
    fields["onto"] = (f"进入{street}" if zh else f" onto {street}") if street else ""
    fields["onto_on"] = (f"沿{street}" if zh else f" on {street}") if street else ""
    towards = maneuver.sign or street
    fields["towards"] = (f"，往{towards}方向" if zh else f" towards {towards}") if towards else ""
    return WORDS.say(f"maneuver.{kind}", lang, **fields)


def next_step(route: Route, lang: str) -> tuple[str, str]:
    """(distance to the next thing to do, what to do there), both in words."""
    steps = route.maneuvers
    ahead = steps[0].length_m if len(steps) > 1 else route.length_m
    at = min(1, len(steps) - 1)
    while steps[at].type in QUIET and at + 1 < len(steps):
        ahead += steps[at].length_m
        at += 1
    if steps[at].type in ARRIVALS:
        return spoken.distance(ahead, lang), WORDS.say("maneuver.arrive", lang)
    return spoken.distance(ahead, lang), phrase(steps, at, lang)


def ahead(maneuvers: tuple[Maneuver, ...], at: int, distance_m: float, lang: str, name: str = "", then: int | None = None) -> str:
    """"In two hundred metres, turn right onto Rue Grimaldi, then turn left." `name`: what is reached at an arrival."""
    said = spoken.distance(distance_m, lang)
    if maneuvers[at].type in ARRIVALS:
        return WORDS.say("prompt.arrive_ahead" + _side(maneuvers[at]), lang, distance=said, name=name or destination_word(lang))
    return WORDS.say("prompt.ahead", lang, distance=said, phrase=_joined(maneuvers, at, then, lang))


def now(maneuvers: tuple[Maneuver, ...], at: int, lang: str, name: str = "", then: int | None = None) -> str:
    """"Turn right onto Rue Grimaldi, then turn left." / "You've reached the casino, on the left."."""
    if maneuvers[at].type in ARRIVALS:
        return WORDS.say("prompt.arrived" + _side(maneuvers[at]), lang, name=name or destination_word(lang))
    text = WORDS.say("prompt.now", lang, phrase=_joined(maneuvers, at, then, lang))
    return text[:1].upper() + text[1:]


def changed(maneuvers: tuple[Maneuver, ...], at: int, distance_m: float | None, lang: str) -> str:
    """"New route: in one hundred metres, turn left." for the first thing to do on another route; without a distance it is to be done now."""
    what = phrase(maneuvers, at, lang)
    if distance_m is None:
        return WORDS.say("prompt.rerouted_now", lang, phrase=what)
    return WORDS.say("prompt.rerouted", lang, distance=spoken.distance(distance_m, lang), phrase=what)


def follow(street: str, distance_m: float, lang: str) -> str:
    """"Follow Rue Grimaldi for three kilometres."."""
    said = spoken.distance(distance_m, lang)
    return WORDS.say("prompt.start", lang, street=street, distance=said) if street else WORDS.say("prompt.start_plain", lang, distance=said)


def destination_word(lang: str) -> str:
    return WORDS.say("name.destination", lang)


def _joined(maneuvers, at: int, then: int | None, lang: str) -> str:
    first = phrase(maneuvers, at, lang)
    return first if then is None else WORDS.say("prompt.chained", lang, first=first, second=phrase(maneuvers, then, lang))


def _side(maneuver: Maneuver) -> str:
    return {5: "_right", 6: "_left"}.get(maneuver.type, "")
