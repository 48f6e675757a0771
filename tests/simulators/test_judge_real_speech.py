"""The judge with the product's own voice and recogniser: what is said is heard, also a French name and a cut-off reply."""
import pytest
from judged_run import Run, scenario

from cloud_core.speech import Voice
from simulators.judge import judge, real_recogniser

ROUTE = "The nearest one is on Boulevard des Moulins. It takes six minutes. Turn right into Avenue Princesse Grace."


@pytest.fixture(scope="module")
def drive() -> Run:
    voice = Voice()
    run = Run(voice=lambda text: voice.say(text).samples)
    run.start()
    run.say("temperature", "Set the temperature to twenty-two degrees", 2, turn=1)
    run.speak("g1", "Okay, it's set to twenty-two degrees.", 4.5, turn=1)
    run.say("charger", "Find me a charging station nearby", 10, turn=2)
    spans = voice.say(ROUTE).spans
    cut = next(s for s in spans if s.text.strip() == "minutes.")
    run.speak("g2", ROUTE, 12.5, turn=2, cut=cut.end / 24_000, heard=ROUTE[:ROUTE.index("minutes.") + 8])
    run.done(25)
    return run


def test_real_speech_is_judged_by_what_is_heard(drive):
    """Numbers exactly and names by their sound pass; what was cut off before it was said, and near numbers, do not."""
    recognise = real_recogniser()
    good = judge(scenario(temperature=dict(heard=["set to 22 degrees"], heard_numbers=[22], not_heard=["Boulevard des Moulins"]),
                          charger=dict(heard=["Boulevard des Moulins"], heard_numbers=[6], not_heard=["Avenue Princesse Grace"])),
                 drive.merged(), drive.recording(), recognise)
    assert [str(f) for f in good.failures] == []
    bad = judge(scenario(temperature=dict(heard_numbers=[23], heard=["Boulevard des Moulins"]),
                         charger=dict(heard=["Avenue Princesse Grace"], not_heard=["Boulevard des Moulins"])),
                drive.merged(), drive.recording(), recognise)
    assert bad.failed == 4
