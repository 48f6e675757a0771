"""Spoken text: nothing but what may be said; and which part of it was heard."""
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.oral import heard_chars, spoken

TEXT = "It's set to 22 degrees. The drive takes 4 minutes."


@pytest.mark.parametrize("raw, said", [
    ("Hello.", "Hello."), ("  Two\n lines. ", "Two lines."), ("<|interrupt|>", ""), ("<backend>Yes.</backend>", "Yes."),
    ("<<|x|>|listen|>Yes.", "Yes."), ("**Bold** and `code`.", "Bold and code."), ("- one\n- two", "one two"),
    ("```\nsecret\n```Done.", "Done."), ("Oops. Traceback (most recent call last):\n  File x", "Oops."),
    ("See /home/user/file.txt now", "See now"), ("a\u202eb\x07c", "abc"), ("...", ""), ("It is 3 < 4 > 2.", "It is 3 < 4 > 2.")])
def test_control_tokens_markup_code_and_paths_are_not_spoken(raw, said):
    assert spoken(raw, 600) == said


@given(st.text(alphabet="<|>/abtool. listen`*", max_size=60))
def test_no_token_survives_however_it_is_nested(raw):
    """Whatever is left contains no control token, and cleaning it again changes nothing."""
    said = spoken(raw, 600)
    assert "<|" not in said or "|>" not in said.split("<|", 1)[1].split("<")[0]
    assert spoken(said, 600) == said


def test_long_text_ends_with_a_sentence():
    """Cut at the last sentence that fits; without one, at a word."""
    assert spoken("One two. Three four. Five.", 20) == "One two. Three four."
    assert spoken("一二。三四。五六。", 7) == "一二。三四。"
    assert spoken("one two three", 9) == "one two"


@pytest.mark.parametrize("heard, unheard, rest", [
    ("It's set to 22 degrees.", "The drive takes 4 minutes.", "The drive takes 4 minutes."),
    ("It's set to twenty-two degrees.", " The drive takes 4 minutes.", "The drive takes 4 minutes."),
    ("It's set", "", "to 22 degrees. The drive takes 4 minutes."),
    ("", "", TEXT), ("", TEXT, TEXT), (TEXT, "", ""), ("it s SET to 22, degrees", "", "The drive takes 4 minutes.")])
def test_the_rest_begins_at_the_first_unheard_word(heard, unheard, rest):
    """By letters and digits; what is in neither string was never said, so it is unheard."""
    assert TEXT[heard_chars(TEXT, heard, unheard):] == rest


def test_differently_worded_spans_are_measured_by_their_share():
    """Numbers written out: no exact place, so the share, down to the start of a word; never more than was heard."""
    text = "From 9:30 to 11:45 it is open, then closed."
    at = heard_chars(text, "From nine thirty to eleven forty five it is open,", "then it is closed")
    assert 0 < at <= text.index("closed") and text[at - 1] == " "
