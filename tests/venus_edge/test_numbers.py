"""Numbers in words."""
import pytest

from venus_edge.numbers import say_number


@pytest.mark.parametrize("value,en,zh", [
    (0, "zero", "零"), (13, "thirteen", "十三"), (20, "twenty", "二十"), (22.5, "twenty-two point five", "二十二点五"),
    (100, "one hundred", "一百"), (101, "one hundred and one", "一百零一"), (115, "one hundred and fifteen", "一百一十五"),
    (1005, "one thousand and five", "一千零五"), (1234, "one thousand two hundred and thirty-four", "一千二百三十四"),
    (-3, "minus three", "负三"), (0.04, "zero", "零"), (-0.04, "zero", "零"), (19.96, "twenty", "二十"), (10_010, "ten thousand and ten", "一万零一十"),
])
def test_numbers_in_words(value, en, zh):
    assert (say_number(value), say_number(value, "zh")) == (en, zh)


@pytest.mark.parametrize("value", [1_000_000, -1e9, float("inf"), float("nan")])
def test_what_can_not_be_said_is_refused(value):
    with pytest.raises(ValueError, match="range"):
        say_number(value)
