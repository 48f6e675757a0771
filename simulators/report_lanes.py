"""The lanes of a run's report: who spoke when, what was decided, the tasks, the playout, the car; as HTML that needs no script.

An element lies at `--t` seconds for `--d` seconds; the style sheet multiplies by the zoom (`--pps`, pixels per second).
"""
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

import numpy as np

from simulators.judge_evidence import Evidence, was_refused
from simulators.timeline import MIC_RATE, Event

LANES = ("microphone", "loudspeaker", "people", "assistant", "ducked", "voice activity", "decisions", "tasks", "playout",
         "effects", "signals", "speed", "faults")
"""Every lane is drawn, also when it is empty: an absence is a finding too."""
_ENVELOPE_S = 0.05


@dataclass(frozen=True)
class Item:
    """A bar (`until` set) or a mark on a lane; seconds of the run. `row` counts down within the lane."""

    at: float
    label: str
    look: str
    detail: str
    until: float | None = None
    row: int = 0

    def html(self, room: float | None = None) -> str:
        """`room`: seconds until the next mark of the row, so that labels don't lie over each other."""
        style = f"--t:{self.at:.3f};--n:{self.row}"
        if self.until is not None:
            style += f";--d:{max(0.0, self.until - self.at):.3f}"
        elif room is not None:
            style += f";--room:{room:.3f}"
        kind = "bar" if self.until is not None else "mark"
        detail = escape(f"{self.at:.2f} s{f' to {self.until:.2f} s' if self.until is not None else ''} · {self.detail}", quote=True)
        return (f'<button type="button" class="{kind} {self.look}" style="{style}" data-at="{self.at:.3f}" title="{detail}">'
                f"{escape(self.label)}</button>")


def _s(pos: int | None) -> float:
    return (pos or 0) / MIC_RATE


def lane(name: str, content: str, rows: int = 1, key: str = "") -> str:
    return (f'<section class="lane" data-lane="{escape(key or name)}" style="--rows:{rows}">'
            f'<h3>{escape(name)}</h3><div class="track">{content}</div></section>')


def _items(items: Iterable[Item]) -> str:
    items = list(items)
    marks = sorted((i for i in items if i.until is None), key=lambda i: (i.row, i.at))
    room = {id(a): b.at - a.at for a, b in zip(marks, marks[1:]) if a.row == b.row}
    return "".join(i.html(room.get(id(i))) for i in items)


def lanes(evidence: Evidence, seconds: float, mic: tuple[np.ndarray, int] | None,
          speaker: tuple[np.ndarray, int] | None) -> str:
    """All lanes as HTML. `mic`, `speaker`: (int16 samples, rate) for their envelopes."""
    out = [_ruler(seconds)]
    for name, sound in (("microphone", mic), ("loudspeaker", speaker)):
        out.append(lane(name, envelope(*sound, seconds) if sound else ""))
    for who in dict.fromkeys(u.who for u in evidence.utterances) or ["people"]:
        bars = [Item(_s(u.begin), u.said, "person", f"{u.who}: {u.said}", _s(u.end)) for u in evidence.utterances if u.who == who]
        out.append(lane(who, _items(bars), key="people"))
    out.append(lane("assistant", _items(_assistant(evidence)), rows=2))
    out.append(lane("ducked", _items(_ducked(evidence))))
    out.append(lane("voice activity", _items(_activity(evidence))))
    out.append(lane("decisions", _items(_decisions(evidence)), rows=3))
    tasks = list(_tasks(evidence))
    out.append(lane("tasks", _items(tasks), rows=max([2, *(i.row + 1 for i in tasks)])))
    out.append(lane("playout", _items(_playout(evidence))))
    out.append(lane("effects", _items(_effects(evidence))))
    signals = list(_signals(evidence))
    out.append(lane("signals", _items(signals), rows=max([1, *(i.row + 1 for i in signals)])))
    out.append(lane("speed", curve([(_s(p), float(v)) for p, _, v in evidence.signal("Vehicle.Speed")
                                    if isinstance(v, (int, float))], seconds)))
    out.append(lane("faults", _items(_faults(evidence))))
    return "\n".join(out)


def _ruler(seconds: float) -> str:
    ticks = "".join(f'<span class="tick" style="--t:{t}">{t // 60}:{t % 60:02d}</span>' for t in range(0, int(seconds) + 1, 5))
    return f'<div class="ruler track">{ticks}</div>'


def _assistant(evidence: Evidence):
    for s in evidence.segments:
        detail = f"{s.text} [{s.seg}, {s.state}, {s.played} of {s.length} samples{f', {s.kind}' if s.kind else ''}]"
        yield Item(_s(s.first), s.text, f"venus {s.state}", detail, _s(s.last))
        if s.state == "flushed":
            yield Item(_s(s.last), f"✕ {s.unheard}", "flush", f"flushed; heard: {s.heard or 'nothing'}; not heard: {s.unheard}",
                       row=1)


def _ducked(evidence: Evidence):
    ends = sorted((e for kind in ("restore", "flush", "seg.last") for e in evidence.by_kind[kind]), key=lambda e: e.pos)
    busy = -1
    for e in evidence.by_kind["duck"]:
        end = next((x for x in ends if x.pos >= e.pos), None)
        until = end.pos if end else evidence.end
        if e.pos >= busy:
            yield Item(_s(e.pos), "ducked", "duck", f"ducked ({e.get('reason')}) until {end.ev if end else 'the end'}", _s(until))
            busy = until


def _pairs(begins: list[Event], ends: list[Event], last: int):
    for e in begins:
        yield e, next((x.pos for x in ends if x.pos >= e.pos), last)


def _activity(evidence: Evidence):
    for e, end in _pairs(evidence.by_kind["gate.open"], evidence.by_kind["gate.close"], evidence.end):
        yield Item(_s(e.pos), "", "gate", f"gate open; {e.get('withheld', 0)} samples withheld before", _s(end))
    for e, end in _pairs(evidence.by_kind["vad.on"], evidence.by_kind["vad.off"], evidence.end):
        yield Item(_s(e.pos), "", "vad", "voice activity", _s(end))


def _decisions(evidence: Evidence):
    for x in evidence.understood:
        what = "backchannel" if x.backchannel else "understood"
        yield Item(_s(x.end), x.text, "text", f"{what}, turn {x.turn}: {x.text}")
    for d in evidence.delegates:
        arguments = ", ".join(f"{k} {v}" for k, v in d.arguments.items())
        name = d.capability or d.repair
        yield Item(_s(d.pos), f"→ {name}", "delegate", f"{d.repair}: {name} ({arguments}) {d.prose}", row=1)
    for e in evidence.by_kind["overlap"]:
        yield Item(_s(e.pos), str(e.get("verdict")), f"overlap {e.get('verdict')}",
                   f"overlap with {e.get('seg')}: {e.get('verdict')} ({e.get('reason')})", row=2)
    for e in evidence.by_kind["reply.admit"]:
        yield Item(_s(e.pos), f"{e.get('kind') or 'reply'}", "admit", f"admitted {e.get('kind')}: {e.get('text')}", row=2)


def _tasks(evidence: Evidence):
    """Two rows for a task, execution over delivery; tasks that don't meet in time share their rows."""
    busy: list[float] = []
    for task in evidence.tasks.values():
        steps = [pos for _, pos, _, _ in (*task.execution, *task.delivery)]
        n = next((i for i, until in enumerate(busy) if until < _s(min(steps))), len(busy))
        busy[n:n + 1] = [_s(max(steps)) + 1.5]
        for row, machine in enumerate(("execution", "delivery")):
            steps = getattr(task, machine)
            for i, (_, pos, state, reason) in enumerate(steps):
                until = steps[i + 1][1] if i + 1 < len(steps) else min(evidence.end, pos + MIC_RATE)
                yield Item(_s(pos), f"{task.capability} {state}" if i + 1 == len(steps) or not i else state,
                           f"task {machine} {state}", f"{task.capability} {machine} {state} {reason} [{task.id}]",
                           max(_s(until), _s(pos) + 0.001), row=2 * n + row)


def _playout(evidence: Evidence):
    for s in evidence.segments:
        confirmed = "confirmed" if s.confirmed else "unconfirmed"
        yield Item(_s(s.first), "", "played", f"{s.seg}: {s.played} of {s.length} samples played, {s.state}, {confirmed}", _s(s.last))
        yield Item(_s(s.last), s.state, f"edge {s.state}", f"{s.seg}: {s.state} at {s.played} samples, {confirmed}")
    for e in evidence.by_kind["playout.gap"]:
        yield Item(_s(e.pos), "gap", "gap", f"{e.get('seg')}: {e.get('len')} samples missing from {e.get('start')} on")


def _effects(evidence: Evidence):
    for e in evidence.by_kind["effect"]:
        refused = was_refused(e)
        name = str(e.get("path") or "").rpartition(".")[2]
        yield Item(_s(e.pos), f"{'✗' if refused else '✓'} {name}", "refused" if refused else "done",
                   f"{e.get('op')} {e.get('path')} = {e.get('value')}: {e.get('verdict')} {e.get('reason') or ''} ({e.get('took_s')} s)")


def _signals(evidence: Evidence):
    """Changes of actuated signals, one row for each signal that changed during the run."""
    changed = {p: r for p in dict.fromkeys(e.get("path") for e in evidence.by_kind["signal"])
               if p and p != "Vehicle.Speed" and len(r := evidence.signal(p)) > 1}
    for row, (path, reports) in enumerate(changed.items()):
        for i, (pos, _, value) in enumerate(reports):
            until = reports[i + 1][0] if i + 1 < len(reports) else evidence.end
            yield Item(_s(pos), f"{path.rpartition('.')[2]} {value}", "signal", f"{path} = {value}", max(_s(until), _s(pos) + 0.001),
                       row=row)


def _faults(evidence: Evidence):
    for e in evidence.by_kind["loop.block"]:
        yield Item(_s(e.pos), f"{e.get('late_ms')} ms", "fault", f"{e.src}: event loop blocked {e.get('late_ms')} ms")
    for e in evidence.by_kind["unit.late"]:
        yield Item(_s(e.pos), f"{e.get('ms')} ms", "fault", f"{e.src}: unit late by {e.get('ms')} ms")


def curve(points: list[tuple[float, float]], seconds: float) -> str:
    """Values over the run as a line, with the largest value written at it."""
    if not points:
        return ""
    top = max(max(v for _, v in points), 1.0)
    line = " ".join(f"{t:.2f},{100 - 100 * v / top:.1f}" for t, v in points)
    return (f'<svg class="curve" viewBox="0 -4 {seconds:.2f} 108" preserveAspectRatio="none" role="img" '
            f'aria-label="speed, at most {top:g} km/h"><polyline points="{line}"/></svg>'
            f'<span class="scale">{top:g} km/h</span>')


def envelope(samples: np.ndarray, rate: int, seconds: float) -> str:
    """Peaks of 50 ms, on a scale of 48 dB, as one closed shape."""
    step = int(rate * _ENVELOPE_S)
    count = len(samples) // step
    if not count:
        return ""
    peaks = np.abs(samples[:count * step].reshape(count, step).astype(np.float32)).max(axis=1) / 32768
    high = np.clip(1 + 20 * np.log10(np.maximum(peaks, 1e-4)) / 48, 0, 1) * 50
    up = " ".join(f"{i * _ENVELOPE_S:.2f},{50 - h:.0f}" for i, h in enumerate(high))
    down = " ".join(f"{i * _ENVELOPE_S:.2f},{50 + h:.0f}" for i, h in reversed(list(enumerate(high))))
    return (f'<svg class="envelope" viewBox="0 0 {seconds:.2f} 100" preserveAspectRatio="none" aria-hidden="true">'
            f'<polygon points="{up} {down}"/></svg>')
