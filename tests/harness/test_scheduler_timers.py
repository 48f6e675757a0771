"""Timers on the injected clock: one asyncio task for all, none while nothing is due."""
import asyncio

from harness.schedule.timers import COMPACT_ABOVE, Timers
from venus_edge.testing import VirtualClock


def tasks():
    return len(asyncio.all_tasks()) - 1


async def test_calls_come_in_their_order_at_their_time_and_may_set_and_cancel_others():
    """Also one that is set for earlier while the others sleep, and one set in the past; a cancelled one never comes."""
    clock = VirtualClock()
    timers, seen = Timers(clock), []

    def note(name):
        seen.append((clock.now(), name))
        if name == "a":
            timers.at(1.5, note, "from a")
            timers.at(0.0, note, "past")
            never.cancel()

    timers.at(3.0, note, "b")
    timers.at(1.0, note, "a")
    never = timers.at(2.0, note, "never")
    assert len(timers) == 3
    await clock.advance(5)
    assert seen == [(1.0, "a"), (1.0, "past"), (1.5, "from a"), (3.0, "b")] and len(timers) == 0 and tasks() == 0


async def test_there_is_one_task_for_all_and_none_for_none():
    """Cancelled entries don't pile up either."""
    clock = VirtualClock()
    timers = Timers(clock)
    made = [timers.at(1.0 + n, print) for n in range(1000)]
    await clock.advance(0)
    assert tasks() == 1
    for timer in made[1:]:
        timer.cancel()
        timer.cancel()
    assert len(timers) == 1 and len(timers._heap) <= COMPACT_ABOVE + 1 and tasks() == 1
    made[0].cancel()
    await clock.advance(0)
    assert tasks() == 0 and not timers._heap


async def test_a_call_that_raises_is_reported_and_stops_no_other():
    clock = VirtualClock()
    timers, seen, reported = Timers(clock), [], []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(type(context["exception"])))
    timers.at(1.0, lambda: 1 / 0)
    timers.at(1.0, seen.append, "same time")
    timers.at(2.0, seen.append, "later")
    await clock.advance(3)
    asyncio.get_running_loop().set_exception_handler(None)
    assert seen == ["same time", "later"] and reported == [ZeroDivisionError]
