"""The agent's side of the room: a broken link or a bad sender silences nobody else, and no message shows a token."""
import asyncio
from types import SimpleNamespace

import pytest
from livekit import rtc

from cloud_core.errors import SessionLost
from cloud_core.room import AgentRoom
from device_sdk import wire
from venus_edge.testing import VirtualClock


def made(control=lambda *a: None, mic=lambda *a: None):
    return AgentRoom("car-host", control, mic, lambda *a: None, lambda *a: None, VirtualClock())


def packet(identity, topic, data, kind=rtc.ParticipantKind.PARTICIPANT_KIND_STANDARD):
    return SimpleNamespace(participant=SimpleNamespace(identity=identity, kind=kind), topic=topic, data=data, kind=rtc.DataPacketKind.KIND_RELIABLE)


async def test_a_message_that_cannot_be_sent_does_not_end_the_sending():
    """After a broken link flushes and acknowledgements must go out again."""
    room, sent, fails = made(), [], iter([RuntimeError("not connected"), OSError("gone")])

    class Me:
        async def publish_data(self, payload, **_):
            for error in fails:
                raise error
            sent.append(payload)

    room.room = SimpleNamespace(local_participant=Me())
    task = asyncio.create_task(room._write_control())
    for n in range(3):
        room.control("device-1", wire.Ack(boot="b", n=n))
    await asyncio.sleep(0.05)
    assert len(sent) == 1 and not task.done()
    task.cancel()


async def test_a_flood_of_bad_messages_pushes_no_other_message_out():
    room = made()
    room.control("device-1", wire.Flush(seg="s", id="i"))
    for _ in range(1000):
        room._data(packet("device-2", wire.TOPIC_MIC, b"no packet"))
    assert [identity for identity, _ in room._out] == ["device-1", "device-2"]
    await room.clock.advance(1.0)
    room._data(packet("device-2", wire.TOPIC_MIC, b"no packet"))
    assert len(room._out) == 3


async def test_a_fault_while_a_message_is_handled_stays_inside_and_tells_no_words(caplog):
    def control(identity, message):
        raise ValueError("the words of the user")

    made(control)._data(packet("device-1", wire.TOPIC_CTL, wire.encode_ctl(wire.Ping(n=1))))
    assert "ValueError" in caplog.text and "words of the user" not in caplog.text


async def test_only_standard_participants_that_are_not_the_car_host_are_listened_to():
    heard = []
    room = made(lambda *a: heard.append(a))
    data = wire.encode_ctl(wire.Ping(n=1))
    room._data(packet("car-host", wire.TOPIC_CTL, data))
    room._data(packet("other-agent", wire.TOPIC_CTL, data, rtc.ParticipantKind.PARTICIPANT_KIND_AGENT))
    room._data(SimpleNamespace(participant=None, topic=wire.TOPIC_CTL, data=data))
    assert heard == []
    room._data(packet("device-1", wire.TOPIC_CTL, data))
    assert len(heard) == 1


async def test_a_refused_join_shows_no_token():
    room = made()

    class Refused:
        def on(self, *_):
            pass

        async def connect(self, *_):
            raise rtc.ConnectError("401: invalid token eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJ2ZW51cyJ9.c2lnbmF0dXJl")

    room.room = Refused()
    with pytest.raises(SessionLost, match="cannot join 127.0.0.1:1") as err:
        await room.join("ws://127.0.0.1:1", "t")
    assert "eyJ" not in str(err.value)
