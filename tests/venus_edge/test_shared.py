"""The small things that every folder shares: ids, wording, the virtual clock, traces, metrics."""
import asyncio
import json

import pytest

from venus_edge.errors import ConfigError
from venus_edge.ids import new_id
from venus_edge.metrics import Metrics
from venus_edge.testing import VirtualClock
from venus_edge.trace import Trace
from venus_edge.wording import Wording


def test_ids_are_unique_ordered_and_26_characters():
    ids = [new_id() for _ in range(2000)]
    assert ids == sorted(ids) and len(set(ids)) == 2000 and all(len(i) == 26 for i in ids)


def test_wording_uses_variants_in_turn_and_fills_fields(tmp_path):
    (tmp_path / "w.toml").write_text('[a.done]\nen = ["one {x}", "two {x}"]\nzh = "好"\n')
    wording = Wording(tmp_path / "w.toml")
    assert [wording.say("a.done", x=5) for _ in range(3)] == ["one 5", "two 5", "one 5"]
    assert wording.say("a.done", "zh") == "好"


def test_wording_without_a_language_is_refused_by_name(tmp_path):
    (tmp_path / "w.toml").write_text('[a.done]\nen = "x"\n')
    with pytest.raises(ConfigError, match="'a.done' lacks the language.*zh"):
        Wording(tmp_path / "w.toml")


def test_virtual_time_wakes_sleepers_in_order_and_only_when_due():
    async def run():
        clock, woke = VirtualClock(), []

        async def sleeper(name, seconds):
            await clock.sleep(seconds)
            woke.append((name, clock.now()))
            if name == "b":
                await clock.sleep(1)
                woke.append(("b2", clock.now()))

        tasks = [asyncio.create_task(sleeper(n, s)) for n, s in (("c", 3), ("a", 1), ("b", 2))]
        await clock.advance(2.5)
        assert woke == [("a", 1), ("b", 2)]
        await clock.advance(2.5)
        assert woke == [("a", 1), ("b", 2), ("c", 3), ("b2", 3)] or woke == [("a", 1), ("b", 2), ("b2", 3), ("c", 3)]
        await asyncio.gather(*tasks)

    asyncio.run(run())


def test_a_trace_writes_whole_lines_and_nothing_without_a_directory(tmp_path):
    trace = Trace("x", str(tmp_path))
    trace.event("vad.on", pos=12, level=0.5)
    trace.close()
    row = json.loads((tmp_path / "x.trace.jsonl").read_text())
    assert row["src"] == "x" and row["pos"] == 12 and row["ev"] == "vad.on" and row["level"] == 0.5
    Trace("y", "").event("vad.on")
    assert [p.name for p in tmp_path.iterdir()] == ["x.trace.jsonl"]


def test_metrics_count_and_keep_peaks():
    m = Metrics()
    m.add("a"), m.add("a", 2), m.peak("b", 3), m.peak("b", 1)
    assert m.snapshot() == {"a": 3, "b": 3} and m.text() == "a 3\nb 3\n"


def test_a_trace_is_for_its_owner_alone_and_a_full_disk_ends_no_conversation(tmp_path):
    """It holds words."""
    from venus_edge.metrics import METRICS

    trace = Trace("x", str(tmp_path))
    assert (tmp_path / "x.trace.jsonl").stat().st_mode & 0o077 == 0
    trace.close()
    full, before = Trace("x", str(tmp_path)), METRICS.get("venus_trace_events_lost")
    full._file.close()
    full._file = open("/dev/full", "a", buffering=1)
    full.event("vad.on", pos=1)
    full.close()
    assert METRICS.get("venus_trace_events_lost") > before
