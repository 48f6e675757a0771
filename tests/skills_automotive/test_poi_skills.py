"""The places skills in conversation: what is said of a find, of further ones, of one of them, and where nothing is known."""
import json
import re

import pytest

from harness.execute.testing import MemoryBus, run_skill
from harness.host.errors import NotFound
from harness.host.providers import Point
from simulators.bench_poi import run as bench
from skills_automotive.navigation.skills import Go
from skills_automotive.poi.follow_up import Attribution, Call, Details, More, Next
from skills_automotive.poi.skills import SKILLS, Find
from skills_automotive.poi.synthetic import Roads, main, places as invented
from skills_automotive.poi.testing import StraightMaps, made_places
from skills_automotive.poi.travel import inside
from skills_automotive.poi.wish import understand
from venus_edge.errors import ConfigError
from venus_edge.paths import map_extract
from venus_edge.testing import VirtualClock

HERE = Point(43.735, 7.42)
NOON = 1796036400
"""Monday 2026-11-30, 12:00 in Monaco."""
CAR = {"Vehicle.CurrentLocation.Latitude": HERE.lat, "Vehicle.CurrentLocation.Longitude": HERE.lon}


def at(metres, east=0.0):
    return (HERE.lat + metres / 111_320, HERE.lon + east / 80_400)


TOWN = [
    (at(100), {"amenity": "restaurant", "name": "Shut", "cuisine": "sushi", "opening_hours": "18:00-23:00"}),
    (at(200), {"amenity": "restaurant", "name": "Riddle", "cuisine": "sushi"}),
    (at(300), {"amenity": "restaurant", "name": "Maki", "cuisine": "sushi", "opening_hours": "Mo-Su 11:00-21:30",
               "phone": "+377 99 10 20", "addr:housenumber": "12",
               "addr:street": "Rue Test", "wheelchair": "yes"}),
    (at(2500), {"amenity": "fuel", "name": "Near Fuel"}), (at(2000, 3000), {"amenity": "fuel", "name": "Far Fuel"}),
    (at(5000), {"tourism": "hotel", "name": "Grand Hotel"}),
    (at(5100), {"amenity": "parking", "fee": "no"}), (at(60), {"amenity": "parking", "fee": "yes"}),
]
GOAL = {"id": "n6", "name": "Grand Hotel", "said": {"en": "the Grand Hotel", "zh": "Grand Hotel"}, "kind": "hotel", "street": "",
        "lat": at(5000)[0], "lon": at(5000)[1]}


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    return made_places(tmp_path_factory.mktemp("town"), TOWN, VirtualClock(wall=NOON))


@pytest.fixture
def ask(town):
    """Runs one skill after another with one memory, as in a session."""
    class Session:
        memory, maps, places, bus = {}, StraightMaps(), town, MemoryBus(CAR)

        async def __call__(self, skill, lang="en", **arguments):
            outcome = await run_skill(skill, arguments, bus=self.bus, maps=self.maps, places=self.places, memory=self.memory, lang=lang)
            self.memory = json.loads(json.dumps(outcome.memory))  # what a session keeps is JSON
            assert not re.search(r"[{}]|\d|  |,,|，，|\.\.|。。", outcome.text), outcome.text
            return outcome

    return Session()


async def test_the_nearest_that_is_open_is_told_with_its_reason(ask):
    """The closed one is never offered, the unknown one is said to be nearer, and the end of the opening time is told."""
    outcome = await ask(Find, query="sushi near me open now")
    assert outcome.text == ("The nearest sushi restaurant that I'm sure of is Maki on Rue Test, less than a minute away, "
                            "and it's open until nine thirty in the evening. "
                            "A nearer one is closed. There's a nearer one, but I don't know its hours.")
    assert outcome.outcome == "sure_open" and outcome.result["nearer_closed"] == 1
    assert (await ask(Find, lang="zh", query="附近还开着的寿司店")).text == (
        "能确定的最近的寿司店是Rue Test上的Maki，车程不到一分钟，正在营业，营业到晚上九点半，更近的一家现在没有营业，还有一家更近，但营业时间不详。")


async def test_unknown_is_said_as_unknown(ask):
    """Without any place that is surely open or accessible the best guess is offered as a guess."""
    outcome = await ask(Find, query="riddle", open_now=True)
    assert outcome.outcome == "named_unsure" and outcome.text == "I found Riddle, less than a minute away. I don't know its hours."
    outcome = await ask(Find, query="petrol station", wheelchair=True, open_now=True)
    assert outcome.text == ("The nearest petrol station is Near Fuel, about five minutes away. "
                            "I don't know its hours or whether it's wheelchair accessible.")
    outcome = await ask(Find, lang="zh", query="加油站", wheelchair=True, open_now=True)
    assert outcome.text == "最近的加油站是Near Fuel，车程大约五分钟，不确定营业时间、有没有无障碍通道。"


async def test_what_was_asked_for_and_is_there_is_said(ask):
    assert (await ask(Find, query="sushi", wheelchair=True)).text.startswith("The nearest sushi restaurant that I'm sure of is Maki on Rue Test")
    outcome = await ask(Find, query="a free car park")
    assert outcome.text == "The nearest car park is about ten minutes away, free of charge."
    assert (await ask(Find, query="charger", plug="ccs")).text == "I found no charging station around here that has all that."


@pytest.mark.parametrize("arguments,text", [
    ({"query": "hotel", "within_minutes": 5}, "I found no hotel within five minutes."),
    ({"query": "hotel", "within_minutes": 1}, "I found no hotel within a minute."),
    ({"query": "cinema"}, "I couldn't find cinema around here."), ({"query": "a cinema open now"}, "I found no cinema that's open now."),
    ({"query": "hotel", "where": "along_route"}, "There's no route running. Where are we going?"),
])
async def test_why_nothing_was_found(ask, arguments, text):
    outcome = await ask(Find, **arguments)
    assert outcome.code == "not_found" and outcome.text == text


async def test_within_a_time_only_what_can_be_driven_to(ask):
    """Reachable by the isochrone and by the matrix; a place without a way is never offered."""
    assert (await ask(Find, query="hotel", within_minutes=11)).result["name"] == "Grand Hotel"
    ask.maps = StraightMaps(cut_off=[Point(*map(lambda v: round(v, 7), at(5000)))])
    assert (await ask(Find, query="hotel", within_minutes=11)).code == "not_found"


async def test_on_the_way_the_smallest_detour_wins(ask):
    """The station beside the way, though farther ahead; the other, three kilometres aside, is no place along the route."""
    ask.memory = {"destination": GOAL}
    outcome = await ask(Find, query="petrol station", where="along_route")
    assert outcome.text == "On our way, the best petrol station is Near Fuel, about five minutes away, hardly a detour."
    assert outcome.result["detour_s"] == pytest.approx(0, abs=1) and outcome.result["others"] == 0
    assert (await ask(Find, lang="zh", query="沿途的加油站")).text == "沿途最合适的加油站是Near Fuel，车程大约五分钟，几乎不用绕路。"
    ask.memory["destination"] = GOAL | {"lat": at(2000, 3000)[0] - 0.006, "lon": at(2000, 3000)[1]}
    outcome = await ask(Find, query="petrol station", where="along_route")
    assert outcome.result["name"] == "Far Fuel" and "a detour of about" in outcome.text and 60 < outcome.result["detour_s"] < 240


@pytest.mark.parametrize("where", ["at_destination", "near_destination"])
async def test_near_the_destination_counts_from_there(ask, where):
    """Not the car park beside the car; minutes are said to be from there. Both names of the value are taken."""
    ask.memory = {"destination": GOAL}
    outcome = await ask(Find, query="car park", where=where)
    assert outcome.text == "Near the Grand Hotel, the closest car park is less than a minute from there."
    assert ask.memory["offers"][0]["lat"] == pytest.approx(at(5100)[0])


async def test_without_driving_times_the_straight_line_is_told_as_such(ask):
    """Also with no maps at all; along a route the detour is said to be unknown."""
    ask.maps = StraightMaps(tells_times=False)
    assert (await ask(Find, query="hotel")).text == "The nearest hotel is Grand Hotel, about five kilometres away in a straight line."
    assert (await ask(Find, lang="zh", query="酒店")).text == "最近的酒店是Grand Hotel，直线距离大约五公里。"
    ask.memory["destination"] = GOAL
    assert (await ask(Find, query="petrol station", where="along_route")).text.endswith(
        "about two point five kilometres away in a straight line, though I can't tell the detour.")
    ask.maps = None
    assert (await ask(Find, query="hotel")).result["seconds"] is None
    assert (await ask(Find, query="sushi", within_minutes=1)).result["name"] == "Shut"
    assert (await ask(Find, query="hotel", within_minutes=5)).code == "not_found"


async def test_no_way_to_the_destination_is_said(ask):
    ask.maps = StraightMaps(cut_off=[Point(GOAL["lat"], GOAL["lon"])])
    ask.memory = {"destination": GOAL}
    assert (await ask(Find, query="petrol station", where="along_route")).text == "I can't find a way to the destination from here."
    with pytest.raises(NotFound):
        ask.maps.route(HERE, Point(GOAL["lat"], GOAL["lon"]))


async def test_further_ones_are_numbered_and_can_be_taken_up(ask):
    """The numbers of a list go on from what was told, so "the third one" means the same before and after."""
    await ask(Find, query="restaurant")
    assert ask.memory["told"] == 1 and [offer["name"] for offer in ask.memory["offers"]] == ["Shut", "Riddle", "Maki"]
    assert (await ask(Next)).text == "The next one is Riddle, less than a minute away."
    assert (await ask(More, lang="zh")).text == "还有：第三个，Rue Test上的Maki，车程不到一分钟。"
    assert (await ask(Next)).text == "That was the last one." and (await ask(More)).outcome == "none"
    assert (await ask(Details, which="the third one", what="address")).text == "Maki is at twelve Rue Test."
    ask.memory = {}
    assert (await ask(Next)).text == "What should I look for?"


async def test_details_tell_what_is_known_and_what_is_not(ask):
    await ask(Find, query="sushi")
    assert (await ask(Details, which="the last one")).text == (
        "Maki is a restaurant at twelve Rue Test. Today it's open from eleven in the morning to nine thirty in the evening, so it's open now. "
        "Its number is plus three seven seven, nine nine, one zero, two zero. The map also notes: with wheelchair access.")
    assert (await ask(Details, what="hours", which="Riddle")).text == "Riddle: I don't know its hours."
    assert (await ask(Details, lang="zh", which="第一个", what="hours")).text.startswith("Shut，今天的营业时间是晚上六点到晚上十一点，现在没有营业。")
    assert (await ask(Details, which="Riddle", what="phone")).text == "I have no phone number for Riddle."
    assert (await ask(Details, which="the ninth one")).text == "There weren't that many."
    assert (await ask(Details, which="moon base")).text == "I couldn't find moon base around here."
    ask.memory = {"destination": GOAL}
    assert (await ask(Details, which="it")).text.startswith("Grand Hotel is a hotel.")
    ask.memory = {}
    assert (await ask(Details, which="it")).text == "Which place do you mean?"


async def test_a_call_gives_the_number_and_never_claims_to_have_dialled(ask):
    """The host that has a phone finds the number to dial in the result."""
    await ask(Find, query="sushi")
    outcome = await ask(Call, which="the sushi place Maki")
    assert outcome.text == "I can't dial from here. The number of Maki is plus three seven seven, nine nine, one zero, two zero."
    assert outcome.result["dial"] == "tel:+377991020"
    assert (await ask(Call, which="the second one")).text == "I have no phone number for Riddle."


async def test_a_place_that_is_made_up_is_spoken_of_as_made_up(ask, tmp_path):
    """Details say so in both languages, its number is never to be dialled, and the credit says so."""
    ask.places = made_places(tmp_path, [(at(50), {"amenity": "cafe", "name": "云雀咖啡", "phone": "+86 21 0001", "synthetic": "yes"})],
                             VirtualClock(wall=NOON))
    await ask(Find, lang="zh", query="咖啡")
    assert (await ask(Details, lang="zh", which="它")).text.endswith("这是用于测试的虚构地点。")
    assert (await ask(Details, which="it", what="hours")).text.endswith("It's a made-up place for tests.")
    outcome = await ask(Call, which="it")
    assert outcome.outcome == "made_up" and outcome.result["dial"] == ""
    assert "made up" in (await ask(Attribution)).text and "虚构" in (await ask(Attribution, lang="zh")).text


async def test_the_credit_is_given_on_request(ask):
    outcome = await ask(Attribution)
    assert "OpenStreetMap contributors" in outcome.text and outcome.result["notice"] == "© OpenStreetMap contributors, ODbL 1.0"


async def test_what_was_found_can_be_driven_to(ask):
    """Navigation takes up the second one of a search by number."""
    from skills_automotive.navigation.skills import LATITUDE, LONGITUDE
    await ask(Find, query="restaurant")
    ask.bus = MemoryBus(CAR | {LATITUDE: 0.0, LONGITUDE: 0.0, "Vehicle.CurrentLocation.Heading": 0.0})
    await ask(Go, destination="the second one")
    assert ask.bus.values[LATITUDE] == pytest.approx(at(200)[0], abs=1e-6)


@pytest.mark.parametrize("skill", SKILLS, ids=lambda s: s.id)
def test_every_skill_has_examples_in_both_languages(skill):
    """Four to six each, valid as arguments, and every query among them is understood without a name to look up, museums apart."""
    for lang in ("en", "zh"):
        assert 4 <= len(skill.examples[lang]) <= 6
        for _, arguments in skill.examples[lang]:
            skill.Args.model_validate(arguments)
            query = arguments.get("query")
            assert not query or understand(query).kinds or "museum" in query


def test_a_point_is_inside_an_area_but_not_in_its_hole():
    maps = StraightMaps()
    area = maps.isochrone(HERE, metres=1000)
    assert inside(area, HERE) and inside(area, Point(*at(900))) and not inside(area, Point(*at(1100)))
    ring = area.polygons[0][0]
    hole = maps.isochrone(HERE, metres=500).polygons[0][0]
    assert not inside(type(area)(((ring, hole),)), HERE) and inside(type(area)(((ring, hole),)), Point(*at(700)))


def test_the_made_up_places_are_always_the_same(tmp_path):
    """Made again from the shipped file they give the shipped file; every place is marked and beside a junction of its street."""
    shipped, again = map_extract("shanghai"), tmp_path / "again.osm.pbf"
    assert main([str(shipped), str(again)]) == 0 and again.read_bytes() == shipped.read_bytes()
    junctions = Roads(shipped).junctions
    made = invented(junctions)
    assert len(made) > 200 and all(tags["synthetic"] == "yes" for _, tags in made) and shipped.stat().st_size < 300_000
    streets = {name for _, names in junctions for name in names}
    assert all(tags["addr:street"] in streets for _, tags in made)
    assert invented(junctions, seed=1) != made
    with pytest.raises(ValueError, match="no two named roads"):
        invented([])


@pytest.mark.parametrize("arguments,what", [(["--n", "3"], "--n"), (["--pbf", "nowhere.osm.pbf"], "--pbf")])
def test_the_bench_names_a_wrong_option(arguments, what):
    with pytest.raises(ConfigError, match=what):
        bench(arguments)


@pytest.mark.slow
def test_the_bench_measures_the_real_worker(capsys):
    """One line with all figures; every call succeeded."""
    assert bench(["--n", "20", "--json"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert line["worker_failed"] == 0 and line["worker_calls"] == 20 and line["found"] >= 1
    assert 0 < line["query_p50_ms"] < line["worker_p50_ms"] and line["index_monaco_s"] > 0 and "sushi" in line["answer"]
