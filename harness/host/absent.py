"""The vehicle bus of a process that no car host is connected to: everything is `unavailable`, and skills say so."""
from typing import Any, AsyncIterator

from harness.host.errors import Unavailable
from harness.host.providers import Effect, Signal


class AbsentVehicleBus:
    """A VehicleBus without a vehicle. Nothing is read, nothing moves."""

    async def get(self, *paths: str) -> dict[str, Signal]:
        raise Unavailable("no car is connected")

    async def actuate(self, path: str, value: Any, *, timeout_s: float = 3.0) -> Effect:
        raise Unavailable("no car is connected")

    async def stop(self, path: str) -> Effect:
        raise Unavailable("no car is connected")

    def subscribe(self, *paths: str) -> AsyncIterator[Signal]:
        raise Unavailable("no car is connected")
