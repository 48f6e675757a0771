"""Several runs are summed without hiding one that failed."""
import pytest

from simulators.eval_drive import run, total
from venus_edge.errors import ConfigError


def summary(passed=True, **more):
    return {"passed": passed, "expectations": 10, "failed": 0 if passed else 2, "stale": 0, "repeated": 0, "heard_text_errors": 0,
            "loop_block_max_ms": 20.0, "latency": {"p50_s": 0.5, "p95_s": 0.8}, "events": {"vad.on": 3}} | more


def test_failures_violations_and_events_add_up_and_the_worst_block_is_kept():
    got = total([summary(), summary(False, stale=1, loop_block_max_ms=70.0), {"passed": False, "broke_off": "worker ended"}])
    assert (got["runs"], got["passed"], got["broke_off"], got["expectations"], got["failed"], got["stale"]) == (3, 1, 1, 20, 2, 1)
    assert got["loop_block_max_ms"] == 70.0 and got["events"] == {"vad.on": 6} and got["p50_s"] == 0.5


def test_bad_arguments_are_named():
    with pytest.raises(ConfigError, match="--runs: 0 is not 1 to 50"):
        run("simulators/scenarios/first_drive.yaml", 0, True, None, None)
    with pytest.raises(ConfigError, match="--mutate: 'x' is not one of"):
        run("simulators/scenarios/first_drive.yaml", 1, True, None, "x")
