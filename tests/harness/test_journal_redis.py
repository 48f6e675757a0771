"""The Redis store's own rules: one process per name, a takeover that fences the old one, clear refusals."""
import asyncio

import pytest
import redis

from harness.errors import JournalFault
from harness.journal.redis import RedisStore
from journal_stores import record, redis_server  # noqa: F401 (fixture)
from venus_edge.errors import ConfigError


async def test_two_processes_of_one_name_are_refused(redis_server):
    """The second opener is told who has it; another name is free; after closing the name is free too."""
    store = RedisStore(redis_server.url, "twice")
    await store.open()
    with pytest.raises(ConfigError, match="in use by process [0-9]+ on .*a name of its own"):
        await RedisStore(redis_server.url, "twice").open()
    other = RedisStore(redis_server.url, "other")
    await other.open()
    other.session("s").append(record(1))
    await other.flushed()
    assert store.sessions() == [] and store.session("s").records() == []
    other.drop("s")
    await other.close()
    await store.close()
    again = RedisStore(redis_server.url, "twice")
    await again.open()
    await again.close()


async def test_a_process_that_lost_its_place_writes_nothing(redis_server):
    """Asleep for longer than its lease, it finds a successor: what it still appends never reaches the server."""
    old = RedisStore(redis_server.url, "fence")
    await old.open()
    old.session("s").append(record(1))
    await old.flushed()
    server = redis.Redis.from_url(redis_server.url, decode_responses=True)
    server.delete("{venus:fence}:lease")  # as the server does by itself after LEASE_S without a sign of life
    new = RedisStore(redis_server.url, "fence")
    await new.open()
    assert [r.n for r in new.session("s").records()] == [1]
    old.session("s").append(record(2))
    old.note("s", "k", 1)
    with pytest.raises(JournalFault, match="taken over"):
        await asyncio.wait_for(old.flushed(), 5)
    with pytest.raises(JournalFault):
        await old.close()
    new.session("s").append(record(3))
    await new.flushed()
    assert [r.n for r in new.session("s").records()] == [1, 3] and new.notes("s") == {}
    new.drop("s")
    await new.close()
    assert server.keys("{venus:fence}*") == []
    server.close()


async def test_nothing_is_left_on_the_server(redis_server):
    """No key of a forgotten task or a dropped session, also of one that came and went within one commit."""
    store = RedisStore(redis_server.url, "left")
    await store.open()
    server = redis.Redis.from_url(redis_server.url, decode_responses=True)
    store.session("stays").append(record(1, "task-1"))
    store.session("stays").append(record(2, "task-2"))
    store.session("old").append(record(1))
    await store.flushed()
    store.session("stays").forget("task-1")
    store.session("old").append(record(2, "task-2"))
    store.drop("old")
    store.session("brief:t:x").append(record(1))
    store.note("brief:t:x", "k", 1)
    store.drop("brief:t:x")
    await store.flushed()
    base = "{venus:left}:"
    assert set(server.keys(base + "*")) == {base + key for key in ("owner", "lease", "sessions", "s:stays:tasks", "s:stays:t:task-2")}
    assert server.smembers(base + "s:stays:tasks") == {"task-2"} and server.hgetall(base + "sessions") == {"stays": ""}
    store.drop("stays")
    await store.close()
    assert server.keys(base + "*") == []
    server.close()


async def test_a_refusal_of_the_server_is_a_fault_and_heals(redis_server):
    """Out of memory: nothing of the batch is kept, nobody hangs, and all of it is there when the server takes it."""
    store = RedisStore(redis_server.url, "oom")
    await store.open()
    server = redis.Redis.from_url(redis_server.url, decode_responses=True)
    server.config_set("maxmemory", 1)
    try:
        store.session("s").append(record(1))
        store.session("s").append(record(2, "task-2"))
        with pytest.raises(JournalFault, match="OutOfMemory"):
            await asyncio.wait_for(store.flushed(), 5)
        assert server.keys("{venus:oom}:s:*") == []
    finally:
        server.config_set("maxmemory", 0)
        server.close()
    async with asyncio.timeout(5):
        while not store.session("s").durable():
            await asyncio.sleep(0.01)
    assert [r.n for r in store.session("s").records()] == [1, 2]
    store.drop("s")
    await store.close()


async def test_a_server_that_is_not_there_is_named_without_its_password():
    """One error, within seconds."""
    with pytest.raises(ConfigError) as caught:
        await asyncio.wait_for(RedisStore("redis://:secret@127.0.0.1:1/0").open(), 10)
    assert "redis://127.0.0.1:1/0" in caught.value.message and "secret" not in caught.value.message


@pytest.mark.parametrize("url, name", [("nonsense", "x"), ("http://127.0.0.1", "x"), ("redis://127.0.0.1", "a{b}"), ("redis://127.0.0.1", "")])
def test_an_address_or_name_that_cannot_be_used_is_refused(url, name):
    with pytest.raises(ConfigError, match="journal (server|name)"):
        RedisStore(url, name)
