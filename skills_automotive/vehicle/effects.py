"""Actuations that count only when the car got there."""
import asyncio
from typing import Any

from harness.host.errors import Unavailable
from harness.skill import SkillContext, SkillError


async def reach(ctx: SkillContext, targets: dict[str, Any], timeout_s: float, **fields) -> None:
    """Set every path and wait until each current value arrived; raises SkillError("timeout") otherwise, or the host's error."""
    effects = await asyncio.gather(*(ctx.vehicle.actuate(path, value, timeout_s=timeout_s) for path, value in targets.items()),
                                   return_exceptions=True)  # the others are waited for: none may move unobserved
    for effect in effects:
        if isinstance(effect, BaseException):
            raise effect
    if not all(effect.reached for effect in effects):
        raise SkillError("timeout", "asked for, but not reached", **fields)


async def read(ctx: SkillContext, path: str, max_age_s: float | None = None) -> Any:
    """The current value; raises Unavailable when the car has none, or none that is fresh enough."""
    signal = (await ctx.vehicle.get(path))[path]
    if signal.value is None or (max_age_s is not None and signal.age_s > max_age_s):
        raise Unavailable(f"no current value of {path}", path=path)
    return signal.value
