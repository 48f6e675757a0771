"""A room that is lost is joined again, for a limited time, and only where nobody meant it; all on virtual time."""

import pytest
from test_device import Bench, speech

from device_sdk import DeviceState, NotConnected, TokenRefused, wire
from device_sdk.testing import FakeCloud
from venus_edge.errors import ConfigError


def links(bench):
    return [(e["state"], e["reason"]) for e in bench.events if e["ev"] == "link"]


async def test_a_lost_room_is_joined_again_and_the_session_goes_on():
    """While it is away the device plays what it has; then hello with a fresh token, and a report of what was heard."""
    made = []

    async def token():
        made.append(f"token-{len(made)}")
        return made[-1]

    bench = Bench()
    await bench.device.connect("memory://", token)
    await bench.loop.run(0.1)
    bench.cloud.say("s1", speech(1))
    await bench.loop.run(0.3)
    bench.cloud.transport.refuse = NotConnected("room: nobody is there")
    bench.cloud.link("lost", "SERVER_SHUTDOWN")
    await bench.loop.run(4.0)
    assert bench.device.state is DeviceState.RECONNECTING and bench.device.player.get("s1").played == 24_000
    assert not bench.cloud.ledger.get("s1").final
    bench.cloud.transport.refuse = None
    await bench.loop.run(6.0)
    assert bench.device.state is DeviceState.LISTENING and bench.cloud.ledger.get("s1").played == 24_000
    assert links(bench) == [("down", "SERVER_SHUTDOWN"), ("up", "")]
    assert bench.cloud.transport.tokens == made and len(made) >= 3
    await bench.device.close()


@pytest.mark.parametrize("reason", ["DUPLICATE_IDENTITY", "PARTICIPANT_REMOVED", "ROOM_DELETED"])
async def test_a_room_that_was_left_on_purpose_is_not_joined_again(reason):
    """Two devices of one name would throw each other out for ever."""
    bench = await Bench().start()
    bench.cloud.link("lost", reason)
    await bench.loop.run(20.0)
    assert bench.device.state is DeviceState.IDLE and len(bench.cloud.transport.tokens) == 1
    assert links(bench) == [("lost", reason)]


async def test_joining_again_is_given_up_in_time():
    """Growing pauses: few attempts in the minute that is allowed, then lost for good, and `connect` works again."""
    bench = await Bench(rejoin_s=60.0).start()
    bench.cloud.transport.refuse = NotConnected("room: nobody is there")
    bench.cloud.link("lost", "SIGNAL_CLOSE")
    await bench.loop.run(75.0)
    assert bench.device.state is DeviceState.IDLE and links(bench)[-1] == ("lost", "not_connected")
    assert 6 <= len(bench.cloud.transport.tokens) <= 15
    bench.cloud.transport.refuse = None
    await bench.device.connect("memory://", "")
    await bench.loop.run(0.2)
    assert bench.device.state is DeviceState.LISTENING


async def test_a_refused_token_ends_it_after_three_attempts():
    bench = await Bench().start()
    bench.cloud.transport.refuse = TokenRefused("token: refused: it has expired")
    bench.cloud.link("lost", "SIGNAL_CLOSE")
    await bench.loop.run(10.0)
    assert links(bench)[-1] == ("lost", "token_refused") and len(bench.cloud.transport.tokens) == 4


async def test_the_newest_token_of_the_server_is_used_where_no_function_gives_one():
    bench = Bench()
    await bench.device.connect("memory://", "first")
    await bench.loop.run(0.1)
    bench.cloud.transport.token = "renewed"
    bench.cloud.link("lost", "SIGNAL_CLOSE")
    await bench.loop.run(1.0)
    assert bench.cloud.transport.tokens == ["first", "renewed"] and bench.device.state is DeviceState.LISTENING


async def test_a_function_for_the_token_that_fails_is_asked_again():
    answers = ["first", RuntimeError("no network"), 7, "second"]

    def token():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    bench = Bench()
    await bench.device.connect("memory://", token)
    await bench.loop.run(0.1)
    bench.cloud.link("lost", "SIGNAL_CLOSE")
    await bench.loop.run(5.0)
    assert bench.cloud.transport.tokens == ["first", "second"] and not answers


async def test_close_ends_the_attempts():
    bench = await Bench().start()
    bench.cloud.transport.refuse = NotConnected("room: nobody is there")
    bench.cloud.link("lost", "SIGNAL_CLOSE")
    await bench.loop.run(1.0)
    await bench.device.close()
    tried = len(bench.cloud.transport.tokens)
    await bench.loop.run(20.0)
    assert bench.device.state is DeviceState.IDLE and len(bench.cloud.transport.tokens) == tried


async def test_a_second_connect_is_refused():
    bench = await Bench().start()
    with pytest.raises(ConfigError, match="close it first"):
        await bench.device.connect("memory://", "")
    await bench.loop.run(0.2)
    assert bench.device.state is DeviceState.LISTENING


async def test_an_agent_that_ends_every_session_is_not_stormed():
    """Its engine is down: welcomed and dropped each time, the device slows down to a hello each 2 s."""

    class NoEngine(FakeCloud):
        def receive(self, topic, payload, reliable):
            super().receive(topic, payload, reliable)
            if self.ctl and isinstance(self.ctl[-1], wire.Hello) and self.order[-1] == "ctl.hello":
                self.tell(wire.Error(code="no_session", message="the session ended (engine_gone)"))

    bench = await Bench(cloud=NoEngine()).start()
    await bench.loop.run(20.0)
    assert 8 <= len(bench.cloud.of(wire.Hello)) <= 16


async def test_speech_of_a_session_that_ended_does_not_hold_up_the_next_one():
    """Half a segment, then the session is over: what is there plays, and the next session's speech follows without a wait."""
    bench = await Bench().start()
    await bench.loop.run(6.0)
    bench.cloud.begin("old")
    bench.cloud.push("old", 0, speech(0.5))
    await bench.loop.run(0.2)
    bench.cloud.tell(wire.Error(code="no_session", message="the session ended (engine_gone)"))
    await bench.loop.run(0.2)
    bench.cloud.say("new", speech(0.5, 1))
    await bench.loop.run(1.2)
    old, new = bench.cloud.ledger.get("old"), bench.cloud.ledger.get("new")
    assert (old.state, old.played) == ("lost", 12_000) and (new.state, new.played) == ("ended", 12_000)
    first = {row["seg"]: row["pos"] for row in bench.traced("seg.first")}
    assert first["new"] - first["old"] <= 0.55 * 16_000
