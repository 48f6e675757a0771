"""`venus bench parser`: the bars hold, and a capture that misses spans fails it."""
import json

import pytest

from harness.capture import bench
from venus_edge.errors import ConfigError


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """The reference work is not what is tested."""
    monkeypatch.setattr(bench.bench, "ref_ratio", lambda: 1.0)


def test_every_span_is_found_within_the_bars(capsys):
    """Generous bounds for a loaded machine; the figures themselves are the bench's business."""
    assert bench.run(["--tokens", "5000", "--rounds", "9", "--json"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert line["bench"] == "parser" and line["seed"] == 7 and line["spans"] == line["spans_expected"] > 300
    assert line["us_per_token"] == max(line["us_per_token_1"], line["us_per_token_20"]) < 3 and 0.4 < line["growth"] < 2


def test_a_broken_capture_fails(capsys):
    assert bench.run(["--tokens", "5000", "--rounds", "3", "--mutate", "limit", "--json"]) == 1
    line = json.loads(capsys.readouterr().out)
    assert line["spans"] < line["spans_expected"] and line["wrong"] > 0


@pytest.mark.parametrize("lost", [-1, 1])
def test_a_visible_id_too_few_or_too_many_is_seen(lost):
    """The check compares all that came out, to its end."""
    stream = bench.Stream(8_000, 1)
    assert bench.measure(stream, 20, 5_000, 1)["wrong"] == 0
    stream.visible = [v for v in stream.visible if v[0] < 4_000] if lost < 0 else [(0, 5), *stream.visible]
    assert bench.measure(stream, 20, 5_000, 1)["wrong"] > 0


@pytest.mark.parametrize("argv", [["--tokens", "10"], ["--rounds", "1"]])
def test_bad_input_names_the_option(argv):
    with pytest.raises(ConfigError, match=argv[0]):
        bench.run(argv)
