"""The standard system on one machine: which processes, with which settings, in which order. Used by `up`, `drive` and the benches."""
import asyncio
import http.client
import json
import os
import secrets
import shutil
import socket
import sys
import urllib.request
from pathlib import Path
from typing import Awaitable, Callable

from venus_edge import bind
from venus_edge.errors import ConfigError
from venus_edge.paths import cache_dir
from venus_edge.settings import Settings
from venus_edge.supervisor import Child, Spec, Supervisor
from venus_edge.tokens import mint

AGENT, CAR_HOST = "venus-agent", "car-host"


def module(name: str) -> tuple[str, ...]:
    """Command line of one of our own process modules."""
    return (sys.executable, "-m", name)


def livekit_binary() -> str:
    """The server's path: on PATH, or built by the set-up; raises ConfigError saying how to get it."""
    built = cache_dir() / "bin" / "livekit-server"
    found = str(built) if built.exists() else shutil.which("livekit-server")
    if not found:
        raise ConfigError("livekit-server: neither on PATH nor built yet; run `make setup`")
    return found


class Stack:
    """The running system. `run_dir` gets logs (and traces when `trace`)."""

    def __init__(self, settings: Settings, sup: Supervisor, run_dir: Path, *, trace: bool = False, restart: bool = False):
        self.settings, self.sup, self.run_dir, self.trace, self.restart = settings, sup, run_dir, trace, restart
        if settings.livekit_url and not settings.livekit_secret:
            raise ConfigError("livekit_secret: not set; livekit_url names a server that knows its own key and secret, set both")
        self.key = settings.livekit_key
        self.secret = settings.livekit_secret or secrets.token_urlsafe(32)
        self.url = settings.livekit_url
        self.engine_token = settings.engine_token or secrets.token_urlsafe(24)
        self.bus_token = settings.bus_token or secrets.token_urlsafe(24)
        self.bus_read_token = settings.bus_read_token or secrets.token_urlsafe(24)
        self.engine_addr = self.bus_addr = ""

    def token(self, identity: str, role: str = "device", ttl_s: int = 600) -> str:
        return mint(self.key, self.secret, identity=identity, room=self.settings.room, role=role, ttl_s=ttl_s)

    def env(self, **more: str) -> dict:
        """Environment of one of our processes: trace and log level, plus `more`. Secrets go only to who needs them."""
        env = {"VENUS_LOG_LEVEL": self.settings.log_level, "VENUS_LANGUAGE": self.settings.language, "VENUS_CACHE": str(cache_dir()), **more}
        if self.trace:
            env["VENUS_TRACE_DIR"] = str(self.run_dir)
        return env

    def spec(self, name: str, mod: str, **kw) -> Spec:
        """`env`: variables, or a function that makes them at each start (tokens expire)."""
        env = kw.pop("env", {})
        return Spec(name, module(mod), (lambda: self.env(**env())) if callable(env) else self.env(**env), log=str(self.run_dir / f"{name}.log"), restart=self.restart, **kw)

    async def start(self, *, drive: str = "", beside: Callable[[], Awaitable] | None = None) -> None:
        """Start everything but the device, all at once where the parts wait for each other by themselves.

        `drive`: path of the drive description for the vehicle signals. `beside()` starts more (a device) as soon as the room can
        be joined. Raises StartError or ConfigError.
        """
        self.run_dir.mkdir(parents=True, exist_ok=True)
        self._choose_ports()
        await self._all([self._engine(), self._signals(drive), self._room(beside)])

    async def _room(self, beside) -> None:
        if not self.settings.livekit_url:
            await self._livekit()
        await self._all([self._car_host(), self._worker(), *([beside()] if beside else [])])

    def _choose_ports(self) -> None:
        """Addresses are fixed before anything starts, so that every process can be told the others' and a restart finds them again."""
        for name in ("engine_addr", "bus_addr"):
            host, port = bind.split_addr(getattr(self.settings, name), name)
            if port:
                bind.check_free(port, name)
            setattr(self, name, f"{host}:{port or bind.free_port()}")

    @staticmethod
    async def _all(coros) -> None:
        tasks = [asyncio.create_task(c) for c in coros]
        try:
            await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    async def _livekit(self) -> None:
        port = self.settings.livekit_port
        if port:
            bind.check_free(port, "livekit_port")
        else:
            port = bind.free_port()
        udp = bind.free_port(socket.SOCK_DGRAM)
        config = self.run_dir / "livekit.yaml"
        # No STUN outside, no TCP fallback on all interfaces: the server listens on loopback alone. Key and secret go by its
        # environment: a run's folder may be shown around.
        config.write_text(f"""port: {port}
bind_addresses: ["127.0.0.1"]
rtc:
  node_ip: 127.0.0.1
  use_external_ip: false
  enable_loopback_candidate: true
  ips: {{includes: ["127.0.0.1/32"]}}
  udp_port: {udp}
  tcp_port: 0
  stun_servers: ["127.0.0.1:3478"]
room: {{auto_create: true, empty_timeout: 60, departure_timeout: 120}}
logging: {{level: warn}}
""")

        def healthy() -> bool:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=0.5) as answer:
                    return answer.status == 200
            except (OSError, http.client.HTTPException):
                return False

        async def probe() -> bool:
            return await asyncio.get_running_loop().run_in_executor(None, healthy)

        await self.sup.start(Spec("livekit", (*module("venus_edge.launch"), livekit_binary(), "--config", str(config)),
                                  {"LIVEKIT_KEYS": json.dumps({self.key: self.secret})}, probe=probe, ready_s=20,
                                  log=str(self.run_dir / "livekit.log"), restart=self.restart))
        self.url = f"ws://127.0.0.1:{port}"

    async def _engine(self) -> None:
        await self.sup.start(self.spec("engine", "cloud_core.engine.server", ready_s=90, env={
            "VENUS_ENGINE_ADDR": self.engine_addr, "VENUS_ENGINE_TOKEN": self.engine_token,
            "VENUS_ENGINE_RUNTIME": self.settings.engine_runtime, "VENUS_ENGINE_SESSIONS": str(self.settings.engine_sessions),
            "VENUS_ENGINE_TLS_CERT": self.settings.tls_cert, "VENUS_ENGINE_TLS_KEY": self.settings.tls_key}))

    async def _signals(self, drive: str) -> None:
        await self.sup.start(self.spec("signals", "simulators.car.signals", env={
            "VENUS_BUS_ADDR": self.bus_addr, "VENUS_BUS_TOKEN": self.bus_token, "VENUS_BUS_READ_TOKEN": self.bus_read_token,
            **({"VENUS_DRIVE": drive} if drive else {})}))

    async def _car_host(self) -> None:
        await self.sup.start(self.spec("carhost", "harness.host.car", env=lambda: {
            "VENUS_LIVEKIT_URL": self.url, "VENUS_HOST_TOKEN": self.token(CAR_HOST, "car-host", 6 * 3600), "VENUS_AGENT_IDENTITY": AGENT,
            "VENUS_BUS_ADDR": self.bus_addr, "VENUS_BUS_TOKEN": self.bus_token}))

    async def _worker(self) -> Child:
        return await self.sup.start(self.spec("worker", "cloud_core.worker", ready_s=60, env=lambda: {
            "VENUS_LIVEKIT_URL": self.url, "VENUS_AGENT_TOKEN": self.token(AGENT, "agent", 6 * 3600),
            "VENUS_ENGINE_ADDR": self.engine_addr, "VENUS_ENGINE_TOKEN": self.engine_token,
            **{name: os.environ[name] for name in ("VENUS_LLM_KEY",) if name in os.environ},
            "VENUS_JOURNAL": self.settings.journal or str(self.run_dir / "journal.sqlite"),
            "VENUS_ENGINE_CA": self.settings.tls_cert if self.settings.tls_key else ""}))

    def metrics(self) -> dict[str, float]:
        """The newest figures of every process, by name."""
        return {k: v for child in self.sup.children.values() for k, v in child.metrics.items()}
