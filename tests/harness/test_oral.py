"""Spoken text: nothing but what may be said; and which part of it was heard."""
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.capture.reserved import DEFAULT, ReservedTable
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


@pytest.mark.parametrize("name", sorted(DEFAULT.names))
def test_every_reserved_token_is_removed(name):
    """Also in upper case, full width, with spaces, attributes or invisible characters, and split around another token."""
    wide = name.translate({c: c + 0xFEE0 for c in range(0x21, 0x7f)})
    inner = name[1:-1]
    hidden = {"<think>", "<tool_call>", "<tool_response>"}
    forms = [name, name.upper(), wide, wide.upper(), f"< {inner} >", f"‹{inner}›", f"<\u200b{inner}>", f"{name[:3]}<|x|>{name[3:]}",
             f"&lt;{inner}&gt;"]
    if name not in hidden:
        forms += [f"<{inner} id='3'>"] if not inner.startswith("|") else []
    for form in forms:
        want = "" if name == "</think>" else "Yes."
        assert spoken(f"Yes. {form}", 600) == want, form
        assert spoken(f"{form} Yes.", 600) == ("" if name in hidden else "Yes."), form


def test_a_tokenizers_own_tokens_are_removed_too():
    """The table comes from the tokenizer; a name need not be in angle brackets."""
    table = ReservedTable(frozenset({"[PAD]", "<fim>"}))
    assert spoken("[PAD]Yes. <FIM>It is.", 600, table) == "Yes. It is." and "[PAD]" not in spoken("[PA[PAD]D]Yes.", 600, table)


@pytest.mark.parametrize("raw, said", [
    ("<think>It is secret</think>Yes.", "Yes."), ("I should say yes. </think> Yes.", "Yes."), ("Yes. <think>never ends", "Yes."),
    ("<think>a<think>b</think>c</think>d", "d"), ("<Thinking>x</ thinking >Yes.", "Yes."), ("＜think＞x＜/think＞Yes.", "Yes."),
    ("<th<b>ink>x</think>Yes.", "Yes."), ("<think>```</think>Yes.", "Yes."), ('<tool_call>{"a": 1}</tool_call>Yes.', "Yes."),
    ("x </tool_call> y", "x y"), ("<think> a < b </think> c > d", "c > d"), ("<d\u0435legate>Yes.", "Yes."), ("<\u2223listen\u2223>Yes.", "Yes."),
    ("<think>only this</think>", "")])
def test_reasoning_and_tool_calls_go_with_their_content(raw, said):
    """Reasoning without its opening tag, too: that is in the prompt."""
    assert spoken(raw, 600) == said


@pytest.mark.parametrize("raw, said", [
    ("See https://user:pw@host.com/x now.", "See now."), ("More at https://www.example.com/a?token=b.", "More at www.example.com."),
    ("At http://localhost:8080/x now", "At now"), ("At http://10.0.0.1/ now", "At now"), ("[The menu](https://x.com/y) is good.",
    "The menu is good."),
    ("![alt](a.png)Yes.", "Yes."), ("<https://example.com> here", "example.com here"), ("admin:hunter2@db.local is up", "is up"),
    ("key sk-abcdefghijklmnopqrstuvwxyz works", "key works"), ("token eyJhbGciOiJIUzI1NiJ9.e30.x works", "token works"),
    ("See src/foo/bar.py:12 please", "See please"), ("In C:\\Users\\bob\\x.txt it is", "In it is"), ("In /tmp it is", "In it is"),
    ("Failed: ValueError: no route", "Failed: no route"), ("Sorry. at com.a.B.run(B.java:10)", "Sorry."),
    ('Sorry. Exception in thread "main" x', "Sorry."), ("Sorry. thread 'main' panicked at x", "Sorry."), ('Sorry. File "x", line 3, in f', "Sorry."),
    ("| a | b |\n|---|:--|\n| 1 | 2 |", "a, b 1, 2"), ("~~~\ncode\n~~~Yes.", "Yes."), ("__init__ **Bold**ly", "init Boldly"),
    ("&lt;delegate&gt;Yes.", "Yes."), ("&amp;amp;lt;delegate&amp;amp;gt;Yes.", "Yes."), ("a\ud800b", "ab"), ("Yes <|", "Yes")])
def test_what_a_listener_has_no_use_for_is_not_spoken(raw, said):
    assert spoken(raw, 600) == said


@pytest.mark.parametrize("text", [
    "It is -5 degrees.", "5*3 is 15, 2**3 is 8.", "snake_case_name", "km/h and/or 24/7 and 3/4", "AT&T, R&D", "At 10:30 it opens.", "24°C/75°F",
    "café naïve – “quoted” …", "说完了。温度22度！", "《狂飙》和〈将进酒〉", "Mail user@example.com.", "a - b", "3 * 4 * 5", "Don't panic: it works."])
def test_ordinary_sentences_stay_as_they_are(text):
    """Cleaning must not change a value or a name."""
    assert spoken(text, 600) == text


PIECES = st.sampled_from([
    "<", ">", "|", "/", "＜", "＞", "｜", "&lt;", "&amp;", "gt;", "think", "delegate", "<think>", "</think>", "<|im_end|>", "*", "_", "`", "```", "[",
    "](", ")", "http://", "a.com", "@", ":", "\\", "\n", " ", "- ", "#", "~~", "x", "Yes.", "\u200b", "at ", "Error", "二"])


@settings(max_examples=500)
@given(st.lists(PIECES, max_size=40).map("".join))
def test_nothing_removable_is_left_whatever_is_put_together(raw):
    """No reserved name in any case, and cleaning again changes nothing."""
    said = spoken(raw, 600)
    assert not [name for name in DEFAULT.names if name in said.lower()] and spoken(said, 600) == said


def test_what_takes_too_many_rounds_loses_its_marks():
    """Links in links, deeper than the rounds: nothing of them is left to follow, and cleaning again changes nothing."""
    said = spoken("[" * 12 + "a" + "](b)" * 12, 600)
    assert "](" not in said and spoken(said, 600) == said


NASTY = [part * (20_000 // len(part)) for part in (
    "<", "<|", "<del", "<think>", "x</think>", "<think>a</think>", "＜｜", "&amp;", "<&lt;", "```", "[", "[a](", "![a](b)", "http://a.", "<https://",
    "a:a@", "/a", "a/", "\\\\a\\", "a.", "AError", "A", "at /", 'File "', "thread '", "\n", "\t- ", " ", "| ", "*a", "_a_ ", "*", "eyJ", "sk-")]
NASTY += ["<" * 10_000 + ">" * 10_000, "<|" * 5_000 + "|>" * 5_000, "<del" * 2_500 + "egate>" * 2_500, "＜｜" * 8_000 + "｜＞" * 2_000,
          "&" + "amp;" * 5_000, "-" * 20_000 + "x"]


def test_rubbish_of_any_kind_costs_linear_time():
    """20 KB of it in less than 20 ms of a quiet machine; four times as much costs about four times as much. CPU time, generous."""
    def spent(text):
        times = []
        for _ in range(2):
            begin = time.thread_time()
            spoken(text, 600)
            times.append(time.thread_time() - begin)
        return min(times)
    slow = [spent(text) for text in NASTY]
    worst = NASTY[slow.index(max(slow))]
    assert max(slow) < 0.08, worst[:20]
    assert spent(worst * 4) < 10 * max(slow), worst[:20]


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
