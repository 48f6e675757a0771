"""Skill processes: what a call gives, and that no skill can hold up, outlive or outreach its call."""
import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from harness.execute.registry import Registry
from harness.execute.runner import CALLS_LIMIT, SkillRunner
from harness.execute.testing import MemoryBus
from harness.host.errors import UnsafeNow
from harness.task import SkillCall
from venus_edge.clock import SystemClock
from venus_edge.errors import BusyError, ConfigError
from venus_edge.metrics import METRICS

pytestmark = pytest.mark.asyncio(loop_scope="module")
TEMPERATURE = "Vehicle.Cabin.HVAC.Station.Row1.Driver.Temperature"
TAILGATE = "Vehicle.Body.Trunk.Rear.IsOpen"


def call(skill, arguments=None, **fields):
    return SkillCall(**{"skill_id": f"test.{skill}", "arguments": arguments or {}, "task_id": "t1", "task_version": 1, "lang": "en",
                        "zone": "driver", "memory": {}, "timeout_s": 0.0, **fields})


def alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def gone(pids, within_s=2.0):
    """Waits for processes to end; True when they did."""
    until = time.monotonic() + within_s
    while any(alive(pid) for pid in pids) and time.monotonic() < until:
        await asyncio.sleep(0.01)
    return not any(alive(pid) for pid in pids)


def descendants():
    return {process.pid for process in psutil.Process().children(recursive=True)}


class Car:
    """The vehicle of the test that runs now."""

    bus = None


@pytest.fixture(autouse=True)
def bus():
    Car.bus = MemoryBus({"Vehicle.Speed": 50.0, TEMPERATURE: 20.0, TAILGATE: False, "Vehicle.CurrentLocation.Latitude": 43.7316,
                         "Vehicle.CurrentLocation.Longitude": 7.4163})
    return Car.bus


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool():
    """One runner for all tests here; at the end none of its processes may be left."""
    before = descendants()
    runner = SkillRunner(Registry.from_modules(["execute_skills"]), lambda call: Car.bus, SystemClock(), Path("/nonexistent"))
    await runner.start()
    yield runner
    started = descendants() - before
    await runner.close()
    assert len(started) >= 3 and await gone(started), "a skill process outlived its runner"


@pytest_asyncio.fixture(loop_scope="module")
async def runner(pool):
    """The runner at rest: nothing under way, the pool full."""
    while pool._active or (pool._pool._zygote and len(pool._pool._zygote.idle) < 2):
        await asyncio.sleep(0.01)
    return pool


async def test_a_call_carries_its_request_and_brings_back_its_answer(runner):
    """Arguments, language, zone, task and memory arrive unchanged; the memory comes back as the skill left it."""
    outcome = await runner.run(call("echo", {"value": [1, "ü", None]}, lang="zh", zone="rear_left", task_version=3, memory={"a": 1}))
    assert outcome.ok and outcome.started and outcome.text == "好了。"
    assert outcome.memory == {"a": 1, "last": [1, "ü", None]}
    value = outcome.result["value"]
    assert value | {"pid": 0} == {"value": [1, "ü", None], "lang": "zh", "zone": "rear_left", "task": ["t1", 3],
                                  "memory": {"a": 1, "last": [1, "ü", None]}, "pid": 0}
    assert value["pid"] != os.getpid()


async def test_every_call_has_a_process_of_its_own(runner):
    pids = [(await runner.run(call("echo"))).result["value"]["pid"] for _ in range(5)]
    assert len(set(pids)) == 5 and await gone(pids)


@pytest.mark.parametrize("skill", ["hang", "stubborn"])
async def test_a_hung_skill_is_ended_at_its_deadline_and_others_go_on(runner, skill):
    """An endless loop, or one that ignores every signal it can, is dead 150 ms after its deadline; a call beside it is served."""
    idle = {process.pid for process in runner._pool._zygote.idle}
    began = time.monotonic()
    hung = asyncio.ensure_future(runner.run(call(skill)))
    await asyncio.sleep(0.05)
    beside = await runner.run(call("echo", {"value": 7}))
    assert beside.result["value"]["value"] == 7 and not hung.done()
    outcome = await hung
    took = time.monotonic() - began
    assert (outcome.ok, outcome.code, outcome.started) == (False, "timeout", True) and 0.3 <= took < 1.5
    assert outcome.text == ("It took too long." if skill == "hang" else "I asked, but it hasn't happened yet.")
    taken = idle - {process.pid for process in runner._pool._zygote.idle}
    assert taken and await gone(taken, 0.5)


async def test_after_the_deadline_nothing_reaches_the_vehicle(runner, bus):
    """The skill is told to stop and may tidy up, but what it asks of the car then is not forwarded."""
    outcome = await runner.run(call("polite"))
    assert outcome.code == "timeout" and bus.actuated == []


async def test_a_shorter_deadline_of_the_call_counts_and_a_longer_one_does_not(runner):
    began = time.monotonic()
    assert (await runner.run(call("wait", {"seconds": 3}, timeout_s=0.2))).code == "timeout"
    assert (await runner.run(call("hang", timeout_s=60))).code == "timeout"
    assert time.monotonic() - began < 2.5


async def test_a_cancelled_call_is_dead_when_the_cancellation_returns_and_acts_no_more(runner, bus):
    """The caller's cancellation kills the process within a second, and an effect under way is not repeated or continued."""
    bus.travel_s[TEMPERATURE] = 0.5
    acks, idle = [], {process.pid for process in runner._pool._zygote.idle}
    running = asyncio.ensure_future(runner.run(call("warm", {"celsius": 25}), lambda outcome, text: acks.append(text)))
    while not bus.actuated:
        await asyncio.sleep(0.01)
    began = time.monotonic()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - began < 1.0 and acks == ["Warming to twenty-five."]
    taken = idle - {process.pid for process in runner._pool._zygote.idle}
    assert len(taken) == 1 and not any(map(alive, taken))
    await asyncio.sleep(0.6)
    assert bus.values[TEMPERATURE] == 20.0 and len(bus.actuated) == 1


@pytest.mark.parametrize("skill,said", [("bomb", True), ("crash", False), ("leave", False), ("fault", True)])
async def test_a_broken_skill_is_an_internal_fault_of_this_call_only(runner, skill, said, caplog):
    """Memory bomb, crash, silent exit and exception: one outcome, no words of the user in the log, and the next call works."""
    outcome = await runner.run(call(skill))
    assert (outcome.ok, outcome.code, outcome.text) == (False, "internal", "Sorry, something went wrong there.")
    assert "secret" not in caplog.text and "t1" in caplog.text
    assert ("MemoryError" if skill == "bomb" else "KeyError" if skill == "fault" else "process ended") in caplog.text
    assert (await runner.run(call("echo"))).ok


async def test_a_skills_own_refusal_has_its_words(runner):
    outcome = await runner.run(call("refuse"))
    assert (outcome.ok, outcome.code, outcome.text) == (False, "not_found", "There is no a unicorn.")


@pytest.mark.parametrize("what", ["actuate", "get", "position", "maps"])
async def test_what_the_manifest_does_not_declare_is_not_permitted(runner, bus, what):
    """Undeclared actuation, reading, position and provider are refused in the session worker, whatever the skill's code says."""
    outcome = await runner.run(call("undeclared", {"what": what}))
    assert outcome.code == "not_permitted" and bus.actuated == []
    assert (await runner.run(call("undeclared", {"what": "speed"}))).result["value"] == 50.0


async def test_effects_and_progress_go_through_and_errors_keep_their_data(runner, bus):
    said = []
    outcome = await runner.run(call("warm", {"celsius": 22}), lambda outcome, text: said.append((outcome, text)))
    assert outcome.result["value"] == [True, 22.0, 43.7316, 7.4163] and said == [("ack", "Warming to twenty-two.")]
    bus.refusals[TEMPERATURE] = UnsafeNow("not now", reason="moving", speed=49.6)
    outcome = await runner.run(call("warm", {"celsius": 23}))
    assert outcome.code == "unsafe_now" and outcome.text == "I can't do that while we're driving at fifty kilometres per hour."
    assert outcome.fields["reason"] == "moving"


async def test_signals_can_be_watched(runner, bus):
    running = asyncio.ensure_future(runner.run(call("watch")))
    for speed in (51.0, 52.0):
        await asyncio.sleep(0.15)
        bus.set("Vehicle.Speed", speed)
    assert (await running).result["value"] == [50.0, 51.0, 52.0]


@pytest.mark.parametrize("how", ["result", "progress", "odd"])
async def test_too_much_output_and_no_json_end_the_call(runner, how):
    outcome = await runner.run(call("flood", {"how": how}))
    assert outcome.code == "internal"
    assert (await runner.run(call("echo"))).ok


async def test_bad_arguments_need_no_process(runner):
    """Refused with the field and the range, at once."""
    for arguments, field in (({"number": 12}, "number"), ({"colour": 1}, "colour"), ({"value": "x" * 70_000}, None)):
        outcome = await runner.run(call("echo", arguments))
        assert outcome.code == "invalid_args" and not outcome.started and outcome.fields.get("field") == field
    assert (await runner.run(call("echo", {"number": 12}))).text == "I can only do that between zero and nine."
    assert (await runner.run(call("nothing"))).code == "not_found"


async def test_at_most_eight_calls_at_once(runner):
    """The ninth is refused as busy, not queued; afterwards there is room again."""
    running = [asyncio.ensure_future(runner.run(call("wait", {"seconds": 0.6}))) for _ in range(CALLS_LIMIT)]
    await asyncio.sleep(0.1)
    with pytest.raises(BusyError, match=str(CALLS_LIMIT)):
        await runner.run(call("echo"))
    assert [outcome.result["value"] for outcome in await asyncio.gather(*running)] == ["waited"] * CALLS_LIMIT
    while runner._active:
        await asyncio.sleep(0.01)
    assert (await runner.run(call("echo"))).ok


async def test_many_calls_leave_no_process_behind(runner):
    """Twenty calls of all sorts, six at a time: afterwards only the zygote and its idle pool are left, and no zombie."""
    kinds = ["echo", "hang", "crash", "leave", "fault", "refuse", "stubborn", "look", "polite", "echo"] * 2
    limit = asyncio.Semaphore(6)

    async def one(kind):
        async with limit:
            while True:
                try:
                    return await runner.run(call(kind))
                except BusyError:  # on a loaded machine the burial of the last ones still takes their places
                    await asyncio.sleep(0.02)

    outcomes = await asyncio.wait_for(asyncio.gather(*map(one, kinds)), 60)
    assert len(outcomes) == 20
    zygote = runner._pool._zygote
    until = time.monotonic() + 3
    while time.monotonic() < until:
        children = psutil.Process(zygote.popen.pid).children(recursive=True)
        if not runner._active and {c.pid for c in children} == {p.pid for p in zygote.idle} and len(zygote.idle) >= 2:
            break
        await asyncio.sleep(0.02)
    assert {c.pid for c in children} == {p.pid for p in zygote.idle} and 2 <= len(zygote.idle) <= 3
    assert METRICS.get("venus_harness_skill_undead_total") == 0


async def test_what_a_skill_leaves_running_is_ended_too(runner):
    """A process that a skill started and hid in a session of its own falls to the zygote, which ends it."""
    child = (await runner.run(call("spawn"))).result["value"]
    assert await gone([child])


async def test_a_skill_process_sees_nothing_of_ours(runner):
    """No secret in the environment, no inherited files, no core dumps, one thread, and what it prints goes nowhere."""
    seen = (await runner.run(call("look"))).result["value"]
    assert not [name for name in seen["env"] if name.startswith(("VENUS", "LIVEKIT"))] and len(seen["env"]) < 12
    assert seen["fds"] < 12 and seen["core"] == 0 and seen["files"] <= 64 and seen["threads"] == 1
    assert seen["parent"] == runner._pool._zygote.popen.pid
    assert seen["output"] == ["/dev/null"] * 3


async def test_a_lost_zygote_is_replaced(runner):
    """It takes its processes with it; calls of the moment fail, the next one is served by another."""
    zygote = runner._pool._zygote
    idle = [process.pid for process in zygote.idle]
    running = asyncio.ensure_future(runner.run(call("wait", {"seconds": 2})))
    await asyncio.sleep(0.1)
    zygote.popen.kill()
    assert (await running).code == "internal"
    assert await gone(idle)
    assert (await runner.run(call("echo"))).ok and runner._pool._zygote is not zygote


async def test_the_event_loop_is_never_blocked(runner):
    """While eight calls start, run, hang and die, this loop's own work per turn stays small (its CPU time, not the machine's load)."""
    worst, stop = 0.0, False

    async def watch():
        nonlocal worst
        while not stop:
            began = time.thread_time()
            await asyncio.sleep(0.002)
            worst = max(worst, time.thread_time() - began)

    watcher = asyncio.ensure_future(watch())
    await asyncio.gather(*(runner.run(call(kind)) for kind in ("echo", "hang", "look", "stubborn", "fault", "echo", "crash", "polite")))
    stop = True
    await watcher
    assert worst < 0.03


PARENT = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from harness.execute.registry import Registry
from harness.execute.runner import SkillRunner
from harness.execute.testing import MemoryBus
from test_execute_runner import call

async def main():
    runner = SkillRunner(Registry.from_modules(["execute_skills"]), lambda call: MemoryBus(), cache_dir=Path("/nonexistent"))
    await runner.start()
    asyncio.ensure_future(runner.run(call("wait", {{"seconds": 4}})))
    asyncio.ensure_future(runner.run(call("stubborn")))
    await asyncio.sleep(0.1)
    print("ready", flush=True)
    import time; time.sleep(60)

asyncio.run(main())
"""


async def test_skill_processes_die_with_the_session_worker():
    """Even killed without warning, and while a skill hangs, the session worker takes all of them with it."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT.format(tests=str(Path(__file__).parent))], stdout=subprocess.PIPE, text=True,
                              cwd=Path(__file__).parents[2])
    try:
        assert parent.stdout.readline().strip() == "ready"
        pids = [p.pid for p in psutil.Process(parent.pid).children(recursive=True)]
        assert len(pids) >= 3
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
    assert await gone(pids)


async def test_what_stops_the_start_is_told(tmp_path):
    """A missing map names its file; a module that isn't there names itself."""
    providers = {"maps": "skills_automotive.navigation.valhalla_maps:open_maps", "places": "skills_automotive.poi.places:open_places"}
    runner = SkillRunner(Registry.from_modules(["skills_automotive.poi"], providers), lambda call: MemoryBus(), cache_dir=tmp_path)
    with pytest.raises(ConfigError, match="valhalla.json is missing"):
        await runner.start()
    await runner.close()
    with pytest.raises(ConfigError, match="no_such_module"):
        Registry.from_modules(["no_such_module"])
