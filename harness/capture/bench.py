"""`venus bench parser`: what span capture costs per token, whether it grows with the conversation, and whether it finds every span.

The stream is a conversation in units of 20 tokens with a delegate span every 75: prose and typed calls in turn, some across units.
Figures are CPU time, medians. For growth the same 1,000 tokens are fed to a session that has seen 1,000 and to one that has seen
50,000 or more, in turn.
"""
import argparse
import itertools
import json
import random
import statistics
import sys
import time

from harness.capture.calls import Prose
from harness.capture.spans import SpanAssembler, SpanClosed, SpanLimits
from harness.capture.testing import WordTokenizer
from venus_edge import bench
from venus_edge.errors import ConfigError

EVERY, UNIT, TURN, BLOCK = 75, 20, 8, 1000
"""Tokens from span to span, tokens of a unit, units of a turn, tokens of one measurement."""
MUTATIONS = {"limit": SpanLimits(max_tokens=4, max_region_tokens=4)}
_SAID = "the road along the sea is clear so you will be there in about twelve minutes and there is free parking near the harbour".split()
_ASKED = ("find a charger near the harbour of Menton please", '{"capability": "window.set", "arguments": {"position": 30}}',
          '[{"capability": "poi.find", "arguments": {"what": "pharmacy"}}, {"capability": "climate.set", "arguments": {"temperature": 21}}]',
          "and tell my wife that we will be twenty minutes late")


def run(argv: list[str]) -> int:
    """Cost of span capture per token, its growth from 1k to 50k tokens, and the spans found."""
    parser = argparse.ArgumentParser(
        prog="venus bench parser", description=run.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n  venus bench parser --json\n  venus bench parser --tokens 100000 --seed 3\n"
               "  venus bench parser --mutate limit     (spans are cut short: must fail)\nexit status: 0 every span found; 1 one missed; 2 bad input")
    parser.add_argument("--tokens", type=int, default=50_000, help="length of the long session, 5000 to 1000000 (default 50000)")
    parser.add_argument("--rounds", type=int, default=61, help="measurements of each kind, 3 to 1000 (default 61)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--mutate", choices=sorted(MUTATIONS), help="break the capture: the bench must then report missed spans")
    parser.add_argument("--json", action="store_true", help="print one JSON line and nothing else")
    args = parser.parse_args(argv)
    if not 5_000 <= args.tokens <= 1_000_000:
        raise ConfigError(f"--tokens: {args.tokens} is not 5000 to 1000000")
    if not 3 <= args.rounds <= 1000:
        raise ConfigError(f"--rounds: {args.rounds} is not 3 to 1000")
    ratio = bench.ref_ratio()
    stream = Stream(args.tokens + (args.rounds + 1) * BLOCK, args.seed)
    limits = MUTATIONS.get(args.mutate)
    figures: dict = {}
    found = expected = wrong = 0
    for size in (1, UNIT):
        if not args.json:
            print(f"{size} token{'s' * (size > 1)} a step ...", file=sys.stderr)
        got = measure(stream, size, args.tokens, args.rounds, limits)
        figures[f"us_per_token_{size}"], figures[f"growth_{size}"] = round(got["us"], 3), round(got["growth"], 3)
        found, expected, wrong = found + got["found"], expected + got["expected"], wrong + got["wrong"]
    worst = {name: max(figures[f"{name}_1"], figures[f"{name}_{UNIT}"]) for name in ("us_per_token", "growth")}
    figures = {**worst, **figures, "spans": found, "spans_expected": expected, "wrong": wrong, "n": 2 * (args.tokens + args.rounds * BLOCK)}
    ratio = max(ratio, bench.ref_ratio())
    if args.json:
        print(json.dumps(bench.line("parser", figures, ratio=ratio, seed=args.seed)))
    else:
        print("\n".join(f"{name:20} {value}" for name, value in figures.items()))
    return 0 if found == expected and not wrong else 1


class Stream:
    """A conversation as ids, with what must come of it; made before anything is measured."""

    def __init__(self, tokens: int, seed: int):
        rng = random.Random(seed)
        self.tokenizer = tok = WordTokenizer()
        spoken = tok.words(" ".join(_SAID))
        asked = [(tok.words(text), text) for text in _ASKED]
        self.ids: list[int] = []
        self.visible: list[tuple[int, int]] = []
        """(index, id)."""
        self.spans: list[tuple[int, str]] = []
        """(index of the closing token, content)."""
        pending: list[int] = []
        private = False
        while len(self.ids) < tokens:
            at = len(self.ids) % UNIT
            if at in (0, UNIT - 2, UNIT - 1):
                last = len(self.ids) // UNIT % TURN == TURN - 1 and not private
                self.ids.append(tok["<|speak|>" if at == 0 else "</unit>" if at == UNIT - 1 else "<|turn_eos|>" if last else "<|chunk_eos|>"])
                continue
            if not pending and len(self.ids) // EVERY > len(self.spans):
                content, text = asked[rng.randrange(len(asked))]
                pending = [tok["<delegate>"], *content, tok["</delegate>"]]
                private = True
            token = pending.pop(0) if pending else rng.choice(spoken)
            self.ids.append(token)
            if not private:
                self.visible.append((len(self.ids) - 1, token))
            elif not pending:
                private = False
                self.spans.append((len(self.ids) - 1, text))


def measure(stream: Stream, size: int, tokens: int, rounds: int, limits: SpanLimits | None = None) -> dict:
    """CPU microseconds per token with `size` ids a step, the growth beyond `tokens`, and the check of all that came out: `found` of
    `expected` spans, and `wrong` visible ids (another, missing or too many) and spans nobody wrote."""
    steps = [stream.ids[i:i + size] for i in range(0, len(stream.ids), size)]
    long = _Session(stream, limits)
    long.feed(steps[:tokens // size])
    young, old = [], []
    for k in range(rounds):
        at = (tokens + k * BLOCK) // size
        block, before = steps[at:at + BLOCK // size], steps[at - BLOCK // size:at]
        fresh = _Session(stream, limits)
        fresh.feed(before)
        for session, times in ((fresh, young), (long, old)) if k % 2 else ((long, old), (fresh, young)):
            times.append(session.feed(block))
    spans = [text for end, text in stream.spans if end < long.fed]
    visible = [token for index, token in stream.visible if index < long.fed]
    wrong = sum(a != b for a, b in itertools.zip_longest(long.visible, visible)) + max(0, len(long.found) - len(spans))
    return {"us": max(statistics.median(young), statistics.median(old)), "wrong": wrong,
            "growth": statistics.median(b / a for a, b in zip(young, old)),
            "found": sum(a == b for a, b in zip(long.found, spans)), "expected": len(spans)}


class _Session:
    def __init__(self, stream: Stream, limits: SpanLimits | None):
        self._spans = SpanAssembler(stream.tokenizer.control, stream.tokenizer.decode, limits)
        self.visible: list[int] = []
        self.found: list[str] = []
        self.fed = 0

    def feed(self, steps: list[list[int]]) -> float:
        """CPU microseconds per token of these steps."""
        step, out, units = self._spans.step, [], []
        for ids in steps:
            units.append(self.fed // UNIT + 1)
            self.fed += len(ids)
        begin = time.thread_time_ns()
        for ids, seq in zip(steps, units):
            out.append(step(ids, seq * 16_000, seq))
        spent = time.thread_time_ns() - begin
        for visible, events in out:
            self.visible += visible
            self.found += [_text(event) for event in events if isinstance(event, SpanClosed)]
        return spent / 1e3 / sum(map(len, steps))


def _text(event: SpanClosed) -> str:
    """The span as it was written, so that what was made of it can be compared."""
    if isinstance(event.content, Prose):
        return event.content.text
    calls = [{"capability": call.capability, "arguments": call.arguments} for call in event.content]
    return json.dumps(calls if len(calls) > 1 else calls[0])
