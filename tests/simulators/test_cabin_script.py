"""Scripted people on virtual time: every trigger fires from what can be heard and seen, at the right sample."""
import numpy as np
import pytest

from simulators.car.script import BOUT_GAP_S, PATIENCE_S, Ear, Line, ScriptedPeople, from_recording, from_scenario
from simulators.scenario import When, load
from venus_edge.trace import Trace

RATE, BLOCK = 16_000, 160


def line(name: str, seconds: float = 0.5, **when) -> Line:
    return Line(name, "driver", name, np.ones(round(seconds * RATE), np.int16), When(**when))


def play(lines, speech=lambda t: False, seconds: float = 30, kmh=lambda t: 0.0, start_s: float = 0.0):
    """Run a script block by block; the loudspeaker sounds where `speech(t)`. Returns ({id: begin_s}, events)."""
    trace, rows, ear = Trace("people", directory=""), [], Ear()
    trace.listeners.append(rows.append)
    script, begun = ScriptedPeople(lines, trace), {}
    for k in range(round(seconds * 100)):
        pos, t = k * BLOCK, k / 100
        if k == round(start_s * 100):
            script.start(pos)
        for said in script.tick(ear.facts(pos, kmh(t))):
            begun[said.id] = t
        ear.hear(np.full(240, 3000 if speech(t) else 0, np.int16), pos, BLOCK)
    return begun, rows


def during(*spans):
    return lambda t: any(a <= t < b for a, b in spans)


def test_nothing_is_said_before_the_script_begins():
    begun, _ = play([line("a", at_s=0)], start_s=3)
    assert begun == {"a": 3.0}


def test_at_and_after_count_from_the_beginning_and_from_the_last_words():
    begun, _ = play([line("a", at_s=1.0), line("b", after_s=2.0)], start_s=1)
    assert begun == pytest.approx({"a": 2.0, "b": 2.0 + 0.5 + 2.0})


def test_quiet_waits_for_the_answer_and_then_for_silence():
    """The answer comes 1.5 s after the words, later than the silence asked for: it is waited for."""
    begun, _ = play([line("a", at_s=0), line("b", quiet_s=1.2)], during((2.0, 4.0)))
    assert begun["b"] == pytest.approx(4.0 + 1.2, abs=0.011)


def test_a_pause_inside_the_answer_is_not_the_silence():
    begun, _ = play([line("a", at_s=0), line("b", quiet_s=1.2)], during((1.0, 2.0), (3.0, 4.0)))
    assert begun["b"] == pytest.approx(5.2, abs=0.011)


def test_without_any_answer_a_person_loses_patience():
    begun, rows = play([line("a", at_s=0), line("b", quiet_s=1.2)])
    assert begun["b"] == pytest.approx(0.5 + PATIENCE_S, abs=0.011)
    assert rows[2]["ev"] == "utter.begin" and rows[2]["timed_out"] is False


def test_what_sounds_before_the_first_line_is_waited_out():
    begun, _ = play([line("a", quiet_s=1.0)], during((0.0, 2.0)))
    assert begun["a"] == pytest.approx(3.0, abs=0.011)


def test_speaking_waits_until_the_answer_has_lasted_that_long():
    begun, _ = play([line("a", at_s=0), line("b", speaking_s=1.0)], during((1.2, 4.0)))
    assert begun["b"] == pytest.approx(2.2, abs=0.011)


def test_short_pauses_belong_to_one_stretch_of_speech_and_long_ones_part_it():
    short, long = BOUT_GAP_S - 0.1, BOUT_GAP_S + 0.2
    one, _ = play([line("a", at_s=0), line("b", speaking_s=1.5)], during((1.0, 2.0), (2.0 + short, 4.0)))
    two, _ = play([line("a", at_s=0), line("b", speaking_s=1.5)], during((1.0, 2.0), (2.0 + long, 6.0)))
    assert one["b"] == pytest.approx(2.5, abs=0.011) and two["b"] == pytest.approx(2.0 + long + 1.5, abs=0.021)


def test_speech_from_before_the_last_words_does_not_count():
    """An interruption after a listener's signal counts the speaking from the end of that signal."""
    begun, _ = play([line("a", at_s=1.0), line("b", speaking_s=1.0)], during((0.0, 9.0)))
    assert begun["b"] == pytest.approx(2.5, abs=0.011)


def test_a_trigger_that_never_comes_is_given_up_and_told():
    begun, rows = play([line("a", at_s=0), line("b", speaking_s=1.0, timeout_s=4)])
    assert begun["b"] == pytest.approx(0.5 + 4, abs=0.011)
    assert [r["timed_out"] for r in rows if r["ev"] == "utter.begin"] == [False, True]


def test_a_line_waits_for_the_speed():
    begun, _ = play([line("a", at_s=0), line("b", after_s=0.5, min_kmh=45), line("c", after_s=0.5, max_kmh=5)],
                    kmh=lambda t: 50.0 if 3 <= t < 8 else 0.0)
    assert begun["b"] == pytest.approx(3.0, abs=0.011) and begun["c"] == pytest.approx(8.0, abs=0.011)


def test_begin_end_and_done_are_traced_at_exact_samples_in_order():
    _, rows = play([line("a", 0.503, at_s=1.0), line("b", after_s=0.1)])
    assert [r["ev"] for r in rows] == ["utter.begin", "utter.end", "utter.begin", "utter.end", "script.done"]
    assert rows[0]["pos"] == RATE and rows[1]["pos"] == RATE + round(0.503 * RATE)
    assert {"id", "who", "text"} <= rows[0].keys() and rows[4]["pos"] >= rows[3]["pos"]


def test_an_empty_script_is_done_as_soon_as_it_begins():
    _, rows = play([])
    assert [r["ev"] for r in rows] == ["script.done"]


def test_expectations_travel_with_their_line():
    _, rows = play([Line("a", "driver", "x", np.ones(1600, np.int16), When(at_s=0), "driver", {"heard": ["y"]})])
    assert [(r["ev"], r.get("expect")) for r in rows][:2] == [("utter.begin", None), ("expect", {"heard": ["y"]})]


def test_the_first_drives_lines_take_their_voices_and_seats():
    asked = []
    lines = from_scenario(load("simulators/scenarios/first_drive.yaml"), say=lambda text, voice: asked.append(voice) or np.ones(100, np.int16))
    assert {(x.who, x.seat) for x in lines} == {("driver", "driver"), ("passenger", "passenger")}
    assert set(asked) == {"marc", "claire"} and lines[2].expect["heard_numbers"] == [22.0]


def test_a_real_drivers_utterances_wait_for_the_quiet_between_them():
    lines = from_recording([np.ones(RATE, np.int16)] * 2)
    begun, rows = play(lines, during((2.5, 4.0)))
    assert begun == pytest.approx({"driver-1": 0.5, "driver-2": 5.2}, abs=0.011) and rows[0]["text"] == ""


def test_the_ear_takes_fades_and_hiss_for_silence():
    ear = Ear()
    ear.hear(np.full(240, 20, np.int16), 0, BLOCK)
    assert not ear.sounding and ear.last_sound == -1
    ear.hear(np.full(240, 600, np.int16), BLOCK, BLOCK)
    assert ear.sounding and ear.bout == BLOCK and ear.last_sound == 2 * BLOCK
