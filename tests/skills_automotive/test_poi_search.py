"""The search over maps made for the purpose: attributes that are told, denied or unknown, hours, corridors, brands, Chinese."""
import pytest

from harness.host.errors import InvalidArgs
from harness.host.providers import Point, Wants
from skills_automotive.poi.corridor import Corridor
from skills_automotive.poi.entry import Entry
from skills_automotive.poi.index import build
from skills_automotive.poi.places import SqlitePlaces
from skills_automotive.poi.testing import made_places, write_extract
from venus_edge.paths import map_extract
from venus_edge.testing import VirtualClock

HERE = Point(43.735, 7.42)
NOON = 1796036400
"""Monday 2026-11-30, 12:00 in Monaco and 19:00 in Shanghai."""
SHANGHAI = Point(31.231, 121.475)


def at(metres, east=0.0):
    return (HERE.lat + metres / 111_320, HERE.lon + east / 80_400)


@pytest.fixture
def chargers(tmp_path):
    """Four, each 100 m farther: nothing known; a slow type 2; a fast CCS that costs; a fast CCS in a private yard."""
    station = {"amenity": "charging_station"}
    return made_places(tmp_path, [
        (at(100), station | {"name": "Riddle"}),
        (at(200), station | {"name": "Slow", "socket:type2": "2", "socket:type2:output": "11 kW", "fee": "no"}),
        (at(300), station | {"name": "Fast", "socket:type2_combo": "4", "socket:type2_combo:output": "150 kW", "fee": "yes",
                             "wheelchair": "yes"}),
        (at(400), station | {"name": "Yard", "socket:type2_combo": "4", "access": "private"})], VirtualClock(wall=NOON))


@pytest.mark.parametrize("wants,names,unsure", [
    (Wants(), ["Riddle", "Slow", "Fast"], ()), (Wants(plug="ccs"), ["Riddle", "Fast"], ("plug",)),
    (Wants(min_power_kw=50), ["Riddle", "Fast"], ("power",)),
    (Wants(needs=frozenset({"free"})), ["Riddle", "Slow"], ("free",)), (Wants(plug="type2", min_power_kw=22), ["Riddle"], ("plug", "power")),
    (Wants(needs=frozenset({"wheelchair"})), ["Riddle", "Slow", "Fast"], ("wheelchair",)),
])
def test_what_is_lacking_is_left_out_and_what_is_unknown_is_marked(chargers, wants, names, unsure):
    """Never guessed: the first has no tags, so everything wanted of it is unsure; the last is private and not on the map at all."""
    found = chargers.search(near=HERE, category="charger", wants=wants)
    assert [place.name for place in found] == names
    assert found[0].unsure == unsure
    assert all(not place.unsure for place in found[1:]) or wants.needs == {"wheelchair"}


def test_closed_ones_are_counted_where_a_farther_one_is_told(tmp_path):
    """Two nearer ones are closed, one nearer has no hours: the open one says so of the closed, and knows when it closes."""
    cafe = {"amenity": "cafe"}
    places = made_places(tmp_path, [
        (at(50), cafe | {"name": "Night", "opening_hours": "20:00-02:00"}),
        (at(100), cafe | {"name": "Sunday", "opening_hours": "Su 10:00-18:00"}),
        (at(150), cafe | {"name": "Riddle"}), (at(200), cafe | {"name": "Odd", "opening_hours": "when I like"}),
        (at(300), cafe | {"name": "Day", "opening_hours": "Mo-Sa 08:00-18:30"})], VirtualClock(wall=NOON))
    found = {place.name: place for place in places.search(near=HERE, category="cafe", wants=Wants(open_now=True))}
    assert list(found) == ["Riddle", "Odd", "Day"]
    assert found["Day"].nearer_closed == 2 and found["Riddle"].nearer_closed == 2 and found["Odd"].unsure == ("hours",)
    assert (found["Day"].open_now, found["Day"].changes_at, found["Day"].changes_in_s) == (True, "2026-11-30T18:30:00+01:00", 6.5 * 3600)
    assert [place.open_now for place in places.search(near=HERE, category="cafe")] == [False, False, None, None, True]
    assert places.get(found["Day"].id).hours_today == (("2026-11-30T08:00:00+01:00", "2026-11-30T18:30:00+01:00"),)
    assert places.get(found["Odd"].id).hours_today is None and places.get("n999") is None


def test_the_nearest_are_found_however_far_the_boxes_must_grow(tmp_path):
    """A limit of three over places from 200 m to 7 km: the same three as a search that reads everything."""
    banks = [(at(north), {"amenity": "bank", "name": f"B{north}"}) for north in (7000, 200, 3300, 1200, 5000)]
    places = made_places(tmp_path, banks, VirtualClock(wall=NOON))
    assert [p.name for p in places.search(near=HERE, category="bank", limit=3, radius_m=8000)] == ["B200", "B1200", "B3300"]
    assert [p.name for p in places.search(near=HERE, category="bank", limit=9, radius_m=4000)] == ["B200", "B1200", "B3300"]


def test_cuisine_and_brand_must_be_told(tmp_path):
    """A restaurant of no known cuisine is no answer to "sushi"; a brand is found by its tag, its name, or the other language's spelling."""
    places = made_places(tmp_path, [
        (at(50), {"amenity": "restaurant", "name": "Plain"}), (at(100), {"amenity": "restaurant", "name": "Maki", "cuisine": "Sushi; japanese"}),
        (at(150), {"amenity": "cafe", "name": "星巴克"}),
        (at(200), {"amenity": "fuel", "name": "Station du Port", "brand": "Shell"})], VirtualClock(wall=NOON))
    assert [p.name for p in places.search(near=HERE, category="restaurant|fast_food", wants=Wants(cuisine=("sushi",)))] == ["Maki"]
    assert [p.name for p in places.search(near=HERE, wants=Wants(brand=("Starbucks", "星巴克")))] == ["星巴克"]
    assert [p.name for p in places.search(near=HERE, category="fuel", wants=Wants(brand=("Shell",)))] == ["Station du Port"]
    assert places.search(near=HERE, category="cafe", wants=Wants(brand=("Shell",))) == []


def test_along_a_line_only_the_band_counts_and_the_order_is_the_lines(tmp_path):
    """Of places beside a bent road those within 300 m, in the order in which they are passed, wherever the car is."""
    fuel = {"amenity": "fuel"}
    line = [at(0), at(2000), at(2000, 2000)]
    places = made_places(tmp_path, [(at(1900, 1500), fuel | {"name": "Gamma"}), (at(500, 200), fuel | {"name": "Alpha"}),
                                    (at(1800, -250), fuel | {"name": "Beta"}),
                                    (at(1000, 900), fuel | {"name": "off"}), (at(-900), fuel | {"name": "behind"})], VirtualClock(wall=NOON))
    assert [p.name for p in places.search(near=HERE, category="fuel", radius_m=300, along=line)] == ["Alpha", "Beta", "Gamma"]
    assert [p.name for p in places.search(near=HERE, name="Gamma", radius_m=300, along=line)] == ["Gamma"]
    one = Corridor([at(0)], 300)
    assert one.off(Entry("n1", "fuel", "", *at(100), "", 0.0)) == pytest.approx(100, abs=1)


def test_a_car_park_close_by_counts_as_parking(tmp_path):
    """None near the other restaurant is no proof that one can't park there: unknown."""
    table = {"amenity": "restaurant"}
    places = made_places(tmp_path, [(at(0), table | {"name": "With"}), (at(100), {"amenity": "parking"}),
                                    (at(3000), table | {"name": "Without"})], VirtualClock(wall=NOON))
    found = places.search(near=HERE, category="restaurant", wants=Wants(needs=frozenset({"parking"})))
    assert [(p.name, p.unsure) for p in found] == [("With", ()), ("Without", ("parking",))]


@pytest.mark.parametrize("wants,field", [(Wants(needs=frozenset({"magic"})), "needs"), (Wants(plug="usb"), "plug")])
def test_what_no_map_tells_is_refused_by_name(chargers, wants, field):
    with pytest.raises(InvalidArgs, match=field):
        chargers.search(near=HERE, category="charger", wants=wants)


def test_several_kinds_at_once_and_unknown_ones_by_name(chargers):
    assert len(chargers.search(near=HERE, category="charging_station|fuel")) == 3
    with pytest.raises(InvalidArgs, match="unicorn"):
        chargers.search(near=HERE, category="charging_station|unicorn")


def test_whose_data_it_is(chargers):
    credit = chargers.attribution()
    assert (credit.credit, credit.licence, credit.synthetic) == ("© OpenStreetMap contributors", "ODbL 1.0", False)


@pytest.fixture(scope="module")
def shanghai(tmp_path_factory):
    index = tmp_path_factory.mktemp("shanghai") / "places.sqlite"
    build(map_extract("shanghai"), index)
    return SqlitePlaces(index.read_bytes(), VirtualClock(wall=NOON))


@pytest.mark.parametrize("heard,name", [
    ("云雀咖啡", "云雀咖啡"), ("云雀", "云雀咖啡"), ("康宁药房", "康宁大药房"), ("青椒小园川菜馆", "青椒小院川菜馆"), ("金桥汇", "金桥汇购物中心"), ("南京西路", "南京西路"),
    ("蜀韵楼餐厅", "蜀韵楼"), ("yun que ka fei", "云雀咖啡"), ("yunque kafei", "云雀咖啡"), ("Yúnquè Kāfēi", "云雀咖啡"), ("Skylark Coffee", "云雀咖啡"),
])
def test_chinese_names_by_character_by_pinyin_and_in_english(shanghai, heard, name):
    """A part of the name, one wrong character of four or more, or the name's pinyin where the map tells it."""
    assert shanghai.search(near=SHANGHAI, name=heard)[0].name == name


@pytest.mark.parametrize("heard", ["天安门", "云", "小", "必胜客", "蜀山楼", "百货大楼", "tian an men"])
def test_chinese_that_is_not_there_is_not_found(shanghai, heard):
    """One character of three is another name, and one character alone is no name."""
    assert shanghai.search(near=SHANGHAI, name=heard) == []


def test_every_place_over_the_shanghai_roads_is_marked_as_made_up(shanghai):
    """In the data and in what the provider says of it; the roads are not."""
    found = [place for kind in ("restaurant", "cafe", "charging_station", "parking", "pharmacy", "hotel")
             for place in shanghai.search(near=SHANGHAI, category=kind, limit=99)]
    assert len(found) > 80 and all(place.synthetic and place.tags["synthetic"] == "yes" for place in found)
    assert all(place.phone == "" or place.phone.startswith("+86 21 0") for place in found)
    assert shanghai.attribution().synthetic and not shanghai.search(near=SHANGHAI, name="福州路")[0].synthetic


def test_an_index_reports_how_far_it_is(tmp_path):
    """The share never falls and ends at one; a map without any place is no error."""
    seen = []
    counts = build(map_extract(), tmp_path / "a.sqlite", lambda share, objects: seen.append((share, objects)))
    shares = [share for share, _ in seen if share is not None]
    assert shares == sorted(shares) and seen[-1][0] == 1.0 and seen[-1][1] > 5000 and counts["places"] > 900
    empty = write_extract(tmp_path / "empty.osm.pbf", [((43.7, 7.4), {"natural": "tree"})])
    assert build(empty, tmp_path / "b.sqlite") == {"places": 0, "named": 0, "streets": 0, "addresses": 0}
