"""Every setting of the product in one validated place: defaults, then a TOML file, then VENUS_* variables.

`venus config show` prints the result, `venus config check` only validates. Secrets are never printed.
"""
import os
import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from venus_edge.errors import ConfigError

SECRET_FIELDS = frozenset({"livekit_secret", "engine_token", "bus_token", "bus_read_token"})
PROCESS_VARIABLES = frozenset({
    "VENUS_CONFIG", "VENUS_CACHE", "VENUS_SUPERVISED", "VENUS_TRACE_DIR", "VENUS_OUT", "VENUS_SCENARIO", "VENUS_DEVICE_TOKEN",
    "VENUS_AGENT_TOKEN", "VENUS_HOST_TOKEN", "VENUS_AGENT_IDENTITY", "VENUS_DRIVE", "VENUS_DRIVER_WAV", "VENUS_LISTEN",
    "VENUS_AGENT_WAIT_S", "VENUS_ENGINE_OPTIONS", "VENUS_ENGINE_TLS_CERT", "VENUS_ENGINE_TLS_KEY", "VENUS_BUS_CERT",
    "VENUS_BUS_KEY", "VENUS_BUS_CA", "VENUS_DELEGATION_TOKENS"})
LLM_PREFIX = "VENUS_LLM_"
"""Variables of the language-model endpoint, which the session worker reads (docs/operators-llm.md)."""
"""Variables that one process hands to another; not settings."""


class Settings(BaseModel):
    """All settings. A field `x` is `x = …` in the file and VENUS_X in the environment."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    room: str = Field("venus", pattern=r"^[A-Za-z0-9._-]{1,64}$")
    """Room that the device, the agent and the car host join."""
    language: str = Field("en", pattern="^(en)$")
    """Language of the conversation: what the front end hears and speaks."""
    livekit_url: str = Field("", pattern=r"^(wss?://.+)?$")
    """An existing LiveKit server; empty starts one on loopback."""
    livekit_port: int = Field(0, ge=0, le=65535)
    """TCP port of our own LiveKit server; 0 is a free one."""
    livekit_key: str = Field("venus", pattern=r"^[A-Za-z0-9_-]{1,64}$")
    livekit_secret: str = Field("", pattern=r"^(.{32,})?$")
    """At least 32 characters; empty makes a random one per run."""
    engine_addr: str = "127.0.0.1:0"
    engine_token: str = ""
    engine_runtime: str = "cascade"
    """Name in the entry-point group venus.runtimes."""
    engine_sessions: int = Field(4, ge=1, le=64)
    bus_addr: str = "127.0.0.1:0"
    """Vehicle signals (kuksa.val gRPC)."""
    bus_token: str = ""
    bus_read_token: str = ""
    journal: str = ""
    """Where requests survive a crash of the session worker: a file, redis://…, `memory` for nowhere; "" for a file in the run's folder."""
    health_addr: str = "127.0.0.1:0"
    """HTTP /healthz and /metrics of `venus up`."""
    tls_cert: str = ""
    tls_key: str = ""
    log_level: str = Field("WARNING", pattern="^(DEBUG|INFO|WARNING|ERROR)$")

    @classmethod
    def load(cls, path: str | None = None, environ: dict | None = None, **overrides) -> "Settings":
        """Defaults < file (argument, VENUS_CONFIG or ./venus.toml) < VENUS_* < `overrides`. Raises ConfigError."""
        env = dict(os.environ if environ is None else environ)
        path = path or env.get("VENUS_CONFIG") or ("venus.toml" if Path("venus.toml").exists() else None)
        values: dict = {}
        source: dict[str, str] = {}
        if path:
            try:
                with open(path, "rb") as f:
                    values = tomllib.load(f)
            except FileNotFoundError as err:
                raise ConfigError(f"{path}: no such settings file") from err
            except OSError as err:
                raise ConfigError(f"{path}: can't be read ({err.strerror})") from err
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
                raise ConfigError(f"{path}: not TOML: {err}") from err
            source = dict.fromkeys(values, path)
        for name, value in env.items():
            field = name[6:].lower()
            if name.startswith("VENUS_") and field in cls.model_fields:
                values[field], source[field] = value, name
        values.update({k: v for k, v in overrides.items() if v is not None})
        try:
            return cls(**values)
        except ValidationError as err:
            first = err.errors()[0]
            field = str(first["loc"][0])
            where = source.get(field, "settings")
            if first["type"] == "extra_forbidden":
                raise ConfigError(f"{where}: unknown setting '{field}'; allowed: {', '.join(sorted(cls.model_fields))}") from err
            raise ConfigError(f"{where}: {field}: {first['msg']} (given: {'***' if field in SECRET_FIELDS else values.get(field)!r})") from err

    @staticmethod
    def unknown_variables(environ: dict | None = None) -> list[str]:
        """VENUS_* variables that nothing reads: most likely misspelt."""
        env = os.environ if environ is None else environ
        known = {f"VENUS_{f.upper()}" for f in Settings.model_fields} | PROCESS_VARIABLES
        return sorted(n for n in env if n.startswith("VENUS_") and n not in known and not n.startswith(LLM_PREFIX))

    def shown(self) -> dict:
        """The settings with secrets masked."""
        return {k: ("***" if k in SECRET_FIELDS and v else v) for k, v in self.model_dump().items()}
