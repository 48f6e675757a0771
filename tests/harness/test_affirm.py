"""Yes and no: an utterance that is only an answer is one, in both languages; everything else goes to the planner."""
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.deliver.affirm import yes_no

YES = ["yes", "Yes, please.", "Yeah.", "sure, go ahead", "OK", "o.k.", "that's fine, thanks", "Mm-hmm.", "uh-huh", "of course", "it's okay",
       "no, sorry, yes", "嗯", "嗯 好的", "好的，谢谢", "可以", "没问题", "對", "是的", "行吧", "OK 好", "嗯嗯"]
NO = ["no", "No, thanks.", "nope", "yeah, no", "not now", "Please don't.", "I don't think so.", "no need", "不用了", "不，谢谢", "嗯，不用了", "先不用",
      "不要", "没必要", "还是不要了"]
STOP = ["stop it", "Stop.", "no, stop", "yes, stop it", "cancel that", "forget it", "you can stop now", "never mind", "that's enough", "停下来吧",
        "算了", "别找了", "不用继续了", "取消吧", "好，停吧", "不，停"]
GO_ON = ["go on", "no, keep going", "yes, keep going", "don't stop", "No, don't stop!", "continue please", "I can wait", "take your time",
         "carry on", "继续吧", "别停", "不用停", "再等等", "不急，慢慢来", "好的 继续", "請繼續"]
NEITHER = ["", "   ", "hmm", "um", "Mm.", "maybe", "I don't know", "yes or no?", "Yes?", "嗯？", "好吗", "不知道", "随便", "都行", "please",
           "No, take me to the port.", "yes, and how far is it", "stop the music", "cancel the route", "what", "yesterday", "another one",
           "不要辣的", "停车场在哪", "好吃的餐厅", "对面那家", "是什么", "keep the change", "go to the casino", "no " * 20, "不要紧"]


@pytest.mark.parametrize("yes_means", ["go_on", "stop"])
def test_particles_answer_the_question_and_directives_say_what_to_do(yes_means):
    """"Yes" is yes to any question; "stop it" is yes only to "Shall I stop?"."""
    said = {text: yes_no(text, "en" if text.isascii() else "zh", yes_means=yes_means) for text in YES + NO + STOP + GO_ON}
    assert {t for t in YES + NO if said[t] is not (t in YES)} == set()
    assert {t for t in STOP + GO_ON if said[t] is not ((t in STOP) == (yes_means == "stop"))} == set()


@pytest.mark.parametrize("text", NEITHER)
def test_whatever_is_more_or_less_than_an_answer_is_none(text):
    """Hums, doubts, counter-questions and requests that begin like an answer."""
    assert yes_no(text, "en") is None and yes_no(text, "zh" if not text.isascii() else "en", yes_means="stop") is None


def test_the_topic_of_the_question_may_be_in_the_answer():
    """Its words only: the same sentence about something else is a request."""
    assert yes_no("go on with the chargers", "en", topic="the chargers") is True
    assert yes_no("go on with the chargers", "en", topic="the route") is None
    assert yes_no("继续找充电站", "zh", topic="充电站") is True


def test_a_hum_means_yes_in_chinese_only():
    """Recognisers write 嗯 as "mm"; in English that sound says nothing."""
    assert yes_no("mm", "zh") is True and yes_no("mm", "en") is None


@given(st.text(max_size=80), st.sampled_from(["en", "zh"]))
def test_no_text_breaks_it(text, lang):
    """Any text has a reading, and a question mark at the end is never an answer."""
    assert yes_no(text, lang) in (True, False, None)
    assert yes_no(text + "?", lang) is None
