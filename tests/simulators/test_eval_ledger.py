"""The ledger evaluation: random sessions keep every promise, and each guard that is switched off shows."""
import asyncio
import json
import random
import re

import pytest

from harness.errors import JournalFault
from harness.journal import Record
from simulators.eval_ledger import evaluate, run, until_shown
from simulators.ledger_clock import WorldClock
from simulators.ledger_mutations import GUARDS, MUST_SHOW, mutated
from simulators.ledger_oracle import KINDS
from simulators.ledger_sessions import EVENTS, GROUP, play
from simulators.ledger_store import PATIENCE_S, LossyStore
from venus_edge.errors import ConfigError

SEED = 7
MOST_GROUPS = 80
"""Within so many groups every missing guard must show."""


def test_a_hundred_and_fifty_sessions_keep_every_promise():
    """Nothing is lost, repeated, revived, told over the user or leaked, and every kind of event was there."""
    result = evaluate(38, SEED)
    assert not +result.figures, result.violations[:5]
    assert [kind for kind in EVENTS if not result.events[kind]] == []


@pytest.mark.slow
def test_two_thousand_sessions_keep_every_promise():
    """The same at length, on another seed."""
    result = evaluate(500, SEED + 1, jobs=2)
    assert not +result.figures, result.violations[:5]


@pytest.mark.parametrize("guard", GUARDS)
def test_a_guard_that_is_off_shows(guard):
    """A check that can't fail is no check: with the guard off the evaluation reports what the guard is there for."""
    groups, figures = until_shown(guard, SEED, MOST_GROUPS)
    assert figures[MUST_SHOW[guard]], f"{groups} groups without a trace: {dict(figures)}"


def test_every_guard_says_what_it_must_show():
    """The table of mutations is whole, and a mutation leaves nothing behind."""
    assert set(GUARDS) == set(MUST_SHOW) and set(MUST_SHOW.values()) <= set(KINDS)
    before = story(2)
    with mutated("floor"):
        assert story(2) != before
    assert story(2) == before


def story(group):
    """What happens in a group, with the ids, which are new each time, left out."""
    told = []
    play(SEED, group, lambda session, at, what: told.append((session, round(at, 6), re.sub(r"\b[0-9A-Z]{4}\b|(reply|task)-\w+", "ID", what))))
    return told


def test_a_group_is_played_again_as_it_was():
    """The same seed and number give the same sessions, so that a violation can be looked at."""
    assert story(11) == story(11)
    assert story(11) != story(12)


def test_only_prints_the_story_of_one_session(capsys):
    """`--only` shows one session's requests and its transitions, and says how it ended."""
    assert run(["--only", "5", "--seed", str(SEED)]) == 0
    text = capsys.readouterr().out
    assert "session 5 of seed 7: no violation" in text and "queued > running" in text and "s4r" not in text


def test_an_event_that_never_happened_fails_the_evaluation(capsys):
    """Too few sessions prove nothing: the missing kinds are named and the exit status is 1."""
    assert run(["--sessions", str(GROUP), "--jobs", "1", "--json"]) == 1
    line = json.loads(capsys.readouterr().out)
    assert line["missing"] and all(line[kind] == 0 for kind in KINDS) and line["sessions"] == GROUP


def test_violations_fail_the_evaluation(capsys):
    """With a guard off the exit status is 1 and the line holds the figures."""
    assert run(["--sessions", "12", "--jobs", "1", "--mutate", "floor", "--json"]) == 1
    line = json.loads(capsys.readouterr().out)
    assert line["over_user"] > 0 and line["mutate"] == "floor"


@pytest.mark.parametrize("argv", [["--sessions", "1"], ["--jobs", "0"], ["--only", "-1"]])
def test_bad_input_names_the_option(argv):
    """Out of range is refused with the option's name."""
    with pytest.raises(ConfigError, match=argv[0]):
        run(argv)


# -- the store that loses


def record(n):
    return Record(n, 1.0, "task-1", "link", "", "", "", {"n": n})


@pytest.mark.parametrize("seed", range(20))
async def test_a_killed_store_keeps_what_it_confirmed_and_a_beginning_of_the_rest(seed):
    """What was durable before the kill is there after it; of the rest, the first so many."""
    clock = WorldClock()
    store = LossyStore(clock, random.Random(seed))
    journal = store.session("s")
    confirmed = 0
    for n in range(1, 30):
        journal.append(record(n))
        await clock.advance(0.01)
        store.tick()
        if journal.durable():
            confirmed = n
    after = store.killed(clock)
    kept = [r.n for r in after.session("s").records()]
    assert kept == list(range(1, len(kept) + 1)) and len(kept) >= confirmed
    assert len(kept) + after.lost == 29


async def test_a_stalled_store_is_away_until_it_writes_again():
    """Who waits too long is told, new tasks are refused, and afterwards all is as before."""
    clock = WorldClock()
    store = LossyStore(clock, random.Random(1))
    store.stall(10.0)
    journal = store.session("s")
    journal.append(record(1))


    waiting = asyncio.ensure_future(journal.flushed())
    await clock.advance(PATIENCE_S + 0.1)
    store.tick()
    with pytest.raises(JournalFault):
        await waiting
    with pytest.raises(JournalFault):
        journal.append(Record(2, 1.0, "task-2", "accept", "", "queued", "", {}))
    await clock.advance(8.0)
    store.tick()
    await journal.flushed()
    journal.append(Record(2, 1.0, "task-2", "accept", "", "queued", "", {}))
