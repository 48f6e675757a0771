"""The navigation and places skills on the real map, with a vehicle in memory."""
import re

import pytest

from harness.execute.testing import MemoryBus, run_skill
from harness.host.errors import UnsafeNow
from harness.host.providers import Maneuver, Point, Route
from skills_automotive.navigation import SKILLS as NAVIGATION
from skills_automotive.navigation.narrative import next_step, via
from skills_automotive.navigation.route_skills import Favourite
from skills_automotive.navigation.skills import LATITUDE, LONGITUDE, Cancel, FindAndGo, Go, Status
from skills_automotive.poi.skills import Find


@pytest.fixture
def ask(car, maps, places):
    """Runs one skill after another with one vehicle and one memory, as in a session."""
    class Session:
        bus, memory = MemoryBus(car), {}

        async def __call__(self, skill, lang="en", **arguments):
            outcome = await run_skill(skill, arguments, bus=self.bus, maps=maps, places=places, memory=self.memory, lang=lang)
            self.memory = outcome.memory
            return outcome

        def destination(self):
            return Point(self.bus.values[LATITUDE], self.bus.values[LONGITUDE])

    return Session()


async def test_the_nearest_charger_is_told_with_its_street_and_minutes_and_set_in_the_car(ask, places, here):
    """The spoken street is the real one, the car has the charger's position, and it is the quickest to reach."""
    outcome = await ask(FindAndGo, query="charging station")
    chargers = {place.point: place for place in places.search(near=here, category="charging_station", limit=20)}
    assert outcome.ok and chargers[ask.destination()].street in outcome.text
    assert outcome.text.startswith("The nearest charging station is on ") and "minute" in outcome.text
    assert f"Taking you there by {outcome.result['via']}." in outcome.text and outcome.result["via"] in outcome.result["streets"]
    assert outcome.result["seconds"] < 600 and len(outcome.text.split()) <= 24
    assert ask.memory["destination"]["kind"] == "charging_station"


async def test_the_casino_is_the_casino(ask):
    outcome = await ask(Go, destination="the casino")
    assert outcome.result["name"] == "Casino de Monte Carlo"
    assert outcome.text.startswith("Taking you to the Casino de Monte Carlo by ") and "minutes" in outcome.text
    assert abs(ask.destination().lat - 43.73916) < 1e-4


async def test_what_was_offered_can_be_taken_up(ask):
    """"it", "the second one" and "the last one" mean the places just found; more than there were is refused."""
    await ask(Find, query="restaurant")
    offers = ask.memory["offers"]
    assert len({offer["id"] for offer in offers}) == 3
    for words, offer in (("it", offers[0]), ("the second one", offers[1]), ("the last one", offers[2])):
        outcome = await ask(Go, destination=words)
        assert outcome.result["name"] == offer["name"] and ask.destination() == Point(offer["lat"], offer["lon"])
    ask.memory = {"offers": offers[:1]}
    assert (await ask(Go, destination="the second one")).code == "not_found"
    ask.memory = {}
    assert (await ask(Go, destination="it")).text == "Where would you like to go?"


@pytest.mark.parametrize("skill,arguments,sentence", [
    (Find, {"query": "moon base"}, "I couldn't find moon base around here."),
    (Go, {"destination": "Eiffel Tower"}, "I couldn't find Eiffel Tower on the map."),
    (FindAndGo, {"query": "ski lift"}, "I couldn't find ski lift on the map."),
    (Go, {"destination": "home"}, "I don't know that address yet. Please tell me the street."),
])
async def test_unknown_places_are_said_not_to_be_found_and_nothing_is_set(ask, skill, arguments, sentence):
    outcome = await ask(skill, **arguments)
    assert (outcome.ok, outcome.code, outcome.text) == (False, "not_found", sentence)
    assert ask.bus.actuated == [] and not ask.memory.get("destination")


async def test_status_answers_from_where_the_car_is_now(ask):
    """Nearer means less; at the goal it says so; without a route it says so."""
    assert (await ask(Status, what="eta")).text == "There's no route running."
    await ask(Go, destination="the oceanographic museum")
    first = await ask(Status, what="eta")
    assert first.text.startswith("We arrive at the Musée Océanographique in about ")
    assert "kilometres to the Musée Océanographique" in (await ask(Status, what="distance")).text
    assert (await ask(Status, what="destination")).text.startswith("We're going to the Musée Océanographique")
    turn = await ask(Status, what="next")
    assert turn.text.startswith("In ") and " metres, " in turn.text and any(ord(c) > 64 for c in turn.fields["turn"])
    ask.bus.values |= {"Vehicle.CurrentLocation.Latitude": 43.7330, "Vehicle.CurrentLocation.Longitude": 7.4235}
    assert (await ask(Status, what="eta")).result["seconds"] != first.result["seconds"]
    there = ask.destination()
    ask.bus.values |= {"Vehicle.CurrentLocation.Latitude": there.lat, "Vehicle.CurrentLocation.Longitude": there.lon}
    assert (await ask(Status, what="eta")).text == "We've arrived at the Musée Océanographique."


async def test_cancelling_ends_the_route_in_the_car_and_in_memory(ask, here):
    await ask(Go, destination="the casino")
    assert (await ask(Cancel)).text == "All right, the route is cancelled."
    assert ask.destination() == here and not ask.memory["destination"]
    assert (await ask(Cancel)).outcome == "none"


async def test_open_now_leaves_out_what_is_known_to_be_closed(ask, places, here):
    """A closed place is never offered, one whose hours are unknown is offered with a word about it."""
    outcome = await ask(Find, query="supermarket", open_now=True)
    assert outcome.outcome.endswith(("_open", "_unsure")) and outcome.result["open_now"] is not False
    assert ("it's open" in outcome.text) is (outcome.result["open_now"] is True)


async def test_chinese_is_spoken_with_the_real_names(ask):
    outcome = await ask(FindAndGo, lang="zh", query="药店")
    assert outcome.text.startswith("最近的药店是") and "分钟" in outcome.text and outcome.result["street"] in outcome.text
    await ask(Go, destination="the casino")
    assert (await ask(Status, lang="zh", what="next")).text.endswith("。")


async def test_a_car_that_does_not_take_the_destination_is_not_said_to_go_there(ask):
    """Nothing is confirmed or remembered unless the car's own value arrived."""
    ask.bus.stuck = {LONGITUDE}
    outcome = await ask(Go, destination="the casino")
    assert outcome.code == "timeout" and "hasn't taken" in outcome.text and not ask.memory.get("destination")


async def test_without_a_position_nothing_is_guessed(ask):
    ask.bus.values["Vehicle.CurrentLocation.Latitude"] = None
    outcome = await ask(Find, query="pharmacy")
    assert outcome.code == "unavailable" and outcome.text == "I can't look that up right now."


async def test_a_refusal_of_the_car_is_passed_on(ask):
    ask.bus.refusals[LATITUDE] = UnsafeNow("no", reason="moving", speed=90)
    assert (await ask(Go, destination="the casino")).text == "I can't do that while we're driving at ninety kilometres per hour."


def _route(*parts):
    maneuvers = tuple(Maneuver(kind, street, length, length / 10, text) for kind, street, length, text in parts)
    return Route(sum(m.length_m for m in maneuvers), 60, (), (), maneuvers)


def test_the_way_is_named_by_its_longest_street_and_not_by_a_tunnel():
    route = _route((1, "Rue A", 100, "Go."), (10, "Tunnel B", 700, "Turn."), (10, "Avenue C", 300, "Turn."), (15, "Rue D", 900, "Turn."))
    assert via(route, "Rue D") == "Avenue C"
    assert via(_route((1, "Tunnel B", 700, "Go."), (10, "Rue D", 100, "Turn.")), "Rue D") == "Tunnel B"
    assert via(_route((1, "Rue D", 100, "Go.")), "Rue D") == ""


def test_the_next_step_is_told_with_its_distance_in_both_languages():
    route = _route((1, "Rue A", 240, "Drive east on Rue A."), (10, "Avenue C", 300, "Turn right onto Avenue C."), (4, "", 0, "Arrived."))
    assert next_step(route, "en") == ("two hundred and fifty metres", "turn right onto Avenue C")
    assert next_step(route, "zh") == ("二百五十米", "右转进入Avenue C")
    assert next_step(_route((1, "Rue A", 90, "Go."), (4, "", 0, "You have arrived.")), "en") == ("ninety metres", "you arrive")


@pytest.mark.parametrize("skill", NAVIGATION, ids=lambda s: s.id)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_examples_are_there_in_both_languages_valid_and_different(skill, lang):
    """At least four a language, none twice, each with arguments that the skill takes unchanged."""
    rows = skill.examples[lang]
    assert len(rows) >= 4 and len({text for text, _ in rows}) == len(rows)
    for text, arguments in rows:
        given = skill.Args.model_validate(arguments).model_dump()
        assert {name: given[name] for name in arguments} == arguments, text
        assert bool(re.search("[一-鿿]", text)) is (lang == "zh"), text


async def test_every_example_runs_to_a_spoken_outcome(ask):
    """With a trip under way, a charge and something offered, no example ends in a fault or in a sentence of the harness's own."""
    battery = "Vehicle.Powertrain.TractionBattery."
    ask.bus.values |= {battery + "StateOfCharge.Displayed": 60.0, battery + "NetCapacity": 60}
    for lang in ("en", "zh"):
        for skill in NAVIGATION:
            for text, arguments in skill.examples[lang]:
                ask.memory = {}
                await ask(Favourite, name="home")
                await ask(Find, query="restaurant")
                await ask(Go, destination="the casino")
                outcome = await ask(skill, lang=lang, **arguments)
                assert outcome.ok or outcome.code in ("not_found", "needs_input"), (text, outcome)
                assert "{" not in outcome.text and outcome.text[-1] in ".?。？", (text, outcome.text)
