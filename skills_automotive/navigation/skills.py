"""Where to go and how it stands: navigation.go, .find_and_go, .status, .cancel, .resume.

The destination is set in the car (DestinationSet) and kept in the session's memory with its name, for later questions.
"""
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from harness.host.providers import Route
from harness.skill import Args, Effects, Result, Skill, SkillContext
from skills_automotive import spoken
from skills_automotive.navigation import places, tradeoff, trip as trips
from skills_automotive.navigation.narrative import next_step, via
from skills_automotive.navigation.trip import LATITUDE, LONGITUDE, Trip, steer_to
from skills_automotive.navigation.ways import other_ways
from skills_automotive.poi.categories import kind_of
from skills_automotive.poi.lookup import as_memory, find, in_both, kind_words, remember
from skills_automotive.poi.text import plain
from venus_edge.wording import LANGUAGES

WORDING = Path(__file__).with_name("wording.toml")
HERE_M = 30.0
GROUP = "navigation"
STEERS = Effects(reads=("Vehicle.CurrentLocation.*",), actuates=(LATITUDE, LONGITUDE), uses=("maps", "places"))
LOOKS = Effects(reads=("Vehicle.CurrentLocation.*",), uses=("maps",))
Roads = Literal["tolls", "ferries", "motorways"]
ROADS = {"tolls": ("tolls", "收费路段"), "ferries": ("ferries", "渡轮"), "motorways": ("motorways", "高速路")}
JAM_S = 60.0
"""A delay below this is not worth a word."""


def roads_words(roads, lang: str) -> str:
    return spoken.listed([ROADS[road][lang == "zh"] for road in roads], lang) if roads else ""


def still_there(trip: Trip, route: Route) -> tuple[str, ...]:
    """What was to be avoided and could not be."""
    return tuple(road for road in trip.avoiding if getattr(route, road))


class Course(Result):
    """A destination that was set, and the way to it."""

    name: str
    said: dict[str, str]
    kind: dict[str, str] = Field(default_factory=dict)
    street: str
    via: str
    streets: list[str]
    seconds: float
    length_m: float
    stops: list[dict[str, str]] = Field(default_factory=list)
    roads: list[str] = Field(default_factory=list)
    compared: dict[str, str] = Field(default_factory=dict)
    delay_s: float | None = None

    def spoken(self, lang: str) -> dict[str, Any]:
        return {"name": self.said[lang], "kind": self.kind.get(lang, ""), "street": self.street, "via": self.via,
                "minutes": spoken.minutes(self.seconds, lang), "stops": spoken.listed([s[lang] for s in self.stops], lang) if self.stops else "",
                "roads": roads_words(self.roads, lang), "compared": self.compared.get(lang, "")}


def course(base: str, trip: Trip, route: Route, kind: dict[str, str] | None = None, compared: dict[str, str] | None = None) -> Course:
    """The result for a trip that begins; `base` is the outcome where nothing out of the ordinary is to be told."""
    goal, way = trip.goal, via(route, trip.goal["street"])
    kept, failed = [r for r in trip.avoid if not getattr(route, r)], still_there(trip, route)
    if route.length_m < HERE_M:
        outcome = "here"
    elif trip.stops:
        outcome = "stops"
    elif failed:
        outcome = "still"
    elif compared:
        outcome = "other"
    elif kept and base == "done":
        outcome = "avoiding"
    else:
        base = "home" if base == "done" and goal.get("favourite") == places.HOME else base
        outcome = base if way else f"{base}_direct"
    return Course(outcome=outcome, name=goal["name"], said=goal["said"], kind=kind or {}, street=goal["street"], via=way,
                  streets=list(route.streets), seconds=route.time_s, length_m=route.length_m, stops=[stop["said"] for stop in trip.stops],
                  roads=list(failed or kept), compared=compared or {}, delay_s=route.delay_s)


def new_trip(ctx: SkillContext, goal: dict, **fields) -> Trip:
    return Trip(goal, prefer=tuple(ctx.memory.get("avoid") or ()), **fields)


async def _nearest(ctx: SkillContext, query: str, **fields) -> Course:
    """Find the quickest to reach and go there."""
    at = await trips.whereabouts(ctx)
    found = find(ctx, query, at[0])
    remember(ctx, found)
    place = found[0].place
    trip, route = await steer_to(ctx, new_trip(ctx, as_memory(place), **fields), at)
    base = "nearest" if kind_of(query) else "found"
    if place.tags.get("unnamed"):
        base += "_unnamed"
    if not place.street:
        base += "_nostreet"
    return course(base, trip, route, in_both(kind_words, place))


class FindAndGo(Skill):
    id = "navigation.find_and_go"
    version = "1.1.0"
    summary = {"en": "Find the nearest place of a kind and start the route to it.", "zh": "查找最近的某类地点并开始导航。"}
    examples = {"en": [
        ("Find me a charging station nearby and take me there", {"query": "charging station"}),
        ("Take me to the nearest pharmacy", {"query": "pharmacy"}),
        ("Find a car park and go there", {"query": "car park"}),
        ("Drive us to some restaurant close by", {"query": "restaurant"}),
    ], "zh": [
        ("找个充电站带我过去", {"query": "充电站"}),
        ("带我去最近的药店", {"query": "药店"}),
        ("找个停车场然后导航过去", {"query": "停车场"}),
        ("去附近的餐厅", {"query": "餐厅"}),
    ]}
    effects = STEERS
    timeout_s = 6.0
    supersedes = GROUP
    wording = WORDING
    Result = Course

    class Args(Args):
        query: str = Field(min_length=1, max_length=120)

    async def run(self, args, ctx):
        return await _nearest(ctx, args.query)


class Go(Skill):
    id = "navigation.go"
    version = "1.1.0"
    summary = {"en": "Start the route to a place, a street, an address, a favourite, or to something that was just offered.",
               "zh": "开始导航到某个地点、街道、地址、收藏地点或刚才提到的地方。"}
    examples = {"en": [
        ("Take me to the casino", {"destination": "the casino"}),
        ("No, take me to the casino instead", {"destination": "the casino"}),
        ("Navigate to Rue Grimaldi", {"destination": "Rue Grimaldi"}),
        ("Take me to the second one", {"destination": "the second one"}),
        ("Drive to twelve Avenue des Spélugues", {"destination": "12 Avenue des Spélugues"}),
        ("Take me to the train station without tolls", {"destination": "train station", "avoid": "tolls"}),
        ("Take me to the museum via the harbour", {"destination": "museum", "via": "harbour"}),
        ("Take me home", {"destination": "home"}),
    ], "zh": [
        ("带我去赌场", {"destination": "赌场"}),
        ("导航到Rue Grimaldi", {"destination": "Rue Grimaldi"}),
        ("带我回家", {"destination": "家"}),
        ("去第二个", {"destination": "第二个"}),
        ("去火车站，不走收费路段", {"destination": "火车站", "avoid": "tolls"}),
        ("经过码头去博物馆", {"destination": "博物馆", "via": "码头"}),
    ]}
    effects = STEERS
    timeout_s = 6.0
    supersedes = GROUP
    wording = WORDING
    Result = Course

    class Args(Args):
        destination: str = Field(min_length=1, max_length=120,
                                 description="place, street, address, favourite (home, work), or something just offered (the second one)")
        avoid: Roads | None = None
        via: str | None = Field(default=None, min_length=1, max_length=120)
        alternative: Literal["fastest", "shortest", "other"] | None = None

    async def run(self, args, ctx):
        query, at = args.destination.strip(), await trips.whereabouts(ctx)
        position = at[0]
        fields = {"avoid": (args.avoid,) if args.avoid else (), "shortest": args.alternative == "shortest"}
        if args.via:
            fields["stops"] = (places.resolve(ctx, args.via, position),)
        kind = kind_of(query)
        if kind and not kind.landmark and plain(query) not in places.OFFERED and not places.favourite(ctx, query):
            return await _nearest(ctx, query, **fields)
        goal = places.resolve(ctx, query, position)
        trip, route = await steer_to(ctx, new_trip(ctx, goal, **fields), at)
        if args.alternative != "other":
            return course("done", trip, route)
        ways = await other_ways(ctx, trip)
        if len(ways) < 2:
            return course("done", trip, route)
        trip, route = await steer_to(ctx, replace(trip, through=(ways[1].apart_at,)), at)
        return course("done", trip, route, compared={lang: tradeoff.compare(route, ways[0].route, lang) for lang in LANGUAGES})


class Status(Skill):
    id = "navigation.status"
    version = "1.1.0"
    summary = {"en": "Tell when we arrive, how far it is, where we are going, by which way, the next turn, or the traffic.",
               "zh": "告知到达时间、剩余距离、目的地、路线、下一个转弯或路况。"}
    examples = {"en": [
        ("When do we arrive?", {"what": "eta"}), ("How far is it?", {"what": "distance"}),
        ("Where are we going?", {"what": "destination"}), ("What's the next turn?", {"what": "next"}),
        ("Is there much traffic ahead?", {"what": "traffic"}), ("Which roads are we taking?", {"what": "roads"}),
    ], "zh": [
        ("什么时候到？", {"what": "eta"}), ("还有多远？", {"what": "distance"}), ("我们去哪里？", {"what": "destination"}),
        ("下一个路口怎么走？", {"what": "next"}), ("前面堵车吗？", {"what": "traffic"}), ("我们走的是哪些道路？", {"what": "roads"}),
    ]}
    effects = LOOKS
    timeout_s = 4.0
    wording = WORDING

    class Args(Args):
        what: Literal["eta", "distance", "destination", "next", "traffic", "roads"]

    class Result(Result):
        said: dict[str, str] = Field(default_factory=dict)
        seconds: float = 0.0
        length_m: float = 0.0
        delay_s: float | None = None
        via: str = ""
        step: dict[str, tuple[str, str]] = Field(default_factory=dict)

        def spoken(self, lang: str) -> dict[str, Any]:
            ahead, turn = self.step.get(lang, ("", ""))
            return {"name": self.said.get(lang, ""), "minutes": spoken.minutes(self.seconds, lang), "via": self.via,
                    "delay": spoken.minutes(self.delay_s or 0.0, lang), "distance": spoken.distance(self.length_m, lang),
                    "ahead": ahead, "turn": turn}

    async def run(self, args, ctx):
        trip = Trip.of(ctx.memory)
        if trip is None:
            unknown = args.what == "traffic" and not (ctx.maps.traffic is not None and ctx.maps.traffic.known())
            return self.Result(outcome="traffic_unknown" if unknown else "none")
        _, route = await trips.plan(ctx, trip)
        said, way = trip.goal["said"], via(route, trip.goal["street"])
        if route.length_m < HERE_M:
            return self.Result(outcome="arrived", said=said)
        outcome = args.what
        if args.what == "traffic":
            outcome = "traffic_unknown" if route.delay_s is None else "traffic" if route.delay_s >= JAM_S else "traffic_free"
        elif args.what == "eta" and (route.delay_s or 0.0) >= JAM_S:
            outcome = "eta_traffic"
        elif args.what == "roads" and not way:
            outcome = "destination"
        return self.Result(outcome=outcome, said=said, seconds=route.time_s, length_m=route.length_m, delay_s=route.delay_s, via=way,
                           step={lang: next_step(route, lang) for lang in LANGUAGES})


class Cancel(Skill):
    id = "navigation.cancel"
    version = "1.1.0"
    summary = {"en": "End the current route.", "zh": "结束当前导航。"}
    examples = {"en": [
        ("Cancel the route", {}), ("Stop navigating", {}), ("I know the way from here, end the guidance", {}), ("Forget the destination", {}),
    ], "zh": [("取消导航", {}), ("结束导航", {}), ("不用导航了", {}), ("停止导航", {})]}
    effects = Effects(reads=("Vehicle.CurrentLocation.*",), actuates=(LATITUDE, LONGITUDE))
    timeout_s = 5.0
    supersedes = GROUP
    wording = WORDING

    async def run(self, args, ctx):
        if not ctx.memory.get("destination"):
            return self.Result(outcome="none")
        # VSS has no "no destination": where the car is now is a destination that asks for no way.
        here = await ctx.position()
        await trips.set_destination(ctx, here.lat, here.lon)
        trips.end(ctx)
        return self.Result()


class Resume(Skill):
    id = "navigation.resume"
    version = "1.0.0"
    summary = {"en": "Take up the route that was stopped, with its stops.", "zh": "恢复刚才停止的导航，包括途经点。"}
    examples = {"en": [
        ("Resume the route", {}), ("Carry on navigating", {}), ("Start the guidance again", {}), ("Pick up the route where we left off", {}),
    ], "zh": [("继续导航", {}), ("恢复导航", {}), ("重新开始刚才的导航", {}), ("接着导航", {})]}
    effects = STEERS
    timeout_s = 6.0
    supersedes = GROUP
    wording = WORDING

    class Result(Course):
        name: str = ""
        said: dict[str, str] = Field(default_factory=lambda: dict.fromkeys(LANGUAGES, ""))
        street: str = ""
        via: str = ""
        streets: list[str] = Field(default_factory=list)
        seconds: float = 0.0
        length_m: float = 0.0

    async def run(self, args, ctx):
        running = Trip.of(ctx.memory)
        trip = running or trips.stopped(ctx)
        if trip is None:
            return self.Result(outcome="none")
        trip, route = await steer_to(ctx, trip)
        found = course("done", trip, route).model_dump()
        if found["outcome"] not in ("here", "stops"):
            found["outcome"] = "running" if running else "done"
        return self.Result(**found)


SKILLS = [Go, FindAndGo, Status, Cancel, Resume]
