"""The benches run, count what they must count, and can fail. The bars themselves are the README's, for a quiet machine; here a
shared one must only stay within twice of them, and what doesn't depend on time must hold."""
import json
import subprocess
import sys

import pytest

from venus_edge.paths import root


def bench(*args, tmp_path, timeout=500):
    result = subprocess.run([sys.executable, "-m", "venus_edge.cli", "bench", *args, "--json", "--out", str(tmp_path)], cwd=root(),
                            capture_output=True, text=True, timeout=timeout)
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout.strip().splitlines()[-1])


@pytest.mark.slow
def test_bench_voice_answers_understands_and_cuts_nobody_off(tmp_path):
    line = bench("voice", "--turns", "20", tmp_path=tmp_path)
    assert line["turns"] == 20 and line["right"] >= 16 and line["cut_off"] <= 1 and line["kinds"] >= 10, line
    assert line["p50_s"] <= 1.3 and line["loop_block_max_ms"] < 500, line
    assert {"transport_up", "endpoint", "recognition", "policy", "synthesis", "transport_down", "playout_buffer"} <= set(line["parts_p50_s"])


@pytest.mark.slow
def test_bench_bargein_stops_for_people_goes_on_for_listeners_and_keeps_what_was_heard(tmp_path):
    line = bench("bargein", "--trials", "6", tmp_path=tmp_path)
    assert line["trials"] >= 5 and line["backchannels"] >= 2 and line["spans_checked"] > 50, line
    assert line["heard_text_errors"] == 0 and line["stop_p50_s"] <= 1.2 and line["duck_p95_s"] <= 0.4 and line["false_stops"] <= 1, line


@pytest.mark.slow
def test_bench_bargein_reports_a_context_that_claims_too_much(tmp_path):
    """A counter that can't fire proves nothing: with one span too many claimed per interruption it must."""
    assert bench("bargein", "--trials", "3", "--mutate", "heard", tmp_path=tmp_path)["heard_text_errors"] > 0
