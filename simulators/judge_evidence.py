"""What the timeline says happened, put together by who and what: utterances, played segments, tasks, signals, effects.

Everything the judge, the report and the console's summary know about a run comes from here, so the rules that attribute a
segment or a task to an utterance exist once.
"""
from collections import defaultdict
from dataclasses import dataclass, field, replace

from simulators.timeline import MIC_RATE, Event, device_clock

SLACK = 4800
"""0.3 s: how far the recognised span of an utterance may lie from the spoken one and still be the same."""


@dataclass(frozen=True)
class Utterance:
    """What a person said; `begin`/`end` = first/last sample of the words."""

    id: str
    who: str
    said: str
    begin: int
    end: int


@dataclass(frozen=True)
class Understood:
    """A recognised user text that became final."""

    turn: int
    text: str
    start: int
    end: int
    t: float
    backchannel: bool


@dataclass(frozen=True)
class Segment:
    """One segment that came out of the loudspeaker: [first, last] device samples, `played`/`length` in its own samples."""

    seg: str
    text: str
    task: str
    reply: str
    kind: str
    turn: int
    first: int
    last: int
    t_first: float
    t_made: float
    state: str
    played: int
    length: int
    heard: str = ""
    unheard: str = ""
    worker_played: int | None = None
    confirmed: bool = False

    @property
    def whole(self) -> bool:
        return self.state == "ended"


@dataclass(frozen=True)
class Delegate:
    """A request the front end handed over."""

    task: str
    turn: int
    capability: str
    arguments: dict
    repair: str
    prose: str
    pos: int
    t: float


@dataclass
class Task:
    """A task's way through both state machines: lists of (t, pos, state, reason)."""

    id: str
    capability: str = ""
    execution: list[tuple[float, int, str, str]] = field(default_factory=list)
    delivery: list[tuple[float, int, str, str]] = field(default_factory=list)

    def final(self, machine: str) -> str:
        steps = getattr(self, machine)
        return steps[-1][2] if steps else ""

    def reason(self, machine: str) -> str:
        steps = getattr(self, machine)
        return steps[-1][3] if steps else ""

    def when(self, machine: str, *states: str) -> tuple[float, int] | None:
        """(t, pos) of the first arrival in one of `states`."""
        return next(((t, pos) for t, pos, state, _ in getattr(self, machine) if state in states), None)


def _text(value) -> str:
    """Field values that may be absent, None or lists of spans, as one string."""
    if isinstance(value, (list, tuple)):
        return " ".join(filter(None, (_text(v) for v in value)))
    if isinstance(value, dict):
        return str(value.get("text", ""))
    return "" if value is None else str(value)


def was_refused(effect: Event) -> bool:
    """Whether the car host's policy refused this effect (as against allowed it, or failed at it)."""
    return effect.get("verdict") == "refuse"


class Evidence:
    """The events of one run, indexed. `events` is kept; everything else is derived from it."""

    def __init__(self, events: list[Event]):
        self.events, self.clock = events, device_clock(events)
        self.end = max((e.pos or 0 for e in events), default=0)
        self.by_kind: dict[str, list[Event]] = defaultdict(list)
        for event in events:
            self.by_kind[event.ev].append(event)
        self.utterances = self._utterances()
        self.understood = [
            Understood(int(e.get("turn") or 0), _text(e.get("text")), int(e.get("start") or e.pos), int(e.get("end") or e.pos),
                       e.t, bool(e.get("backchannel")))
            for e in self.by_kind["user.text"] if e.get("final", True)]
        self.delegates = [
            Delegate(_text(e.get("task")), int(e.get("turn") or 0), _text(e.get("capability")), e.get("arguments") or {},
                     e.get("repair") or "new", _text(e.get("prose")), e.pos, e.t)
            for e in self.by_kind["delegate"]]
        self.tasks = self._tasks()
        self.segments = self._segments()
        self._turn_of = self._turns()
        self._task_of = {d.task: self._utterance_of_delegate(d) for d in reversed(self.delegates) if d.task}

    # -- built once ---------------------------------------------------------------------------------------------------
    def _utterances(self) -> list[Utterance]:
        ends = {str(e.get("id")): e for e in self.by_kind["utter.end"]}
        found = []
        for e in self.by_kind["utter.begin"]:
            done = ends.get(str(e.get("id")))
            found.append(Utterance(str(e.get("id")), _text(e.get("who")), _text(e.get("text")), e.pos,
                                   done.pos if done else self.end))
        return sorted(found, key=lambda u: u.begin)

    def _tasks(self) -> dict[str, Task]:
        tasks: dict[str, Task] = {}
        for name in ("execution", "delivery"):
            for e in sorted(self.by_kind[f"task.{name}"], key=lambda e: e.t):
                task = tasks.setdefault(_text(e.get("task")), Task(_text(e.get("task"))))
                task.capability = task.capability or _text(e.get("capability"))
                getattr(task, name).append((e.t, e.pos, _text(e.get("to")).lower(), _text(e.get("reason"))))
        return tasks

    def _segments(self) -> list[Segment]:
        kinds = {_text(e.get("reply")): e for e in self.by_kind["reply.admit"]}
        made: dict[str, Event] = {}
        texts: dict[str, list[str]] = defaultdict(list)
        for e in sorted(self.by_kind["segment"] + self.by_kind["segment.more"], key=lambda e: (e.t, e.get("start") or 0)):
            seg = _text(e.get("seg"))
            made.setdefault(seg, e)
            if _text(e.get("text")) not in texts[seg]:
                texts[seg].append(_text(e.get("text")))
        last = {_text(e.get("seg")): e for e in self.by_kind["seg.last"]}
        ends = {_text(e.get("seg")): e for e in self.by_kind["segment.end"]}
        found = []
        for e in self.by_kind["seg.first"]:
            seg = _text(e.get("seg"))
            worker, stop, end = made.get(seg), last.get(seg), ends.get(seg)
            reply = _text(worker.get("reply")) if worker else ""
            admitted = kinds.get(reply)
            task = (_text(worker.get("task")) if worker else "") or (_text(admitted.get("task")) if admitted else "")
            found.append(Segment(
                seg=seg, text=" ".join(t for t in texts[seg] if t), task=task, reply=reply,
                kind=_text(admitted.get("kind")) if admitted else "",
                turn=next((int(e.get("turn")) for e in (worker, admitted) if e and e.get("turn")), 0),
                first=e.pos, last=stop.pos if stop else self.end, t_first=e.t, t_made=worker.t if worker else e.t,
                state=_text(stop.get("state")) if stop else "playing",
                played=int(stop.get("played") or 0) if stop else 0, length=int(stop.get("len") or 0) if stop else 0,
                heard=_text(end.get("heard")) if end else "", unheard=_text(end.get("unheard")) if end else "",
                worker_played=int(end.get("played") or 0) if end else None, confirmed=bool(end and end.get("confirmed"))))
        return sorted(found, key=lambda s: s.first)

    def _turns(self) -> dict[int, str]:
        """Turn -> the utterance that its recognised text overlaps most."""
        best: dict[int, tuple[int, str]] = {}
        for text in self.understood:
            for u in self.utterances:
                overlap = min(text.end, u.end + SLACK) - max(text.start, u.begin - SLACK)
                if overlap > 0 and overlap > best.get(text.turn, (0, ""))[0]:
                    best[text.turn] = (overlap, u.id)
        return {turn: utterance for turn, (_, utterance) in best.items()}

    # -- attribution --------------------------------------------------------------------------------------------------
    def _latest_begun(self, pos: int) -> str:
        return next((u.id for u in reversed(self.utterances) if u.begin <= pos), "")

    def _utterance_of_delegate(self, delegate: Delegate) -> str:
        return self._turn_of.get(delegate.turn) or self._latest_begun(delegate.pos)

    def utterance_of(self, segment: Segment) -> str:
        """Id of the utterance that `segment` answers: by its task, else by its turn, else by time ("" before the first)."""
        return (self._task_of.get(segment.task) or self._turn_of.get(segment.turn)
                or next((u.id for u in reversed(self.utterances) if u.end <= segment.first), ""))

    def answers(self, utterance: str) -> list[Segment]:
        """The segments that answer an utterance, in the order they were played."""
        return [s for s in self.segments if self.utterance_of(s) == utterance]

    def delegates_of(self, utterance: str) -> list[Delegate]:
        return [d for d in self.delegates if self._utterance_of_delegate(d) == utterance]

    def tasks_of(self, utterance: str) -> list[Task]:
        ids = dict.fromkeys(d.task for d in self.delegates_of(utterance) if d.task)
        return [self.tasks[i] for i in ids if i in self.tasks]

    def texts_of(self, utterance: str) -> list[Understood]:
        return [x for x in self.understood if self._turn_of.get(x.turn) == utterance]

    def timings_of(self, turn: int) -> dict[str, float]:
        """The front end's own figures for a turn, milliseconds; the first of each kind."""
        found: dict[str, float] = {}
        for e in self.by_kind["timings"]:
            if e.get("turn") == turn:
                for name, value in e.fields.items():
                    if name != "turn" and isinstance(value, (int, float)):
                        found.setdefault(name, value)
        return found

    def utterance(self, wanted: str) -> Utterance | None:
        return next((u for u in self.utterances if u.id == wanted), None)

    def next_begin(self, utterance: Utterance) -> int:
        """Where the next utterance begins, or the end of the run."""
        return min((u.begin for u in self.utterances if u.begin > utterance.begin), default=self.end)

    def playing_at(self, pos: int) -> Segment | None:
        return next((s for s in self.segments if s.first <= pos <= s.last), None)

    def signal(self, path: str) -> list[tuple[int, float, object]]:
        """(pos, t, value) of every report of one signal."""
        return [(e.pos, e.t, e.get("value")) for e in self.by_kind["signal"] if e.get("path") == path]

    def effects_of(self, utterance: Utterance) -> list[Event]:
        """Effects that the car host judged for the tasks of an utterance; those without a task id, by time."""
        tasks = {t.id for t in self.tasks_of(utterance.id)}
        until = self.next_begin(utterance)
        return [e for e in self.by_kind["effect"]
                if (_text(e.get("task")) in tasks if e.get("task") else utterance.begin <= e.pos < until)]


@dataclass(frozen=True)
class Turn:
    """One line of the conversation: what was said, what was made of it, what was answered, and how long that took (s)."""

    id: str
    who: str
    said: str
    understood: str
    heard_back: str
    latency_s: float | None
    parts: dict[str, float]
    begin_s: float
    interrupted: bool = False

    def row(self) -> dict:
        return {"id": self.id, "who": self.who, "said": self.said, "understood": self.understood, "heard_back": self.heard_back,
                "latency_s": self.latency_s, "parts": self.parts, "begin_s": self.begin_s, "interrupted": self.interrupted}


def turns(evidence: Evidence, heard=None) -> list[Turn]:
    """The conversation. `heard(segment) -> str` gives what the recogniser found in the loudspeaker recording.

    Latency: the user's last sample -> the first loudspeaker sample of the first segment that answers. Its parts (s): `hear`
    until the final text of the recogniser, `decide` until the segment was made, `speak` until its first sample at the
    loudspeaker; within these, what the front end measured itself (endpoint, recognition, policy, synthesis).
    """
    found = []
    for u in evidence.utterances:
        texts, answers = evidence.texts_of(u.id), evidence.answers(u.id)
        parts: dict[str, float] = {}
        latency = None
        after = [s for s in answers if s.first > u.begin]
        if after and not (texts and all(x.backchannel for x in texts)):
            first = after[0]
            latency = round((first.first - u.end) / MIC_RATE, 3)
            final = [x for x in texts if x.t <= first.t_made + 1e-6]
            if final:
                hear = (evidence.clock.pos(final[-1].t) - u.end) / MIC_RATE
                decide = first.t_made - final[-1].t
                parts = {"hear": round(hear, 3), "decide": round(decide, 3), "speak": round(latency - hear - decide, 3)}
                for name, value in evidence.timings_of(final[-1].turn).items():
                    parts.setdefault(name.removesuffix("_ms"), round(value / 1e3, 3))
        back = " ".join(filter(None, (heard(s) if heard else s.text for s in after)))
        found.append(Turn(u.id, u.who, u.said, " ".join(x.text for x in texts), back, latency, parts,
                          round(u.begin / MIC_RATE, 2), any(s.state == "flushed" for s in after)))
    return found


def shifted(event: Event, *, pos: int, t: float, **fields) -> Event:
    """A copy of `event` later in the run, with some fields changed."""
    return replace(event, pos=(event.pos or 0) + pos, t=event.t + t, fields=event.fields | fields)
