"""What another way costs and saves, in one clause: "two minutes longer but no tolls"."""
from harness.host.providers import Route
from skills_automotive import spoken
from venus_edge.numbers import say_number

SAME_S = 45.0
"""Times that differ by less are "about the same"."""
SHORTER_M, SHORTER_PART = 300.0, 0.1
"""Where the times are the same, a length is worth a word when it differs by this much and by this part."""
_ROADS = (("tolls", "no tolls", "with tolls", "不收费", "有收费路段"), ("ferries", "no ferry", "with a ferry", "不坐渡轮", "要坐渡轮"),
          ("motorways", "no motorway", "on the motorway", "不走高速", "走高速"))


def compare(route: Route, other: Route, lang: str) -> str:
    """How `route` differs from `other`, the good after the bad."""
    zh, good, bad = lang == "zh", [], []
    dt = route.time_s - other.time_s
    same = abs(dt) < SAME_S
    if not same:
        (bad if dt > 0 else good).append(difference(dt, lang))
    for name, without, with_, ohne, mit in _ROADS:
        has, had = getattr(route, name), getattr(other, name)
        if has != had:
            (bad if has else good).append((mit if has else ohne) if zh else (with_ if has else without))
    dl = route.length_m - other.length_m
    if same and abs(dl) >= SHORTER_M and abs(dl) >= SHORTER_PART * max(other.length_m, 1.0):
        word = ("远" if dl > 0 else "近") if zh else ("farther" if dl > 0 else "shorter")
        length = spoken.distance(abs(dl), lang)
        (bad if dl > 0 else good).append(f"{word}{length}" if zh else f"{length} {word}")
    lead = ["时间差不多" if zh else "about as quick"] if same else []
    if not good and not bad:
        return lead[0]
    if not bad:
        return _list(lead + good, lang)
    if not good:
        return _list(lead + bad, lang) if not (same and not zh) else f"{lead[0]}, but {_list(bad, lang)}"
    return (f"{_list(lead + bad, lang)}，但{_list(good, lang)}" if zh else f"{_list(lead + bad, lang)} but {_list(good, lang)}")


def difference(seconds: float, lang: str) -> str:
    """"two minutes longer" / "多两分钟"; never less than a minute."""
    minutes = max(1, round(abs(seconds) / 60))
    if lang == "zh":
        return ("多" if seconds > 0 else "少") + ("两" if minutes == 2 else say_number(minutes, "zh")) + "分钟"
    unit = "one minute" if minutes == 1 else f"{say_number(minutes)} minutes"
    return f"{unit} {'longer' if seconds > 0 else 'quicker'}"


def longer(seconds: float, lang: str) -> str:
    """The same, where so little that nobody would notice is said to be that."""
    if seconds < SAME_S:
        return "几乎不绕路" if lang == "zh" else "hardly any longer"
    return difference(seconds, lang)


def _list(items: list[str], lang: str) -> str:
    return "，".join(items) if lang == "zh" else spoken.listed(items, "en")
