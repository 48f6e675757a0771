"""Errors of the engine server and its client.

EngineError(VenusError)
├── EngineUnavailable  engine_unavailable  the server can't be reached or went away (retryable: open a new session)
├── EngineTimeout      engine_timeout      no decision within the deadline (retryable: open a new session)
├── EngineBusy         busy                the server's session limit is reached (retryable)
├── NotAuthorised      not_authorised      wrong or missing token
├── UnknownRuntime     unknown_runtime     no such entry point in `venus.runtimes`
├── UnitRefused        bad_unit            a unit breaks the contract; the message names the field; the session lives on
├── OptionsRefused     bad_options         the session's options are refused; the message names the field
└── SessionFailed      session_failed      this session has ended with an error; others are untouched
"""
import json

import grpc

from cloud_core.engine import engine_pb2 as pb
from venus_edge.errors import VenusError

ERROR_KEY = "venus-error-bin"


class EngineError(VenusError):
    code = "engine"


class EngineUnavailable(EngineError):
    code = "engine_unavailable"
    retryable = True
    advice = "Open a new session when the server answers its health check."


class EngineTimeout(EngineError):
    code = "engine_timeout"
    retryable = True
    advice = "Open a new session; if it happens again the machine is too slow or overloaded."


class EngineBusy(EngineError):
    code = "busy"
    retryable = True
    advice = "Try again later, or raise VENUS_ENGINE_SESSIONS."


class NotAuthorised(EngineError):
    code = "not_authorised"
    advice = "Pass the token that the server was started with (VENUS_ENGINE_TOKEN)."


class UnknownRuntime(EngineError):
    code = "unknown_runtime"
    advice = "Install the package that registers the runtime, or choose one that the message names."


class UnitRefused(EngineError):
    code = "bad_unit"
    advice = "Correct the named field and send the unit again."


class OptionsRefused(EngineError):
    code = "bad_options"
    advice = "Correct the named option."


class SessionFailed(EngineError):
    code = "session_failed"
    advice = "Open a new session."


BY_CODE = {cls.code: cls for cls in (EngineUnavailable, EngineTimeout, EngineBusy, NotAuthorised, UnknownRuntime, UnitRefused,
                                     OptionsRefused, SessionFailed)}
STATUS = {"busy": grpc.StatusCode.RESOURCE_EXHAUSTED, "not_authorised": grpc.StatusCode.UNAUTHENTICATED,
          "bad_options": grpc.StatusCode.INVALID_ARGUMENT, "bad_unit": grpc.StatusCode.INVALID_ARGUMENT}


def to_message(err: Exception) -> pb.Error:
    """Any error as it travels. What isn't a VenusError is told by its type only: its text may hold words or paths."""
    if isinstance(err, VenusError):
        return pb.Error(code=err.code, message=err.message, retryable=err.retryable, data_json=json.dumps(err.data, default=str))
    return pb.Error(code="session_failed", message=f"internal error ({type(err).__name__})")


def from_message(message: pb.Error) -> EngineError:
    """The typed error again; a code that we don't know becomes SessionFailed and keeps its own code in `data`."""
    data = json.loads(message.data_json) if message.data_json else {}
    cls = BY_CODE.get(message.code)
    return cls(message.message, **data) if cls else SessionFailed(message.message, **{**data, "cause": message.code})


def from_rpc(err: grpc.RpcError) -> EngineError:
    """The typed error of a failed call: its details message if the server sent one, else by status."""
    for key, value in err.trailing_metadata() or ():
        if key == ERROR_KEY:
            return from_message(pb.Error.FromString(value))
    if err.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
        return EngineUnavailable(f"engine: {err.details()}")
    if err.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return EngineTimeout("engine: deadline exceeded")
    return SessionFailed(f"engine: {err.code().name.lower()}")
