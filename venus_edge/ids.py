"""The one id maker: 26-character ULIDs, ordered by creation."""
import os
import threading
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_lock = threading.Lock()
_last = 0


def new_id(prefix: str = "") -> str:
    """A ULID (48 bits of milliseconds, 80 random bits), strictly increasing within one process."""
    global _last
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    with _lock:
        _last = value = max(value, _last + 1)
    text = "".join(_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5))
    return f"{prefix}-{text}" if prefix else text
