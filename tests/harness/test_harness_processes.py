"""The harness over real skill processes: from a request to the words, a correction and a cancellation, in real time."""
import asyncio
import time
from pathlib import Path

from harness import DelegateRequest, Evidence, Harness, Moment, SkillBackend
from harness.catalog import RegistryCatalog
from harness.execute.registry import Registry
from harness.execute.runner import SkillRunner
from harness.execute.testing import MemoryBus
from venus_edge.clock import SystemClock


async def until_reply(harness, pos, within_s=8.0):
    """The next reply, asked for every 20 ms."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        pos[0] += 320
        reply = harness.next_reply(Moment(pos[0], False, False, False, 0))
        if reply is not None:
            harness.reply_started(reply.id, "seg")
            harness.reply_finished(reply.id, heard=reply.text, unheard="", completed=True, confirmed=True)
            return reply
        await asyncio.sleep(0.02)
    raise AssertionError("no reply")


async def test_requests_corrections_and_cancellations_reach_real_skill_processes():
    """A result with the skill's wording, a range explained, a running skill cancelled dead, and nothing left at the end."""
    registry = Registry.from_modules(["execute_skills"])
    bus = MemoryBus({"Vehicle.Speed": 50.0})
    runner = SkillRunner(registry, lambda call: bus, SystemClock(), Path("/nonexistent"))
    await runner.start()
    catalog, pos = RegistryCatalog(registry), [0]
    whole = Harness(SkillBackend(catalog, runner, owns_runner=True), catalog, SystemClock())
    harness = whole.open_session("car")
    try:
        def ask(turn, capability, arguments, prose="please", repair="new"):
            return harness.accept(DelegateRequest("", turn, pos[0], turn, prose, capability, arguments, repair),
                                  Evidence.freeze(pos[0], turn))

        first = ask(1, "test.echo", {"value": "a"})
        assert (await until_reply(harness, pos)).text == "Done." and harness.memory == {"last": "a"}
        ask(2, "test.echo", {"number": 12}, "twelve")
        refused = await until_reply(harness, pos)
        assert refused.kind == "question" and "between" in refused.text and harness.memory == {"last": "a"}
        waiting = ask(3, "test.wait", {"seconds": 4}, "four seconds")
        await asyncio.sleep(0.3)
        assert harness.ledger.get(waiting).execution == "running"
        began = time.monotonic()
        ask(4, None, {}, "never mind", "cancel")
        assert "stopped" in (await until_reply(harness, pos)).text
        while harness.ledger.get(waiting).live:
            await asyncio.sleep(0.005)
        assert time.monotonic() - began < 1.0 and harness.ledger.get(waiting).execution == "cancelled"
        assert harness.ledger.get(first).delivery == "delivered" and harness.ledger.open() == []
    finally:
        await whole.close()
