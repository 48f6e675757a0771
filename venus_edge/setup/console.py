"""Progress lines, and commands that run with their output in a log: one line to read when something fails."""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

HEARTBEAT_S = 20.0  # a silent step says at this interval that it is alive
STOP_S = 5.0  # what a command gets to end by itself


class SetupError(Exception):
    """Set-up cannot go on; the message is the one line that a person reads. `missing`: a tool must be installed first."""

    def __init__(self, message: str, *, missing: bool = False):
        super().__init__(message)
        self.missing = missing


class Stopped(SetupError):
    """This step ended because another one failed or the person interrupted."""


class Console:
    """Prints `[elapsed] step  text` lines from several threads and ends what they started when set-up stops."""

    def __init__(self, logs: Path):
        self._logs = logs
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._children: set[subprocess.Popen] = set()
        self.stopping = threading.Event()

    def elapsed_s(self) -> float:
        return time.monotonic() - self._started

    def say(self, step: str, text: str) -> None:
        with self._lock:
            print(f"[{self.elapsed_s():6.1f} s] {step:<12} {text}", flush=True)

    def run(self, step: str, command: list, *, what: str, env: dict | None = None, cwd: Path | None = None) -> str:
        """Run a command to its end and return what it wrote; SetupError with its last word if it fails.

        The command gets a process group of its own, so that stopping ends its children (the compiler's, pip's) too.
        """
        self._logs.mkdir(parents=True, exist_ok=True)
        log = self._logs / f"{step}.log"
        with log.open("ab") as sink:
            start = sink.tell()
            with self._lock:
                if self.stopping.is_set():
                    raise Stopped(f"{step} stopped")
                child = subprocess.Popen(
                    [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT,
                    env=env, cwd=cwd, start_new_session=True,
                )  # fmt: skip
                self._children.add(child)
            began = time.monotonic()
            try:
                while True:
                    try:
                        status = child.wait(timeout=HEARTBEAT_S)
                        break
                    except subprocess.TimeoutExpired:
                        self.say(step, f"{what}: {time.monotonic() - began:.0f} s so far")
            finally:
                self._children.discard(child)
        with log.open("rb") as source:
            source.seek(start)
            text = source.read().decode(errors="replace")
        if self.stopping.is_set():
            raise Stopped(f"{step} stopped")
        if status:
            raise SetupError(f"{step}: {what} failed (exit {status}): {last_word(text)}; all of it: {log}")
        return text

    def stop(self) -> None:
        """End every running command; steps that wait for one get Stopped."""
        with self._lock:
            self.stopping.set()
            children = list(self._children)
        for number in (signal.SIGTERM, signal.SIGKILL):
            for child in children:
                with contextlib.suppress(ProcessLookupError):  # it may end between the question and the signal
                    if child.poll() is None:
                        os.killpg(child.pid, number)
            for child in children:
                try:
                    child.wait(timeout=STOP_S)
                except subprocess.TimeoutExpired:
                    continue  # it is killed in the second round


# What pip, uv and Go write when the machine has no way to the registries.
NO_NETWORK = re.compile(
    r"NewConnectionError|NameResolutionError|dns error|no such host|network is unreachable|connection refused|timed out",
    re.IGNORECASE,
)


def last_word(text: str) -> str:
    """What a log says most briefly: that there is no network, else its last line with 'error', else its last line."""
    if NO_NETWORK.search(text):
        return "a package registry could not be reached (network, proxy or mirror settings)"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["it said nothing"])[-1][:300]


def size_text(count: int) -> str:
    """Bytes in the unit that reads best (decimal)."""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def disk_use(path: Path) -> int:
    """Bytes that a folder takes on disk: holes and second links not counted."""
    seen, total = set(), 0
    for folder, _, names in os.walk(path):
        for name in names:
            info = os.lstat(os.path.join(folder, name))
            if (info.st_dev, info.st_ino) not in seen:
                seen.add((info.st_dev, info.st_ino))
                total += info.st_blocks * 512
    return total
