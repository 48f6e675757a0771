"""The scripted people: when each line starts, from what can be heard and seen in the car alone.

Every 10 ms the cabin tells the Facts and gets the lines that start now. Positions are exact: a line's words fill
[begin, begin + len) at the speaker's mouth.
"""
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from simulators.scenario import Scenario, When
from venus_edge.trace import Trace

MIC_RATE = 16_000
PATIENCE_S = 6.0
"""A person who waits for silence goes on after this if there was no answer at all."""
BOUT_GAP_S = 0.6
"""Pauses up to this belong to one stretch of speech of the loudspeaker."""
SOUND_DBFS = -55.0
"""A loudspeaker block above this (root mean square) is speech, ducked or not; below it is a fade or silence."""


@dataclass(frozen=True)
class Line:
    """Something a person says: int16 at 16 kHz, first to last sample of the words. `text` "" where nobody knows it."""

    id: str
    who: str
    text: str
    samples: np.ndarray
    when: When
    seat: str = "driver"
    expect: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Facts:
    """What people in the car perceive at `pos`, the first sample of the block that begins; all other positions are earlier.

    `sounding`: the loudspeaker gives sound now. `bout`: where its present stretch of speech began (-1: silent for longer
    than BOUT_GAP_S). `last_sound`: end of its last sounding block (-1: never).
    """

    pos: int
    sounding: bool
    bout: int
    last_sound: int
    kmh: float


class Ear:
    """Follows the loudspeaker block by block."""

    def __init__(self):
        self.sounding, self.bout, self.last_sound = False, -1, -1
        self._threshold = (32768 * 10 ** (SOUND_DBFS / 20)) ** 2

    def hear(self, block: np.ndarray, pos: int, length: int) -> None:
        """`block` sounds during [pos, pos + length) device samples."""
        self.sounding = bool(block.any()) and float(np.mean(np.square(block, dtype=np.float32))) > self._threshold
        if self.bout >= 0 and pos - self.last_sound > BOUT_GAP_S * MIC_RATE:
            self.bout = -1
        if self.sounding:
            self.last_sound = pos + length
            if self.bout < 0:
                self.bout = pos

    def facts(self, pos: int, kmh: float) -> Facts:
        return Facts(pos, self.sounding, self.bout, self.last_sound, kmh)


class Script(Protocol):
    """What the cabin asks. Benches bring their own."""

    @property
    def done(self) -> bool:
        """Everything has been said, to its last sample."""
        ...

    def lines(self) -> Sequence[Line]:
        """All lines it may start, so that they can be convolved beforehand."""
        ...

    def start(self, pos: int) -> None:
        """The script's time begins at `pos`."""
        ...

    def tick(self, facts: Facts) -> Sequence[Line]:
        """The lines whose first sample is `facts.pos`."""
        ...


class ScriptedPeople:
    """Lines one after the other, each at its trigger. Writes utter.begin, utter.end, expect and script.done to the trace."""

    def __init__(self, lines: Sequence[Line], trace: Trace | None = None):
        self._lines, self._trace = tuple(lines), trace or Trace("people", directory="")
        self._next, self._begun = 0, None
        self._end = 0  # end of the line said last, or where the script began
        self._speaking: Line | None = None
        self.said: list[tuple[str, int, int]] = []
        """(id, begin, end) of every line said; bounded by the script."""

    @property
    def done(self) -> bool:
        return self._next == len(self._lines) and self._speaking is None and self._begun is not None

    def lines(self) -> Sequence[Line]:
        return self._lines

    def start(self, pos: int) -> None:
        self._begun = self._end = pos
        if self.done:
            self._trace.event("script.done", pos)

    def tick(self, facts: Facts) -> Sequence[Line]:
        if self._begun is None:
            return ()
        if self._speaking is not None:
            if facts.pos < self._end:
                return ()
            line, self._speaking = self._speaking, None
            self._trace.event("utter.end", self._end, id=line.id, who=line.who, text=line.text)
            if self.done:
                self._trace.event("script.done", facts.pos)
        if self._next == len(self._lines):
            return ()
        line = self._lines[self._next]
        ready, timed_out = self._due(line.when, facts)
        if not ready:
            return ()
        self._next += 1
        self._speaking, self._end = line, facts.pos + len(line.samples)
        self.said.append((line.id, facts.pos, self._end))
        self._trace.event("utter.begin", facts.pos, id=line.id, who=line.who, text=line.text, seat=line.seat, timed_out=timed_out)
        if line.expect:
            self._trace.event("expect", facts.pos, id=line.id, expect=line.expect)
        return (line,)

    def _due(self, when: When, facts: Facts) -> tuple[bool, bool]:
        """(say it now, the waiting was given up)."""
        since_end = (facts.pos - self._end) / MIC_RATE
        if when.at_s is not None:
            held = (facts.pos - self._begun) / MIC_RATE >= when.at_s
        elif when.after_s is not None:
            held = since_end >= when.after_s
        elif when.speaking_s is not None:
            held = facts.sounding and facts.bout >= 0 and (facts.pos - max(facts.bout, self._end)) / MIC_RATE >= when.speaking_s
        else:
            answered = facts.last_sound > self._end or not self.said or since_end >= PATIENCE_S
            held = answered and not facts.sounding and (facts.pos - max(facts.last_sound, self._end)) / MIC_RATE >= when.quiet_s
        held = held and (when.min_kmh is None or facts.kmh >= when.min_kmh) and (when.max_kmh is None or facts.kmh <= when.max_kmh)
        waited = (facts.pos - self._begun) / MIC_RATE - when.at_s if when.at_s is not None else since_end
        timed_out = not held and waited >= when.timeout_s
        return held or timed_out, timed_out


def from_scenario(scenario: Scenario, say=None) -> list[Line]:
    """The scenario's lines with their sound. `say(text, voice)` -> int16; default: the voice cache, which makes what is missing."""
    if say is None:
        from simulators.people.cache import VoiceCache
        say = VoiceCache().get
    out = []
    for step in scenario.script:
        person = scenario.people[step.who]
        expect = step.expect.model_dump(exclude_none=True, exclude_defaults=True, mode="json") if step.expect else {}
        out.append(Line(step.id, step.who, step.say, say(step.say, person.voice), step.when, person.seat, expect))
    return out


def from_recording(utterances: Sequence[np.ndarray], quiet_s: float = 1.2) -> list[Line]:
    """A real person's utterances as the driver's lines: each after the loudspeaker has been quiet, with an answer or without."""
    first, later = When(at_s=0.5), When(quiet_s=quiet_s, timeout_s=60.0)
    return [Line(f"driver-{k + 1}", "driver", "", samples, later if k else first) for k, samples in enumerate(utterances)]
