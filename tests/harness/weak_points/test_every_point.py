"""No weak point is left out: each has a test in this folder, or tests elsewhere that exist, or one line why it is no point of a harness."""
import ast
import functools
import re
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
POINTS = {"peer": range(1, 36), "odd": range(1, 45), "scale": range(1, 17), "case": range(1, 46)}
COVERED = tomllib.loads((HERE / "covered.toml").read_text(encoding="utf-8"))
_POINT = re.compile(r"\b(Peer|Odd|Scale|Case) (\d+)")


@functools.cache
def functions_of(path: str) -> dict[str, str]:
    """The tests of a file, with their docstrings."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and n.name.startswith("test_")]
    return {n.name: ast.get_docstring(n) or "" for n in found}


def here() -> dict[str, set[tuple[str, int]]]:
    """The points that each test of this folder names, before the colon with which its docstring begins."""
    named = {}
    for path in sorted(HERE.glob("test_*.py")):
        if path.name != Path(__file__).name:
            for name, text in functions_of(str(path.relative_to(ROOT))).items():
                named[f"{path.name}::{name}"] = {(kind.lower(), int(n)) for kind, n in _POINT.findall(text.split(":")[0])}
    return named


def test_every_test_of_this_folder_names_its_points():
    """Its docstring begins with them: "Peer 17: ..."."""
    assert [test for test, points in here().items() if not points] == []


@pytest.mark.parametrize("kind", POINTS)
def test_no_point_is_left_out_and_none_is_invented(kind):
    """Each number of a list is named by a test here or has its entry in covered.toml."""
    tested = {n for points in here().values() for k, n in points if k == kind}
    listed = {int(n) for n in COVERED[kind]}
    assert set(POINTS[kind]) - tested - listed == set() and (tested | listed) <= set(POINTS[kind])


@pytest.mark.parametrize("kind, number", [(kind, n) for kind, entries in COVERED.items() for n in entries])
def test_an_entry_names_tests_that_exist_or_says_why_there_are_none(kind, number):
    """`what` it is, and tests, or a reason of one honest line: that it belongs elsewhere, or that it is not done yet."""
    entry = COVERED[kind][number]
    assert set(entry) <= {"what", "tests", "elsewhere", "not_yet"} and entry["what"]
    assert entry.get("tests") or entry.get("elsewhere") or entry.get("not_yet")
    for test in entry.get("tests", ()):
        path, name = test.split("::")
        assert name in functions_of(path), test
