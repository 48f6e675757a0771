"""`venus`: quick help, typed errors as one line, exit status 2."""
import importlib.metadata
import subprocess
import sys
import time

import pytest

from venus_edge import cli
from venus_edge.errors import ConfigError


class Entry:
    def __init__(self, fn):
        self.fn = fn

    def load(self):
        return self.fn


@pytest.fixture
def table(monkeypatch):
    def bad(argv):
        raise ConfigError("thing: 'x' is not one of a, b")

    monkeypatch.setattr(cli, "commands", lambda: {"drive": Entry(lambda argv: 0 if argv == ["a"] else 1), "bench.voice": Entry(lambda argv: 7),
                                                  "bad": Entry(bad)})


def test_dispatch_and_dotted_names(table):
    assert cli.main(["drive", "a"]) == 0 and cli.main(["drive"]) == 1 and cli.main(["bench", "voice"]) == 7


def test_errors_are_one_line_and_status_2(table, capsys):
    assert cli.main(["bad"]) == 2
    err = capsys.readouterr().err
    assert err == "venus bad: thing: 'x' is not one of a, b\n"
    assert cli.main(["dirve"]) == 2
    assert "unknown command 'dirve'; allowed: bad, bench voice, drive" in capsys.readouterr().err


def test_the_real_help_lists_the_commands_and_is_quick():
    best = 9.0
    for _ in range(3):
        begin = time.monotonic()
        out = subprocess.run([sys.executable, "-m", "venus_edge.cli", "--help"], capture_output=True, text=True, check=True).stdout
        best = min(best, time.monotonic() - begin)
    names = {ep.name.partition(".")[0] for ep in importlib.metadata.entry_points(group="venus.commands")}
    assert {"drive", "up", "say", "token", "config", "bench"} <= names and all(n in out for n in names)
    assert best < 1.0, f"help took {best:.2f} s"
