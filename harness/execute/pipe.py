"""Messages between the session worker and one skill process: JSON with a length in front, on a Unix stream socket.

| from | t | fields |
|---|---|---|
| parent | call | skill, arguments, task, version, lang, zone, memory, timeout_s |
| parent | answer | id, ok, value or error |
| parent | cancel | |
| skill | started | |
| skill | host | id, op (get, actuate, position, subscribe, next, unsubscribe), and the operation's own fields |
| skill | progress | outcome, fields |
| skill | done | outcome, fields, result, memory |
| skill | failed | code, message, data, memory |
"""
import json
import socket
import struct

FRAME_LIMIT = 256 * 1024
"""Bytes of one message, both ways; what a skill sends beyond it ends the skill."""
_HEAD = struct.Struct(">I")


class FrameTooLarge(ValueError):
    """A message above FRAME_LIMIT."""


def encode(message: dict) -> bytes:
    """One message as bytes; raises FrameTooLarge, or TypeError/ValueError for what JSON can't hold."""
    body = json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
    if len(body) > FRAME_LIMIT:
        raise FrameTooLarge(f"message of {len(body)} bytes; at most {FRAME_LIMIT}")
    return _HEAD.pack(len(body)) + body


async def read(reader) -> dict:
    """The next message of an asyncio StreamReader; raises FrameTooLarge, ValueError, or IncompleteReadError at the end."""
    size, = _HEAD.unpack(await reader.readexactly(_HEAD.size))
    if size > FRAME_LIMIT:
        raise FrameTooLarge(f"message of {size} bytes; at most {FRAME_LIMIT}")
    message = json.loads(await reader.readexactly(size))
    if not isinstance(message, dict):
        raise ValueError("a message must be an object")
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
    return None if body is None else json.loads(body)
