"""Times and distances as people say them, in English and Chinese."""
from venus_edge.numbers import say_number


def minutes(seconds: float, lang: str) -> str:
    """"less than a minute", "about four minutes", "about an hour and ten minutes"."""
    whole = round(seconds / 60)
    if lang == "zh":
        if seconds < 60:
            return "不到一分钟"
        hours, rest = divmod(whole, 60)
        return "大约" + (f"{_liang(hours)}小时" if hours else "") + (f"{_liang(rest)}分钟" if rest else "")
    if seconds < 60:
        return "less than a minute"
    if whole == 1:
        return "about a minute"
    hours, rest = divmod(whole, 60)
    parts = []
    if hours:
        parts.append("an hour" if hours == 1 else f"{say_number(hours)} hours")
    if rest:
        parts.append("one minute" if rest == 1 else f"{say_number(rest)} minutes")
    return "about " + " and ".join(parts)


def distance(metres: float, lang: str) -> str:
    """"two hundred and fifty metres" in steps of ten (fifty from 200 m), "one point four kilometres" from 1 km."""
    step = 50 if metres >= 200 else 10
    near = max(step, round(metres / step) * step)
    if near < 1000:
        return f"{say_number(near, 'zh')}米" if lang == "zh" else f"{say_number(near)} metres"
    km = round(metres / 1000, 1) if metres < 10_000 else round(metres / 1000)
    if lang == "zh":
        return f"{_liang(km)}公里"
    return "one kilometre" if km == 1 else f"{say_number(km)} kilometres"


def _liang(value: float) -> str:
    return "两" if value == 2 else say_number(value, "zh")


def listed(items: list[str], lang: str) -> str:
    """"a", "a and b", "a, b and c"."""
    if lang == "zh":
        return "、".join(items)
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]
