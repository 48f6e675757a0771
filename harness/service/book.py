"""The open sessions of the service, by tenant and name: opened or taken up again, watched, and closed when nobody comes any more.

The harness knows a session as `tenant/name`, so no name of one tenant ever reaches a session of another.
"""
import asyncio
import logging
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Iterator

from harness.errors import JournalFault, UnknownSession
from harness.harness import Harness
from harness.ledger import Transition
from harness.service.access import Access
from harness.service.limits import ServiceLimits
from harness.session import Session
from venus_edge.errors import BusyError, VenusError
from venus_edge.ids import new_id
from venus_edge.metrics import METRICS

if TYPE_CHECKING:
    from harness.service.returns import ReturnPath

log = logging.getLogger("harness.service")
NOTE = "service"
"""Under this key the journal keeps what the service itself must know of a session after a restart."""


class Backlog:
    """Transitions for one reader. `dropped`: how many it was too slow for; `gap`: since it was last given a snapshot."""

    def __init__(self, most: int):
        self._most = most
        self._waiting: deque[Transition] = deque()
        self._changed = asyncio.Event()
        self.dropped, self.gap = 0, False
        self.ended: str | None = None

    def put(self, transition: Transition) -> None:
        if len(self._waiting) >= self._most:
            self._waiting.popleft()
            self._lose(1)
        self._waiting.append(transition)
        self._changed.set()

    def _lose(self, count: int) -> None:
        self.dropped, self.gap = self.dropped + count, True
        METRICS.add("venus_harness_service_events_dropped_total", count)

    def end(self, reason: str) -> None:
        """No more will come: the session was closed."""
        self.ended = reason
        self._changed.set()

    def caught_up(self) -> None:
        """A snapshot of now goes out: what waits is in it."""
        if self._waiting:
            self._lose(len(self._waiting))
            self._waiting.clear()
        self.gap = False

    async def next(self) -> Transition | None:
        """The oldest that waits; None where there was a loss (`gap`) or the end (`ended`)."""
        while not self._waiting and not self.gap and self.ended is None:
            self._changed.clear()
            await self._changed.wait()
        return None if self.gap or not self._waiting else self._waiting.popleft()


@dataclass(eq=False)
class Held:
    """One open session and who is there for it."""

    name: str
    tenant: str
    lang: str
    used_at: float
    session: Session = field(init=False)
    backlogs: set[Backlog] = field(default_factory=set)
    returns: "ReturnPath | None" = None
    waits: int = 0
    last_pos: int = 0
    """Newest device sample that any return stream of this session has told."""

    def observe(self, transition: Transition) -> None:
        for backlog in self.backlogs:
            backlog.put(transition)

    @contextmanager
    def watching(self, limits: ServiceLimits) -> Iterator[Backlog]:
        """A reader's backlog for as long as it reads. Raises BusyError."""
        if len(self.backlogs) >= limits.streams_per_session:
            raise BusyError(f"session '{self.name}': {len(self.backlogs)} watch streams are open; at most {limits.streams_per_session}")
        backlog = Backlog(limits.watch_backlog)
        self.backlogs.add(backlog)
        try:
            yield backlog
        finally:
            self.backlogs.discard(backlog)

    @contextmanager
    def waiting(self, limits: ServiceLimits) -> Iterator[None]:
        """One call that waits for a result. Raises BusyError."""
        if self.waits >= limits.waits_per_session:
            raise BusyError(f"session '{self.name}': {self.waits} calls wait for results; at most {limits.waits_per_session}")
        self.waits += 1
        try:
            yield
        finally:
            self.waits -= 1

    @property
    def attended(self) -> bool:
        return bool(self.backlogs or self.waits or self.returns is not None)


class Book:
    def __init__(self, harness: Harness, access: Access, limits: ServiceLimits):
        self.harness, self.access, self.limits = harness, access, limits
        self._held: dict[tuple[str, str], Held] = {}
        self._closing: set[asyncio.Task] = set()
        self._began = harness.clock.now()
        self._forgot = False

    def take_up(self, left: dict[str, str]) -> int:
        """Open again what an earlier process left behind, so that its work goes on before anybody asks. How many.

        Sessions of a tenant that has no token any more wait for it as long as an idle session would; then their records go.
        """
        count = 0
        for full, tenant in left.items():
            if tenant not in self.access.tenants() or not full.startswith(f"{tenant}/"):
                continue
            try:
                self._open(tenant, full[len(tenant) + 1:], "")
                count += 1
            except VenusError as err:  # one that can't be taken up must not keep the others waiting
                log.error("session %s is not taken up: %s", full, err.code)
        return count

    async def open(self, tenant: str, name: str, lang: str) -> tuple[Held, bool]:
        """The session, and whether it was there before. Raises BusyError, Closed, JournalFault."""
        name = name or new_id("s")
        held = self._held.get((tenant, name))
        existed = held is not None
        if held is None:
            if sum(1 for key in self._held if key[0] == tenant) >= self.limits.sessions_per_tenant:
                METRICS.add("venus_harness_service_sessions_refused_total")
                raise BusyError(f"sessions: {self.limits.sessions_per_tenant} are open for this tenant; at most {self.limits.sessions_per_tenant}")
            held = self._open(tenant, name, lang)
        held.used_at = self.harness.clock.now()
        if lang:
            held.lang = lang
        try:
            self.harness.store.note(held.session.id, NOTE, {"lang": held.lang})
            await held.session.ledger.journal.flushed()
        except JournalFault:
            if not existed and self._held.get((tenant, name)) is held and not held.attended:
                await self.close(held, "journal")
            raise
        return held, existed

    def _open(self, tenant: str, name: str, lang: str) -> Held:
        full = f"{tenant}/{name}"
        held = Held(name, tenant, lang or "en", self.harness.clock.now())
        held.session = self.harness.open_session(full, tenant=tenant, observer=held.observe)
        if not lang:
            held.lang = str((self.harness.store.notes(full).get(NOTE) or {}).get("lang", "en"))
        self._held[tenant, name] = held
        METRICS.set("venus_harness_service_sessions", len(self._held))
        return held

    def get(self, tenant: str, name: str) -> Held:
        """An open session of this tenant; counts as use of it. Raises UnknownSession, also for another tenant's."""
        held = self._held.get((tenant, name))
        if held is None:
            raise UnknownSession("session_id: no such session is open; open it first")
        held.used_at = self.harness.clock.now()
        return held

    async def close(self, held: Held, reason: str) -> None:
        """End a session: nothing of it stays, and whoever listens is told. The second call does nothing."""
        if self._held.get((held.tenant, held.name)) is not held:
            return
        del self._held[held.tenant, held.name]
        METRICS.set("venus_harness_service_sessions", len(self._held))
        closing = asyncio.ensure_future(self._close(held, reason))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        await asyncio.shield(closing)  # a client that hangs up must not leave it half closed

    async def _close(self, held: Held, reason: str) -> None:
        try:
            await self.harness.close(held.session.id)
        except VenusError:
            await self.harness.close(held.session.id)  # the store refused what was still to be written; the second call lets go
            raise
        finally:
            for backlog in held.backlogs:
                backlog.end(reason)
            if held.returns is not None:
                held.returns.end(reason)

    async def sweep(self) -> None:
        """Close idle sessions, for ever."""
        clock, limits = self.harness.clock, self.limits
        while True:
            await clock.sleep(limits.sweep_s)
            now = clock.now()
            for held in list(self._held.values()):
                if held.attended:
                    held.used_at = now
                elif now - held.used_at >= limits.idle_ttl_s:
                    METRICS.add("venus_harness_service_idle_sessions_total")
                    log.info("session %s/%s was idle for %.0f s: closed", held.tenant, held.name, now - held.used_at)
                    await self._close_idle(held)
            if not self._forgot and now - self._began >= limits.idle_ttl_s:
                self._forgot = True
                self.harness.forget_left()

    async def _close_idle(self, held: Held) -> None:
        try:
            await self.close(held, "idle")
        except Exception as err:  # the next sweep must come
            log.error("closing session %s/%s failed: %s", held.tenant, held.name, getattr(err, "code", type(err).__name__))
