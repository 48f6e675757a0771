"""What the planner reads out of words: numbers, spelled ids, dates and times, the mood of a sentence."""
import re
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.plan.lexicon import FILE, lexicon
from harness.plan.mood import mood
from harness.plan.numerals import numbers_said
from harness.plan.spelling import spelled
from harness.plan.text import asked, clean, wake
from harness.plan.times import times_said
from venus_edge.numbers import say_number


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 99_999))
def test_every_number_as_it_is_said_is_understood(n):
    """Said by the assistant's own voice in either language, alone in a sentence, it is found as one number with its place."""
    for lang, before, after in (("en", "about ", " metres away"), ("zh", "大约", "米")):
        said = say_number(n, lang)
        found = numbers_said(f"{before}{said}{after}")
        assert [f.value for f in found] == [n], (said, found)
        assert f"{before}{said}{after}"[found[0].start:found[0].end] == said


@pytest.mark.parametrize("text, values", [
    ("twenty-two point five", [22.5]), ("a degree and a half", [1.5]), ("two hundred and fifty", [250]), ("1,500 metres", [1500]),
    ("22,5 degrees", [22.5]),
    ("three and a quarter", [3.25]), ("a dozen eggs", [12]), ("两百五", [250]), ("三万二", [32000]), ("两个半", [2.5]), ("百分之五十", [50]), ("百分百", [100]),
    ("我们一起去", []), ("千万别开", []), ("大一点", []), ("the second one", [2, 1]), ("often a tenth-hand phone", [10])])
def test_large_halved_and_only_seeming_numbers(text, values):
    assert [n.value for n in numbers_said(text)] == values


def test_an_hour_is_also_sixty_minutes():
    """The schema decides which unit is wanted, so both readings are offered."""
    assert 60 in numbers_said("in one hour")[0].readings and 30 in numbers_said("half an hour")[0].readings and 90 in numbers_said("一个半小时")[0].readings


@pytest.mark.parametrize("text, chars", [
    ("order A 7 3 K please", "A73K"), ("double four oh", "440"), ("triple two nine", "2229"), ("forty-two nineteen", "4219"),
    ("B as in Bravo twenty", "B20"),
    ("H 8 dash 2 1 dash Y", "H821Y"), ("幺三八零零", "13800"), ("订单九杠四四七", "9447"), ("G for golf six", "G6"), ("number B2091", "B2091")])
def test_ids_are_joined_as_spelled(text, chars):
    assert chars in [run.chars for run in spelled(text)]


def test_an_article_is_no_character_of_an_id():
    """"a 7 eleven" is no A7; a capital letter, or one among other letters, is."""
    assert [run.chars for run in spelled("is there a 7 eleven")] == ["711"]
    assert [run.chars for run in spelled("parcel a 7 k")] == ["A7K"]


@pytest.mark.parametrize("text, said", [
    ("remind me tomorrow at nine to call", ["tomorrow", "nine"]), ("on the third of May", ["the third of May"]),
    ("half past seven", ["half past seven"]),
    ("in ten minutes", ["in ten minutes"]), ("next Tuesday at quarter to eight", ["next Tuesday", "quarter to eight"]),
    ("at seven thirty", ["seven thirty"]),
    ("this weekend", ["this weekend"]), ("in three quarters of an hour", ["in three quarters of an hour"]),
    ("明天晚上八点", ["明天", "晚上八点"]), ("下周二下午三点半", ["下周二", "下午三点半"]), ("二十分钟后", ["二十分钟后"]), ("五月二号", ["五月二号"]), ("锁一下周六见", ["周六"]),
    ("table for four", []), ("set it to twenty two degrees", [])])
def test_dates_and_times_stand_as_spoken(text, said):
    assert [t.of(text) for t in times_said(text, bare_hours=True)] == said


@pytest.mark.parametrize("prose, words", [
    ("Um, could you please open the window?", "open the window"), ("hey Venus, take take me home, thanks", "take me home"), ("帮我把窗户打开好吗", "把窗户打开"),
    ("请问附近有药店吗", "附近有药店吗"), ("call four four nine", "call four four nine")])
def test_politeness_fillers_and_stutters_are_no_part_of_a_wish(prose, words):
    assert asked(wake(clean(prose))[0]) == words


@pytest.mark.parametrize("text, kind", [
    ("take me home", "command"), ("how far is it", "question"), ("I'd like some jazz", "wish"), ("it's too hot in here", "complaint"),
    ("he wants to go to Spain", "statement"), ("we ran out of diapers find a drugstore", "command"), ("fan at twenty", "fragment"),
    ("打开窗户", "command"), ("我想听音乐", "wish"), ("外面冷吗", "question"), ("他昨天把车卖了", "statement")])
def test_the_mood_of_a_sentence(text, kind):
    """Statements are what people say to each other; a command anywhere in the sentence outweighs what stands before it."""
    assert mood(text) == kind


def test_every_phrase_of_the_lexicon_is_found_as_its_concept():
    """No phrase is hidden by a longer one or lost by the stemmer, in either language."""
    with open(FILE, "rb") as f:
        table = tomllib.load(f)["concept"]
    phrases = [(f"#{concept}", phrase.strip()) for concept, line in table.items() for phrase in re.split("[,|]", line) if phrase.strip()]
    assert not [(c, p) for c, p in phrases if c not in {h.name for h in lexicon().hits(p)}] and len(phrases) > 1000


def test_plain_words_are_told_apart_by_their_stems():
    """Latin words by a crude stem, Chinese ones that no concept holds by neighbouring characters."""
    def names(text):
        return {h.name for h in lexicon().hits(text)}
    assert names("garages") & names("the garage") and names("车库在哪") & names("打开车库")
