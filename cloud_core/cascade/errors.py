"""Errors of the cascade front end.

CascadeError(VenusError)
├── BadUnit        bad_unit      a unit that breaks the contract; the message names the field and what is allowed
├── BadOptions     bad_options   a session or runtime option out of range; the same
└── SessionClosed  session_closed  step() after close()
"""
from venus_edge.errors import VenusError


class CascadeError(VenusError):
    code = "cascade"


class BadUnit(CascadeError):
    """The unit is refused and nothing has changed: the session goes on with the next good one."""

    code = "bad_unit"
    advice = "Correct the named field and send the unit again."


class BadOptions(CascadeError):
    code = "bad_options"
    advice = "Correct the named option."


class SessionClosed(CascadeError):
    code = "session_closed"
    advice = "Open a new session."
