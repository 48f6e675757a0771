"""The one rule for listening addresses: loopback is free, anything wider needs TLS and a token."""
import ipaddress
import socket

from venus_edge.errors import ConfigError


def split_addr(addr: str, name: str) -> tuple[str, int]:
    """'host:port' → (host, port); raises ConfigError naming the setting. Port 0 means a free one."""
    host, sep, port = addr.rpartition(":")
    if not sep or not host or not port.isdigit() or not 0 <= int(port) <= 65535:
        raise ConfigError(f"{name}: '{addr}' is not host:port with a port of 0 to 65535")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_bind(addr: str, name: str, *, tls: bool = False, token: bool = False) -> tuple[str, int]:
    """Refuse a bind beyond loopback without TLS and a token; returns (host, port)."""
    host, port = split_addr(addr, name)
    if not is_loopback(host) and not (tls and token):
        lacks = " and ".join(w for w, have in (("TLS", tls), ("a token", token)) if not have)
        raise ConfigError(f"{name}: {addr} is beyond loopback and lacks {lacks}; use 127.0.0.1, or configure both")
    return host, port


def free_port(kind: int = socket.SOCK_STREAM) -> int:
    """A port of loopback that is free now."""
    with socket.socket(socket.AF_INET, kind) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def check_free(port: int, name: str, kind: int = socket.SOCK_STREAM) -> None:
    """Raise ConfigError naming the setting if `port` of loopback is taken."""
    with socket.socket(socket.AF_INET, kind) as s:
        try:
            s.bind(("127.0.0.1", port))
        except OSError as err:
            raise ConfigError(f"{name}: port {port} is busy on 127.0.0.1; choose another, or 0 for a free one") from err
