"""bubblewrap around the zygote, where a usable `bwrap` is on PATH: an outer sandbox beside the namespaces that we make ourselves."""
import functools
import os
import shutil
import subprocess
import sys
from typing import Iterable

from harness.sandbox.policy import Layer, Sandbox

PROBE_S = 5.0


def arguments(bwrap: str, paths: Iterable[str], environment: dict[str, str]) -> list[str]:
    """The command in front of the program: nothing but `paths`, read-only at their own places, an empty /tmp, no network, dies with us."""
    command = [bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev",
               "--size", str(1 << 20), "--tmpfs", "/tmp"]
    for path in sorted({p for path in paths for p in (os.path.realpath(path), os.path.abspath(path))}):
        if not path.startswith("/dev/"):
            command += ["--ro-bind-try", path, path]
    command += ["--chdir", "/", "--clearenv"]
    for name, value in environment.items():
        command += ["--setenv", name, value]
    return [*command, "--"]


def find(sandbox: Sandbox) -> tuple[str | None, Layer]:
    """The bwrap to use, or None, and the layer's report with the reason."""
    if not sandbox.wants("bwrap"):
        return None, Layer("bwrap", False, "switched off")
    path = shutil.which("bwrap")
    if path is None:
        return None, Layer("bwrap", False, "no bwrap on PATH; the namespaces are made directly")
    why = _fault(path)
    return (None, Layer("bwrap", False, why)) if why else (path, Layer("bwrap", True))


@functools.cache
def _fault(path: str) -> str:
    """Why this bwrap can't start our interpreter here; "" when it can. Tried once in a process's life."""
    system = ["/usr", "/lib", "/lib64", "/etc/ld.so.cache", sys.base_prefix, sys.prefix]
    command = [*arguments(path, filter(os.path.exists, system), {}), sys.executable, "-I", "-S", "-c", ""]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=PROBE_S,
                              env={}, check=False)
    except (OSError, subprocess.TimeoutExpired) as err:
        return f"{path} can't be run: {type(err).__name__}"
    return "" if done.returncode == 0 else f"{path} fails: {done.stderr.decode(errors='replace').strip()[-200:]}"
