"""From words to a place: favourites, what was just offered, "back there", names and kinds on the map.

What a session remembers (JSON): `favourites` {key: place}, `offers` [place], `been` [place] (earlier destinations, newest first) and
`from` (where the last trip began). A place: id, name, said {en, zh}, kind, street, lat, lon.
"""
from harness.host.providers import Point
from harness.skill import SkillContext, SkillError
from skills_automotive.navigation.geometry import metres
from skills_automotive.poi.categories import kind_of
from skills_automotive.poi.lookup import as_memory, destination
from skills_automotive.poi.text import plain

OFFERED = {"it": 0, "there": 0, "that": 0, "that one": 0, "this one": 0, "that place": 0, "the one": 0, "the first": 0,
           "the first one": 0, "the second": 1, "the second one": 1, "the third": 2, "the third one": 2, "the last": -1,
           "the last one": -1, "the nearest one": 0, "那里": 0, "那儿": 0, "它": 0, "第一个": 0, "第二个": 1, "第三个": 2,
           "最后一个": -1, "第一家": 0, "第二家": 1, "第三家": 2, "最后一家": -1, "这家": 0, "那家": 0}
BACK = frozenset(("back", "back there", "there again", "the last place", "the place before", "the previous destination",
                  "the last destination", "where we were", "where we were before", "回去", "回刚才那里", "刚才那里", "刚才的地方", "上一个地方",
                  "上一个目的地", "原来的地方"))
START = frozenset(("where we started", "where we set off", "where we came from", "back where we started", "the start", "出发的地方", "出发地",
                   "起点", "来的地方"))
HERE = frozenset(("here", "this", "this place", "the current position", "where we are", "这里", "这儿", "当前位置", "现在的位置"))
HOME, WORK = "home", "work"
_SAME = {name: HOME for name in ("home", "our home", "house", "our house", "place", "our place", "家", "我家", "家里", "我们家", "回家", "自己家")} | {
    name: WORK for name in ("work", "office", "our office", "job", "workplace", "公司", "单位", "办公室", "我公司", "我单位", "上班")}
_SAID = {HOME: {"en": "your home", "zh": "您家"}, WORK: {"en": "work", "zh": "公司"}}
FAVOURITES_LIMIT, BEEN_LIMIT = 20, 5
SAME_M = 60.0


def key_of(words: str) -> str:
    """The name under which a favourite is kept: "my office" and "公司" are both "work"; "Mum's place" is "mums place"."""
    text = plain(words.replace("'", "").replace("’", ""))
    for lead in ("my ", "the ", "at ", "to ", "our ", "我的", "去"):
        text = text.removeprefix(lead)
    return _SAME.get(text, text)


def favourite(ctx: SkillContext, words: str) -> dict | None:
    """The favourite that these words name, or None."""
    return (ctx.memory.get("favourites") or {}).get(key_of(words))


def keep_favourite(ctx: SkillContext, words: str, place: dict) -> dict:
    """Remember a place under a name; returns it as it is kept. Raises SkillError("unavailable") when there are too many."""
    key, kept = key_of(words), dict(ctx.memory.get("favourites") or {})
    if key not in kept and len(kept) >= FAVOURITES_LIMIT:
        raise SkillError("unavailable", f"{FAVOURITES_LIMIT} favourites are kept; at most {FAVOURITES_LIMIT}", reason="full")
    name = words.strip()
    said = _SAID.get(key, {"en": name, "zh": name})
    kept[key] = place | {"name": name, "said": said, "favourite": key}
    ctx.memory["favourites"] = kept
    return kept[key]


def forget_favourite(ctx: SkillContext, words: str) -> bool:
    kept = dict(ctx.memory.get("favourites") or {})
    if kept.pop(key_of(words), None) is None:
        return False
    ctx.memory["favourites"] = kept
    return True


def spot(position: Point, en: str, zh: str, street: str = "") -> dict:
    """A position as a place."""
    return {"id": f"at:{position.lat:.5f},{position.lon:.5f}", "name": en, "said": {"en": en, "zh": zh}, "kind": "address",
            "street": street, "lat": position.lat, "lon": position.lon}


def here(ctx: SkillContext, position: Point, en: str, zh: str) -> dict:
    """The car's position as a place, with its street."""
    return spot(position, en, zh, ctx.maps.street(position))


def resolve(ctx: SkillContext, words: str, position: Point) -> dict:
    """The one place that these words mean, whatever it is. Raises SkillError("not_found") or ("needs_input")."""
    text = plain(words)
    if text in OFFERED:
        return offered(ctx, OFFERED[text])
    if text in HERE:
        return here(ctx, position, "this place", "这里")
    if text in START:
        return _known(ctx.memory.get("from"), "nowhere was set off from", "start")
    if text in BACK:
        return back(ctx, position)
    if place := favourite(ctx, words):
        return place
    if key_of(words) in (HOME, WORK):
        raise SkillError("not_found", "no such address is kept", reason="private", query=words)
    return as_memory(destination(ctx, words, position))


def offered(ctx: SkillContext, index: int) -> dict:
    """The place offered at an index; raises SkillError("needs_input") when none was, ("not_found") when fewer were."""
    offers = ctx.memory.get("offers") or []
    if not offers:
        raise SkillError("needs_input", "nothing was offered", slot="destination")
    if index >= len(offers):
        raise SkillError("not_found", "fewer were offered", reason="fewer", query="")
    return offers[index]


def back(ctx: SkillContext, position: Point) -> dict:
    """The place before: the newest earlier destination that is neither the present one nor here, else where the trip began."""
    goal = ctx.memory.get("destination") or {}
    for place in (*(ctx.memory.get("been") or ()), ctx.memory.get("from")):
        if place and place["id"] != goal.get("id") and metres(Point(place["lat"], place["lon"]), position) > SAME_M:
            return place
    raise SkillError("not_found", "there was no place before", reason="back")


def _known(place: dict | None, why: str, reason: str) -> dict:
    if not place:
        raise SkillError("not_found", why, reason=reason)
    return place


def remember_been(ctx: SkillContext, place: dict | None) -> None:
    """An earlier destination, for "back there"."""
    if place:
        rest = [other for other in ctx.memory.get("been") or () if other["id"] != place["id"]]
        ctx.memory["been"] = [place, *rest][:BEEN_LIMIT]


def same(place: dict, words: str) -> bool:
    """Whether words name this place: by name, by kind, or by a name's beginning."""
    wanted, names = plain(words).removeprefix("the "), {plain(place["name"]).removeprefix("the ")}
    names |= {plain(said).removeprefix("the ") for said in place["said"].values()}
    kind = kind_of(words)
    return bool(wanted) and (wanted in names or any(wanted in name for name in names) or bool(kind and kind.name == place["kind"]))
