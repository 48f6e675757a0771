"""The file tree of a sandbox: an empty one in memory, in which the folders allowed are mounted read-only at their own places.

Made once, in the zygote, after what it needs was opened; whatever else the machine has is not there any more, not even to be looked for.
"""
import ctypes
import os
import stat
import struct
import sys
import sysconfig
from pathlib import Path
from typing import Iterable

from harness.sandbox import kernel

_RDONLY, _NOSUID, _NODEV, _REMOUNT, _BIND, _REC, _PRIVATE, _DETACH = 1, 2, 4, 32, 4096, 16384, 1 << 18, 2
_AT_FDCWD, _AT_RECURSIVE, _ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = -100, 0x8000, 1, 2, 4
_ROOT = "/tmp"
"""Where the tree is made, before it becomes the root."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
_SYSTEM = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/usr/share/zoneinfo", "/etc/localtime", "/etc/ld.so.cache")


def code_folders(modules: Iterable[str]) -> list[str]:
    """What Python needs to load code: its own library, installed packages, and of other folders only the packages named."""
    library = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    names = {module.partition(":")[0].partition(".")[0] for module in modules} | {"harness", "venus_edge"}
    found = set(library)
    for entry in sys.path:
        entry = os.path.abspath(entry or ".")
        if entry in library or any(entry.startswith(folder + os.sep) for folder in library):
            continue
        if os.path.isfile(entry):
            found.add(entry)
        for name in names:
            found |= {path for path in (os.path.join(entry, name), os.path.join(entry, name + ".py")) if os.path.exists(path)}
    return sorted(filter(os.path.exists, found))


def readable(modules: Iterable[str], data: Iterable[str]) -> list[str]:
    """All that a worker may read: code, data, and the system's libraries, time zones and harmless devices."""
    return sorted({*code_folders(modules), *data, *filter(os.path.exists, (*_SYSTEM, *_DEVICES))})


def listable(paths: Iterable[str]) -> list[str]:
    """The folders of sys.path above those paths, which the import system lists."""
    entries = {os.path.abspath(entry or ".") for entry in sys.path}
    return sorted(entry for entry in entries if any(path.startswith(entry + os.sep) for path in paths))


def enter(paths: Iterable[str]) -> None:
    """Make the tree and move into it; needs a mount namespace of our own. Raises OSError with what could not be mounted."""
    kernel.mount("none", "/", None, _REC | _PRIVATE)
    wanted = {place: os.path.realpath(place) for path in paths if os.path.exists(path) for place in (path, os.path.realpath(path))}
    opened = {place: os.open(source, os.O_PATH | os.O_CLOEXEC) for place, source in wanted.items()}  # the new tree lies on top of some
    try:
        here = os.getcwd()
        kernel.mount("venus", _ROOT, "tmpfs", _NOSUID | _NODEV, "size=64k,nr_inodes=4k,mode=755")
        for place in sorted(opened, key=lambda p: (len(Path(p).parts), p)):
            _bind(place, opened[place])
        os.chdir(_ROOT)
        kernel.call("pivot_root", ctypes.c_char_p(b"."), ctypes.c_char_p(b"."))
        kernel.unmount(".", _DETACH)
        os.chdir(here if os.path.isdir(here) else "/")
        kernel.mount("none", "/", None, _BIND | _REMOUNT | _NOSUID | _NODEV | _RDONLY)
    finally:
        for number in opened.values():
            os.close(number)


def _bind(path: str, source: int) -> None:
    """Show one open folder or file at its own path; what an earlier mount shows is there already."""
    target = _ROOT + path
    if os.path.lexists(target):
        return
    if stat.S_ISDIR(os.fstat(source).st_mode):
        os.makedirs(target, 0o755)
    else:
        os.makedirs(os.path.dirname(target), 0o755, exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    kernel.mount(f"/proc/self/fd/{source}", target, None, _BIND | _REC)
    attributes = struct.pack("<4Q", _ATTR_RDONLY | _ATTR_NOSUID | (0 if path in _DEVICES else _ATTR_NODEV), 0, 0, 0)
    kernel.call("mount_setattr", _AT_FDCWD, ctypes.c_char_p(os.fsencode(target)), _AT_RECURSIVE, ctypes.c_char_p(attributes), len(attributes))
