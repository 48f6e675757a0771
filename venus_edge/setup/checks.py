"""What the machine must have before set-up starts, each with one line that names it and how to get it."""

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from venus_edge.paths import cache_dir
from venus_edge.setup.console import SetupError

GO_NEEDED = (1, 26)  # go.mod of LiveKit server 1.13 asks for it
LIVEKIT_VERSION = "1.13.5"


def check_machine() -> None:
    """Operating system, processor, C library and the `venv` module."""
    machine = platform.machine()
    if sys.platform != "linux" or machine not in ("x86_64", "aarch64"):
        raise SetupError(f"Linux on x86-64 or aarch64 is needed, this is {sys.platform} on {machine}", missing=True)
    if machine == "aarch64" and sys.version_info < (3, 12):
        raise SetupError(
            "on aarch64 Python 3.12 or newer is needed, since the routing library has no wheel for 3.11 there: "
            "`make PYTHON=python3.12 setup`",
            missing=True,
        )
    if platform.libc_ver()[0] != "glibc":
        raise SetupError("a Linux with glibc is needed (Debian, Ubuntu, Fedora, ...): the wheels are built for it", missing=True)
    for module in ("venv", "ensurepip", "ssl", "sqlite3"):
        if importlib.util.find_spec(module) is None:
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            raise SetupError(
                f"this Python {version} has no `{module}` module: on Debian or Ubuntu `apt install python3-venv`, "
                "elsewhere install a complete Python",
                missing=True,
            )


def go_quiet() -> dict[str, str]:
    """Settings that keep Go's usage counters, which even `go version` writes, inside the cache."""
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "go" / "env"
    return {
        "GOENV": os.environ.get("GOENV", str(settings)),  # the user's own proxy settings still count
        "XDG_CONFIG_HOME": str(cache_dir() / "go" / "config"),
    }


def go_version(go: str) -> tuple[int, int] | None:
    """`(major, minor)` of a Go command, or None if it does not answer like one."""
    try:
        said = subprocess.run(
            [go, "version"], capture_output=True, text=True, timeout=30, check=False, env=dict(os.environ, **go_quiet())
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\bgo(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else None


def find_go() -> str | None:
    """A Go on PATH that is new enough."""
    go = shutil.which("go")
    version = go_version(go) if go else None
    return go if version and version >= GO_NEEDED else None


def livekit_version(server: str | Path) -> str | None:
    """The version that a `livekit-server` says it has, or None."""
    try:
        said = subprocess.run([str(server), "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"version (\d+\.\d+\.\d+)", said.stdout + said.stderr)
    return found[1] if found else None
