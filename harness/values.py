"""Exact values: the numbers of a request's arguments must be among the words the user said.

Understands digits, English number words (0 to 100, decimals, halves and quarters) and Chinese numerals (0 to 100).
"""
import re
from typing import Any, Collection

_UNITS = {w: i for i, w in enumerate(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen".split())} | {"oh": 0}
_TENS = {w: 10 * i for i, w in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)}
_HAN = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_TOKEN = re.compile(r"\d+(?:[.,]\d+)?|[a-z]+|[零〇一二两三四五六七八九十百点半]+")


def numbers_in(prose: str) -> set[float]:
    """Every number said in `prose`, each as the longest reading ("twenty two point five" is 22.5 alone)."""
    tokens = _TOKEN.findall(prose.lower())
    found: set[float] = set()
    i = 0
    while i < len(tokens):
        value, used = _english(tokens, i)
        if not used and tokens[i][0].isdigit():
            value, used = float(tokens[i].replace(",", ".")), 1
        if not used and not tokens[i].isascii():
            value, used = _chinese(tokens[i]), 1
        if used:
            i += used
            if tokens[i:i + 3] == ["and", "a", "half"]:
                value, i = value + 0.5, i + 3
            found.add(value)
        else:
            if tokens[i] in ("half", "halfway"):
                found |= {0.5, 50.0}
            elif tokens[i] == "quarter":
                found |= {0.25, 25.0}
            i += 1
    return found


def unsaid_values(arguments: dict[str, Any], prose: str, derived: Collection[str] = ()) -> tuple[str, ...]:
    """Names of the arguments that hold a number the user did not say.

    Booleans and words are exempt (digits inside a string count); so is what `derived` names, or all with "*". The sign is
    not compared: "two degrees cooler" is -2.
    """
    if "*" in derived:
        return ()
    said = numbers_in(prose)
    return tuple(name for name, value in arguments.items()
                 if name not in derived and any(abs(n) not in said for n in _numbers(value)))


def values_in_words(arguments: dict[str, Any], prose: str, derived: Collection[str] = ()) -> bool:
    """Whether every number in `arguments` is among the user's words."""
    return not unsaid_values(arguments, prose, derived)


def _numbers(value: Any) -> list[float]:
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, (int, float)):
        return [float(value)]
    if isinstance(value, str):
        return [float(n.replace(",", ".")) for n in re.findall(r"\d+(?:[.,]\d+)?", value)]
    if isinstance(value, dict):
        return [n for item in value.values() for n in _numbers(item)]
    return [n for item in value for n in _numbers(item)] if isinstance(value, (list, tuple)) else []


def _english(tokens: list[str], i: int) -> tuple[float, int]:
    """(value, tokens used) of the number words at `i`; used is 0 where there are none."""
    start, value = i, 0.0
    if tokens[i] in ("a", "one") and tokens[i + 1:i + 2] == ["hundred"]:
        value, i = 100.0, i + 2
    elif tokens[i] in _TENS:
        value, i = float(_TENS[tokens[i]]), i + 1
        if i < len(tokens) and 0 < _UNITS.get(tokens[i], 0) < 10:
            value, i = value + _UNITS[tokens[i]], i + 1
    elif tokens[i] in _UNITS and tokens[i] != "oh":
        value, i = float(_UNITS[tokens[i]]), i + 1
    else:
        return 0.0, 0
    if tokens[i:i + 1] == ["point"] and i + 1 < len(tokens):
        digits, j = "", i + 1
        while j < len(tokens) and _UNITS.get(tokens[j], 10) < 10:
            digits, j = digits + str(_UNITS[tokens[j]]), j + 1
        if digits:
            value, i = float(f"{int(value)}.{digits}"), j
    return value, i - start


def _chinese(token: str) -> float:
    whole, _, decimals = token.partition("点")
    half = whole.endswith("半")
    whole = whole.rstrip("半")
    if "百" in whole:
        head, _, tail = whole.partition("百")
        value = 100.0 * _HAN.get(head, 1) + (_chinese(tail.lstrip("零")) if tail.lstrip("零") else 0)
    elif "十" in whole:
        head, _, tail = whole.partition("十")
        value = 10.0 * _HAN.get(head, 1) + _HAN.get(tail, 0)
    else:
        digits = "".join(str(_HAN[c]) for c in whole if c in _HAN)
        value = float(digits) if digits else 0.0
    if decimals:
        value = float(f"{int(value)}." + "".join(str(_HAN[c]) for c in decimals if c in _HAN) + "0")
    return value + 0.5 if half else value
