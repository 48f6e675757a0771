"""The VSS 6.0 tree: every signal's datatype, unit, range and allowed values, and the check of a value against them.

The tree is COVESA's release 6.0 as JSON (MPL-2.0), `data/vss_release_6.0.json` beside this file: 1,263 leaves.
"""

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

TREE_FILE = Path(__file__).parent / "data" / "vss_release_6.0.json"

INTEGERS = {
    "int8": (-(2**7), 2**7 - 1), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1), "uint8": (0, 2**8 - 1), "uint16": (0, 2**16 - 1), "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}  # fmt: skip
FLOATS = ("float", "double")
_FLOAT_MAX = 3.4028234663852886e38


@dataclass(frozen=True)
class Spec:
    """One leaf of the tree. `kind` is sensor, actuator or attribute; `id` numbers the leaves from 1 in file order."""

    id: int
    path: str
    kind: str
    datatype: str
    unit: str = ""
    low: float | int | None = None
    high: float | int | None = None
    allowed: tuple = ()
    default: Any = None
    description: str = ""
    comment: str = ""
    deprecation: str = ""

    @property
    def base(self) -> str:
        """The datatype of one element."""
        return self.datatype.removesuffix("[]")

    @property
    def is_array(self) -> bool:
        return self.datatype.endswith("[]")


def _leaves(nodes: dict, prefix: str):
    for name, node in nodes.items():
        path = f"{prefix}.{name}" if prefix else name
        if node["type"] == "branch":
            yield from _leaves(node["children"], path)
        else:
            yield path, node


@cache
def load(tree_file: Path = TREE_FILE) -> dict[str, Spec]:
    """All leaves by path, in file order; raises OSError or ValueError where the file is missing or not VSS."""
    tree = json.loads(tree_file.read_text(encoding="utf-8"))
    return {
        path: Spec(
            id=number, path=path, kind=node["type"], datatype=node["datatype"], unit=node.get("unit", ""),
            low=node.get("min"), high=node.get("max"), allowed=tuple(node.get("allowed", ())),
            default=node.get("default"), description=node.get("description", ""), comment=node.get("comment", ""),
            deprecation=node.get("deprecation", ""),
        )
        for number, (path, node) in enumerate(_leaves(tree, ""), start=1)
    }  # fmt: skip


def _check_one(spec: Spec, value: Any) -> str:
    base = spec.base
    if base == "boolean":
        return "" if isinstance(value, bool) else f"{spec.path} takes true or false, got {value!r}"
    if base == "string":
        if not isinstance(value, str):
            return f"{spec.path} takes a text, got {value!r}"
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        return f"{spec.path} takes a number ({base}), got {value!r}"
    elif base in INTEGERS:
        low, high = INTEGERS[base]
        if not isinstance(value, int) or not low <= value <= high:
            return f"{spec.path} takes a whole number {low}..{high} ({base}), got {value!r}"
    elif not math.isfinite(value) or (base == "float" and abs(value) > _FLOAT_MAX):
        return f"{spec.path} takes a finite {base}, got {value!r}"
    if spec.allowed and value not in spec.allowed:
        return f"{spec.path} takes one of {', '.join(map(str, spec.allowed))}; got {value!r}"
    if (spec.low is not None and value < spec.low) or (spec.high is not None and value > spec.high):
        low = "" if spec.low is None else spec.low
        high = "" if spec.high is None else spec.high
        return f"{spec.path} takes {low}..{high} {spec.unit}".rstrip() + f", got {value!r}"
    return ""


def check(spec: Spec, value: Any) -> str:
    """Why `value` can't be the signal's value, naming the allowed ones; empty when it can."""
    if not spec.is_array:
        return _check_one(spec, value)
    if not isinstance(value, (list, tuple)):
        return f"{spec.path} takes a list of {spec.base}, got {value!r}"
    return next((why for why in (_check_one(spec, item) for item in value) if why), "")
