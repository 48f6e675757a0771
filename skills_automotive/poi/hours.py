"""Opening hours: what OpenStreetMap's `opening_hours` says about a moment, with public holidays, and how times of day are spoken.

Country and time zone come from where the place is (zones.py). A text that no grammar covers is unknown hours, never closed.
"""
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from opening_hours import OpeningHours

from venus_edge.numbers import say_number

Parsed = OpeningHours
_UTC = ZoneInfo("UTC")  # the parser asks a zone for its key, which datetime.timezone has not


def parse(text: str, lat: float, lon: float, zone: str, country: str) -> OpeningHours | None:
    """Parsed hours; None for the few per cent of real strings that no grammar covers.

    The position tells when the sun sets; `zone` and `country` ("" for no holidays) are those of zones.locate().
    """
    try:
        return OpeningHours(text, timezone=ZoneInfo(zone), country=country or None, coords=(lat, lon), auto_country=False, auto_timezone=False)
    except Exception:  # the parser raises its own and plain errors alike
        return None


def state(parsed: OpeningHours | None, wall: float) -> tuple[bool | None, str, float | None]:
    """(open, closed or None for unknown; ISO local time of the next change or ""; seconds to it) at `wall` seconds since the epoch."""
    if parsed is None:
        return None, "", None
    now = datetime.fromtimestamp(wall, _UTC)
    if parsed.is_unknown(now):
        return None, "", None
    change = parsed.next_change(now)
    return parsed.is_open(now), change.isoformat() if change else "", change.timestamp() - wall if change else None


def today(parsed: OpeningHours, wall: float) -> tuple[tuple[str, str], ...] | None:
    """ISO begin and end of the opening times of the place's own day at `wall`; () when closed all day, None when unknown."""
    local = _local(parsed, wall)
    if local is None:
        return None
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    found = []
    for begin, end, what, _ in parsed.intervals(midnight, midnight + timedelta(days=1)):
        name = str(what).rsplit(".", 1)[-1].upper()
        if name == "UNKNOWN":
            return None
        if name == "OPEN":
            found.append(((begin or midnight).isoformat(), (end or midnight + timedelta(days=1)).isoformat()))
    return tuple(found)


def _local(parsed: OpeningHours, wall: float) -> datetime | None:
    """`wall` in the place's own time, which only its answers tell."""
    now = datetime.fromtimestamp(wall, _UTC)
    first = next(iter(parsed.intervals(now, now + timedelta(seconds=1))), None)
    zone = first[0].tzinfo if first and first[0] else None
    return now.astimezone(zone) if zone else None


def spoken_time(iso: str, lang: str) -> str:
    """"nine thirty in the morning", "noon", "midnight" / "早上九点半", "零点"."""
    moment = datetime.fromisoformat(iso)
    hour, minute = moment.hour, moment.minute
    if lang == "zh":
        part = next(name for limit, name in ((6, "凌晨"), (11, "早上"), (13, "中午"), (18, "下午"), (24, "晚上")) if hour < limit)
        twelve = hour if hour <= 12 else hour - 12
        if hour == 0 and minute == 0:
            return "零点"
        said = ("两" if twelve == 2 else say_number(twelve, "zh")) + "点"
        return part + said + ("" if minute == 0 else "半" if minute == 30 else ("零" if minute < 10 else "") + say_number(minute, "zh") + "分")
    if minute == 0 and hour in (0, 12):
        return "noon" if hour else "midnight"
    part = next(name for limit, name in ((12, "in the morning"), (18, "in the afternoon"), (22, "in the evening"), (24, "at night")) if hour < limit)
    said = say_number(hour % 12 or 12)
    return f"{said}{'' if minute == 0 else (' oh ' if minute < 10 else ' ') + say_number(minute)} {part}"
