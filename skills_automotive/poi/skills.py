"""poi.find: what there is nearby, the nearest first, with the street and the minutes by car."""
from pathlib import Path
from typing import Any

from pydantic import Field

from harness.skill import Args, Effects, Result, Skill
from skills_automotive import spoken
from skills_automotive.poi.categories import kind_of
from skills_automotive.poi.lookup import find, in_both, kind_words, remember, said


class Find(Skill):
    id = "poi.find"
    version = "1.0.0"
    summary = {"en": "Find a kind of place or a place by name near the car and tell where the nearest one is.",
               "zh": "在车附近按类别或名称查找地点，并告知最近的一个。"}
    examples = {"en": [
        ("Is there a pharmacy nearby?", {"query": "pharmacy"}),
        ("Find a restaurant that's open now", {"query": "restaurant", "open_now": True}),
        ("Where is the nearest car park?", {"query": "car park"}),
        ("Where is the oceanographic museum?", {"query": "oceanographic museum"}),
    ]}
    effects = Effects(reads=("Vehicle.CurrentLocation.*",), uses=("maps", "places"))
    timeout_s = 4.0
    wording = Path(__file__).with_name("wording.toml")

    class Args(Args):
        query: str = Field(min_length=1, max_length=120)
        open_now: bool = False

    class Result(Result):
        name: str
        said: dict[str, str]
        kind: dict[str, str]
        street: str
        seconds: float
        open_now: bool | None

        def spoken(self, lang: str) -> dict[str, Any]:
            return {"name": self.said[lang], "kind": self.kind[lang], "street": self.street,
                    "minutes": spoken.minutes(self.seconds, lang)}

    async def run(self, args, ctx):
        found = find(ctx, args.query, await ctx.position(), open_now=args.open_now)
        remember(ctx, found)
        best, seconds = found[0].place, found[0].seconds
        unnamed = bool(best.tags.get("unnamed"))
        outcome = ("done" if kind_of(args.query) else "named") + ("_unnamed" if unnamed else "")
        if not best.street:
            outcome += "_nostreet"
        if args.open_now:
            outcome += "_open" if best.open_now else "_unsure"
        return self.Result(outcome=outcome, name=best.name, said=in_both(said, best), kind=in_both(kind_words, best),
                           street=best.street, seconds=seconds, open_now=best.open_now)


SKILLS = [Find]
