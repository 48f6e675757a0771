"""What a client gets: plain data, as the service tells it. Replies, contracts and evidence words are the harness's own types."""
import json
from dataclasses import dataclass, field
from typing import Any

from harness.evidence import HeardWords, UserWords
from harness.task import DELIVERY_END, EXECUTION_END, Delivery, Execution
from venus_edge.ids import new_id


@dataclass(frozen=True)
class Delegate:
    """One request: prose for the planner, or typed calls that run in parallel, with the user's own words as `prose` beside them.

    The key is what makes a repetition harmless: keep the object and submit it again. `provenance` "live_speech" says that an
    occupant said it here and now; nothing else may move the car.
    """

    prose: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    """(capability, arguments)"""
    turn: int = 0
    repair: str = "new"
    lang: str = ""
    zone: str = "driver"
    provenance: str = "unknown"
    opened_pos: int = 0
    """Device sample at which it arose: words that ended later are left out."""
    opened_seq: int = 0
    user: tuple[UserWords, ...] = ()
    assistant: tuple[HeardWords, ...] = ()
    key: str = field(default_factory=lambda: new_id("key"))


@dataclass(frozen=True)
class SessionView:
    id: str
    tenant: str
    lang: str
    existed: bool
    """It was open already, or left behind by a server that is gone."""
    idle_ttl_s: float


@dataclass(frozen=True)
class TaskView:
    """A task as the service tells it. Without the right `speak` the words are empty. Times in seconds."""

    id: str
    key: str = ""
    lineage: str = ""
    version: int = 0
    capability: str = ""
    turn: int = 0
    lang: str = ""
    zone: str = ""
    provenance: str = ""
    execution: str = ""
    execution_reason: str = ""
    delivery: str = ""
    delivery_reason: str = ""
    replaces: str = ""
    superseded_by: str = ""
    reply_id: str = ""
    age_s: float = 0.0
    ended_s: float | None = None
    """How long ago the work ended; None while it goes on."""
    forgotten: bool = False
    """Answered so long ago that only the id is known."""
    prose: str = ""
    arguments_json: str = ""
    kind: str = ""
    text: str = ""
    rest: str = ""

    @property
    def arguments(self) -> dict[str, Any]:
        return json.loads(self.arguments_json or "{}")

    @property
    def live(self) -> bool:
        """The work may still be done."""
        return not self.forgotten and Execution(self.execution) not in EXECUTION_END

    @property
    def closed(self) -> bool:
        """Nothing of it will change any more."""
        return self.forgotten or not self.live and Delivery(self.delivery) in DELIVERY_END


@dataclass(frozen=True)
class Snapshot:
    """Everything the session remembers. `dropped`: transitions that this reader was too slow for, so far."""

    tasks: tuple[TaskView, ...]
    dropped: int = 0


@dataclass(frozen=True)
class Change:
    """One transition. `machine`: execution | delivery; `task` as it is after it; `src` "" for an acceptance."""

    machine: str
    task: TaskView
    src: str
    dst: str
    reason: str
    dropped: int = 0


@dataclass(frozen=True)
class SessionClosed:
    """The session ended: closed | idle."""

    reason: str


WatchItem = Snapshot | Change | SessionClosed


@dataclass(frozen=True)
class CapabilityView:
    """One capability as the service offers it. Texts by language; `schema` is the JSON schema of the arguments."""

    id: str
    kind: str
    summary: dict[str, str]
    avoid: dict[str, str]
    schema: dict[str, Any]
    group: str
    derived: frozenset[str]
    timeout_s: float
    cancellable: bool
    slow: bool
