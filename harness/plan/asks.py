"""What the deterministic planner asks back, in the user's language."""
from pathlib import Path

from harness.plan.compile import Compiled
from harness.plan.contracts import Ask
from harness.plan.filled import Filled
from venus_edge.wording import Wording

WORDING = Wording(Path(__file__).with_name("wording.toml"))


def unclear(lang: str, reason: str = "unclear") -> Ask:
    return Ask(WORDING.say("unclear", lang), reason)


def which(lang: str) -> Ask:
    return Ask(WORDING.say("which", lang), "ambiguous")


def _named(name: str, lang: str) -> str:
    key = f"argument.{name}"
    return WORDING.say(key, lang) if WORDING.has(key) else WORDING.say("argument.other", lang, name=name.replace("_", " "))


def lacking(c: Compiled, filled: Filled, lang: str) -> Ask:
    """The question for what is missing or out of range."""
    if filled.outside:
        slot = c.slots[filled.outside[0]]
        if slot.low is not None and slot.high is not None:
            return Ask(WORDING.say("outside", lang, low=f"{slot.low:g}", high=f"{slot.high:g}"), "out of range")
        return Ask(WORDING.say("unsaid", lang, what=_named(slot.name, lang)), "out of range")
    missing = filled.missing
    if len(missing) > 1:
        joint = "、" if lang == "zh" else ", "
        return Ask(WORDING.say("missing.several", lang, what=joint.join(_named(n, lang) for n in missing)), "missing argument")
    slot = c.slots[missing[0]]
    return Ask(WORDING.say(f"missing.{slot.role}", lang, what=_named(slot.name, lang)), "missing argument")


def unsaid(names: tuple[str, ...], lang: str) -> Ask:
    """Values that were not among the user's words."""
    return Ask(WORDING.say("unsaid", lang, what=_named(names[0], lang)), "value not said")
