"""Routes, times and streets on the real map of Monaco."""
import json
import shutil

import pytest

from harness.host.errors import NotFound, Unavailable
from harness.host.providers import Point
from skills_automotive.navigation.valhalla_maps import SNAP_LIMIT_M, decode_polyline, metres, open_maps

CASINO = Point(43.73916, 7.42802)
AT_SEA = Point(43.60, 7.60)


def test_a_route_names_real_streets_in_order_once_each_in_a_row(maps, here):
    """A route ends where it should, its streets are real names, and no neighbours are equal."""
    route = maps.route(here, CASINO)
    assert 1000 < route.length_m < 4000 and 60 < route.time_s < 600
    assert "Avenue d'Ostende" in route.streets
    assert all(a != b for a, b in zip(route.streets, route.streets[1:])) and all(route.streets)
    assert metres(Point(*route.shape[0]), here) < 100 and metres(Point(*route.shape[-1]), CASINO) < 100
    assert sum(m.length_m for m in route.maneuvers) == pytest.approx(route.length_m, abs=20)
    assert route.maneuvers[-1].type in (4, 5, 6) and route.maneuvers[0].instruction


def test_a_heading_keeps_a_moving_car_from_being_turned_round(maps):
    """On a two-way street the way begins in the car's own direction: eastwards shorter, westwards round the block."""
    on_boulevard_de_belgique = Point(43.733796, 7.415920)
    east, west = (maps.route(on_boulevard_de_belgique, CASINO, heading=heading) for heading in (90.0, 270.0))
    assert west.length_m - east.length_m > 100


@pytest.mark.parametrize("goal", [AT_SEA, Point(0.0, 0.0)])
def test_no_way_is_not_found(maps, here, goal):
    """A goal farther from every road than the snapping limit is refused, not moved to the nearest road."""
    with pytest.raises(NotFound):
        maps.route(here, goal)
    with pytest.raises(NotFound):
        maps.route(goal, here)


def test_the_matrix_agrees_with_routes_and_marks_what_has_no_way(maps, here):
    """One answer per destination in their order; None where the route would be refused."""
    near, far = Point(43.7316, 7.4205), CASINO
    times = maps.matrix(here, [far, AT_SEA, near, Point(0.0, 0.0)])
    assert times[1] is None and times[3] is None
    assert times[0] == pytest.approx(maps.route(here, far).time_s, rel=0.2, abs=20)
    assert maps.matrix(here, []) == []
    assert maps.matrix(AT_SEA, [near]) == [None]


def test_the_nearest_street_has_its_name(maps):
    """On a street its name is found; at sea there is none."""
    assert maps.street(Point(43.7394, 7.4276)) == "Place du Casino"
    assert maps.street(AT_SEA) == ""


def test_the_map_may_be_moved_after_it_was_built(map_cache, tmp_path, here):
    """The configuration's paths are those of the moment of opening, not of the build."""
    shutil.copytree(map_cache / "map", tmp_path / "map")
    config = tmp_path / "map/monaco/valhalla.json"
    text = json.loads(config.read_text())
    text["mjolnir"]["tile_dir"] = "/nowhere"
    config.write_text(json.dumps(text))
    assert open_maps(tmp_path).route(here, CASINO).length_m > 1000
    assert json.loads(config.read_text())["mjolnir"]["tile_dir"] == "/nowhere"


def test_a_missing_map_is_named(tmp_path):
    """Bad input: the error says which path is missing."""
    with pytest.raises(Unavailable, match="valhalla.json"):
        open_maps(tmp_path)


def test_a_polyline_is_decoded():
    """The public format's example, at six decimals: differences are zigzag-coded in five-bit groups."""
    assert decode_polyline("_izlhA~rlgdF_{geC~ywl@_kwzCn`{nI") == ((38.5, -120.2), (40.7, -120.95), (43.252, -126.453))
    assert SNAP_LIMIT_M > 0
