"""VSS path families: patterns with braces, and what belongs together where something moves (Position, IsOpen, Switch)."""

import itertools
import re
from typing import Any

_BRACES = re.compile(r"\{([^}]*)\}")

# What a Switch drives its Position to, in percent; INACTIVE stops it.
SWITCH_POSITION = {
    "OPEN": 100, "ONE_SHOT_OPEN": 100, "CLOSE": 0, "ONE_SHOT_CLOSE": 0, "TILT_UP": -100, "TILT_DOWN": 0,
}  # fmt: skip
STOP = "INACTIVE"


def expand(pattern: str) -> list[str]:
    """Every path of a pattern: "A.{B,C}.D" gives A.B.D and A.C.D."""
    pieces = _BRACES.split(pattern)
    choices = [[text] if i % 2 == 0 else text.split(",") for i, text in enumerate(pieces)]
    return ["".join(parts) for parts in itertools.product(*choices)]


def mover(path: str) -> str:
    """The thing that moves when `path` is actuated (its branch), or "" where nothing travels."""
    branch, _, leaf = path.rpartition(".")
    return branch if leaf in ("Position", "IsOpen", "Switch") else ""


def proof(path: str, value: Any) -> tuple[str, Any]:
    """The signal and value that prove an actuation: for "open" it is the position at its end, as IsOpen is true at once."""
    branch, leaf = mover(path), path.rpartition(".")[2]
    if branch and leaf == "IsOpen" and value is True:
        return f"{branch}.Position", 100
    if branch and leaf == "Switch" and value in SWITCH_POSITION:
        return f"{branch}.Position", SWITCH_POSITION[value]
    return path, value


def reached(value: Any, target: Any, datatype: str = "", unit: str = "") -> bool:
    """Whether a current value counts as the target.

    float 0.05 (a set-point's rounding), double 1e-6 (0.1 m as a latitude), percent 1 except at its ends: a window that
    is 1 % open isn't closed. All else exactly.
    """
    if isinstance(target, bool) or isinstance(target, str) or isinstance(value, (bool, str)) or value is None:
        return value == target and type(value) is type(target)
    if isinstance(target, (list, tuple)) or isinstance(value, (list, tuple)):
        return list(value) == list(target) if isinstance(value, (list, tuple)) and isinstance(target, (list, tuple)) else False
    if unit == "percent" and target not in (-100, 0, 100):
        return abs(value - target) <= 1
    tolerance = {"float": 0.05, "double": 1e-6}.get(datatype, 0.0)
    return abs(value - target) <= tolerance
