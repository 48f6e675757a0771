"""The car's speed as the cabin hears it: Vehicle.Speed from the bus, or the scenario's plan where there is no bus."""
import asyncio
import logging

from harness.host.bus_kuksa import KuksaBus
from harness.host.errors import HostError, NotPermitted
from venus_edge.clock import Clock
from venus_edge.errors import ConfigError
from venus_edge.metrics import METRICS

SPEED = "Vehicle.Speed"
AGAIN_S = 0.5
log = logging.getLogger("venus.cabin")


class BusSpeed:
    """Keeps the newest Vehicle.Speed (km/h). `run` follows the bus for ever, reconnecting; a refused token ends it."""

    def __init__(self, addr: str, token: str, clock: Clock):
        self.kmh, self._addr, self._token, self._clock = 0.0, addr, token, clock

    def __call__(self) -> float:
        return self.kmh

    async def run(self) -> None:
        bus = KuksaBus(self._addr, self._token, clock=self._clock)
        try:
            while True:
                try:
                    async for signal in bus.subscribe(SPEED):
                        if isinstance(signal.value, (int, float)):
                            self.kmh = float(signal.value)
                except NotPermitted as err:
                    raise ConfigError(f"VENUS_BUS_READ_TOKEN: the vehicle signals refuse it: {err.message}") from None
                except HostError as err:
                    METRICS.add("venus_cabin_bus_lost_total")
                    log.info("bus: %s, again in %.1f s", err.code, AGAIN_S)
                await self._clock.sleep(AGAIN_S)
        finally:
            await asyncio.shield(bus.close())
