"""The journal on a Redis or Valkey server: one MULTI/EXEC per group commit.

What a commit survives is the server's business: with `appendonly yes`, `appendfsync always` all that was confirmed survives a
crash of the server, with `everysec` all but the last second; replicas get it asynchronously. A server without persistence that was
restarted has lost its records: the store then says so and takes nothing more. One server or primary; not a Redis Cluster.

Keys, all in one hash slot, under {venus:NAME}:
    owner               the process that writes here
    lease               the same, for as long as it is known to live
    sessions            hash   session id → tenant
    s:SESSION:tasks     set    of task ids
    s:SESSION:t:TASK    hash   n → record
    s:SESSION:notes     hash   key → value
SESSION and TASK percent-encoded, records and values JSON.
"""
import contextlib
import os
import socket
import time
from typing import Any, Sequence
from urllib.parse import quote, urlsplit

from harness.errors import JournalFault
from harness.journal.backend import Gone, Op
from harness.journal.writer import DurableJournal, DurableStore
from venus_edge.errors import ConfigError
from venus_edge.ids import new_id

LEASE_S = 10.0
"""A process that can't be asked about counts as alive for this long after its last commit or rest."""
REST_S = 2.0
TIMEOUT_S = 1.0
TAKE_S = 1.0
"""How long `open` waits for a process that seems to be ending."""
TRIES = 5


class RedisStore(DurableStore):
    """`url`: redis://, rediss:// or unix:// as the redis package reads it. `name`: this process's own part of the server, the same
    after a restart; each process needs its own. Raises ConfigError where the package is missing or the address can't be read."""

    def __init__(self, url: str, name: str = "harness", **limits):
        super().__init__(_RedisBackend(url, name), **limits)


class _RedisBackend:
    def __init__(self, url: str, name: str):
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError:
            raise ConfigError("journal: a Redis store needs the package 'redis'") from None
        if not name or not all(c.isalnum() or c in "-_." for c in name):
            raise ConfigError(f"journal name '{name}': letters, digits, '-', '_' and '.' are allowed")
        self._error, self._refusal = redis.RedisError, redis.ResponseError
        parts = urlsplit(url)
        self.name = f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"  # no password
        self._me = f"{quote(socket.gethostname())}:{os.getpid()}:{new_id()}"
        try:
            # Tries again by itself: the writer, which knows what was not confirmed.
            self._pool = redis.ConnectionPool.from_url(url, decode_responses=True, socket_timeout=TIMEOUT_S, client_name=self._me,
                                                       socket_connect_timeout=TIMEOUT_S, retry=Retry(NoBackoff(), 0))
        except (ValueError, TypeError) as error:
            raise ConfigError(f"journal server {self.name}: {error}") from None
        self.rest_s: float | None = REST_S
        self._connection: Any = None
        self._base = f"{{venus:{name}}}:"
        self._owner, self._lease, self._sessions = (self._base + key for key in ("owner", "lease", "sessions"))
        self._ours = False

    # -- whose it is

    def open(self) -> Sequence[tuple[int, str, str]]:
        for attempt in range(TRIES):
            try:
                self._take()
                found = self._ask(("HGETALL", self._sessions))[0]
                return [(number, session, found[session]) for number, session in enumerate(sorted(found), 1)]
            except (self._error, OSError) as error:
                self._disconnect()
                if attempt == TRIES - 1:
                    raise ConfigError(f"journal server {self.name}: {type(error).__name__}; a running Redis or Valkey server is "
                                      "needed") from None
                time.sleep(0.1)  # the writer's own thread

    def _take(self) -> None:
        """Become the owner, unless another process lives; its records are safe from it from then on."""
        waited = 0.0
        while True:
            owner, lease = self._ask(("WATCH", self._owner, self._lease), ("GET", self._owner), ("GET", self._lease))[1:]
            if owner in (None, self._me) or lease is None or not self._alive(owner):
                if self._ask(*self._transaction(("SET", self._owner, self._me)))[-1] is not None:
                    self._ours = True
                    self._ask(("WATCH", self._owner))
                    return
            elif waited >= TAKE_S:
                host, pid = owner.split(":")[:2]
                raise ConfigError(f"journal server {self.name}: in use by process {pid} on {host}; give each process a name of its own")
            time.sleep(0.25)
            waited += 0.25

    def _alive(self, owner: str) -> bool:
        """Whether that process holds a connection. Where the server doesn't tell, its lease decides."""
        try:
            return f" name={owner} " in self._ask(("CLIENT", "LIST"))[0]
        except self._error:
            return True

    def _transaction(self, *commands: tuple) -> list[tuple]:
        return [("MULTI",), ("SET", self._lease, self._me, "PX", int(LEASE_S * 1000)), *commands, ("EXEC",)]

    # -- talking

    def _send(self, *commands: tuple) -> list:
        """Send all, then read all; a refusal stands in the place of its answer. Raises what the connection raises."""
        if self._connection is None:
            self._connection = self._pool.get_connection()
        try:
            self._connection.send_packed_command(self._connection.pack_commands(commands))
            return [self._answer() for _ in commands]
        except BaseException:  # half an answer may be under way: this connection can't be used again
            self._disconnect()
            raise

    def _answer(self) -> Any:
        try:
            return self._connection.read_response()
        except self._refusal as error:
            return error

    def _ask(self, *commands: tuple) -> list:
        """As `_send`; raises the first refusal."""
        return _checked(self._send(*commands))

    def _ours_still(self) -> None:
        """On a new connection: watch the owner again. What happened meanwhile shows in who that is."""
        if self._connection is None:
            self._judge(self._ask(("WATCH", self._owner), ("GET", self._owner))[-1])

    def _judge(self, owner: Any) -> None:
        if isinstance(owner, Exception):
            self._disconnect()
            raise owner
        self._ours = owner == self._me
        if owner is None:
            raise Gone("the server has lost its records; it needs `appendonly yes`")
        if not self._ours:
            raise Gone("another process has taken over this journal")

    def _commit(self, *commands: tuple) -> None:
        self._ours_still()
        # The owner is watched since the last commit, so that a process which lost its place can't write; and again for the next one.
        answers = self._send(*self._transaction(*commands), ("WATCH", self._owner), ("GET", self._owner))
        self._judge(answers[-1])  # before anything else: the next commit relies on this watch
        done = _checked(answers)[-3]
        if done is None:
            raise JournalFault("the transaction was not executed")
        _checked(done)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.disconnect()
                self._pool.release(connection)

    # -- the store

    def _key(self, session: str, what: str) -> str:
        return f"{self._base}s:{quote(session, safe='')}:{what}"

    def _task(self, session: str, task: str) -> str:
        return self._key(session, f"t:{quote(task, safe='')}")

    def write(self, ops: Sequence[Op]) -> None:
        dropped = sorted({op.journal.id for op in ops if op.what == "drop"})
        tasks = {session: set(known) for session, known in zip(dropped, self._tasks(*dropped))}
        commands: list[tuple] = []
        for what, journal, key, n, text in ops:
            session = journal.id
            if what == "record":
                commands.append(("HSET", self._task(session, key), n, text))
                commands.append(("SADD", self._key(session, "tasks"), key))
                if session in tasks:
                    tasks[session].add(key)
            elif what == "note":
                name = self._key(session, "notes")
                commands.append(("HDEL", name, key) if text is None else ("HSET", name, key, text))
            elif what == "session":
                commands.append(("HSET", self._sessions, session, journal.tenant))
            elif what == "forget":
                commands.append(("DEL", self._task(session, key)))
                commands.append(("SREM", self._key(session, "tasks"), key))
            else:
                commands.append(("DEL", self._key(session, "tasks"), self._key(session, "notes"),
                                 *(self._task(session, task) for task in sorted(tasks[session]))))
                commands.append(("HDEL", self._sessions, session))
        self._commit(*commands)

    def _tasks(self, *sessions: str) -> list[list[str]]:
        self._ours_still()
        return [sorted(tasks) for tasks in self._ask(*(("SMEMBERS", self._key(session, "tasks")) for session in sessions))]

    def records(self, journal: DurableJournal) -> list[tuple[int, str, str]]:
        [tasks] = self._tasks(journal.id)
        found = self._ask(*(("HGETALL", self._task(journal.id, task)) for task in tasks))
        return sorted((int(n), task, text) for task, rows in zip(tasks, found) for n, text in rows.items())

    def notes(self, journal: DurableJournal) -> list[tuple[str, str]]:
        self._ours_still()
        return list(self._ask(("HGETALL", self._key(journal.id, "notes")))[0].items())

    def rest(self) -> None:
        try:
            self._commit()
        except Gone:
            raise
        except Exception:  # the next commit will say what is wrong
            pass

    def close(self) -> None:
        if self._ours:
            with contextlib.suppress(Exception):
                self._commit(("DEL", self._owner, self._lease))
        self._disconnect()
        self._pool.disconnect()


def _checked(answers: list) -> list:
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers
