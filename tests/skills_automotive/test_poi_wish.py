"""Requests taken apart: what kind of place, what it must offer, where; and how hours and numbers are spoken."""
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skills_automotive.poi import hours, said
from skills_automotive.poi.attributes import NEEDS, plugs, power_kw
from skills_automotive.poi.categories import BY_NAME
from skills_automotive.poi.offers import offered, ordinal
from skills_automotive.poi.wish import understand
from skills_automotive.poi.zones import locate

MONACO = (43.735, 7.42)
NOON = 1796036400
"""2026-11-30 12:00 in Monaco, a Monday; 19:00 in Shanghai."""


@pytest.mark.parametrize("words,kinds,wanted", [
    ("sushi near me open now", ("restaurant", "fast_food"), {"open_now": True, "cuisine": ("sushi",)}),
    ("a free underground car park", ("parking",), {"needs": frozenset({"free", "covered"})}),
    ("a fast charger with CCS", ("charging_station",), {"plug": "ccs", "min_power_kw": 50.0}),
    ("150 kW charging station", ("charging_station",), {"min_power_kw": 150.0}),
    ("pizza place with a terrace", ("restaurant", "fast_food"), {"cuisine": ("pizza", "italian_pizza"), "needs": frozenset({"outdoor"})}),
    ("wheelchair accessible toilet", ("toilets",), {"needs": frozenset({"wheelchair"})}),
    ("something vegan", ("restaurant", "fast_food"), {"needs": frozenset({"vegan"})}),
    ("a supermarket that's still open", ("supermarket",), {"open_now": True}),
    ("underground station", ("metro",), {}),
    ("附近能停车的川菜馆", ("restaurant", "fast_food"), {"cuisine": ("sichuan",), "needs": frozenset({"parking"})}),
    ("至少100千瓦的充电桩", ("charging_station",), {"min_power_kw": 100.0}),
    ("还开着的药店", ("pharmacy",), {"open_now": True}),
    ("免费的地下停车场", ("parking",), {"needs": frozenset({"free", "covered"})}),
    ("快充站", ("charging_station",), {"min_power_kw": 50.0}),
    ("有无线网的咖啡店", ("cafe",), {"needs": frozenset({"wifi"})}),
    ("帮我找家药店", ("pharmacy",), {}),
])
def test_what_is_wanted_is_taken_out_of_the_words(words, kinds, wanted):
    """Kind, cuisine and attributes are all found, and nothing is wanted that wasn't said."""
    wish = understand(words)
    assert wish.kinds == kinds and not wish.name
    assert {key: value for key, value in vars(wish.wants).items() if value} == wanted


@pytest.mark.parametrize("words", ["Planet Sushi", "casino supermarket", "the Japanese garden", "Rue Grimaldi", "外婆家", "Free Spirit Shop"])
def test_a_name_stays_a_name_as_it_was_said(words):
    wish = understand(words)
    assert wish.name == words and not wish.kinds


@pytest.mark.parametrize("words,where,kind", [
    ("a petrol station on the way", "along_route", "fuel"), ("沿途的加油站", "along_route", "fuel"),
    ("car park near my destination", "at_destination", "parking"),
    ("目的地附近的酒店", "at_destination", "hotel"), ("a hotel", None, "hotel"),
])
def test_where_may_be_said_in_the_words(words, where, kind):
    wish = understand(words)
    assert (wish.where, wish.kind.name) == (where, kind)


@pytest.mark.parametrize("words,spelling,kinds", [("Starbucks", "星巴克", ()), ("星巴克", "Starbucks", ()), ("a Shell petrol station", "壳牌", ("fuel",)),
                                                  ("特斯拉充电站", "Tesla", ("charging_station",))])
def test_a_brand_is_known_in_both_languages(words, spelling, kinds):
    wish = understand(words)
    assert spelling in wish.wants.brand and wish.kinds == kinds and not wish.name


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
def test_any_words_are_a_wish(words):
    """Nothing raises, and what has no kind, food or brand is a name."""
    wish = understand(words)
    assert set(wish.kinds) <= set(BY_NAME) and wish.wants.needs <= set(NEEDS)
    assert wish.kinds or wish.wants.brand or wish.name == words


@pytest.mark.parametrize("words,index", [("it", 0), ("the second one", 1), ("second one", 1), ("the third place", 2),
                                         ("number four", 3), ("number 4", 3), ("four", None), ("the last one", -1),
                                         ("第二个", 1), ("第三家", 2), ("那家", 0), ("最后一个", -1), ("Planet Sushi", None), ("第二食堂", None)])
def test_ordinals_in_both_languages(words, index):
    assert ordinal(words) == index


def test_what_was_offered_is_known_by_number_name_and_kind():
    offers = [{"name": "Planet Sushi", "said": {"en": "Planet Sushi"}, "kind": "restaurant"},
              {"name": "云雀咖啡", "said": {"zh": "云雀咖啡"}, "kind": "cafe"}]
    memory = {"offers": offers}
    assert offered(memory, "the second one") is offers[1] and offered(memory, "the sushi planet") is offers[0]
    assert offered(memory, "云雀") is offers[1] and offered(memory, "the cafe") is offers[1]
    assert offered(memory, "the casino") is None and offered({}, "it") is None
    with pytest.raises(LookupError):
        offered(memory, "第三个")


def _at(text, lat, lon):
    return hours.parse(text, lat, lon, *locate(lat, lon))


@pytest.mark.parametrize("point,zone,country", [((43.735, 7.42), "Europe/Monaco", "MC"), ((43.742, 7.40), "Europe/Paris", "FR"),
                                                ((42.507, 1.521), "Europe/Andorra", "AD"),
                                                ((31.23, 121.47), "Asia/Shanghai", "CN")])
def test_a_point_has_its_own_time_and_holidays(point, zone, country):
    """Also across a border that runs through a town."""
    assert locate(*point) == (zone, country)


def test_hours_know_holidays_of_their_country_and_what_they_do_not_know():
    """Monaco's national day closes what is closed on holidays; a text without grammar is unknown, never closed."""
    national_day, day_after = NOON - 11 * 86_400, NOON - 10 * 86_400  # 2026-11-19 and 20
    text = "Mo-Su 08:00-20:00; PH off"
    shop, abroad = _at(text, *MONACO), _at(text, 31.23, 121.47)
    assert hours.state(shop, national_day)[0] is False and hours.today(shop, national_day) == ()
    assert hours.state(shop, day_after)[0] is True and hours.state(abroad, national_day)[0] is True
    assert hours.state(abroad, NOON - 60 * 86_400)[0] is False  # 1 October
    assert _at("whenever the owner likes", *MONACO) is None and hours.state(None, NOON) == (None, "", None)


def test_hours_are_told_in_the_places_own_time():
    """The same text closes at its own evening; the seconds to the change are the same wherever they are asked."""
    text = "Mo-Su 09:00-21:30"
    for lat, lon, zone, left in ((*MONACO, "+01:00", 9.5), (31.2, 121.5, "+08:00", 2.5)):
        opened, change, in_s = hours.state(_at(text, lat, lon), NOON)
        assert opened is True and change == f"2026-11-30T21:30:00{zone}" and in_s == left * 3600
    assert hours.state(_at("24/7", *MONACO), NOON) == (True, "", None)


@pytest.mark.parametrize("clock,en,zh", [("09:30", "nine thirty in the morning", "早上九点半"), ("12:00", "noon", "中午十二点"),
                                         ("00:00", "midnight", "零点"),
                                         ("14:05", "two oh five in the afternoon", "下午两点零五分"),
                                         ("21:45", "nine forty-five in the evening", "晚上九点四十五分"),
                                         ("23:00", "eleven at night", "晚上十一点")])
def test_times_of_day_are_spoken_in_words(clock, en, zh):
    assert (hours.spoken_time(f"2026-11-30T{clock}:00+01:00", "en"), hours.spoken_time(f"2026-11-30T{clock}:00+01:00", "zh")) == (en, zh)


def test_phone_numbers_are_read_digit_by_digit():
    assert said.number("+377 99 10", "en") == "plus three seven seven, nine nine, one zero"
    assert said.number("+377 99 10", "zh") == "加三七七，九九，幺零"
    assert said.number("+37799101010", "en").count(",") == 3 and said.number("", "en") == ""


@pytest.mark.parametrize("tags,found,power", [
    ({}, None, None), ({"socket:type2": "2", "socket:type2:output": "22 kW"}, ["type2"], 22.0),
    ({"socket:type2_combo": "1", "charging_station:output": "150 kW"}, ["ccs"], 150.0),
    ({"socket:chademo": "0", "socket:gb_dc": "4", "socket:gb_dc:output": "60000"}, ["gbt"], 60.0), ({"socket:type2": "no"}, [], None),
])
def test_plugs_and_power_are_what_the_map_tells(tags, found, power):
    """No socket tag at all is unknown; a socket said not to be there isn't there; watts are read as watts."""
    assert plugs(tags) == found and power_kw(tags) == power
