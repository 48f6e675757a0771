"""Time zone and holiday calendar of a point: found when a map is indexed, so that what answers questions needn't hold the world's borders.

The opening-hours library knows both from coordinates, but keeps 107 MB of borders for it, and doesn't tell which country it found.
So the country is told from its public holidays: the code whose holidays of three years are those of the point.
"""
import string
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from opening_hours import OpeningHours

_BEGIN, _END = datetime(2025, 1, 1), datetime(2028, 1, 1)
Holidays = tuple[str, ...]


def _holidays(parsed: OpeningHours) -> Holidays:
    return tuple(begin.date().isoformat() for begin, _, state, _ in parsed.intervals(_BEGIN, _END) if str(state).upper().endswith("OPEN"))


@lru_cache(maxsize=1)
def _calendars() -> dict[Holidays, str]:
    """Every calendar that the library has, by its holidays; two countries with the same ones are as good as one."""
    found: dict[Holidays, str] = {}
    for code in (a + b for a in string.ascii_uppercase for b in string.ascii_uppercase):
        try:
            holidays = _holidays(OpeningHours("PH", country=code, timezone=ZoneInfo("UTC")))
        except Exception:  # no such country, or none with a calendar: the library's errors have no common base
            continue
        if holidays:
            found.setdefault(holidays, code)
    return found


@lru_cache(maxsize=4096)
def locate(lat: float, lon: float) -> tuple[str, str]:
    """(time zone, country code) at a point; "UTC" and "" where the library knows neither."""
    parsed = OpeningHours("PH", coords=(lat, lon))
    first = next(iter(parsed.intervals(_BEGIN, _END)), None)
    zone = getattr(first[0].tzinfo, "key", None) if first and first[0] else None
    return zone or "UTC", _calendars().get(_holidays(parsed), "")
