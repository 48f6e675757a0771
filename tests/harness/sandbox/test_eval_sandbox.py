"""The evaluation of the sandbox: what it counts, and that it can fail."""
import json
import os

import pytest

from simulators.eval_sandbox import run
from venus_edge.errors import ConfigError


def line(capsys, *argv):
    status = run([*argv, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_attacks_that_work_outside_do_not_inside(capsys):
    status, found = line(capsys, "--users", "self", "--only", "secret_file,fork_bomb,host_undeclared,code_unlock")
    user = found["users"][str(os.geteuid())]
    assert status == 0 and (found["attacks"], found["escaped"], found["untried"]) == (4, 0, [])
    assert all(user["control"].values()) and {a["result"] for a in user["attacks"].values()} == {"held"}


def test_a_missing_layer_shows(capsys):
    status, found = line(capsys, "--users", "self", "--only", "environment", "--mutate", "env")
    assert status == 0 and found["escaped"] == 1 and found["users"][str(os.geteuid())]["attacks"]["environment"]["how"]


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["seccomp", "landlock", "pidns", "rlimits", "env"])
def test_every_layer_matters(capsys, layer):
    assert line(capsys, "--mutate", layer)[1]["escaped"] >= 1


@pytest.mark.slow
def test_nothing_escapes(capsys):
    status, found = line(capsys)
    assert found["attacks"] >= 20 and found["escaped"] == 0 and found["untried"] == [] and status == 0


def test_wrong_names_are_told():
    for argv in (["--only", "magic"], ["--mutate", "walls"]):
        with pytest.raises(ConfigError, match="is not one of"):
            run(argv)
