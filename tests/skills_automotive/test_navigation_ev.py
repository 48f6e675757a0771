"""The electric car: every figure against a calculation by hand, then reach, charger and arrival on the real map."""
import dataclasses

import pytest

from harness.execute.testing import MemoryBus, run_skill
from harness.host.providers import Edge, Place, Point, Route
from skills_automotive.navigation import charging, ev
from skills_automotive.navigation.elevation import SpotHeights
from skills_automotive.navigation.ev_skills import Ev, Reach
from skills_automotive.navigation.geometry import moved
from skills_automotive.navigation.skills import Go
from skills_automotive.navigation.traffic import TableTraffic

CAR = ev.EvCar(capacity_wh=60_000, charge=0.5)
B = "Vehicle.Powertrain.TractionBattery."


def test_a_flat_motorway_kilometre_by_hand():
    """At 108 km/h: rolling 186.39 N, air 334.8 N; 521.19 kN*m through 0.88 is 592.26 kJ, aux 350 W for 33.33 s is 11.67 kJ: 167.76 Wh."""
    assert ev.stretch_wh(CAR, "motorway", 1000, 108) == pytest.approx(167.76, abs=0.05)


def test_stops_cost_what_is_lost_of_the_kinetic_energy():
    """A residential kilometre at 36 km/h: force 223.59 N -> 254.08 kJ; two stops of 95 kJ times (1.13636-0.6) are 101.91 kJ; aux 35 kJ."""
    assert ev.stretch_wh(CAR, "residential", 1000, 36) == pytest.approx((254.08 + 101.91 + 35.0) / 3.6, abs=0.1)


def test_climbing_costs_and_descending_gives_back_a_part():
    """50 m up in a kilometre: 1900*9.81*50 = 931.95 kJ more, through 0.88. Down: the surplus comes back at 0.6."""
    flat, up, down = (ev.stretch_wh(CAR, "motorway", 1000, 72, climb) for climb in (0, 50, -50))
    assert up - flat == pytest.approx(931.95 / 0.88 / 3.6, abs=0.05)
    force_kj = (186.39 + 0.5 * 1.2 * 0.62 * 400) * 1.0
    assert down == pytest.approx(((force_kj - 931.95) * 0.6 + 350 * 50 / 1000) / 3.6, abs=0.05) and down < 0


def test_the_cabin_and_a_jam_cost_by_time():
    """2 kW of heating for a minute is 33.3 Wh; in a jam of factor two it is twice that, and the air resistance a quarter."""
    base = ev.stretch_wh(CAR, "motorway", 1000, 60)
    assert ev.stretch_wh(CAR, "motorway", 1000, 60, 0, 2000) - base == pytest.approx(2000 / 60, abs=0.01)
    air = 0.5 * 1.2 * 0.62 * (60 / 3.6) ** 2 * 1000 / 0.88 / 3600
    assert ev.stretch_wh(CAR, "motorway", 1000, 60, 0, 2000, 2.0) - base == pytest.approx(2000 / 60 * 2 + 350 / 60 - air * 0.75, abs=0.01)
    assert ev.cabin_w(None, 20) == ev.cabin_w(20, 21) == 150 and ev.cabin_w(0, 20) == 150 + 130 * 17 and ev.cabin_w(-40, 25) == 4000


def test_faster_roads_and_stops_both_show():
    """Per kilometre: 130 km/h costs more than 80; a town's stops make 50 km/h cost more than a steady 50."""
    per_km = {kmh: ev.stretch_wh(CAR, "motorway", 1000, kmh) for kmh in (50, 80, 130)}
    assert per_km[50] < per_km[80] < per_km[130]
    assert ev.stretch_wh(CAR, "residential", 1000, 50) > per_km[50] + 40
    assert ev.stretch_wh(CAR, "motorway", 0, 50) == 0.0


def test_a_way_is_the_sum_of_its_stretches_with_grade_and_traffic():
    a, b, c = (43.0, 7.0), moved((43.0, 7.0), 90.0, 500.0), moved((43.0, 7.0), 90.0, 1500.0)
    route = Route(1500, 100, (), (a, b, c))
    edges = (Edge(1, "", "residential", 36, 500, 0, 1), Edge(2, "", "primary", 72, 1000, 1, 2))
    heights = SpotHeights([(*a, 10.0), (*b, 30.0), (*c, 5.0)])
    expected = ev.stretch_wh(CAR, "residential", 500, 36, 20, 500) + ev.stretch_wh(CAR, "primary", 1000, 72, -25, 500, 2.0)
    assert ev.route_wh(CAR, route, edges, cabin=500, elevation=heights, traffic=TableTraffic(ways={2: 2.0})) == pytest.approx(expected)
    assert ev.route_wh(CAR, route, edges) == pytest.approx(ev.stretch_wh(CAR, "residential", 500, 36) + ev.stretch_wh(CAR, "primary", 1000, 72))


def test_charging_time_by_hand():
    """60 kWh from 20 to 80 % at 50 kW: 36 kWh, 43.2 min. On to 90 %: 6 kWh at 25 kW, 14.4 min more. The car's own limit holds."""
    assert ev.charging_minutes(CAR, 0.2, 0.8, 50) == pytest.approx(43.2)
    assert ev.charging_minutes(CAR, 0.2, 0.9, 50) == pytest.approx(57.6)
    assert ev.charging_minutes(CAR, 0.2, 0.8, 350) == pytest.approx(21.6)
    assert ev.charging_minutes(CAR, 0.85, 0.8, 50) == 0.0


def test_reach_and_arrival_by_hand():
    """Half of 60 kWh less a tenth is 24 kWh; the mixed kilometre is the weighted sum of three."""
    town, land, fast = (ev.stretch_wh(CAR, road, 1000, kmh) for road, kmh in (("tertiary", 45), ("primary", 70), ("motorway", 110)))
    per_km = 0.4 * town + 0.3 * land + 0.3 * fast
    assert ev.reach_km(CAR) == pytest.approx(24_000 / per_km)
    assert ev.charge_after(CAR, 15_000) == pytest.approx(0.25) and ev.charge_after(CAR, 33_000) < 0
    assert ev.reach_km(dataclasses.replace(CAR, charge=0.05)) == 0.0


@pytest.mark.parametrize("tags,kw", [({"socket:type2:output": "22 kW"}, 22), ({"maxpower": "50000"}, 50), ({"socket:type2_combo": "2"}, 50),
                                     ({"socket:type2": "4"}, None), ({}, None), ({"socket:chademo": "no"}, None),
                                     ({"socket:type2:output": "7,4 kW", "socket:type2_combo:output": "150 kW"}, 150),
                                     ({"power_kw": 11}, 11), ({"capacity": "3"}, None)])
def test_a_chargers_power_comes_from_its_tags_or_is_unknown(tags, kw):
    assert charging.power_kw(Place("x", "x", "charging_station", Point(0, 0), tags=tags)) == kw


@pytest.fixture
def ask(car, maps, places):
    class Session:
        bus, memory = MemoryBus(car | {B + "StateOfCharge.Displayed": 60.0, B + "NetCapacity": 60}), {}

        async def __call__(self, skill, lang="en", **arguments):
            outcome = await run_skill(skill, arguments, bus=self.bus, maps=maps, places=places, memory=self.memory, lang=lang)
            self.memory = outcome.memory
            return outcome

    return Session()


async def test_the_charge_on_arrival_is_what_the_model_gives_for_the_very_route(ask, maps, here):
    """What is said agrees with the sum over the route's stretches; without a route it says so."""
    assert (await ask(Ev, what="arrival")).outcome == "none"
    await ask(Go, destination="the casino")
    goal = ask.memory["destination"]
    outcome = await ask(Ev, what="arrival")
    route = maps.route(here, Point(goal["lat"], goal["lon"]), heading=90.0)
    used = ev.route_wh(ev.EvCar(60_000, 0.6), route, maps.edges(route), cabin=150)
    assert outcome.result["used_kwh"] == pytest.approx(used / 1000, abs=0.002) and outcome.result["percent"] == round(60 - used / 600)
    assert outcome.text == "We arrive at the Casino de Monte Carlo with about sixty percent."


async def test_a_low_or_empty_arrival_is_said_to_be_one(ask):
    await ask(Go, destination="the casino")
    ask.bus.values[B + "StateOfCharge.Displayed"] = 9.0
    assert "only about" in (await ask(Ev, what="arrival")).text
    ask.bus.values[B + "StateOfCharge.Displayed"] = 0.2
    assert (await ask(Ev, what="arrival")).outcome == "arrival_short"
    assert (await ask(Reach, place="the casino")).outcome == "short"


async def test_the_charger_with_the_least_time_is_named_with_detour_and_charging(ask, maps, places, here):
    """No other charger has less detour and charging together; it is offered, so that it can be taken as a stop."""
    await ask(Go, destination="the casino")
    outcome = await ask(Ev, what="charger")
    assert outcome.outcome == "charger_guessed" and "kilowatts" in outcome.text
    best = outcome.result
    goal = Point(ask.memory["destination"]["lat"], ask.memory["destination"]["lon"])
    direct = maps.route(here, goal, heading=90.0).time_s
    for place in places.search(near=here, category="charging_station", limit=10, radius_m=15_000):
        there, on = maps.matrix(here, [place.point])[0], maps.matrix_to([place.point], goal)[0]
        detour = max(0.0, there + on - direct)
        minutes = ev.charging_minutes(CAR, 0.59, 0.8, charging.power_kw(place) or ev.GUESSED_KW)
        assert detour + 60 * minutes >= best["detour_s"] + best["charging_s"] - 90
    assert best["charging_s"] / 60 == pytest.approx(0.2 * 60 / 11 * 60, rel=0.1)
    assert ask.memory["offers"][0]["said"] == best["said"]


async def test_a_full_battery_needs_no_charger(ask):
    ask.bus.values[B + "StateOfCharge.Displayed"] = 95.0
    outcome = await ask(Ev, what="charger")
    assert outcome.outcome == "charged" and outcome.text.startswith("We don't need to charge")


async def test_the_batterys_size_comes_from_charge_and_range_where_it_is_not_told(ask):
    """A car that tells 64 % and 213.3 km has 60 kWh by the typical use; one that tells nothing is not guessed at."""
    del ask.bus.values[B + "NetCapacity"]
    ask.bus.values |= {B + "StateOfCharge.Displayed": 64.0, B + "Range": 213_333}
    text = (await ask(Reach)).text
    ask.bus.values[B + "NetCapacity"] = 60
    assert (await ask(Reach)).text == text and "kilometres" in text
    del ask.bus.values[B + "NetCapacity"], ask.bus.values[B + "Range"]
    assert (await ask(Reach)).text == "I can't read the battery's charge."
    del ask.bus.values[B + "StateOfCharge.Displayed"]
    assert (await ask(Ev, what="charger")).code == "unavailable"


async def test_cold_weather_shortens_the_reach(ask):
    warm = (await ask(Reach)).result["length_m"]
    ask.bus.values |= {"Vehicle.Exterior.AirTemperature": -10.0, "Vehicle.Cabin.HVAC.Station.Row1.Driver.Temperature": 22.0}
    assert (await ask(Reach)).result["length_m"] < 0.85 * warm


async def test_how_far_in_minutes_names_real_streets_within_that_time(ask, maps, here):
    """The named ends are reachable in about that time; a place is within or beyond."""
    outcome = await ask(Reach, minutes=3)
    assert outcome.text.startswith("In three minutes we could get as far as ") and len(outcome.result["streets"]) >= 1
    assert (await ask(Reach, lang="zh", minutes=2)).text.startswith("两分钟最远能到")
    assert (await ask(Reach, minutes=10, place="the casino")).text.startswith("Yes, the Casino de Monte Carlo is about")
    assert (await ask(Reach, minutes=1, place="the casino")).outcome == "beyond"
    assert (await ask(Reach, minutes=500)).code == "invalid_args"
