"""What a delegated request may know: the words consumed when it opened, frozen and hashed.

User words count if they ended by `opened_pos`; assistant words only as far as the device confirmed them played. What
arrived later, even a moment, is outside.
"""
import copy
import hashlib
import json
from dataclasses import dataclass, field
from typing import Iterable

from harness.errors import BadRequest

REPAIRS = ("new", "update", "cancel", "status", "repeat")
MAX_PROSE_CHARS = 4000


@dataclass(frozen=True)
class UserWords:
    """User speech in [start, end) device samples."""

    turn: int
    text: str
    start: int
    end: int
    speaker: str = "occupant"


@dataclass(frozen=True)
class HeardWords:
    """Words of the assistant that left the loudspeaker by device sample `end`; `confirmed` by the device's report."""

    seg: str
    text: str
    end: int
    confirmed: bool = True


@dataclass(frozen=True)
class Evidence:
    """Frozen at the instant the request opened. `hash` goes into the ledger, the words stay out of it."""

    opened_pos: int
    opened_seq: int
    user: tuple[UserWords, ...] = ()
    assistant: tuple[HeardWords, ...] = ()
    hash: str = field(default="", init=False)

    def __post_init__(self):
        facts = [self.opened_pos, self.opened_seq,
                 [[w.turn, w.text, w.start, w.end, w.speaker] for w in self.user],
                 [[w.seg, w.text, w.end] for w in self.assistant]]
        digest = hashlib.sha256(json.dumps(facts, ensure_ascii=False).encode()).hexdigest()
        object.__setattr__(self, "hash", digest)

    @classmethod
    def freeze(cls, opened_pos: int, opened_seq: int, user: Iterable[UserWords] = (),
               assistant: Iterable[HeardWords] = (), window: int = 60 * 16_000) -> "Evidence":
        """Cut both histories to [opened_pos - window, opened_pos] device samples, confirmed words only."""
        def inside(end: int) -> bool:
            return opened_pos - window <= end <= opened_pos
        return cls(opened_pos, opened_seq, tuple(w for w in user if inside(w.end)),
                   tuple(w for w in assistant if w.confirmed and inside(w.end)))


@dataclass(frozen=True)
class DelegateRequest:
    """A private request of the front end. `prose`: the user's own words; `repair`: one of REPAIRS.

    An empty `key` is derived from where and what was asked. Raises BadRequest naming the wrong field.
    """

    key: str
    turn: int
    opened_pos: int
    opened_seq: int
    prose: str
    capability: str | None = None
    arguments: dict = field(default_factory=dict)
    repair: str = "new"
    lang: str = "en"
    zone: str = "driver"

    def __post_init__(self):
        if self.repair not in REPAIRS:
            raise BadRequest(f"repair: '{self.repair}' is not one of {', '.join(REPAIRS)}", field="repair")
        if not isinstance(self.arguments, dict):
            raise BadRequest(f"arguments: a mapping is needed, not {type(self.arguments).__name__}", field="arguments")
        try:
            canonical = json.dumps(self.arguments, sort_keys=True, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise BadRequest(f"arguments: JSON values are needed ({error})", field="arguments") from None
        if len(self.prose) > MAX_PROSE_CHARS:
            raise BadRequest(f"prose: {len(self.prose)} characters, at most {MAX_PROSE_CHARS}", field="prose")
        # The caller's dict must not change a request that was already accepted.
        object.__setattr__(self, "arguments", copy.deepcopy(self.arguments))
        if not self.key:
            facts = f"{self.turn}/{self.opened_pos}/{self.opened_seq}/{self.repair}/{self.capability}/{canonical}/{self.prose}"
            object.__setattr__(self, "key", hashlib.sha256(facts.encode()).hexdigest()[:32])
