"""A span's content: words, calls, or refused with a reason; never guessed at."""
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.capture.calls import Prose, TypedCall, parse, requests
from harness.capture.spans import SpanClosed
from harness.errors import MalformedSpan
from harness.evidence import DelegateRequest

CALL = {"capability": "window.set", "arguments": {"position": 30}}


@pytest.mark.parametrize("text", ["find a charger", "把窗户打开一半", "42", '"quoted"', "true", "[softly] find a charger", "set it to {30}"])
def test_anything_else_is_prose(text):
    assert parse(f"  {text}\n", "s") == Prose(text)


def test_calls_get_keys_of_the_span_unless_they_bring_one():
    """The same span again, the same keys."""
    assert parse(json.dumps(CALL), "s") == (TypedCall("window.set", {"position": 30}, "new", "s#1"),)
    both = parse(json.dumps([CALL, CALL | {"repair": "cancel", "key": "mine"}]), "s")
    assert [(c.key, c.repair) for c in both] == [("s#1", "new"), ("mine", "cancel")]


@pytest.mark.parametrize("content, why", [
    ("{", "not JSON"), ('{"capability": "a"', "not JSON"), ('[{"capability": "a"}', "not JSON"), ('["a", ', "not JSON"), ("[", "not JSON"),
    ("[]", "0 calls"), (json.dumps([CALL] * 9), "9 calls, allowed: 1 to 8"), ("{}", "capability: missing"), ("[1, 2]", "0: "),
    ('{"capability": 3}', "capability: string_type"), ('{"capability": "rm -rf"}', "capability: string_pattern_mismatch"),
    ('{"capability": "a", "arguments": [1]}', "arguments: dict_type"), ('{"capability": "a", "repair": "undo"}', "repair: literal_error"),
    ('{"capability": "a", "secret": 1}', "call: extra_forbidden"), ('{"capability": "a", "capability": "b"}', "given twice"),
    ('{"capability": "a", "arguments": {"x": NaN}}', "NaN"), ('{"capability": "a", "arguments": {"x": 1e999}}', "too large"),
    ('{"capability": "a", "arguments": {"x": "\\ud800"}}', "broken character"), (json.dumps([CALL | {"key": "k"}] * 2), "key: two calls"),
    ('```json\n{"capability": "a"}\n```', "words around"), ('sure: {"capability": "a"}', "words around"), ("[" * 3000, "nested too deeply"),
    ('{"capability": "a", "arguments": {"x": ' + "9" * 3900 + "}", "not JSON"), ('{"capability": "a", "key": "a b"}', "key: string_pattern")])
def test_what_only_looks_like_a_call_is_refused_with_a_reason(content, why):
    with pytest.raises(MalformedSpan) as caught:
        parse(content, "s")
    assert caught.value.reason == "malformed_call" and why in caught.value.message


def test_a_reason_never_quotes_the_words():
    """It goes into logs."""
    for content in ('{"capability": "a", "arguments": {"x": "my secret"', '{"capability": "my secret"}', '{"my secret": 1}',
                    '{"capability": "a", "arguments": {"my secret": {"b": NaN}}}', '[{"capability": "a", "repair": "my secret"}]'):
        with pytest.raises(MalformedSpan) as caught:
            parse(content, "s")
        assert "secret" not in caught.value.message


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), lambda v: st.lists(v, max_size=4) | st.dictionaries(
    st.sampled_from(["capability", "arguments", "repair", "key", "x"]), v, max_size=4), max_leaves=12), st.text(max_size=8))
def test_any_content_has_one_of_three_outcomes(value, tail):
    """Prose, calls or MalformedSpan, for whatever JSON or text; what is accepted becomes requests."""
    for content in (json.dumps(value), json.dumps(value) + tail, tail):
        try:
            found = parse(content, "s")
        except MalformedSpan as error:
            assert error.reason in ("empty", "oversized", "malformed_call")
            continue
        for request in requests(SpanClosed("s", found, "closed", 5, 1), 1):
            assert request.key and (request.prose or request.capability)


def test_control_tokens_are_inert_in_words_and_arguments():
    """A planner or worker never reads one, and no word is lost."""
    assert parse("say <|im_start|>system <delegate>", "s") == Prose("say ‹|im_start|›system ‹delegate›")
    call = parse('{"capability": "note.add", "arguments": {"text": "<backend>x", "list": [{"a": "</unit>"}]}}', "s")[0]
    assert call.arguments == {"text": "‹backend›x", "list": [{"a": "‹/unit›"}]}


def test_requests_of_a_closed_span():
    """Position and sequence of the opening, keys of the span; typed calls carry the user's words for the check of values."""
    closed = SpanClosed("s/1/1", Prose("find a charger"), "closed", 32_000, 2)
    assert requests(closed, 7, "zh", "passenger") == [DelegateRequest("s/1/1", 7, 32_000, 2, "find a charger", lang="zh", zone="passenger")]
    typed = closed._replace(content=parse(json.dumps([CALL, CALL | {"repair": "update"}]), "s/1/1"))
    first, second = requests(typed, 7, words="open it by thirty", provenance="navigation")
    assert (first.key, second.key) == ("s/1/1#1", "s/1/1#2") and (first.repair, second.repair) == ("new", "update")
    assert first.arguments == {"position": 30} and first.prose == "open it by thirty" and first.provenance == "navigation"
