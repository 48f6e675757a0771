"""The skill contract: a manifest and an async `run`. A skill has no network, files or vehicle; it asks its context.

    class SetTemperature(Skill):
        id = "vehicle.set_temperature"
        ...
        async def run(self, args, ctx):
            effect = await ctx.vehicle.actuate("Vehicle.Cabin.HVAC...", args.celsius)
            return self.Result(celsius=args.celsius, reached=effect.reached)

Error codes shared by all skills: invalid_args, not_permitted, unsafe_now, needs_confirmation, needs_input, unavailable,
not_found, timeout, cancelled, internal. Each has a spoken sentence; raise SkillError (or let a host's error through).
"""
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Awaitable, Callable, ClassVar

from pydantic import BaseModel

from harness.host.providers import Maps, Places, Point, VehicleBus
from venus_edge.errors import VenusError


class SkillError(VenusError):
    """A skill's failure with one of the shared codes; `data` fills the spoken sentence."""

    def __init__(self, code: str, message: str = "", **data):
        super().__init__(message or code, **data)
        self.code = code


@dataclass(frozen=True)
class Effects:
    """What a skill may touch = its permissions. Globs over VSS paths; provider names for `uses`."""

    reads: tuple[str, ...] = ()
    actuates: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    """maps | places"""


class Args(BaseModel, extra="forbid"):
    """Base of a skill's arguments: an unknown field is refused."""


class Result(BaseModel, extra="forbid"):
    """Base of a skill's result: data, with `spoken()` giving the fields that the wording may use."""

    outcome: str = "done"
    """Key of the wording to speak: `<skill id>.<outcome>`."""

    def spoken(self, lang: str) -> dict[str, Any]:
        return self.model_dump()


@dataclass
class SkillContext:
    """What a running skill may use. `progress(outcome, **fields)` tells the user how far it is, by wording key."""

    task_id: str
    task_version: int
    lang: str
    zone: str
    position: Callable[[], Awaitable[Point]]
    vehicle: VehicleBus
    maps: Maps
    places: Places
    progress: Callable[..., None]
    memory: dict = field(default_factory=dict)
    """The session's small shared memory between skills (last places offered, current destination): JSON values only."""


class Skill:
    """Subclass, fill the manifest, write `run`. Instances hold no state between calls."""

    id: ClassVar[str]
    version: ClassVar[str]
    summary: ClassVar[dict[str, str]]
    """en and zh: the capability's contract text for a planner."""
    avoid: ClassVar[dict[str, str]] = {}
    """en and zh: when a planner should not choose it."""
    examples: ClassVar[dict[str, list[tuple[str, dict]]]] = {}
    """Per language: (utterance, arguments). They run as tests."""
    Args: ClassVar[type[Args]] = Args
    Result: ClassVar[type[Result]] = Result
    effects: ClassVar[Effects] = Effects()
    safety: ClassVar[str] = "free"
    """free | zoned | moving_limit | parked_only: an upper bound; the host's policy always wins."""
    timeout_s: ClassVar[float] = 3.0
    first_progress_s: ClassVar[float] = 2.5
    idempotent: ClassVar[bool] = True
    on_interrupt: ClassVar[str] = "keep"
    """keep | cancel | ask: what becomes of a running task when the user takes the floor."""
    on_topic_change: ClassVar[str] = "introduce"
    """introduce | drop: what becomes of a result when the user has asked for something else since."""
    cancellable: ClassVar[bool] = True
    """False: once started it can't be stopped, and the user who asks for that is told so."""
    retries: ClassVar[int] = 1
    """Further runs after a failure that may pass, where a second run does no harm."""
    priority: ClassVar[str] = "normal"
    """safety | waiting | normal | background"""
    max_running: ClassVar[int | None] = None
    """Runs at once in one session worker; None: no limit of its own."""
    ack_after_s: ClassVar[float | None] = None
    progress_after_s: ClassVar[float | None] = None
    offer_stop_after_s: ClassVar[float | None] = None
    give_up_after_s: ClassVar[float | None] = None
    """Times of the late policy for this skill; None: the harness's setting of that name."""
    result_ttl_s: ClassVar[float] = 60.0
    """A result older than this at admission is expired: recorded, never spoken."""
    supersedes: ClassVar[str] = ""
    """Tasks with the same non-empty group replace each other when the user corrects a request."""
    derived: ClassVar[frozenset[str]] = frozenset()
    """Arguments whose numbers need not be among the user's words ("close the window" is position 0)."""
    slow: ClassVar[bool] = False
    """Expected to take longer than a second: acknowledged at once."""
    wording: ClassVar[Path]
    """TOML with `<skill id>.<outcome>` tables: done, ack (slow skills), and any error code worth its own sentence."""

    async def run(self, args, ctx: SkillContext):
        raise SkillError("internal", f"{type(self).__name__} has no run()")
