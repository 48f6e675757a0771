"""The SQLite file: whose it is, what it refuses to be, what stays in it, and that checkpoints hold nobody up."""
import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import threading

import pytest

from harness.errors import JournalFault
from harness.journal.sqlite import CHECKPOINT_PAGES, SqliteStore
from journal_stores import record
from venus_edge.errors import ConfigError


async def refused(path):
    with pytest.raises(ConfigError) as caught:
        await SqliteStore(path).open()
    assert str(path) in caught.value.message
    return caught.value.message


async def filled(path):
    store = SqliteStore(path)
    await store.open()
    for n in range(1, 200):
        store.session("s").append(record(n, f"task-{n}", text="x" * 500))
    await store.close()


async def test_two_openers_are_refused(tmp_path):
    """In one process or in two: the second gets an error that names the file and who has it; then it is free again."""
    path = tmp_path / "j.sqlite"
    store = SqliteStore(path)
    await store.open()
    assert f"in use by process {os.getpid()}" in await refused(path)
    code = ("import asyncio, sys; from harness.journal.sqlite import SqliteStore; from venus_edge.errors import VenusError\n"
            "try: asyncio.run(SqliteStore(sys.argv[1]).open())\n"
            "except VenusError as e: print(e.code, e.message)")
    other = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=20)
    assert other.stdout.startswith("config journal file") and f"process {os.getpid()};" in other.stdout, other
    store.session("s").append(record(1))
    await store.close()
    again = SqliteStore(path)
    await again.open()
    assert again.sessions() == [("s", "")]
    await again.close()


async def test_what_is_no_journal_is_refused_and_left_alone(tmp_path):
    """A text, a damaged file, another program's database, a newer format, a folder: one error that names it; no byte is changed."""
    text = tmp_path / "notes.txt"
    text.write_text("these are the user's own notes, not a database\n" * 50)
    foreign = tmp_path / "foreign.sqlite"
    db = sqlite3.connect(foreign)
    db.execute("CREATE TABLE t (x)")
    db.commit()
    db.close()
    newer = tmp_path / "newer.sqlite"
    await filled(newer)
    db = sqlite3.connect(newer)
    db.execute("PRAGMA user_version = 2")
    db.close()
    damaged = tmp_path / "damaged.sqlite"
    await filled(damaged)
    pages = bytearray(damaged.read_bytes())
    pages[4096 * 3:4096 * 9] = os.urandom(4096 * 6)
    damaged.write_bytes(pages)
    cut = tmp_path / "cut.sqlite"
    await filled(cut)
    os.truncate(cut, 4096 * 4)
    for path, why in ((text, "not a readable journal"), (foreign, "another program"), (newer, "format 2"), (damaged, "damaged|not a readable"),
                      (cut, "damaged|not a readable")):
        before = path.read_bytes()
        message = await refused(path)
        assert any(part in message for part in why.split("|")), message
        assert path.read_bytes() == before
    await refused(tmp_path)
    (tmp_path / "file").write_text("")
    await refused(tmp_path / "file" / "j.sqlite")


async def test_an_unknown_setting_is_refused(tmp_path):
    """Naming the allowed values."""
    with pytest.raises(ConfigError, match="'OFF' is not one of NORMAL, FULL"):
        SqliteStore(tmp_path / "j.sqlite", "OFF")


@pytest.mark.parametrize("synchronous, level", [("NORMAL", 1), ("FULL", 2)])
async def test_the_file_is_set_up_as_asked(tmp_path, synchronous, level):
    """WAL, the asked sync level, secure deletion, no checkpoint by the writer."""
    store = SqliteStore(tmp_path / "j.sqlite", synchronous)
    await store.open()
    asked = {"journal_mode": "wal", "synchronous": level, "secure_delete": 1, "wal_autocheckpoint": 0}
    db = store._backend._db
    assert store._read(lambda: {name: db.execute(f"PRAGMA {name}").fetchone()[0] for name in asked}) == asked
    await store.close()


async def test_the_files_are_the_owners_alone(tmp_path):
    """All of them 0600 in a folder 0700, also where a file with wider rights was there before."""
    folder = tmp_path / "new" / "folder"
    old = tmp_path / "old.sqlite"
    old.touch(0o644)
    for path in (folder / "j.sqlite", old):
        store = SqliteStore(path)
        await store.open()
        store.session("s").append(record(1))
        await store.flushed()
        files = [f for f in path.parent.iterdir() if f.name.startswith(path.name)]
        assert len(files) == 4 and {stat.S_IMODE(f.stat().st_mode) for f in files} == {0o600}, files
        await store.close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_no_word_of_a_dropped_session_stays_in_the_files(tmp_path):
    """Soon after a drop or a forgotten task, the bytes themselves are gone from the file and from the log beside it."""
    path, secret = tmp_path / "j.sqlite", b"PHARMACY-NEAR-THE-CASINO"
    store = SqliteStore(path)
    await store.open()

    def found():
        return [f.name for f in tmp_path.iterdir() if secret in f.read_bytes()]

    for n in range(1, 100):
        store.session("s").append(record(n, f"task-{n}", prose=secret.decode()))
        store.session("stays").append(record(n, f"task-{n}", prose=(secret if n == 5 else b"other").decode()))
    store.note("s", "memory", secret.decode())
    await store.flushed()
    assert found()
    store.drop("s")
    store.session("stays").forget("task-5")
    await store.flushed()
    async with asyncio.timeout(10):
        while found():
            await asyncio.sleep(0.05)
    assert len(store.session("stays").records()) == 98
    await store.close()
    assert not found() and not (tmp_path / "j.sqlite-wal").exists()


async def test_checkpoints_keep_the_log_short_without_the_writer(tmp_path):
    """Under writing that never pauses the log is used anew instead of growing with all that is written; soon after the last write
    it is empty."""
    path = tmp_path / "j.sqlite"
    log = tmp_path / "j.sqlite-wal"
    store = SqliteStore(path)
    await store.open()
    journal, n, each = store.session("s"), 0, 0.0
    while not each or n * each < 2 * log.stat().st_size:
        for _ in range(100):
            n += 1
            journal.append(record(n, f"task-{n // 8}", text="x" * 300))
            await journal.flushed()
        each = each or log.stat().st_size / n
        assert n < 20_000, f"{log.stat().st_size >> 20} MB of log after {n * each / 2 ** 20:.0f} MB were written to it"
    assert n * each > CHECKPOINT_PAGES * 4096
    async with asyncio.timeout(10):
        while log.stat().st_size:
            await asyncio.sleep(0.05)
    assert len(journal.records()) == n
    await store.close()


async def test_nothing_of_sqlite_runs_on_the_event_loop(tmp_path, monkeypatch):
    """Opening, commits, reads and closing are the writer's; checkpoints are a third thread's."""
    seen, connect = [], sqlite3.connect

    def traced(*args, **kwargs):
        seen.append(("connect", threading.get_ident()))
        db = connect(*args, **kwargs)
        db.set_trace_callback(lambda sql: seen.append((sql.split("(")[0], threading.get_ident())))
        return db

    monkeypatch.setattr(sqlite3, "connect", traced)
    store = SqliteStore(tmp_path / "j.sqlite", "FULL")
    await store.open()
    for n in range(1, 3 * CHECKPOINT_PAGES):
        store.session("s").append(record(n))
    store.note("s", "k", 1)
    await store.flushed()
    async with asyncio.timeout(10):
        while not any("wal_checkpoint" in sql for sql, _ in seen):
            await asyncio.sleep(0.01)
    assert store.notes("s") == {"k": 1} and store.session("s").records()
    await store.close()
    where = {part: {thread for sql, thread in seen if part in sql} for part in ("INSERT", "COMMIT", "SELECT", "wal_checkpoint", "connect")}
    assert threading.get_ident() not in {thread for _, thread in seen}
    assert where["INSERT"] == where["COMMIT"] == where["SELECT"] and len(where["INSERT"]) == len(where["wal_checkpoint"]) == 1
    assert where["connect"] == where["INSERT"] | where["wal_checkpoint"] and not where["INSERT"] & where["wal_checkpoint"]


async def test_a_file_that_died_young_is_a_new_one(tmp_path):
    """An empty file, or one whose making was cut short before its tables were there."""
    path = tmp_path / "j.sqlite"
    path.touch()
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.close()
    store = SqliteStore(path)
    await store.open()
    store.session("s").append(record(1))
    await store.close()


async def test_a_full_disk_is_a_fault(tmp_path):
    """SQLite itself refuses to grow the file: the request is refused, and goes through when there is room."""
    store = SqliteStore(tmp_path / "j.sqlite")
    await store.open()
    db = store._backend._db
    pages = store._read(lambda: db.execute("PRAGMA page_count").fetchone()[0])
    store._read(lambda: db.execute(f"PRAGMA max_page_count = {pages + 2}").fetchone())
    for n in range(1, 40):
        store.session("s").append(record(n, f"task-{n}", text="x" * 900))
    with pytest.raises(JournalFault, match="SQLITE_FULL"):
        await asyncio.wait_for(store.flushed(), 5)
    db_limit = "PRAGMA max_page_count = 100000"
    # The writer retries meanwhile; the limit is lifted by the next of its own statements.
    store._backend._db = _Lifted(db, db_limit)
    async with asyncio.timeout(5):
        while not store.session("s").durable():
            await asyncio.sleep(0.01)
    assert len(store.session("s").records()) == 39
    await store.close()


class _Lifted:
    def __init__(self, db, sql):
        self._db, self._sql = db, sql

    def __getattr__(self, name):
        if self._sql:
            sql, self._sql = self._sql, ""
            self._db.execute(sql)
        return getattr(self._db, name)
