"""A locked process that loads foreign code once and is copied for each call.

Foreign code can do what it likes when it is loaded, so it is loaded under the lock. To be copied the process has to fork, and no other
fork may succeed: its filter asks the zygote about each, and the zygote agrees to one for every copy that it asked for. A copy puts the
rest of the lock on before it serves; one that doesn't (foreign code could have changed ours) is no freer than the template, and dies with it.
"""
import gc
import json
import os
import select
import signal
import socket
import struct
from typing import Any, Callable

from harness.sandbox import seccomp
from harness.sandbox.policy import Layer
from harness.sandbox.zygote import SandboxedZygote
from venus_edge.clock import Clock, SystemClock
from venus_edge.errors import ConfigError, VenusError

LOAD_S = 10.0
COPY_S = 2.0
_CREDENTIALS = struct.Struct("3i")


class Template:
    """Held by the zygote. `load()` loads the code, `serve(socket, layers, loaded)` serves in a copy; both run in the locked process only."""

    def __init__(self, zygote: SandboxedZygote, load: Callable[[], Any], serve: Callable[[socket.socket, list[Layer], Any], None],
                 clock: Clock | None = None):
        self._clock = clock or SystemClock()
        self._zygote, self._load, self._serve = zygote, load, serve
        self._control: socket.socket | None = None
        self._listener: seccomp.Listener | None = None
        self._handle = -1
        self.pid = 0
        self.layers: list[Layer] = []
        """As the process reported them before any foreign code was in it."""

    def descriptors(self) -> list[int]:
        """What to wait for between copies: a question (to be refused, by `refuse()`)."""
        return [self._listener.descriptor] if self._listener else []

    def refuse(self) -> None:
        """Refuse a fork that nobody asked for; a template that is gone is forgotten."""
        poll = select.poll()
        poll.register(self._listener.descriptor, select.POLLIN)
        for _, event in poll.poll(0):
            if event & select.POLLIN:
                self._listener.answer(False)
            elif event & (select.POLLHUP | select.POLLERR):
                self.end()

    def copy(self, sock: socket.socket, begin: Callable[[], None], prepare: Callable[[], None]) -> int:
        """One more copy, which serves the other end of `sock`; returns its pid here. Raises VenusError with what is wrong."""
        fresh = self._control is None
        try:
            if fresh:
                self._start(begin, prepare)
            return self._copy(sock)
        except (OSError, VenusError) as err:
            self.end()
            if fresh:
                raise err if isinstance(err, VenusError) else ConfigError(f"the skills' process is gone: {err}") from err
        return self.copy(sock, begin, prepare)  # it died since the last copy: another one, once

    def _copy(self, sock: socket.socket) -> int:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with ours:
            with theirs:
                ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
                socket.send_fds(self._control, [b"copy"], [theirs.fileno()])
            self._wait(ours, COPY_S, copies=1)
            _, notes, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(_CREDENTIALS.size))
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
            pid = _CREDENTIALS.unpack(notes[0][2])[0] if notes else 0
            if pid in (0, self.pid):
                raise ConfigError("the skills' process did not copy itself")
            os.dup2(ours.fileno(), sock.fileno(), inheritable=False)  # the caller's socket becomes our end
            return pid

    def end(self) -> None:
        """Kill the template, and with it every copy; the next copy starts another."""
        if self.pid:
            try:
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            except ProcessLookupError:
                pass
            os.close(self._handle)
        for thing in (self._control, self._listener):
            if thing is not None:
                thing.close()
        self._control = self._listener = None
        self._handle, self.pid = -1, 0

    def _start(self, begin, prepare) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listeners: list[int] = []

        def started() -> None:
            begin()
            ours.close()

        def install() -> None:
            if self._zygote.sandbox.wants("seccomp"):
                listeners.append(seccomp.install("template", listen=True))

        self.pid = self._zygote.fork(theirs.fileno(), started, prepare, lambda _, layers: self._run(theirs, layers, listeners), install)
        self._handle = os.pidfd_open(self.pid)
        theirs.close()
        self._control = ours
        self._wait(ours, LOAD_S, copies=0)
        data, handles, _, _ = socket.recv_fds(ours, 65536, 1)
        if not data:
            raise ConfigError("the skills' process ended while it was locked")
        self.layers = [Layer(*fields) for fields in json.loads(data)]
        self._listener = seccomp.Listener(handles[0]) if handles else None
        self._zygote.sandbox.check(self.layers)
        self._wait(ours, LOAD_S, copies=0)
        data = ours.recv(65536)
        if data != b"loaded":
            raise ConfigError(f"skills can't be loaded in the sandbox: {data.decode(errors='replace')[:300] or 'the process ended'}")

    def _wait(self, sock: socket.socket, seconds: float, copies: int) -> None:
        """Until `sock` is readable, and answer questions meanwhile; raises ConfigError when it takes too long."""
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        poll.register(self._handle, select.POLLIN)
        if self._listener:
            poll.register(self._listener.descriptor, select.POLLIN)
        until = self._clock.now() + seconds
        while (left := until - self._clock.now()) > 0:
            ready = dict(poll.poll(left * 1000))
            if sock.fileno() in ready or self._handle in ready:
                return
            if self._listener and ready.get(self._listener.descriptor, 0) & select.POLLIN:
                self._listener.answer(copies > 0)
                copies -= 1
        raise ConfigError(f"the skills' process did not answer within {seconds:g} s")

    def _run(self, control: socket.socket, layers: list[Layer], listeners: list[int]) -> None:
        """In the locked process: load, then copy it at each request until the zygote is gone."""
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # copies that ended leave no trace
        report = json.dumps([[layer.name, layer.active, layer.why] for layer in layers]).encode()
        socket.send_fds(control, [report], listeners)
        for listener in listeners:
            os.close(listener)
        try:
            loaded = self._load()
        except VenusError as err:
            control.send(err.message.encode()[:300])
            return
        except BaseException as err:  # whatever foreign code raises while it is loaded: its kind, not its words
            control.send(f"loading the skills raised {type(err).__name__}".encode()[:300])
            return
        gc.collect()
        gc.freeze()  # a collection in a copy must not walk, and so copy, the pages of what was loaded
        control.send(b"loaded")
        while True:
            data, handles, _, _ = socket.recv_fds(control, 16, 1)
            if not data:
                return
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                control.close()
                sock = socket.socket(fileno=handles[0])
                sock.send(b"\0")  # tells the zygote our pid, by the kernel's word
                self._zygote.tighten(layers)
                self._serve(sock, layers, loaded)
                os._exit(0)
            os.close(handles[0])
