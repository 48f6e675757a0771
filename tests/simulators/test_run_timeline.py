"""The timeline has every event of every trace once, in order of position; what is half written stays out until it is whole."""
import asyncio
import json

import pytest
from judged_run import drive

from simulators.timeline import MIC_RATE, Follow, load, merge
from venus_edge.testing import VirtualClock
from venus_edge.trace import Trace


def write(directory, src, *rows):
    with open(directory / f"{src}.trace.jsonl", "a") as out:
        for row in rows:
            out.write(row if isinstance(row, str) else json.dumps({"src": src} | row) + "\n")


def test_events_are_merged_by_position(tmp_path):
    """An event without a position gets the device's position at its time; the order is by position."""
    write(tmp_path, "device", {"t": 10.0, "pos": 0, "ev": "a"}, {"t": 12.0, "pos": 32000, "ev": "c"})
    write(tmp_path, "worker", {"t": 11.0, "pos": None, "ev": "b"}, {"t": 14.0, "pos": None, "ev": "d"})
    events = merge(tmp_path)
    assert [(e.ev, e.pos) for e in events] == [("a", 0), ("b", 16000), ("c", 32000), ("d", 64000)]
    assert [e.estimated for e in events] == [False, True, False, True]
    assert load(tmp_path) == events


def test_a_position_that_was_recorded_late_does_not_move_the_clock(tmp_path):
    """An onset is known only after it was judged: the device's other events keep the mapping right."""
    write(tmp_path, "device", {"t": 10.0, "pos": 0, "ev": "gate.open"}, {"t": 11.1, "pos": 16000, "ev": "vad.on"},
          {"t": 12.0, "pos": 32000, "ev": "seg.first"})
    write(tmp_path, "carhost", {"t": 11.1, "pos": None, "ev": "effect"})
    assert next(e.pos for e in merge(tmp_path) if e.ev == "effect") == pytest.approx(17600, abs=2)


def test_a_device_clock_that_drifts_is_followed(tmp_path):
    """Device samples are not exactly 16 000 in a monotonic second; the mapping follows the pairs along the run."""
    real = MIC_RATE * 1.0002
    write(tmp_path, "device", *({"t": float(t), "pos": round(t * real), "ev": "seg.first"} for t in range(0, 600, 5)))
    write(tmp_path, "worker", {"t": 502.5, "pos": None, "ev": "x"})
    found = next(e.pos for e in merge(tmp_path) if e.ev == "x")
    assert found == pytest.approx(502.5 * real, abs=MIC_RATE * 0.005)


def test_half_written_and_broken_lines_are_left_out(tmp_path):
    write(tmp_path, "device", {"t": 1.0, "pos": 5, "ev": "a"}, "not json\n", "[1]\n", '{"src":"device","t":2.0,"pos":9,"ev":"b')
    assert [e.ev for e in merge(tmp_path)] == ["a"]


def test_a_merged_timeline_has_all_events_of_a_drive(tmp_path):
    run = drive()
    run.write(tmp_path)
    events = merge(tmp_path)
    assert len(events) == len(run.events)
    assert [e.pos for e in events] == sorted(e.pos for e in events)
    assert load(tmp_path) == events


def test_a_run_without_traces_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="trace.jsonl"):
        load(tmp_path)


async def test_the_follower_sees_what_is_appended(tmp_path):
    """Events come once, as soon as their line is whole, also from traces that appear later; stop() ends after the last."""
    clock, seen = VirtualClock(), []
    follow = Follow(tmp_path, clock)

    async def read():
        async for event in follow:
            seen.append(event.ev)

    reader = asyncio.create_task(read())
    write(tmp_path, "device", {"t": 1.0, "pos": 1, "ev": "a"})
    await clock.advance(0.1)
    assert seen == ["a"]
    write(tmp_path, "device", '{"src":"device","t":2.0,"pos":2,')
    await clock.advance(0.1)
    assert seen == ["a"]
    write(tmp_path, "device", '"ev":"b"}\n')
    trace = Trace("worker", str(tmp_path), clock)
    trace.event("c", pos=3)
    await clock.advance(0.1)
    assert seen[0] == "a" and sorted(seen[1:]) == ["b", "c"]
    trace.event("d")
    follow.stop()
    await clock.advance(0.2)
    await asyncio.wait_for(reader, 1)
    trace.close()
    assert seen[-1] == "d" and len(seen) == 4


async def test_a_burst_is_spread_over_polls(tmp_path, monkeypatch):
    """One poll reads a bounded piece of a trace; nothing of the rest is lost."""
    monkeypatch.setattr("simulators.timeline.READ_MAX", 256)
    write(tmp_path, "device", *({"t": float(n), "pos": n, "ev": f"e{n}"} for n in range(50)))
    follow = Follow(tmp_path, VirtualClock())
    first = follow.poll()
    assert 0 < len(first) < 10
    follow.stop()
    rest = [e.ev async for e in follow]
    assert [e.ev for e in first] + rest == [f"e{n}" for n in range(50)]
