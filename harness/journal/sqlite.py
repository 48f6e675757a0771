"""The journal in an SQLite file: WAL, one row per transition, one transaction per group commit.

`synchronous="NORMAL"`: what is in the store survives the process (kill -9), not a power cut; `"FULL"` survives both and costs an
fsync per commit. No commit and no checkpoint runs on the event loop; checkpoints run beside the commits, on a thread and a
connection of their own. The file is its owner's alone (mode 0600), deleted words are overwritten in it, and the log beside it is
emptied once nothing has been written for REST_S. Another process that opens the same file is refused.
"""
import contextlib
import fcntl
import logging
import os
import sqlite3
import threading
from pathlib import Path
from typing import Sequence

from harness.journal.backend import Op
from harness.journal.writer import DurableJournal, DurableStore
from venus_edge.errors import ConfigError
from venus_edge.metrics import METRICS

log = logging.getLogger("harness.journal")
APPLICATION_ID = 0x564E534A
FORMAT = 1
SYNCHRONOUS = ("NORMAL", "FULL")
BUSY_MS = 100
"""How long one attempt waits for another connection's lock; then the writer's own retry goes on."""
REST_S = 1.0
CHECKPOINT_PAGES = 1000
"""About how many pages of log there are between two checkpoints (4 MB)."""
MOST_PAGES = 4 * CHECKPOINT_PAGES
"""A log longer than this is brought to its end with the commits waiting for the last of it."""
ROWS = (64, 8, 1)
"""Rows of one INSERT. One statement for many rows: each statement gives up the interpreter's lock, and to get it back while the
event loop is busy takes up to 5 ms."""

SCHEMA = """
BEGIN;
CREATE TABLE session (number INTEGER PRIMARY KEY, id TEXT NOT NULL, tenant TEXT NOT NULL);
CREATE TABLE record (session INTEGER NOT NULL, task TEXT NOT NULL, n INTEGER NOT NULL, body TEXT NOT NULL,
                     PRIMARY KEY (session, task, n)) WITHOUT ROWID;
CREATE TABLE note (session INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (session, key)) WITHOUT ROWID;
PRAGMA application_id = {application};
PRAGMA user_version = {version};
COMMIT;
""".format(application=APPLICATION_ID, version=FORMAT)
# Records are keyed by task, not by arrival: a task's and a session's rows lie together, so that they are forgotten without an index
# that every append would have to write as well.


class SqliteStore(DurableStore):
    """`path`: the file, made with its folder where it is missing. `synchronous`: NORMAL | FULL. Raises ConfigError for another."""

    def __init__(self, path: str | os.PathLike, synchronous: str = "NORMAL", **limits):
        super().__init__(_SqliteBackend(Path(path).absolute(), synchronous), **limits)


class _SqliteBackend:
    def __init__(self, path: Path, synchronous: str):
        if synchronous not in SYNCHRONOUS:
            raise ConfigError(f"synchronous: '{synchronous}' is not one of {', '.join(SYNCHRONOUS)}")
        self.path, self.name, self._synchronous = path, path.name, synchronous
        self.rest_s: float | None = None
        self._db: sqlite3.Connection | None = None
        self._lock: int | None = None
        self._checkpoints: _Checkpoints | None = None
        self._pages = 0

    def open(self) -> Sequence[tuple[int, str, str]]:
        try:
            self._take()
            self._db = sqlite3.connect(self.path, isolation_level=None, timeout=BUSY_MS / 1000)
            self._prepare()
            left = self._db.execute("SELECT number, id, tenant FROM session ORDER BY number").fetchall()
        except sqlite3.DatabaseError as error:
            what = getattr(error, "sqlite_errorname", "") or type(error).__name__
            raise ConfigError(f"journal file {self.path}: not a readable journal ({what}: {error}); move it away to start with an "
                              "empty one") from None
        except OSError as error:
            raise ConfigError(f"journal file {self.path}: {error.strerror}; a file in a folder that can be written is needed") from None
        self._checkpoints = _Checkpoints(self.path)
        return left

    def _take(self) -> None:
        """The file for ourselves, before SQLite sees it. The kernel gives the lock back when this process ends, however it ends."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # A file of its own: closing any descriptor of the database itself would drop SQLite's locks on it.
        self._lock = os.open(f"{self.path}-lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._lock, 20, 0).decode("ascii", "replace").strip()
            raise ConfigError(f"journal file {self.path}: in use by process {owner or 'unknown'}; one process at a time can have it, "
                              "give each its own file") from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, str(os.getpid()).encode(), 0)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        os.chmod(self.path, 0o600)

    def _prepare(self) -> None:
        db = self._db
        found, version = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
        tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if (found, version, tables) != (0, 0, 0):
            if found != APPLICATION_ID:
                raise ConfigError(f"journal file {self.path}: an SQLite file of another program; name another file")
            if version != FORMAT:
                raise ConfigError(f"journal file {self.path}: has format {version}, this version reads {FORMAT}; name another file")
            damage = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            if damage != "ok":
                raise ConfigError(f"journal file {self.path}: damaged ({damage.splitlines()[-1]}); move it away to start with an "
                                  "empty one")
        if db.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise ConfigError(f"journal file {self.path}: its file system can't keep a write-ahead log; name a local one")
        db.execute(f"PRAGMA synchronous = {self._synchronous}")
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        if not tables:
            db.executescript(SCHEMA)

    def write(self, ops: Sequence[Op]) -> None:
        # Numbers of sessions are never used twice and nothing follows the forgetting of a task, so the kinds can go one after the
        # other, each in as few statements as possible.
        rows: dict[str, list] = {what: [] for what in ("session", "record", "forget", "note", "drop")}
        notes: dict[tuple[int, str], str | None] = {}
        for op in ops:
            number = op.journal.number
            if op.what == "record":
                rows["record"].append((number, op.key, op.n, op.text))
            elif op.what == "note":
                notes[number, op.key] = op.text
            elif op.what == "session":
                rows["session"].append((number, op.journal.id, op.journal.tenant))
            else:
                rows[op.what].append((number, op.key) if op.what == "forget" else (number,))
        with self._checkpoints.gate:
            if len(ops) == 1 and rows["record"]:  # by far the most frequent: a transaction in one statement
                self._db.execute(_insert("record", 4, 1), rows["record"][0])
            else:
                self._transaction(rows, notes)
        self.rest_s = REST_S
        self._pages += 2 + 2 * len(ops)
        if self._pages >= CHECKPOINT_PAGES:
            self._pages = 0
            self._checkpoints.ask(empty=False)

    def _transaction(self, rows: dict[str, list], notes: dict[tuple[int, str], str | None]) -> None:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        try:
            self._insert("session", 3, rows["session"])
            self._insert("record", 4, rows["record"])
            self._insert("note", 3, [(*at, text) for at, text in notes.items() if text is not None])
            for sql, some in (("DELETE FROM note WHERE session = ? AND key = ?", [at for at, text in notes.items() if text is None]),
                              ("DELETE FROM record WHERE session = ? AND task = ?", rows["forget"]),
                              ("DELETE FROM record WHERE session = ?", rows["drop"]),
                              ("DELETE FROM note WHERE session = ?", rows["drop"]),
                              ("DELETE FROM session WHERE number = ?", rows["drop"])):
                if some:
                    db.executemany(sql, some)
            db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # SQLite itself has rolled back after some errors
                db.execute("ROLLBACK")
            raise

    def _insert(self, table: str, columns: int, rows: list[tuple]) -> None:
        begin = 0
        for count in ROWS:
            sql = _insert(table, columns, count)
            while len(rows) - begin >= count:
                self._db.execute(sql, [value for row in rows[begin:begin + count] for value in row])
                begin += count

    def records(self, journal: DurableJournal) -> list[tuple[int, str, str]]:
        return self._db.execute("SELECT n, task, body FROM record WHERE session = ? ORDER BY n", (journal.number,)).fetchall()

    def notes(self, journal: DurableJournal) -> list[tuple[str, str]]:
        return self._db.execute("SELECT key, value FROM note WHERE session = ?", (journal.number,)).fetchall()

    def rest(self) -> None:
        self.rest_s, self._pages = None, 0
        self._checkpoints.ask(empty=True)

    def close(self) -> None:
        if self._checkpoints is not None:
            self._checkpoints.stop()
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()  # the last connection empties the log and removes it
        if self._lock is not None:
            os.close(self._lock)
        self._checkpoints = self._db = self._lock = None


class _Checkpoints:
    """Moves the log into the file, on a thread and a connection of its own, when asked."""

    def __init__(self, path: Path):
        self._path = path
        self.gate = threading.Lock()
        """Held by a transaction, and by the end of a checkpoint that no transaction may be beside: SQLite's own waiting for that
        moment would never come to its turn under constant writing."""
        self._wake, self._empty, self._stop = threading.Event(), False, False
        self._thread = threading.Thread(target=self._run, name="venus-journal-checkpoint", daemon=True)
        self._thread.start()

    def ask(self, empty: bool) -> None:
        """`empty`: nothing is being written, so the log can be cut to nothing too."""
        self._empty = empty
        self._wake.set()

    def stop(self) -> None:
        self._stop = True
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        with contextlib.closing(sqlite3.connect(self._path, isolation_level=None, timeout=BUSY_MS / 1000)) as db:
            while True:
                self._wake.wait()
                self._wake.clear()
                if self._stop:
                    return
                try:
                    # PASSIVE does the bulk without keeping anyone waiting; the other modes then find little left to do.
                    _, pages, _ = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                    METRICS.add("venus_harness_journal_checkpoints_total")
                    METRICS.peak("venus_harness_journal_log_pages_peak", pages)
                    if self._empty or pages > MOST_PAGES:
                        with self.gate:
                            db.execute(f"PRAGMA wal_checkpoint({'TRUNCATE' if self._empty else 'RESTART'})").fetchone()
                except sqlite3.Error as error:
                    METRICS.add("venus_harness_journal_checkpoint_failures_total")
                    log.warning("journal %s: checkpoint: %s", self._path.name, getattr(error, "sqlite_errorname", type(error).__name__))


def _insert(table: str, columns: int, rows: int) -> str:
    # REPLACE: a record that comes again under its number is the same record.
    row = f"({', '.join('?' * columns)})"
    return f"INSERT OR REPLACE INTO {table} VALUES {', '.join([row] * rows)}"
