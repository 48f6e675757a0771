"""What each process of the system is told: its own secrets and no others, and a token that is good at every start."""
import base64
import json

import pytest

from venus_edge.errors import ConfigError
from venus_edge.settings import Settings
from venus_edge.stack import Stack
from venus_edge.supervisor import Supervisor


class Started(Supervisor):
    """A supervisor that starts nothing and keeps what it was asked to start."""

    def __init__(self):
        super().__init__()
        self.specs = {}

    async def start(self, spec):
        self.specs[spec.name] = spec


def told(spec):
    return spec.env() if callable(spec.env) else spec.env


async def started(tmp_path, monkeypatch, **settings):
    monkeypatch.setattr("venus_edge.stack.livekit_binary", lambda: "/bin/livekit-server")
    sup = Started()
    stack = Stack(Settings(**settings), sup, tmp_path / "run")
    await stack.start()
    return stack, sup.specs


async def test_every_secret_reaches_only_who_needs_it_and_no_argument_or_file(tmp_path, monkeypatch):
    stack, specs = await started(tmp_path, monkeypatch)
    holders = {stack.secret: {"livekit"}, stack.bus_token: {"signals", "carhost"}, stack.engine_token: {"engine", "worker"},
               stack.bus_read_token: {"signals"}}
    for secret, allowed in holders.items():
        assert {name for name, spec in specs.items() if secret in json.dumps(told(spec))} == allowed
        assert not [name for name, spec in specs.items() if secret in " ".join(spec.argv)]
        assert not [p.name for p in (tmp_path / "run").iterdir() if secret in p.read_text()]


async def test_a_restart_gets_a_fresh_token_and_the_same_session_never(tmp_path, monkeypatch):
    """A token is good for hours, a system runs for weeks."""
    now = [1_700_000_000.0]
    monkeypatch.setattr("venus_edge.clock.SystemClock.wall", lambda self: now[0])
    _, specs = await started(tmp_path, monkeypatch)

    def expiry(name, variable):
        body = told(specs[name])[variable].split(".")[1]
        return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))["exp"]

    first = expiry("worker", "VENUS_AGENT_TOKEN"), expiry("carhost", "VENUS_HOST_TOKEN")
    now[0] += 86_400
    assert (expiry("worker", "VENUS_AGENT_TOKEN"), expiry("carhost", "VENUS_HOST_TOKEN")) == tuple(t + 86_400 for t in first)


async def test_the_engine_gets_its_certificate_and_the_worker_trusts_it(tmp_path, monkeypatch):
    _, specs = await started(tmp_path, monkeypatch, tls_cert="cert.pem", tls_key="key.pem")
    assert told(specs["engine"])["VENUS_ENGINE_TLS_CERT"] == "cert.pem" and told(specs["engine"])["VENUS_ENGINE_TLS_KEY"] == "key.pem"
    assert told(specs["worker"])["VENUS_ENGINE_CA"] == "cert.pem"


def test_a_foreign_server_without_its_secret_is_refused_by_name(tmp_path):
    with pytest.raises(ConfigError, match="livekit_secret.*livekit_url"):
        Stack(Settings(livekit_url="wss://example.org"), Supervisor(), tmp_path)
