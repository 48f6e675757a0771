"""The judge of a run: did every expectation of the scenario hold, by what came out of the loudspeaker, the ledger and the car?

    judgement = judge(scenario, load(run_dir), run_dir / "speaker.wav", real_recogniser())
    judgement.summary()   -> what goes to summary.json

Nothing here believes what the assistant meant to say: `heard` is the recogniser over the loudspeaker's recording.
"""
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from simulators.judge_audio import Hearing, Recognise, read_wav, real_recogniser
from simulators.judge_checks import MUTATIONS, heard_text, mutate, repeated, stale
from simulators.judge_evidence import Evidence, Turn, turns
from simulators.judge_rules import RULES, Case, Failure, size
from simulators.timeline import Event
from venus_edge.bench import percentile
from venus_edge.errors import ConfigError

__all__ = ["Failure", "Judgement", "MUTATIONS", "judge", "real_recogniser"]

EVENTS = ("session.ready", "vad.on", "vad.off", "seg.first", "seg.last", "utter.begin", "utter.end", "user.text", "segment",
          "segment.end", "script.done")
"""Kinds that every completed run has. A kind that is missing means that the run proved nothing about it."""
EVENTS_OF = {"understood": ("delegate",), "task": ("delegate", "task.execution", "task.delivery", "reply.admit"),
             "signal": ("signal",), "refused": ("effect",), "assistant": ("duck", "overlap"), "supersedes": ("task.execution",)}
"""Kinds that a run must have besides when its scenario expects something of this field."""


@dataclass(frozen=True)
class Judgement:
    """The verdict. `failures` holds failed expectations and violations of what must hold in every run."""

    passed: bool
    expectations: int
    failed: int
    failures: tuple[Failure, ...]
    loop_block_max_ms: float
    stale: int
    repeated: int
    heard_text_errors: int
    turns: tuple[Turn, ...]
    events: dict[str, int]
    latency: dict[str, float | None] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """The content of summary.json: plain JSON values."""
        return {"passed": self.passed, "expectations": self.expectations, "failed": self.failed,
                "failures": [f.row() for f in self.failures], "loop_block_max_ms": self.loop_block_max_ms,
                "stale": self.stale, "repeated": self.repeated, "heard_text_errors": self.heard_text_errors,
                "turns": [t.row() for t in self.turns], "events": self.events, "latency": self.latency}


def judge(scenario: Any, events: list[Event], speaker: Path | str | tuple[np.ndarray, int], recognise: Recognise, *,
          metrics: Mapping[str, float] | None = None, mutate_kind: str | None = None) -> Judgement:
    """Judge a run. `speaker`: the recording's path, or (int16 samples, rate), starting at device sample 0.

    `scenario` None (a real driver): nothing is expected; it passes if the run completed. `metrics`: peaks of the processes,
    for `loop_block_max_ms`. `mutate_kind` (one of MUTATIONS) damages the evidence first: the result must then not pass.
    Raises ConfigError for an unreadable recording or an unknown mutation.
    """
    samples, rate = speaker if isinstance(speaker, tuple) else read_wav(speaker)
    if mutate_kind:
        events, samples = mutate(mutate_kind, events, samples, rate)
    evidence, hearing = Evidence(events), Hearing(samples, rate, recognise)

    expectations, failed, failures, expected = 0, 0, [], set()
    for step, name, wanted in _expectations(scenario):
        expectations += size(wanted)
        expected.add(name)
        utterance = evidence.utterance(step)
        found = list(RULES[name](Case(utterance, evidence, hearing), wanted)) if utterance else [
            Failure(step, name, "it to be said", "it was never said: the run ended before", evidence.end)]
        failed += min(len(found), size(wanted))
        failures += found

    twice, obsolete, untrue = list(repeated(evidence, hearing)), list(stale(evidence)), list(heard_text(evidence, hearing))
    wrong = [*twice, *obsolete, *untrue] if scenario is not None or mutate_kind else []
    counts, missing = _counts(evidence, expected, scripted=scenario is not None)
    failures += wrong + missing
    lines = turns(evidence, hearing.segment)
    times = [t.latency_s for t in lines if t.latency_s is not None]
    return Judgement(
        passed=not failures, expectations=expectations, failed=failed, failures=tuple(failures),
        loop_block_max_ms=_loop_block(evidence, metrics or {}), stale=len(obsolete), repeated=len(twice),
        heard_text_errors=len(untrue), turns=tuple(lines), events=counts,
        latency={"p50_s": percentile(times, 50) if times else None, "p95_s": percentile(times, 95) if times else None})


def _expectations(scenario: Any) -> Iterator[tuple[str, str, Any]]:
    """(step id, field, value) of everything that a scenario expects."""
    for step in getattr(scenario, "steps", ()) if scenario is not None else ():
        expect = getattr(step, "expect", None)
        if expect is None:
            continue
        names = type(expect).model_fields if hasattr(type(expect), "model_fields") else vars(expect)
        for name in names:
            wanted = getattr(expect, name)
            if wanted is None or wanted == [] or wanted == () or wanted == {}:
                continue
            if name not in RULES:
                raise ConfigError(f"expect.{name}: the judge knows {', '.join(RULES)}")
            yield str(step.id), name, wanted


def _counts(evidence: Evidence, expected: set[str], *, scripted: bool) -> tuple[dict[str, int], list[Failure]]:
    """Events per kind, and a failure for each kind that this run should have and has not."""
    needed = ["session.ready", "script.done"]
    if scripted:
        needed = [*EVENTS, *(kind for name in sorted(expected) for kind in EVENTS_OF.get(name, ()))]
    counts = {kind: 0 for kind in needed} | {kind: len(found) for kind, found in evidence.by_kind.items() if found}
    missing = [Failure("", "events", f"at least one {kind}", "none in the timeline", evidence.end)
               for kind in dict.fromkeys(needed) if not counts[kind]]
    return dict(sorted(counts.items())), missing


def _loop_block(evidence: Evidence, metrics: Mapping[str, float]) -> float:
    """The longest block of any event loop, from the traces and the processes' own peaks."""
    found = [float(e.get("late_ms") or 0) for e in evidence.by_kind["loop.block"]]
    found += [float(e["loop_block_max_ms"]) for e in evidence.events if e.get("loop_block_max_ms") is not None]
    found += [float(value) for name, value in metrics.items() if name.endswith("loop_block_max_ms")]
    return round(max(found, default=0.0), 1)
