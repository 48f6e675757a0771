"""Attacks on the network, and on other programs by way of sockets."""
import ctypes
import socket

from simulators.sandbox_attacks import ARM, Target, attack

FAMILIES = ("AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_ALG", "AF_VSOCK", "AF_CAN", "AF_BLUETOOTH", "AF_TIPC", "AF_QIPCRTR",
            "AF_RDS")


@attack
def connect(target: Target) -> str:
    """Open a TCP connection to a service of this machine."""
    with socket.create_connection(("127.0.0.1", target.port), 2.0) as sock:
        return sock.recv(16).decode()


@attack
def families(target: Target) -> str:
    """Make a socket of any family and type there is."""
    made = []
    for name in FAMILIES:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
            try:
                socket.socket(getattr(socket, name), kind).close()
                made.append(name)
                break
            except (OSError, AttributeError):
                continue
    return ", ".join(made)


@attack
def pair(target: Target) -> str:
    """Make a pair of datagram sockets, which could send to any socket that has a name."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.close()
    theirs.close()
    return "a pair of sockets"


@attack
def abstract(target: Target) -> str:
    """Speak to another program's abstract Unix socket, which has no file that could be protected."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(2.0)
        sock.connect("\0" + target.abstract)
        return sock.recv(16).decode()


@attack
def raw_syscalls(target: Target) -> str:
    """Make sockets and children by system call numbers, with every way of numbering them that the processor knows."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    made = []
    numbers = {"socket": 198} if ARM else {"socket": 41, "socket of x32": 0x40000000 | 41}
    for name, number in numbers.items():
        if call(ctypes.c_long(number), 1, 1, 0) >= 0:
            made.append(name)
    if call(ctypes.c_long(425), 4, ctypes.create_string_buffer(120)) >= 0:
        made.append("io_uring_setup")
    if call(ctypes.c_long(279 if ARM else 319), b"x", 0) >= 0:
        made.append("memfd_create")
    return ", ".join(made)
