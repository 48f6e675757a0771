"""The one place where a skill's outcome becomes a sentence: its own wording first, then the shared one.

Numbers are put into words here, so that no skill and no synthesiser has to. Looked for, in this order:
`<skill id>.<outcome>_<detail>`, `<skill id>.<outcome>`, `shared.<outcome>_<detail>`, `shared.<outcome>`, `shared.internal`; a
sentence that needs a field which isn't there is passed over. `detail` is the error's `reason` or the wrong argument's name.
"""
from pathlib import Path
from typing import Any

from venus_edge.numbers import say_number
from venus_edge.wording import Wording

SHARED = Path(__file__).with_name("wording.toml")
_WHOLE = ("speed", "percent")
"""Fields that are spoken without decimals."""
_RESERVED = ("key", "lang")
"""Parameter names of Wording.say."""


def speakable(fields: dict[str, Any], lang: str) -> dict[str, Any]:
    """The fields with their numbers in words; text stays as it is. What can't be said is left out."""
    said = {}
    for name, value in fields.items():
        if value is None or name in _RESERVED:
            continue
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            try:
                value = say_number(round(value) if name in _WHOLE else value, lang)
            except (ValueError, OverflowError):  # no number, or beyond what anybody says
                continue
        said[name] = value
    return said


class SkillWording:
    """Sentences of every registered skill."""

    def __init__(self, *paths: Path):
        self._wording = Wording(SHARED, *dict.fromkeys(paths))

    def has(self, skill_id: str, outcome: str) -> bool:
        """Whether the skill has a sentence of its own for this outcome."""
        return self._wording.has(f"{skill_id}.{outcome}")

    def say(self, skill_id: str, outcome: str, lang: str = "en", fields: dict[str, Any] | None = None) -> str:
        """The sentence for an outcome; never fails, because a missing sentence would leave the user in silence."""
        fields = speakable(fields or {}, lang)
        details = [f"_{fields[key]}" for key in ("reason", "field") if fields.get(key)]
        if "low" in fields and "high" in fields:
            details.append("_range")
        for base in (f"{skill_id}.{outcome}", f"shared.{outcome}"):
            for key in (*(base + detail for detail in details), base):
                if self._wording.has(key):
                    try:
                        return self._wording.say(key, lang, **fields)
                    except KeyError:
                        continue
        return self._wording.say("shared.internal", lang)
