"""The report is one valid page that needs nothing else: all lanes, both recordings, failures first."""
import base64
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from judged_run import GOOD, drive, recognise, scenario

from simulators.judge import judge
from simulators.report import mulaw, write_report
from simulators.report_lanes import LANES
from simulators.timeline import merge

VOID = {"meta", "link", "br", "img", "input", "hr", "source", "polyline", "polygon"}


class Page(HTMLParser):
    """Collects elements and fails on anything that is not closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.elements, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes <{self.open[-1] if self.open else None}>"
        self.open.pop()

    def handle_data(self, data):
        self.text.append(data)


def report(directory, run, steps=GOOD) -> tuple[Page, str]:
    run.write(directory)
    events = merge(directory)
    result = judge(scenario(**steps), events, run.recording(), recognise)
    html = write_report(directory, result.summary(), title="A <drive> & more").read_text()
    page = Page()
    page.feed(html)
    assert page.open == []
    return page, html


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return report(tmp_path_factory.mktemp("run"), drive())


def test_the_page_has_every_lane_and_both_recordings(good):
    page, _ = good
    assert {a["data-lane"] for _, a in page.elements if "data-lane" in a} == set(LANES)
    audio = {a["id"]: a["src"] for tag, a in page.elements if tag == "audio"}
    assert set(audio) == {"mic", "speaker"}
    for src in audio.values():
        data = base64.b64decode(src.removeprefix("data:audio/wav;base64,"))
        assert data[:4] == b"RIFF" and data[8:12] == b"WAVE" and len(data) == 8 + int.from_bytes(data[4:8], "little")
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))


def test_the_page_needs_nothing_from_elsewhere(good):
    """No address but data: and no script, style or picture of another file."""
    page, html = good
    for _, attrs in page.elements:
        for name in ("src", "href"):
            assert name not in attrs or attrs[name].startswith("data:")
    assert not re.search(r"https?://|@import|url\(|fetch\(|XMLHttpRequest", html)


def test_every_decision_task_and_effect_is_on_its_lane(good):
    page, html = good
    for text in ("Set the temperature to twenty-two degrees", "✗ IsOpen", "→ navigation.find_and_go", "poi.find completed",
                 "ducked", "flush", "restore", "50 km/h", "41.5 ms", "Temperature 22.0"):
        assert text in html
    marks = [a for _, a in page.elements if "mark" in a.get("class", "").split() or "bar" in a.get("class", "").split()]
    assert len(marks) > 60 and all("--t:" in a["style"] for a in marks)


def test_failures_stand_on_top(tmp_path):
    bad = GOOD | {"temperature": {"heard": ["the window is closed"]}}
    _, html = report(tmp_path, drive(), bad)
    assert html.index("the window is closed") < html.index('id="lanes"')
    assert 'class="verdict bad"' in html


def test_words_of_people_cannot_become_markup(tmp_path):
    """What was said is shown as it is: tags in a title or an utterance stay text."""
    run = drive()
    run.say("evil", "<script>alert(1)</script>{{lanes}}", 40, turn=9)
    _, html = report(tmp_path, run)
    assert "<script>alert" not in html and "&lt;script&gt;alert(1)" in html and "A &lt;drive&gt; &amp; more" in html
    assert html.count('id="playhead"') == 1 and html.count('data-lane="speed"') == 1


def test_a_run_without_recordings_still_has_a_report(tmp_path):
    """A run that ended early left no recording: the page says so."""
    run = drive()
    run.write(tmp_path)
    for name in ("mic", "speaker"):
        (tmp_path / f"{name}.wav").unlink()
    result = judge(None, merge(tmp_path), run.recording(), recognise)
    html = write_report(tmp_path, result.summary()).read_text()
    assert "there is no speaker.wav" in html and "<audio" not in html


def test_mulaw_keeps_the_sound():
    """G.711: known code words, and a sine through it keeps 30 dB."""
    assert mulaw(np.array([0, -1, 32767, -32768], np.int16)).tolist() == [0xFF, 0x7F, 0x80, 0x00]
    x = (12000 * np.sin(np.arange(4000) * 0.2)).astype(np.int16)
    code = ~mulaw(x).astype(np.int32) & 0xFF
    exponent, mantissa = code >> 4 & 7, code & 15
    back = np.where(code & 0x80, -1, 1) * (((mantissa << 3) + 132 << exponent) - 132)
    assert 10 * np.log10(np.mean(x.astype(float) ** 2) / np.mean((back - x) ** 2)) > 30
