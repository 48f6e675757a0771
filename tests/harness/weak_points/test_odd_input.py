"""Odd input and odd moments, each with our exact outcome beside what came of it there (rows of the measured table: Odd 1, Odd 2, ...)."""
import asyncio

import pytest
from points_world import FIND, GO, SPECS, Instant, accept, moment, request

from harness import Closed, Evidence, Harness, HarnessSettings, SkillBackend, SkillSpec, UnknownSession, UnknownTask, UserWords
from harness.capture import Audio, EvidenceRing, Picture, SpanAssembler, SpanClosed, SpanRejected
from harness.capture.testing import WordTokenizer
from harness.deliver.gate import RATE
from harness.evidence import AudioClip
from harness.testing import ListedCatalog, Script, scripted
from venus_edge.testing import VirtualClock

TOKENS = WordTokenizer()
OPEN, CLOSE, EOS, LISTEN, IMAGE = (TOKENS[name] for name in ("<delegate>", "</delegate>", "<|turn_eos|>", "<|listen|>", "<image>"))


def feed(*parts):
    """(what is heard, outcomes) of a turn made of words, control ids and `|` for the end of a unit; then the stream ends."""
    spans, heard, outcomes, unit = SpanAssembler(TOKENS.control, TOKENS.decode), [], [], [[]]
    for part in parts:
        if part == "|":
            unit.append([])
        else:
            unit[-1] += [part] if isinstance(part, int) else TOKENS.words(part)
    for seq, ids in enumerate(unit, start=1):
        visible, events = spans.step(ids, seq * RATE, seq)
        heard += visible
        outcomes += events
    outcomes += spans.finish()
    made = [("task", e.content.text) if isinstance(e, SpanClosed) else ("refused", e.reason) for e in outcomes
            if isinstance(e, (SpanClosed, SpanRejected))]
    return TOKENS.decode(heard).strip(), made


@pytest.mark.parametrize("point, parts, heard, made", [
    ("Odd 1, 2: nested", (OPEN, "outer", OPEN, "inner", CLOSE, "tail"), "tail", [("refused", "nested"), ("task", "inner")]),
    ("Odd 3, 4: unclosed, the turn ends", (OPEN, "find it", EOS, "Next."), "Next.", [("task", "find it")]),
    ("Odd 5: unclosed, the stream ends", ("Yes.", OPEN, "find"), "Yes.", [("refused", "unclosed")]),
    ("Odd 6: two in a turn", (OPEN, "one", CLOSE, "and", OPEN, "two", CLOSE, "so."), "andso.", [("task", "one"), ("task", "two")]),
    ("Odd 7: a stray close", ("well", CLOSE, "then"), "wellthen", []),
    ("Odd 8: other cases, attributes, spaces", ("a <DELEGATE> b </ delegate> c <delegate x=1>",), "a <DELEGATE> b </ delegate> c <delegate x=1>", []),
    ("Odd 9: empty", (OPEN, CLOSE, "Yes."), "Yes.", [("refused", "empty")]),
    ("Odd 12: listening inside", (OPEN, "find", LISTEN, "Yes."), "Yes.", [("refused", "listen")]),
    ("Odd 12: an image inside", (OPEN, "find", IMAGE, "this", CLOSE, "Yes."), "Yes.", [("refused", "foreign_token")]),
    ("Odd 13: a unit's end inside", (OPEN, "find a", "|", " charger", CLOSE), "", [("task", "find a charger")]),
    ("Odd 14: spelled with ordinary tokens", ("<delegate>find</delegate>",), "<delegate>find</delegate>", []),
    ("Odd 15: a close spelled inside", (OPEN, "find </delegate> it", CLOSE, "Yes."), "Yes.", [("task", "find ‹/delegate› it")]),
], ids=lambda v: v if isinstance(v, str) and v.startswith("Odd") else "")
def test_each_odd_span_has_one_outcome_and_swallows_no_speech(point, parts, heard, made):
    """Odd 1, Odd 2, Odd 3, Odd 4, Odd 5, Odd 6, Odd 7, Odd 8, Odd 9, Odd 12, Odd 13, Peer 28: theirs lost the rest of the turn in five of them."""
    assert feed(*parts) == (heard, made), point


@pytest.mark.parametrize("size", [1_000_000, 1_000])
def test_a_megabyte_in_a_span_is_refused_at_its_limit_and_what_follows_is_heard(size):
    """Odd 10: in one step or a thousand: refused once, at 1,024 tokens; memory is bounded; theirs swallowed the rest of the turn."""
    spans = SpanAssembler(TOKENS.control, TOKENS.decode)
    word = TOKENS.words(" a")
    spans.step([OPEN], RATE, 1)
    events, held = [], 0
    for _ in range(1_000_000 // size):
        events += spans.step(word * size, RATE, 1)[1]
        held = max(held, len(spans._region.ids) if spans._region else 0)
    assert [e.reason for e in events] == ["oversized"] and held <= 1024
    assert TOKENS.decode(spans.step([CLOSE, *TOKENS.words("Yes.")], RATE, 1)[0]) == "Yes."


def test_a_megabyte_of_brackets_is_just_words():
    """Odd 11."""
    spans = SpanAssembler(TOKENS.control, TOKENS.decode)
    text = TOKENS.words("<") * 1_000_000
    assert spans.step(text, RATE, 1) == (text, ())


async def test_one_long_sentence_and_no_word_at_all():
    """Odd 19, Odd 20, Odd 21, Peer 7: 3,000 characters without an end are cut at a word; tokens alone, and nothing at all, are a failure notice."""
    long = "word " * 600
    said = {}
    for text in (long, "<|listen|><backend></backend>", ""):
        world = scripted({"poi.find": Script(text)}, specs=[FIND])
        task = world.talk.ask("poi.find")
        await world.talk.run(60)
        kept = world.session.ledger.get(task)
        said[text] = (str(kept.execution), str(kept.delivery), kept.kind, world.talk.texts)
    assert said[long][:3] == ("completed", "delivered", "result") and said[long][3] == [("word " * 120).strip()]
    for text in ("<|listen|><backend></backend>", ""):
        assert said[text][:3] == ("failed", "delivered", "notice") and len(said[text][3]) == 1 and "wrong" in said[text][3][0]


async def test_a_session_closed_in_mid_task_is_over():
    """Odd 33: the run is cancelled, the waiter told, a later request refused; the id can be used again and nothing of the old one is there."""
    world = scripted({"poi.find": Script("Two.", 30)}, specs=SPECS)
    harness, session = world.harness, world.session
    task = accept(session, 1)
    waiting = asyncio.ensure_future(harness.result(session.id, task))
    await world.clock.advance(0.1)
    await harness.close(session.id)
    assert ((await waiting).execution, (await waiting).execution_reason) == ("cancelled", "session_closed")
    with pytest.raises(Closed):
        accept(session, 2)
    with pytest.raises(UnknownSession):
        await harness.submit(session.id, request(3))
    assert [what for _, what, _ in world.runner.events] == ["started", "cancelled"]
    again = harness.open_session(session.id)
    assert again.status() == () and again.ledger.journal.records() == []
    with pytest.raises(UnknownTask):
        harness.cancel(session.id, task)


async def test_a_task_that_waits_for_a_place_is_cancelled_at_once_and_alone():
    """Odd 27: nothing of it ever ran, the one before and the one after it are not touched."""
    world = scripted({"poi.find": Script("Two.", 1)}, specs=SPECS, settings=HarnessSettings(max_running=1))
    one, two, three = (accept(world.session, n) for n in (1, 2, 3))
    await world.clock.advance(0.1)
    assert world.harness.cancel(world.session.id, two) and world.session.ledger.get(two).execution == "cancelled"
    await world.clock.advance(3)
    assert [c.task_id for c in world.runner.calls] == [one, three]
    assert [world.session.ledger.get(t).execution for t in (one, three)] == ["completed", "completed"]


async def test_unrelated_talk_changes_nothing_and_the_result_says_what_it_is_about():
    """Odd 31: three turns that ask for nothing: the result comes once, introduced, for the talk has moved on (theirs came bare)."""
    world = scripted({"poi.find": Script("Two of them.", 5)}, specs=SPECS)
    task = world.talk.ask("poi.find", {"query": "charger"})
    for _ in range(3):
        await world.talk.run(1)
        world.talk.turn += 1
        world.session.user_turn(world.talk.turn)
    await world.talk.run(8)
    assert world.talk.texts == ["About the charger: Two of them."] and world.session.ledger.get(task).delivery == "delivered"


@pytest.mark.parametrize("ahead_s", [0.0, 5.0, 3600.0])
def test_evidence_ends_at_what_was_consumed_wherever_the_opening_says_it_is(ahead_s):
    """Odd 42, Peer 25: a span that opens "in the future" sees what the front end had consumed, and poisons nothing."""
    ring = EvidenceRing()
    for n in range(20):
        ring.received(Audio(n * RATE, bytes(32_000), n))
    ring.consumed(15 * RATE, 14)
    pos = 15 * RATE + round(ahead_s * RATE)
    found = Evidence.freeze(pos, 99, [UserWords(1, "hi", 0, RATE)], media=ring.freeze(pos, 99, 12.0))
    assert max(c.end for c in found.media) == 15 * RATE and len(found.media) == 12


@pytest.mark.parametrize("skew", [-15.0, -5.0, 0.0, 5.0, 15.0])
async def test_no_second_clock_takes_evidence_away(skew):
    """Peer 24, Odd 43: whatever the wall clock, the harness's clock and the arrival say: 12 of 12 seconds of sound, and 12 frames, reach the worker.

    Theirs kept 12, 5, 7 and 0 of 12 at -5, -15, +5 and +15 s. Everything is placed by device sample; a camera's stamps may run ahead.
    """
    clock = VirtualClock(start=1000.0 + skew, wall=1_700_000_000.0 - 2 * skew)
    got = []

    class Backend(SkillBackend):
        async def execute(self, call, context):
            got.extend(context.evidence.media)
            return await super().execute(call, context)
    catalog = ListedCatalog(FIND)
    session = Harness(Backend(catalog, Instant()), catalog, clock).open_session("a")
    ring, device = EvidenceRing(), 500 * RATE
    for n in range(30):
        await clock.advance(1.0 + skew / 100)
        at = device + n * RATE
        assert ring.received(Audio(at, bytes(32_000), n))
        assert ring.received(Picture(at + round(max(0.0, skew) * RATE), bytes([n]) * 100, "image/jpeg", n))
        ring.consumed(at + RATE, n)
    pos = device + 30 * RATE
    session.next_reply(moment(clock, 1))
    accept(session, 1, evidence=Evidence.freeze(pos, 29, media=ring.freeze(pos, 29, 12.0)))
    await clock.advance(0.1)
    assert sum(m.end - m.start for m in got if isinstance(m, AudioClip)) == 12 * RATE
    assert sum(not isinstance(m, AudioClip) for m in got) >= 12


async def test_a_correction_while_it_runs_leaves_one_result():
    """Odd 30: the old run is cancelled and never spoken; one result; the record says which took whose place."""
    spec = SkillSpec("navigation.go", timeout_s=60, ack_after_s=999, first_progress_s=999, supersedes="navigation")
    world = scripted({"navigation.go": [Script("To Nice.", 5), Script("To Menton.", 2)]}, specs=[spec])
    old = world.talk.ask("navigation.go", {"destination": "nice"}, prose="to nice")
    await world.talk.run(1)
    new = world.talk.ask("navigation.go", {"destination": "menton"}, prose="no, menton", repair="update")
    await world.talk.run(20)
    kept = world.session.ledger.get(old)
    assert world.talk.texts == ["To Menton."] and (kept.execution, kept.superseded_by) == ("superseded", new)
    assert world.session.ledger.get(new).lineage == old and GO.id == spec.id
