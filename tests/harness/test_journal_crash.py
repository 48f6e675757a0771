"""kill -9 at any moment: what was confirmed is there, in order and whole, and nothing of it had to be waited for."""
import asyncio
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.journal.redis import RedisStore
from harness.journal.sqlite import SqliteStore
from harness.journal.testing import RedisServer
from journal_child import FILL
from journal_stores import record, redis_server  # noqa: F401 (fixture)

CHILD = Path(__file__).with_name("journal_child.py")


def killed_child(lines, *arguments):
    """Start the child, kill it after it confirmed `lines` times; the newest confirmation by session."""
    confirmed = {}
    with subprocess.Popen([sys.executable, str(CHILD), *map(str, arguments)], stdout=subprocess.PIPE, text=True) as child:
        for _ in range(lines):
            line = child.stdout.readline()
            assert line, f"the child ended by itself ({child.wait()})"
            confirmed.update([line.split()])
        child.kill()
        for line in child.stdout:  # what was confirmed before the kill arrived
            if line.endswith("\n"):
                confirmed.update([line.split()])
    return {session: int(n) for session, n in confirmed.items()}


async def check(store, confirmed):
    """A consistent prefix per session, at least to what was confirmed; and the store takes more."""
    begin = time.monotonic()
    await store.open()
    assert time.monotonic() - begin < 3.0, "a restart must not wait for the dead process"
    left = dict(store.sessions())
    briefs = [session for session in left if session.startswith("brief-")]
    assert len(briefs) <= 2, "a dropped session came back"
    note = confirmed.pop("-", 0)
    assert store.notes("s0").get("k", 0) >= note
    for session, n in confirmed.items():
        assert left[session] == "tenant"
        rows = store.session(session).records()
        numbers = [r.n for r in rows]
        assert numbers == sorted(set(numbers)) and numbers[-1] >= n
        kept = [k for k in range(max(numbers[-1] // 10 - 2, 0) * 10 + 1, numbers[-1] + 1)]  # those not yet forgotten: no gap
        assert numbers[-len(kept):] == kept
        for row in rows:
            assert row.reason == FILL[:row.n % 500] and row.changes == {"n": row.n, "fill": FILL} and row.task == f"task-{row.n // 10}"
        store.session(session).append(record(numbers[-1] + 1))
    await store.flushed()
    for session in left:
        store.drop(session)
    await store.close()


@pytest.mark.parametrize("synchronous", ["NORMAL", "FULL"])
async def test_sqlite_keeps_what_it_confirmed(tmp_path, synchronous):
    """Several kills at random points of one file's life."""
    rng = random.Random(synchronous)
    for _ in range(3):
        confirmed = await asyncio.to_thread(killed_child, rng.randint(1, 800), "sqlite", tmp_path / "j.sqlite", synchronous)
        await check(SqliteStore(tmp_path / "j.sqlite", synchronous), confirmed)


async def test_redis_keeps_what_it_confirmed(redis_server):
    """Several kills of the writing process; the next one takes over at once."""
    rng = random.Random(4)
    for _ in range(3):
        confirmed = await asyncio.to_thread(killed_child, rng.randint(1, 800), "redis", redis_server.url, "crash")
        await check(RedisStore(redis_server.url, "crash"), confirmed)


async def test_a_killed_redis_server_with_a_log_keeps_what_it_confirmed():
    """The server dies too: with `appendonly yes` and `appendfsync always` all that was confirmed comes back."""
    with RedisServer(persistent=True) as server:
        for lines in (50, 400):
            child = asyncio.to_thread(killed_child, lines, "redis", server.url, "crash")
            confirmed = await child
            server.kill()
            server.start()
            await check(RedisStore(server.url, "crash"), confirmed)
