"""A process that appends to a store until it is killed, and says on standard output what was confirmed.

    python journal_child.py sqlite PATH NORMAL | python journal_child.py redis URL NAME

A line `SESSION N`: record N of that session, and all before it, was flushed. `- K`: note K was.
"""
import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from harness.journal import Record  # noqa: E402
from harness.journal.redis import RedisStore  # noqa: E402
from harness.journal.sqlite import SqliteStore  # noqa: E402

SESSIONS = 5
FILL = "words that take some room " * 20


async def one(store, session):
    journal, n = store.session(session, "tenant"), 0
    while True:
        for _ in range(1 + n % 7):
            n += 1
            journal.append(Record(n, float(n), f"task-{n // 10}", "execution", "a", "b", FILL[:n % 500], {"n": n, "fill": FILL}))
        if n % 13 == 0:
            journal.forget(f"task-{n // 10 - 3}")
        await journal.flushed()
        os.write(1, f"{session} {n}\n".encode())


async def notes(store):
    k = 0
    while True:
        k += 1
        store.note("s0", "k", k)
        store.drop(f"brief-{k - 1}")
        store.session(f"brief-{k}").append(Record(1, 0.0, "t", "execution", "a", "b", "", {}))
        await store.flushed()
        os.write(1, f"- {k}\n".encode())


async def main(kind, place, more):
    store = SqliteStore(place, more) if kind == "sqlite" else RedisStore(place, more)
    await store.open()
    await asyncio.gather(notes(store), *(one(store, f"s{k}") for k in range(SESSIONS)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
