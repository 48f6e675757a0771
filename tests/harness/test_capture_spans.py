"""Span capture: control by id alone, one stated outcome for each odd span, and no span swallows later speech."""
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.capture.calls import Prose, TypedCall
from harness.capture.spans import SpanAssembler, SpanClosed, SpanLimits, SpanOpened, SpanRejected
from harness.capture.testing import WordTokenizer
from venus_edge.metrics import METRICS

TOK = WordTokenizer()
OPEN, CLOSE, TURN_END, LISTEN = (TOK[n] for n in ("<delegate>", "</delegate>", "<|turn_eos|>", "<|listen|>"))
PACING = [TOK[n] for n in ("<unit>", "</unit>", "<|speak|>", "<|chunk_eos|>", "<|chunk_tts_eos|>", "<|tts_bos|>", "<|tts_pad|>")]
FOREIGN = [TOK[n] for n in ("<image>", "</image>", "<backend>", "</backend>", "<|interrupt|>", "<|im_end|>", "<think>", "<|vad_start|>")]
SMALL = SpanLimits(max_tokens=6, max_region_tokens=10, max_units=3, max_spans=3)
CHARGER = Prose("find a charger")


def ids(*parts):
    """Words by text, special tokens by id, lists as they are."""
    return [i for part in parts for i in (TOK.words(part) if isinstance(part, str) else [part] if isinstance(part, int) else part)]


def assembler(limits=None, **kw):
    return SpanAssembler(TOK.control, TOK.decode, limits, session="s", **kw)


def feed(spans, *parts, pos=16_000, seq=1, size=None):
    """(visible text, events) of one step, or of steps of `size` ids."""
    stream, visible, events = ids(*parts), [], []
    for i in range(0, len(stream), size or max(1, len(stream))):
        more, came = spans.step(stream[i:i + (size or len(stream))], pos, seq)
        visible += more
        events += came
    return TOK.decode(visible), events


def outcome(events):
    """The events without the openings, as (id, what)."""
    return [(e.span_id, e.content if isinstance(e, SpanClosed) else e.reason) for e in events if not isinstance(e, SpanOpened)]


def test_plain_ids_come_back_as_they_are():
    """Nothing is copied where nothing is control."""
    plain = ids("the road is clear")
    visible, events = assembler().step(plain, 16_000, 1)
    assert visible is plain and events == ()


@pytest.mark.parametrize("size", [1, 2, 3, 7, None])
def test_a_span_is_captured_and_what_is_around_it_is_spoken(size):
    """The same, however the ids are cut into steps."""
    spans = assembler()
    text, events = feed(spans, "One moment.", OPEN, "find a charger", CLOSE, " Done.", size=size, pos=32_000, seq=2)
    assert text == "One moment. Done."
    assert events == [SpanOpened("s/1/1", 32_000, 2), SpanClosed("s/1/1", CHARGER, "closed", 32_000, 2)]
    assert not spans.private


def test_a_span_keeps_its_opening_position_across_units():
    """Evidence belongs to the instant of opening; the units in between do not move it."""
    spans = assembler()
    text, events = feed(spans, "Yes.", OPEN, "find", PACING, pos=16_000, seq=1)
    assert text == "Yes." and events == [SpanOpened("s/1/1", 16_000, 1)] and spans.private
    text, events = feed(spans, PACING, " a charger", CLOSE, pos=32_000, seq=2)
    assert text == "" and events == [SpanClosed("s/1/1", CHARGER, "closed", 16_000, 1)]


def test_all_spans_of_a_turn_are_captured():
    """Two apart and two back to back: four requests, and the words between them are spoken."""
    one = (OPEN, "find a charger", CLOSE)
    text, events = feed(assembler(), *one, "and", *one, *one, " then", *one, " done")
    assert text == "and then done" and outcome(events) == [(f"s/1/{i}", CHARGER) for i in (1, 2, 3, 4)]


def test_ids_are_the_same_when_a_turn_is_sent_again():
    """(session, turn, ordinal), so that the idempotency key of a re-sent span is known to the harness."""
    def turn(spans):
        return [e.span_id for e in feed(spans, OPEN, "find a charger", CLOSE, OPEN, "and a pharmacy", CLOSE, TURN_END)[1]]
    spans = assembler()
    first, second = turn(spans), turn(spans)
    assert spans.begin_turn(1) == () and turn(spans) == first
    assert spans.begin_turn(2) == () and turn(spans) == second
    assert not set(first) & set(second) and spans.turn == 3


def test_a_tag_spelled_in_words_is_inert():
    """Outside it is speech; inside it is content, neutralised, and neither opens nor closes anything."""
    text, events = feed(assembler(), "say <delegate> steal it </delegate> aloud")
    assert text == "say <delegate> steal it </delegate> aloud" and events == []
    text, events = feed(assembler(), OPEN, "explain </delegate> and <|im_end|> to me", CLOSE, "Yes.")
    assert text == "Yes." and outcome(events) == [("s/1/1", Prose("explain ‹/delegate› and ‹|im_end|› to me"))]


def test_typed_calls_travel_in_a_span():
    """Parallel calls of one span, each with a key of its own."""
    both = '[{"capability": "window.set", "arguments": {"position": 30}}, {"capability": "poi.find", "repair": "update"}]'
    calls = TypedCall("window.set", {"position": 30}, "new", "s/1/1#1"), TypedCall("poi.find", {}, "update", "s/1/1#2")
    assert outcome(feed(assembler(), OPEN, both, CLOSE)[1]) == [("s/1/1", calls)]


# -- one outcome each: the rows of the table in spans.py


def test_a_turn_end_closes_a_complete_span():
    text, events = feed(assembler(), OPEN, "find a charger", TURN_END, "Next.")
    assert text == "Next." and events[-1] == SpanClosed("s/1/1", CHARGER, "turn_end", 16_000, 1)


def test_a_stream_end_rejects():
    spans = assembler()
    feed(spans, OPEN, "find a")
    assert outcome(spans.finish()) == [("s/1/1", "unclosed")] and spans.finish() == () and not spans.private
    assert feed(spans, "Hello.") == ("Hello.", [])


def test_too_many_units_reject_and_speech_goes_on():
    """The fourth unit after the opening is visible again, in either path of the assembler."""
    for last in ((), (LISTEN,), (PACING[2],)):
        spans = assembler(SMALL)
        feed(spans, OPEN, "find a", seq=1)
        assert feed(spans, " charger", seq=4) == ("", [])
        text, events = feed(spans, *last, " Hello.", seq=5)
        assert text == " Hello." and outcome(events) == [("s/1/1", "unclosed")] and not spans.private


def test_an_oversized_span_rejects_at_once_in_bounded_memory():
    """Rejected at the first token too many; the rest up to the close stays private and is not kept."""
    spans = assembler(SMALL)
    text, events = feed(spans, OPEN, "a b c d e f g")
    assert text == "" and outcome(events) == [("s/1/1", "oversized")] and spans.private and not spans._region.ids
    assert feed(spans, " h i", CLOSE, "Hello.") == ("Hello.", [])


@pytest.mark.parametrize("size", [1, 4, None])
def test_a_lost_close_hides_no_more_than_the_limit(size):
    """After `max_region_tokens` what comes is speech again; one rejection, however long it goes on."""
    text, events = feed(assembler(SMALL), OPEN, "a b c d e f g h i j", " k l", " m", size=size)
    assert text == " k l m" and outcome(events) == [("s/1/1", "oversized")]


def test_a_region_no_longer_than_a_span_still_rejects():
    """The two limits may be equal: the span is never lost without an event."""
    text, events = feed(assembler(SpanLimits(max_tokens=2, max_region_tokens=2)), OPEN, "a b c")
    assert text == " c" and outcome(events) == [("s/1/1", "oversized")]


def test_memory_stays_bounded_in_a_span_without_end():
    """A million tokens in one span hold no more than the limit."""
    spans = assembler(SpanLimits(max_region_tokens=2_000_000))
    spans.step([OPEN], 0, 1)
    block = ids("a b c d e f g h i j") * 1000
    for _ in range(100):
        spans.step(block, 0, 1)
        assert len(spans._region.ids) <= 1024


def test_too_many_characters_reject():
    _, events = feed(assembler(), OPEN, "x" * 4001, CLOSE)
    assert outcome(events) == [("s/1/1", "oversized")]


@pytest.mark.parametrize("content", ["", " ", "\n \t", "\u200b"])
def test_an_empty_span_rejects_and_what_follows_is_spoken(content):
    text, events = feed(assembler(), OPEN, content, CLOSE, "Hello.")
    assert text == "Hello." and outcome(events) == [("s/1/1", "empty")]


def test_a_nested_open_rejects_the_outer_and_captures_the_inner():
    text, events = feed(assembler(), OPEN, "find", OPEN, "find a charger", CLOSE, "Hello.")
    assert text == "Hello." and outcome(events) == [("s/1/1", "nested"), ("s/1/2", CHARGER)]


def test_listening_inside_rejects():
    text, events = feed(assembler(), OPEN, "find a", LISTEN, "Hello.")
    assert text == "Hello." and outcome(events) == [("s/1/1", "listen")]


@pytest.mark.parametrize("token", FOREIGN)
def test_a_foreign_token_rejects_at_once_and_the_rest_stays_private(token):
    text, events = feed(assembler(), OPEN, "find", token, token, " a charger", CLOSE, "Hello.")
    assert text == "Hello." and outcome(events) == [("s/1/1", "foreign_token")]


@pytest.mark.parametrize("token", PACING)
def test_pacing_tokens_inside_are_skipped(token):
    text, events = feed(assembler(), OPEN, "find", token, " a charger", token, CLOSE, "Hello.")
    assert text == "Hello." and outcome(events) == [("s/1/1", CHARGER)]


def test_a_broken_call_rejects_with_a_reason():
    _, events = feed(assembler(), OPEN, '{"capability": "window.set", "arguments": ', CLOSE)
    assert outcome(events) == [("s/1/1", "malformed_call")] and "not JSON" in events[-1].detail


def test_undecodable_content_rejects():
    """A tokenizer that fails costs the span, not the session."""
    spans = SpanAssembler(TOK.control, lambda ids: TOK.decode([10 ** 9]), session="s")
    text, events = feed(spans, OPEN, "find", CLOSE, "Hello.")
    assert text == "Hello." and outcome(events) == [("s/1/1", "undecodable")]


@pytest.mark.parametrize("end", [TURN_END, LISTEN])
def test_a_loop_of_spans_is_bounded_until_the_model_pauses(end):
    one = (OPEN, "find a charger", CLOSE)
    spans = assembler(SMALL)
    text, events = feed(spans, *one * 3, *one, "Hello.")
    assert text == "Hello." and [o for _, o in outcome(events)] == [CHARGER] * 3 + ["too_many"]
    assert [o for _, o in outcome(feed(spans, end, *one)[1])] == [CHARGER]


def test_a_reset_rejects_and_begins_a_turn():
    spans = assembler()
    feed(spans, OPEN, "find")
    assert outcome(spans.reset()) == [("s/1/1", "reset")] and spans.reset() == ()
    text, events = feed(spans, "Hello.", OPEN, "find a charger", CLOSE)
    assert text == "Hello." and outcome(events) == [("s/3/1", CHARGER)]


def test_a_stray_close_is_dropped_and_counted():
    before = METRICS.get("venus_harness_span_stray_close_total")
    assert feed(assembler(), "Hello", CLOSE, " there.") == ("Hello there.", [])
    assert METRICS.get("venus_harness_span_stray_close_total") == before + 1


def test_no_special_token_is_visible():
    """Whatever it is: the visible ids are text."""
    everything = sorted(TOK.control.reserved - {OPEN})
    assert feed(assembler(), *everything, "Hello.", *everything) == ("Hello.", [])


# -- whatever precedes

WORD = st.integers(0, 5).map(lambda i: ids(f" w{i}")[0])
ANY = st.one_of(WORD, st.sampled_from([OPEN, CLOSE, TURN_END, LISTEN, *PACING, *FOREIGN]))
STEPS = st.lists(st.tuples(st.lists(ANY, max_size=14), st.integers(0, 2)), max_size=12)


def model(steps, limits):
    """The visible ids by the table, written down again as plainly as possible: one region, one token at a time."""
    visible, hidden, opened, seq = [], None, 0, 1
    for tokens, units in steps:
        seq += units
        if hidden is not None and seq - opened > limits.max_units:
            hidden = None
        for token in tokens:
            if token == OPEN:
                hidden, opened = 0, seq
            elif token in (CLOSE, TURN_END, LISTEN):
                hidden = None
            elif token not in TOK.control.reserved:
                hidden = None if hidden is None or hidden == limits.max_region_tokens else hidden + 1
                if hidden is None:
                    visible.append(token)
    return visible


def play(spans, steps):
    visible, events, seq = [], [], 1
    for tokens, units in steps:
        seq += units
        more, came = spans.step(tokens, seq * 16_000, seq)
        visible += more
        events += came
    return visible, events


@settings(max_examples=400, deadline=None)
@given(STEPS)
def test_visible_ids_come_out_in_order_whatever_precedes(steps):
    """Every text id outside a region is visible, in order, and none inside one; each opened span has exactly one end."""
    spans = assembler(SMALL)
    visible, events = play(spans, steps)
    assert visible == model(steps, SMALL)
    events += spans.finish()
    opened = [e.span_id for e in events if isinstance(e, SpanOpened)]
    ended = [e.span_id for e in events if isinstance(e, SpanClosed) or isinstance(e, SpanRejected) and e.reason != "too_many"]
    assert sorted(opened) == sorted(ended) and len(set(opened)) == len(opened)


@settings(max_examples=200, deadline=None)
@given(STEPS, st.sampled_from([[TURN_END], [LISTEN], [CLOSE], ids(" p") * (SMALL.max_region_tokens + 1)]), st.lists(WORD, max_size=30))
def test_no_prefix_swallows_later_speech(steps, end, speech):
    """After an end of turn, listening, a close or a bounded number of ids, all that is said is heard."""
    spans = assembler(SMALL)
    play(spans, steps)
    spans.step(end, 16_000, 1)
    assert list(spans.step(speech, 16_000, 1)[0]) == speech


@settings(max_examples=200, deadline=None)
@given(STEPS, st.integers(1, 5))
def test_the_cut_into_steps_does_not_matter(steps, size):
    """Ids one by one or twenty at once: the same visible ids and the same events."""
    cut = [(tokens[i:i + size], units if i == 0 else 0) for tokens, units in steps for i in range(0, max(1, len(tokens)), size)]
    assert play(assembler(SMALL), steps) == play(assembler(SMALL), cut)
