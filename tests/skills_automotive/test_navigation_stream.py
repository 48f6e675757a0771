"""Guidance of a session: simulated drives with the real maps, virtual time, wrong turns, tunnels, stops, and who may speak when."""
import asyncio
import dataclasses
import os
import re
import signal

import pytest

from harness.deliver.desk import DeliveryDesk, PreparedReply
from harness.deliver.gate import Moment
from harness.deliver.late import LatePolicy
from harness.deliver.replies import InAir
from harness.execute.testing import MemoryBus
from harness.host.errors import NotFound, Unavailable
from harness.host.providers import Point, Signal
from harness.journal import MemoryJournal
from harness.ledger import Ledger
from harness.phrases import Words
from harness.settings import HarnessSettings
from harness.testing import ListedCatalog
from skills_automotive import spoken
from skills_automotive.navigation import stream as streams
from skills_automotive.navigation.geometry import Line, metres, moved
from skills_automotive.navigation.guidance import Fix
from skills_automotive.navigation.route_process import MapsPlanner, RouteProcess
from skills_automotive.navigation.stream import GuidanceStream, fix_of
from skills_automotive.navigation.testing import RouteDriver
from skills_automotive.navigation.trip import Trip
from venus_edge.ids import new_id
from venus_edge.metrics import METRICS
from venus_edge.testing import VirtualClock

STADIUM, CASINO, LARVOTTO, HARBOUR = Point(43.7277, 7.4155), Point(43.73916, 7.42802), Point(43.7497, 7.4376), Point(43.7353, 7.4213)


def place(point, name):
    return {"id": name, "name": name, "said": {"en": name, "zh": name}, "kind": "", "street": "", "lat": point.lat, "lon": point.lon}


class World:
    """A car on the road, guidance and an ear that takes every prompt within a second."""

    def __init__(self, maps, lang="en"):
        self.maps, self.clock = maps, VirtualClock()
        self.stream = GuidanceStream(MapsPlanner(maps), self.clock, lang)
        self.said: list[tuple[float, str, str]] = []

    async def feed(self, fix):
        await self.clock.advance(max(0.0, fix.at - self.clock.now()))
        self.stream.feed(fix)
        await self.clock.advance(0.01)  # a route is found meanwhile
        while (prompt := self.stream.take()) is not None:
            self.said.append((fix.at, prompt.stage, prompt.text))

    async def drive(self, car, until=lambda car: False):
        for fix in car.fixes():
            await self.feed(fix)
            if until(car):
                return fix


async def test_a_whole_drive_is_guided_and_nothing_is_said_twice(maps):
    """From the trip alone: the first prompt within a second, the arrival at the end, no sentence twice in a row."""
    world = World(maps)
    world.stream.follow(Trip(place(LARVOTTO, "the beach")))
    route = maps.route(STADIUM, LARVOTTO)
    await world.drive(RouteDriver(route.shape, maps.edges(route), noise_m=3, seed=1))
    texts = [text for _, _, text in world.said]
    assert world.said[0][0] <= 1.0 and texts[-1].startswith("You've reached the beach")
    assert all(a != b for a, b in zip(texts, texts[1:])) and world.stream.state.arrived and world.stream.reroutes == 0


@pytest.mark.parametrize("lang,words", [("en", "New route: "), ("zh", "路线已更新，")])
async def test_a_wrong_turn_is_answered_with_a_new_route_ahead_of_the_car(maps, lang, words):
    """Within three seconds of being 15 m off there is a new route: it begins where the car is and in its direction, and it is said."""
    world = World(maps, lang)
    world.stream.follow(Trip(place(CASINO, "the casino")))
    route, other = maps.route(STADIUM, CASINO), maps.route(STADIUM, LARVOTTO)
    line = Line(route.shape)
    car, left_at = RouteDriver(other.shape, maps.edges(other), noise_m=3, seed=4, tunnels=False), None
    for fix in car.fixes():
        await world.feed(fix)
        if left_at is None and line.nearest(Point(*car.true_position)).off_m > 15:
            left_at = fix.at
        if world.stream.reroutes:
            break
    assert world.stream.reroutes == 1 and fix.at - left_at <= 3.0
    start, heading = Line(world.stream._guidance.route.shape).at(0.0)
    assert metres(Point(*start), Point(*car.true_position)) < 60
    assert abs((heading - fix.heading + 180) % 360 - 180) < 90
    assert world.said[-1][0] == fix.at and world.said[-1][2].startswith(words)
    before = world.stream.reroutes
    rest = RouteDriver(world.stream._guidance.route.shape, start_at=fix.at, speed_kmh=40, noise_m=2)
    await world.drive(rest)
    assert world.stream.state.arrived and world.stream.reroutes == before


async def test_a_street_canyon_is_no_wrong_turn(maps):
    """Positions 25 m beside the road for 8 s: the matched trace says that the car is on its route, and nothing is changed."""
    world = World(maps)
    world.stream.follow(Trip(place(CASINO, "the casino")))
    route = maps.route(STADIUM, CASINO)
    car, alarms = RouteDriver(route.shape, maps.edges(route), tunnels=False), METRICS.snapshot().get("venus_harness_guidance_false_alarms_total", 0)
    for i, fix in enumerate(car.fixes()):
        if 21 <= i < 29:
            fix = dataclasses.replace(fix, point=Point(*moved((fix.point.lat, fix.point.lon), fix.heading + 90, 25.0)))
        await world.feed(fix)
    assert world.stream.reroutes == 0 and world.stream.state.arrived
    assert METRICS.snapshot()["venus_harness_guidance_false_alarms_total"] > alarms


async def test_a_reroute_after_a_tunnel_starts_where_the_car_came_out(maps):
    """Satellites gone, the wrong branch taken inside: the first positions outside lead to a new route within three seconds."""
    world = World(maps)
    world.stream.follow(Trip(place(CASINO, "the casino")))
    route, other = maps.route(STADIUM, CASINO), maps.route(STADIUM, LARVOTTO)
    car, out_at = RouteDriver(other.shape, maps.edges(other), noise_m=2, seed=2), None
    line = Line(route.shape)
    for fix in car.fixes():
        await world.feed(fix)
        if fix.point is not None and out_at is None and line.nearest(fix.point).off_m > 15:
            out_at = fix.at
        if world.stream.reroutes:
            break
    assert out_at is not None and fix.at - out_at <= 3.0


async def test_a_stale_prompt_is_never_said(maps):
    """The user talks for the whole approach: what was due is dropped and counted, and the next turn is announced as ever."""
    world = World(maps)
    world.stream.follow(Trip(place(LARVOTTO, "the beach")))
    route = maps.route(STADIUM, LARVOTTO)
    car, stale = RouteDriver(route.shape, maps.edges(route)), METRICS.snapshot().get("venus_harness_guidance_stale_total", 0)
    for i, fix in enumerate(car.fixes()):
        await world.clock.advance(max(0.0, fix.at - world.clock.now()))
        world.stream.feed(fix)
        await world.clock.advance(0.01)
        assert len(world.stream._waiting) <= streams.WAITING
        if not 20 <= i < 90:
            while (prompt := world.stream.take()) is not None:
                assert prompt.expires_at >= world.clock.now() and (prompt.maneuver < 0 or prompt.maneuver >= world.stream.state.next_maneuver)
                world.said.append((fix.at, prompt.stage, prompt.text))
    assert METRICS.snapshot()["venus_harness_guidance_stale_total"] > stale
    assert not any(20 <= at < 90 for at, _, _ in world.said) and world.said[-1][2].startswith("You've reached")


async def test_what_is_about_the_next_seconds_is_said_first(maps):
    """An urgent prompt overtakes one that can wait, and replaces the older one of its own turn."""
    world = World(maps)
    world.stream.follow(Trip(place(LARVOTTO, "the beach")))
    route = maps.route(STADIUM, LARVOTTO)
    for fix in RouteDriver(route.shape, maps.edges(route)).fixes():
        await world.clock.advance(max(0.0, fix.at - world.clock.now()))
        world.stream.feed(fix)
        await world.clock.advance(0.01)
        if any(p.urgent for p in world.stream._waiting):
            break
    assert world.stream.take().urgent and not any(p.stage != "now" and p.maneuver == world.stream.state.next_maneuver for p in world.stream._waiting)


async def test_stops_that_were_reached_leave_the_trip(maps):
    """Memory is told of it once; the same trip again in memory does not begin anew."""
    world, changes = World(maps), []
    trip = Trip(place(LARVOTTO, "the beach"), stops=(place(HARBOUR, "the harbour"), place(CASINO, "the casino")))
    memory: dict = {}
    trip.keep(memory)
    route = maps.route(STADIUM, LARVOTTO, via=[HARBOUR, CASINO])
    car = RouteDriver(route.shape, maps.edges(route), tunnels=False)
    bus = MemoryBus({"Vehicle.Speed": 0.0})

    def change(update):
        changes.append(update)
        memory.update(update)

    task = asyncio.ensure_future(world.stream.run(bus, lambda: memory, on_change=change))
    try:
        for fix in car.fixes():
            bus.values |= {streams.LATITUDE: fix.point.lat, streams.LONGITUDE: fix.point.lon, streams.HEADING: fix.heading,
                           streams.SPEED: fix.speed_kmh}
            await world.clock.advance(1.0)
            while (prompt := world.stream.take()) is not None:
                world.said.append((fix.at, prompt.stage, prompt.text))
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    texts = [text for _, _, text in world.said]
    assert any(t.startswith("You've reached the harbour") for t in texts) and any(t.startswith("You've reached the casino") for t in texts)
    assert [len(c["trip"]["stops"]) for c in changes] == [1, 0] and memory["trip"]["stops"] == [] and world.stream.reroutes == 0
    assert texts[-1].startswith("You've reached the beach")


async def test_the_end_of_a_trip_ends_the_guidance_at_once(maps):
    """Cancelled in memory: nothing that waits is said, nothing more comes."""
    world = World(maps)
    world.stream.follow(Trip(place(LARVOTTO, "the beach")))
    route = maps.route(STADIUM, LARVOTTO)
    car = RouteDriver(route.shape, maps.edges(route))
    for _ in range(3):
        world.stream.feed(car.step())
        await world.clock.advance(0.01)
    assert world.stream._waiting
    world.stream.follow(None)
    assert world.stream.take() is None and world.stream.state is None
    world.stream.feed(car.step())
    assert world.stream.take() is None


async def test_the_language_may_change_on_the_way(maps):
    """From one prompt to the next, names and all; nothing is said again because of it."""
    world = World(maps)
    goal = place(LARVOTTO, "the beach") | {"said": {"en": "the beach", "zh": "海滩"}}
    world.stream.follow(Trip(goal))
    route = maps.route(STADIUM, LARVOTTO)
    for i, fix in enumerate(RouteDriver(route.shape, maps.edges(route)).fixes()):
        world.stream.lang = "zh" if i >= 60 else "en"
        await world.feed(fix)
    assert world.said[-1][2].startswith("已到达海滩") and world.said[0][2].endswith(".")
    assert all(text.endswith("。") is (at > 60) for at, _, text in world.said if not 59 <= at <= 61)


async def test_a_way_that_the_drive_has_left_behind_is_reported(maps):
    """A point to pass that lies far off by now is dropped by the planner: memory is told, and the guidance goes on undisturbed."""
    world, changes = World(maps), []
    memory: dict = {}
    Trip(place(CASINO, "the casino"), through=((43.7497, 7.4376),)).keep(memory)
    bus = MemoryBus({streams.LATITUDE: STADIUM.lat, streams.LONGITUDE: STADIUM.lon, streams.HEADING: 0.0, streams.SPEED: 0.0})
    task = asyncio.ensure_future(world.stream.run(bus, lambda: memory, on_change=lambda update: (changes.append(update), memory.update(update))))
    await world.clock.advance(5.0)
    state = world.stream.state
    await world.clock.advance(5.0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [c["trip"]["through"] for c in changes] == [[]] and memory["trip"]["through"] == []
    assert world.stream.state == state and world.stream.reroutes == 0


async def test_no_way_is_said_once_and_tried_again_later(maps):
    """A destination at sea: one sentence, no engine called every second, and guidance begins once there is a way."""
    class Counting(MapsPlanner):
        calls = 0

        async def route(self, *args):
            self.calls += 1
            return await super().route(*args)

    world = World(maps)
    world.stream._planner = planner = Counting(maps)
    world.stream.follow(Trip(place(Point(43.60, 7.60), "the sea")))
    for t in range(40):
        await world.feed(Fix(float(t + 1), STADIUM, 0.0, 0.0))
    assert [text for _, _, text in world.said] == ["I can't find a way from here."] and planner.calls <= 3
    world.stream.follow(Trip(place(CASINO, "the casino")))
    await world.feed(Fix(50.0, STADIUM, 0.0, 0.0))
    await world.feed(Fix(51.0, STADIUM, 0.0, 0.0))
    assert world.stream.state is not None and len(world.said) == 2


def test_a_position_is_believed_while_it_is_fresh_or_the_car_stands():
    """Old while moving, vague or missing means no satellites; a standing car tells its position once."""
    def signals(age=0.0, speed=50.0, **more):
        values = {streams.LATITUDE: 43.7, streams.LONGITUDE: 7.4, streams.HEADING: 90.0} | more
        return {path: Signal(path, value, age) for path, value in values.items()} | {streams.SPEED: Signal(streams.SPEED, speed, 0.1)}

    assert fix_of(signals(), 5.0) == Fix(5.0, Point(43.7, 7.4), 90.0, 50.0)
    assert fix_of(signals(age=3.0), 5.0).point is None and fix_of(signals(age=300.0, speed=0.0), 5.0).point is not None
    assert fix_of(signals(**{streams.ACCURACY: 200.0}), 5.0).point is None and fix_of(signals(**{streams.LATITUDE: None}), 5.0).point is None
    assert fix_of({}, 5.0) == Fix(5.0, None, None, None)


async def test_a_car_without_some_signals_is_guided_without_them(maps):
    """No compass and no accuracy: they are not asked for again, and the position still counts."""
    world = World(maps)
    bus = MemoryBus({streams.LATITUDE: STADIUM.lat, streams.LONGITUDE: STADIUM.lon, streams.SPEED: 0.0})
    memory: dict = {}
    Trip(place(CASINO, "the casino")).keep(memory)
    task = asyncio.ensure_future(world.stream.run(bus, lambda: memory))
    await world.clock.advance(6.0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert world.stream.state is not None and set(world.stream._paths) == {streams.LATITUDE, streams.LONGITUDE, streams.SPEED}


async def test_the_engine_in_its_own_process_answers_and_comes_back_after_a_crash(map_cache, maps):
    """The same route as here; errors come over as they are; a killed process is replaced; a missing map is named."""
    planner, trip = RouteProcess(map_cache), Trip(place(CASINO, "the casino"))
    try:
        _, route, edges = await planner.route(trip, STADIUM, None)
        assert route == maps.route(STADIUM, CASINO) and edges == maps.edges(route)
        with pytest.raises(NotFound):
            await planner.route(Trip(place(Point(0.0, 0.0), "nowhere")), STADIUM, None)
        os.kill(next(iter(planner._pool._processes)), signal.SIGKILL)
        assert (await planner.route(trip, STADIUM, None))[1] == route
        assert await planner.match([Point(43.60, 7.60), Point(43.601, 7.60)]) is None
    finally:
        planner.close()
    missing = RouteProcess(map_cache / "elsewhere")
    with pytest.raises(Unavailable, match="missing"):
        await missing.route(trip, STADIUM, None)
    missing.close()


class GuidedDesk(DeliveryDesk):
    """The delivery desk with guidance in its queue: urgent prompts before everything, others when nothing else waits."""

    __slots__ = ("stream",)

    def _choose(self, newest_turn, now):
        prompt = self.stream.take(now, urgent_only=True)
        if prompt is None:
            super()._choose(newest_turn, now)
            prompt = self.stream.take(now) if self._held is None else None
        if prompt is not None:
            reply = PreparedReply(new_id("reply"), "", 0, prompt.text, "notice", prompt.lang, newest_turn)
            self._held = InAir(reply, (), now, newest_turn)


async def test_at_the_delivery_desk_guidance_waits_for_the_user_and_is_never_old(maps):
    """Through the real desk and gate: no prompt while the user speaks or an earlier reply sounds; what is said is right at that moment."""
    world, words = World(maps), Words(ListedCatalog())
    settings = HarnessSettings()
    desk = GuidedDesk(Ledger(world.clock, journal=MemoryJournal()), world.clock, settings, LatePolicy(settings, words), words, lambda c: None)
    desk.stream = world.stream
    world.stream.follow(Trip(place(LARVOTTO, "the beach")))
    route = maps.route(STADIUM, LARVOTTO)
    car, air, said, pos = RouteDriver(route.shape, maps.edges(route)), None, [], 0
    for fix in car.fixes():
        await world.clock.advance(max(0.0, fix.at - world.clock.now()))
        world.stream.feed(fix)
        for _ in range(10):  # units of a tenth of a second
            await world.clock.advance(0.1)
            pos += 1600
            talking = any(a <= world.clock.now() < b for a, b in ((20, 27), (33, 40), (60, 63), (80, 86)))
            if air is not None and world.clock.now() >= air[1]:
                desk.finished(air[0].id, heard=air[0].text, unheard="", completed=True, confirmed=True, stopped=False)
                air = None
            reply = desk.next(Moment(pos, talking, False, air is not None, 0), 0)
            if reply is not None:
                assert air is None and not talking and reply.kind == "notice"
                desk.started(reply.id)
                air = (reply, world.clock.now() + len(reply.text) / 15)
                said.append((world.clock.now(), reply.text, world.stream.state))
    assert len(said) > 6 and said[-1][1].startswith("You've reached the beach")
    for at, text, state in said:
        if match := re.match(r"In (.+?)(?: you reach|, )", text):
            ahead = world.stream._guidance._at[state.next_maneuver] - state.along_m
            spoken_now = {spoken.distance(max(ahead + slack, 1), "en") for slack in range(-30, 31, 5)}
            assert match[1] in spoken_now, (at, text, ahead)
