"""The navigation bench: real skill processes on the shipped map, and what it refuses."""
import pytest

from simulators import bench_nav
from skills_automotive.testing import build_map
from venus_edge.errors import ConfigError


def test_a_number_of_calls_out_of_range_is_refused_by_name():
    with pytest.raises(ConfigError, match="--calls: 20 is not 200 to 5000"):
        bench_nav.run(["--calls", "20", "--json"])


async def test_every_kind_of_call_is_made_and_counted(tmp_path):
    """A small run: all routes succeed through the worker, every figure is a time, and a failure would be counted."""
    figures = await bench_nav._measure(build_map(tmp_path), 6, 7, others_calls=1)
    assert figures["n"] == 6 and figures["failed"] == 0
    assert all(value > 0 for name, value in figures.items() if name.endswith("_ms"))
    assert figures["route_p50_ms"] > figures["provider_p50_ms"]
