"""For whoever writes against the delegation service: the real server on loopback over scripted skills, and a front end in miniature.

    async with scripted_service({"poi.find": Script("Two of them.", after_s=0.1)}, specs=[SkillSpec("poi.find")]) as world:
        client = world.client()
        session = await client.open()
        async with client.deliver(session.id) as delivery, PlainFrontEnd(delivery) as front_end:
            await client.submit(session.id, Delegate("find a charger", calls=(("poi.find", {}),), turn=1))
            assert await front_end.told(1) == ["Two of them."]
"""
import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, AsyncIterator, Sequence

from harness.backend_skills import SkillBackend
from harness.deliver.desk import PreparedReply
from harness.deliver.gate import RATE, Moment
from harness.harness import Harness
from harness.journal import Store
from harness.schedule.limits import SchedulerLimits
from harness.plan.contracts import Planner
from harness.service.access import Access
from harness.service.client import DelegationClient
from harness.service.deliveries import Deliveries
from harness.service.limits import ServiceLimits
from harness.service.server import Serving, serve
from harness.service.within import within
from harness.settings import HarnessSettings
from harness.task import SkillSpec
from harness.testing import ListedCatalog, Script, ScriptedRunner
from venus_edge.clock import Clock, SystemClock


@dataclass
class ServiceWorld:
    """A service that runs, and its parts. The clock is the server's; clients keep real time."""

    harness: Harness
    runner: ScriptedRunner
    serving: Serving
    clock: Clock
    clients: list[DelegationClient] = field(default_factory=list)

    @property
    def addr(self) -> str:
        return self.serving.addr

    def client(self, token: str = "") -> DelegationClient:
        """A client of it, closed with the world."""
        self.clients.append(DelegationClient(self.addr, token))
        return self.clients[-1]


@asynccontextmanager
async def scripted_service(scripts: dict[str, Script | Sequence[Script]] | None = None, *, specs: Sequence[SkillSpec] = (),
                           catalog: ListedCatalog | None = None, tokens: dict[str, Any] | None = None, planner: Planner | None = None,
                           store: Store | None = None, clock: Clock | None = None, addr: str = "127.0.0.1:0",
                           settings: HarnessSettings | None = None, limits: ServiceLimits | None = None,
                           scheduler: SchedulerLimits | None = None) -> AsyncIterator[ServiceWorld]:
    """The real service over a harness of scripted skills. `tokens` as in the tokens file; without them no token is needed."""
    clock = clock or SystemClock()
    runner, catalog = ScriptedRunner(clock, scripts or {}), catalog or ListedCatalog(*specs)
    harness = Harness(SkillBackend(catalog, runner, planner), catalog, clock, settings=settings, limits=scheduler, store=store)
    left = await harness.start()
    world = ServiceWorld(harness, runner, await serve(harness, addr, Access(tokens), limits=limits, left=left), clock)
    try:
        yield world
    finally:
        for client in world.clients:
            await client.close()
        await world.serving.stop(0.1)
        await harness.abandon()


class PlainFrontEnd:
    """Tells the floor every `unit_s` and speaks each reply at once, whole. `spoken`: what came, in order.

    Set `user_speaking` or `turn_open` to occupy the floor, `turn` for a new user turn, and `silent` to leave replies unspoken.
    """

    def __init__(self, delivery: Deliveries, *, clock: Clock | None = None, unit_s: float = 0.04, pos: int = 0):
        self.delivery, self.clock, self.unit_s = delivery, clock or SystemClock(), unit_s
        self.user_speaking = self.turn_open = self.silent = False
        self.turn = 0
        self.spoken: list[PreparedReply] = []
        self._pos, self._changed = pos, asyncio.Event()
        self._tasks: list[asyncio.Task] = []

    async def __aenter__(self) -> "PlainFrontEnd":
        self._tasks = [asyncio.ensure_future(self._floor()), asyncio.ensure_future(self._speak())]
        return self

    async def __aexit__(self, *_) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def texts(self) -> list[str]:
        return [reply.text for reply in self.spoken]

    async def told(self, count: int, within_s: float = 5.0) -> list[str]:
        """The texts so far, once there are `count` of them and the server has noted their end. Raises TimeoutError."""
        async def there() -> None:
            while len(self.spoken) < count:
                self._changed.clear()
                await self._changed.wait()
            await self.delivery.settled()

        await within(self.clock, within_s, there())
        return self.texts

    async def _floor(self) -> None:
        while True:
            self.delivery.moment(Moment(self._pos, self.user_speaking, self.turn_open, False, self.turn))
            await self.clock.sleep(self.unit_s)
            self._pos += round(self.unit_s * RATE)

    async def _speak(self) -> None:
        async for reply in self.delivery:
            if self.silent:
                continue
            self.delivery.started(reply.id, f"seg-{len(self.spoken)}")
            self.delivery.finished(reply.id, heard=reply.text, completed=True)
            self.spoken.append(reply)
            self._changed.set()
