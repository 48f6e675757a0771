"""The delegate runtime of one process: many sessions over one backend, one scheduler and one journal.

    harness = Harness(SkillBackend(catalog, runner, RulePlanner()), catalog, clock, store=SqliteStore(path))
    await harness.start()
    session = harness.open_session("room-7/glasses")
    task_id = await harness.submit(session.id, request, evidence)
    async for transition in harness.events(session.id): ...
    await harness.close()

All methods run on one event loop. None of them blocks it, but for `open_session` with a session that was left behind, which waits for
the store to read its records. One session's fault never touches another.
"""
import asyncio
import logging
from typing import AsyncIterator, Callable

from harness.backend import DelegateBackend
from harness.catalog import Capabilities
from harness.dispatch import Dispatcher
from harness.errors import Closed, UnknownSession
from harness.evidence import DelegateRequest, Evidence
from harness.journal import MemoryStore, Store
from harness.ledger import Transition
from harness.schedule.limits import SchedulerLimits
from harness.phrases import Words
from harness.plan.contracts import Contract
from harness.recovery import restore
from harness.schedule.scheduler import Scheduler
from harness.deliver.screen import ScreenItem
from harness.session import Session, Shared
from harness.settings import HarnessSettings
from harness.task import SkillCatalog, SkillSpec, Task
from venus_edge.clock import Clock, SystemClock
from venus_edge.errors import BusyError
from venus_edge.ids import new_id
from venus_edge.metrics import METRICS

log = logging.getLogger("harness")


class Harness:
    def __init__(self, backend: DelegateBackend, catalog: SkillCatalog, clock: Clock | None = None, *,
                 settings: HarnessSettings | None = None, limits: SchedulerLimits | None = None, store: Store | None = None,
                 max_sessions: int = 4096):
        """Without a store, a crash loses everything. `settings` are those of every session that brings none of its own."""
        self.clock = clock or SystemClock()
        self.settings, self.max_sessions = settings or HarnessSettings(), max_sessions
        self.store: Store = store or MemoryStore()
        self.backend = backend
        joined = Capabilities(catalog, backend.contracts())
        self._shared = Shared(self.clock, joined, backend, Dispatcher(joined), Words(joined), Scheduler(self.clock, limits or SchedulerLimits()),
                              self.store)
        self._sessions: dict[str, Session] = {}
        self._left: dict[str, str] = {}
        self._closed = False

    async def start(self) -> dict[str, str]:
        """Open the journal. Returns the sessions that an earlier process left behind: {session id: tenant}.

        `open_session` with such an id takes it up again. Raises ConfigError or JournalFault when the journal can't be opened.
        """
        await self.store.open()
        self._left = dict(self.store.sessions())
        if self._left:
            log.warning("%d sessions were left by an earlier process", len(self._left))
        return dict(self._left)

    def open_session(self, session_id: str = "", *, tenant: str = "", settings: HarnessSettings | None = None,
                     observer: Callable[[Transition], None] | None = None,
                     on_screen: Callable[[ScreenItem], None] | None = None) -> Session:
        """Begin a session, or take up one that was left behind: what had finished is told once, idempotent work runs
        again, other work is reported as failed. Raises Closed, BusyError at `max_sessions` and for an id in use (one that is being closed
        too), BadRequest for an id that no store can keep, and JournalFault where the records can't be read now: they stay for the next try.

        `observer` sees every transition, `on_screen` every outcome that was not spoken and may be shown; on the event loop, so both
        must be quick.
        """
        if self._closed:
            raise Closed("this harness was closed")
        session_id = session_id or new_id("session")
        if session_id in self._sessions:
            raise BusyError(f"session '{session_id}' is open already", session=session_id)
        if len(self._sessions) >= self.max_sessions:
            METRICS.add("venus_harness_sessions_refused_total")
            raise BusyError(f"{self.max_sessions} sessions are open; at most {self.max_sessions}")
        settings = settings or self.settings
        if session_id in self._left:
            if tenant and tenant != self._left[session_id]:
                raise BusyError(f"session '{session_id}' is in use", session=session_id)
            session = restore(self._shared, session_id, tenant=self._left[session_id], settings=settings, observer=observer,
                              on_screen=on_screen, on_end=self._ended)
            del self._left[session_id]
        else:
            session = Session(self._shared, session_id, tenant=tenant, settings=settings, observer=observer, on_screen=on_screen,
                              on_end=self._ended)
        self._sessions[session_id] = session
        METRICS.set("venus_harness_sessions", len(self._sessions))
        return session

    def forget_left(self) -> int:
        """Sessions of an earlier process that nobody took up: their records go. How many."""
        for session_id in self._left:
            self.store.drop(session_id)
        count = len(self._left)
        self._left = {}
        METRICS.add("venus_harness_sessions_forgotten_total", count)
        return count

    def session(self, session_id: str) -> Session:
        """An open session; raises UnknownSession."""
        try:
            return self._sessions[session_id]
        except KeyError:
            raise UnknownSession(f"session '{session_id}' is not open here", session=session_id) from None

    def capabilities(self) -> tuple[tuple[Contract, SkillSpec], ...]:
        """What can be asked for: each contract with what the harness knows of running it."""
        return tuple((contract, self._shared.catalog.spec(contract.id)) for contract in self.backend.contracts())

    def sessions(self) -> list[str]:
        return list(self._sessions)

    async def submit(self, session_id: str, request: DelegateRequest, evidence: Evidence | None = None) -> str:
        """Take a request; its task id, once it is recorded durably. Raises UnknownSession, Closed, JournalFault."""
        return await self.session(session_id).submit(request, evidence)

    async def result(self, session_id: str, task_id: str) -> Task:
        """The task once its work has ended, recorded durably. Raises UnknownSession, UnknownTask."""
        return await self.session(session_id).result(task_id)

    def events(self, session_id: str) -> AsyncIterator[Transition]:
        """Every transition of a session from now on, until it closes. Raises UnknownSession."""
        return self.session(session_id).events()

    def cancel(self, session_id: str, task_id: str) -> bool:
        """Stop a task of this session, or drop what is untold of it; False where there is nothing to stop.

        Raises UnknownSession, UnknownTask (also for another session's task)."""
        return self.session(session_id).cancel(task_id)

    def status(self, session_id: str) -> tuple[Task, ...]:
        """What a session remembers, oldest first. Raises UnknownSession."""
        return self.session(session_id).status()

    async def close(self, session_id: str | None = None) -> None:
        """End one session (nothing of it stays, here or in the journal), or all of them and the harness itself.

        One that is being closed already is waited for. Raises UnknownSession, and JournalFault where the store can't write any more.
        """
        if session_id is not None:
            await self.session(session_id).close()
        else:
            await self._end("close")

    async def abandon(self, session_id: str | None = None) -> None:
        """Let go of a session, or of all and the harness, without ending it: its records stay, to be taken up by `open_session` here or by
        another process. Raises what `close` does."""
        if session_id is None:
            await self._end("leave")
            return
        session = self.session(session_id)
        await session.leave()
        if session_id in dict(self.store.sessions()):
            self._left[session_id] = session.tenant

    async def _end(self, how: str) -> None:
        if self._closed:
            return
        self._closed = True
        ends = await asyncio.gather(*(getattr(session, how)() for session in self._sessions.values()), return_exceptions=True)
        for fault in filter(None, ends):  # one session's fault must not keep the others open
            log.error("a session could not be ended: %s", getattr(fault, "code", type(fault).__name__))
        try:
            await self.backend.aclose()
        finally:
            await self.store.close()

    def _ended(self, session: Session) -> None:
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
        METRICS.set("venus_harness_sessions", len(self._sessions))
