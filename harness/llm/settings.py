"""How to reach an OpenAI-compatible endpoint and how long to wait for it. The key itself is never part of the settings."""
import os
import re
from typing import Any, Mapping
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from venus_edge.errors import ConfigError

PREFIX = "VENUS_LLM_"
_LOOPBACK = re.compile(r"^(localhost|127(\.\d{1,3}){3}|::1)$")


class LLMSettings(BaseModel):
    """All options, each with its unit in the name. `load` and `from_env` raise ConfigError naming the wrong field."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    base_url: str
    """Where the API begins, e.g. https://api.example.com/v1; no user, password, query or fragment."""
    model: str = Field(min_length=1, max_length=200)
    api_key_env: str = Field("VENUS_LLM_KEY", pattern=r"^([A-Z][A-Z0-9_]*)?$")
    """Name of the environment variable that holds the key; empty for an endpoint that takes none."""

    plan_timeout_s: float = Field(6.0, gt=0, le=60)
    oralize_timeout_s: float = Field(4.0, gt=0, le=60)
    direct_timeout_s: float = Field(20.0, gt=0, le=120)
    general_timeout_s: float = Field(60.0, gt=0, le=600)
    retries: int = Field(1, ge=0, le=5)
    """Further tries after 429, 5xx, a timeout or a lost connection, inside the same time limit."""
    retry_wait_s: float = Field(0.3, ge=0, le=10)
    """First pause before a retry; doubled each time, with jitter."""
    retry_after_max_s: float = Field(5.0, ge=0, le=60)
    """A server that asks (Retry-After) for a longer pause is not asked again for this request."""
    pause_after_failures: int = Field(3, ge=1, le=100)
    """After so many requests in a row without an answer, the endpoint is left alone for `pause_s`."""
    pause_s: float = Field(15.0, ge=0, le=600)

    plan_max_tokens: int = Field(600, ge=16, le=32_768)
    oralize_max_tokens: int = Field(160, ge=16, le=4096)
    direct_max_tokens: int = Field(400, ge=16, le=32_768)
    general_max_tokens: int = Field(1000, ge=16, le=32_768)
    """Per step of a general task."""
    max_tokens_name: str = Field("max_tokens", pattern="^(max_tokens|max_completion_tokens)$")
    """What the endpoint calls the limit; reasoning models of OpenAI know the second name only."""
    temperature: float | None = Field(0.0, ge=0, le=2)
    """None leaves it out, for models that refuse it."""

    concurrency: int = Field(4, ge=1, le=256)
    """Requests under way at once."""
    queue: int = Field(16, ge=0, le=4096)
    """Requests that wait for a place; one more is refused with BusyError."""
    max_answer_bytes: int = Field(1 << 20, ge=4096)

    images: bool = False
    """The model takes image_url parts: frames are sent with a direct question."""
    audio: bool = False
    """The model takes input_audio parts: the user's audio is sent with a direct question."""
    max_frames: int = Field(4, ge=1, le=16)
    max_media_bytes: int = Field(4 << 20, ge=1024)
    """Of all media of one request, before base64."""

    max_steps: int = Field(6, ge=1, le=32)
    """Times the model is asked within one general task."""
    max_calls: int = Field(12, ge=1, le=64)
    """Skill calls within one general task."""

    plain_http: bool = False
    """Allow http:// beyond loopback: words and key then travel in the clear."""
    proxy_from_env: bool = False
    """Use HTTP(S)_PROXY of the environment."""

    @field_validator("base_url")
    @classmethod
    def _url(cls, value: str) -> str:
        try:
            parts = urlsplit(value)
            port_ok = parts.port is None or parts.port > 0
        except ValueError:
            raise ValueError("not a URL") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or not port_ok or re.search(r"\s", value):
            raise ValueError("http://host[:port]/path or https://host[:port]/path is needed")
        if parts.username is not None or parts.password is not None or "?" in value or "#" in value:
            raise ValueError("no user, password, query or fragment is allowed in it; the key goes into the variable that api_key_env names")
        return value.rstrip("/")

    @field_validator("temperature", mode="before")
    @classmethod
    def _no_temperature(cls, value: Any) -> Any:
        """A variable can't hold None: it says `none`."""
        return None if value == "none" else value

    @model_validator(mode="after")
    def _clear_text(self) -> "LLMSettings":
        if self.base_url.startswith("http://") and not self.loopback and not self.plain_http:
            raise ValueError("base_url: http:// beyond loopback sends words and key in the clear; use https:// or set plain_http")
        return self

    @property
    def loopback(self) -> bool:
        return bool(_LOOPBACK.match(urlsplit(self.base_url).hostname or ""))

    @classmethod
    def load(cls, **values: Any) -> "LLMSettings":
        """The settings from fields by name; raises ConfigError naming the field, never showing its value."""
        return cls._checked(values, {})

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **overrides: Any) -> "LLMSettings":
        """VENUS_LLM_URL and VENUS_LLM_MODEL, and VENUS_LLM_<FIELD> for every other field; `overrides` win.

        VENUS_LLM_KEY holds the key itself; an endpoint on loopback does without.
        """
        env = os.environ if environ is None else environ
        names = {"base_url": f"{PREFIX}URL"} | {f: PREFIX + f.upper() for f in cls.model_fields if f != "base_url"}
        values: dict[str, Any] = {field: env[name] for field, name in names.items() if env.get(name, "") != "" or
                                  (field == "api_key_env" and name in env)}
        values |= {k: v for k, v in overrides.items() if v is not None}
        for field in ("base_url", "model"):
            if field not in values:
                raise ConfigError(f"{names[field]}: not set; it names the endpoint's {'address' if field == 'base_url' else 'model'}")
        return cls._checked(values, names)

    @classmethod
    def _checked(cls, values: dict[str, Any], names: Mapping[str, str]) -> "LLMSettings":
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            field = str(first["loc"][0]) if first["loc"] else ""
            if first["type"] == "extra_forbidden":
                message = f"unknown setting '{field}'; allowed: {', '.join(sorted(cls.model_fields))}"
            else:
                message = f"{names.get(field, field)}: {first['msg']}" if field else first["msg"]
        raise ConfigError(message.replace("Value error, ", ""))

    def api_key(self, environ: Mapping[str, str] | None = None) -> str:
        """The key, or "" where none is needed; raises ConfigError naming the variable."""
        env = os.environ if environ is None else environ
        key = env.get(self.api_key_env, "").strip() if self.api_key_env else ""
        if self.api_key_env and not key and not self.loopback:
            raise ConfigError(f"{self.api_key_env}: not set; it holds the endpoint's key (api_key_env empty: the endpoint takes none)")
        if not re.fullmatch(r"[\x21-\x7e]*", key):
            raise ConfigError(f"{self.api_key_env}: a key has only printable ASCII characters and no spaces")
        return key
