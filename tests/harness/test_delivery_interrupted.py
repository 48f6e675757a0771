"""An interrupted delivery goes on from the first unheard word, or in short, at most once; and never after a stop."""
import pytest
from desk_world import Desk
from hypothesis import given
from hypothesis import strategies as st

from harness.deliver.rest import again, in_short, unheard, without

LONG = ("There are several chargers along the way, and most of them are busy at this hour of the day. The nearest free one is at the port, "
        "4 minutes from here. It has two places, and the price is a little higher than usual. There is another one behind the station as well, "
        "but it is slow.")
CHINESE = "沿途有好几个充电站，大部分这个时间都比较忙。最近的空闲充电站在港口，开车四分钟。" + "那里的价格比平时稍微高一点，不过环境很好，旁边还有咖啡馆可以休息。" * 4


def interrupted(text, heard, *, brief="", lang="en", kind="result", **settings):
    """A reply of `text` that was cut off after `heard`; (desk, task id, what is said next or None)."""
    desk = Desk(settings=settings)
    task = desk.done(desk.ask(lang=lang), text, kind=kind, brief=brief)
    desk.play(desk.unit(), heard)
    reply = desk.wait(3)
    return desk, task, reply.text if reply else None


@pytest.mark.parametrize("heard, then", [
    ("It is four minutes away, by the coast road. Take the ", "As I was saying, Take the second street on the left."),
    ("It is four minutes away, by the", "As I was saying, by the coast road. Take the second street on the left."),
    ("It is four minutes away, by the coast", "As I was saying, by the coast road. Take the second street on the left."),
    ("It is four minutes", "As I was saying, away, by the coast road. Take the second street on the left."),
    ("It is four minutes away, by the coast road. Take the second st", "As I was saying, Take the second street on the left.")])
def test_it_goes_on_at_the_clause_where_that_repeats_a_few_words_only(heard, then):
    """At most three words again, from a comma or a sentence on; else from the first unheard word, never from within one."""
    text = "It is four minutes away, by the coast road. Take the second street on the left."
    assert interrupted(text, heard)[2] == then


def test_too_much_to_repeat_is_not_repeated():
    """Five words into a sentence, it goes on with the sixth."""
    said = interrupted("Yes. Take the second street on the left and then go straight on to the very end.", "Yes. Take the second street on ")[2]
    assert said == "As I was saying, the left and then go straight on to the very end."


def test_chinese_goes_on_at_its_clause():
    """By characters, and introduced in Chinese."""
    assert interrupted("附近有两个充电站，一个在港口，另一个在老城区里面。", "附近有两个充电站，一个", lang="zh")[2] == "接着刚才说，一个在港口，另一个在老城区里面。"


def test_a_long_rest_is_told_in_short():
    """The first sentence of the rest that carries a value or a name; heard, it is the end of the matter."""
    desk, task, said = interrupted(LONG, LONG[:60])
    assert said == "In short, The nearest free one is at the port, 4 minutes from here."
    desk.play(desk.said[-1][1])
    assert desk.wait(5) is None and desk.state(task) == ("delivered", "confirmed")
    assert desk.moves(task) == ["pending", "delivering", "interrupted", "pending", "delivering", "delivered"]


def test_the_skills_own_short_form_is_used():
    """`brief` beats the first sentence with a value."""
    assert interrupted(LONG, LONG[:20], brief="The port, 4 minutes.")[2] == "In short, The port, 4 minutes."


def test_chinese_is_told_in_short_in_chinese():
    """The sentence with the number."""
    assert interrupted(CHINESE, CHINESE[:6], lang="zh")[2] == "简单说，最近的空闲充电站在港口，开车四分钟。"


def test_a_long_reply_that_was_hardly_begun_is_told_in_short_though_its_rest_is_not_long():
    """Under a quarter heard of a long reply: little of much was wanted."""
    text = ("There are two chargers, as far as I can see from here. The first one is at the port, which is quite near. "
            "The second one is at the station, 9 minutes.")
    heard = "There are two chargers, as"
    assert interrupted(text, heard, summarise_over_chars=140)[2] == "In short, The second one is at the station, 9 minutes."


def test_what_was_flushed_before_its_first_word_is_told_whole():
    """A noise just before the reply: nothing was heard, so nothing is cut short or introduced."""
    desk, task, said = interrupted(LONG, "")
    assert said == LONG and desk.ledger.get(task).resumes == 1


def test_a_question_flushed_before_its_first_word_is_put_again():
    """Only who has heard some of it can have understood it."""
    desk, task, said = interrupted("Which one do you mean?", "", kind="question")
    assert said == "Which one do you mean?"
    desk.play(desk.said[-1][1], "Which one")
    assert desk.state(task) == ("unspoken", "interrupted")


def test_a_short_form_that_is_interrupted_is_the_last():
    """Unspoken, and the whole text is offered on the screen."""
    desk, task, _ = interrupted(LONG, LONG[:60])
    desk.play(desk.said[-1][1], "In short, The nearest")
    assert desk.wait(5) is None and desk.state(task) == ("unspoken", "interrupted_again")
    assert [i.text for i in desk.shown] == [LONG]


def test_nearly_all_of_a_short_form_is_enough():
    """The share is that of the short form."""
    desk, task, _ = interrupted(LONG, LONG[:60])
    desk.play(desk.said[-1][1], "In short, The nearest free one is at the port, 4 minutes from")
    assert desk.state(task)[0] == "delivered" and desk.state(task)[1].startswith("heard")


def test_after_a_stop_nothing_goes_on_and_nothing_is_shown():
    """The user said stop: dropped for good, long or short."""
    for text in (LONG, "Two of them are free. One is not."):
        desk = Desk()
        task = desk.told(text)
        desk.play(desk.unit(), text[:12], stopped=True)
        assert desk.wait(5) is None and desk.state(task) == ("dropped", "stopped") and not desk.shown


@given(st.text(alphabet="ab ,.。，中文1'", max_size=60), st.integers(0, 60), st.integers(0, 6))
def test_what_is_said_again_and_what_is_left_are_the_end_of_the_text(text, at, back):
    """Whatever the text and the cut: rest is an end of it, what is repeated precedes it directly and is at most `back` words."""
    text = " ".join(text.split())
    rest = unheard(text, min(at, len(text)))
    assert text.endswith(rest)
    if rest:
        repeated = again(text, rest, back)
        assert text.endswith(repeated + rest) and len(repeated.split()) <= max(back, 1)
        short = in_short(rest, "")
        assert short in rest and len(short) <= len(rest)
        assert without(text, text[:len(text) - len(rest)]) == rest
