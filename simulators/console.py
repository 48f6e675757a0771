"""The conversation of a run as it happens, for a terminal: who said what, how fast the answer came, what was done.

    console = Console(sys.stdout)
    await show(run_dir, clock, console, stop)      prints until `stop` is set
    console.verdict(judgement.summary(), run_dir)

The user's line is what is being said; under it, what was understood when that differs. The assistant's line is what is being
spoken, from the first sample at the loudspeaker on; after an interruption, what was really heard of it.
"""
import asyncio
import json
import os
import re
from collections import OrderedDict
from pathlib import Path
from typing import Any, TextIO

from simulators.judge_evidence import was_refused
from simulators.timeline import MIC_RATE, Event, Follow
from venus_edge.clock import Clock

_STYLE = {"user": "1;36", "venus": "1;32", "note": "2", "bad": "31", "good": "32", "time": "2", "fast": "32", "slow": "33"}
_ASCII = str.maketrans({"▸": ">", "◂": "<", "…": "...", "→": "->", "✓": "+", "✗": "x", "·": "-", "“": '"', "”": '"'})
_KEEP = 256
"""Segments, replies and utterances remembered at once; the oldest is forgotten."""
_OWN_MOTION = ("Vehicle.Speed", "Vehicle.IsMoving", "Vehicle.CurrentLocation", "Vehicle.Powertrain")
"""Signals that change because the car drives, not because somebody asked."""
SLOW_S = 1.2
"""An answer slower than this is shown as slow (the p95 bar of the voice benchmark)."""


class _Recent(OrderedDict):
    """A dictionary that forgets its oldest entry beyond _KEEP."""

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        while len(self) > _KEEP:
            self.popitem(last=False)


def _short(path: str) -> str:
    """The tail of a VSS path that a person can read: "Cabin.HVAC...Temperature" without "Vehicle."."""
    parts = path.removeprefix("Vehicle.").split(".")
    return ".".join(parts if len(parts) <= 4 else [parts[0], "…", *parts[-2:]])


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


class Console:
    """Give it every event of a run in order. `colour` None decides by the stream: a terminal, and NO_COLOR not set."""

    def __init__(self, out: TextIO, *, json_only: bool = False, colour: bool | None = None):
        self._out, self._json_only = out, json_only
        self._colour = (out.isatty() and not os.environ.get("NO_COLOR")) if colour is None else colour
        encoding = (getattr(out, "encoding", None) or "utf-8").lower()
        self._ascii = "utf" not in encoding
        self._utterances: _Recent = _Recent()  # id -> [who, begin, end, said]
        self._turn_end: _Recent = _Recent()  # turn -> last sample of the utterance that it understood
        self._answered: _Recent = _Recent()  # turn -> True once its latency was shown
        self._segments: _Recent = _Recent()  # seg -> {"text", "turn", "first"}
        self._replies: _Recent = _Recent()  # reply -> turn
        self._signals: dict[str, Any] = {}
        self._changed: dict[str, int] = {}  # path -> position of its last change

    # -- output -------------------------------------------------------------------------------------------------------
    def _paint(self, style: str, text: str) -> str:
        return f"\x1b[{_STYLE[style]}m{text}\x1b[0m" if self._colour else text

    def _line(self, text: str, pos: int | None = None) -> None:
        if self._json_only:
            return
        clock = self._paint("time", f"{pos / MIC_RATE:6.1f}" if pos is not None else "      ")
        self._write(f"{clock}  {text}")

    def _write(self, text: str) -> None:
        if self._ascii:
            text = text.translate(_ASCII).encode("ascii", "replace").decode()
        self._out.write(text + "\n")
        self._out.flush()

    def _note(self, text: str, style: str = "note", pos: int | None = None) -> None:
        self._line(self._paint(style, f"         · {text}"), pos)

    def _said(self, who: str, text: str, pos: int | None) -> None:
        self._line(f"{self._paint('user', f'{who:>9} ▸')} {text}", pos)

    # -- events -------------------------------------------------------------------------------------------------------
    def event(self, event: Event) -> None:
        """Print what this event has to say to a person, if anything."""
        handler = getattr(self, "_on_" + event.ev.replace(".", "_"), None)
        if handler is not None:
            handler(event)

    def _on_utter_begin(self, e: Event) -> None:
        self._utterances[e.get("id")] = [e.get("who") or "user", e.pos or 0, None, e.get("text") or ""]
        if e.get("text"):
            self._said(e.get("who") or "user", e["text"], e.pos)

    def _on_utter_end(self, e: Event) -> None:
        known = self._utterances.get(e.get("id"))
        if known:
            known[2] = e.pos

    def _on_user_text(self, e: Event) -> None:
        if not e.get("final", True):
            return
        start, end = e.get("start") or e.pos or 0, e.get("end") or e.pos or 0
        said = [u for u in self._utterances.values() if u[1] - MIC_RATE // 2 <= end and start <= (u[2] or end) + MIC_RATE // 2]
        if e.get("backchannel"):
            self._note("heard as a backchannel", pos=e.pos)
            return
        if said:
            self._turn_end[e.get("turn")] = said[-1][2] or end
        else:
            self._turn_end[e.get("turn")] = end
        if said and said[-1][3]:
            if _words(said[-1][3]) != _words(e.get("text") or ""):
                self._note(f"understood: {e.get('text')}")
        elif e.get("text"):
            self._said(said[-1][0] if said else "user", e["text"], start)

    def _on_delegate(self, e: Event) -> None:
        arguments = " ".join(f"{k}={v}" for k, v in (e.get("arguments") or {}).items())
        what = e.get("capability") or e.get("prose") or ""
        repair = e.get("repair") or "new"
        self._note(" ".join(filter(None, ("→", what if what else "", arguments, "" if repair == "new" else f"({repair})"))))

    def _on_reply_admit(self, e: Event) -> None:
        self._replies[e.get("reply")] = e.get("turn")

    def _on_segment(self, e: Event) -> None:
        known = self._segments.setdefault(e.get("seg"), {"text": "", "turn": 0, "first": None, "shown": False})
        known["text"] = f"{known['text']} {e.get('text') or ''}".strip()
        known["turn"] = e.get("turn") or self._replies.get(e.get("reply")) or known["turn"]
        if known["first"] is not None:
            self._speak(known)

    def _on_segment_more(self, e: Event) -> None:
        known = self._segments.get(e.get("seg"))
        if known is not None and known["shown"]:
            if e.get("text"):
                self._line(f"{'':>9}   {e['text']}")
            return
        self._on_segment(e)

    def _on_seg_first(self, e: Event) -> None:
        known = self._segments.setdefault(e.get("seg"), {"text": "", "turn": 0, "first": None, "shown": False})
        known["first"] = e.pos
        if known["text"]:
            self._speak(known)

    def _speak(self, known: dict) -> None:
        if known["shown"]:
            return
        known["shown"] = True
        turn, latency = known["turn"], ""
        if turn in self._turn_end and turn not in self._answered:
            self._answered[turn] = True
            seconds = (known["first"] - self._turn_end[turn]) / MIC_RATE
            latency = "  " + self._paint("fast" if seconds <= SLOW_S else "slow", f"[{seconds:.2f} s]")
        self._line(f"{self._paint('venus', '    venus ◂')} {known['text']}{latency}", known["first"])

    def _on_segment_end(self, e: Event) -> None:
        self._segments.pop(e.get("seg"), None)
        if e.get("state") in ("flushed", "lost"):
            words = f"“{e.get('heard')}”" if e.get("heard") else "nothing"
            self._note(f"{'cut off' if e.get('state') == 'flushed' else 'lost'}; really heard: {words}", pos=e.pos)

    def _on_duck(self, e: Event) -> None:
        self._note(f"ducked ({e.get('reason')})", pos=e.pos)

    def _on_overlap(self, e: Event) -> None:
        self._note(f"{'stops' if e.get('verdict') == 'flush' else 'goes on'}: {e.get('reason')}", pos=e.pos)

    def _on_effect(self, e: Event) -> None:
        if e.get("op") == "get" and not was_refused(e):
            return
        what = f"{_short(e.get('path') or '')} = {e.get('value')}"
        if was_refused(e):
            self._note(f"✗ refused: {what} ({e.get('reason')})", "bad", e.pos)
        else:
            failed = e.get("verdict") == "error" or e.get("reached") is False
            self._note(f"{'✗ not done' if failed else '✓'} {what} {e.get('reason') or ''}".rstrip(), "bad" if failed else "good", e.pos)

    def _on_signal(self, e: Event) -> None:
        path, value, pos = e.get("path") or "", e.get("value"), e.pos or 0
        known, changed = path in self._signals, self._changed.get(path)
        self._signals[path] = value
        if known:
            self._changed[path] = pos
        # Of something that moves only the first step is shown: its end comes with the effect.
        if known and not path.startswith(_OWN_MOTION) and (changed is None or pos - changed > MIC_RATE):
            self._note(f"car: {_short(path)} is {value}", pos=e.pos)

    def _on_task_execution(self, e: Event) -> None:
        if e.get("to") in ("failed", "superseded", "cancelled", "expired"):
            self._note(f"{e.get('capability')} {e.get('to')}" + (f": {e.get('reason')}" if e.get("reason") else ""))

    # -- the end ------------------------------------------------------------------------------------------------------
    def verdict(self, summary: dict[str, Any], run_dir: Path | str | None = None) -> None:
        """The last words: with `json_only` one JSON line, else the failures, the figures and where the report lies."""
        if self._json_only:
            keep = ("passed", "expectations", "failed", "loop_block_max_ms", "stale", "repeated", "heard_text_errors", "latency")
            self._write(json.dumps({k: summary[k] for k in keep if k in summary} | ({"out": str(run_dir)} if run_dir else {})))
            return
        self._write("")
        for f in summary.get("failures", ()):
            self._write(self._paint("bad", f"✗ {f['step'] or 'run'}: {f['kind']}: expected {f['expected']}; found {f['found']} "
                                           f"(speaker.wav at {f['at_s']:.2f} s, pos {f['pos']})"))
        latency = summary.get("latency") or {}
        figures = [f"{summary['expectations'] - summary['failed']} of {summary['expectations']} expectations held",
                   f"stale {summary['stale']}", f"repeated {summary['repeated']}",
                   f"event loop blocked at most {summary['loop_block_max_ms']:g} ms"]
        if latency.get("p50_s") is not None:
            figures.append(f"answers p50 {latency['p50_s']:.2f} s, p95 {latency['p95_s']:.2f} s")
        passed = summary["passed"]
        self._write(self._paint("good" if passed else "bad", "passed" if passed else "FAILED") + ": " + ", ".join(figures))
        if run_dir:
            self._write(f"report: {Path(run_dir) / 'report.html'}")


async def show(run_dir: Path | str, clock: Clock, console: Console, stop: asyncio.Event) -> None:
    """Print the events of a run until `stop` is set and everything written until then was shown."""
    follow = Follow(run_dir, clock)

    async def watch() -> None:
        await stop.wait()
        follow.stop()

    watcher = asyncio.create_task(watch())
    try:
        async for event in follow:
            console.event(event)
    finally:
        watcher.cancel()
