"""Runs a command as another user, for evaluations that must hold as root and as an ordinary user.

Where Python lies below a folder that only its owner may enter (a home at mode 0700), the other user could not start it: then the command
gets a mount namespace of its own in which that folder is replaced by an empty one that shows Python's folder alone. Nothing is changed
outside, and it goes with the command.
"""
import os
import stat
import sys
import tempfile
from pathlib import Path

from harness.sandbox import kernel

NOBODY = 65534
_REC, _PRIVATE, _BIND, _MOVE = 16384, 1 << 18, 4096, 8192


def closed_folders() -> list[str]:
    """The outermost folders above this interpreter and its library that others may not enter."""
    found = set()
    for path in (os.path.realpath(sys.executable), sys.prefix, sys.base_prefix):
        for folder in reversed(Path(path).parents):
            if not folder.stat().st_mode & stat.S_IXOTH:
                found.add(str(folder))
                break
    return sorted(found)


def become(user: int, *, arguments: list[str]) -> None:
    """Turn this process, started as root, into `python *arguments` run by that user; never returns."""
    closed = closed_folders()
    if closed:
        kernel.unshare(kernel.CLONE_NEWNS)
        kernel.mount("none", "/", None, _REC | _PRIVATE)
        for folder in closed:
            _open(folder)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    environment = {name: value for name, value in os.environ.items() if name != "HOME"} | {"PYTHONDONTWRITEBYTECODE": "1"}
    os.execve(sys.executable, [sys.executable, *arguments], environment)


def _open(folder: str) -> None:
    """Replace a closed folder by one that shows only Python's below it."""
    needed = [path for path in {sys.prefix, sys.base_prefix} if path.startswith(folder + os.sep)]
    aside = tempfile.mkdtemp(prefix="venus-user-")
    kernel.mount("venus", aside, "tmpfs", 0, "size=64k,mode=755")
    for number, path in enumerate(needed):
        os.mkdir(f"{aside}/{number}")
        kernel.mount(path, f"{aside}/{number}", None, _BIND | _REC)
    kernel.mount("venus", folder, "tmpfs", 0, "size=64k,mode=755")
    for number, path in enumerate(needed):
        os.makedirs(path)
        kernel.mount(f"{aside}/{number}", path, None, _MOVE)
    kernel.unmount(aside, 2)
    os.rmdir(aside)


if __name__ == "__main__":
    become(int(sys.argv[1]), arguments=sys.argv[2:])
