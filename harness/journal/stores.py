"""Chooses the journal's store by its address.

    memory                               nothing survives
    run/journal.sqlite                   a file; `?synchronous=FULL` survives a power cut too, not only a killed process
    redis://127.0.0.1:6379/0?name=car-7  a Redis or Valkey server; `name` (default harness) tells the stores of several processes apart
"""
from urllib.parse import parse_qs, urlencode

from harness.journal import MemoryStore, Store
from venus_edge.errors import ConfigError

SERVERS = ("redis", "rediss", "unix")
LEVELS = ("NORMAL", "FULL")


def open_store(address: str) -> Store:
    """The store, not opened yet; "" is `memory`. Raises ConfigError for an address or an option that is not known."""
    place, _, query = address.partition("?")
    options = {key: values[-1] for key, values in parse_qs(query, keep_blank_values=True).items()}
    kind, sep, _ = place.partition("://")
    if place in ("", "memory"):
        return MemoryStore()
    if sep and kind not in SERVERS:
        raise ConfigError(f"journal: {kind}:// is not known; allowed: a file, {', '.join(f'{s}://…' for s in SERVERS)}, memory")
    if sep:
        from harness.journal.redis import RedisStore

        name = options.pop("name", "harness")
        return RedisStore(place + ("?" + urlencode(options) if options else ""), name)
    level = options.pop("synchronous", "NORMAL").upper()
    if options or level not in LEVELS:
        raise ConfigError(f"journal: '{query}' is not known for a file; allowed: synchronous={' or '.join(LEVELS)}")
    from harness.journal.sqlite import SqliteStore

    return SqliteStore(place, level)
