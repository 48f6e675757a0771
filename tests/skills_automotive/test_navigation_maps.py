"""What the maps provider can do beyond a plain route: stops, avoidances, other ways, reach, traces, traffic, heights."""
import dataclasses
import json
import random

import pytest

from harness.host.errors import InvalidArgs, NotFound, Unavailable
from harness.host.providers import Point
from skills_automotive.navigation.elevation import SpotHeights, open_elevation
from skills_automotive.navigation.geometry import Line, contains, decode_polyline, encode_polyline, metres, moved
from skills_automotive.navigation.testing import RouteDriver
from skills_automotive.navigation.tradeoff import compare
from skills_automotive.navigation.traffic import STALE_S, FileTraffic, TableTraffic, delay_s
from skills_automotive.navigation.valhalla_maps import open_maps
from venus_edge.setup.map_tiles import write_tiles
from venus_edge.testing import VirtualClock

CASINO, LARVOTTO, HARBOUR = Point(43.73916, 7.42802), Point(43.7497, 7.4376), Point(43.7353, 7.4213)
AT_SEA = Point(43.60, 7.60)
WEST, EAST = (47.0, 8.0), moved((47.0, 8.0), 90.0, 4000.0)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A map of our own: from west to east by a toll road (4.0 km), a free road (4.9 km) or a motorway (10 km); a ferry in the south."""
    import osmium
    cache = tmp_path_factory.mktemp("tiny")
    path = cache / "tiny.osm.pbf"
    north = [moved(moved(WEST, 0.0, 700.0), 90.0, d) for d in (300, 2000, 3700)]
    fast = [moved(moved(WEST, 0.0, 3000.0), 90.0, d) for d in (300, 2000, 3700)]
    nodes = {1: moved(WEST, 270.0, 300.0), 2: WEST, 3: EAST, 4: moved(EAST, 90.0, 300.0), 5: moved(WEST, 90.0, 2000.0),
             10: north[0], 11: north[1], 12: north[2], 20: fast[0], 21: fast[1], 22: fast[2],
            30: moved(EAST, 180.0, 2000.0), 31: moved(EAST, 180.0, 2500.0)}
    ways = [([1, 2], {"highway": "primary", "name": "West Road"}), ([3, 4], {"highway": "primary", "name": "East Road"}),
            ([2, 5, 3], {"highway": "primary", "toll": "yes", "name": "Toll Road", "maxspeed": "80"}),
            ([2, 10, 11, 12, 3], {"highway": "secondary", "name": "Free Road", "maxspeed": "60"}),
            ([2, 20], {"highway": "motorway_link", "oneway": "no"}), ([22, 3], {"highway": "motorway_link", "oneway": "no"}),
            ([20, 21, 22], {"highway": "motorway", "name": "Fast Road", "oneway": "no", "maxspeed": "130"}),
            ([3, 30], {"route": "ferry", "name": "Ferry", "motor_vehicle": "yes"}), ([30, 31], {"highway": "primary", "name": "Island Road"})]
    with osmium.SimpleWriter(str(path)) as writer:
        for number, (lat, lon) in nodes.items():
            writer.add_node(osmium.osm.mutable.Node(id=number, location=(lon, lat), version=1))
        for number, (refs, tags) in enumerate(ways, 100):
            writer.add_way(osmium.osm.mutable.Way(id=number, nodes=refs, tags=tags, version=1))
    write_tiles(path, cache / "map" / "tiny")
    return cache


@pytest.fixture(scope="module")
def roads(tiny):
    return open_maps(tiny, "tiny")


A, B = Point(*moved(WEST, 270.0, 200.0)), Point(*moved(EAST, 90.0, 200.0))


def test_tolls_are_avoided_where_there_is_another_way(roads):
    """The quickest takes the toll road and says so; avoiding it takes the free road, longer."""
    quickest, free = roads.route(A, B), roads.route(A, B, avoid=("tolls",))
    assert quickest.tolls and "Toll Road" in {e.street for e in roads.edges(quickest)}
    assert not free.tolls and "Free Road" in free.streets and free.time_s > quickest.time_s


def test_what_cannot_be_avoided_is_told_by_the_route_itself(roads):
    """An island is reached by ferry or not at all: the flag stays, and nothing is made up."""
    island = Point(*moved(EAST, 180.0, 2300.0))
    assert roads.route(A, island).ferries and roads.route(A, island, avoid=("ferries",)).ferries


def test_an_unknown_avoidance_is_refused_by_name(roads):
    with pytest.raises(InvalidArgs, match="avoid: bridges; allowed: tolls, ferries, motorways"):
        roads.route(A, B, avoid=("bridges",))


def test_motorways_are_avoided(roads):
    """The shortest way takes none; through the motorway's middle it can't be avoided."""
    middle = Point(*moved(moved(WEST, 0.0, 3000.0), 90.0, 2000.0))
    assert roads.route(A, B, through=[middle]).motorways
    assert not roads.route(A, B, avoid=("motorways",)).motorways


def test_other_ways_are_other_ways_and_one_is_free_of_tolls(roads):
    """Sorted by time; none twice; with a toll on the quickest, a way without is among them, and the trade-off says it in one clause."""
    ways = roads.alternatives(A, B)
    assert len(ways) >= 2 and [w.time_s for w in ways] == sorted(w.time_s for w in ways)
    assert ways[0].tolls and any(not w.tolls for w in ways)
    free = next(w for w in ways if not w.tolls and "Free Road" in w.streets)
    assert compare(free, ways[0], "en").endswith(" but no tolls") and "longer" in compare(free, ways[0], "en")
    assert compare(free, ways[0], "zh").endswith("，但不收费") and compare(free, ways[0], "zh").startswith("多")


def test_a_trade_off_names_only_what_differs(roads):
    """Time within 45 s counts as the same; what is better comes last."""
    route = roads.route(A, B)
    other = dataclasses.replace(route, time_s=route.time_s + 121, length_m=route.length_m - 900, tolls=False)
    assert compare(other, route, "en") == "two minutes longer but no tolls" and compare(other, route, "zh") == "多两分钟，但不收费"
    even = dataclasses.replace(other, time_s=route.time_s + 20)
    assert compare(even, route, "en") == "about as quick, no tolls and nine hundred metres shorter"
    assert compare(route, even, "en") == "about as quick, but with tolls and nine hundred metres farther"
    assert compare(route, route, "en") == "about as quick" and compare(route, route, "zh") == "时间差不多"
    assert compare(dataclasses.replace(route, time_s=route.time_s - 70), route, "en") == "one minute quicker"


def test_stops_are_passed_in_order_and_their_arrival_is_a_maneuver(maps, here):
    """Two stops: the way passes both in the order given, each with its arrival, and it is at least as long as the legs alone."""
    route = maps.route(here, LARVOTTO, via=[HARBOUR, CASINO])
    line = Line(route.shape)
    along = [line.nearest(stop).along_m for stop in (HARBOUR, CASINO)]
    assert along == sorted(along) and all(line.nearest(stop).off_m < 120 for stop in (HARBOUR, CASINO))
    assert [m.type in (4, 5, 6) for m in route.maneuvers].count(True) == 3
    legs = [maps.route(a, b).time_s for a, b in ((here, HARBOUR), (HARBOUR, CASINO), (CASINO, LARVOTTO))]
    assert route.time_s == pytest.approx(sum(legs), rel=0.1)
    assert all(m.begin < len(route.shape) for m in route.maneuvers)
    assert [m.begin for m in route.maneuvers] == sorted(m.begin for m in route.maneuvers)


def test_the_stretches_of_a_route_cover_it(maps, here):
    """Lengths add up, indexes join, tunnels are known as tunnels."""
    route = maps.route(here, LARVOTTO)
    edges = maps.edges(route)
    assert sum(e.length_m for e in edges) == pytest.approx(route.length_m, rel=0.02)
    assert edges[0].begin == 0 and edges[-1].end == len(route.shape) - 1
    assert all(a.end == b.begin for a, b in zip(edges, edges[1:]))
    with_stop = maps.route(here, LARVOTTO, via=[CASINO], through=[HARBOUR])
    assert sum(e.length_m for e in maps.edges(with_stop)) == pytest.approx(with_stop.length_m, rel=0.03)
    assert any(e.tunnel and "Tunnel" in e.street for e in edges) and all(e.speed_kmh > 0 for e in edges)


def test_any_route_is_covered_by_its_stretches(maps):
    """A hundred random ways, with headings and stops anywhere: lengths agree within 6 %, indexes rise within the shape."""
    chance, looked = random.Random(3), 0

    def anywhere():
        return Point(43.725 + chance.random() * 0.03, 7.405 + chance.random() * 0.04)

    for n in range(100):
        try:
            route = maps.route(anywhere(), anywhere(), heading=chance.random() * 360 if n % 2 else None, via=[anywhere()] if n % 3 == 0 else [])
        except NotFound:
            continue
        looked += 1
        edges = maps.edges(route)
        assert sum(e.length_m for e in edges) == pytest.approx(route.length_m, rel=0.06, abs=30)
        assert all(0 <= e.begin <= e.end < len(route.shape) for e in edges)
        assert [e.begin for e in edges] == sorted(e.begin for e in edges)
    assert looked > 60


@pytest.mark.parametrize("limit", [{"seconds": 120}, {"metres": 1500}])
def test_what_is_within_reach_agrees_with_routes(maps, here, limit):
    """Points well inside are reached within the limit, points outside take longer; both kinds are looked at."""
    area = maps.isochrone(here, **limit)
    inside, outside = [], []
    for north in range(-8, 20, 2):
        for east in range(-10, 20, 2):
            point = Point(*moved(moved((here.lat, here.lon), 0.0, 170.0 * north), 90.0, 170.0 * east))
            try:
                route = maps.route(here, point)
            except NotFound:
                continue
            if metres(Point(*route.shape[-1]), point) > 20:
                continue
            value, most = (route.time_s, limit["seconds"]) if "seconds" in limit else (route.length_m, limit["metres"])
            (inside if contains(area.polygons, point) else outside).append(value / most)
    assert len(inside) > 3 and len(outside) > 3
    assert sum(part <= 1.3 for part in inside) >= 0.9 * len(inside), inside
    assert sum(part >= 0.85 for part in outside) >= 0.9 * len(outside), outside


def test_reach_needs_one_limit(maps, here):
    with pytest.raises(InvalidArgs):
        maps.isochrone(here)
    with pytest.raises(InvalidArgs):
        maps.isochrone(here, seconds=60, metres=100)


def test_a_trace_is_matched_to_the_road_it_was_driven_on(maps, here):
    """Noisy positions of a drive: the road's name is right nearly always, the place within a few metres, the direction the car's."""
    route = maps.route(CASINO, LARVOTTO)
    edges = maps.edges(route)
    car, trail, right, looked = RouteDriver(route.shape, edges, noise_m=4, seed=2, tunnels=False), [], 0, 0
    for fix in car.fixes():
        trail = [*trail[-9:], fix.point]
        if len(trail) < 10 or car.v < 3:
            continue
        matched = maps.match(trail)
        if matched is None:
            looked += 1
            continue
        looked += 1
        right += metres(matched.point, Point(*car.true_position)) < 20
    assert looked > 20 and right / looked > 0.9


def test_a_trace_at_sea_is_on_no_road(maps):
    assert maps.match([AT_SEA, Point(43.601, 7.60), Point(43.602, 7.60)]) is None
    with pytest.raises(InvalidArgs, match="points: 1 given; allowed: 2 to 100"):
        maps.match([AT_SEA])


def test_many_to_one_times_agree_with_one_to_many_the_other_way(maps, here):
    """A column of the matrix: each origin's own time, None where there is no way."""
    times = maps.matrix_to([CASINO, AT_SEA, LARVOTTO], here)
    assert times[1] is None and times[0] == pytest.approx(maps.route(CASINO, here).time_s, rel=0.2, abs=20)
    assert maps.matrix_to([], here) == []


def test_traffic_makes_the_way_longer_and_may_change_which_is_best(roads):
    """A jam on the toll road: its time grows by the factor, the delay is told, and the free road comes first."""
    free = roads.route(A, B)
    toll_ways = {e.way_id for e in roads.edges(free) if e.street == "Toll Road"}
    try:
        roads.traffic = TableTraffic(ways=dict.fromkeys(toll_ways, 3.0))
        jammed = roads.route(A, B, through=[Point(*moved(WEST, 90.0, 2000.0))])
        on_toll = [e for e in roads.edges(free) if e.way_id in toll_ways]
        expected = sum(e.length_m / (e.speed_kmh / 3.6) for e in on_toll) * 2
        assert jammed.delay_s == pytest.approx(expected, rel=0.02)
        assert not roads.alternatives(A, B)[0].tolls
        roads.traffic = TableTraffic()
        assert roads.route(A, B).delay_s is None
    finally:
        roads.traffic = None
    assert delay_s(roads.edges(free), TableTraffic(classes={"trunk": 2.0})) is None


def test_traffic_of_a_file_counts_while_it_is_fresh(tmp_path, roads):
    """Read again when written again; older than ten minutes or broken, it counts as none."""
    clock, path = VirtualClock(wall=1_800_000_000.0), tmp_path / "traffic.json"
    traffic = FileTraffic(path, clock)
    edge = roads.edges(roads.route(A, B))[0]
    assert not traffic.known() and traffic.factor(edge) is None
    path.write_text(json.dumps({"at": clock.wall(), "classes": {"primary": 1.5}, "ways": {str(edge.way_id): 40}}))
    assert traffic.known() and traffic.factor(edge) == 20.0
    path.write_text(json.dumps({"at": clock.wall() - STALE_S - 1, "classes": {"primary": 1.5}}))
    assert not traffic.known()
    for broken in ("{", "[]", '{"classes": {"primary": 2}}', '{"at": 1800000000, "classes": {"primary": -1}}'):
        path.write_text(broken)
        assert not traffic.known()


def test_heights_lie_between_those_around_and_are_unknown_far_away(tmp_path):
    """At a point its own height; between two in between; beyond 1.5 km nothing is known."""
    a, b = (43.73, 7.41, 10.0), (*moved((43.73, 7.41), 90.0, 1000.0), 110.0)
    heights = SpotHeights([a, b])
    assert heights.height_m(Point(*a[:2])) == 10.0
    assert heights.height_m(Point(*moved(a[:2], 90.0, 500.0))) == pytest.approx(60.0, abs=0.5)
    assert heights.height_m(Point(*moved(a[:2], 270.0, 1600.0))) is None
    path = tmp_path / "elevation.json"
    assert open_elevation(path) is None
    path.write_text(json.dumps({"points": [a, b]}))
    assert open_elevation(path).height_m(Point(*a[:2])) == 10.0
    path.write_text('{"points": [[1, 2]]}')
    with pytest.raises(Unavailable, match="points"):
        open_elevation(path)


def test_polylines_survive_the_round_trip():
    shape = ((43.731612, 7.416301), (43.731612, 7.416301), (-12.000001, -179.999999), (0.0, 0.0))
    assert decode_polyline(encode_polyline(shape)) == shape
