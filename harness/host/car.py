"""The car host process: joins the room, answers RPC `venus.effect` of the agent, and holds the only bus token.

    python -m harness.host.car

Environment: VENUS_LIVEKIT_URL, VENUS_HOST_TOKEN (join token), VENUS_AGENT_IDENTITY (venus-agent), VENUS_BUS_ADDR
(127.0.0.1:55555), VENUS_BUS_TOKEN, VENUS_BUS_CA (PEM file, for TLS), VENUS_TRACE_DIR.
"""

import asyncio
import logging
import os
from dataclasses import dataclass
from pathlib import Path

from livekit import rtc

from harness.host.bus_kuksa import KuksaBus
from harness.host.effects import EffectHost, answer_failed
from harness.host.errors import HostError, NotPermitted
from harness.host.messages import METHOD
from venus_edge import loop_monitor, process
from venus_edge.clock import Clock, SystemClock
from venus_edge.errors import ConfigError
from venus_edge.logs import setup
from venus_edge.metrics import METRICS
from venus_edge.redact import guard, why_refused
from venus_edge.trace import Trace

guard("livekit")  # the native module logs a refused token in full
log = logging.getLogger("harness.host.car")

BACKOFF_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Waits before joining again; the last one repeats."""
STABLE_S = 10.0
CONNECT_S = 10.0
KNOWN_S = 3.5


@dataclass(frozen=True)
class Settings:
    """What the process is told."""

    url: str
    token: str
    agent: str
    bus_addr: str
    bus_token: str
    bus_ca: bytes | None = None

    @classmethod
    def from_env(cls, env=os.environ) -> "Settings":
        """Raises ConfigError naming the variable."""
        for name in ("VENUS_LIVEKIT_URL", "VENUS_HOST_TOKEN"):
            if not env.get(name):
                raise ConfigError(f"{name} is not set: the car host needs the room's URL and a join token")
        if not env["VENUS_LIVEKIT_URL"].startswith(("ws://", "wss://")):
            raise ConfigError(f"VENUS_LIVEKIT_URL={env['VENUS_LIVEKIT_URL']!r}: needs ws:// or wss://")
        ca = None
        if path := env.get("VENUS_BUS_CA"):
            try:
                ca = Path(path).read_bytes()
            except OSError as err:
                raise ConfigError(f"VENUS_BUS_CA={path}: {err.strerror}") from None
        return cls(url=env["VENUS_LIVEKIT_URL"], token=env["VENUS_HOST_TOKEN"], agent=env.get("VENUS_AGENT_IDENTITY") or "venus-agent",
                   bus_addr=env.get("VENUS_BUS_ADDR") or "127.0.0.1:55555", bus_token=env.get("VENUS_BUS_TOKEN", ""), bus_ca=ca)  # fmt: skip


class CarHost:
    """Keeps one room joined and answers the agent's calls in it."""

    def __init__(self, settings: Settings, host: EffectHost, clock: Clock | None = None):
        self.settings, self.host, self.clock = settings, host, clock or SystemClock()
        self.joined = asyncio.Event()

    async def _caller_error(self, room: rtc.Room, identity: str) -> NotPermitted | None:
        """Why this participant may not ask for effects: only the agent, and only one whose token says it is an agent.

        The server vouches for the identity of a call. It tells of participants that publish no track only every 3 s,
        so a call can overtake the news that its caller has joined; then that news is waited for.
        """
        if identity != self.settings.agent:
            return NotPermitted("only the assistant may ask for effects", reason="caller")
        deadline = self.clock.now() + KNOWN_S
        while (participant := room.remote_participants.get(identity)) is None:
            if self.clock.now() >= deadline:
                return NotPermitted("the caller is not in the room", reason="caller")
            await self.clock.sleep(0.02)
        if participant.kind != rtc.ParticipantKind.PARTICIPANT_KIND_AGENT:
            return NotPermitted("the caller's token is not an agent's", reason="caller")
        return None

    def _handler(self, room: rtc.Room):
        async def on_effect(data: rtc.RpcInvocationData) -> str:
            if refused := await self._caller_error(room, data.caller_identity):
                METRICS.add("venus_carhost_callers_refused_total")
                log.warning("refused a call of %s", data.caller_identity)
                return answer_failed(refused)
            return await self.host.handle(data.payload)

        return on_effect

    async def _stay(self) -> None:
        """Join once and stay until the room closes."""
        room, closed = rtc.Room(), asyncio.Event()
        room.on("disconnected", lambda *_: closed.set())
        options = rtc.RoomOptions(auto_subscribe=False, connect_timeout=CONNECT_S)
        try:
            await room.connect(self.settings.url, self.settings.token, options)
            # the method can be registered only once the participant exists; no await lies between
            room.local_participant.register_rpc_method(METHOD, self._handler(room))
            try:  # with attributes it is known to the agent at once, and not with the server's next batch of news (3 s)
                await room.local_participant.set_attributes({"venus.host": "car"})
            except Exception as err:
                log.info("attributes not set: %s", type(err).__name__)
            log.info("joined as %s", room.local_participant.identity)
            self.joined.set()
            METRICS.add("venus_carhost_joins_total")
            await closed.wait()
        finally:
            await room.disconnect()

    async def run(self) -> None:
        """Stay in the room for ever; joins again with growing waits when it closes or can't be reached.

        Raises ConfigError when the server refuses the token.
        """
        tries = 0
        while True:
            start = self.clock.now()
            try:
                await self._stay()
            except rtc.ConnectError as err:
                if why := why_refused(str(err)):  # also one that has expired meanwhile: whoever starts us again has a new one
                    raise ConfigError(f"VENUS_HOST_TOKEN is refused by {self.settings.url}: {why}") from None
                log.warning("can't join the room: %s", type(err).__name__)
            tries = 0 if self.clock.now() - start > STABLE_S else tries + 1
            await self.clock.sleep(BACKOFF_S[min(max(tries - 1, 0), len(BACKOFF_S) - 1)])


async def check_bus(bus: KuksaBus) -> str:
    """Name of the bus; a refused token is a ConfigError, an absent bus is left to be there later."""
    try:
        return await bus.server()
    except NotPermitted:
        raise ConfigError(f"VENUS_BUS_TOKEN is refused by the bus at {bus.addr}") from None
    except HostError as err:
        log.warning("the bus at %s does not answer yet: %s", bus.addr, err.code)
        return ""


async def main() -> None:
    setup("carhost")
    settings, clock = Settings.from_env(), SystemClock()
    trace = Trace("carhost", clock=clock)
    bus = KuksaBus(settings.bus_addr, settings.bus_token, ca=settings.bus_ca, clock=clock)
    monitor = asyncio.create_task(loop_monitor.watch("carhost", trace))
    beat = asyncio.create_task(process.heartbeat())
    running = None
    try:
        broker = await check_bus(bus)
        car = CarHost(settings, EffectHost(bus, clock=clock, trace=trace), clock)
        running = asyncio.create_task(car.run())
        ready = asyncio.create_task(car.joined.wait())
        await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        process.ready(bus=settings.bus_addr, broker=broker)
        await process.until_stopped(running)
    finally:
        for task in filter(None, (running, monitor, beat)):
            task.cancel()
        await asyncio.gather(*filter(None, (running, monitor, beat)), return_exceptions=True)
        await bus.close()
        trace.close()


if __name__ == "__main__":
    process.run(main)
