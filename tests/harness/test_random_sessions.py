"""Whole sessions at random: requests, corrections, barge-ins, declines, lost reports, faults; the promises hold."""
import asyncio
import random
from collections import Counter

import pytest
from harness_world import world

from harness import Delivery, Execution, Moment
from harness.ledger import DELIVERY_MOVES, EXECUTION_MOVES
from harness.task import DELIVERY_END, EXECUTION_END
from harness.testing import Script

CAPABILITIES = ["poi.find", "navigation.go", "vehicle.set_window", "scene.look", "no.skill", None]


def scripts(rng, numbers):
    """Each call's text is a chain of words of its own, so that every word can be followed to the ear."""
    def one():
        n = next(numbers)
        text = " ".join(f"w{n}x{k}" for k in range(rng.randint(3, 12)))
        return Script(text, after_s=rng.choice([0, 0, 0.3, 2, 7, 40]), ok=rng.random() < 0.85, code="unavailable",
                      error=RuntimeError() if rng.random() < 0.05 else None,
                      ignores_cancel_s=rng.choice([0, 0, 0, 0.4, 5]))
    return {c: [one() for _ in range(40)] for c in CAPABILITIES if c}


async def session(seed):
    """One random minute; (words heard, transitions, what happened)."""
    rng = random.Random(seed)
    talk, runner, seen = world(scripts(rng, iter(range(10**6))), history=512)
    harness, heard, happened = talk.harness, Counter(), Counter()
    reply, until, keys = None, 0.0, ["k"]
    for n in range(600):
        await talk.clock.advance(0.1)
        if rng.random() < 0.06:
            repair = rng.choices(["new", "update", "cancel", "status"], [6, 2, 1, 1])[0]
            keys.append(f"key-{n}" if rng.random() < 0.9 else rng.choice(keys))
            happened["duplicate" if keys[-1] in keys[:-1] else repair] += 1
            talk.ask(rng.choice(CAPABILITIES), {"query": "q"}, key=keys[-1], repair=repair, same_turn=rng.random() < 0.2)
        if rng.random() < 0.08:
            talk.user_speaking = not talk.user_speaking
        if rng.random() < 0.01 and harness.ledger.tasks():
            happened["cancelled"] += harness.cancel(rng.choice(harness.ledger.tasks()).id)
        if reply is not None:
            words = reply.text.split()
            if rng.random() < 0.02:
                cut = rng.randint(0, len(words))
                heard.update(words[:cut])
                happened["interrupted"] += 1
                harness.reply_finished(reply.id, heard=" ".join(words[:cut]), unheard=" ".join(words[cut:]), completed=False,
                                       confirmed=True, stopped=rng.random() < 0.2)
                reply = None
            elif talk.clock.now() >= until:
                heard.update(words)
                if rng.random() < 0.8:
                    harness.reply_finished(reply.id, heard=reply.text, unheard="", completed=True, confirmed=True)
                else:
                    happened["lost_report"] += 1
                reply = None
        new = harness.next_reply(Moment(round(talk.clock.now() * 16000), talk.user_speaking, False, reply is not None, talk.turn))
        if new is not None:
            assert reply is None and not talk.user_speaking
            if rng.random() < 0.1:
                happened["declined"] += 1
                harness.reply_declined(new.id)
            else:
                harness.reply_started(new.id, "seg")
                reply, until = new, talk.clock.now() + len(new.text) / 15
    closing = asyncio.ensure_future(harness.close())
    await talk.clock.advance(10)
    await closing
    return heard, seen, happened, harness


@pytest.mark.parametrize("first", range(0, 40, 10))
async def test_random_sessions_keep_every_promise(first):
    """No word is heard twice, nothing obsolete is admitted, every accepted request has exactly one end of either kind."""
    total = Counter()
    for seed in range(first, first + 10):
        heard, seen, happened, harness = await session(seed)
        total += happened
        assert all(n == 1 for word, n in heard.items() if word[0] == "w" and "x" in word), (seed, heard.most_common(3))
        ends, told = Counter(), Counter()
        for t in seen:
            if t.machine == "execution":
                assert not t.src or Execution(t.dst) in EXECUTION_MOVES[Execution(t.src)]
                ends[t.task.id] += t.dst in EXECUTION_END
            else:
                assert Delivery(t.dst) in DELIVERY_MOVES[Delivery(t.src)]
                told[t.task.id] += t.dst in DELIVERY_END
                if t.dst == Delivery.DELIVERING:
                    assert not t.task.superseded_by and t.task.execution not in (Execution.SUPERSEDED, Execution.RUNNING)
        accepted = harness.ledger.counters()["accepted"]
        assert len(ends) == len(told) == accepted and set(ends.values()) == set(told.values()) == {1}, seed
        assert harness.ledger.open() == [] and not harness._lane.runs
    assert all(total[kind] for kind in ("new", "update", "cancel", "status", "duplicate", "interrupted", "declined",
                                        "lost_report", "cancelled")), total
