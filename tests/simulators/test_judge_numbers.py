"""Numbers are judged exactly, however they are written."""
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulators.judge_numbers import has_number, numbers_in

_UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen " \
         "eighteen nineteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def words(n: int) -> str:
    if n < 20:
        return _UNITS[n]
    if n < 100:
        return _TENS[n // 10 - 2] + (f"-{_UNITS[n % 10]}" if n % 10 else "")
    if n < 1000:
        return f"{_UNITS[n // 100]} hundred" + (f" and {words(n % 100)}" if n % 100 else "")
    return f"{words(n // 1000)} thousand" + (f" {words(n % 1000)}" if n % 1000 else "")


@given(st.integers(0, 999_999))
def test_words_and_digits_are_the_same_number(n):
    """Every whole number below a million reads the same from words, from digits and from digits with separators."""
    for text in (words(n), str(n), f"{n:,}"):
        assert numbers_in(f"it is {text} metres") == [n]


@pytest.mark.parametrize("text, numbers", [
    ("Set to 22.5 degrees", [22.5]),
    ("one point two five kilometres", [1.25]),
    ("It's 12:40", [12, 40]),
    ("minus five, then -6", [-5, -6]),
    ("twenty-two and a half", [22.5]),
    ("a hundred and two", [102]),
    ("two three", [2, 3]),
    ("five-six", [5, 6]),
    ("take the 2nd street", []),
    ("300m and 40%", [300, 40]),
    ("no number here", []),
])
def test_numbers_as_recognisers_write_them(text, numbers):
    assert numbers_in(text) == numbers


def test_a_near_number_is_another_number():
    assert has_number("22 degrees", 22) and not has_number("22 degrees", 2) and not has_number("220 degrees", 22)
