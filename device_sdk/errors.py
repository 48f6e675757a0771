"""Errors of the device SDK and of its messages.

VenusError
├── WireError          a message is malformed; `data` has `field` and `allowed`
│   ├── TooLarge         too_large        longer than its limit
│   ├── BadVersion       bad_version      `v`, the packet's version byte, or no protocol in common
│   ├── UnknownType      unknown_type     `type` is none of ours
│   └── BadField         bad_field        a field is missing, of the wrong type or out of range
├── AudioFormatError   bad_audio          a block of the wrong rate, type or length reached the SDK
├── NotConnected       not_connected    the room is gone or out of reach (retryable)
│   └── TokenRefused     token_refused    the server does not accept the join token; the message says why
├── ProtocolRefused    protocol_refused   the agent refused this device's hello
└── BackendMissing     backend_missing    an optional audio backend is not installed
"""

from venus_edge.errors import ConfigError, VenusError


class WireError(VenusError):
    """A message from the other side that is not what PROTOCOL.md says. It is dropped and counted; the session lives on."""

    code = "bad_message"
    advice = "Correct the sender; PROTOCOL.md has the tables."

    def __init__(self, message: str, field: str = "", allowed: str = ""):
        super().__init__(message, field=field, allowed=allowed)
        self.field, self.allowed = field, allowed


class TooLarge(WireError):
    code = "too_large"


class BadVersion(WireError):
    code = "bad_version"


class UnknownType(WireError):
    code = "unknown_type"


class BadField(WireError):
    code = "bad_field"


class AudioFormatError(VenusError):
    code = "bad_audio"
    advice = "Hand over exactly 10 ms of int16 mono at the rate that the message names."


class NotConnected(VenusError):
    code = "not_connected"
    retryable = True
    advice = "Connect again with a fresh token."


class TokenRefused(NotConnected):
    code = "token_refused"
    retryable = False
    advice = "Get a fresh token for this server and room."


class ProtocolRefused(VenusError):
    code = "protocol_refused"
    advice = "Update the side with the older protocol; the message names the versions."


class BackendMissing(ConfigError):
    code = "backend_missing"
    advice = "Install the named extra."
