"""What a route is called and what comes next, in words. Chinese is written from Valhalla's maneuver types."""
from harness.host.providers import Route
from skills_automotive import spoken

_MINOR = ("tunnel", "rond-point", "giratoire", "bretelle", "échangeur", "voie ")
_ZH = {1: "出发", 2: "出发", 3: "出发", 4: "到达目的地", 5: "到达目的地，在右侧", 6: "到达目的地，在左侧", 7: "继续直行", 8: "继续直行",
       9: "靠右前方行驶", 10: "右转", 11: "向右急转", 12: "向右掉头", 13: "向左掉头", 14: "向左急转", 15: "左转", 16: "靠左前方行驶",
       17: "直行进入匝道", 18: "向右进入匝道", 19: "向左进入匝道", 20: "从右侧出口驶出", 21: "从左侧出口驶出", 22: "保持直行", 23: "靠右行驶",
       24: "靠左行驶", 25: "汇入主路", 26: "进入环岛", 27: "驶出环岛", 28: "乘渡轮", 29: "下渡轮", 37: "向右汇入主路", 38: "向左汇入主路"}
ARRIVALS = (4, 5, 6)


def via(route: Route, destination_street: str) -> str:
    """The street that tells the way best: the longest, a tunnel or roundabout only for want of another. "" when there is none."""
    lengths: dict[str, float] = {}
    for maneuver in route.maneuvers:
        if maneuver.street:
            weight = 0.25 if maneuver.street.lower().startswith(_MINOR) else 1.0
            lengths[maneuver.street] = lengths.get(maneuver.street, 0.0) + maneuver.length_m * weight
    others = {name: length for name, length in lengths.items() if name != destination_street}
    return max(others, key=others.get) if others else ""


def next_step(route: Route, lang: str) -> tuple[str, str]:
    """(distance to the next maneuver, what to do there), both in words."""
    steps = list(route.maneuvers)
    ahead, step = (steps[0].length_m, steps[1]) if len(steps) > 1 else (route.length_m, steps[0])
    if lang == "zh":
        text = _ZH.get(step.type, "继续行驶")
        return spoken.distance(ahead, lang), text + (f"进入{step.street}" if step.street and step.type not in ARRIVALS else "")
    text = step.instruction.rstrip(".")
    return spoken.distance(ahead, lang), "you arrive" if step.type in ARRIVALS else text[:1].lower() + text[1:]
