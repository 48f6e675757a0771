"""`venus eval drive`: one scenario, played several times in a row; one line with what held over all runs."""
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from simulators import scenario
from simulators.judge import MUTATIONS
from simulators.run import RunFailed, interruptible, new_run_dir, once
from venus_edge import bench
from venus_edge.errors import ConfigError
from venus_edge.settings import Settings


def run(path: str, runs: int, as_json: bool, out: str | None, mutate: str | None) -> int:
    if not 1 <= runs <= 50:
        raise ConfigError(f"--runs: {runs} is not 1 to 50")
    if mutate and mutate not in MUTATIONS:
        raise ConfigError(f"--mutate: '{mutate}' is not one of {', '.join(MUTATIONS)}")
    plan, settings = scenario.load(path), Settings.load()
    ratio = bench.ref_ratio()
    summaries: list[dict[str, Any]] = []

    async def main() -> int:
        for k in range(runs):
            run_dir = new_run_dir(Path(out) if out else None)
            try:
                summary = await once(settings, plan, Path(path), run_dir, max_s=plan.max_s, mutate_kind=mutate)
            except RunFailed as err:
                summary = {"passed": False, "broke_off": err.message}
            summaries.append(summary)
            if not as_json:
                print(f"run {k + 1} of {runs}: {'passed' if summary['passed'] else 'FAILED'}  {run_dir}", flush=True)
                for failure in summary.get("failures", ()):
                    print(f"    {failure['step'] or 'run'}: {failure['kind']}: expected {failure['expected']}; found {failure['found']}")
        return 0

    status = interruptible(main())
    if status:
        return status
    figures = total(summaries) | ({"mutate": mutate} if mutate else {})
    print(json.dumps(bench.line("eval drive", figures, ratio=max(ratio, bench.ref_ratio()), seed=plan.seed)))
    sys.stdout.flush()
    return 0 if figures["passed"] == runs else 1


def total(summaries: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums over the runs; of times the median of the runs' medians and the worst p95; events per kind."""
    events: Counter = Counter()
    for summary in summaries:
        events.update(summary.get("events", {}))
    latencies = [s["latency"] for s in summaries if s.get("latency", {}).get("p50_s") is not None]
    return {
        "runs": len(summaries), "passed": sum(s["passed"] for s in summaries), "broke_off": sum("broke_off" in s for s in summaries),
        **{name: sum(s.get(name, 0) for s in summaries) for name in ("expectations", "failed", "stale", "repeated", "heard_text_errors")},
        "loop_block_max_ms": max((s.get("loop_block_max_ms", 0) for s in summaries), default=0),
        "p50_s": bench.percentile([x["p50_s"] for x in latencies], 50) if latencies else None,
        "p95_s": max((x["p95_s"] for x in latencies), default=None), "events": dict(sorted(events.items()))}
