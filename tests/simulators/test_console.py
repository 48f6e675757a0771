"""The console shows the conversation as it happens, plainly where nobody asked for colour."""
import asyncio
import io
import json

from judged_run import GOOD, drive, recognise, scenario

from simulators.console import Console, show
from simulators.judge import judge
from simulators.timeline import Event
from venus_edge.testing import VirtualClock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(out, **options) -> str:
    run, console = drive(), Console(out, **options)
    for event in sorted(run.events, key=lambda e: e.t):
        console.event(event)
    result = judge(scenario(**GOOD), run.merged(), run.recording(), recognise)
    console.verdict(result.summary(), "out/run")
    return out.getvalue()


def test_the_conversation_is_told_in_plain_text():
    """Said, answered with latency, cut off with what was really heard, delegated, refused, moved: each has its line."""
    text = printed(io.StringIO())
    assert "\x1b" not in text
    for line in ("driver ▸ Set the temperature to twenty-two degrees",
                 "venus ◂ It's set to 22 degrees.  [0.50 s]",
                 "→ vehicle.set_temperature celsius=22.0 zone=speaker",
                 "Temperature is 22.0",
                 "✗ refused: Body.Trunk.Rear.IsOpen = True (unsafe_now)",
                 "cut off; really heard: “I found Charge Point Fontvieille, four minutes away. Turn right into Boulevard”",
                 "stops: interruption", "goes on: backchannel", "ducked (vad)",
                 "navigation.find_and_go superseded",
                 "passed: 22 of 22 expectations held",
                 "report: out/run/report.html"):
        assert line in text
    assert "Vehicle.Speed" not in text and "understood" not in text


def test_what_was_understood_is_shown_when_it_differs():
    out = io.StringIO()
    console = Console(out)
    console.event(Event("people", 1, 0, "utter.begin", {"id": "a", "who": "driver", "text": "Open it"}))
    console.event(Event("people", 2, 16000, "utter.end", {"id": "a", "who": "driver", "text": "Open it"}))
    console.event(Event("worker", 3, 16000, "user.text", {"turn": 1, "text": "Oh Pennet", "start": 0, "end": 16000, "final": True}))
    assert "understood: Oh Pennet" in out.getvalue()


def test_a_recording_without_words_shows_what_was_understood():
    """With a real driver nobody knows what was said; the recogniser's words stand for it."""
    out = io.StringIO()
    console = Console(out)
    console.event(Event("people", 1, 0, "utter.begin", {"id": "a", "who": "driver"}))
    console.event(Event("people", 2, 16000, "utter.end", {"id": "a", "who": "driver"}))
    console.event(Event("worker", 3, 16000, "user.text", {"turn": 1, "text": "Hello", "start": 0, "end": 16000, "final": True}))
    assert "driver ▸ Hello" in out.getvalue()


def test_a_terminal_gets_colour_unless_no_color_is_set(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in printed(Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in printed(Terminal())


def test_json_prints_one_line_only():
    line = json.loads(printed(io.StringIO(), json_only=True))
    assert line["passed"] is True and line["expectations"] == 22 and line["failed"] == 0
    assert (line["stale"], line["repeated"], line["loop_block_max_ms"]) == (0, 0, 41.5)


def test_an_old_terminal_gets_ascii():
    """A stream that can't hold the arrows gets others instead of an exception."""
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    console = Console(out)
    console.event(Event("people", 1, 0, "utter.begin", {"id": "a", "who": "driver", "text": "Hôtel"}))
    out.flush()
    assert raw.getvalue().decode("ascii").strip().endswith("driver > H?tel")


def test_a_failure_says_what_was_expected_heard_and_where():
    out = io.StringIO()
    run = drive()
    result = judge(scenario(temperature={"heard": ["the window is closed"]}), run.merged(), run.recording(), recognise)
    Console(out).verdict(result.summary(), None)
    assert "expected “the window is closed”; found “It's set to 22 degrees.” (speaker.wav at 4.50 s" in out.getvalue()
    assert "FAILED" in out.getvalue()


async def test_show_prints_while_the_run_goes_on(tmp_path):
    """Everything that was written before the stop is printed."""
    clock, stop, out = VirtualClock(), asyncio.Event(), io.StringIO()
    task = asyncio.create_task(show(tmp_path, clock, Console(out), stop))
    await clock.advance(0.2)
    drive().write(tmp_path)
    await clock.advance(0.2)
    assert "driver ▸ Open the tailgate" in out.getvalue()
    stop.set()
    await clock.advance(0.2)
    await asyncio.wait_for(task, 1)
