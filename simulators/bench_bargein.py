"""`venus bench bargein`: interruptions and backchannels over the assistant's speech, judged from the loudspeaker's recording.

Trial: a request with a long answer, then over that answer an interruption or a listener's "mm-hmm". Measured from the user's first
sample: until the loudspeaker was ducked, until it was silent. `heard_text_errors` counts spans that the conversation's context
holds as heard though the recording stops before their end, or lacks though the recording holds them whole.
"""
import json
import statistics
from pathlib import Path

import numpy as np

from simulators.bench_run import play_script
from simulators.judge_audio import read_wav
from simulators.judge_evidence import MIC_RATE, Evidence, Segment
from simulators.people.bench_lines import BACKCHANNELS, INTERRUPTIONS, LONG_ANSWER, VOICES
from venus_edge import bench
from venus_edge.errors import ConfigError

FADE_S = 0.012
"""A flush fades in 5 ms; a span that ends this little before the last sounding sample may be missing from what was heard."""
PAUSE_S = 0.15
"""Speech holds pauses this long: where the recording ends in one, it can't tell how much of the pause was played."""
SILENT = 30
"""Peak (of 32768) below which the recording is silent."""
BACKCHANNEL_WINDOW_S = 2.5


def run(trials: int, as_json: bool, out: str | None, mutate: str | None) -> int:
    if not 2 <= trials <= 40:
        raise ConfigError(f"--trials: {trials} is not 2 to 40")
    ratio = bench.ref_ratio()
    script, kinds = make(trials)
    people = {name: {"voice": name, "seat": "driver"} for name in VOICES}
    played, evidence, status = play_script("bench bargein", script, people=people, max_s=30 + 16.0 * len(kinds), out=out, quiet=as_json,
                                           initial={"Vehicle.Cabin.Door.Row1.DriverSide.Window.Position": 60})
    if status:
        return status
    rows = [trial(evidence, step, kind) for step, kind in kinds]
    errors, spans = heard_errors(evidence, played.run_dir / "speaker.wav", mutate)
    cuts = [r for r in rows if r["kind"] == "interruption" and r["over"]]
    hums = [r for r in rows if r["kind"] == "backchannel" and r["over"]]
    ducks = [r["duck_s"] for r in cuts + hums if r["duck_s"] is not None]
    stops = [r["stop_s"] for r in cuts if r["stop_s"] is not None]
    figures = {"trials": len(cuts), "backchannels": len(hums), "duck_p95_s": bench.percentile(ducks, 95) if ducks else None, "ducked": len(ducks),
               "stop_p50_s": round(statistics.median(stops), 3) if stops else None, "stop_p95_s": bench.percentile(stops, 95) if stops else None,
               "stopped": len(stops), "false_stops": sum(r["stop_s"] is not None for r in hums), "heard_text_errors": errors, "spans_checked": spans,
               "missed": sum(not r["over"] for r in rows)}
    (played.run_dir / "trials.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False))
    if not as_json:
        for r in rows:
            print(f"{r['kind']:<13} {r['said']:<46} duck {r['duck_s']} stop {r['stop_s']} {r['verdict']}{'' if r['over'] else '  (not over speech)'}")
    print(json.dumps(bench.line("bargein", figures | ({"mutate": mutate} if mutate else {}), ratio=max(ratio, bench.ref_ratio()), seed=7)))
    return 0


def make(trials: int) -> tuple[list[dict], list[tuple[str, str]]]:
    """The script, and (step id, kind) of each trial: after every second interruption comes a backchannel."""
    script: list[dict] = []
    kinds: list[tuple[str, str]] = []
    hums = 0
    for k in range(trials + trials // 2):
        hum = k % 3 == 2
        text = BACKCHANNELS[hums % len(BACKCHANNELS)] if hum else INTERRUPTIONS[(k - hums) % len(INTERRUPTIONS)].say
        who = VOICES[k % 2]
        hums += hum
        step = f"{'hum' if hum else 'cut'}-{k + 1}"
        script.append({"id": f"ask-{k + 1}", "who": who, "say": LONG_ANSWER[k % len(LONG_ANSWER)],
                       "when": {"quiet_s": 1.5, "timeout_s": 25.0} if k else {"after_s": 2.0}})
        script.append({"id": step, "who": who, "say": text, "when": {"speaking_s": round(0.8 + 0.3 * (k % 4), 1), "timeout_s": 12.0}})
        kinds.append((step, "backchannel" if hum else "interruption"))
    return script, kinds


def trial(evidence: Evidence, step: str, kind: str) -> dict:
    spoken = evidence.utterance(step)
    row = {"id": step, "kind": kind, "said": spoken.said if spoken else "", "over": False, "duck_s": None, "stop_s": None, "verdict": ""}
    over = evidence.playing_at(spoken.begin) if spoken else None
    if spoken is None or over is None:
        return row
    row["over"] = True
    duck = next((e for e in evidence.by_kind["duck"] if spoken.begin <= e.pos <= spoken.begin + 2 * MIC_RATE), None)
    row["duck_s"] = round((duck.pos - spoken.begin) / MIC_RATE, 3) if duck else None
    if over.state == "flushed" and over.last <= spoken.end + BACKCHANNEL_WINDOW_S * MIC_RATE:
        row["stop_s"] = round((over.last - spoken.begin) / MIC_RATE, 3)
    row["verdict"] = "; ".join(f"{e.get('verdict')} {e.get('reason')}" for e in evidence.by_kind["overlap"] if spoken.begin - MIC_RATE // 4 <= e.pos <= spoken.end + 2 * MIC_RATE)
    return row


def heard_errors(evidence: Evidence, speaker: Path, mutate: str | None = None) -> tuple[int, int]:
    """(errors, spans compared) over every segment: the context's heard spans against what the recording holds."""
    samples, rate = read_wav(speaker)
    spans: dict[str, list] = {}
    for e in sorted(evidence.by_kind["segment"] + evidence.by_kind["segment.more"], key=lambda e: e.get("start") or 0):
        spans.setdefault(e["seg"], []).extend(e["spans"])
    errors = checked = 0
    for s in evidence.segments:
        if s.worker_played is None or s.seg not in spans:
            continue
        played = really_played(samples, rate, s)
        claimed = s.worker_played
        if mutate == "heard" and s.state == "flushed":
            claimed = next((end for _, _, end in spans[s.seg] if end > claimed), claimed)
        for _, _, end in spans[s.seg]:
            checked += 1
            errors += (end <= claimed and end > played + PAUSE_S * rate) or (end > claimed and end < played - FADE_S * rate)
    return errors, checked


def really_played(samples: np.ndarray, rate: int, s: Segment) -> int:
    """Samples of the segment that the recording holds, found from its sound: all of one that ended whole, else up to its last
    sounding sample."""
    if s.whole:
        return s.length
    begin = round(s.first * rate / MIC_RATE)
    clip = np.abs(samples[begin:begin + s.length + rate].astype(np.int32))
    loud = np.flatnonzero(clip[:round((s.last - s.first) * rate / MIC_RATE) + rate // 5] > SILENT)
    return int(loud[-1]) + 1 if len(loud) else 0
