"""Changing the way by voice: other ways, avoidances, stops and their order, favourites, back, stop and resume."""
import pytest

from harness.execute.testing import MemoryBus, run_skill
from harness.host.providers import Point
from skills_automotive.navigation import places as words
from skills_automotive.navigation.geometry import Line, metres
from skills_automotive.navigation.route_skills import Alternatives, Avoid, Favourite, Via
from skills_automotive.navigation.skills import LATITUDE, LONGITUDE, Cancel, Go, Resume, Status
from skills_automotive.navigation.traffic import TableTraffic
from skills_automotive.navigation.trip import STOPS_LIMIT, Trip, plan_trip
from skills_automotive.poi.skills import Find
from venus_edge.testing import VirtualClock

from test_navigation_maps import A, B, WEST, moved, roads, tiny  # noqa: F401  the map with a toll road

HERE = ("Vehicle.CurrentLocation.Latitude", "Vehicle.CurrentLocation.Longitude")


class Hurried(VirtualClock):
    """Nobody waits: a sleep is over at once, and the time has passed."""

    async def sleep(self, seconds):
        self._now += max(0.0, seconds)


class Session:
    """One car, one memory, one skill after the other."""

    def __init__(self, car, maps, places):
        self.bus, self.maps, self.places, self.memory = MemoryBus(car, Hurried()), maps, places, {}

    async def __call__(self, skill, lang="en", **arguments):
        outcome = await run_skill(skill, arguments, bus=self.bus, maps=self.maps, places=self.places, memory=self.memory, lang=lang)
        if outcome.memory is not None:
            self.memory = {k: v for k, v in outcome.memory.items() if v is not None}
        return outcome

    def stand(self, point):
        self.bus.values |= dict(zip(HERE, (point.lat, point.lon)))

    @property
    def stops(self):
        return [stop["name"] for stop in (self.memory.get("trip") or {}).get("stops", [])]


@pytest.fixture
def ask(car, maps, places):
    return Session(car, maps, places)


@pytest.fixture
def tolled(car, roads, places):  # noqa: F811
    """A trip from west to east on the map with a toll road."""
    session = Session(car | dict(zip(HERE, (A.lat, A.lon))), roads, places)
    session.memory = {"offers": [{"id": "east", "name": "Eastville", "said": {"en": "Eastville", "zh": "东镇"}, "kind": "town", "street": "",
                                  "lat": B.lat, "lon": B.lon}]}
    return session


async def test_other_ways_are_told_with_what_they_cost_and_can_be_taken(tolled):
    """One sentence with the trade-off; "the second" is the very way that was told; "the other" of it leads back to the quickest."""
    await tolled(Go, destination="that one")
    told = await tolled(Alternatives)
    assert told.text.startswith("The quickest is by ") and "longer but no tolls" in told.text
    assert "但不收费" in (await tolled(Alternatives, lang="zh")).text
    await tolled(Alternatives, take="second")
    assert "Free Road" in (await tolled(Status, what="roads")).text
    taken = await tolled(Alternatives, take="other")
    assert taken.outcome.startswith("taken") and "Free Road" not in (await tolled(Status, what="roads")).text
    assert (await tolled(Alternatives, take="third")).outcome in ("taken", "taken_direct", "not_found")


async def test_a_way_that_the_driver_left_is_forgotten(tolled):
    """Having passed the fork on the toll road, the chosen free road would mean turning back: the trip goes on by the quickest."""
    await tolled(Go, destination="that one")
    await tolled(Alternatives, take="second")
    trip = Trip.of(tolled.memory)
    assert trip.through
    beyond = Point(*moved(WEST, 90.0, 3800.0))
    after, route = plan_trip(tolled.maps, trip, beyond, 90.0)
    assert after.through == () and route.length_m < 600


async def test_tolls_are_avoided_from_now_on_until_they_are_allowed(tolled):
    """The way changes with the trade-off told; the next trip avoids them too; allowed again, the quickest comes back."""
    await tolled(Go, destination="that one")
    avoided = await tolled(Avoid, what="tolls")
    assert avoided.text.startswith("Avoiding tolls. The new way is ") and "longer" in avoided.text
    assert "Free Road" in (await tolled(Status, what="roads")).text
    await tolled(Cancel)
    again = await tolled(Go, destination="that one")
    assert "Free Road" in again.text
    assert (await tolled(Avoid, what="tolls", allow=True)).outcome == "allowed_changed"
    assert "Free Road" not in (await tolled(Status, what="roads")).text


async def test_an_avoidance_of_one_trip_ends_with_it(tolled):
    first = await tolled(Go, destination="that one", avoid="tolls")
    assert first.text == f"Taking you to Eastville without tolls, {first.fields['minutes']}."
    assert not tolled.memory.get("avoid")
    assert tolled.memory["trip"]["avoid"] == ["tolls"]


async def test_what_cannot_be_avoided_is_said_to_be_so(tolled):
    """An island is reached by ferry only: the way is kept, and the user knows."""
    island = moved(moved(WEST, 90.0, 4000.0), 180.0, 2300.0)
    tolled.memory["offers"][0] |= {"lat": island[0], "lon": island[1], "id": "island"}
    await tolled(Go, destination="that one")
    assert (await tolled(Avoid, what="ferries")).text == "There's no way to Eastville without ferries, so I'm keeping this one."
    assert (await tolled(Go, destination="that one", avoid="ferries")).outcome == "still"


async def test_avoiding_without_a_route_is_kept_for_the_next(ask):
    assert (await ask(Avoid, what="motorways")).text == "All right, I'll avoid motorways."
    assert ask.memory["avoid"] == ["motorways"]
    await ask(Go, destination="the casino")
    assert (await ask(Avoid, what="tolls")).outcome == "same"
    assert (await ask(Avoid, what="motorways", allow=True)).text == "All right, motorways are allowed again."


async def test_traffic_is_told_where_it_is_known_and_said_to_be_unknown_where_not(tolled):
    """No provider: free flow, and said so. A jam: it is in the arrival time and in the answer."""
    await tolled(Go, destination="that one")
    assert (await tolled(Status, what="traffic")).text == "I have no traffic information, so my times assume clear roads."
    free = (await tolled(Status, what="eta")).result["seconds"]
    try:
        tolled.maps.traffic = TableTraffic(classes={"primary": 2.0, "secondary": 2.0})
        jam = await tolled(Status, what="eta")
        assert jam.result["seconds"] > 1.5 * free and "The traffic costs us about" in jam.text
        assert (await tolled(Status, what="traffic")).outcome == "traffic"
        tolled.maps.traffic = TableTraffic(classes={"primary": 1.0, "secondary": 1.0})
        assert (await tolled(Status, what="traffic")).text == "The roads to Eastville are clear."
    finally:
        tolled.maps.traffic = None


async def test_a_stop_is_added_where_it_costs_least_and_orders_are_followed(ask):
    """"via", "first", "last" and "skip" change the trip's stops; the sentence tells the new time."""
    await ask(Go, destination="the casino")
    added = await ask(Via, place="pharmacy")
    assert added.text.startswith("With a stop at ") and "the Casino de Monte Carlo" in added.text and len(ask.stops) == 1
    pharmacy = ask.stops[0]
    await ask(Via, place="the oceanographic museum", order="last")
    assert ask.stops == [pharmacy, "Musée Océanographique"]
    first = await ask(Via, place="the oceanographic museum", order="first")
    assert ask.stops == ["Musée Océanographique", pharmacy] and first.text.startswith("First the Musée Océanographique, then on to ")
    assert (await ask(Via, place="pharmacy", order="skip")).outcome == "skipped" and ask.stops == ["Musée Océanographique"]
    assert (await ask(Via, place="the cathedral", order="skip")).text == "the cathedral isn't one of our stops."


async def test_the_place_of_a_kind_on_the_way_is_the_one_with_the_least_detour(ask, maps, places, here):
    """No other of its kind makes the whole way shorter by more than what the matrix and the route differ in."""
    await ask(Go, destination="the casino")
    goal = Point(ask.memory["destination"]["lat"], ask.memory["destination"]["lon"])
    outcome = await ask(Via, place="pharmacy")
    for place in places.search(near=here, category="pharmacy", limit=8, radius_m=8000):
        assert maps.route(here, goal, heading=90.0, via=[place.point]).time_s >= outcome.result["seconds"] - 45


async def test_a_stop_that_was_reached_is_no_stop_any_more(ask):
    await ask(Go, destination="the casino", via="the oceanographic museum")
    museum = ask.memory["trip"]["stops"][0]
    assert "with a stop at the Musée Océanographique" in (await ask(Resume)).text
    ask.stand(Point(museum["lat"], museum["lon"]))
    assert (await ask(Resume)).outcome == "running" and ask.stops == []


async def test_stops_are_bounded_and_need_a_route(ask):
    assert (await ask(Via, place="pharmacy")).text == "There's no route running. Where would you like to go?"
    await ask(Go, destination="the casino")
    for kind in ("pharmacy", "bakery", "bank", "supermarket", "hotel")[:STOPS_LIMIT]:
        assert (await ask(Via, place=kind, order="last")).ok, kind
    full = await ask(Via, place="the cathedral")
    assert full.code == "unavailable" and full.text.startswith("That's as many stops as I can keep.") and len(ask.stops) == STOPS_LIMIT


async def test_home_is_where_the_user_said_it_is(ask, here):
    """"This is home", then from elsewhere "take me home"; forgotten, it is unknown again."""
    assert (await ask(Favourite, name="home")).text.endswith("as your home.")
    ask.stand(Point(43.7394, 7.4276))
    home = await ask(Go, destination="home")
    assert home.text.startswith("Taking you home") and metres(Point(ask.bus.values[LATITUDE], ask.bus.values[LONGITUDE]), here) < 1
    assert (await ask(Go, lang="zh", destination="家")).text.endswith("送您回家，车程大约三分钟。")
    assert (await ask(Favourite, name="my home", forget=True)).text == "I've forgotten the address of your home."
    assert (await ask(Go, destination="home")).outcome == "not_found"
    assert (await ask(Favourite, name="home", forget=True)).text == "I don't have an address for home."


async def test_a_favourite_may_be_any_place_under_any_name(ask):
    """"My office is ...", a gym, Chinese and English names of the same; at most twenty."""
    assert (await ask(Favourite, name="my office", place="the casino")).text == "I'll remember the Casino de Monte Carlo as work."
    assert (await ask(Go, destination="公司")).result["name"] == "my office"
    assert (await ask(Favourite, name="Mum's place", place="Rue Grimaldi")).ok
    assert (await ask(Go, destination="mum's place")).text.startswith("Taking you to Mum's place")
    for i in range(words.FAVOURITES_LIMIT - 2):
        assert (await ask(Favourite, name=f"place number {'x' * (i + 1)}")).ok
    assert (await ask(Favourite, name="one more")).text.startswith("I can't keep any more favourites.")


async def test_back_there_is_the_place_before(ask, here):
    """After the casino and the museum, "back there" is the casino; with one destination only, it is where the trip began."""
    assert (await ask(Go, destination="back there")).text == "I don't know of a place before this one. Where would you like to go?"
    await ask(Go, destination="the casino")
    await ask(Go, destination="the oceanographic museum")
    back = await ask(Go, destination="back there")
    assert back.result["name"] == "Casino de Monte Carlo"
    ask.memory = {}
    await ask(Go, destination="the casino")
    ask.stand(Point(43.7394, 7.4276))
    assert metres(Point(*_set(await ask(Go, destination="回去"), ask)), here) < 1
    assert (await ask(Go, destination="where we started")).ok


def _set(outcome, ask):
    assert outcome.ok
    return ask.bus.values[LATITUDE], ask.bus.values[LONGITUDE]


async def test_a_stopped_trip_is_taken_up_with_its_stops(ask):
    """Cancelled and resumed: the same destination and stops; resumed while it runs, it says where we go; without one, it says so."""
    assert (await ask(Resume)).text == "There's no route to take up again."
    await ask(Go, destination="the casino", via="the oceanographic museum")
    await ask(Cancel)
    assert "destination" not in ask.memory and (await ask(Status, what="eta")).outcome == "none"
    resumed = await ask(Resume)
    assert resumed.text.startswith("Carrying on to the Casino de Monte Carlo with a stop at the Musée Océanographique")
    assert ask.stops == ["Musée Océanographique"] and ask.memory["destination"]["name"] == "Casino de Monte Carlo"
    await ask(Via, place="the oceanographic museum", order="skip")
    assert (await ask(Resume)).text.startswith("We're on the way to the Casino de Monte Carlo")


async def test_a_new_destination_has_no_stops_of_the_old_one(ask):
    await ask(Go, destination="the casino", via="the oceanographic museum")
    await ask(Go, destination="the cathedral")
    assert ask.stops == [] and Trip.of(ask.memory).stops == ()
    ask.memory["destination"] = {**ask.memory["destination"], "id": "set by somebody else"}
    assert Trip.of(ask.memory) == Trip(ask.memory["destination"])


async def test_what_a_search_offered_can_become_a_stop(ask):
    await ask(Go, destination="the casino")
    await ask(Find, query="restaurant")
    second = ask.memory["offers"][1]
    assert (await ask(Via, place="the second one")).ok and ask.stops == [second["name"]]


async def test_the_way_really_passes_its_stops(ask, maps, here):
    """What is told is what is driven: the planned route comes by each stop, in order."""
    await ask(Go, destination="the casino", via="the oceanographic museum")
    trip, route = plan_trip(maps, Trip.of(ask.memory), here, 90.0)
    stop = trip.stops[0]
    assert Line(route.shape).nearest(Point(stop["lat"], stop["lon"])).off_m < 150


async def test_a_car_that_does_not_take_the_new_way_keeps_the_old_one(ask):
    """Nothing is remembered or confirmed unless the car's own value arrived."""
    await ask(Go, destination="the casino")
    before = dict(ask.memory)
    ask.bus.stuck = {LATITUDE}
    for skill, arguments in ((Via, {"place": "pharmacy"}), (Avoid, {"what": "tolls"}), (Go, {"destination": "the cathedral"})):
        assert (await ask(skill, **arguments)).code == "timeout", skill
        assert ask.memory["destination"] == before["destination"] and ask.stops == [] and not ask.memory.get("avoid")


@pytest.mark.parametrize("said,key", [("my home", "home"), ("我家", "home"), ("the office", "work"), ("我的公司", "work"), ("Mum's place", "mums place"),
                                      ("the gym", "gym"), ("健身房", "健身房")])
def test_a_favourites_name_is_the_same_however_it_is_said(said, key):
    assert words.key_of(said) == key
