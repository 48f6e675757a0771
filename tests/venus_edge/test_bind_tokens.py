"""Nothing listens beyond loopback unprotected, and a token gives no more than its role needs."""
import base64
import json
import socket

import pytest

from venus_edge import bind
from venus_edge.errors import ConfigError
from venus_edge.tokens import mint, parse_ttl


@pytest.mark.parametrize("addr", ["127.0.0.1:0", "localhost:1", "[::1]:80"])
def test_loopback_needs_nothing(addr):
    bind.check_bind(addr, "x")


@pytest.mark.parametrize("tls, token, lacks", [(False, False, "TLS and a token"), (True, False, "a token"), (False, True, "TLS")])
def test_wider_binds_are_refused_and_say_what_is_lacking(tls, token, lacks):
    with pytest.raises(ConfigError, match=f"engine_addr.*{lacks}"):
        bind.check_bind("0.0.0.0:50051", "engine_addr", tls=tls, token=token)
    bind.check_bind("0.0.0.0:50051", "engine_addr", tls=True, token=True)


@pytest.mark.parametrize("addr", ["127.0.0.1", "127.0.0.1:x", ":99", "127.0.0.1:70000"])
def test_an_address_that_is_none_is_refused(addr):
    with pytest.raises(ConfigError, match="bus_addr"):
        bind.split_addr(addr, "bus_addr")


def test_a_busy_port_is_named():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        with pytest.raises(ConfigError, match=f"livekit_port: port {s.getsockname()[1]} is busy"):
            bind.check_free(s.getsockname()[1], "livekit_port")


def claims(token):
    body = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


def test_a_device_token_can_join_one_room_and_administer_nothing():
    c = claims(mint("k", "s" * 32, identity="device-1", room="venus", ttl_s=60))
    assert c["exp"] - c["nbf"] <= 65 and c["video"]["room"] == "venus" and c["video"]["canPublishSources"] == ["microphone"]
    assert not {"roomAdmin", "roomCreate", "roomList", "roomRecord", "agent", "hidden", "canManageAgentSession"} & set(c["video"])
    assert "kind" not in c


def test_the_published_library_reads_our_tokens():
    from livekit import api

    token = mint("key", "s" * 40, identity="device-1", room="venus")
    got = api.TokenVerifier("key", "s" * 40).verify(token)
    assert got.identity == "device-1" and got.video.room_join and got.video.can_publish_sources == ["microphone"]


@pytest.mark.parametrize("bad", ["", "5", "2h", "10x", "-3m", "9s"])
def test_ttl_bounds(bad):
    with pytest.raises(ConfigError, match="ttl"):
        parse_ttl(bad)
    assert parse_ttl("10m") == 600 and parse_ttl("1h") == 3600


def test_bad_identities_and_short_secrets_are_refused():
    with pytest.raises(ConfigError, match="identity"):
        mint("k", "s" * 32, identity="a b", room="r")
    with pytest.raises(ConfigError, match="livekit_secret"):
        mint("k", "short", identity="a", room="r")


@pytest.mark.parametrize("identity", ["venus-agent", "car-host"])
def test_no_device_can_be_made_the_agent_or_the_car_host(identity):
    """The server would put the real one out of the room, and everybody would believe the new one."""
    for role in ("device", "observer"):
        with pytest.raises(ConfigError, match=f"identity.*{identity}"):
            mint("k", "s" * 32, identity=identity, room="r", role=role)
    assert mint("k", "s" * 32, identity="venus-agent", room="r", role="agent") and mint("k", "s" * 32, identity="car-host", room="r", role="car-host")
