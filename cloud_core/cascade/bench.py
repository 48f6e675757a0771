"""End of speech to the first samples of the answer, in real time, with cabin noise:  python -m cloud_core.cascade.bench

Prints one JSON line. The stream is paced by the clock, a unit at a time; the harness is played by a reply that comes with the
unit after the delegate, so the figures are the cascade's own plus one unit. No transport, no playout buffer.
Options: --turns N, --snr DB, --voice NAME, --seed N, --set NAME=VALUE (a runtime setting, e.g. unit_ms=20), --verbose.
"""
import argparse
import json
import sys

import numpy as np

from cloud_core.cascade.runtime import create
from cloud_core.cascade.testing import SpokenPhrases, VirtualDevice, in_cabin
from cloud_core.cascade.understand import TemplatePolicy
from cloud_core.front_end import MIC_RATE, AdmittedReply, SessionOptions
from cloud_core.speech.kokoro import VOICES
from venus_edge.bench import line, percentile, ref_ratio
from venus_edge.clock import SystemClock
from venus_edge.metrics import METRICS

COMMANDS = (
    ("Find me a charging station nearby and take me there.",), ("Set the temperature to", "twenty-two degrees."), ("Open the tailgate.",),
    ("Take me to", "the casino."), ("Make it two degrees warmer.",), ("Set the fan to fifty percent.",), ("Turn on the seat heating.",),
    ("Close the driver's window.",), ("Lock the doors.",), ("Turn the volume up.",), ("How fast are we going?",), ("When do we arrive?",),
    ("Is there a pharmacy nearby?",), ("Cancel the route.",), ("What time is it?",), ("Take me to the train station.",),
    ("How much battery is left?",), ("Open the rear left window.",), ("Set the fan to", "twenty percent."), ("Set the temperature to twenty degrees.",),
)
PAUSE_S, LEAD_S, TAIL_S = 0.7, 0.6, 2.2
REPLY = "Okay, I'll do that for you right now."


def utterances(voice: str, wanted: int) -> list[tuple[str, np.ndarray]]:
    """(text, 16 kHz wave); a part break is a pause of PAUSE_S."""
    phrases, out = SpokenPhrases(voice), []
    for parts in (COMMANDS * (wanted // len(COMMANDS) + 1))[:wanted]:
        out.append((" ".join(parts), phrases.wave(*parts, pause_s=PAUSE_S)))
    phrases.keep()
    return out


def main(argv: list[str] | None = None) -> dict:
    ask = argparse.ArgumentParser(prog="python -m cloud_core.cascade.bench", description="end of speech to the answer's first samples")
    ask.add_argument("--turns", type=int, default=20)
    ask.add_argument("--snr", type=float, default=10.0)
    ask.add_argument("--voice", default="jm_kumo", choices=VOICES)
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    ask.add_argument("--verbose", action="store_true")
    args = ask.parse_args(argv)
    settings = {name: float(value) if "." in value else int(value) for name, value in (s.split("=", 1) for s in args.set)}
    spoken, front_end, policy, clock = utterances(args.voice, args.turns), create(settings), TemplatePolicy(), SystemClock()
    unit_s = front_end.info.unit_ms / 1e3
    size = int(unit_s * MIC_RATE)
    rows, steps, cut, right = [], [], 0, 0
    ratio = ref_ratio()
    for k, (text, wave) in enumerate(spoken):
        device = VirtualDevice(front_end.open(SessionOptions(f"bench-{k}")), front_end.info.unit_ms)
        sound = in_cabin(wave, args.snr, LEAD_S, TAIL_S, args.seed + k)
        end_s = LEAD_S + len(wave) / MIC_RATE
        row, replies, heard, requests = {}, (), [], []
        begun = clock.now()
        for n in range(len(sound) // size):
            while (wait := begun + (n + 1) * unit_s - clock.now()) > 0:
                _sleep(wait)
            before = clock.now()
            decision = device.step(sound[n * size:(n + 1) * size], replies=replies)
            now = clock.now()
            steps.append((now - before) * 1e3)
            replies = ()
            late_ms = (now - begun - end_s) * 1e3
            heard += [u.text for u in decision.user]
            requests += decision.delegates
            if decision.user:
                row |= {"decided": late_ms, **decision.timings}
                cut += late_ms < 0
            if decision.delegates:
                replies = (AdmittedReply(f"r{k}-{n}", REPLY),)
            if decision.segments and "first" not in row:
                row |= {"first": late_ms, "synthesis_ms": decision.timings.get("synthesis_ms", 0.0)}
                break
        device.session.close()
        want = policy.understand(text)
        good = (bool(want.say) and not requests and "first" in row if not want.requests else
                [(r.capability, r.arguments) for r in want.requests] == [(r.capability, r.arguments) for r in requests])
        right += good
        if args.verbose:
            print(("ok " if good else "BAD"), text, heard, {a: round(b) for a, b in row.items()}, file=sys.stderr, flush=True)
        rows.append(row)
    front_end.close()
    figures = {"turns": len(rows), "right": right, "cut_off": cut, "answered": sum("first" in r for r in rows), "snr_db": args.snr, "voice": args.voice,
               "unit_ms": front_end.info.unit_ms, "stale_recognitions": METRICS.get("venus_cascade_recognitions_stale_total"),
               "step_p95_ms": round(percentile(steps, 95), 2)}
    for name, key in (("first", "p{}_s"), ("decided", "decided_p{}_s"), ("endpoint_ms", "endpoint_p{}_ms"), ("recognition_ms", "recognition_p{}_ms"),
                      ("policy_ms", "policy_p{}_ms"), ("synthesis_ms", "synthesis_p{}_ms")):
        values = [r[name] for r in rows if name in r]
        for p in (50, 95):
            scale = 1e3 if key.endswith("_s") else 1
            figures[key.format(p)] = round(percentile(values, p) / scale, 3) if values else None
    report = line("cascade", figures, ratio=ratio, seed=args.seed)
    print(json.dumps(report), flush=True)
    return report


def _sleep(seconds: float) -> None:
    """The bench's own pacing: it is the microphone."""
    import time

    time.sleep(seconds)


if __name__ == "__main__":
    main()
