"""Where to go and how long it takes: navigation.go, .find_and_go, .status, .cancel.

The destination is set in the car (DestinationSet) and kept in the session's memory with its name, for later questions.
"""
import asyncio
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from harness.host.errors import NotFound
from harness.host.providers import Point, Route
from harness.skill import Args, Effects, Result, Skill, SkillContext, SkillError
from skills_automotive import spoken
from skills_automotive.navigation.guidance import next_step, via
from skills_automotive.poi.categories import kind_of
from skills_automotive.poi.lookup import as_memory, destination, find, in_both, kind_words, remember
from skills_automotive.poi.text import plain
from venus_edge.wording import LANGUAGES

HEADING = "Vehicle.CurrentLocation.Heading"
LATITUDE = "Vehicle.Cabin.Infotainment.Navigation.DestinationSet.Latitude"
LONGITUDE = "Vehicle.Cabin.Infotainment.Navigation.DestinationSet.Longitude"
WORDING = Path(__file__).with_name("wording.toml")
HERE_M = 30.0
GROUP = "navigation"
_EFFECTS = Effects(reads=("Vehicle.CurrentLocation.*",), actuates=(LATITUDE, LONGITUDE), uses=("maps", "places"))
_OFFERED = {"it": 0, "there": 0, "that": 0, "that one": 0, "this one": 0, "that place": 0, "the one": 0, "the first": 0,
            "the first one": 0, "the second": 1, "the second one": 1, "the third": 2, "the third one": 2, "the last": -1,
            "the last one": -1, "the nearest one": 0, "那里": 0, "那儿": 0, "它": 0, "第一个": 0, "第二个": 1, "第三个": 2,
            "最后一个": -1}
_PRIVATE = frozenset(("home", "work", "the office", "my office", "家", "公司"))


async def plan(ctx: SkillContext, goal: Point) -> Route:
    """The way from the car to `goal`, not turning a moving car round; raises SkillError("not_found") without one."""
    position, heading = await asyncio.gather(ctx.position(), _heading(ctx))
    try:
        return ctx.maps.route(position, goal, heading=heading)
    except NotFound:
        raise SkillError("not_found", "no way there", reason="no_way") from None


async def _heading(ctx: SkillContext) -> float | None:
    try:
        return (await ctx.vehicle.get(HEADING))[HEADING].value
    except NotFound:  # a car without a compass is routed without one
        return None


async def steer_to(ctx: SkillContext, goal: dict) -> Route:
    """Make `goal` (a remembered place) the car's destination; raises what the car or the map says."""
    route = await plan(ctx, Point(goal["lat"], goal["lon"]))
    await _set(ctx, goal["lat"], goal["lon"])
    ctx.memory["destination"] = goal
    return route


async def _set(ctx: SkillContext, lat: float, lon: float) -> None:
    effects = await asyncio.gather(ctx.vehicle.actuate(LATITUDE, lat), ctx.vehicle.actuate(LONGITUDE, lon))
    if not all(effect.reached for effect in effects):
        raise SkillError("timeout", "the car did not take the destination")


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

    def spoken(self, lang: str) -> dict[str, Any]:
        return {"name": self.said[lang], "kind": self.kind.get(lang, ""), "street": self.street, "via": self.via,
                "minutes": spoken.minutes(self.seconds, lang)}


def _course(base: str, goal: dict, route: Route, kind: dict[str, str] | None = None) -> Course:
    way = via(route, goal["street"])
    outcome = "here" if route.length_m < HERE_M else base if way else f"{base}_direct"
    return Course(outcome=outcome, name=goal["name"], said=goal["said"], kind=kind or {}, street=goal["street"], via=way,
                  streets=list(route.streets), seconds=route.time_s, length_m=route.length_m)


async def _nearest(ctx: SkillContext, query: str) -> Course:
    """Find the quickest to reach and go there."""
    found = find(ctx, query, await ctx.position())
    remember(ctx, found)
    place = found[0].place
    goal = as_memory(place)
    route = await steer_to(ctx, goal)
    base = "nearest" if kind_of(query) else "found"
    if place.tags.get("unnamed"):
        base += "_unnamed"
    if not place.street:
        base += "_nostreet"
    return _course(base, goal, route, in_both(kind_words, place))


class FindAndGo(Skill):
    id = "navigation.find_and_go"
    version = "1.0.0"
    summary = {"en": "Find the nearest place of a kind and start the route to it.", "zh": "查找最近的某类地点并开始导航。"}
    examples = {"en": [
        ("Find me a charging station nearby and take me there", {"query": "charging station"}),
        ("Take me to the nearest pharmacy", {"query": "pharmacy"}),
        ("Find a car park and go there", {"query": "car park"}),
    ]}
    effects = _EFFECTS
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
    version = "1.0.0"
    summary = {"en": "Start the route to a place, a street, an address, or to something that was just offered.",
               "zh": "开始导航到某个地点、街道、地址或刚才提到的地方。"}
    examples = {"en": [
        ("Take me to the casino", {"destination": "the casino"}),
        ("No, take me to the casino instead", {"destination": "the casino"}),
        ("Navigate to Rue Grimaldi", {"destination": "Rue Grimaldi"}),
        ("Take me to the second one", {"destination": "the second one"}),
        ("Drive to twelve Avenue des Spélugues", {"destination": "12 Avenue des Spélugues"}),
    ]}
    effects = _EFFECTS
    timeout_s = 6.0
    supersedes = GROUP
    wording = WORDING
    Result = Course

    class Args(Args):
        destination: str = Field(min_length=1, max_length=120)

    async def run(self, args, ctx):
        query = args.destination.strip()
        words = plain(query)
        if words in _OFFERED:
            goal = self._offered(ctx, _OFFERED[words])
        elif words in _PRIVATE:
            raise SkillError("not_found", "no private addresses are kept", reason="private", query=query)
        else:
            kind = kind_of(query)
            if kind and not kind.landmark:
                return await _nearest(ctx, query)
            goal = as_memory(destination(ctx, query, await ctx.position()))
        return _course("done", goal, await steer_to(ctx, goal))

    @staticmethod
    def _offered(ctx: SkillContext, index: int) -> dict:
        offers = ctx.memory.get("offers") or []
        if not offers:
            raise SkillError("needs_input", "nothing was offered", slot="destination")
        if index >= len(offers):
            raise SkillError("not_found", "fewer were offered", reason="fewer", query="")
        return offers[index]


class Status(Skill):
    id = "navigation.status"
    version = "1.0.0"
    summary = {"en": "Tell when we arrive, how far it is, where we are going, or the next turn.",
               "zh": "告知到达时间、剩余距离、目的地或下一个转弯。"}
    examples = {"en": [
        ("When do we arrive?", {"what": "eta"}), ("How far is it?", {"what": "distance"}),
        ("Where are we going?", {"what": "destination"}), ("What's the next turn?", {"what": "next"}),
    ]}
    effects = Effects(reads=("Vehicle.CurrentLocation.*",), uses=("maps",))
    timeout_s = 4.0
    wording = WORDING

    class Args(Args):
        what: Literal["eta", "distance", "destination", "next"]

    class Result(Result):
        said: dict[str, str] = Field(default_factory=dict)
        seconds: float = 0.0
        length_m: float = 0.0
        step: dict[str, tuple[str, str]] = Field(default_factory=dict)

        def spoken(self, lang: str) -> dict[str, Any]:
            ahead, turn = self.step.get(lang, ("", ""))
            return {"name": self.said.get(lang, ""), "minutes": spoken.minutes(self.seconds, lang),
                    "distance": spoken.distance(self.length_m, lang), "ahead": ahead, "turn": turn}

    async def run(self, args, ctx):
        goal = ctx.memory.get("destination")
        if not goal:
            return self.Result(outcome="none")
        route = await plan(ctx, Point(goal["lat"], goal["lon"]))
        if route.length_m < HERE_M:
            return self.Result(outcome="arrived", said=goal["said"])
        return self.Result(outcome=args.what, said=goal["said"], seconds=route.time_s, length_m=route.length_m,
                           step={lang: next_step(route, lang) for lang in LANGUAGES})


class Cancel(Skill):
    id = "navigation.cancel"
    version = "1.0.0"
    summary = {"en": "End the current route.", "zh": "结束当前导航。"}
    examples = {"en": [("Cancel the route", {}), ("Stop navigating", {})]}
    effects = Effects(reads=("Vehicle.CurrentLocation.*",), actuates=(LATITUDE, LONGITUDE))
    timeout_s = 5.0
    supersedes = GROUP
    wording = WORDING

    async def run(self, args, ctx):
        if not ctx.memory.get("destination"):
            return self.Result(outcome="none")
        # VSS has no "no destination": where the car is now is a destination that asks for no way.
        here = await ctx.position()
        await _set(ctx, here.lat, here.lon)
        ctx.memory["destination"] = None
        return self.Result()


SKILLS = [Go, FindAndGo, Status, Cancel]
