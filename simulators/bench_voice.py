"""`venus bench voice`: the user's last sample to the first sample of the answer at the loudspeaker's DAC, through everything.

Fillers (acknowledgements, progress) don't count as answers. A turn is right when it was understood as meant and its answer holds
the expected words; it is cut off when it was taken as finished before the user's last sample.
"""
import json
import statistics

from simulators.bench_run import play_script
from simulators.judge_evidence import MIC_RATE, Evidence, Segment, Utterance
from simulators.judge_rules import matches
from simulators.people.bench_lines import VOICE, VOICES, BenchLine
from venus_edge import bench
from venus_edge.errors import ConfigError

CUT_SLACK_S = 0.25
"""A recognised span that ends this much before the user's last sample left words out."""
TURN_S = 14.0
FILLERS = ("ack", "progress")


def run(turns: int, as_json: bool, out: str | None) -> int:
    if not 1 <= turns <= len(VOICE):
        raise ConfigError(f"--turns: {turns} is not 1 to {len(VOICE)}")
    ratio = bench.ref_ratio()
    lines = pick(turns)
    script = [{"id": f"turn-{k + 1}", "who": VOICES[line_no % 2], "say": line.say,
               "when": {"quiet_s": 1.2, "timeout_s": 25.0} if k else {"after_s": 2.0}} for k, (line_no, line) in enumerate(lines)]
    people = {name: {"voice": name, "seat": "driver"} for name in VOICES}
    played, evidence, status = play_script("bench voice", script, people=people, max_s=20 + TURN_S * turns, out=out, quiet=as_json,
                                           initial={"Vehicle.Cabin.Door.Row1.DriverSide.Window.Position": 60})
    if status:
        return status
    rows = [judge(evidence, f"turn-{k + 1}", line) for k, (_, line) in enumerate(lines)]
    figures = summarise(rows)
    figures["loop_block_max_ms"] = round(max((v for n, v in played.metrics.items() if n.endswith("loop_block_max_ms")), default=0.0), 1)
    (played.run_dir / "turns.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False))
    if not as_json:
        for row in rows:
            print(f"{row['latency_s'] or float('nan'):6.2f} s  {'right' if row['right'] else 'WRONG'}{'  CUT OFF' if row['cut_off'] else ''}  {row['said']}"
                  f"{'' if row['right'] else '   understood: ' + row['understood']}")
    print(json.dumps(bench.line("voice", figures, ratio=max(ratio, bench.ref_ratio()), seed=7)))
    return 0


def pick(turns: int) -> list[tuple[int, BenchLine]]:
    """(its number, the line): the lines with a pause inside are always among them, the rest in order."""
    paused = [k for k, line in enumerate(VOICE) if line.pause][:turns]
    rest = [k for k, line in enumerate(VOICE) if not line.pause][:turns - len(paused)]
    return [(k, VOICE[k]) for k in sorted(paused + rest)]


def judge(evidence: Evidence, step: str, line: BenchLine) -> dict:
    """One turn: its latency with parts, whether it was understood and whether it was cut off."""
    kind = " ".join(filter(None, (line.capability or "direct", line.arguments.get("what", ""))))
    row = {"id": step, "kind": kind, "said": line.say, "latency_s": None, "right": False, "cut_off": False, "understood": "", "parts": {}}
    spoken = evidence.utterance(step)
    if spoken is None:
        return row
    texts = [t for t in evidence.texts_of(step) if not t.backchannel]
    delegates = evidence.delegates_of(step)
    row["understood"] = "; ".join([" / ".join(t.text for t in texts), *(f"{d.capability} {d.arguments}" for d in delegates)])
    row["cut_off"] = any(t.end < spoken.end - CUT_SLACK_S * MIC_RATE for t in texts[:-1]) or bool(
        texts and texts[-1].end < spoken.end - CUT_SLACK_S * MIC_RATE)
    if line.capability is None:
        row["right"] = bool(texts) and not delegates
    else:
        row["right"] = any(d.capability == line.capability and all(matches(d.arguments.get(k), v) for k, v in line.arguments.items())
                           for d in delegates[-1:])
    answers = [s for s in evidence.answers(step) if s.kind not in FILLERS]
    row["cut_off"] = row["cut_off"] or any(s.first < spoken.end for s in answers)
    answer = next((s for s in answers if s.first >= spoken.end), None)
    row["right"] = bool(row["right"] and answer is not None)
    if answer is not None:
        row["latency_s"] = round((answer.first - spoken.end) / MIC_RATE, 3)
        row["parts"] = parts(evidence, spoken, answer)
        row["answer"] = answer.text
    return row


def parts(evidence: Evidence, spoken: Utterance, answer: Segment) -> dict[str, float]:
    """Seconds of the answer's way. They add up to the latency: transport_up, endpoint (with what recognition adds beyond it),
    work (policy, skill, gate), synthesis, and transport_down with the playout buffer and the DAC."""
    texts = [t for t in evidence.texts_of(next(u.id for u in evidence.utterances if u is spoken)) if t.t <= answer.t_made]
    if not texts:
        return {}
    final = texts[-1]
    timings = evidence.timings_of(final.turn)
    ups = [(evidence.clock.pos(e.t) - e.pos) / MIC_RATE for e in evidence.by_kind["mic.live"] if spoken.begin <= e.pos <= spoken.end + MIC_RATE]
    up = statistics.median(ups) if ups else 0.0
    heard = (evidence.clock.pos(final.t) - spoken.end) / MIC_RATE
    synthesis = min(timings.get("synthesis_ms", 0.0) / 1e3, answer.t_made - final.t)
    received = next((e.t for e in evidence.by_kind["seg.rx"] if e.get("seg") == answer.seg), None)
    down = received - answer.t_made if received else 0.0
    total = (answer.first - spoken.end) / MIC_RATE
    return {k: round(v, 3) for k, v in {
        "transport_up": up, "endpoint": heard - up, "recognition": timings.get("recognition_ms", 0.0) / 1e3,
        "policy": timings.get("policy_ms", 0.0) / 1e3, "work": answer.t_made - final.t - synthesis, "synthesis": synthesis,
        "transport_down": down, "playout_buffer": total - heard - (answer.t_made - final.t) - down}.items()}


def summarise(rows: list[dict]) -> dict:
    times = [r["latency_s"] for r in rows if r["latency_s"] is not None]
    names = sorted({k for r in rows for k in r["parts"]})
    return {"p50_s": bench.percentile(times, 50) if times else None, "p95_s": bench.percentile(times, 95) if times else None,
            "turns": len(rows), "answered": len(times), "cut_off": sum(r["cut_off"] for r in rows), "right": sum(r["right"] for r in rows),
            "kinds": len({r["kind"] for r in rows}),
            "parts_p50_s": {n: round(statistics.median(r["parts"][n] for r in rows if n in r["parts"]), 3) for n in names}}
