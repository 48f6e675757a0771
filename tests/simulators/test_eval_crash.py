"""The crash evaluation: a real process, killed with -9, loses and repeats nothing; without its guards it does."""
import json

import pytest

from simulators.crash_world import PHASES
from simulators.eval_crash import TOLD_S, evaluate, run
from venus_edge.errors import ConfigError


def total(worlds, kind):
    return sum(w.figures[kind] for w in worlds)


async def test_kills_in_every_phase_lose_and_repeat_nothing():
    """One kill in each phase: all that was promised is told or shown, once, and no effect is had twice."""
    worlds = await evaluate(len(PHASES), seed=3, lanes=1)
    assert not +worlds[0].figures, worlds[0].violations
    assert worlds[0].kills.total() == len(PHASES) and worlds[0].restarts == len(PHASES)
    assert sum(wish.promised for wish in worlds[0].wishes) > 0


@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite", "redis"])
async def test_many_kills_lose_and_repeat_nothing(store):
    """With either store: nothing lost, nothing twice, all phases seen, all told within 5 s of the restart."""
    worlds = await evaluate(56, seed=11, store=store, lanes=2)
    assert not any(+w.figures for w in worlds), [w.violations for w in worlds]
    assert all(sum(w.kills[phase] for w in worlds) for phase in PHASES)
    assert max(s for w in worlds for s in w.told_s) <= TOLD_S


@pytest.mark.slow
@pytest.mark.parametrize("guard, kind", [("no_wal", "lost"), ("no_flush_on_submit", "lost"), ("no_flush_before_run", "duplicate"),
                                         ("rerun_all", "duplicate"), ("redeliver_blindly", "duplicate")])
async def test_a_guard_that_is_off_shows(guard, kind):
    """A check that can't fail is no check."""
    for seed in range(4):
        worlds = await evaluate(28, seed=seed, lanes=2, mutate=guard)
        if total(worlds, kind):
            return
    pytest.fail(f"four times 28 kills without a trace of {guard}")


@pytest.mark.slow
def test_the_command_reports_what_was_lost(capsys):
    """Without a journal the exit status is 1, and the line says how many promises were lost."""
    assert run(["--kills", "7", "--lanes", "2", "--mutate", "no_wal", "--json"]) == 1
    line = json.loads(capsys.readouterr().out)
    assert line["lost"] > 0 and line["kills"] == 7 and line["mutate"] == "no_wal"


@pytest.mark.parametrize("argv", [["--kills", "1"], ["--lanes", "0"]])
def test_bad_input_names_the_option(argv):
    """Out of range is refused with the option's name."""
    with pytest.raises(ConfigError, match=argv[0]):
        run(argv)
