"""Guidance of one session: follows its trip and the car, and has the prompt of the moment ready for whoever may speak.

    stream = GuidanceStream(RouteProcess(cache_dir), clock)
    task = asyncio.create_task(stream.run(bus, lambda: session.memory, on_change=session.memory.update))
    prompt = stream.take()        # whenever nobody speaks: the words of this moment, or None

It never speaks by itself. A prompt waits until it is taken or stale; then it is dropped and the next announcement of the same turn
takes its place, so nobody is cut off and nothing old is said. At most four wait.
"""
import asyncio
import logging
import math
from collections import deque
from dataclasses import replace
from typing import Any, Callable

from harness.host.errors import HostError, NotFound
from harness.host.providers import Point, Signal, VehicleBus
from skills_automotive.navigation import narrative
from skills_automotive.navigation.geometry import Line, turn
from skills_automotive.navigation.guidance import ASKEW_DEG, ASKEW_M, Fix, Guidance, Prompt, State
from skills_automotive.navigation.route_process import Planner
from skills_automotive.navigation.trip import Trip
from venus_edge.clock import Clock
from venus_edge.errors import VenusError
from venus_edge.metrics import METRICS

_L = "Vehicle.CurrentLocation."
LATITUDE, LONGITUDE, HEADING, ACCURACY = _L + "Latitude", _L + "Longitude", _L + "Heading", _L + "HorizontalAccuracy"
SPEED = "Vehicle.Speed"
SIGNALS = (LATITUDE, LONGITUDE, HEADING, SPEED, ACCURACY)
PERIOD_S = 1.0
STALE_S, VAGUE_M, STANDING_KMH = 1.5, 60.0, 1.0
"""A moving car's position older or vaguer than this is none: the car is carried along by its speed."""
WAITING = 4
TRAIL = 10
DOUBTS = 8
"""So many positions in a row may lie on roads that cross the car's direction before they are believed."""
AGAIN_S = 15.0
"""After finding no way at all, it is tried again so much later."""
log = logging.getLogger(__name__)


def fix_of(signals: dict[str, Signal], now: float) -> Fix:
    """A position from the car's signals; without satellites where it is missing, old or vague.

    A car that stands tells its position once: only of a moving one an old position means that the satellites are gone.
    """
    def value(path: str) -> float | None:
        signal = signals.get(path)
        ok = signal is not None and isinstance(signal.value, (int, float)) and math.isfinite(signal.value)
        return float(signal.value) if ok else None

    lat, lon, accuracy, speed = value(LATITUDE), value(LONGITUDE), value(ACCURACY), value(SPEED)
    if speed is not None and signals[SPEED].age_s > STALE_S:
        speed = None
    known = lat is not None and lon is not None and (accuracy or 0.0) <= VAGUE_M
    if known and (speed is None or speed > STANDING_KMH):
        known = min(signals[LATITUDE].age_s, signals[LONGITUDE].age_s) <= STALE_S
    return Fix(now, Point(lat, lon) if known else None, value(HEADING), speed)


class GuidanceStream:
    """One session's guidance. All methods run on one event loop; the planner may take its time."""

    def __init__(self, planner: Planner, clock: Clock, lang: str = "en"):
        self.lang = lang
        self._planner, self._clock = planner, clock
        self._wanted: Trip | None = None
        self._trip: Trip | None = None
        self._guidance: Guidance | None = None
        self._reported: Trip | None = None
        """The trip as the session's memory knows it."""
        self._stops: tuple[dict, ...] = ()
        """Those of the present route; the first ones may have been passed."""
        self._waiting: deque[Prompt] = deque()
        self._trail: deque[Point] = deque(maxlen=TRAIL)
        self._fix: Fix | None = None
        self._paths = list(SIGNALS)
        self._planning: asyncio.Task | None = None
        self._again_at = 0.0
        self._told_no_way = False
        self._doubts = 0
        self.reroutes = 0

    @property
    def state(self) -> State | None:
        """Where the car is on its route; None while there is none."""
        return self._guidance.state if self._guidance is not None else None

    @property
    def trip(self) -> Trip | None:
        """The trip as it is now: stops that were reached are gone."""
        return self._trip

    def follow(self, trip: Trip | None) -> None:
        """Guide along this trip from now on; the same trip again changes nothing, None ends the guidance."""
        known = trip in (self._wanted, self._trip)
        self._wanted = trip
        if known:  # what the memory said before, or what the drive has made of it
            return
        self._trip, self._guidance, self._again_at, self._told_no_way = trip, None, 0.0, False
        self._reported = trip
        self._waiting.clear()
        self._stop_planning()

    def _stop_planning(self) -> None:
        if self._planning is not None:
            self._planning.cancel()
            self._planning = None

    def feed(self, fix: Fix) -> None:
        """Take one position, about once a second."""
        self._fix = fix
        if fix.point is not None:
            self._trail.append(fix.point)
        if self._trip is None:
            return
        guidance = self._guidance
        if guidance is None:
            self._plan(changed=False)
            return
        if guidance.lang != self.lang:
            guidance.speak(self.lang, self._trip.goal["said"][self.lang], tuple(stop["said"][self.lang] for stop in self._stops))
        for prompt in guidance.feed(fix):
            self._wait(prompt)
        left = self._stops[guidance.stops_passed:]
        if left != self._trip.stops:
            self._trip = replace(self._trip, stops=left)
        if guidance.off_route:
            self._plan(changed=True)

    def _wait(self, prompt: Prompt) -> None:
        keep = [p for p in self._waiting if p.maneuver != prompt.maneuver and not (prompt.urgent and not p.urgent)]
        METRICS.add("venus_harness_guidance_prompts_total")
        METRICS.add("venus_harness_guidance_overtaken_total", len(self._waiting) - len(keep))
        self._waiting = deque([*keep, prompt])
        while len(self._waiting) > WAITING:
            self._waiting.popleft()
            METRICS.add("venus_harness_guidance_dropped_total")

    def take(self, now: float | None = None, *, urgent_only: bool = False) -> Prompt | None:
        """The prompt to say at this moment, once; urgent ones first. What is stale by now is dropped.

        `urgent_only`: for a caller that has something else to say, which only a turn in the next seconds may overtake.
        """
        now = self._clock.now() if now is None else now
        while self._waiting:
            prompt = next((p for p in self._waiting if p.urgent), None if urgent_only else self._waiting[0])
            if prompt is None:
                return None
            self._waiting.remove(prompt)
            said = self._guidance.word(prompt, now) if self._guidance is not None and prompt.stage != "no_way" else \
                prompt if now <= prompt.expires_at else None
            if said is not None:
                return said
            METRICS.add("venus_harness_guidance_stale_total")
        return None

    # -- routes

    def _plan(self, changed: bool) -> None:
        if self._planning is not None or self._clock.now() < self._again_at or self._fix is None or self._fix.point is None:
            return
        self._planning = asyncio.ensure_future(self._find(self._trip, changed))
        self._planning.add_done_callback(self._found)

    async def _find(self, trip: Trip, changed: bool) -> tuple[Guidance | None, Trip | None]:
        fix, old = self._fix, self._guidance
        position, heading = fix.point, fix.heading if (fix.speed_kmh or 0.0) > 5 else None
        if changed and len(self._trail) >= 2:
            matched = await self._planner.match(list(self._trail))
            if matched is not None:
                if old is not None and _still_on(old, matched.point, matched.heading):
                    old.stay(matched.point)
                    self._doubts = 0
                    return old, None
                if old is not None and heading is not None and turn(matched.heading, heading) > ASKEW_DEG and self._doubts < DOUBTS:
                    self._doubts += 1  # a road across the car's own direction: the satellites are wrong about the place
                    old.doubt()
                    return old, None
                position = matched.point
                heading = matched.heading if heading is not None else None
        self._doubts = 0
        trip, route, edges = await self._planner.route(trip, position, heading)
        return Guidance(route, self.lang, goal=trip.goal["said"][self.lang], stops=tuple(s["said"][self.lang] for s in trip.stops),
                        edges=edges, changed=changed), trip

    def _found(self, done: asyncio.Task) -> None:
        if done is not self._planning:
            return
        self._planning = None
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            self._again_at = self._clock.now() + AGAIN_S
            log.warning("no route for guidance: %s", error.code if isinstance(error, VenusError) else type(error).__name__)
            if isinstance(error, NotFound) and not self._told_no_way:
                self._told_no_way = True
                self._wait(Prompt("no_way", "no_way", narrative.WORDS.say("prompt.no_way", self.lang), self.lang, False, self._clock.now() + 8))
            return
        guidance, trip = done.result()
        if trip is None:  # only the satellites were off the route
            METRICS.add("venus_harness_guidance_false_alarms_total")
            return
        if self._guidance is not None:
            self.reroutes += 1
            METRICS.add("venus_harness_guidance_reroutes_total")
        self._guidance, self._trip, self._stops, self._told_no_way = guidance, trip, trip.stops, False
        self._waiting.clear()
        if self._fix is not None:
            for prompt in guidance.feed(self._fix):
                self._wait(prompt)

    # -- the whole of it, for a session worker

    async def run(self, bus: VehicleBus, memory: Callable[[], dict], *, lang: Callable[[], str] | None = None,
                  on_change: Callable[[dict], Any] | None = None) -> None:
        """Ask the car once a second and follow the trip in the session's memory, for ever.

        `on_change` gets what the drive itself changed of the memory: stops that were reached, a way that was left.
        """
        while True:
            self.follow(Trip.of(memory()))
            if lang is not None:
                self.lang = lang()
            if self._trip is not None:
                self.feed(await self._look(bus))
                if on_change is not None and self._trip is not None and self._trip != self._reported:
                    self._reported, changes = self._trip, {}
                    self._trip.keep(changes)
                    on_change({"trip": changes["trip"]})
            await self._clock.sleep(PERIOD_S)

    async def _look(self, bus: VehicleBus) -> Fix:
        signals: dict[str, Signal] = {}
        try:
            signals = await bus.get(*self._paths)
        except NotFound as err:  # this car doesn't have one of them: ask without it from now on
            missing = err.data.get("path")
            self._paths = [path for path in self._paths if path != (missing if missing in self._paths else self._paths[-1])] or [SPEED]
        except HostError:
            pass
        return fix_of(signals, self._clock.now())

    async def close(self) -> None:
        """End what is under way. The planner is its owner's."""
        planning = self._planning
        self._stop_planning()
        if planning is not None:
            await asyncio.gather(planning, return_exceptions=True)


def _still_on(guidance: Guidance, point: Point, heading: float) -> bool:
    """Whether a matched position lies on the route, in its direction, near where the car was."""
    near = Line(guidance.route.shape).nearest(point, max(0.0, guidance.state.along_m - 60), guidance.state.along_m + 200, heading)
    return near.off_m <= ASKEW_M and turn(near.heading, heading) <= ASKEW_DEG
