"""One row of the places index, as it lies in memory."""
from dataclasses import dataclass, field

from skills_automotive.poi.hours import Parsed


@dataclass(frozen=True, slots=True)
class Entry:
    """A place, street or address. `hours`: None where the map has none that can be read."""

    osm: str
    kind: str
    name: str
    lat: float
    lon: float
    street: str
    prominence: float
    tags: dict = field(default_factory=dict)
    hours_text: str = ""
    hours: Parsed | None = None
