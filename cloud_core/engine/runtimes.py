"""Finds a runtime by name in the entry-point group `venus.runtimes`; nothing is imported by any other way."""
from importlib.metadata import entry_points

from cloud_core.engine.errors import UnknownRuntime
from cloud_core.front_end import FrontEnd

GROUP = "venus.runtimes"
BUILT_IN = {"cascade": "cloud_core.cascade.runtime:create"}
"""Used where the distribution's own table isn't installed (a bare checkout on the path)."""


def load(name: str, settings: dict | None = None) -> FrontEnd:
    """Create the front end; raises UnknownRuntime (naming those that exist) and whatever its own loading raises."""
    found = {e.name: e.load for e in entry_points(group=GROUP)}
    for other, target in BUILT_IN.items():
        if other not in found:
            from importlib.metadata import EntryPoint

            found[other] = EntryPoint(other, target, GROUP).load
    if name not in found:
        raise UnknownRuntime(f"VENUS_ENGINE_RUNTIME: {name!r}, allowed: {', '.join(sorted(found))}")
    return found[name]()(settings or {})
