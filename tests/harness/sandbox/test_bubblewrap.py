"""bubblewrap around the zygote: how it is called, and what is said where it can't be used."""
import os
import shutil
import sys

import pytest

from harness.sandbox import Sandbox, bubblewrap
from harness.sandbox.layers import layers

PASSES = '#!/bin/sh\nwhile [ "$1" != "--" ]; do echo "$1" >> "$0.log"; shift; done; shift; exec "$@"\n'
FAILS = '#!/bin/sh\necho "bwrap: No permissions to create a new namespace" >&2; exit 1\n'


@pytest.fixture
def path_with(tmp_path, monkeypatch):
    """PATH begins with a folder that holds this program as `bwrap`."""
    def put(text):
        program = tmp_path / "bwrap"
        program.write_text(text)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        bubblewrap._fault.cache_clear()
        return program
    yield put
    bubblewrap._fault.cache_clear()


def test_it_is_given_nothing_but_the_folders_allowed(tmp_path):
    """Every namespace is new, the environment is emptied, folders come read-only at their own place and at that of a link to them."""
    link = tmp_path / "link"
    (tmp_path / "real").mkdir()
    link.symlink_to(tmp_path / "real")
    command = bubblewrap.arguments("/x/bwrap", ["/usr/lib", str(link), "/dev/null"], {"TZ": "UTC"})
    assert command[0] == "/x/bwrap" and command[-1] == "--"
    assert {"--unshare-all", "--die-with-parent", "--new-session", "--clearenv"} <= set(command) and "--share-net" not in command
    binds = [command[i + 1] for i, word in enumerate(command) if word.startswith("--ro-bind")]
    assert set(binds) == {os.path.realpath("/usr/lib"), "/usr/lib", str(link), str(tmp_path / "real")} and "--bind" not in command
    at = command.index("--setenv")
    assert command[at + 1:at + 3] == ["TZ", "UTC"] and command.index("--clearenv") < at


async def test_without_it_the_layer_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    program, layer = bubblewrap.find(Sandbox())
    assert program is None and not layer.active and "no bwrap on PATH" in layer.why


async def test_one_that_fails_is_reported_and_not_used(path_with):
    """A bwrap that may make no namespaces does not stop skills: the namespaces made directly hold them, and the reason is told."""
    path_with(FAILS)
    found = {layer.name: layer for layer in await layers()}
    assert not found["bwrap"].active and "No permissions" in found["bwrap"].why
    assert found["seccomp"].active and found["pidns"].active


async def test_one_that_works_stands_around_the_zygote(path_with):
    """The zygote starts below it, with its arguments, and locks its workers as ever."""
    program = path_with(PASSES)
    found = {layer.name: layer for layer in await layers()}
    assert found["bwrap"].active and found["seccomp"].active and found["landlock"].active
    log = program.with_name("bwrap.log").read_text()
    assert log.count("--unshare-all") == 2 and sys.base_prefix in log  # tried once, then used


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="no bubblewrap here")
async def test_the_real_one_holds_a_zygote():
    found = {layer.name: layer for layer in await layers()}
    assert found["seccomp"].active and (found["bwrap"].active or found["bwrap"].why)
