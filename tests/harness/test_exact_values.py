"""Exact values: a number in the arguments must be among the user's words."""
import pytest

from harness.values import free_text, numbers_in, unsaid_values, values_in_words

WORDS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
         "eighteen nineteen").split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def english(n):
    if n == 100:
        return "a hundred"
    return WORDS[n] if n < 20 else TENS[n // 10 - 2] + (f"-{WORDS[n % 10]}" if n % 10 else "")


def chinese(n):
    digits = "零一二三四五六七八九"
    if n == 100:
        return "一百"
    tens, units = divmod(n, 10)
    return ((digits[tens] if tens > 1 else "") + "十" if tens else "") + (digits[units] if units or not tens else "")


@pytest.mark.parametrize("n", range(101))
def test_every_number_to_a_hundred_is_understood(n):
    """As digits, English and Chinese words, alone, whatever stands around it."""
    assert numbers_in(f"please set it to {english(n)} degrees") == {n}
    assert numbers_in(f"set it to {n}°") == numbers_in(f"设为{chinese(n)}度") == {n}


@pytest.mark.parametrize("prose, said", [
    ("twenty-two point five degrees", {22.5}), ("22.5", {22.5}), ("22,5 Grad", {22.5}), ("twenty one and a half", {21.5}),
    ("二十二点五度", {22.5}), ("二十二度半", {22, 0.5}), ("halfway", {0.5, 50}), ("twenty, no, twenty-one", {20, 21}),
    ("fifty percent", {50}), ("one oh five", {1, 5}), ("often attend someone", set()), ("", set())])
def test_decimals_halves_and_words_that_only_look_like_numbers(prose, said):
    assert numbers_in(prose) >= said and (said or not numbers_in(prose))


def test_only_numbers_are_compared_and_derived_ones_are_exempt():
    """Booleans, words and enums pass; digits inside a string, nested values and signs are looked at."""
    assert values_in_words({"open": True, "zone": "driver", "note": None}, "open it")
    assert values_in_words({"delta": -2.0}, "two degrees cooler")
    assert unsaid_values({"level": 3, "name": "Route 7", "list": [{"n": 4}]}, "three") == ("name", "list")
    assert unsaid_values({"position": 0, "level": 9}, "close it", derived={"position"}) == ("level",)
    assert values_in_words({"position": 0, "level": 9}, "close it", derived={"*"})
    assert not values_in_words({"celsius": 22}, "twenty-one degrees")


@pytest.mark.parametrize("prose, said", [
    ("two hundred and fifty euros", 250), ("three thousand five hundred", 3500), ("一千二百", 1200), ("三万五", 35000), ("in one hour", 60),
    ("a degree and a half", 1.5), ("百分之五十", 50)])
def test_large_numbers_and_other_readings_of_the_same_words_count_as_said(prose, said):
    assert values_in_words({"x": said}, prose) and not values_in_words({"x": said + 7}, prose)


@pytest.mark.parametrize("prose, value", [
    ("where is order A 7 3 K", "A73K"), ("parcel double nine three oh six", "99306"), ("call oh one two three", "0123"), ("订单九杠四四七", "9447"),
    ("number B2091 please", "B2091")])
def test_an_id_is_said_when_it_was_spelled(prose, value):
    """Joined from the characters spoken; another one is not."""
    assert values_in_words({"id": value}, prose) and not values_in_words({"id": value[:-1] + "5" + value[-1]}, prose)


def test_names_and_texts_are_compared_where_asked_for():
    """Every word, or Chinese character, must have been said, now or before; articles, case and the way a number is said are free."""
    wanted = {"recipient": "Paula", "text": "I'm late"}
    assert values_in_words(wanted, "tell Paul I'm late")
    assert unsaid_values(wanted, "tell Paul I'm late", words=("recipient", "text")) == ("recipient",)
    assert values_in_words(wanted, "tell her I'm late", words=("recipient", "text"), known=("call Paula",))
    assert values_in_words({"to": "the 7 Rue Blanche"}, "go to seven rue blanche", words=("to",))
    assert values_in_words({"when": "下周二"}, "下周二提醒我", words=("when",)) and not values_in_words({"when": "下周三"}, "下周二提醒我", words=("when",))
    assert values_in_words({"when": "tomorrow"}, "call him", words=("when",), derived=("when",))


def test_free_text_is_what_a_schema_leaves_to_the_user():
    schema = {"properties": {"query": {"type": "string"}, "zone": {"type": "string", "enum": ["driver"]}, "level": {"type": "integer"},
                             "note": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}
    assert free_text(schema) == {"query", "note"}
