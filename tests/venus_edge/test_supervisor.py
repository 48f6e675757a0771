"""Processes start, tell when they serve, are restarted when they die, and none is left behind."""
import asyncio
import os
import signal
import sys

import pytest

from venus_edge.supervisor import Spec, StartError, Supervisor

SERVE = "import json,time;print('READY {\"n\": 1}',flush=True);print('METRICS {\"venus_x\": 2}',flush=True);time.sleep(60)"


def spec(code, name="child", **kw):
    return Spec(name, (sys.executable, "-c", code), **kw)


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def until(condition, seconds=8.0):
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("condition not reached")


async def test_ready_and_metrics_are_read_and_stop_leaves_nothing():
    async with Supervisor() as sup:
        child = await sup.start(spec(SERVE))
        assert child.info == {"n": 1}
        await until(lambda: child.metrics == {"venus_x": 2})
        pid = child.proc.pid
    assert gone(pid)


async def test_a_child_that_ignores_sigterm_is_killed_with_its_own_children():
    code = ("import signal,subprocess,sys,time;signal.signal(signal.SIGTERM,signal.SIG_IGN);"
            "p=subprocess.Popen([sys.executable,'-c','import time;time.sleep(60)']);print('READY {\"pid\": %d}'%p.pid,flush=True);time.sleep(60)")
    async with Supervisor() as sup:
        child = await sup.start(spec(code))
        grandchild = child.info["pid"]
    await until(lambda: gone(grandchild) or open(f"/proc/{grandchild}/stat").read().split()[2] == "Z")


async def test_a_start_that_fails_says_the_last_words():
    async with Supervisor() as sup:
        with pytest.raises(StartError, match="port 7 is busy"):
            await sup.start(spec("import sys;sys.exit('config: port 7 is busy')"))


async def test_a_start_that_hangs_is_ended():
    async with Supervisor() as sup:
        with pytest.raises(StartError, match="not ready after"):
            await sup.start(spec("import time;time.sleep(60)", ready_s=0.3))
        assert gone(sup.children["child"].proc.pid)


async def test_a_dead_child_is_restarted_and_a_hopeless_one_given_up():
    seen = []
    async with Supervisor(on_event=lambda what, child: seen.append(what)) as sup:
        child = await sup.start(spec(SERVE, restart=True))
        first = child.proc.pid
        os.kill(first, signal.SIGKILL)
        await until(lambda: child.restarts == 1 and child.state == "serving" and child.proc.pid != first)
    assert seen[:3] == ["serving", "died", "serving"]
