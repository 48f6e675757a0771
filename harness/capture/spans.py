"""Delegate spans out of a front end's token ids, across units. Control is by id alone: a tag spelled in words is just words.

    spans = SpanAssembler(control, tokenizer.decode, session=session_id)
    visible, events = spans.step(ids, pos, seq)      # every step; `pos`: device sample, `seq`: the unit's number

A span's *region* is private: nothing of it is visible. It begins at the opening token and ends at the closing one, at the end
of the turn, at listening, or when a limit is reached. All text ids outside a region are visible, in order; no special token ever is.
No region outlasts `max_units` units or hides more than `max_region_tokens` text ids, whatever the row says.

what comes                                  outcome                                             region
----                                        ----                                                ----
close, content is words or calls            SpanClosed, outcome `closed`                        ends
end of turn inside, content complete        SpanClosed, outcome `turn_end` (some checkpoints    ends
                                            end a span so)
end of stream inside                        SpanRejected `unclosed`                             ends
more than `max_units` units                 SpanRejected `unclosed`                             ends
more than `max_tokens` tokens               SpanRejected `oversized`, at once; memory freed     goes on
more than 4000 characters                   SpanRejected `oversized`                            ends
nothing but whitespace                      SpanRejected `empty`                                ends
another open                                SpanRejected `nested` for the outer; the inner is   ends; the inner's begins
                                            a span of its own
listen inside                               SpanRejected `listen`                               ends
image, backend, other special token inside  SpanRejected `foreign_token`, at once               goes on
unit, speak, chunk end, TTS tokens inside   skipped                                             goes on
tag spelled in words inside                 content, made inert                                 goes on
JSON that is no valid call                  SpanRejected `malformed_call` with the reason       ends
content that can't be decoded               SpanRejected `undecodable`                          ends
more than `max_spans` spans without end of  SpanRejected `too_many`, at once                    goes on
turn or listening
session reset inside                        SpanRejected `reset`                                ends
close without open                          dropped and counted                                 none
special token outside                       not visible                                         none
"""
from dataclasses import dataclass, field
from typing import Callable, NamedTuple, Sequence

from pydantic import BaseModel, ConfigDict, Field

from harness.capture.calls import Content, parse
from harness.capture.tokens import ControlTokens
from harness.errors import MalformedSpan
from venus_edge.metrics import METRICS

REASONS = ("unclosed", "oversized", "empty", "nested", "listen", "foreign_token", "malformed_call", "undecodable", "too_many", "reset")


class SpanLimits(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    max_tokens: int = Field(1024, ge=1)
    """Content of one span; beyond it the span is rejected."""
    max_region_tokens: int = Field(4096, ge=1)
    """Ids a region may hide in all, so that a lost closing token can't swallow the speech that follows."""
    max_units: int = Field(16, ge=1)
    """Units a span may reach across after the one it opened in."""
    max_spans: int = Field(32, ge=1)
    """Spans until the model ends its turn or listens; a model in a loop does not become a thousand tasks."""


class SpanOpened(NamedTuple):
    """A span began in unit `seq`, which ends at device sample `pos`: freeze the evidence now."""

    span_id: str
    pos: int
    seq: int


class SpanClosed(NamedTuple):
    """A request is complete. `pos` and `seq` are those of its opening; `outcome`: closed | turn_end."""

    span_id: str
    content: Content
    outcome: str
    pos: int
    seq: int


class SpanRejected(NamedTuple):
    """Nothing comes of the span: release its evidence. `reason`: one of REASONS; `detail` holds no words."""

    span_id: str
    reason: str
    detail: str = ""


Event = SpanOpened | SpanClosed | SpanRejected


@dataclass(slots=True)
class _Region:
    span_id: str
    pos: int
    seq: int
    condemned: bool = False
    """Already rejected: what still comes is hidden and forgotten."""
    hidden: int = 0
    ids: list[int] = field(default_factory=list)


class SpanAssembler:
    """One per session. `decode(ids) -> str` is called once for each span, for its content alone.

    Span ids are `session/turn/ordinal`, so that a turn replayed after `begin_turn` with its number gives the same ids.
    """

    def __init__(self, control: ControlTokens, decode: Callable[[list[int]], str], limits: SpanLimits | None = None, *,
                 session: str = "session", turn: int = 1):
        self._control, self._decode, self._limits, self._session = control, decode, limits or SpanLimits(), session
        self._is_plain = control.reserved.isdisjoint
        self._region: _Region | None = None
        self._turn, self._ordinal, self._burst = turn, 0, 0

    @property
    def private(self) -> bool:
        """Inside a region: the speech samples that go with these ids are private too."""
        return self._region is not None

    @property
    def turn(self) -> int:
        """Number of the assistant's turn; the end of one begins the next."""
        return self._turn

    def begin_turn(self, turn: int) -> tuple[Event, ...]:
        """The ids that follow belong to `turn`, from its first one: also to replay a turn that was already fed."""
        events = self._reject("reset")
        self._turn, self._ordinal, self._burst = turn, 0, 0
        return events

    def reset(self) -> tuple[Event, ...]:
        """The front end dropped what it was saying (a barge-in, a new stream): an open span is rejected, a new turn begins."""
        return self.begin_turn(self._turn + 1)

    def finish(self) -> tuple[Event, ...]:
        """The stream ended."""
        return self._reject("unclosed", "the stream ended")

    def step(self, ids: Sequence[int], pos: int, seq: int) -> tuple[Sequence[int], tuple[Event, ...]]:
        """Take the new ids of unit `seq`, which ends at device sample `pos`: (ids that may be shown and spoken, events).

        The ids come back as they are where nothing in them is control. The cost does not depend on what came before.
        """
        region = self._region
        if self._is_plain(ids):
            if region is None:
                return ids, ()
            hidden = region.hidden + len(ids)
            if not region.condemned and seq - region.seq <= self._limits.max_units and hidden <= self._limits.max_tokens:
                region.ids.extend(ids)
                region.hidden = hidden
                return (), ()
        return self._walk(ids, pos, seq)

    def _walk(self, ids: Sequence[int], pos: int, seq: int) -> tuple[list[int], tuple[Event, ...]]:
        control, limits, reserved = self._control, self._limits, self._control.reserved
        visible: list[int] = []
        events: list[Event] = []
        region = self._region
        if region is not None and seq - region.seq > limits.max_units:
            events += self._reject("unclosed", f"{limits.max_units} units have passed")
            region = None
        for token in ids:
            if token not in reserved:
                if region is None:
                    visible.append(token)
                    continue
                region.hidden += 1
                if region.hidden > limits.max_region_tokens:
                    events += self._reject("oversized", f"more than {limits.max_region_tokens} tokens")
                    region = None
                    visible.append(token)
                elif not region.condemned:
                    if region.hidden <= limits.max_tokens:
                        region.ids.append(token)
                    else:
                        events += self._condemn(region, "oversized", f"more than {limits.max_tokens} tokens")
                continue
            if token == control.delegate_open:
                events += self._reject("nested")
                region = self._open(pos, seq, events)
            elif token == control.delegate_close:
                if region is None:
                    METRICS.add("venus_harness_span_stray_close_total")
                else:
                    events += self._close("closed")
                    region = None
            elif token == control.turn_eos:
                if region is not None:
                    events += self._close("turn_end")
                    region = None
                self._turn, self._ordinal, self._burst = self._turn + 1, 0, 0
            elif token == control.listen:
                events += self._reject("listen")
                region, self._burst = None, 0
            elif region is not None and not region.condemned and token not in control.pacing:
                events += self._condemn(region, "foreign_token", f"id {token}")
        return visible, tuple(events)

    def _open(self, pos: int, seq: int, events: list[Event]) -> _Region:
        self._ordinal, self._burst = self._ordinal + 1, self._burst + 1
        region = self._region = _Region(f"{self._session}/{self._turn}/{self._ordinal}", pos, seq)
        if self._burst > self._limits.max_spans:
            events += self._condemn(region, "too_many", f"more than {self._limits.max_spans} at a stretch")
        else:
            METRICS.add("venus_harness_span_opened_total")
            events.append(SpanOpened(region.span_id, pos, seq))
        return region

    def _close(self, outcome: str) -> tuple[Event, ...]:
        region, self._region = self._region, None
        if region is None or region.condemned:
            return ()
        try:
            text = self._decode(region.ids)
        except Exception as error:  # a tokenizer's fault costs this span, never the session
            return self._rejected(region, "undecodable", type(error).__name__)
        try:
            content = parse(text, region.span_id, self._control.table)
        except MalformedSpan as error:
            return self._rejected(region, error.reason, error.message)
        METRICS.add("venus_harness_span_closed_total")
        return (SpanClosed(region.span_id, content, outcome, region.pos, region.seq),)

    def _reject(self, reason: str, detail: str = "") -> tuple[Event, ...]:
        """Reject the open span, if there is one, and end its region."""
        region, self._region = self._region, None
        return () if region is None or region.condemned else self._rejected(region, reason, detail)

    def _condemn(self, region: _Region, reason: str, detail: str) -> tuple[Event, ...]:
        """Reject the span at once; its region goes on."""
        region.condemned = True
        region.ids = []
        return self._rejected(region, reason, detail)

    def _rejected(self, region: _Region, reason: str, detail: str) -> tuple[Event, ...]:
        METRICS.add(f"venus_harness_span_{reason}_total")
        return (SpanRejected(region.span_id, reason, detail),)
