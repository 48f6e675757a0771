"""The event trace of one process: JSON lines for the timeline of a run.

A trace holds words, so it is written only where a run asked for it (VENUS_TRACE_DIR); logs never carry words or audio.
Each line: {"src", "t": monotonic seconds, "pos": device sample or null, "ev": name, ...fields}.
"""
import json
import os
from pathlib import Path

from venus_edge.clock import Clock, SystemClock
from venus_edge.metrics import METRICS


class Trace:
    """Appends events to `<dir>/<src>.trace.jsonl`; without a directory it does nothing. Each line is flushed whole."""

    def __init__(self, src: str, directory: str | None = None, clock: Clock | None = None):
        self.src, self.clock = src, clock or SystemClock()
        directory = directory if directory is not None else os.environ.get("VENUS_TRACE_DIR", "")
        self._file = None
        self.listeners: list = []
        if directory:
            Path(directory).mkdir(parents=True, exist_ok=True)
            self._file = open(Path(directory) / f"{src}.trace.jsonl", "a", buffering=1, encoding="utf-8",
                              opener=lambda path, flags: os.open(path, flags, 0o600))

    def event(self, name: str, pos: int | None = None, **fields) -> None:
        """Record one event. `pos` is its device-sample position (16 kHz), where it has one."""
        if self._file is None and not self.listeners:
            return
        row = {"src": self.src, "t": round(self.clock.now(), 6), "pos": pos, "ev": name, **fields}
        if self._file is not None:
            try:
                self._file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")
            except OSError:  # a full disk ends the trace, not the conversation
                METRICS.add("venus_trace_events_lost")
        for listener in self.listeners:
            listener(row)

    def close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            try:
                file.close()
            except OSError:
                METRICS.add("venus_trace_events_lost")
