"""The places skills: poi.find here; .next, .more, .details, .call and .attribution in follow_up.py."""
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from harness.host.providers import Point
from harness.skill import Args, Effects, Result, Skill, SkillContext, SkillError
from skills_automotive.poi import said
from skills_automotive.poi.follow_up import Attribution, Call, Details, More, Next
from skills_automotive.poi.lookup import Found, near, on_route, remember
from skills_automotive.poi.text import plain
from skills_automotive.poi.wish import ALONG_ROUTE, AT_DESTINATION, NEAR_ME, Wish, brand_spellings, cuisine_values, understand


def _where(value: Any) -> Any:
    """"near_destination" is taken too; the schema lists one name a value, so that a planner doesn't hear "nearby" in two of them."""
    return AT_DESTINATION if value == "near_destination" else value


class Find(Skill):
    id = "poi.find"
    version = "2.0.0"
    summary = {"en": "Find a kind of place or a place by name near the car, along the route or near the destination, and tell which is the nearest.",
               "zh": "在车附近、沿途或目的地附近按类别或名称查找地点，并告知最近的一个。"}
    avoid = {"en": "When the user wants to be taken there at once.", "zh": "用户要直接导航过去时不用。"}
    examples = {"en": [
        ("Is there a pharmacy nearby?", {"query": "pharmacy"}),
        ("Find a restaurant that's open now", {"query": "restaurant", "open_now": True}),
        ("Where is the nearest car park?", {"query": "car park"}),
        ("Where is the oceanographic museum?", {"query": "oceanographic museum"}),
        ("Is there a petrol station along the route?", {"query": "petrol station", "where": "along_route"}),
        ("Find a supermarket near the destination", {"query": "supermarket", "where": "at_destination"}),
    ], "zh": [
        ("附近有药店吗？", {"query": "药店"}),
        ("找一家现在还开门的餐厅", {"query": "餐厅", "open_now": True}),
        ("最近的停车场在哪里？", {"query": "停车场"}),
        ("附近有没有充电站？", {"query": "充电站"}),
        ("沿途有加油站吗？", {"query": "加油站", "where": "along_route"}),
        ("找一下目的地附近的超市", {"query": "超市", "where": "at_destination"}),
    ]}
    effects = Effects(reads=("Vehicle.CurrentLocation.*",), uses=("maps", "places"))
    timeout_s = 4.0
    wording = Path(__file__).with_name("wording.toml")

    class Args(Args):
        query: str = Field(min_length=1, max_length=120)
        open_now: bool = False
        where: Annotated[Literal["near_me", "along_route", "at_destination"], BeforeValidator(_where)] = NEAR_ME
        within_minutes: int | None = Field(default=None, ge=1, le=120)
        cuisine: str | None = Field(default=None, max_length=60)
        brand: str | None = Field(default=None, max_length=60)
        plug: Literal["type2", "ccs", "chademo", "gbt", "tesla", "schuko"] | None = None
        min_power_kw: float | None = Field(default=None, ge=1, le=1000)
        wheelchair: bool = False
        free: bool = False
        parking: bool = False

    class Result(Result):
        name: str
        said: dict[str, str]
        kind: dict[str, str]
        street: str
        seconds: float | None
        open_now: bool | None
        what: dict[str, str] = Field(default_factory=dict)
        goal: dict[str, str] = Field(default_factory=dict)
        detour_s: float | None = None
        distance_m: float = 0.0
        changes_at: str = ""
        changes_in_s: float | None = None
        unnamed: bool = False
        has: list[str] = Field(default_factory=list)
        unsure: list[str] = Field(default_factory=list)
        plug: str = ""
        min_power_kw: float = 0.0
        nearer_closed: int = 0
        nearer_unknown: int = 0
        others: int = 0
        synthetic: bool = False

        def spoken(self, lang: str) -> dict[str, Any]:
            """The parts of the sentence: see wording.toml."""
            there = self.outcome.startswith("destination")
            copula = not self.outcome.startswith("named")
            parts = (said.where(self.said[lang], self.unnamed, self.street, lang, copula=copula),
                     said.away(self.seconds, self.distance_m, lang, there=there))
            comma = "，" if lang == "zh" else ", "
            having = said.having(self.has, self.plug, self.min_power_kw, lang)
            return {"name": self.said[lang], "kind": self.kind[lang], "street": self.street, "what": self.what.get(lang, ""),
                    "goal": self.goal.get(lang, ""), "place": comma.join(part for part in parts if part),
                    "having": said.phrased("having.joined", lang, things=said.listed(having, lang)) if having else "",
                    "detour": said.detour(self.detour_s, lang) if self.outcome.startswith("route") else "",
                    "until": said.until(self.changes_at, lang, in_s=self.changes_in_s), "notes": self._notes(lang)}

        def _notes(self, lang: str) -> str:
            """What isn't known of it, and why it and not a nearer one."""
            hours = self.outcome.endswith("_unsure")
            unknown = said.whether((["hours"] if hours else []) + self.unsure, self.plug, lang)
            if hours and len(unknown) == 1:
                notes = said.phrased("unknown_hours", lang)
            else:
                notes = said.phrased("unknown", lang, things=said.listed(unknown, lang, last="or")) if unknown else ""
            for key, count in (("closed", self.nearer_closed), ("unknown", self.nearer_unknown)):
                if count:
                    words = said.cardinal(count, lang)
                    notes += said.phrased(f"nearer.{key}{'_one' if count == 1 else ''}", lang, count=words.capitalize() if key == "closed" else words)
            return notes

    async def run(self, args, ctx):
        wish = _wish(args)
        within_s = args.within_minutes * 60.0 if args.within_minutes else None
        position = await ctx.position()
        goal = ctx.memory.get("destination") if wish.where != NEAR_ME else None
        if wish.where != NEAR_ME and not goal:
            raise SkillError("not_found", "no destination is set", reason="no_route", query=args.query)
        if wish.where == ALONG_ROUTE:
            found = on_route(ctx, wish, position, _point(goal), query=args.query)
        else:
            found = near(ctx, wish, _point(goal) if goal else position, query=args.query, within_s=within_s)
        remember(ctx, found)
        return self._result(wish, found, goal, ctx)

    def _result(self, wish: Wish, found: list[Found], goal: dict | None, ctx: SkillContext):
        best, place, wants = found[0], found[0].place, wish.wants
        rivals = [f.place for f in found[1:] if best.seconds is not None and f.seconds is not None and f.seconds < best.seconds]
        base = {ALONG_ROUTE: "route", AT_DESTINATION: "destination"}.get(wish.where) or ("named" if wish.name else "done")
        if base == "done" and rivals:  # a nearer one was put behind it, because less is known of that
            base = "likeliest" if place.unsure else "sure"
        ranked = base in ("done", "sure", "likeliest")
        if wants.open_now:
            base += "_open" if place.open_now else "_unsure"
        asked = [*sorted(wants.needs), *(["plug"] if wants.plug else []), *(["power"] if wants.min_power_kw else [])]
        unsure = [name for name in asked if name in place.unsure]
        unknown = sum("hours" in rival.unsure for rival in rivals) if wants.open_now and place.open_now and ranked else 0
        return self.Result(
            outcome=base, name=place.name, said=said.in_both(said.said, place), kind=said.in_both(said.kind_words, place),
            street=place.street, seconds=best.seconds, open_now=place.open_now, what=wish.what, goal=goal["said"] if goal else {},
            detour_s=best.detour_s, distance_m=place.distance_m, changes_at=place.changes_at, changes_in_s=place.changes_in_s,
            unnamed=bool(place.tags.get("unnamed")) or bool(place.street) and plain(place.name) in map(plain, wants.brand),
            has=[name for name in asked if name not in unsure], unsure=unsure, plug=wants.plug, min_power_kw=wants.min_power_kw,
            nearer_closed=place.nearer_closed if ranked else 0,
            nearer_unknown=unknown, others=len(found) - 1,
            synthetic=place.synthetic)


def _wish(args) -> Wish:
    """The words taken apart, with what the arguments add."""
    wish = understand(args.query)
    wants = wish.wants
    needs = wants.needs | {name for name in ("wheelchair", "free", "parking") if getattr(args, name)}
    wants = replace(wants, open_now=wants.open_now or args.open_now, plug=args.plug or wants.plug, needs=frozenset(needs),
                    min_power_kw=max(args.min_power_kw or 0.0, wants.min_power_kw),
                    cuisine=cuisine_values(args.cuisine) if args.cuisine else wants.cuisine,
                    brand=brand_spellings(args.brand) if args.brand else wants.brand)
    what, kinds = wish.what, wish.kinds
    if args.cuisine and wish.kind:
        more = understand(args.cuisine)
        what, kinds = (more.what, tuple(dict.fromkeys((*kinds, *more.kinds)))) if more.wants.cuisine else (wish.what, kinds)
    if args.brand:
        what = {lang: f"{args.brand} {words}".strip() if lang == "en" else f"{args.brand}{words}" for lang, words in wish.what.items()}
    return replace(wish, wants=wants, what=what, kinds=kinds, where=args.where if args.where != NEAR_ME else wish.where or NEAR_ME)


def _point(goal: dict) -> Point:
    return Point(goal["lat"], goal["lon"])


SKILLS = [Find, Next, More, Details, Call, Attribution]
