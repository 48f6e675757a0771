"""What must hold in every run, whatever its script: nothing said twice, nothing stale said, and the heard text is true.

`mutate` damages the evidence on purpose, in memory, so that each check can be seen to fail.
"""
import re
from collections.abc import Iterator

import numpy as np

from simulators.judge_audio import Hearing
from simulators.judge_evidence import Evidence, Segment, Task, shifted
from simulators.judge_rules import Failure
from simulators.phonetic import heard_phrase, same_sentence
from simulators.timeline import MIC_RATE, Event
from venus_edge.errors import ConfigError

MUTATIONS = ("stale", "repeated", "heard")
SENTENCE_WORDS = 4
"""Shorter sentences ("You're welcome.") may return without being a repetition."""
PLAYED_SLACK_S = 0.02
"""One report's grain between what the worker holds as played and what the device says."""
_SMALL_TALK = ("ack", "progress")
_OBSOLETE = ("superseded", "cancelled", "expired")


def _sentences(text: str) -> list[str]:
    return [s.strip() for s in re.split(r"(?<=[.?!])\s+", text) if len(s.split()) >= SENTENCE_WORDS]


def repeated(evidence: Evidence, hearing: Hearing) -> Iterator[Failure]:
    """The same sentence in two segments for the same task or utterance, unless the user asked for it between them.

    Acknowledgements may return for another request. What two different requests of the same capability answer alike
    ("It's set to 22 degrees.") was asked for twice.
    """
    known: list[tuple[Segment, list[str]]] = []
    for segment in evidence.segments:
        sentences = _sentences(hearing.segment(segment))
        for earlier, before in known:
            twice = [s for s in sentences if any(same_sentence(s, b) for b in before)]
            if twice and _same_matter(evidence, earlier, segment) and not _asked_again(evidence, earlier, segment):
                yield Failure(evidence.utterance_of(segment), "repeated", f"“{twice[0]}” once",
                              f"said at {earlier.first / MIC_RATE:.2f} s and again", segment.first)
                break
        known.append((segment, sentences))


def _same_matter(evidence: Evidence, a: Segment, b: Segment) -> bool:
    if a.task and a.task == b.task:
        return True
    asked = [evidence.utterance_of(s) for s in (a, b)]
    if asked[0] == asked[1]:
        return True
    if a.kind in _SMALL_TALK or b.kind in _SMALL_TALK or not (a.task and b.task):
        return False
    capabilities = [{d.capability for d in evidence.delegates_of(u)} for u in asked]
    return not capabilities[0] & capabilities[1]


def _asked_again(evidence: Evidence, a: Segment, b: Segment) -> bool:
    return any(d.repair in ("repeat", "status") and a.t_first < d.t <= b.t_first for d in evidence.delegates)


def stale(evidence: Evidence) -> Iterator[Failure]:
    """A segment that began after its task was superseded, cancelled or expired, or after its telling was dropped.

    A cancelled task may still say that it was cancelled.
    """
    for segment in evidence.segments:
        task = evidence.tasks.get(segment.task)
        over = _over(task) if task else None
        if over is None or segment.t_first <= over[0]:
            continue
        if over[2] == "cancelled" and segment.kind not in ("result", "progress"):
            continue
        yield Failure(evidence.utterance_of(segment), "stale",
                      f"nothing of {task.capability or task.id} after it was {over[2]} at {over[1] / MIC_RATE:.2f} s",
                      f"“{segment.text}”", segment.first)


def _over(task: Task) -> tuple[float, int, str] | None:
    """(t, pos, state) from which nothing more may be said of a task."""
    ends = [(t, pos, state) for t, pos, state, _ in task.execution if state in _OBSOLETE]
    ends += [(t, pos, state) for t, pos, state, _ in task.delivery if state in ("dropped", "merged")]
    return min(ends, default=None)


def heard_text(evidence: Evidence, hearing: Hearing) -> Iterator[Failure]:
    """What the worker holds as heard is what left the loudspeaker, by the device's count and by the recording."""
    for s in evidence.segments:
        if s.worker_played is None:
            continue
        rate = _rate(evidence, s.seg)
        if s.confirmed and s.state != "playing" and abs(s.worker_played - s.played) > PLAYED_SLACK_S * rate:
            yield Failure(evidence.utterance_of(s), "heard_text", f"{s.worker_played} samples of {s.seg} played",
                          f"the device played {s.played}", s.last)
            continue
        span_s = (s.last - s.first) / MIC_RATE
        if s.confirmed and s.worker_played > (span_s + 0.25) * rate:
            yield Failure(evidence.utterance_of(s), "heard_text", f"{s.worker_played / rate:.2f} s of {s.seg} played",
                          f"{span_s:.2f} s between its first and last sample in the recording", s.last)
            continue
        # The last heard words are the ones that a wrong count would add; the very last may be lost to the recogniser at the cut.
        words = s.heard.split()
        tail, before = " ".join(words[-4:]), " ".join(words[-5:-1])
        if not s.whole and len(words) >= 5 and not any(heard_phrase(t, hearing.segment(s)) for t in (tail, before)):
            yield Failure(evidence.utterance_of(s), "heard_text", f"“… {tail}” before it was cut off",
                          f"“{hearing.segment(s)}”", s.last)


def _rate(evidence: Evidence, seg: str) -> int:
    return next((int(e["rate"]) for kind in ("segment.end", "segment") for e in evidence.by_kind[kind]
                 if e.get("seg") == seg and e.get("rate")), 24_000)


# -- mutations --------------------------------------------------------------------------------------------------------
def mutate(kind: str, events: list[Event], speaker: np.ndarray, rate: int) -> tuple[list[Event], np.ndarray]:
    """Damaged copies of the events and the recording. Raises ConfigError for an unknown kind or a run without such evidence."""
    if kind not in MUTATIONS:
        raise ConfigError(f"--mutate {kind}: allowed: {', '.join(MUTATIONS)}")
    evidence = Evidence(events)
    if kind == "heard":
        return _claim_more(evidence, events), speaker
    over: list[Segment] = []
    spoken = [s for s in evidence.segments if s.whole and s.text]
    if kind == "stale":
        spoken = [s for s in evidence.segments if s.task and s.text]
        over = [s for s in spoken if s.task in evidence.tasks and _over(evidence.tasks[s.task])
                and s.kind in ("result", "progress", "")]
        spoken = over or spoken
    if not spoken:
        raise ConfigError(f"--mutate {kind}: the run has no {'task' if kind == 'stale' else 'whole segment'} to replay")
    chosen = max(spoken, key=lambda s: (s.kind == "result", len(s.text)))
    events, speaker = _replay(chosen, evidence, events, speaker, rate)
    if kind == "stale" and chosen not in over:
        over_at = next(e for e in evidence.by_kind["seg.first"] if e.get("seg") == chosen.seg)
        events = [*events, Event("worker", over_at.t, over_at.pos, "task.execution",
                                 {"task": chosen.task, "to": "superseded", "reason": "mutation"})]
    return sorted(events, key=lambda e: (e.pos or 0, e.t)), speaker


def _replay(s: Segment, evidence: Evidence, events: list[Event], speaker: np.ndarray, rate: int):
    """The segment once more, a second after the end of the run: its events and its sound."""
    t_end = max(e.t for e in events)
    pos, t = evidence.end + MIC_RATE - s.first, t_end + 1.0 - s.t_first
    copies = [shifted(e, pos=pos, t=t, seg=f"{s.seg}-again") for e in events
              if e.get("seg") == s.seg and e.ev in ("segment", "segment.more", "seg.first", "seg.last", "segment.end")]
    low, high = (round(p * rate / MIC_RATE) for p in (s.first, s.last))
    at = round((s.first + pos) * rate / MIC_RATE)
    longer = np.zeros(max(len(speaker), at + high - low), np.int16)
    longer[:len(speaker)] = speaker
    clip = speaker[low:high]
    longer[at:at + len(clip)] = clip
    return [*events, *copies], longer


def _claim_more(evidence: Evidence, events: list[Event]) -> list[Event]:
    """The worker claims to have been heard further than the device played."""
    ended = [s for s in evidence.segments if s.worker_played is not None]
    if not ended:
        raise ConfigError("--mutate heard: the run has no finished segment")
    chosen = max(ended, key=lambda s: (s.state == "flushed", len(s.unheard)))
    rate = _rate(evidence, chosen.seg)

    def claim(e: Event) -> Event:
        if e.ev != "segment.end" or e.get("seg") != chosen.seg:
            return e
        return shifted(e, pos=0, t=0.0, played=max(chosen.length, chosen.played + rate), unheard="", confirmed=True,
                       heard=f"{chosen.heard} {chosen.unheard}".strip())

    return [claim(e) for e in events]
