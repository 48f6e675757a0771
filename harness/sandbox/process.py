"""A whole program in the sandbox, long-lived, talked to over its standard input and output: an MCP server, a tool of a model.

    server = await SandboxedProcess.start([sys.executable, "-m", "some_server"], Sandbox(memory_mb=1024))
    server.stdin.write(b"...\\n")
    line = await server.stdout.readline()
    await server.kill()

It has what a worker has, and may also start programs in the folders named and a bounded number of processes, which all end with it.
No network and no files of the machine; `Sandbox.data` gives folders to read (its own code, if that is not in Python's library).
"""
import asyncio
import json
import os
import signal
import socket
import sys
from dataclasses import dataclass

from harness.sandbox import bubblewrap, view
from harness.sandbox.policy import Layer, Sandbox
from venus_edge.errors import ConfigError
from venus_edge.metrics import METRICS

START_S, DEATH_S = 20.0, 1.0
OUTPUT_LIMIT = 256 * 1024
"""Bytes of output that wait to be read; the program is held up beyond that."""
_PROGRAMS = ("/usr/bin", "/bin", "/usr/lib", "/lib", "/lib64")


@dataclass
class SandboxedProcess:
    """One running program; made by `start()`."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    layers: tuple[Layer, ...]
    _outer: asyncio.subprocess.Process
    _handle: int

    @classmethod
    async def start(cls, command: list[str], sandbox: Sandbox, *, environment: dict[str, str] | None = None) -> "SandboxedProcess":
        """Start a program by its absolute path; raises ConfigError, or SandboxMissing when a required layer can't be had."""
        if not command or not os.path.isabs(command[0]) or not os.access(command[0], os.X_OK):
            raise ConfigError(f"sandbox: command is {command[:1]!r}; allowed: the absolute path of a program, and its arguments")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        bwrap, layer = await asyncio.to_thread(bubblewrap.find, sandbox)
        folders = [*filter(os.path.exists, _PROGRAMS), os.path.dirname(command[0]), sys.prefix, sys.base_prefix]
        given = {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)), "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
        launch = [sys.executable, "-m", "harness.sandbox.launch", str(theirs.fileno()), sandbox.to_json(),
                  json.dumps([layer.name, layer.active, layer.why]), json.dumps(folders), *command]
        if bwrap:
            launch = bubblewrap.arguments(bwrap, view.readable((), (*sandbox.data, *folders)), given) + launch
        with theirs:
            outer = await asyncio.create_subprocess_exec(
                *launch, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
                pass_fds=[theirs.fileno()], env=given, limit=OUTPUT_LIMIT)
        handle = -1
        try:
            async with asyncio.timeout(START_S):
                handle, layers = await cls._locked(ours)
            sandbox.check(list(layers))
            ours.send(b"go")
        except BaseException as err:
            outer.kill()
            await outer.wait()
            if handle >= 0:
                os.close(handle)
            if isinstance(err, (TimeoutError, ConnectionError)):
                raise ConfigError(f"{command[0]} could not be started in the sandbox: {err or 'too slow'}") from err
            raise
        finally:
            ours.close()
        return cls(outer.stdin, outer.stdout, layers, outer, handle)

    @staticmethod
    async def _locked(control: socket.socket) -> tuple[int, tuple[Layer, ...]]:
        loop, handle = asyncio.get_running_loop(), -1
        while True:
            readable = loop.create_future()
            loop.add_reader(control.fileno(), lambda: readable.done() or readable.set_result(None))
            try:
                await readable
            finally:
                loop.remove_reader(control.fileno())
            data, handles, _, _ = socket.recv_fds(control, 65536, 1)
            if not data:
                raise ConnectionError("it ended before it was locked")
            if handles:
                handle = handles[0]
            else:
                return handle, tuple(Layer(*fields) for fields in json.loads(data))

    async def kill(self) -> None:
        """SIGKILL by pidfd to the program, which takes with it all that it started, and wait until it is dead."""
        loop, dead = asyncio.get_running_loop(), asyncio.Event()
        try:
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        except ProcessLookupError:
            pass
        loop.add_reader(self._handle, dead.set)
        try:
            await asyncio.wait_for(dead.wait(), DEATH_S)
        except TimeoutError:
            METRICS.add("venus_harness_skill_undead_total")
        finally:
            loop.remove_reader(self._handle)
            os.close(self._handle)
        self.stdin.close()
        await self._outer.wait()

    async def wait(self) -> int:
        """The program's exit status, when it ends by itself; call `kill()` afterwards all the same."""
        return await self._outer.wait()
