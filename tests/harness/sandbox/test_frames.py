"""Messages cut from a stream of bytes: whole whatever the pieces, and refused when they are none."""
import asyncio
import json
import socket
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.execute import pipe

MESSAGES = st.lists(st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), st.text(max_size=20), st.none()), max_size=3), max_size=6)


@settings(max_examples=50, deadline=None)
@given(MESSAGES, st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_messages_arrive_whole_whatever_the_pieces(messages, sizes):
    """However the bytes are cut, the same messages come out in order, each as soon as it is whole."""
    data, frames, out, at = b"".join(map(pipe.encode, messages)), pipe.Frames(), [], 0
    for number in range(len(data) + 1):
        piece = data[at:at + sizes[number % len(sizes)]]
        at += len(piece)
        frames.feed(piece)
        out += frames.messages()
        if at == len(data):
            break
    assert out == messages


@pytest.mark.parametrize("body,error", [(b"[1]", "object"), (b"{", "Expecting"), (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "deep"),
                                        (b"\x80\x04N.", "decode")])
def test_what_is_no_message_is_a_value_error(body, error):
    """Also a pickle, and nesting beyond the parser's stack."""
    frames = pipe.Frames()
    frames.feed(struct.pack(">I", len(body)) + body)
    with pytest.raises(ValueError, match=error):
        list(frames.messages())


def test_a_length_above_the_limit_is_refused_before_the_message_is_there():
    frames = pipe.Frames()
    frames.feed(struct.pack(">I", pipe.FRAME_LIMIT + 1))
    with pytest.raises(pipe.FrameTooLarge):
        list(frames.messages())


async def test_a_fast_sender_is_held_up():
    """A reader that does nothing keeps a bounded number of messages; when it reads, none is missing."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    _, channel = await asyncio.get_running_loop().create_connection(pipe.Channel, sock=ours)
    sent, data = 0, pipe.encode({"text": "x" * 1000})
    sender = asyncio.ensure_future(asyncio.get_running_loop().sock_sendall(theirs, data * 3000))
    await asyncio.sleep(0.1)
    assert not sender.done() and len(channel._waiting) < 1000
    for _ in range(3000):
        assert len((await channel.read())["text"]) == 1000
        sent += 1
    await sender
    theirs.close()
    with pytest.raises(ConnectionError):
        await channel.read()
    assert sent == 3000 and json.loads(data[4:])
    channel.abort()
