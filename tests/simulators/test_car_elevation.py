"""The simulated country's heights: known places, a climb, and that the navigation's provider reads what is written."""
import json

from harness.host.providers import Point
from simulators.car import elevation
from skills_automotive.navigation import ev
from skills_automotive.navigation.elevation import open_elevation


def test_known_places_have_their_heights_and_the_sea_far_out_has_none():
    """The harbour lies at the water, the Jardin Exotique a hundred metres above it; 3 km out nothing is known."""
    assert elevation.height_m(43.7335, 7.4205) < 10 and elevation.height_m(43.7330, 7.4130) > 90
    assert elevation.height_m(43.7000, 7.4500) is None


def test_the_profile_of_a_way_rises_as_the_way_climbs():
    """From Place d'Armes to the Jardin Exotique: distances grow, and so does the height."""
    shape = [(43.7316 + i * 0.00014, 7.4163 - i * 0.00033) for i in range(11)]
    points = elevation.profile(shape)
    assert [d for d, _ in points] == sorted(d for d, _ in points) and points[0][0] == 0.0
    assert points[-1][1] - points[0][1] > 60


def test_what_is_written_is_what_the_provider_reads(tmp_path):
    """The same height at every spot and in between, and uphill costs an electric car more than downhill."""
    path = elevation.write(tmp_path)
    heights = open_elevation(path)
    for lat, lon in ((43.7316, 7.4163), (43.7340, 7.4150), (43.7450, 7.4300)):
        assert abs(heights.height_m(Point(lat, lon)) - elevation.height_m(lat, lon)) < 0.1
    assert len(json.loads(path.read_text())["points"]) == len(elevation.SPOTS) and not list(tmp_path.glob("*.part"))
    car = ev.EvCar(60_000, 0.5)
    climb = heights.height_m(Point(43.7330, 7.4130)) - heights.height_m(Point(43.7316, 7.4163))
    assert ev.stretch_wh(car, "primary", 900, 50, climb) > ev.stretch_wh(car, "primary", 900, 50, -climb) + 500
