"""Errors of the delegation service and its client.

DelegationError(VenusError)
├── NotAuthorised       not_authorised       no token, or one that the server doesn't know
├── NotAllowed          not_allowed          the token lacks the right that the message names
├── Replaced            replaced             a newer stream has taken this one's place
├── TooLarge            too_large            a message is larger than the server takes
├── ServiceUnavailable  service_unavailable  the server can't be reached, or is stopping (retryable)
├── ServiceTimeout      service_timeout      no answer within the deadline (retryable: under the same key)
└── ServiceFault        service_fault        a fault inside the server; this call failed, nothing else

Besides these the client raises the harness's own: BadRequest, UnknownSession, UnknownTask, JournalFault, Closed, and BusyError.
"""
import json

import grpc

from harness import errors as harness_errors
from harness.service import delegation_pb2 as pb
from venus_edge.errors import BusyError, VenusError

ERROR_KEY = "venus-error-bin"


class DelegationError(VenusError):
    code = "delegation"


class NotAuthorised(DelegationError):
    code = "not_authorised"
    advice = "Pass a token of the server's tokens file as `authorization: Bearer <token>`."


class NotAllowed(DelegationError):
    code = "not_allowed"
    advice = "Use a token that has the named right."


class Replaced(DelegationError):
    code = "replaced"
    advice = "Leave the session's deliveries to the stream that was opened last."


class TooLarge(DelegationError):
    code = "too_large"
    advice = "Send less in one message; the server's limit is in the message."


class ServiceUnavailable(DelegationError):
    code = "service_unavailable"
    retryable = True
    advice = "Try again when the server answers its health check; open the session again by its name."


class ServiceTimeout(DelegationError):
    code = "service_timeout"
    retryable = True
    advice = "Ask again under the same key: what was taken is not taken twice."


class ServiceFault(DelegationError):
    code = "service_fault"


BY_CODE: dict[str, type[VenusError]] = {cls.code: cls for cls in (
    NotAuthorised, NotAllowed, Replaced, TooLarge, ServiceUnavailable, ServiceTimeout, ServiceFault, BusyError, harness_errors.BadRequest,
    harness_errors.UnknownSession, harness_errors.UnknownTask, harness_errors.JournalFault, harness_errors.Closed)}
STATUS = {
    "not_authorised": grpc.StatusCode.UNAUTHENTICATED, "not_allowed": grpc.StatusCode.PERMISSION_DENIED, "replaced": grpc.StatusCode.ABORTED,
    "too_large": grpc.StatusCode.RESOURCE_EXHAUSTED, "service_unavailable": grpc.StatusCode.UNAVAILABLE,
    "service_timeout": grpc.StatusCode.DEADLINE_EXCEEDED, "busy": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "bad_request": grpc.StatusCode.INVALID_ARGUMENT, "unknown_session": grpc.StatusCode.NOT_FOUND, "unknown_task": grpc.StatusCode.NOT_FOUND,
    "journal": grpc.StatusCode.UNAVAILABLE, "closed": grpc.StatusCode.FAILED_PRECONDITION}


def to_message(err: Exception) -> pb.Error:
    """Any error as it travels. One that isn't ours is told by its type only: its text may hold words or paths."""
    if isinstance(err, VenusError):
        return pb.Error(code=err.code, message=err.message, retryable=err.retryable, data_json=json.dumps(err.data, default=str))
    return pb.Error(code=ServiceFault.code, message=f"internal error ({type(err).__name__})")


def status_of(message: pb.Error) -> grpc.StatusCode:
    return STATUS.get(message.code, grpc.StatusCode.INTERNAL)


def from_message(message: pb.Error) -> VenusError:
    """The typed error again; a code that we don't know becomes ServiceFault and keeps its own code in `data`."""
    data = json.loads(message.data_json) if message.data_json else {}
    cls = BY_CODE.get(message.code)
    return cls(message.message, **data) if cls else ServiceFault(message.message, **{**data, "cause": message.code})


def from_rpc(err: grpc.RpcError) -> VenusError:
    """The typed error of a failed call: its own message if the server sent one, else by status."""
    for key, value in err.trailing_metadata() or ():
        if key == ERROR_KEY:
            return from_message(pb.Error.FromString(value))
    code = err.code()
    broke = code is grpc.StatusCode.INTERNAL and not err.trailing_metadata()  # gRPC's own: a write to a stream that has ended
    if broke or code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
        return ServiceUnavailable(f"delegation service: {err.details()}")
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return ServiceTimeout("delegation service: no answer within the deadline")
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:  # by gRPC itself, before our code saw anything
        return TooLarge(f"delegation service: {err.details()}")
    return ServiceFault(f"delegation service: {code.name.lower()}")
