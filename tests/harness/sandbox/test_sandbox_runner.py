"""Skills in the sandbox, in real locked processes: what they reach, how they end, and when they don't run at all."""
import asyncio
import logging
import os
import sys
import time
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from harness.execute.registry import Registry, RegistrySpec
from harness.execute.runner import SkillRunner
from harness.execute.testing import MemoryBus
from harness.sandbox import Sandbox, SandboxMissing, Trust
from harness.sandbox.layers import layers
from harness.task import SkillCall
from venus_edge.errors import ConfigError

pytestmark = pytest.mark.asyncio(loop_scope="module")
HERE = Path(__file__).parent


def box(trust=Trust.UNTRUSTED, **fields):
    return Sandbox(trust, data=(str(HERE),), **fields)


def start(sandbox, module="sandbox_skills"):
    return SkillRunner(Registry.from_modules([module]), lambda call: MemoryBus(), sandbox=sandbox)


async def ask(runner, skill, **arguments):
    return await runner.run(SkillCall(f"box.{skill}", arguments, "t1", 1, "en", "driver", {}, 0.0))


def descendants():
    return {process.pid for process in psutil.Process().children(recursive=True)}


async def gone(pids):
    until = time.monotonic() + 3
    while (left := {pid for pid in pids if psutil.pid_exists(pid)}) and time.monotonic() < until:
        await asyncio.sleep(0.02)
    return not left


async def none_left(word):
    """Whether all processes that were started with this word in their command line end soon."""
    def left():
        return [p for p in psutil.Process().children(recursive=True) if p.status() != psutil.STATUS_ZOMBIE and word in " ".join(p.cmdline())]

    until = time.monotonic() + 3
    while True:
        try:
            if not left() or time.monotonic() > until:
                return not left()
        except psutil.NoSuchProcess:
            pass
        await asyncio.sleep(0.02)


async def at_rest(runner):
    while runner._active or runner._pool._zygote is None or len(runner._pool._zygote.idle) < 2:
        await asyncio.sleep(0.02)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=[Trust.BUILTIN, Trust.UNTRUSTED])
async def runner(request):
    """One runner for each trust level; at the end none of its processes is left."""
    before = descendants()
    made = start(box(request.param))
    await made.start()
    yield made
    started = descendants() - before
    await made.close()
    assert len(started) >= 3 and await gone(started)


@pytest.fixture(scope="module")
def untrusted_only(runner):
    if runner._pool._sandbox.trust is not Trust.UNTRUSTED:
        pytest.skip("about untrusted skills")


async def test_a_locked_skill_reaches_its_data_and_nothing_else(runner):
    """It reads the library and its data; files, writing, sockets, children, modes and the host's environment are refused."""
    file = HERE / "sandbox_wording.toml"
    outcome = await ask(runner, "look", data=str(file))
    seen = outcome.result["value"]
    assert seen["data"] == file.read_text() and seen["library"] == "colorsys"
    assert seen["environment"] == [] or set(seen["environment"]) <= {"LANG", "LC_ALL", "TZ"}
    assert seen["passwd"] in ("PermissionError", "FileNotFoundError") and seen["root"] == "PermissionError"
    assert {seen[key] for key in ("socket", "fork", "chmod")} == {"PermissionError"} and seen["write"] in ("PermissionError", "OSError")
    assert seen["parent"] in (0, 1) and len(seen["descriptors"]) == 4  # the socket, and what its event loop needs


async def test_every_layer_that_this_machine_has_is_reported_active(runner):
    """As the tests' machine has all but bubblewrap, a layer that silently stops working is noticed."""
    found = {layer.name: layer for layer in runner.layers}
    assert {"pidns", "env", "fds", "rlimits", "caps", "no_new_privs", "landlock", "seccomp"} <= {n for n, la in found.items() if la.active}
    assert all(layer.active or layer.why for layer in runner.layers)


async def test_a_skill_can_not_end_the_processes_of_other_calls(runner):
    """It signals every number: its siblings and what started it go on, and so does a call that runs meanwhile."""
    running = asyncio.ensure_future(ask(runner, "wait", seconds=0.5))
    await asyncio.sleep(0.1)
    outcome = await ask(runner, "siblings")
    assert set(outcome.result["value"] or []) <= {-1} or not outcome.ok  # -1 counts as sent where it reached nobody
    assert (await running).ok


async def test_a_hung_skill_is_dead_at_its_deadline(runner):
    await at_rest(runner)
    idle = {process.pid for process in runner._pool._zygote.idle}
    began = time.monotonic()
    outcome = await ask(runner, "loop")
    assert outcome.code == "timeout" and 0.3 <= time.monotonic() - began < 1.5
    taken = idle - {process.pid for process in runner._pool._zygote.idle}
    assert len(taken) == 1 and await gone(taken)
    assert (await ask(runner, "count")).ok


async def test_only_builtin_skills_share_a_process(runner):
    """Foreign skills never find what an earlier call left; a built-in one may."""
    counts = [(await ask(runner, "count")).result["value"] for _ in range(6)]
    if runner._pool._sandbox.reuses:
        assert max(counts) > 1
    else:
        assert counts == [1] * 6


@pytest.mark.parametrize("leave", ["thread", "task", "error"])
async def test_a_process_in_which_a_call_left_something_is_not_used_again(runner, leave):
    await at_rest(runner)
    idle = {process.pid for process in runner._pool._zygote.idle}
    outcome = await ask(runner, "count", leave=leave)
    assert outcome.ok == (leave != "error")
    await at_rest(runner)
    taken = idle - {process.pid for process in runner._pool._zygote.idle}
    assert len(taken) == 1 and await gone(taken)


async def test_a_lost_template_is_replaced(runner, untrusted_only):
    """Killed from outside, it takes its copies with it; the next call is served by another one."""
    await at_rest(runner)
    idle = [psutil.Process(process.pid) for process in runner._pool._zygote.idle]
    idle[0].parent().kill()
    assert await gone([process.pid for process in idle])
    for _ in range(4):  # the idle ones of before are dead, and are found so one by one
        outcome = await ask(runner, "count")
    assert outcome.ok


@pytest.mark.parametrize("layer", ["pidns", "landlock"])
async def test_untrusted_skills_are_refused_without_a_layer(layer, caplog):
    """Fail closed: the start names the layer; the development override starts, and says so in the log."""
    refused = start(box(off={layer}))
    with pytest.raises(SandboxMissing, match=layer):
        await refused.start()
    await refused.close()
    assert await none_left(f'"off": ["{layer}"]')
    allowed = start(box(off={layer}, allow_missing=True))
    with caplog.at_level(logging.INFO):
        await allowed.start()
    try:
        assert f"{layer} (switched off)" in caplog.text and any(r.levelno == logging.WARNING for r in caplog.records)
        assert (await ask(allowed, "count")).ok
    finally:
        await allowed.close()


async def test_a_bundle_that_does_not_load_is_refused_without_its_words(monkeypatch):
    """What foreign code raises while it is loaded, even the order to exit, is one clear error; nothing of it is left running."""
    monkeypatch.setenv("SANDBOX_TEST_HOST", "1")
    sys.path.insert(0, str(HERE))
    runner = start(box(), "sandbox_unloadable")
    with pytest.raises(ConfigError, match="SystemExit") as caught:
        await runner.start()
    assert "word" not in str(caught.value)
    await runner.close()
    assert await none_left("sandbox_unloadable")


async def test_the_layers_can_be_asked_for():
    """Also where one is missing: then with the reason, not with an error."""
    found = {layer.name: layer for layer in await layers(Sandbox(off={"seccomp"}))}
    assert not found["seccomp"].active and found["seccomp"].why == "switched off" and found["landlock"].active


async def test_data_may_lie_anywhere(tmp_path):
    """Also below the folder over which the tree is made; and what lies beside it is not there."""
    for name in ("given", "beside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    runner = start(Sandbox(data=(str(HERE), str(tmp_path / "given"))))
    await runner.start()
    try:
        assert (await ask(runner, "look", data=str(tmp_path / "given" / "file"))).result["value"]["data"] == "given"
        assert (await ask(runner, "look", data=str(tmp_path / "beside" / "file"))).code == "internal"
    finally:
        await runner.close()


async def test_a_provider_of_untrusted_skills_is_opened_outside_and_keeps_its_files(tmp_path):
    """Providers are our own code: opened before the lock, with descriptors that stay open in the copies."""
    (tmp_path / "places").write_text("kept open")
    spec = RegistrySpec(("sandbox_provided:SKILLS",), {"places": "sandbox_provided:open_places"})
    runner = SkillRunner(spec, lambda call: MemoryBus(), cache_dir=tmp_path, sandbox=box())
    await runner.start()
    try:
        assert (await ask(runner, "provided")).result["value"] == "kept open"
    finally:
        await runner.close()


async def test_foreign_skills_are_described_without_being_imported_here():
    """The registry of a described bundle has the manifest, checks arguments, and runs the skill in its locked process."""
    code = ("import asyncio, sys\nfrom harness.execute.describe import described\nfrom harness.execute.registry import RegistrySpec\n"
            "from harness.execute.runner import SkillRunner\nfrom harness.execute.testing import MemoryBus\nfrom harness.sandbox import Sandbox\n"
            "from harness.task import SkillCall\n"
            f"box = Sandbox(data=({str(HERE)!r},))\n"
            "async def main():\n"
            "    registry = await described(RegistrySpec(('sandbox_foreign:SKILLS',)), box)\n"
            "    runner = SkillRunner(registry, lambda call: MemoryBus(), sandbox=box)\n    await runner.start()\n"
            "    for arguments in ({'celsius': 21.5}, {'celsius': 50}, {'celsius': 20, 'row': 'roof'}, {'celsius': 20.1}):\n"
            "        o = await runner.run(SkillCall('foreign.warm', arguments, 't', 1, 'en', 'driver', {}, 0.0))\n"
            "        print(o.ok, o.code or o.text, o.fields.get('field', ''), sep='|')\n"
            "    await runner.close()\n"
            "    print('sandbox_foreign' in sys.modules, registry.get('foreign.warm').effects.actuates, registry.get('foreign.warm').retries)\n"
            "asyncio.run(main())")
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3],
                                                 env=os.environ | {"PYTHONPATH": str(HERE)})
    out, _ = await asyncio.wait_for(child.communicate(), 30)
    assert out.decode().splitlines() == ["True|It's set to twenty-one point five.|", "False|invalid_args|celsius", "False|invalid_args|row",
                                         "False|invalid_args|celsius", "False ('Vehicle.Cabin.HVAC.**',) 0"]


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
async def test_it_holds_as_an_ordinary_user_too():
    """The same locked call by uid 65534, with every layer that root has, and a user namespace beside."""
    code = (f"import sys, asyncio; sys.path.insert(0, {str(HERE)!r})\nimport test_sandbox_runner as t\n"
            "async def main():\n    r = t.start(t.box())\n    await r.start()\n"
            f"    o = await t.ask(r, 'look', data={str(HERE / 'sandbox_wording.toml')!r})\n"
            "    import os\n    print(os.getuid(), o.ok, o.result['value']['socket'], o.result['value']['root'],"
            " ' '.join(l.name for l in r.layers if l.active))\n    await r.close()\nasyncio.run(main())")
    child = await asyncio.create_subprocess_exec(sys.executable, "-m", "simulators.sandbox_users", "65534", "-c", code,
                                                 stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3])
    out, _ = await asyncio.wait_for(child.communicate(), 30)
    words = out.decode().split()
    assert words[:4] == ["65534", "True", "PermissionError", "PermissionError"]
    assert {"userns", "pidns", "rlimits", "caps", "no_new_privs", "landlock", "seccomp"} <= set(words[4:])
