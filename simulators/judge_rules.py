"""One rule for each kind of expectation: outcomes only, from the loudspeaker recording, the ledger and the vehicle's signals.

A rule gets a Case (one scripted utterance and all evidence) and what was wanted, and yields a Failure for each thing that did
not hold. RULES is the whole table; its keys are the fields of a scenario's `expect`.
"""
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from simulators.judge_audio import Hearing
from simulators.judge_evidence import Evidence, Segment, Utterance, was_refused
from simulators.judge_numbers import has_number, numbers_in
from simulators.phonetic import heard_phrase
from simulators.timeline import MIC_RATE

STOP_S = 2.0
"""A segment that the user's words stopped is silent this long after those words ended, or they did not stop it."""
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Failure:
    """An expectation that did not hold, and where to listen: `at_s` in speaker.wav, `pos` in device samples."""

    step: str
    kind: str
    expected: str
    found: str
    pos: int

    @property
    def at_s(self) -> float:
        return round(self.pos / MIC_RATE, 2)

    def __str__(self) -> str:
        return (f"{self.step or 'run'}: {self.kind}: expected {self.expected}; found {self.found} "
                f"(speaker.wav at {self.at_s:.2f} s, pos {self.pos})")

    def row(self) -> dict[str, Any]:
        return {"step": self.step, "kind": self.kind, "expected": self.expected, "found": self.found, "at_s": self.at_s,
                "pos": self.pos}


@dataclass(frozen=True)
class Case:
    """One scripted utterance, with everything that answers it."""

    utterance: Utterance
    evidence: Evidence
    hearing: Hearing

    @property
    def answers(self) -> list[Segment]:
        return [s for s in self.evidence.answers(self.utterance.id) if s.first > self.utterance.begin]

    @property
    def heard(self) -> str:
        return " ".join(filter(None, (self.hearing.segment(s) for s in self.answers)))

    @property
    def answer_pos(self) -> int:
        return self.answers[0].first if self.answers else self.utterance.end

    @property
    def horizon(self) -> int:
        """Until when effects of this utterance count: its last answer, or the next utterance if that is later."""
        return max([self.evidence.next_begin(self.utterance), *(s.last for s in self.answers)])

    def fail(self, kind: str, expected: str, found: str, pos: int | None = None) -> Failure:
        return Failure(self.utterance.id, kind, expected, found, self.answer_pos if pos is None else pos)


def _list(value: Any) -> list:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _field(value: Any, name: str, default: Any = None) -> Any:
    return value.get(name, default) if isinstance(value, dict) else getattr(value, name, default)


def _quote(text: str) -> str:
    return f"“{text}”" if text else "nothing"


def said(phrase: str, heard: str) -> bool:
    """Names and words by their sound, the numbers in them exactly. `a | b` accepts either."""
    return any(heard_phrase(option.strip(), heard) and all(has_number(heard, n) for n in numbers_in(option))
               for option in phrase.split("|") if option.strip())


def heard(case: Case, wanted: Any) -> Iterator[Failure]:
    for phrase in _list(wanted):
        if not said(phrase, case.heard):
            yield case.fail("heard", _quote(phrase), _quote(case.heard))


def not_heard(case: Case, wanted: Any) -> Iterator[Failure]:
    for phrase in _list(wanted):
        for segment in case.answers:
            if said(phrase, case.hearing.segment(segment)):
                yield case.fail("not_heard", f"no {_quote(phrase)}", _quote(case.hearing.segment(segment)), segment.first)


def heard_numbers(case: Case, wanted: Any) -> Iterator[Failure]:
    for number in _list(wanted):
        if not has_number(case.heard, float(number)):
            found = ", ".join(f"{n:g}" for n in numbers_in(case.heard)) or "none"
            yield case.fail("heard_numbers", f"the number {number:g}", f"{found} in {_quote(case.heard)}")


def within_s(case: Case, wanted: float) -> Iterator[Failure]:
    if not case.answers:
        yield case.fail("within_s", f"an answer within {wanted:g} s", "no answer")
        return
    latency = (case.answers[0].first - case.utterance.end) / MIC_RATE
    if latency > wanted:
        yield case.fail("within_s", f"an answer within {wanted:g} s", f"{latency:.2f} s")


def matches(found: Any, wanted: Any) -> bool:
    """Numbers exactly (22 is 22.0), words by their sound, lists and dictionaries by their parts."""
    if isinstance(wanted, bool) or isinstance(found, bool) or found is None or wanted is None:
        return found == wanted
    if isinstance(wanted, (int, float)) and isinstance(found, (int, float)):
        return abs(found - wanted) < TOLERANCE
    if isinstance(wanted, str) and isinstance(found, str):
        return said(wanted, found)
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(k in found and matches(found[k], v) for k, v in wanted.items())
    if isinstance(wanted, (list, tuple)):
        return any(matches(found, option) for option in wanted)
    return found == wanted


def understood(case: Case, wanted: Any) -> Iterator[Failure]:
    """A delegate of this utterance with the capability and, where given, these arguments (others may be there too)."""
    capability, arguments = _field(wanted, "capability"), _field(wanted, "arguments") or {}
    delegates = case.evidence.delegates_of(case.utterance.id)
    if not any((capability is None or d.capability == capability) and matches(d.arguments, arguments) for d in delegates):
        text = " ".join(x.text for x in case.evidence.texts_of(case.utterance.id))
        found = "; ".join(f"{d.capability or d.repair} {d.arguments}" for d in delegates) or "no request"
        yield case.fail("understood", f"{capability or 'a request'} {arguments or ''}".strip(), f"{found} from {_quote(text)}",
                        case.utterance.begin)


def task(case: Case, wanted: Any) -> Iterator[Failure]:
    """Some task of this utterance ended with these execution and delivery states."""
    states = {m: [str(s).lower() for s in _list(_field(wanted, m))] for m in ("execution", "delivery") if _field(wanted, m)}
    tasks = case.evidence.tasks_of(case.utterance.id)
    if not any(all((t.final(machine) or "none") in allowed for machine, allowed in states.items()) for t in tasks):
        found = "; ".join(f"{t.capability} {t.final('execution')} ({t.reason('execution')}), {t.final('delivery') or 'none'} "
                          f"({t.reason('delivery')})" for t in tasks) or "no task"
        yield case.fail("task", ", ".join(f"{m} {' or '.join(s)}" for m, s in states.items()), found)


def _value_ok(value: Any, wanted: Any) -> bool:
    between = _field(wanted, "between")
    if between is not None:
        return isinstance(value, (int, float)) and between[0] <= value <= between[1]
    return matches(value, _field(wanted, "equals"))


def signal(case: Case, wanted: Any) -> Iterator[Failure]:
    """`equals`: the last value while this utterance was dealt with. `between`: some value in that time.

    A result that says so must not be heard before the value was reached.
    """
    for one in _list(wanted):
        path, between = _field(one, "path"), _field(one, "between")
        expected = f"{path} between {between[0]:g} and {between[1]:g}" if between is not None \
            else f"{path} = {_field(one, 'equals')}"
        known = [r for r in case.evidence.signal(path) if r[0] <= case.horizon]
        before = [r for r in known if r[0] <= case.utterance.begin][-1:]
        during = before + [r for r in known if r[0] > case.utterance.begin]
        if not during:
            yield case.fail("signal", expected, "no value of it was ever reported", case.utterance.end)
            continue
        judged = during if between is not None else during[-1:]
        right = [r for r in judged if _value_ok(r[2], one)]
        if not right:
            yield case.fail("signal", expected, f"{judged[-1][2]}", judged[-1][0])
            continue
        done = {t.id for t in case.evidence.tasks_of(case.utterance.id) if t.final("execution") == "completed"}
        first = next((r for r in during if _value_ok(r[2], one)), right[0])
        told = next((s for s in case.answers if s.kind == "result" and s.task in done), None)
        if between is None and told and told.t_first < first[1]:
            yield case.fail("signal", f"{expected} before it is confirmed", f"confirmed {first[1] - told.t_first:.2f} s too early",
                            told.first)


def refused(case: Case, wanted: Any) -> Iterator[Failure]:
    """The car host refused it, or (False) did not. A string is the reason or code that must be given."""
    refusals = [e for e in case.evidence.effects_of(case.utterance) if was_refused(e)]
    if wanted is False:
        for effect in refusals:
            yield case.fail("refused", "not refused", f"{effect.get('path')} refused: {effect.get('reason')}", effect.pos)
        return
    reasons = [str(e.get("reason")) for e in refusals] + [t.reason("execution") for t in case.evidence.tasks_of(case.utterance.id)
                                                          if t.final("execution") == "failed"]
    ok = any(str(wanted) in reason for reason in reasons) if isinstance(wanted, str) else bool(refusals)
    if not ok:
        found = "; ".join(f"{e.get('op')} {e.get('path')} {e.get('verdict')}" for e in case.evidence.effects_of(case.utterance))
        yield case.fail("refused", f"a refusal{f' ({wanted})' if isinstance(wanted, str) else ''}",
                        "; ".join(filter(None, [found, *reasons])) or "no effect was asked for")


def assistant(case: Case, wanted: Any) -> Iterator[Failure]:
    """What the assistant did with the floor when this was said while it spoke: `goes_on` or `stops`."""
    stops = wanted == "stops" or (not isinstance(wanted, str) and bool(_field(wanted, "stops")))
    segment = case.evidence.playing_at(case.utterance.begin)
    expected = "the assistant stops" if stops else "the assistant goes on"
    if segment is None:
        yield case.fail("assistant", expected, "it was not speaking when this was said", case.utterance.begin)
    elif stops and (segment.state != "flushed" or segment.last > case.utterance.end + STOP_S * MIC_RATE):
        yield case.fail("assistant", expected, f"segment {segment.seg} {segment.state} "
                        f"{(segment.last - case.utterance.begin) / MIC_RATE:.2f} s after the user began", segment.last)
    elif not stops and not segment.whole:
        yield case.fail("assistant", expected, f"segment {segment.seg} {segment.state} after {segment.played} of "
                        f"{segment.length} samples", segment.last)


def supersedes(case: Case, wanted: Any) -> Iterator[Failure]:
    """The task of an earlier utterance (named, or True for the latest one with a task) was replaced and stayed silent."""
    earlier = [u for u in case.evidence.utterances if u.begin < case.utterance.begin and case.evidence.tasks_of(u.id)
               and (wanted is True or u.id == wanted)]
    if not earlier:
        yield case.fail("supersedes", f"a task of {'an earlier utterance' if wanted is True else wanted} to replace", "none",
                        case.utterance.begin)
        return
    tasks = case.evidence.tasks_of(earlier[-1].id)
    if not any(t.when("execution", "superseded", "cancelled") or t.when("delivery", "dropped", "unspoken", "merged")
               for t in tasks):
        yield case.fail("supersedes", f"the task of {earlier[-1].id} superseded",
                        "; ".join(f"{t.capability} {t.final('execution')}, {t.final('delivery')}" for t in tasks))
    ids = {t.id for t in tasks}
    for s in case.evidence.segments:
        if s.task in ids and s.first > case.utterance.end:
            yield case.fail("supersedes", f"no more of {earlier[-1].id}", _quote(case.hearing.segment(s)), s.first)


def then_heard(case: Case, wanted: Any) -> Iterator[Failure]:
    """Heard later than the first answer, whenever that is, and told to the end only once: the result of a slow task."""
    first = case.answers[0].last if case.answers else case.utterance.end
    later = [s for s in case.evidence.segments if s.first > first]
    text = " ".join(filter(None, (case.hearing.segment(s) for s in later)))
    for phrase in _list(wanted):
        if not said(phrase, text):
            yield case.fail("then_heard", f"{_quote(phrase)} later", _quote(text), later[0].first if later else first)
        told = [s for s in case.answers if s.whole and s.kind == "result" and said(phrase, case.hearing.segment(s))]
        if len(told) > 1:
            yield case.fail("then_heard", f"{_quote(phrase)} once", f"told {len(told)} times", told[1].first)


RULES: dict[str, Callable[[Case, Any], Iterable[Failure]]] = {
    rule.__name__: rule for rule in (heard, heard_numbers, not_heard, within_s, understood, task, signal, refused, assistant,
                                     supersedes, then_heard)}


def size(wanted: Any) -> int:
    """How many expectations one field holds."""
    return len(wanted) if isinstance(wanted, (list, tuple)) else 1
