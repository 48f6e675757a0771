"""Times and distances in words."""
import pytest

from skills_automotive.spoken import distance, listed, minutes


@pytest.mark.parametrize("seconds,en,zh", [
    (10, "less than a minute", "不到一分钟"), (59, "less than a minute", "不到一分钟"), (61, "about a minute", "大约一分钟"),
    (240, "about four minutes", "大约四分钟"), (125, "about two minutes", "大约两分钟"), (3600, "about an hour", "大约一小时"),
    (4200, "about an hour and ten minutes", "大约一小时十分钟"), (7260, "about two hours and one minute", "大约两小时一分钟"),
])
def test_minutes(seconds, en, zh):
    assert (minutes(seconds, "en"), minutes(seconds, "zh")) == (en, zh)


@pytest.mark.parametrize("metres,en,zh", [
    (3, "ten metres", "十米"), (84, "eighty metres", "八十米"), (230, "two hundred and fifty metres", "二百五十米"),
    (990, "one kilometre", "一公里"), (1000, "one kilometre", "一公里"), (1449, "one point four kilometres", "一点四公里"),
    (2000, "two kilometres", "两公里"), (213_400, "two hundred and thirteen kilometres", "二百一十三公里"),
])
def test_distance(metres, en, zh):
    assert (distance(metres, "en"), distance(metres, "zh")) == (en, zh)


def test_lists():
    assert listed(["a"], "en") == "a" and listed(["a", "b"], "en") == "a and b" and listed(["a", "b", "c"], "en") == "a, b and c"
    assert listed(["甲", "乙"], "zh") == "甲、乙"
