"""A run's report.html: one self-contained page with verdict, lanes, latencies, transcript and both recordings.

No network, no other file, no script from elsewhere; it reads on a phone and in the dark. The recordings are mu-law WAV at
16 kHz (8 bits a sample, 38 dB): half the size of 16-bit samples, about 5 MB for two minutes of both.
"""
import base64
import struct
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from simulators.judge_audio import read_wav, resample
from simulators.judge_evidence import Evidence
from simulators.report_lanes import lanes
from simulators.timeline import MIC_RATE, Event, load
from venus_edge.errors import ConfigError

_TEMPLATE = Path(__file__).with_name("report.html")
_PARTS = ("hear", "decide", "speak")


def write_report(run_dir: Path | str, summary: dict[str, Any], *, title: str = "Drive",
                 events: Sequence[Event] | None = None) -> Path:
    """Write `report.html` into `run_dir` from its timeline, `mic.wav`, `speaker.wav` and the judge's summary; its path.

    A recording that is missing (the run ended early) is said to be missing; the page is written all the same.
    """
    run_dir = Path(run_dir)
    evidence = Evidence(list(events) if events is not None else load(run_dir))
    sounds = {name: _sound(run_dir / f"{name}.wav") for name in ("mic", "speaker")}
    seconds = max([evidence.end / MIC_RATE, *(len(x) / rate for x, rate in filter(None, sounds.values()))], default=0.0) + 1
    page = _fill(_TEMPLATE.read_text(encoding="utf-8"), {
        "title": escape(title), "seconds": f"{seconds:.2f}", "verdict": _verdict(summary), "figures": _figures(summary),
        "failures": _failures(summary), "mic": _audio("mic", "Microphone", sounds["mic"]),
        "speaker": _audio("speaker", "Loudspeaker", sounds["speaker"]),
        "lanes": lanes(evidence, seconds, sounds["mic"], sounds["speaker"]), "latency": _latency(summary),
        "transcript": _transcript(evidence, summary), "events": _events(summary)})
    target = run_dir / "report.html"
    target.write_text(page, encoding="utf-8")
    return target


def _fill(template: str, values: dict[str, str]) -> str:
    """Replace each `{{name}}` once; what is put in is not searched again."""
    parts = template.split("{{")
    return parts[0] + "".join(values[name] + rest for name, _, rest in (p.partition("}}") for p in parts[1:]))


def _sound(path: Path) -> tuple[np.ndarray, int] | None:
    try:
        return read_wav(path)
    except ConfigError:
        return None


def mulaw(samples: np.ndarray) -> np.ndarray:
    """G.711 mu-law of int16 samples, uint8."""
    x = np.clip(samples.astype(np.int32), -32635, 32635)
    sign, magnitude = (x < 0).astype(np.int32) << 7, np.abs(x) + 132
    exponent = np.floor(np.log2(magnitude)).astype(np.int32) - 7
    return (~(sign | exponent << 4 | magnitude >> (exponent + 3) & 15) & 0xFF).astype(np.uint8)


def mulaw_wav(samples: np.ndarray, rate: int) -> bytes:
    """int16 mono at `rate` as a mu-law WAV file at 16 kHz (format 7, with the `fact` chunk that it requires)."""
    if rate != MIC_RATE:
        samples = (np.clip(resample(samples, rate), -1, 1) * 32767).astype(np.int16)
    data = mulaw(samples).tobytes()
    fmt = struct.pack("<HHIIHHH", 7, 1, MIC_RATE, MIC_RATE, 1, 8, 0)
    body = b"WAVE" + b"".join(tag + struct.pack("<I", len(chunk)) + chunk + b"\0" * (len(chunk) % 2) for tag, chunk in (
        (b"fmt ", fmt), (b"fact", struct.pack("<I", len(data))), (b"data", data)))
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _audio(name: str, label: str, sound: tuple[np.ndarray, int] | None) -> str:
    if sound is None:
        return f'<p class="missing">{label}: there is no {name}.wav in this run.</p>'
    data = base64.b64encode(mulaw_wav(*sound)).decode()
    return (f'<figure><figcaption>{label}</figcaption>'
            f'<audio id="{name}" controls preload="auto" src="data:audio/wav;base64,{data}"></audio></figure>')


def _verdict(summary: dict) -> str:
    passed = bool(summary.get("passed"))
    return f'<p class="verdict {"good" if passed else "bad"}">{"passed" if passed else "failed"}</p>'


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} s"


def _figures(summary: dict) -> str:
    latency = summary.get("latency") or {}
    held = f"{summary['expectations'] - summary['failed']} of {summary['expectations']}"
    rows = [("expectations held", held), ("answer p50", _seconds(latency.get("p50_s"))),
            ("answer p95", _seconds(latency.get("p95_s"))), ("said twice", summary.get("repeated", 0)),
            ("stale", summary.get("stale", 0)), ("heard-text errors", summary.get("heard_text_errors", 0)),
            ("event loop blocked at most", f"{summary.get('loop_block_max_ms', 0):g} ms")]
    return "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(str(v))}</dd></div>" for k, v in rows)


def _failures(summary: dict) -> str:
    rows = "".join(
        f'<li><button type="button" class="seek" data-at="{f["at_s"]}">{f["at_s"]:.2f} s</button> '
        f'<b>{escape(f["step"] or "run")}</b> {escape(f["kind"])}: expected {escape(f["expected"])}; '
        f'found {escape(f["found"])} <small>pos {f["pos"]}</small></li>' for f in summary.get("failures", ()))
    return f'<section id="failures"><h2>What failed</h2><ul>{rows}</ul></section>' if rows else ""


def _latency(summary: dict) -> str:
    turns = [t for t in summary.get("turns", ()) if t["latency_s"] is not None]
    parts = list(dict.fromkeys([*_PARTS, *(p for t in turns for p in t["parts"])]))
    head = "".join(f"<th>{escape(p)}</th>" for p in ("turn", "who", "total", *parts))
    rows = "".join(
        f'<tr><td>{escape(t["id"])}</td><td>{escape(t["who"])}</td><td><b>{t["latency_s"]:.2f}</b></td>'
        + "".join(f"<td>{t['parts'][p]:.2f}</td>" if p in t["parts"] else "<td>–</td>" for p in parts) + "</tr>" for t in turns)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _transcript(evidence: Evidence, summary: dict) -> str:
    """Turns in order, with what the assistant said unasked between them."""
    lines = []
    for t in summary.get("turns", ()):
        late = f'<span class="latency">{t["latency_s"]:.2f} s</span>' if t["latency_s"] is not None else ""
        understood = f'<p class="understood">understood: {escape(t["understood"])}</p>' \
            if t["understood"] and t["understood"].casefold().strip(" .?!") != t["said"].casefold().strip(" .?!") else ""
        back = f'<p class="back"><b>venus</b> {escape(t["heard_back"])} {late}{" (cut off)" if t["interrupted"] else ""}</p>' \
            if t["heard_back"] else ""
        lines.append((t["begin_s"], f'<li><button type="button" class="seek" data-at="{t["begin_s"]}">{t["begin_s"]:.1f} s</button>'
                      f'<p class="said"><b>{escape(t["who"])}</b> {escape(t["said"])}</p>{understood}{back}</li>'))
    for s in evidence.segments:
        if not evidence.utterance_of(s):
            at = s.first / MIC_RATE
            lines.append((at, f'<li><button type="button" class="seek" data-at="{at:.2f}">{at:.1f} s</button>'
                          f'<p class="back"><b>venus</b> {escape(s.text)}</p></li>'))
    return f"<ol>{''.join(html for _, html in sorted(lines))}</ol>"


def _events(summary: dict) -> str:
    rows = "".join(f"<tr><td>{escape(k)}</td><td>{n}</td></tr>" for k, n in (summary.get("events") or {}).items())
    return f"<table><tbody>{rows}</tbody></table>"
