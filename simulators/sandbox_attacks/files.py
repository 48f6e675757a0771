"""Attacks on what others' files hold, and on the machine's own accounts of itself."""
import os

from simulators.sandbox_attacks import Target, attack


@attack
def secret_file(target: Target) -> str:
    """Read a file of the same user, and the machine's accounts."""
    found = []
    for path in (target.secret_file, "/etc/shadow", "/etc/passwd"):
        try:
            with open(path, "rb") as file:
                found.append(f"{path}: {len(file.read(64))} bytes")
        except OSError:
            continue
    return ", ".join(found)


@attack
def proc(target: Target) -> str:
    """Learn of other processes from /proc: command lines and environments."""
    found = []
    for path in (f"/proc/{target.victim}/cmdline", f"/proc/{target.host}/environ", "/proc/1/cmdline", "/proc/self/environ", "/proc/meminfo"):
        try:
            with open(path, "rb") as file:
                if file.read(64):
                    found.append(path)
        except OSError:
            continue
    return ", ".join(found)


@attack
def environment(target: Target) -> str:
    """Take what the host's environment holds (keys, tokens)."""
    return f"{target.variable}={os.environ[target.variable]}" if target.variable in os.environ else ""


@attack
def symlink(target: Target) -> str:
    """Reach the secret by a link that lies in a folder that may be read, and by one made on the spot."""
    found = []
    try:
        with open(os.path.join(target.folder, "link"), "rb") as file:
            found.append(f"through a link: {len(file.read(64))} bytes")
    except OSError:
        pass
    try:
        path = os.path.join(target.outside, f"made-{os.getpid()}")
        os.symlink(target.secret_file, path)
        found.append("made a link")
        os.unlink(path)
    except OSError:
        pass
    return ", ".join(found)


@attack
def dotdot(target: Target) -> str:
    """Leave a folder that may be read by `..`."""
    try:
        with open(os.path.join(target.folder, "..", os.path.relpath(target.secret_file, os.path.dirname(target.folder))), "rb") as file:
            return f"{len(file.read(64))} bytes"
    except OSError:
        return ""


@attack
def write(target: Target) -> str:
    """Leave a file behind, wherever one can be left."""
    found = []
    for folder in (target.outside, target.folder, os.path.dirname(__file__), "/tmp", "/dev/shm"):
        path = os.path.join(folder, f"left-{os.getpid()}")
        try:
            with open(path, "wb") as file:
                file.write(b"x" * 4096)
            found.append(folder)
            os.unlink(path)
        except OSError:
            continue
    return ", ".join(found)


@attack
def rights(target: Target) -> str:
    """Change the mode of a file that may be read, and of one that may not."""
    found = []
    for path in (os.path.join(target.folder, "open"), target.secret_file):
        try:
            os.chmod(path, 0o644)
            found.append(path)
        except OSError:
            continue
    return ", ".join(found)
