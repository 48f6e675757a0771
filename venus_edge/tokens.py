"""Join tokens for the room (JWT, HS256), least privilege by role.

Written over the standard library because every folder may need one and `venus_edge` depends on nothing else; the claims are
LiveKit's. A device may join one room, publish a microphone, subscribe and send data; it has no administration right of any kind.
"""
import base64
import hashlib
import hmac
import json
import re

from venus_edge.clock import Clock, SystemClock
from venus_edge.errors import ConfigError

_UNITS = {"s": 1, "m": 60, "h": 3600}
MAX_DEVICE_TTL_S = 3600

ROLES = {
    "device": {"canPublish": True, "canSubscribe": True, "canPublishData": True, "canPublishSources": ["microphone"],
               "canUpdateOwnMetadata": True},
    "agent": {"canPublish": True, "canSubscribe": True, "canPublishData": True, "canUpdateOwnMetadata": True, "agent": True},
    "car-host": {"canPublish": False, "canSubscribe": False, "canPublishData": True, "canUpdateOwnMetadata": True},
    "observer": {"canPublish": False, "canSubscribe": True, "canPublishData": False, "hidden": True},
}
RESERVED = {"venus-agent": "agent", "car-host": "car-host"}
"""Whoever joins under one of these is believed to be it, and puts the real one out of the room."""


def parse_ttl(text: str) -> int:
    """'10m', '90s', '1h' or seconds → seconds, 10 s to 1 h."""
    match = re.fullmatch(r"(\d+)([smh]?)", text.strip())
    seconds = int(match[1]) * _UNITS[match[2] or "s"] if match else 0
    if not 10 <= seconds <= MAX_DEVICE_TTL_S:
        raise ConfigError(f"ttl: '{text}' is not 10s to 1h (allowed: a number with s, m or h)")
    return seconds


def _b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def mint(key: str, secret: str, *, identity: str, room: str, role: str = "device", ttl_s: int = 600,
         clock: Clock | None = None) -> str:
    """A signed token. `role` decides the grants and the participant kind. Raises ConfigError for a bad field."""
    if role not in ROLES:
        raise ConfigError(f"role: '{role}' is not one of {', '.join(sorted(ROLES))}")
    if identity in RESERVED and role != RESERVED[identity]:
        raise ConfigError(f"identity: '{identity}' belongs to role {RESERVED[identity]}; allowed for role {role}: any other")
    for name, value in (("identity", identity), ("room", room)):
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", value):
            raise ConfigError(f"{name}: '{value}' may hold 1 to 64 letters, digits, '.', '_' and '-'")
    if len(secret) < 32:
        raise ConfigError("livekit_secret: shorter than 32 characters")
    now = int((clock or SystemClock()).wall())
    claims = {"iss": key, "sub": identity, "nbf": now - 5, "exp": now + ttl_s,
              "video": {"roomJoin": True, "room": room, **ROLES[role]}}
    if role == "agent":
        claims["kind"] = "agent"
    head = _b64(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
    body = _b64(json.dumps(claims, separators=(",", ":")).encode())
    sign = hmac.new(secret.encode(), f"{head}.{body}".encode(), hashlib.sha256).digest()
    return f"{head}.{body}.{_b64(sign)}"
