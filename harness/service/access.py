"""Who may call: bearer tokens, the tenant of each, and what it may do there.

    {"a-long-random-token": "acme", "another-long-one": {"tenant": "acme", "rights": ["submit"]}}

`submit`: send requests and cancel. `speak`: read words and take replies. Every token may open, watch and list its tenant's sessions.
"""
import hashlib
import hmac
import json
import logging
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping

from harness.service.errors import NotAllowed, NotAuthorised
from venus_edge.errors import ConfigError

log = logging.getLogger("harness.service")
RIGHTS = ("submit", "speak")
VARIABLE = "VENUS_DELEGATION_TOKENS"
LOCAL = "local"
"""The only tenant of a server without tokens, which serves loopback alone."""
_TENANT = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TOKEN = re.compile(r"[\x21-\x7e]{16,256}")


@dataclass(frozen=True)
class Grant:
    tenant: str
    rights: frozenset[str] = frozenset(RIGHTS)

    def need(self, right: str) -> None:
        """Raises NotAllowed."""
        if right not in self.rights:
            raise NotAllowed(f"this token lacks the right '{right}'", right=right)


class Access:
    """The tokens of one server. Without any, everybody who reaches it is the tenant `local`."""

    def __init__(self, tokens: Mapping[str, Any] | None = None, source: str = "tokens"):
        """Raises ConfigError naming `source` and what is wrong, never a token."""
        self._grants: list[tuple[bytes, Grant]] = []
        for number, (token, value) in enumerate((tokens or {}).items(), start=1):
            self._grants.append((_digest(token), _grant(token, value, f"{source}: entry {number}")))

    @classmethod
    def load(cls, path: str = "", environ: Mapping[str, str] | None = None) -> "Access":
        """From a JSON file, else from VENUS_DELEGATION_TOKENS, else without tokens. Raises ConfigError."""
        env = os.environ if environ is None else environ
        source = path or VARIABLE
        text = env.get(VARIABLE, "")
        if path:
            try:
                text = Path(path).read_text(encoding="utf-8")
                if Path(path).stat().st_mode & stat.S_IROTH:
                    log.warning("tokens file: every user of this machine can read it; chmod 600 is enough")
            except (OSError, UnicodeDecodeError) as err:
                raise ConfigError(f"{path}: tokens can't be read ({getattr(err, 'strerror', None) or 'not UTF-8'})") from None
        if not text.strip() and not path:
            return cls()
        try:
            tokens = json.loads(text)
        except ValueError:
            raise ConfigError(f"{source}: allowed: a JSON object {{token: tenant}}") from None
        if not isinstance(tokens, dict) or not tokens:
            raise ConfigError(f"{source}: allowed: a JSON object {{token: tenant}} with at least one token")
        return cls(tokens, source)

    @property
    def guarded(self) -> bool:
        """Whether a token is needed."""
        return bool(self._grants)

    def tenants(self) -> frozenset[str]:
        return frozenset(grant.tenant for _, grant in self._grants) or frozenset({LOCAL})

    def grant(self, authorization: str) -> Grant:
        """What the `authorization` metadata allows; compares with every token in constant time. Raises NotAuthorised."""
        if not self._grants:
            return Grant(LOCAL)
        scheme, _, token = authorization.partition(" ")
        given, found = _digest(token), None
        for digest, grant in self._grants:
            if hmac.compare_digest(digest, given):
                found = grant
        if found is None or scheme.lower() != "bearer":
            raise NotAuthorised("authorization: a bearer token of this server is needed")
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _grant(token: str, value: Any, where: str) -> Grant:
    if not _TOKEN.fullmatch(token):
        raise ConfigError(f"{where}: a token has 16 to 256 printable ASCII characters and no spaces")
    fields = {"tenant": value} if isinstance(value, str) else value
    if not isinstance(fields, dict) or set(fields) - {"tenant", "rights"} or not isinstance(fields.get("tenant"), str):
        raise ConfigError(f"{where}: allowed: a tenant, or {{\"tenant\": …, \"rights\": [{', '.join(RIGHTS)}]}}")
    if not _TENANT.fullmatch(fields["tenant"]):
        raise ConfigError(f"{where}: tenant: 1 to 64 letters, digits, '.', '_' and '-' are allowed")
    rights = fields.get("rights", list(RIGHTS))
    if not isinstance(rights, list) or not all(isinstance(right, str) and right in RIGHTS for right in rights):
        raise ConfigError(f"{where}: rights: allowed: a list of {', '.join(RIGHTS)}")
    return Grant(fields["tenant"], frozenset(rights))
