"""Turn-by-turn guidance: positions in, prompts out. Pure: no clock, no engine, no speech; the caller brings positions about once a second.

    guidance = Guidance(route, "en", goal="the casino")
    for prompt in guidance.feed(Fix(at=12.0, point=Point(43.73, 7.41), heading=80, speed_kmh=48)): ...
    guidance.off_route          # True: ask for a new route from where the car is
    guidance.word(prompt, now)  # the prompt as it must be said at this moment, or None: it is stale

Each thing to do is announced up to three times, at distances that grow with the speed, and each announcement is given out once.
While the satellites are gone the car is carried along the route by its speed.
"""
import math
from dataclasses import dataclass, replace

from harness.host.providers import Edge, Point, Route
from skills_automotive.navigation import narrative
from skills_automotive.navigation.geometry import LatLon, Line, OnLine, turn

EARLY_S, PREPARE_S, NOW_S = 45.0, 16.0, 5.0
"""How long before the maneuver each announcement is due, at the speed of the moment."""
EARLY_KMH = 65.0
"""Below this speed nothing is announced early: in a town it would be wrong by the time it counts."""
SLOWEST_MS = 7.0
"""Distances are those of at least this speed: who waits at a light will drive on."""
TALK_S = 3.0
"""How long a prompt takes to say: an announcement that would run into the next one is left out."""
CHAIN_S = 5.0
"""Two things to do that are closer than this are announced together."""
FOLLOW_M = 2000.0
"""On a stretch this long the driver is told how long it lasts."""
OFF_M, ASKEW_M, ASKEW_DEG = 18.0, 10.0, 50.0
"""Off the route: so far beside it; or beside it less, and in another direction."""
OFF_FIXES = 2
"""Positions in a row that must say so: one alone may be a reflection off a house."""
BACK_DEG, BACK_FIXES = 120.0, 3
ASTRAY_M = 30.0
"""Who has not come to the route yet is off it only once he is this much farther from it than at the beginning."""
MOVING_MS = 2.0
LOST_S = 20.0
"""Without satellites for so long outside a tunnel, the driver is told."""
BLIND_LIMIT_S = 300.0
"""After so long without satellites the position along the route is not believed any more, and nothing is announced."""
ARRIVED_M, ARRIVAL_AHEAD_M = 20.0, 60.0


@dataclass(frozen=True)
class Fix:
    """Where the car is at `at` (seconds of any steady clock). `point` None: no satellites. Heading in degrees from north."""

    at: float
    point: Point | None
    heading: float | None = None
    speed_kmh: float | None = None


@dataclass(frozen=True)
class Prompt:
    """Something to say. `key` is given out once per Guidance; `stage`: start, early, prepare, now, follow, changed, lost.

    `urgent`: it is about the next few seconds. After `expires_at` (the fixes' clock) it is wrong and must not be said.
    """

    key: str
    stage: str
    text: str
    lang: str
    urgent: bool
    expires_at: float
    maneuver: int = -1
    then: int | None = None


@dataclass(frozen=True)
class State:
    """Where the car is on the route. `blind_s`: how long it has been carried along without satellites."""

    along_m: float
    left_m: float
    left_s: float
    position: LatLon
    heading: float
    next_maneuver: int
    blind_s: float
    arrived: bool


def distances(speed_kmh: float) -> dict[str, float]:
    """Metres before a maneuver at which each announcement is due at a speed; no "early" in town."""
    v = max(speed_kmh / 3.6, SLOWEST_MS)
    found = {"prepare": PREPARE_S * v, "now": NOW_S * v}
    return found | {"early": EARLY_S * v} if speed_kmh >= EARLY_KMH else found


class Guidance:
    """Guidance along one route. `stops`: names of the stops on the way; `changed`: it replaces a route the driver has left."""

    def __init__(self, route: Route, lang: str = "en", *, goal: str = "", stops: tuple[str, ...] = (), edges: tuple[Edge, ...] = (),
                 changed: bool = False):
        self.route = route
        self.line = Line(route.shape)
        self.off_route = False
        self.stops_passed = 0
        self._at = [self.line.along[min(m.begin, len(self.line.along) - 1)] for m in route.maneuvers]
        self.speak(lang, goal, stops)
        self._last = max(self._names, default=len(route.maneuvers) - 1)
        self._tunnels = [(self.line.along[e.begin], self.line.along[e.end]) for e in edges if e.tunnel and e.end < len(self.line.along)]
        self._to_do = [i for i, m in enumerate(route.maneuvers) if m.type not in narrative.QUIET]
        self._said: set[str] = set()
        self._along = 0.0
        self._v = 0.0
        self._fix: Fix | None = None
        self._seen_at: float | None = None
        self._blind_from: float | None = None
        self._bad = self._back = 0
        self._astray: float | None = None
        """How far beside the route the car was when it began, as long as it has not come to it: out of a car park, say."""
        self._joined = False
        self._changed = changed
        self.arrived = False

    def speak(self, lang: str, goal: str = "", stops: tuple[str, ...] = ()) -> None:
        """From now on in this language, with these names of the goal and of the stops in order."""
        arrivals = [i for i, m in enumerate(self.route.maneuvers) if m.type in narrative.ARRIVALS]
        between = max(len(arrivals) - 1, 0)
        self.lang = lang
        self._names = dict(zip(arrivals, [*stops[:between], *[""] * (between - len(stops)), goal]))

    # -- what is known now

    @property
    def state(self) -> State:
        position, heading = self.line.at(self._along)
        blind = 0.0 if self._blind_from is None or self._fix is None else self._fix.at - self._blind_from
        upcoming = self._next()
        return State(self._along, max(0.0, self.line.length_m - self._along), self._seconds_left(), position, heading,
                     -1 if upcoming is None else upcoming, blind, self.arrived)

    def _seconds_left(self) -> float:
        left = 0.0
        for i, maneuver in enumerate(self.route.maneuvers):
            begin = self._at[i]
            end = self._at[i + 1] if i + 1 < len(self._at) else self.line.length_m
            if end > self._along:
                part = 1.0 if begin >= self._along or end <= begin else (end - self._along) / (end - begin)
                left += maneuver.time_s * part
        planned = sum(m.time_s for m in self.route.maneuvers)
        return left * (self.route.time_s / planned if planned else 1.0)  # traffic is in the route's time, not in the maneuvers'

    def _next(self) -> int | None:
        return next((i for i in self._to_do if self._at[i] > self._along or (i == self._last and not self.arrived)), None)

    # -- positions

    def feed(self, fix: Fix) -> list[Prompt]:
        """Take one position; the prompts that are due now, at most two. A fix older than the last one is ignored."""
        before = self._fix
        if before is not None and fix.at <= before.at:
            return []
        dt = fix.at - before.at if before is not None else 0.0
        if fix.speed_kmh is not None:
            self._v = max(fix.speed_kmh, 0.0) / 3.6
        self._fix = fix
        if self.off_route or self.arrived:
            return []
        if fix.point is None:
            self._carry(dt)
        else:
            self._place(fix, dt, first=self._seen_at is None)
        if self.off_route:
            return []
        self._pass_stops()
        return self._due(fix.at)

    def _carry(self, dt: float) -> None:
        """No satellites: along the route by speed."""
        if self._blind_from is None:
            self._blind_from = self._fix.at - dt
        self._along = min(self._along + self._v * dt, self.line.length_m)

    def _place(self, fix: Fix, dt: float, first: bool) -> None:
        moving = self._v >= MOVING_MS
        heading = fix.heading if moving else None
        if first:
            low, high = 0.0, 300.0
        else:
            blind_m = 0.0 if self._blind_from is None else self._v * (fix.at - self._blind_from) * 0.3 + 60
            low, high = self._along - 30 - blind_m, self._along + self._v * dt * 1.5 + 60 + blind_m
        near = self.line.nearest(fix.point, max(low, 0.0), high, heading)
        if not self._joined and self._is_bad(near, heading):
            self._astray = near.off_m if self._astray is None else self._astray
            self._bad = self._bad + 1 if near.off_m > max(self._astray, OFF_M) + ASTRAY_M else 0
            self.off_route = self._bad >= OFF_FIXES
            self._along, self._seen_at = near.along_m, fix.at
            return
        if self._is_bad(near, heading):
            self._bad += 1
            if self._bad >= OFF_FIXES and not self._rejoin(fix, heading):
                self.off_route = True
            else:  # one reflection: go on by speed, but not past what is to be done
                upcoming = self._next()
                limit = self.line.length_m if upcoming is None else max(self._at[upcoming] - 1, self._along)
                self._along = min(self._along + self._v * dt, limit)
            return
        backwards = heading is not None and turn(near.heading, heading) > BACK_DEG
        self._back = self._back + 1 if backwards else 0
        if self._back >= BACK_FIXES:
            self.off_route = True
            return
        self._settle(near.along_m, fix.at)

    @staticmethod
    def _is_bad(near: OnLine, heading: float | None) -> bool:
        askew = heading is not None and turn(near.heading, heading) > ASKEW_DEG
        return near.off_m > OFF_M or (askew and near.off_m > ASKEW_M)

    def _rejoin(self, fix: Fix, heading: float | None) -> bool:
        """Farther along the route after all: a short cut, or a long time without satellites."""
        near = self.line.nearest(fix.point, self._along, math.inf, heading)
        if near.off_m > ASKEW_M or (heading is not None and turn(near.heading, heading) > 30):
            return False
        self._settle(near.along_m, fix.at)
        return True

    def _settle(self, along_m: float, at: float) -> None:
        self._along, self._seen_at, self._joined = along_m, at, True
        self._bad, self._blind_from = 0, None

    def stay(self, point: Point) -> None:
        """The car is on the route after all, at `point` (a matched trace says so): go on."""
        self.off_route, self._bad, self._back = False, 0, 0
        near = self.line.nearest(point, max(self._along - 60, 0.0), self._along + 200)
        self._settle(near.along_m, self._fix.at if self._fix else 0.0)

    def doubt(self) -> None:
        """Nobody can tell yet whether the car has left the route: go on by speed; the next position that is off it counts."""
        self.off_route, self._bad, self._back = False, OFF_FIXES - 1, 0

    def _pass_stops(self) -> None:
        self.stops_passed = sum(1 for i in self._names if i != self._last and self._at[i] - self._along <= ARRIVED_M)

    # -- prompts

    def _due(self, now: float) -> list[Prompt]:
        out = []
        if self._blind_from is not None:
            blind = now - self._blind_from
            in_tunnel = any(a - 50 <= self._along <= b + 50 for a, b in self._tunnels)
            if blind > BLIND_LIMIT_S:
                return []
            if blind > LOST_S and not in_tunnel and "lost" not in self._said:
                out.append(self._once("lost", "lost", narrative.WORDS.say("prompt.lost", self.lang), False, now + 8))
        at = self._next()
        if at is None:
            return out
        left = self._at[at] - self._along
        reach = distances(self._v * 3.6)
        begins = not self._said - {"lost"}
        prompt = None
        if begins and self._changed:
            prompt = self._first_of_new(at, left, now, reach)
        elif at == self._last and self.route.maneuvers[at].type in narrative.ARRIVALS and left <= ARRIVED_M:
            self.arrived = True
            prompt = self._announce(at, "now", left, now)
        elif left <= (ARRIVED_M if at in self._names else reach["now"]):
            prompt = None if self._said_lately(at) else self._announce(at, "now", left, now)
        elif left <= reach["prepare"]:
            room = left >= ARRIVAL_AHEAD_M if at in self._names else left - reach["now"] >= TALK_S * self._v
            prompt = self._announce(at, "prepare", left, now) if room else None
        elif left <= reach.get("early", 0.0):
            room = (left - reach["prepare"]) >= TALK_S * self._v
            prompt = self._announce(at, "early", left, now) if room else None
        elif begins:
            prompt = self._begin(at, left, now)
        elif self._long_stretch(at, left):
            key = f"{at}.follow"
            prompt = None if key in self._said else self._once(key, "follow", narrative.follow(self._street(), left, self.lang), False, now + 8)
        if prompt is not None:
            out.append(prompt)
        return out

    def _said_lately(self, at: int) -> bool:
        """Announced together with the one before, which is two seconds ago: to say it again would come too late."""
        chained = f"{at}.chained" in self._said
        return chained and self._at[at] - self._along < 2.0 * max(self._v, 1.0)

    def _first_of_new(self, at: int, left: float, now: float, reach: dict[str, float]) -> Prompt:
        """The driver has left the old route: at once what is to be done now, however far it is."""
        if left <= reach["now"] and at not in self._names:
            self._said |= {f"{at}.{stage}" for stage in ("early", "prepare", "now")}
            text = narrative.changed(self.route.maneuvers, at, None, self.lang)
            return self._once("changed", "now", text, True, now + max(left / max(self._v, SLOWEST_MS), 1.5), at)
        if left <= reach["prepare"]:
            self._said |= {f"{at}.early", f"{at}.prepare"}
        text = narrative.changed(self.route.maneuvers, at, left, self.lang)
        return self._once("changed", "changed", text, True, now + max((left - reach["now"]) / max(self._v, SLOWEST_MS), 3.0), at)

    def _begin(self, at: int, left: float, now: float) -> Prompt:
        return self._once("start", "start", narrative.follow(self._street(), left, self.lang), False, now + 8)

    def _long_stretch(self, at: int, left: float) -> bool:
        before = max((self._at[i] for i in self._to_do if self._at[i] <= self._along), default=0.0)
        return left >= FOLLOW_M and 30 <= self._along - before <= 400

    def _street(self) -> str:
        found = ""
        for i, maneuver in enumerate(self.route.maneuvers):
            if self._at[i] <= self._along + 1:
                found = maneuver.street
        return found

    def _announce(self, at: int, stage: str, left: float, now: float) -> Prompt | None:
        key = f"{at}.{stage}"
        if key in self._said or (stage != "now" and f"{at}.now" in self._said):
            return None
        if stage == "prepare" and f"{at}.chained" in self._said:
            self._said.add(key)  # it was said with the one before
            return None
        then = self._chain(at) if stage in ("prepare", "now") else None
        if then is not None:
            self._said.add(f"{then}.chained")
        v = max(self._v, SLOWEST_MS)
        until = left / v if stage == "now" else max((left - distances(self._v * 3.6)["now"]) / v, 2.0)
        if at in self._names:
            until = max(until, 6.0)
        urgent = stage == "now" and at not in self._names
        return self._once(key, stage, self._text(at, stage, left, then), urgent, now + max(until, 1.5), at, then)

    def _text(self, at: int, stage: str, left: float, then: int | None) -> str:
        name = self._names.get(at, "")
        if stage == "now":
            return narrative.now(self.route.maneuvers, at, self.lang, name, then)
        if stage == "changed":
            return narrative.changed(self.route.maneuvers, at, left, self.lang)
        return narrative.ahead(self.route.maneuvers, at, left, self.lang, name, then)

    def _chain(self, at: int) -> int | None:
        later = [i for i in self._to_do if i > at]
        if not later or at in self._names or later[0] in self._names:
            return None
        v = max(self._v * 0.7, SLOWEST_MS)
        return later[0] if self._at[later[0]] - self._at[at] <= CHAIN_S * v else None

    def _once(self, key: str, stage: str, text: str, urgent: bool, expires_at: float, maneuver: int = -1, then: int | None = None) -> Prompt:
        self._said.add(key)
        return Prompt(key, stage, text, self.lang, urgent, expires_at, maneuver, then)

    def word(self, prompt: Prompt, now: float) -> Prompt | None:
        """The prompt with the distance of this moment; None when it is stale: expired, passed, overtaken, or the route was left."""
        if now > prompt.expires_at or self.off_route:
            return None
        if prompt.maneuver < 0 or prompt.stage == "now":
            return prompt
        carried = self._along + (self._v * (now - self._fix.at) if self._fix else 0.0)
        left = self._at[prompt.maneuver] - carried
        if left <= 0 or f"{prompt.maneuver}.now" in self._said:
            return None
        return replace(prompt, text=self._text(prompt.maneuver, prompt.stage, left, prompt.then))
