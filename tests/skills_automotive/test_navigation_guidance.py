"""Turn-by-turn guidance on simulated drives along Monaco's roads: virtual time, noisy positions, tunnels, wrong turns."""
import dataclasses

import pytest

from harness.host.providers import Maneuver, Point, Route
from skills_automotive.navigation import narrative
from skills_automotive.navigation.geometry import Line, metres, moved, turn
from skills_automotive.navigation.guidance import Fix, Guidance, distances
from skills_automotive.navigation.testing import RouteDriver

ROCK, CASINO, LARVOTTO = Point(43.7311, 7.4205), Point(43.73916, 7.42802), Point(43.7497, 7.4376)
EXOTIC_GARDEN, MONEGHETTI, STADIUM = Point(43.7315, 7.4131), Point(43.7376, 7.4163), Point(43.7277, 7.4155)
DRIVES = [(STADIUM, CASINO), (STADIUM, LARVOTTO), (LARVOTTO, ROCK), (CASINO, EXOTIC_GARDEN), (MONEGHETTI, CASINO), (EXOTIC_GARDEN, LARVOTTO),
          (ROCK, MONEGHETTI), (CASINO, STADIUM)]


@pytest.fixture(scope="module")
def drives(maps):
    routes = [maps.route(a, b) for a, b in DRIVES]
    return [(route, maps.edges(route)) for route in routes]


def drive(route, edges, lang="en", **driver):
    """(prompts as (along, speed in m/s, prompt), guidance, driver) of one drive along the whole route."""
    guidance, car, said = Guidance(route, lang, goal="the goal", edges=edges), RouteDriver(route.shape, edges, **driver), []
    for fix in car.fixes():
        said += [(car.along, car.v, prompt) for prompt in guidance.feed(fix)]
    return said, guidance, car


@pytest.mark.parametrize("noise_m", [0.0, 4.0])
@pytest.mark.parametrize("n", range(len(DRIVES)))
def test_everything_to_do_is_announced_in_time_and_nothing_twice(drives, n, noise_m):
    """Each thing to do is said at least 2 s before it (or with the one before), never after it, and no announcement comes twice."""
    route, edges = drives[n]
    said, guidance, car = drive(route, edges, noise_m=noise_m, seed=n)
    assert not guidance.off_route and guidance.arrived
    keys = [prompt.key for _, _, prompt in said]
    assert len(keys) == len(set(keys))
    at = [car.line.along[m.begin] for m in route.maneuvers]
    for i, maneuver in enumerate(route.maneuvers):
        if maneuver.type in narrative.QUIET:
            assert not any(p.maneuver == i for _, _, p in said)
            continue
        told = [(at[i] - along, v) for along, v, p in said if i in (p.maneuver, p.then)]
        assert told, (i, maneuver)
        ahead, v = told[0]
        if i + 1 < len(route.maneuvers):
            assert ahead >= min(2.0 * v, at[i] - 1) - 3 * noise_m, (i, ahead, v)
        for along, _, prompt in said:
            if prompt.maneuver == i and i + 1 < len(route.maneuvers):
                assert along <= at[i] + 3 * noise_m + 5, (prompt, along - at[i])


def test_two_announcements_never_run_into_each_other(drives):
    """At most one prompt a second, and what is said early leaves time to be said before the next of the same turn."""
    for n, (route, edges) in enumerate(drives):
        guidance, car, last = Guidance(route, "en", edges=edges), RouteDriver(route.shape, edges, seed=n), {}
        for fix in car.fixes():
            prompts = guidance.feed(fix)
            assert len(prompts) <= 1 or {"lost"} & {p.stage for p in prompts}
            for prompt in prompts:
                if prompt.maneuver >= 0 and prompt.maneuver in last and prompt.stage == "now" and guidance.state.next_maneuver == prompt.maneuver:
                    assert fix.at - last[prompt.maneuver] >= 2.0
                last[prompt.maneuver] = fix.at


def test_distances_grow_with_the_speed():
    """Twice as fast, twice as far; in a town nothing is said early; a car at a light counts as one that will drive on."""
    assert distances(120)["now"] == pytest.approx(2 * distances(60)["now"])
    assert "early" not in distances(50) and distances(130)["early"] > 1500
    assert distances(0) == distances(20) and distances(50)["prepare"] == pytest.approx(222, abs=2)


def test_the_spoken_distance_is_the_one_at_the_moment_of_speaking(drives):
    """A prompt that waits is worded again for where the car is by then, and is dropped once it is wrong."""
    route, edges = drives[1]
    guidance, car = Guidance(route, "en", edges=edges), RouteDriver(route.shape, edges)
    for fix in car.fixes():
        prompt = next((p for p in guidance.feed(fix) if p.stage == "prepare" and p.maneuver > 2), None)
        if prompt:
            break
    later = guidance.word(prompt, fix.at + 4)
    assert later is not None and later.text != prompt.text and later.text.endswith(prompt.text.split(", ", 1)[1])
    assert guidance.word(prompt, prompt.expires_at + 0.1) is None


def test_chinese_and_english_prompts_have_no_word_of_the_other_language(drives):
    """Our own narrative in both languages: everything but street names is Chinese, or is English."""
    import re
    for lang in ("en", "zh"):
        for route, edges in drives:
            for _, _, prompt in drive(route, edges, lang)[0]:
                text = prompt.text
                for street in sorted(filter(None, {m.street for m in route.maneuvers}), key=len, reverse=True):
                    text = text.replace(street, "")
                text = text.replace("the goal", "")
                assert not re.search(r"[a-zA-Z]" if lang == "zh" else r"[一-鿿]", text), prompt.text
                assert prompt.text[-1] == ("。" if lang == "zh" else ".") and not re.search(r"{|\d", text)


def wrong_turn(maps, route, edges, index):
    """A line that follows the route to maneuver `index` and then goes on straight for 250 m; where it leaves."""
    line = Line(route.shape)
    leave = line.along[route.maneuvers[index].begin]
    shape = list(route.shape[:route.maneuvers[index].begin + 1])
    _, heading = line.at(leave - 2)
    for step in range(1, 26):
        shape.append(moved(shape[-1], heading, 10.0))
    return shape, leave


@pytest.mark.parametrize("speed_kmh", [25, 50, 80])
@pytest.mark.parametrize("noise_m", [0.0, 4.0])
def test_a_missed_turn_is_noticed_within_three_seconds(maps, drives, speed_kmh, noise_m):
    """From the first moment that the car is truly 15 m beside its route; and a drive on the route is never taken for off it."""
    found = []
    for n, (route, edges) in enumerate(drives):
        for index, maneuver in enumerate(route.maneuvers):
            if maneuver.type not in (10, 11, 14, 15) or route.maneuvers[index - 1].length_m < 40:
                continue
            shape, leave = wrong_turn(maps, route, edges, index)
            guidance, car = Guidance(route, "en", edges=edges), RouteDriver(shape, (), speed_kmh=speed_kmh, noise_m=noise_m, seed=n)
            line, left_at = Line(route.shape), None
            for fix in car.fixes():
                guidance.feed(fix)
                if left_at is None and car.along > leave and line.nearest(Point(*car.true_position)).off_m > 15:
                    left_at = fix.at
                if guidance.off_route:
                    break
            if not guidance.off_route and (left_at is None or fix.at - left_at < 3.0):
                continue  # straight on leads along the route, near enough, to the end of this drive
            assert guidance.off_route, (n, index)
            assert car.along > leave - 1 and fix.at - (left_at or fix.at) <= 3.0, (n, index, fix.at - left_at)
            found.append(index)
    assert len(found) >= 3


def test_driving_the_route_backwards_is_off_the_route(drives):
    """Turned round on the same street: the position is right and the direction is not."""
    route, edges = drives[2]
    guidance, car = Guidance(route, "en", edges=edges), RouteDriver(route.shape, edges, tunnels=False)
    for fix in car.fixes():
        guidance.feed(fix)
        if car.along > 300:
            break
    back = RouteDriver(list(reversed(Line(route.shape).shape[:]))[-40:], (), speed_kmh=30, start_at=fix.at)
    here = back.line.nearest(Point(*car.true_position)).along_m
    back.along = here
    began = fix.at
    for _ in range(15):
        fix = back.step()
        guidance.feed(fix)
        if guidance.off_route:
            break
    assert guidance.off_route and fix.at - began <= 6.0


def test_in_a_tunnel_the_car_is_carried_along_by_its_speed(drives):
    """Without satellites for two kilometres: the estimate stays within 3 %, prompts still come in time, and nothing is said of it."""
    route, edges = drives[1]
    longest = max(sum(e.length_m for e in edges if e.tunnel and e.begin >= 57), 0.0)
    assert longest > 1000
    guidance, car, worst, blind, stages = Guidance(route, "en", edges=edges), RouteDriver(route.shape, edges, noise_m=3, seed=5), 0.0, 0.0, []
    for fix in car.fixes():
        stages += [p.stage for p in guidance.feed(fix)]
        if fix.point is None:
            blind = max(blind, guidance.state.blind_s)
            worst = max(worst, abs(guidance.state.along_m - car.along))
    assert blind > 60 and worst < 0.03 * 2000 and guidance.arrived and "lost" not in stages and not guidance.off_route


def test_a_loss_of_satellites_in_the_open_is_told_once_and_survived(drives):
    """After 20 s without a fix outside a tunnel one sentence says so; guidance goes on and finds the car again."""
    route, edges = drives[2]
    plain = [dataclasses.replace(e, tunnel=False) for e in edges]
    said, guidance, _ = drive(route, tuple(plain), tunnels=False, dark=((300.0, 900.0),))
    assert [p.stage for _, _, p in said].count("lost") == 1 and guidance.arrived and not guidance.off_route


def test_after_very_long_without_satellites_nothing_is_made_up(drives):
    """After five minutes the position along the route is not believed, and nothing is announced."""
    route, edges = drives[0]
    guidance = Guidance(route, "en", edges=edges)
    guidance.feed(Fix(0.0, Point(*route.shape[0]), None, 0.0))
    said = [(t, p) for t in range(1, 400) for p in guidance.feed(Fix(float(t), None, None, 1.0))]
    assert said and all(t <= 300 for t, _ in said)


def test_one_reflection_does_not_leave_the_route(drives):
    """A single position 80 m away is a reflection; two in a row elsewhere are a wrong turn."""
    route, edges = drives[1]
    for outliers in (1, 2):
        guidance, car = Guidance(route, "en", edges=edges), RouteDriver(route.shape, edges, tunnels=False)
        for i, fix in enumerate(car.fixes()):
            if 30 <= i < 30 + outliers:
                fix = dataclasses.replace(fix, point=Point(*moved((fix.point.lat, fix.point.lon), 135.0, 80.0)))
            guidance.feed(fix)
            if i == 60:
                break
        assert guidance.off_route is (outliers == 2)


def test_time_and_distance_left_only_fall_and_end_at_nothing(drives):
    route, edges = drives[0]
    guidance, car, before = Guidance(route, "en", edges=edges), RouteDriver(route.shape, edges), None
    assert guidance.state.left_s == pytest.approx(route.time_s, rel=0.01)
    for fix in car.fixes():
        guidance.feed(fix)
        state = guidance.state
        if before is not None:
            assert state.left_m <= before.left_m + 1 and state.left_s <= before.left_s + 0.5
        before = state
    assert state.left_m < 25 and state.left_s < 5 and state.arrived


def synthetic(*parts, speed=14.0):
    """A route of straight stretches (type, turn in degrees, metres, street)."""
    shape, heading, maneuvers = [(43.0, 7.0)], 90.0, []
    for kind, angle, length, street in parts:
        heading = (heading + angle) % 360
        maneuvers.append(Maneuver(kind, street, length, length / speed, "", begin=len(shape) - 1))
        for _ in range(int(length // 50)):
            shape.append(moved(shape[-1], heading, 50.0))
        if length % 50:
            shape.append(moved(shape[-1], heading, length % 50))
    return Route(sum(p[2] for p in parts), sum(p[2] for p in parts) / speed, (), tuple(shape), tuple(maneuvers))


def test_two_turns_close_together_are_told_together():
    """"Turn right, then turn left": the second is not announced ahead again, and not at a moment when it is too late."""
    route = synthetic((1, 0, 600, "A"), (10, 90, 40, "B"), (15, -90, 500, "C"), (4, 0, 0, ""))
    said, guidance, _ = drive(route, (), speed_kmh=50)
    first = next(p for _, _, p in said if p.maneuver == 1)
    assert first.text.endswith("turn right onto B, then turn left onto C.") and first.then == 2
    assert not any(p.key == "2.prepare" for _, _, p in said) and guidance.arrived


def test_on_a_fast_road_the_exit_is_told_three_times_and_the_long_stretch_once():
    route = synthetic((1, 0, 100, ""), (38, 0, 6000, "A8"), (20, 20, 400, "D1"), (4, 0, 0, ""), speed=33.0)
    said, _, _ = drive(route, (), speed_kmh=120)
    texts = [(p.stage, p.text) for _, _, p in said]
    assert [p.stage for _, _, p in said if p.maneuver == 2] == ["early", "prepare", "now"]
    assert [t for stage, t in texts if stage == "follow"] == ["Follow A8 for six kilometres."]
    assert any(t == "In one point five kilometres, take the exit on the right towards D1." for _, t in texts)


def test_a_stop_on_the_way_is_reached_by_name_and_the_goal_last():
    route = synthetic((1, 0, 400, "A"), (5, 0, 0, ""), (8, 0, 300, "A"), (6, 0, 0, ""))
    guidance, car, said = Guidance(route, "en", goal="the casino", stops=("the pharmacy",)), RouteDriver(route.shape, speed_kmh=40), []
    for fix in car.fixes():
        said += [p.text for p in guidance.feed(fix)]
    assert "You've reached the pharmacy, on the right." in said and said[-1] == "You've reached the casino, on the left."
    assert guidance.stops_passed == 1 and guidance.arrived
    assert guidance.feed(Fix(car.at + 1, Point(*car.true_position), 90, 0)) == []


def test_an_old_position_is_ignored(drives):
    route, edges = drives[0]
    guidance = Guidance(route, "en", edges=edges)
    guidance.feed(Fix(10.0, Point(*route.shape[0]), 200, 10))
    along = guidance.state.along_m
    assert guidance.feed(Fix(9.0, Point(*route.shape[5]), 200, 10)) == [] and guidance.state.along_m == along


@pytest.mark.parametrize("kind", sorted(narrative.KINDS))
def test_every_maneuver_has_words_in_both_languages(kind):
    """No type of the engine's is left without a sentence, with and without a street."""
    for street in ("", "Rue Grimaldi"):
        steps = (Maneuver(kind, street, 100, 10, "", exit=2), Maneuver(27 if kind == 26 else 8, street, 100, 10, ""))
        for lang in ("en", "zh"):
            text = narrative.phrase(steps, 0, lang)
            assert text and "{" not in text and (street in text or kind in (4, 5, 6, 28, 29))
            assert narrative.ahead(steps, 0, 200, lang) and narrative.now(steps, 0, lang)


def test_a_line_finds_the_carriageway_in_the_cars_direction():
    """There and back on the same street: the heading decides which of the two is meant."""
    there = [moved((43.0, 7.0), 90.0, d) for d in (0, 100, 200)]
    line = Line([*there, *reversed([moved(p, 0.0, 8.0) for p in there])])
    middle = Point(*moved(moved((43.0, 7.0), 90.0, 100), 0.0, 4.0))
    assert line.nearest(middle, heading=90.0).along_m < 200 < line.nearest(middle, heading=270.0).along_m
    assert turn(350, 10) == 20 and metres(middle, middle) == 0
    with pytest.raises(ValueError):
        Line([])
