"""Errors that a host answers with; the codes are the ones all skills share.

HostError(VenusError)
├── NotPermitted     not_permitted   the policy never allows it by voice
├── UnsafeNow        unsafe_now      not while the vehicle is in this state; data["reason"] says which
├── NeedsConfirmation needs_confirmation
├── Unavailable      unavailable     no provider, or the car can't be reached (retryable)
├── NotFound         not_found       no such signal, place or way
├── InvalidArgs      invalid_args    wrong type or range; the message names the field and the range
└── DeadlinePassed   timeout         it was asked for, but did not happen in time
"""
from venus_edge.errors import VenusError


class HostError(VenusError):
    code = "internal"


class NotPermitted(HostError):
    code = "not_permitted"
    advice = "Tell the user that this can't be done by voice."


class UnsafeNow(HostError):
    code = "unsafe_now"
    advice = "Tell the user the reason; it may be asked again when the vehicle's state has changed."


class NeedsConfirmation(HostError):
    code = "needs_confirmation"
    advice = "Ask the user once, then repeat the effect with the confirmation."


class Unavailable(HostError):
    code = "unavailable"
    retryable = True
    advice = "Try again later."


class NotFound(HostError):
    code = "not_found"
    advice = "Name something that exists."


class InvalidArgs(HostError):
    code = "invalid_args"
    advice = "Correct the named field."


class DeadlinePassed(HostError):
    code = "timeout"
    retryable = True
    advice = "Say that it was asked for but has not happened."


BY_CODE = {cls.code: cls for cls in
           (NotPermitted, UnsafeNow, NeedsConfirmation, Unavailable, NotFound, InvalidArgs, DeadlinePassed, HostError)}


def from_dict(error: dict) -> HostError:
    """Rebuild the error that travelled as {"code", "message", "data"}."""
    return BY_CODE.get(error.get("code", "internal"), HostError)(error.get("message", ""), **error.get("data", {}))
