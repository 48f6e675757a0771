"""The search over the real places of Monaco: names as a recogniser hears them, kinds, hours."""
import sqlite3
import subprocess
import sys

import pytest

from harness.host.errors import InvalidArgs, Unavailable
from harness.host.providers import Point
from skills_automotive.poi.categories import KINDS, kind_of, of_tags, phrase
from skills_automotive.poi.index import build
from skills_automotive.poi.places import SqlitePlaces, open_places
from venus_edge.paths import map_extract, root

HEARD = {
    "casino": "Casino de Monte Carlo", "the casino": "Casino de Monte Carlo", "Monte Carlo casino": "Casino de Monte Carlo",
    "casino supermarket": "Casino", "the opera": "Opéra de Monaco", "Sun Casino": "Sun Casino",
    "Monte Carlo station": "Monaco - Monte Carlo", "train station": "Monaco - Monte Carlo", "Monaco station": "Monaco - Monte Carlo",
    "oceanographic museum": "Musée Océanographique", "the oceanography museum": "Musée Océanographique",
    "Oceanographic Museum of Monaco": "Musée Océanographique", "the palace": "Palais princier de Monaco",
    "Prince's Palace": "Palais princier de Monaco", "the cathedral": "Cathédrale Notre-Dame-Immaculée",
    "Place d'Armes": "Place d'Armes", "Plas darm": "Place d'Armes", "Larvotto beach": "Plage Larvotto", "Lavoto beach": "Plage Larvotto",
    "Grimaldi Forum": "Grimaldi Forum", "Hotel de Paris": "Hôtel de Paris", "the Hotel Hermitage": "Hermitage",
    "cafe de pari": "Café de Paris", "exotic garden": "Jardin Exotique", "the Japanese garden": "Jardin Japonais",
    "Louis the second stadium": "Stade Louis-II", "the stadium": "Stade Louis-II",
    "Princess Grace hospital": "Centre hospitalier Princesse Grace", "Avenue Albert the second": "Avenue Albert II",
    "Albert the second avenue": "Avenue Albert II", "Boulevard Albert the first": "Boulevard Albert 1er", "Rue Grimaldi": "Rue Grimaldi",
    "boulevard de moulin": "Boulevard des Moulins", "Avenue Dostend": "Avenue d'Ostende", "Avenue Princess Grace": "Avenue Princesse Grace",
    "Fairmont Monte Carlo": "Fairmont", "Stars and Bars": "Stars ’n’ Bars", "Port Hercule": "Port Hercule de Monaco",
    "Hercules port": "Port Hercule de Monaco", "Saint Devote church": "Chapelle Sainte-Dévote", "Buddha bar": "Buddha-Bar",
    "12 Avenue des Spélugues": "12 Avenue des Spélugues", "Princess Grace rose garden": "Roseraie Princesse Grace",
    "Metropole shopping centre": "Le Métropole", "nikki beach": "Nikki Beach Monte Carlo", "the town hall": "Mairie de Monaco",
    "Condamine market": "Marché de la Condamine", "Planet sushi": "Planet Sushi", "Meridian beach plaza": "Le Méridien Beach Plaza",
    "Place du Casino": "Place du Casino", "the heliport": "Héliport de Monaco", "Society General": "Société Générale",
}
UNKNOWN = ("Eiffel Tower", "the moon base", "pizza planet", "airport", "Gare du Nord", "Buckingham Palace", "Times Square", "Ikea",
           "Disneyland", "my office in Berlin", "Zurich", "London", "Rue de Rivoli", "five guys", "banana", "blah", "the Louvre",
           "Nice airport", "Walmart", "toy museum")


@pytest.mark.parametrize("heard", HEARD)
def test_a_name_is_found_as_it_was_heard(places, here, heard):
    """English words, French words by ear, small words more or less, numerals: the first answer is the place that was meant."""
    assert places.search(near=here, name=heard)[0].name == HEARD[heard]


@pytest.mark.parametrize("heard", UNKNOWN)
def test_what_is_not_there_is_not_found(places, here, heard):
    """Better no answer than a wrong one: names that Monaco doesn't have give nothing."""
    assert places.search(near=here, name=heard) == []


def test_the_casino_is_no_supermarket(places, here):
    """"casino" alone means the kind, even with a supermarket of exactly that name next door."""
    supermarket = places.search(near=here, name="casino supermarket")[0]
    assert supermarket.category == "supermarket"
    assert places.search(near=supermarket.point, name="casino")[0].category == "casino"


@pytest.mark.parametrize("words,kind", [
    ("charging station", "charging_station"), ("a charger nearby", "charging_station"), ("car parks", "parking"), ("parking", "parking"),
    ("gas station", "fuel"), ("petrol", "fuel"), ("pharmacies", "pharmacy"), ("a chemist", "pharmacy"), ("coffee shop", "cafe"),
    ("café", "cafe"), ("cash machine", "atm"), ("public toilet", "toilets"), ("the police", "police"), ("充电站", "charging_station"),
    ("药店", "pharmacy"), ("supermarket", "supermarket"), ("hotel", "hotel"), ("beaches", "beach"), ("bank", "bank"),
])
def test_kinds_have_many_names(words, kind):
    assert kind_of(words).name == kind


@pytest.mark.parametrize("words", ["casino supermarket", "Rue Grimaldi", "", "sushi"])
def test_a_name_is_no_kind(words):
    assert kind_of(words) is None


def test_a_kind_comes_nearest_first_within_the_radius(places, here):
    """Order by distance; nothing beyond the radius; every one is of the kind."""
    found = places.search(near=here, category="parking", limit=50, radius_m=1500)
    distances = [place.distance_m for place in found]
    assert len(found) > 10 and distances == sorted(distances) and distances[-1] <= 1500
    assert {place.category for place in found} == {"parking"}
    assert found == places.search(near=here, category="car park", limit=50, radius_m=1500)


def test_a_place_without_a_name_can_be_spoken_of(places, here):
    """Chargers have no names in Monaco: they get one from their street."""
    charger = places.search(near=here, category="charging station")[0]
    assert charger.tags["unnamed"] and charger.street.startswith(("Quai", "Avenue", "Rue", "Boulevard"))
    assert charger.name == f"a charging station on {charger.street}"
    assert phrase("atm", "", "en") == "a cash machine" and phrase("office", "Rue Grimaldi", "en") == "an office on Rue Grimaldi"


class _Noon:
    """2026-11-30 is a Monday."""

    def __init__(self, wall):
        self._wall = wall

    def wall(self):
        return self._wall


@pytest.mark.parametrize("wall,open_now", [(1796036400, True), (1796079600, False)])  # 12:00 and 24:00 of that Monday in Monaco
def test_opening_hours_are_known_or_unknown_but_never_guessed(map_cache, here, wall, open_now):
    """The Casino supermarket (Mo-Sa 08:00-21:30) is open at noon, closed at midnight; a place without hours is None."""
    index = (map_cache / "map/monaco/places.sqlite").read_bytes()
    places = SqlitePlaces(index, _Noon(wall))
    assert places.search(near=here, name="casino supermarket")[0].open_now is open_now
    assert places.search(near=here, category="charging station")[0].open_now is None


def test_unknown_categories_and_empty_questions_are_refused(places, here):
    """Bad input names the field."""
    with pytest.raises(InvalidArgs, match="category 'unicorn'"):
        places.search(near=here, category="unicorn")
    with pytest.raises(InvalidArgs, match="name"):
        places.search(near=here, name="  ")


@pytest.mark.parametrize("heard", ['"', "' OR 1", "*", "NEAR(", "a" * 500, "🍕", "-", "casino\x00"])
def test_no_query_breaks_the_search(places, here, heard):
    """Whatever was heard is words, never syntax of the index."""
    assert isinstance(places.search(near=here, name=heard), list)


def test_names_for_the_recogniser_start_with_the_best_known(places):
    names = places.names()
    assert len(names) == len(set(names)) > 800
    assert set(names[:40]) >= {"Casino de Monte Carlo", "Musée Océanographique", "Palais princier de Monaco"}
    assert "Rue Grimaldi" in names


def test_a_search_elsewhere_finds_nothing(places):
    assert places.search(near=Point(48.85, 2.35), category="hotel") == []


def test_every_kind_is_spoken_in_both_languages_and_tags_belong_to_one_kind():
    assert all(kind.en and kind.zh for kind in KINDS)
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert of_tags({"amenity": "fuel"}) == "fuel" and of_tags({"shop": "hats"}) == "shop" and of_tags({"highway": "primary"}) is None


def test_the_index_is_made_by_a_command_and_whole_or_not_at_all(tmp_path):
    """The command says what it did; a bad extract leaves no file and one clear line."""
    target = tmp_path / "places.sqlite"
    run = lambda extract: subprocess.run(  # noqa: E731
        [sys.executable, "-m", "skills_automotive.poi.index", str(extract), str(target)], cwd=root(), capture_output=True, text=True)
    broken = tmp_path / "broken.osm.pbf"
    broken.write_bytes(b"not a map")
    for extract in (tmp_path / "missing.osm.pbf", broken):
        done = run(extract)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and str(extract.name) in done.stderr
        assert not target.exists() and not list(tmp_path.glob("*.part"))
    done = run(map_extract())
    assert done.returncode == 0 and "streets" in done.stdout
    count, = sqlite3.connect(target).execute("select count(*) from place where kind='charging_station'").fetchone()
    assert count >= 5


def test_a_missing_or_foreign_index_is_named(tmp_path, map_cache):
    with pytest.raises(Unavailable, match="places.sqlite"):
        open_places(tmp_path)
    target = tmp_path / "map/monaco/places.sqlite"
    build(map_extract(), target)
    base = sqlite3.connect(target)
    base.execute("update meta set value='0' where key='schema'")
    base.commit()
    base.close()
    with pytest.raises(Unavailable, match="another version"):
        open_places(tmp_path)
