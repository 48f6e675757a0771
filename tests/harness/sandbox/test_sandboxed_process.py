"""A whole program in the sandbox: talked to over its pipes, locked, and gone with all that it started."""
import asyncio
import json
import sys
import time

import psutil
import pytest

from harness.sandbox import Sandbox, SandboxMissing
from harness.sandbox.process import SandboxedProcess
from venus_edge.errors import ConfigError

ECHO = """
import json, os, socket, subprocess, sys
for line in sys.stdin:
    tried = {"said": line.strip()}
    for name, what in (("socket", socket.socket), ("passwd", lambda: open("/etc/passwd")), ("environment", lambda: sorted(os.environ)),
                       ("child", lambda: subprocess.run([sys.executable, "-c", "print(5)"], capture_output=True, text=True).stdout)):
        try:
            tried[name] = str(what())
        except OSError as err:
            tried[name] = type(err).__name__
    print(json.dumps(tried), flush=True)
"""
STAYS = """
import subprocess, sys
for _ in range(3):
    subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)
print("up", flush=True)
sys.stdin.read()
"""
BOX = Sandbox(memory_mb=1024)


async def test_it_answers_over_its_pipes_and_reaches_nothing_else():
    process = await SandboxedProcess.start([sys.executable, "-c", ECHO], BOX, environment={"GREETING": "yes"})
    try:
        process.stdin.write(b"hello\n")
        line = await asyncio.wait_for(process.stdout.readline(), 10)
        tried = json.loads(line)
        assert tried["said"] == "hello" and tried["child"].strip() == "5" and "GREETING" in tried["environment"]
        assert tried["socket"] == "PermissionError" and tried["passwd"] in ("PermissionError", "FileNotFoundError")
        assert "VENUS" not in tried["environment"] and "HOME" not in tried["environment"]
        assert {"pidns", "landlock", "seccomp"} <= {layer.name for layer in process.layers if layer.active}
    finally:
        await process.kill()


async def test_what_it_started_ends_with_it():
    """Children in sessions of their own too."""
    before = {p.pid for p in psutil.Process().children(recursive=True)}
    process = await SandboxedProcess.start([sys.executable, "-c", STAYS], BOX)
    assert await asyncio.wait_for(process.stdout.readline(), 10) == b"up\n"
    started = [p for p in psutil.Process().children(recursive=True) if p.pid not in before]
    assert len(started) >= 5
    await process.kill()
    until = time.monotonic() + 2
    while any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in started) and time.monotonic() < until:
        await asyncio.sleep(0.02)
    assert not [p for p in started if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


async def test_its_end_is_seen():
    process = await SandboxedProcess.start([sys.executable, "-c", "raise SystemExit(7)"], BOX)
    assert await asyncio.wait_for(process.wait(), 10) == 7
    await process.kill()


@pytest.mark.parametrize("command", [[], ["python"], ["/nowhere/program"]])
async def test_a_wrong_command_is_named(command):
    with pytest.raises(ConfigError, match="absolute path of a program"):
        await SandboxedProcess.start(command, BOX)


async def test_it_is_refused_without_a_required_layer():
    before = {p.pid for p in psutil.Process().children(recursive=True)}
    with pytest.raises(SandboxMissing, match="landlock"):
        await SandboxedProcess.start([sys.executable, "-c", ""], Sandbox(off={"landlock"}))
    assert {p.pid for p in psutil.Process().children(recursive=True) if p.status() != psutil.STATUS_ZOMBIE} <= before
