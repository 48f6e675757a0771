"""The journal's address: which store it means, and what is refused."""
import pytest

from harness import MemoryStore, open_store
from harness.journal.redis import RedisStore
from harness.journal.sqlite import SqliteStore
from venus_edge.errors import ConfigError


@pytest.mark.parametrize("address, kind", [("", MemoryStore), ("memory", MemoryStore), ("a/b.sqlite", SqliteStore), ("x?synchronous=full", SqliteStore),
                                           ("redis://127.0.0.1:6379/0?name=car-7", RedisStore), ("unix:///run/redis.sock", RedisStore)])
def test_each_kind_of_address_has_its_store(address, kind):
    """Nothing is opened yet."""
    assert type(open_store(address)) is kind


@pytest.mark.parametrize("address", ["http://host/db", "x?synchronous=OFF", "x?sync=FULL"])
def test_what_is_not_known_is_refused_with_what_is(address):
    """One line that names what is allowed."""
    with pytest.raises(ConfigError, match="journal: .*allowed: "):
        open_store(address)
