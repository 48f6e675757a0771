"""`venus up` and `venus token`: one running system at a time, its secrets for its owner alone."""
import base64
import json
import os
import socket

import pytest

from cloud_core import commands
from venus_edge.errors import ConfigError


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("VENUS_CACHE", str(tmp_path))
    for name in ("VENUS_LIVEKIT_SECRET", "VENUS_ROOM", "VENUS_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "run").mkdir()
    return tmp_path


def test_a_second_up_is_refused_while_one_runs(cache):
    commands.state_file().write_text(json.dumps({"pid": os.getpid()}))
    with pytest.raises(ConfigError, match=f"another `venus up` is running .pid {os.getpid()}"):
        commands.up([])


def test_a_busy_health_port_is_refused_before_anything_starts(cache, monkeypatch):
    monkeypatch.setenv("VENUS_OUT", str(cache / "out"))
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        monkeypatch.setenv("VENUS_HEALTH_ADDR", f"127.0.0.1:{s.getsockname()[1]}")
        with pytest.raises(ConfigError, match="health_addr: port .* is busy"):
            commands.up([])
    assert not (cache / "out").exists()


def test_a_token_is_for_the_room_that_runs(cache, capsys):
    commands.state_file().write_text(json.dumps({"pid": os.getpid(), "room": "garage", "key": "k", "secret": "s" * 32, "url": "ws://x"}))
    assert commands.token(["--identity", "device-1", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    body = made["token"].split(".")[1]
    assert made["room"] == "garage" == json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))["video"]["room"]
