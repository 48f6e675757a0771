"""Who may use the vehicle bus: bearer tokens with scopes, and the refusal of an open bind."""

import hmac
from dataclasses import dataclass
from pathlib import Path

import grpc

from venus_edge.bind import is_loopback
from venus_edge.errors import ConfigError

ALL = frozenset({"read", "actuate", "provide"})
READ = frozenset({"read"})

# What each method needs; a method that is not named here is refused.
NEEDS = {
    "/kuksa.val.v2.VAL/GetValue": "read", "/kuksa.val.v2.VAL/GetValues": "read",
    "/kuksa.val.v2.VAL/Subscribe": "read", "/kuksa.val.v2.VAL/SubscribeById": "read",
    "/kuksa.val.v2.VAL/ListMetadata": "read", "/kuksa.val.v2.VAL/GetServerInfo": "read",
    "/kuksa.val.v2.VAL/Actuate": "actuate", "/kuksa.val.v2.VAL/ActuateStream": "actuate",
    "/kuksa.val.v2.VAL/BatchActuate": "actuate",
    "/kuksa.val.v2.VAL/PublishValue": "provide", "/kuksa.val.v2.VAL/OpenProviderStream": "provide",
    "/kuksa.val.v1.VAL/Get": "read", "/kuksa.val.v1.VAL/Subscribe": "read", "/kuksa.val.v1.VAL/GetServerInfo": "read",
    "/kuksa.val.v1.VAL/Set": "actuate",  # and "provide" per entry that sets a current value
}  # fmt: skip


@dataclass(frozen=True)
class Tokens:
    """The two tokens of the bus; with neither, everybody on this machine has every right."""

    full: str = ""
    read: str = ""

    def scopes(self, header: str | None) -> frozenset[str] | None:
        """The scopes of an `authorization` header; None when it proves nothing. Compared in constant time."""
        if not self.full and not self.read:
            return ALL
        kind, _, token = (header or "").partition(" ")
        if kind.lower() != "bearer" or not token:
            return None
        given = token.encode()
        if self.full and hmac.compare_digest(given, self.full.encode()):
            return ALL
        if self.read and hmac.compare_digest(given, self.read.encode()):
            return READ
        return None


def _refusing(handler: grpc.RpcMethodHandler, code: grpc.StatusCode, why: str) -> grpc.RpcMethodHandler:
    async def unary(_request, context):
        await context.abort(code, why)

    async def stream(_request, context):
        await context.abort(code, why)
        yield  # an async generator, as the streaming handlers are

    if handler.response_streaming:
        make = grpc.stream_stream_rpc_method_handler if handler.request_streaming else grpc.unary_stream_rpc_method_handler
        return make(stream, handler.request_deserializer, handler.response_serializer)
    make = grpc.stream_unary_rpc_method_handler if handler.request_streaming else grpc.unary_unary_rpc_method_handler
    return make(unary, handler.request_deserializer, handler.response_serializer)


class AuthInterceptor(grpc.aio.ServerInterceptor):
    """Checks the token before any method runs: UNAUTHENTICATED without a right one, PERMISSION_DENIED beyond its scope."""

    def __init__(self, tokens: Tokens):
        self.tokens = tokens

    async def intercept_service(self, continuation, details):
        handler = await continuation(details)
        if handler is None:
            return None
        scopes = self.tokens.scopes(dict(details.invocation_metadata).get("authorization"))
        if scopes is None:
            return _refusing(handler, grpc.StatusCode.UNAUTHENTICATED, "a valid bearer token is needed")
        need = NEEDS.get(details.method, "")
        if need not in scopes:
            return _refusing(handler, grpc.StatusCode.PERMISSION_DENIED, f"the token lacks the scope {need or 'for this'}")
        return handler


def parse_addr(addr: str, variable: str) -> tuple[str, int]:
    """(host, port) of "host:port"; raises ConfigError naming the variable."""
    host, _, port = addr.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"{variable}={addr!r}: needs host:port with a port 0..65535, as 127.0.0.1:55555")
    return host, int(port)


def check_bind(host: str, tokens: Tokens, cert: str, key: str) -> grpc.ServerCredentials | None:
    """Server credentials for a bind on `host`; a bind beyond loopback without TLS and tokens is a ConfigError."""
    if bool(cert) != bool(key):
        raise ConfigError("VENUS_BUS_CERT and VENUS_BUS_KEY belong together: set both or neither")
    if not is_loopback(host) and not (cert and tokens.full):
        raise ConfigError(
            f"VENUS_BUS_ADDR binds {host!r}, beyond loopback: that needs TLS (VENUS_BUS_CERT and VENUS_BUS_KEY) and VENUS_BUS_TOKEN"
        )
    if not cert:
        return None
    try:
        pair = (Path(key).read_bytes(), Path(cert).read_bytes())
    except OSError as err:
        raise ConfigError(f"VENUS_BUS_CERT or VENUS_BUS_KEY can't be read: {err.filename}: {err.strerror}") from None
    return grpc.ssl_server_credentials([pair])
