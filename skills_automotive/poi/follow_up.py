"""After a search: poi.next and poi.more tell further places, .details and .call speak of one, .attribution says whose data it is."""
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from harness.host.errors import HostError
from harness.host.providers import Place
from harness.skill import Args, Effects, Result, Skill, SkillContext, SkillError
from skills_automotive.poi import attributes, said
from skills_automotive.poi.categories import ADDRESS, STREET
from skills_automotive.poi.lookup import REACH_M
from skills_automotive.poi.offers import as_memory, offered, ordinal, tell_more
from venus_edge.wording import LANGUAGES

WORDING = Path(__file__).with_name("wording.toml")
MORE = 2


class _Told(Result):
    """Places of the last search that weren't told yet. `first`: number of the first of them in the order of the search."""

    first: int
    places: list[dict] = Field(default_factory=list)

    def spoken(self, lang: str) -> dict[str, Any]:
        items = []
        for at, place in enumerate(self.places):
            where = said.where(place["said"][lang], False, place["street"], lang, copula=False)
            away = said.away(place["seconds"], place["distance_m"], lang)
            items.append((where, away, said.ordinal_word(self.first + at, lang)))
        return {"place": f"{items[0][0]}{'，' if lang == 'zh' else ', '}{items[0][1]}" if items else "",
                "places": said.phrased("item_end", lang).join(said.phrased("item", lang, ordinal=o, place=w, away=a) for w, a, o in items)}


async def _more(skill: Skill, ctx: SkillContext, count: int):
    if not ctx.memory.get("found"):
        raise SkillError("needs_input", "nothing was looked for", slot="query")
    first, places = tell_more(ctx.memory, count)
    return skill.Result(outcome="done" if places else "none", first=first, places=places)


class Next(Skill):
    id = "poi.next"
    version = "1.0.0"
    summary = {"en": "Tell the next place of the last search.", "zh": "告知上次搜索结果中的下一个地点。"}
    examples = {"en": [("What's the next one?", {}), ("Tell me the next place", {}), ("And the next one?", {}), ("Next result", {})],
                "zh": [("下一个呢？", {}), ("说说下一家", {}), ("不要这个，换下一个", {}), ("下一个结果", {})]}
    effects = Effects()
    wording = WORDING
    idempotent = False
    retries = 0
    Result = _Told

    async def run(self, args, ctx):
        return await _more(self, ctx, 1)


class More(Skill):
    id = "poi.more"
    version = "1.0.0"
    summary = {"en": "Tell further places of the last search, in order.", "zh": "按顺序告知上次搜索的更多结果。"}
    examples = {"en": [("What else is there?", {}), ("Are there any others?", {}), ("Show me more results", {}), ("Give me some other options", {})],
                "zh": [("还有其他的吗？", {}), ("还有没有其他选择？", {}), ("再说几个", {}), ("更多结果", {})]}
    effects = Effects()
    wording = WORDING
    idempotent = False
    retries = 0
    Result = _Told

    async def run(self, args, ctx):
        return await _more(self, ctx, MORE)


_WHICH = "what was just offered (it, the second one), or the name of a place"


async def _one(ctx: SkillContext, which: str) -> Place:
    """The place that is meant, with all that the map knows of it. Raises SkillError("not_found" or "needs_input")."""
    try:
        meant = offered(ctx.memory, which)
    except LookupError:
        raise SkillError("not_found", "fewer were offered", reason="fewer", query="") from None
    if meant is None and ordinal(which) == 0 and ctx.memory.get("destination"):
        meant = ctx.memory["destination"]
    if meant is None and ordinal(which) is not None:
        raise SkillError("needs_input", "nothing was offered", slot="which")
    try:
        here = await ctx.position()
    except HostError:  # a place that was offered can be spoken of wherever the car is
        here = None
    if meant:
        place = ctx.places.get(meant.get("id", ""), near=here)
        if place is None:
            raise SkillError("not_found", "the map no longer has it", query=which)
        return place
    found = ctx.places.search(name=which, near=here, radius_m=REACH_M, limit=1) if here else []
    if not found:
        raise SkillError("not_found", "no such place", query=which)
    ctx.memory["offers"] = [as_memory(found[0])]
    return ctx.places.get(found[0].id, near=here) or found[0]


class _Facts(Result):
    """One place. `facts`: sentences by language."""

    name: str
    said: dict[str, str]
    facts: dict[str, str]
    phone: str = ""
    address: str = ""
    opening_hours: str = ""
    open_now: bool | None = None
    synthetic: bool = False

    def spoken(self, lang: str) -> dict[str, Any]:
        return {"name": self.said[lang], "facts": self.facts[lang]}


class Details(Skill):
    id = "poi.details"
    version = "1.0.0"
    summary = {"en": "Tell about one place: its opening hours, phone number, address, or everything known of it.",
               "zh": "介绍某个地点：营业时间、电话号码、地址或全部已知信息。"}
    examples = {"en": [
        ("Tell me more about it", {"which": "it", "what": "all"}),
        ("When does it close?", {"which": "it", "what": "hours"}),
        ("What are the opening hours of the second one?", {"which": "the second one", "what": "hours"}),
        ("What's its phone number?", {"which": "it", "what": "phone"}),
        ("What's the address of the first one?", {"which": "the first one", "what": "address"}),
        ("Tell me more about the third one", {"which": "the third one", "what": "all"}),
    ], "zh": [
        ("详细介绍一下它", {"which": "它", "what": "all"}),
        ("它几点关门？", {"which": "它", "what": "hours"}),
        ("第二个的营业时间是什么？", {"which": "第二个", "what": "hours"}),
        ("它的电话号码是多少？", {"which": "它", "what": "phone"}),
        ("第一个的地址是什么？", {"which": "第一个", "what": "address"}),
    ]}
    effects = Effects(reads=("Vehicle.CurrentLocation.*",), uses=("places",))
    wording = WORDING
    Result = _Facts

    class Args(Args):
        which: str = Field(default="it", min_length=1, max_length=120, description=_WHICH)
        what: Literal["all", "hours", "phone", "address"] = "all"

    async def run(self, args, ctx):
        place = await _one(ctx, args.which)
        return _Facts(name=place.name, said=said.in_both(said.said, place), facts={lang: _facts(place, args.what, lang) for lang in LANGUAGES},
                      phone=place.phone, address=place.address, opening_hours=place.tags.get("opening_hours", ""), open_now=place.open_now,
                      synthetic=place.synthetic)


def _facts(place: Place, what: str, lang: str) -> str:
    """The sentences that answer `what`, without the last full stop."""
    name = said.said(place, lang)
    address, number = said.address(place, lang), said.number(place.phone, lang)
    parts = []
    if what == "address":
        key = "fact.address" if address else "fact.street" if place.street else "fact.no_address"
        parts.append(said.phrased(key, lang, name=name, address=address, street=place.street))
    elif what == "phone":
        parts.append(said.phrased("fact.phone", lang, number=number) if number else said.phrased("fact.no_phone", lang, name=name))
    elif what == "hours":
        parts.append(said.phrased("fact.hours", lang, name=name, hours=said.hours_today(place, lang)))
    else:
        parts.append(_about(place, name, address, lang))
        if place.category not in (STREET, ADDRESS):
            parts.append(said.hours_today(place, lang))
        if number:
            parts.append(said.phrased("fact.phone", lang, number=number))
        things = _known(place, lang)
        if things:
            parts.append(said.phrased("fact.has", lang, things=said.listed(things, lang)))
    if place.synthetic:
        parts.append(said.phrased("fact.synthetic", lang))
    text = ("" if lang == "zh" else " ").join(parts)
    return (text[:1].upper() + text[1:]).rstrip(".。")


def _about(place: Place, name: str, address: str, lang: str) -> str:
    kind = said.kind_words(place, lang)
    if not kind:
        return said.phrased("about.road", lang, name=name)
    if place.tags.get("unnamed"):
        return said.phrased("about.unnamed", lang, place=name)
    name = name[:1].upper() + name[1:]
    if address:
        return said.phrased("about.address", lang, name=name, kind=kind, address=address)
    return said.phrased("about.street" if place.street else "about.kind", lang, name=name, kind=kind, street=place.street)


def _known(place: Place, lang: str) -> list[str]:
    """What the map tells of what drivers ask for: attributes, plugs, power."""
    tags = place.tags
    names = [name for name, need in attributes.NEEDS.items() if need.told(tags) and (not need.kinds or place.category in need.kinds)
             and not (name == "parking" and place.category == "parking")]
    things = said.having(names, "", 0.0, lang)
    things += [said.phrased("having.plug", lang, plug=said.plug_name(plug, lang)) for plug in attributes.plugs(tags) or ()]
    power = attributes.power_kw(tags)
    return things + ([said.phrased("having.power", lang, power=said.say_number(power, lang))] if power else [])


class Call(Skill):
    id = "poi.call"
    version = "1.0.0"
    summary = {"en": "Call a place that was offered: give its phone number, for the phone to dial.",
               "zh": "给刚才提到的地点打电话：提供电话号码供拨打。"}
    examples = {"en": [
        ("Call it", {"which": "it"}), ("Call the second one", {"which": "the second one"}), ("Ring the first place", {"which": "the first place"}),
        ("Can you phone the third one for me?", {"which": "the third one"}), ("Call that place", {"which": "that place"}),
    ], "zh": [
        ("给第二家打电话", {"which": "第二家"}), ("打电话给第一个", {"which": "第一个"}), ("帮我给那家打电话", {"which": "那家"}), ("拨打第三个的电话", {"which": "第三个"}),
    ]}
    effects = Effects(reads=("Vehicle.CurrentLocation.*",), uses=("places",))
    wording = WORDING

    class Args(Args):
        which: str = Field(min_length=1, max_length=120, description=_WHICH)

    class Result(Result):
        """`dial`: what a phone takes ("tel:+37799..."); the host that has one may act on it."""

        name: str
        said: dict[str, str]
        phone: str
        dial: str
        synthetic: bool = False

        def spoken(self, lang: str) -> dict[str, Any]:
            return {"name": self.said[lang], "number": said.number(self.phone, lang)}

    async def run(self, args, ctx):
        place = await _one(ctx, args.which)
        if not place.phone:
            raise SkillError("not_found", "the map has no number", reason="phone", query=args.which, name=said.said(place, ctx.lang))
        dial = "tel:" + "".join(c for c in place.phone if c.isdigit() or c == "+")
        return self.Result(outcome="made_up" if place.synthetic else "done", name=place.name, said=said.in_both(said.said, place),
                           phone=place.phone, dial="" if place.synthetic else dial, synthetic=place.synthetic)


class Attribution(Skill):
    id = "poi.attribution"
    version = "1.0.0"
    summary = {"en": "Say where the places and the map data come from and under which licence.", "zh": "说明地点和地图数据的来源和许可。"}
    examples = {"en": [("Where does this data come from?", {}), ("Who made this map?", {}), ("What's the source of the map data?", {}),
                       ("What licence does the map data have?", {})],
                "zh": [("这些数据是从哪里来的？", {}), ("地图数据的来源是什么？", {}), ("这个地图是谁做的？", {}), ("地图数据用的是什么许可？", {})]}
    effects = Effects(uses=("places",))
    wording = WORDING

    class Result(Result):
        """`notice`: the credit as it must be shown."""

        notice: str
        synthetic: bool

    async def run(self, args, ctx):
        credit = ctx.places.attribution()
        return self.Result(outcome="synthetic" if credit.synthetic else "done", synthetic=credit.synthetic,
                           notice=f"{credit.credit}, {credit.licence}")
