"""`venus eval planner`: a planner against requests labelled by hand, one line a split.

recall: of the requests that must be delegated, those planned as the right operations and capabilities (of any accepted answer).
specificity: of the asides and of what must be asked back, those that became no task. exact_args: of the rightly delegated, those
whose arguments are all equal under the data set's normal form. ignored_control: cancel, status and update requests planned as a
new task or as nothing.
"""
import argparse
import asyncio
import json
import re
import sys
import time
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

from harness.plan.contracts import Ask, Aside, Contract, LiveTask, Plan, Planned, Planner, PlanRequest
from harness.plan.text import has_han
from harness.values import numbers_in
from venus_edge import bench
from venus_edge.errors import ConfigError
from venus_edge.paths import root

_LEAD, _TRAIL = frozenset("the a an some please um uh er".split()), frozenset("please now nearby thanks".split())
_SPLITS = ("dev", "test")
_WATCHED = ("cancel", "update", "status")


def run(argv: list[str]) -> int:
    """Judge a planner by labelled requests (en, zh, mixed)."""
    parser = argparse.ArgumentParser(
        prog="venus eval planner", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n  venus eval planner --json\n  venus eval planner --split dev --failures 20\n"
               "  venus eval planner --planner openai --split test --json     (VENUS_LLM_* name the endpoint)\nexit status: 0; 2 bad input")
    parser.add_argument("--split", choices=(*_SPLITS, "both"), default="both")
    parser.add_argument("--planner", choices=("rule", "openai"), default="rule")
    parser.add_argument("--data", type=Path, default=None,
                        help="folder with capabilities.json, dev.jsonl and test.jsonl (default: tests/data/planner)")
    parser.add_argument("--failures", type=int, default=0, metavar="N",
                        help="show the first N failures of dev; never those of test, which is not for tuning")
    parser.add_argument("--json", action="store_true", help="only the figures, one JSON object a split")
    options = parser.parse_args(argv)
    folder = options.data or root() / "tests" / "data" / "planner"
    contracts = load_contracts(folder / "capabilities.json")
    planner, embedder = _planner(options.planner)
    ratio = bench.ref_ratio()
    for split in _SPLITS if options.split == "both" else (options.split,):
        rows = load_rows(folder / f"{split}.jsonl")
        judged = asyncio.run(_judge_all(planner, contracts, rows, quiet=options.json))
        figures = {"split": split, "planner": options.planner, "embedder": embedder, **summarise(judged)}
        if options.failures and split == "dev":
            for row in [j for j in judged if not j["right"]][:options.failures]:
                print(f"{row['id']} {row['kind']}: {row['prose']}\n    expected {json.dumps(row['expect'], ensure_ascii=False)}\n    planned  "
                      f"{row['planned']}", file=sys.stderr)
        print(json.dumps(bench.line("planner", figures, ratio=max(ratio, bench.ref_ratio())), ensure_ascii=False))
    return 0


def _planner(kind: str) -> tuple[Planner, str]:
    if kind == "rule":
        from harness.plan.rules import RulePlanner
        planner = RulePlanner()
        return planner, planner.embedder.name
    from harness.llm.planner import OpenAIPlanner
    from harness.plan.rules import RulePlanner
    fallback = RulePlanner()
    return OpenAIPlanner.from_env(fallback), f"{fallback.embedder.name} (fall-back planner)"


def load_contracts(path: Path) -> tuple[Contract, ...]:
    """The contracts of a capabilities.json; raises ConfigError naming the file."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return tuple(Contract(**{**row, "derived": frozenset(row.get("derived", ())), "examples": _examples(row)}) for row in rows)
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(f"{path}: a list of capability contracts is needed ({error})") from None


def _examples(row: dict) -> dict:
    return {lang: tuple((text, arguments) for text, arguments in pairs) for lang, pairs in row.get("examples", {}).items()}


def load_rows(path: Path) -> list[dict]:
    """The labelled requests of one split; raises ConfigError naming the file."""
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: one JSON object a line is needed ({error})") from None


def request_of(row: dict, contracts: tuple[Contract, ...]) -> PlanRequest:
    """A labelled line as the planner gets it."""
    lang = row["lang"] if row["lang"] in ("en", "zh") else ("zh" if has_han(row["prose"]) else "en")
    tasks = tuple(LiveTask(**t) for t in row.get("tasks", ()))
    return PlanRequest(row["prose"], lang, contracts, tasks, tuple(row.get("said", ())), row.get("heard", ""),
                       row.get("question", ""), row.get("question_task", ""), memory=row.get("memory", {}))


async def _judge_all(planner: Planner, contracts: tuple[Contract, ...], rows: list[dict], quiet: bool) -> list[dict]:
    if rows:
        await planner.plan(request_of(rows[0], contracts))  # compiles the contracts, which isn't part of a plan
    out = []
    for k, row in enumerate(rows):
        request = request_of(row, contracts)
        begin = time.perf_counter()
        planned = await planner.plan(request)
        took_ms = (time.perf_counter() - begin) * 1000
        out.append({**judge(row, planned, contracts), "ms": took_ms})
        if not quiet and (k + 1) % 100 == 0:
            print(f"{k + 1} of {len(rows)}", file=sys.stderr)
    return out


def judge(row: dict, planned: Planned, contracts: tuple[Contract, ...]) -> dict:
    """One line: was it delegated rightly, with the right arguments, or rightly not."""
    known = {c.id: c for c in contracts}
    answers = [row["expect"], *row.get("accept", ())]
    wanted = [a["plans"] for a in answers if "plans" in a]
    plans = planned if isinstance(planned, tuple) else ()
    delegated = "plans" in row["expect"]
    routed = [w for w in wanted if _same_route(w, plans)]
    exact = any(_same_arguments(w, plans, known) for w in routed)
    no_task = any("ask" in a and isinstance(planned, Ask) or "aside" in a and isinstance(planned, Aside) for a in answers)
    quiet = not delegated and not plans or no_task
    # Where honest people disagree, another accepted answer is as right as the first.
    recalled = bool(routed) or delegated and not plans and quiet
    asked_for = {p["operation"] for p in row["expect"].get("plans", ())}
    done = {p.operation for p in plans}
    missed = (done == {"new"} or not plans) and not any(_same_operations(w, plans) for w in wanted)
    ignored = bool(asked_for & set(_WATCHED)) and missed and not (not plans and quiet)
    return {"id": row["id"], "kind": row["kind"], "lang": row["lang"], "prose": row["prose"], "expect": row["expect"],
            "delegate": delegated, "aside": "aside" in row["expect"], "ignored": ignored,
            "recalled": delegated and recalled, "exact": exact or delegated and not plans and quiet,
            "quiet": not delegated and (quiet or bool(routed)),
            "right": (recalled and (exact or not plans)) if delegated else quiet or bool(routed), "planned": _shown(planned)}


def _shown(planned: Planned) -> str:
    if isinstance(planned, tuple):
        return "; ".join(f"{p.operation} {p.capability} {json.dumps(p.arguments, ensure_ascii=False)} @{p.target}" for p in planned)
    return f"{type(planned).__name__} ({planned.reason})"


def _pairs(wanted: list[dict], plans: tuple[Plan, ...]):
    """Wanted and planned in some order that fits, or None."""
    left, pairs = list(plans), []
    if len(wanted) != len(plans):
        return None
    for w in wanted:
        match = next((p for p in left if p.operation == w["operation"] and p.capability == w.get("capability", p.capability)
                      and p.target == w.get("target", p.target)), None)
        if match is None:
            return None
        left.remove(match)
        pairs.append((w, match))
    return pairs


def _same_route(wanted: list[dict], plans: tuple[Plan, ...]) -> bool:
    return _pairs(wanted, plans) is not None


def _same_operations(wanted: list[dict], plans: tuple[Plan, ...]) -> bool:
    return Counter(w["operation"] for w in wanted) == Counter(p.operation for p in plans)


def _same_arguments(wanted: list[dict], plans: tuple[Plan, ...], known: dict[str, Contract]) -> bool:
    pairs = _pairs(wanted, plans) or []
    return bool(pairs) and all(same_arguments(w["arguments"], p.arguments, known.get(w.get("capability", ""))) for w, p in pairs if "arguments" in w)


def same_arguments(wanted: dict, got: dict, contract: Contract | None) -> bool:
    """Equal under the normal form: defaults may be left out, strings folded, ids joined, whole questions compared loosely."""
    properties = contract.schema.get("properties", {}) if contract else {}
    one, other = _without_defaults(wanted, properties), _without_defaults(got, properties)
    if set(one) != set(other):
        return False
    loose = contract is not None and contract.kind != "skill"
    return all(_same(one[k], other[k], loose) for k in one)


def _without_defaults(arguments: dict, properties: dict) -> dict:
    return {k: v for k, v in arguments.items() if v is not None and not ("default" in properties.get(k, {}) and properties[k]["default"] == v)}


def _same(a: Any, b: Any, loose: bool) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return float(a) == float(b)
    if isinstance(a, str) and isinstance(b, str):
        if fold(a) == fold(b) or re.search(r"\d", a) and joined(a) == joined(b):
            return True
        if _digits(fold(a)) == _digits(fold(b)):
            return True  # a house number in digits or in words
        return loose and overlap(fold(a), fold(b)) >= 0.8 and numbers_in(a) == numbers_in(b)
    return a == b


def fold(text: str) -> str:
    """Free text as it is compared: no case, no punctuation, no article in front, no filler at the ends, Chinese without spaces."""
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("'", "")
    words = re.findall(r"[^\W_]+", text)
    while len(words) > 1 and words[0] in _LEAD:
        words = words[1:]
    while len(words) > 1 and words[-1] in _TRAIL:
        words = words[:-1]
    text = " ".join(word for i, word in enumerate(words) if not i or word not in ("the", "a", "an"))
    return re.sub(r"(?<=[一-鿿]) (?=[一-鿿])", "", text)


def joined(text: str) -> str:
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", text)).upper()


def _digits(text: str) -> str:
    from harness.plan.numerals import numbers_said
    for n in reversed(numbers_said(text)):
        if float(n.value).is_integer() and not n.ordinal:
            text = text[:n.start] + f"{int(n.value)}" + text[n.end:]
    return text


def overlap(one: str, other: str) -> float:
    """F1 of the words (characters in Chinese) two folded texts share."""
    def counted(text: str) -> Counter:
        return Counter(re.findall(r"[一-鿿]|[^\W一-鿿]+", text))
    a, b = counted(one), counted(other)
    return 2 * sum((a & b).values()) / max(1, sum(a.values()) + sum(b.values()))


def summarise(judged: list[dict]) -> dict:
    """The figures of one split."""
    must, mustnt = [j for j in judged if j["delegate"]], [j for j in judged if not j["delegate"]]
    aside, ask = [j for j in mustnt if j["aside"]], [j for j in mustnt if not j["aside"]]
    right = [j for j in must if j["recalled"]]
    times = [j["ms"] for j in judged] or [0.0]
    kinds = Counter(j["kind"] for j in judged)
    good = Counter(j["kind"] for j in judged if j["right"])
    quiet = [j for j in mustnt if j["quiet"]]
    return {"n": len(judged), "recall": _share(right, must), "specificity": _share(quiet, mustnt),
            "exact_args": _share([j for j in right if j["exact"]], right),
            "ignored_control": sum(j["ignored"] for j in judged), "must_delegate": len(must), "asides": len(aside), "asks": len(ask),
            "specificity_asides": _share([j for j in aside if j["quiet"]], aside), "specificity_asks": _share([j for j in ask if j["quiet"]], ask),
            "recall_by_language": {lang: _share([j for j in right if j["lang"] == lang], [j for j in must if j["lang"] == lang])
                                   for lang in ("en", "zh", "mixed")},
            "kinds": {kind: f"{good[kind]}/{count}" for kind, count in sorted(kinds.items())},
            "p50_ms": bench.percentile(times, 50), "p95_ms": bench.percentile(times, 95)}


def _share(part: list, whole: list) -> float | None:
    return round(len(part) / len(whole), 4) if whole else None
