"""Joining the room again after it was lost: with growing random pauses, for a limited time, and not where it was meant.

LiveKit's client restores a broken link by itself for about 20 s (link "down", then "up"); this begins where it gave up, or
where the server ended the connection because it stops or moves.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from random import Random

from device_sdk.errors import NotConnected, TokenRefused
from venus_edge.clock import Clock
from venus_edge.errors import VenusError
from venus_edge.metrics import METRICS

log = logging.getLogger("venus.device.rejoin")

TokenSource = str | Callable[[], str | Awaitable[str]]
"""A join token, or a function (plain or async) that gives a fresh one for every join."""

MEANT = frozenset({"CLIENT_INITIATED", "DUPLICATE_IDENTITY", "PARTICIPANT_REMOVED", "ROOM_DELETED", "ROOM_CLOSED", "USER_REJECTED"})
"""Reasons after which joining again would be against somebody's will, or a fight with a second device of our name."""
FIRST_S, MAX_S = 0.5, 10.0
REFUSALS = 3
"""Refused tokens in a row after which it is given up."""


def worth_it(reason: str) -> bool:
    return reason not in MEANT


async def fresh(source: TokenSource, newest: str = "") -> str:
    """The token for the next join: from the function, else `newest` (what the server gave us meanwhile), else the text itself.

    Raises NotConnected when the function fails: it may work next time.
    """
    if isinstance(source, str):
        return newest or source
    try:
        token = source()
        token = await token if inspect.isawaitable(token) else token
    except VenusError:
        raise
    except Exception as err:
        raise NotConnected(f"token: the function that gives it failed ({type(err).__name__})") from err
    if not isinstance(token, str):
        raise NotConnected(f"token: the function must give text, not {type(token).__name__}")
    return token


class Membership:
    """Joins the room through `transport`, and again when it is lost. `back()` is called when that succeeded, `lost(reason)` when
    it is given up."""

    def __init__(self, transport, clock: Clock, limit_s: float, seed: int, back: Callable[[], None], lost: Callable[[str], None]):
        self._transport, self._clock, self._limit_s, self._random = transport, clock, limit_s, Random(seed)
        self._back, self._lost = back, lost
        self._where: tuple[str, TokenSource, object] | None = None
        self._task: asyncio.Task | None = None

    @property
    def rejoining(self) -> bool:
        return self._task is not None

    async def join(self, url: str, token: TokenSource, listener) -> None:
        """Raises ConfigError, TokenRefused or NotConnected."""
        self._where = url, token, listener
        await self._join("")

    async def _join(self, newest: str) -> None:
        url, token, listener = self._where
        await self._transport.connect(url, await fresh(token, newest), listener)

    def again(self, reason: str) -> bool:
        """The room was lost: True if it is being joined again from now on."""
        if not self._limit_s or not worth_it(reason):
            return False
        self._task = asyncio.ensure_future(self._again())
        return True

    async def _again(self) -> None:
        await self._transport.close()
        try:
            await rejoin(lambda: self._join(self._transport.token), self._clock, self._limit_s, self._random)
        except VenusError as err:
            self._task = None
            self._lost(err.code)
        else:
            self._task = None
            self._back()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None


async def rejoin(join: Callable[[], Awaitable[None]], clock: Clock, limit_s: float, random: Random) -> None:
    """Call `join` until it succeeds. Raises its last error after `limit_s`, or TokenRefused after three refusals in a row."""
    until, pause, refusals = clock.now() + limit_s, FIRST_S, 0
    while True:
        # a whole fleet loses one server in the same moment; it must not come back in the same moment
        await clock.sleep(pause * random.uniform(0.5, 1.0))
        try:
            await join()
            METRICS.add("venus_device_rejoins")
            return
        except VenusError as err:
            METRICS.add("venus_device_rejoins_failed")
            log.info("can't rejoin yet: %s", err.code)
            refusals = refusals + 1 if isinstance(err, TokenRefused) else 0
            if refusals == REFUSALS or clock.now() + pause > until:
                raise
        pause = min(MAX_S, 2 * pause)
