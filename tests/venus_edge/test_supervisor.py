"""Processes start, tell when they serve, are restarted when they die, and none is left behind."""
import asyncio
import os
import signal
import sys
from pathlib import Path

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


def ended(pid):
    """Gone, or dead and not yet collected by whoever inherited it."""
    return gone(pid) or Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


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
    await until(lambda: ended(grandchild))


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


async def test_a_child_that_falls_silent_is_restarted_and_one_that_never_told_anything_is_left_alone(monkeypatch):
    """A hung process (stopped here) is noticed by its missing metrics; foreign programs tell none and are not judged by it."""
    monkeypatch.setattr("venus_edge.supervisor.HUNG_S", 0.3)
    monkeypatch.setattr("venus_edge.supervisor.HUNG_CHECK_S", 0.1)
    beating = "import time;print('READY {}',flush=True)\nwhile True: print('METRICS {}',flush=True);time.sleep(0.05)"
    seen = []
    async with Supervisor(on_event=lambda what, child: seen.append((what, child.name))) as sup:
        hung = await sup.start(spec(beating, name="hung", restart=True))
        foreign = await sup.start(spec("import time;print('READY {}',flush=True);time.sleep(60)", name="foreign", restart=True))
        await until(lambda: hung.told_at is not None)
        first = hung.proc.pid
        os.kill(first, signal.SIGSTOP)
        await until(lambda: hung.restarts == 1 and hung.state == "serving", 12)
        assert hung.proc.pid != first and gone(first) and foreign.restarts == 0
    assert ("hung", "hung") in seen and ("hung", "foreign") not in seen


async def test_what_a_dead_child_left_in_its_group_neither_holds_up_its_restart_nor_survives():
    """A grandchild that keeps the pipes open would keep the supervisor reading for ever."""
    code = ("import subprocess,sys,time;p=subprocess.Popen([sys.executable,'-c','import time;time.sleep(60)']);"
            "print('READY {\"pid\": %d}'%p.pid,flush=True);time.sleep(60)")
    async with Supervisor() as sup:
        child = await sup.start(spec(code, restart=True))
        left = child.info["pid"]
        os.kill(child.proc.pid, signal.SIGKILL)
        await until(lambda: child.restarts == 1 and child.state == "serving")
        await until(lambda: ended(left))


async def test_a_stop_in_the_middle_of_a_restart_leaves_no_process():
    started = []
    sup = Supervisor(on_event=lambda what, child: started.append(child.proc.pid))
    child = await sup.start(spec(SERVE, restart=True))
    os.kill(child.proc.pid, signal.SIGKILL)
    await until(lambda: len(started) == 2)  # it died; the next start is on its way
    await asyncio.sleep(0.11)
    await sup.stop()
    await asyncio.sleep(0.3)
    assert all(gone(pid) for pid in started) and gone(child.proc.pid) and child.exited.is_set()


async def test_secrets_of_the_supervisor_are_not_inherited_and_a_restart_asks_for_its_variables_again(monkeypatch):
    for name in ("VENUS_LIVEKIT_SECRET", "VENUS_BUS_TOKEN", "VENUS_ENGINE_TOKEN"):
        monkeypatch.setenv(name, "not-for-everybody")
    code = "import os,json,time;print('READY '+json.dumps({k:v for k,v in os.environ.items() if k.startswith('VENUS_')}),flush=True);time.sleep(60)"
    made = iter(["first", "second"])
    async with Supervisor() as sup:
        child = await sup.start(Spec("child", (sys.executable, "-c", code), lambda: {"VENUS_AGENT_TOKEN": next(made)}, restart=True))
        assert child.info["VENUS_AGENT_TOKEN"] == "first" and "not-for-everybody" not in child.info.values()
        os.kill(child.proc.pid, signal.SIGKILL)
        await until(lambda: child.restarts == 1 and child.state == "serving")
        assert child.info["VENUS_AGENT_TOKEN"] == "second"


async def test_a_program_that_is_not_there_is_one_clear_error():
    async with Supervisor() as sup:
        with pytest.raises(StartError, match="nowhere.*can't be started"):
            await sup.start(Spec("child", ("/nowhere/program",)))


async def test_a_line_beyond_the_limit_is_skipped_and_the_log_is_bounded(tmp_path, monkeypatch):
    """Neither may stop the reading: a child that can't write stands still."""
    monkeypatch.setattr("venus_edge.supervisor.LOG_MAX_BYTES", 10_000)
    code = ("import sys,time\nprint('x'*3_000_000,flush=True)\nsys.stderr.write('y'*3_000_000+'\\n')\n"
            "for k in range(1000): sys.stderr.write('line %d of the log\\n'%k)\nsys.stderr.flush();print('READY {}',flush=True);time.sleep(60)")
    log = tmp_path / "child.log"
    async with Supervisor() as sup:
        child = await sup.start(spec(code, log=str(log)))
        await until(lambda: child.tail and child.tail[-1] == "line 999 of the log")
    assert log.stat().st_size < 11_000 and (tmp_path / "child.log.1").stat().st_size < 11_000


async def test_a_foreign_program_dies_with_a_supervisor_that_is_killed():
    """SIGKILL leaves the supervisor no time to stop anything: the kernel does it."""
    middle = ("import asyncio,sys,time\nfrom venus_edge.supervisor import Spec,Supervisor\n"
              "async def main():\n"
              "    async def probe(): return True\n"
              "    child=await Supervisor().start(Spec('f',(sys.executable,'-m','venus_edge.launch','sleep','60'),probe=probe))\n"
              "    await asyncio.sleep(1);print('PID',child.proc.pid,flush=True);await asyncio.sleep(60)\n"
              "asyncio.run(main())")
    proc = await asyncio.create_subprocess_exec(sys.executable, "-c", middle, stdout=asyncio.subprocess.PIPE)
    pid = int((await asyncio.wait_for(proc.stdout.readline(), 15)).split()[1])
    assert "sleep" in Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0]
    proc.kill()
    await proc.wait()
    await until(lambda: ended(pid))
