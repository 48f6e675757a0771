"""Changing the way: navigation.alternatives, .avoid, .via and .favourite."""
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from harness.host.providers import Point
from harness.skill import Args, Effects, Result, Skill, SkillContext, SkillError
from skills_automotive import spoken
from skills_automotive.navigation import places, tradeoff, trip as trips
from skills_automotive.navigation.narrative import via
from skills_automotive.navigation.skills import GROUP, LOOKS, STEERS, WORDING, Roads, roads_words, still_there
from skills_automotive.navigation.trip import STOPS_LIMIT, Trip, point_of, steer_to
from skills_automotive.navigation.ways import other_ways
from skills_automotive.poi.categories import kind_of
from skills_automotive.poi.lookup import as_memory
from venus_edge.wording import LANGUAGES

ALONG_CANDIDATES, ALONG_M = 12, 8000.0


class Alternatives(Skill):
    id = "navigation.alternatives"
    version = "1.0.0"
    summary = {"en": "Tell what other ways lead to the destination and what they cost, or take one of them.",
               "zh": "告知去目的地的其他路线及其差别，或改走其中一条。"}
    examples = {"en": [
        ("Is there another way?", {}), ("Are there any alternatives to this route?", {}), ("Take the second route", {"take": "second"}),
        ("Take the shortest way", {"take": "shortest"}), ("Go the other way", {"take": "other"}), ("Take the fastest route", {"take": "fastest"}),
    ], "zh": [
        ("有没有别的路线？", {}), ("还有其他走法吗？", {}), ("走第二条路线", {"take": "second"}), ("走最短的路线", {"take": "shortest"}),
        ("换一条路线", {"take": "other"}), ("走最快的路线", {"take": "fastest"}),
    ]}
    effects = STEERS
    timeout_s = 6.0
    supersedes = GROUP
    wording = WORDING

    class Args(Args):
        take: Literal["fastest", "shortest", "first", "second", "third", "other"] | None = None

    class Result(Result):
        said: dict[str, str] = Field(default_factory=dict)
        seconds: float = 0.0
        ways: list[str] = Field(default_factory=list)
        compared: list[dict[str, str]] = Field(default_factory=list)

        def spoken(self, lang: str) -> dict[str, Any]:
            found = {"name": self.said.get(lang, ""), "minutes": spoken.minutes(self.seconds, lang)}
            found |= {key: way for key, way in zip(("via", "second", "third"), self.ways)}
            return found | {key: texts[lang] for key, texts in zip(("compared", "compared_third"), self.compared)}

    async def run(self, args, ctx):
        trip = trips.current(ctx)
        if args.take is None:
            return await self._tell(ctx, trip)
        known = ctx.memory.get("ways") or {}
        others = [tuple(p) for p in known.get("others", ())] if known.get("goal") == trip.goal["id"] else []
        if args.take in ("second", "third", "other") and not others:
            others = [way.apart_at for way in (await other_ways(ctx, trip))[1:]]
        wanted = replace(trip, through=(), shortest=args.take == "shortest")
        index = {"second": 0, "third": 1, "other": 0}.get(args.take)
        if index is not None and not (args.take == "other" and trip.through):  # "the other" of a chosen way is the quickest
            if index >= len(others):
                raise SkillError("not_found", "no such way", reason="way")
            wanted = replace(wanted, through=(others[index],))
        before = (await trips.plan(ctx, trip))[1]
        trip, route = await steer_to(ctx, wanted)
        way = via(route, trip.goal["street"])
        return self.Result(outcome="taken" if way else "taken_direct", said=trip.goal["said"], seconds=route.time_s, ways=[way],
                           compared=[{lang: tradeoff.compare(route, before, lang) for lang in LANGUAGES}])

    async def _tell(self, ctx, trip):
        ways = await other_ways(ctx, trip)
        ctx.memory["ways"] = {"goal": trip.goal["id"], "others": [list(way.apart_at) for way in ways[1:]]}
        named = ways[0].street and all(way.street for way in ways[1:])
        outcome = ("only" if len(ways) < 2 else "two" if len(ways) < 3 else "three") + ("" if named else "_unnamed")
        return self.Result(outcome=outcome, said=trip.goal["said"], seconds=ways[0].route.time_s, ways=[way.street for way in ways],
                           compared=[{lang: tradeoff.compare(way.route, ways[0].route, lang) for lang in LANGUAGES} for way in ways[1:]])


class Avoid(Skill):
    id = "navigation.avoid"
    version = "1.0.0"
    summary = {"en": "Avoid tolls, ferries or motorways from now on, or allow them again.", "zh": "从现在起避开收费路段、渡轮或高速路，或重新允许。"}
    examples = {"en": [
        ("Avoid tolls", {"what": "tolls"}), ("No motorways please", {"what": "motorways"}), ("Choose a way without ferries", {"what": "ferries"}),
        ("Stay off the motorway", {"what": "motorways"}), ("Tolls are allowed again", {"what": "tolls", "allow": True}),
        ("You can use the motorway again", {"what": "motorways", "allow": True}),
    ], "zh": [
        ("避开收费路段", {"what": "tolls"}), ("不走高速公路", {"what": "motorways"}), ("路线避开渡轮", {"what": "ferries"}),
        ("尽量不走收费的路", {"what": "tolls"}), ("可以走收费路段了", {"what": "tolls", "allow": True}),
        ("可以走高速公路了", {"what": "motorways", "allow": True}),
    ]}
    effects = STEERS
    timeout_s = 6.0
    wording = WORDING

    class Args(Args):
        what: Roads
        allow: bool = False

    class Result(Result):
        roads: list[str]
        said: dict[str, str] = Field(default_factory=dict)
        seconds: float = 0.0
        compared: dict[str, str] = Field(default_factory=dict)

        def spoken(self, lang: str) -> dict[str, Any]:
            return {"roads": roads_words(self.roads, lang), "name": self.said.get(lang, ""), "minutes": spoken.minutes(self.seconds, lang),
                    "compared": self.compared.get(lang, "")}

    async def run(self, args, ctx):
        kept = [road for road in ctx.memory.get("avoid") or () if road != args.what]
        wanted = kept if args.allow else [*kept, args.what]
        trip = Trip.of(ctx.memory)
        if trip is None:
            ctx.memory["avoid"] = wanted
            return self.Result(outcome="allowed" if args.allow else "noted", roads=[args.what])
        before = (await trips.plan(ctx, trip))[1]
        changed = replace(trip, prefer=tuple(wanted), avoid=tuple(r for r in trip.avoid if not (args.allow and r == args.what)), through=())
        trip, route = await steer_to(ctx, changed)
        ctx.memory["avoid"] = wanted
        if args.what in still_there(trip, route):
            outcome = "still"
        elif abs(route.length_m - before.length_m) < 20 and abs(route.time_s - before.time_s) < 5:
            outcome = "allowed" if args.allow else "same"
        else:
            outcome = "allowed_changed" if args.allow else "done"
        return self.Result(outcome=outcome, roads=[args.what], said=trip.goal["said"], seconds=route.time_s,
                           compared={lang: tradeoff.compare(route, before, lang) for lang in LANGUAGES})


class Via(Skill):
    id = "navigation.via"
    version = "1.0.0"
    summary = {"en": "Add a stop on the way, put a stop first or last, or leave one out.", "zh": "添加途经点，调整途经点的先后，或取消途经点。"}
    examples = {"en": [
        ("Go via the harbour", {"place": "harbour"}), ("Stop at a pharmacy on the way", {"place": "pharmacy"}),
        ("First stop at the pharmacy", {"place": "pharmacy", "order": "first"}), ("Go to the bakery last", {"place": "bakery", "order": "last"}),
        ("Leave out the stop at the pharmacy", {"place": "pharmacy", "order": "skip"}), ("Add the bank as a stop", {"place": "bank"}),
    ], "zh": [
        ("途经码头", {"place": "码头"}), ("路上在药店停一下", {"place": "药店"}), ("先去药店", {"place": "药店", "order": "first"}),
        ("最后再去面包店", {"place": "面包店", "order": "last"}), ("取消途经药店", {"place": "药店", "order": "skip"}),
        ("顺路去一下银行", {"place": "银行"}),
    ]}
    effects = STEERS
    timeout_s = 6.0
    wording = WORDING

    class Args(Args):
        place: str = Field(min_length=1, max_length=120, description="place, kind of place, favourite, or something just offered (the second one)")
        order: Literal["best", "first", "last", "skip"] = "best"

    class Result(Result):
        said: dict[str, str]
        goal: dict[str, str]
        seconds: float
        longer_s: float
        stops: list[dict[str, str]]

        def spoken(self, lang: str) -> dict[str, Any]:
            return {"name": self.said[lang], "goal": self.goal[lang], "minutes": spoken.minutes(self.seconds, lang),
                    "longer": tradeoff.longer(self.longer_s, lang)}

    async def run(self, args, ctx):
        trip = trips.current(ctx)
        position, heading = await trips.whereabouts(ctx)
        trip = replace(trip.without_reached(position), through=())
        before = trips.planned(ctx, trip, position, heading)[1]
        known = self._stop(ctx, trip, args.place, position)
        rest = tuple(stop for stop in trip.stops if stop is not known)
        if args.order == "skip":
            if known is None:
                raise SkillError("not_found", "no such stop", reason="stop", query=args.place)
            stop, outcome, orders = known, "skipped", [rest]
        else:
            if known is None and len(trip.stops) >= STOPS_LIMIT:
                raise SkillError("unavailable", f"{STOPS_LIMIT} stops are set; at most {STOPS_LIMIT}", reason="full")
            stop = known or self._on_the_way(ctx, args.place, position, point_of(trip.goal))
            places_at = {"first": [0], "last": [len(rest)]}.get(args.order, range(len(rest) + 1))
            orders = [(*rest[:i], stop, *rest[i:]) for i in places_at]
            outcome = "done" if known is None else "moved"
            if args.order == "first":
                outcome = "first"
        best = min((trips.planned(ctx, replace(trip, stops=order), position, heading) for order in orders), key=lambda found: found[1].time_s)
        trip, route = await steer_to(ctx, best[0], (position, heading))
        return self.Result(outcome=outcome, said=stop["said"], goal=trip.goal["said"], seconds=route.time_s,
                           longer_s=route.time_s - before.time_s, stops=[s["said"] for s in trip.stops])

    @staticmethod
    def _stop(ctx, trip: Trip, words: str, position: Point) -> dict | None:
        """The stop of the trip that the words name, by its own name or by what the map knows it as."""
        for stop in trip.stops:
            if places.same(stop, words):
                return stop
        kind = kind_of(words)
        if not trip.stops or (kind is not None and not kind.landmark):
            return None
        try:
            found = places.resolve(ctx, words, position)
        except SkillError:
            return None
        return next((stop for stop in trip.stops if stop["id"] == found["id"]), None)

    @staticmethod
    def _on_the_way(ctx, words: str, position: Point, goal: Point) -> dict:
        """Of a kind of place the one that costs the least time on the way; else the place that the words name."""
        kind = kind_of(words)
        if kind is None or kind.landmark or places.favourite(ctx, words):
            return places.resolve(ctx, words, position)
        found = ctx.places.search(near=position, category=kind.name, limit=ALONG_CANDIDATES, radius_m=ALONG_M)
        there, onward = ctx.maps.matrix(position, [p.point for p in found]), ctx.maps.matrix_to([p.point for p in found], goal)
        costs = [(a + b, i) for i, (a, b) in enumerate(zip(there, onward)) if a is not None and b is not None]
        if not costs:
            raise SkillError("not_found", "no such place on the way", query=words)
        return as_memory(found[min(costs)[1]])


class Favourite(Skill):
    id = "navigation.favourite"
    version = "1.0.0"
    summary = {"en": "Remember this place or an address as home, work or another favourite, or forget one.",
               "zh": "把当前位置或某个地址收藏为家、公司等，或删除收藏。"}
    examples = {"en": [
        ("This is home", {"name": "home"}), ("Remember this place as the gym", {"name": "gym"}),
        ("This place is my office", {"name": "office"}), ("Save this address as home", {"name": "home"}),
        ("Remember twelve Rue Grimaldi as the office", {"name": "office", "place": "12 Rue Grimaldi"}),
        ("Forget the address of the gym", {"name": "gym", "forget": True}),
    ], "zh": [
        ("这里是我家", {"name": "我家"}), ("把这里收藏为健身房", {"name": "健身房"}), ("把这里设为公司", {"name": "公司"}),
        ("把Rue Grimaldi收藏为公司", {"name": "公司", "place": "Rue Grimaldi"}), ("忘记公司的地址", {"name": "公司", "forget": True}),
    ]}
    effects = Effects(reads=LOOKS.reads, uses=("maps", "places"))
    timeout_s = 4.0
    wording = WORDING

    class Args(Args):
        name: str = Field(min_length=1, max_length=60)
        place: str | None = Field(default=None, min_length=1, max_length=120)
        forget: bool = False

    class Result(Result):
        said: dict[str, str]
        place: dict[str, str] = Field(default_factory=dict)

        def spoken(self, lang: str) -> dict[str, Any]:
            return {"name": self.said[lang], "place": self.place.get(lang, "")}

    async def run(self, args, ctx):
        if args.forget:
            known = places.favourite(ctx, args.name)
            if known is None or not places.forget_favourite(ctx, args.name):
                raise SkillError("not_found", "no such favourite", query=args.name)
            return self.Result(outcome="forgotten", said=known["said"])
        position = await ctx.position()
        if args.place:
            place = places.resolve(ctx, args.place, position)
            return self.Result(outcome="set", said=places.keep_favourite(ctx, args.name, place)["said"], place=place["said"])
        place = places.here(ctx, position, args.name, args.name)
        kept = places.keep_favourite(ctx, args.name, place)
        return self.Result(outcome="done_street" if place["street"] else "done", said=kept["said"],
                           place=dict.fromkeys(LANGUAGES, place["street"]))


SKILLS = [Alternatives, Avoid, Via, Favourite]
