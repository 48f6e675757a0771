"""Messages between the session worker and one skill process: JSON with a length in front, on a Unix stream socket.

| from | t | fields |
|---|---|---|
| parent | call | skill, arguments, task, version, lang, zone, memory, timeout_s |
| parent | describe | in place of a call, to a sandboxed process |
| parent | answer | id, ok, value or error |
| parent | cancel | |
| skill | locked | layers (name, active, why); first, from a sandboxed process only |
| skill | described | skills (describe.py) |
| skill | started | |
| skill | host | id, op (get, actuate, position, subscribe, next, unsubscribe), and the operation's own fields |
| skill | progress | outcome, fields |
| skill | done | outcome, fields, result, memory; again: whether a reused process can take another call |
| skill | failed | code, message, data, memory; again |
"""
import asyncio
import json
import socket
import struct
from collections import deque
from typing import Iterator

FRAME_LIMIT = 256 * 1024
"""Bytes of one message, both ways; what a skill sends beyond it ends the skill."""
WAITING_LIMIT = 64
_HEAD = struct.Struct(">I")


class FrameTooLarge(ValueError):
    """A message above FRAME_LIMIT."""


def encode(message: dict) -> bytes:
    """One message as bytes; raises FrameTooLarge, or TypeError/ValueError for what JSON can't hold."""
    body = json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
    if len(body) > FRAME_LIMIT:
        raise FrameTooLarge(f"message of {len(body)} bytes; at most {FRAME_LIMIT}")
    return _HEAD.pack(len(body)) + body


class Frames:
    """Cuts a stream of bytes into messages: `feed()` what arrived, and take `messages()`."""

    def __init__(self):
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def messages(self) -> Iterator[dict]:
        """Every whole message so far; raises FrameTooLarge, or ValueError for what isn't a JSON object."""
        while len(self._buffer) >= _HEAD.size:
            size, = _HEAD.unpack_from(self._buffer)
            if size > FRAME_LIMIT:
                raise FrameTooLarge(f"message of {size} bytes; at most {FRAME_LIMIT}")
            end = _HEAD.size + size
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_HEAD.size:end])
            del self._buffer[:end]
            yield decode(body)


def decode(body: bytes) -> dict:
    """One message; raises ValueError for anything but a JSON object, however deep or odd it is."""
    try:
        message = json.loads(body)
    except RecursionError:
        raise ValueError("a message nested too deep") from None
    if not isinstance(message, dict):
        raise ValueError("a message must be an object")
    return message


class Channel(asyncio.Protocol):
    """One end of the socket on an event loop, for the session worker: `send()` and `read()` whole messages.

    At most WAITING_LIMIT messages wait to be read; the other side is held up beyond that."""

    def __init__(self):
        self._frames, self._waiting = Frames(), deque()
        self._reader: asyncio.Future | None = None
        self._error: Exception | None = None
        self._held = False
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self._error is not None:
            return
        self._frames.feed(data)
        try:
            self._waiting.extend(self._frames.messages())
        except ValueError as err:
            self._end(err)
        if len(self._waiting) > WAITING_LIMIT and not self._held:
            self._held = True
            self.transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._end(ConnectionResetError("the skill's process ended"))

    def connection_lost(self, err: Exception | None) -> None:
        self._end(ConnectionResetError("the skill's process ended"))

    def _end(self, err: Exception) -> None:
        self._error = self._error or err
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def send(self, message: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(message)

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    async def read(self) -> dict:
        """The next message, by one reader at a time; raises ConnectionError at the end, ValueError for a broken message."""
        while not self._waiting:
            if self._error is not None:
                raise self._error
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        message = self._waiting.popleft()
        if self._held and not self._waiting:
            self._held = False
            if not self.transport.is_closing():
                self.transport.resume_reading()
        return message


def read_blocking(sock: socket.socket) -> dict | None:
    """The next message of a blocking socket, or None when the other side closed it."""
    def exactly(count: int) -> bytes | None:
        data = b""
        while len(data) < count:
            more = sock.recv(count - len(data))
            if not more:
                return None
            data += more
        return data

    head = exactly(_HEAD.size)
    body = exactly(_HEAD.unpack(head)[0]) if head else None
    return None if body is None else decode(body)
