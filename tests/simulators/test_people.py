"""Occupants' utterances: text rules, levels, the cache and its verdicts, recordings of real persons."""
import json

import numpy as np
import pytest
from scipy.io import wavfile

from simulators.people import bench_lines, catalogue, fit, recording, voices
from simulators.people.cache import VoiceCache
from simulators.people.hum import hum
from venus_edge.errors import ConfigError

RATE = 16_000


def tone(seconds: float, level: float = 0.3, rate: int = RATE, hz: float = 220.0) -> np.ndarray:
    t = np.arange(round(seconds * rate)) / rate
    return level * np.sin(2 * np.pi * hz * t) * (0.6 + 0.4 * np.sin(2 * np.pi * 3 * t))


def test_pauses_are_cut_out_of_the_words():
    assert catalogue.pieces("Find me [pause 0.7] a pharmacy.") == ["Find me", 0.7, "a pharmacy."]
    assert catalogue.spoken("Find me [pause 0.7] a pharmacy.") == "Find me a pharmacy."


@pytest.mark.parametrize("text", ["", "  ", "[pause 1]", "a [pause 1]", "[pause 1] a", "a [pause] b", "a [pause 0] b", "a [pause 1.2.3] b", "a [b]"])
def test_a_text_that_cannot_be_said_is_refused(text):
    with pytest.raises(ConfigError):
        catalogue.pieces(text)


def test_an_unknown_voice_names_the_known_ones():
    with pytest.raises(ConfigError, match="marc, claire"):
        VoiceCache().get("Hello.", "bob")


def test_every_utterance_has_one_level_and_no_silence_around_it():
    x = np.concatenate([np.zeros(4000), tone(1.0, 0.01), np.zeros(4000)])
    out = voices.levelled(voices.trimmed(x))
    assert len(out) == pytest.approx(RATE, abs=40)
    assert 20 * np.log10(voices.active_rms(out) / 32768) == pytest.approx(voices.LEVEL_DBFS, abs=0.2)
    assert len(voices.levelled(voices.trimmed(np.zeros(100)))) == 0


def test_rests_inside_a_phrase_are_cut_down_and_nothing_else():
    x = np.concatenate([tone(0.5), np.zeros(6400), tone(0.3), np.zeros(1600), tone(0.4)])
    out = voices.tightened(x)
    assert len(x) - len(out) == pytest.approx(6400 - 0.16 * RATE, abs=320)
    assert np.square(out).sum() == pytest.approx(np.square(x).sum(), rel=1e-4)
    assert np.array_equal(voices.tightened(out), out) and len(voices.tightened(np.zeros(10))) == 10


@pytest.mark.parametrize("pitch", [118, 215, 245])
@pytest.mark.parametrize("closed", [True, False])
def test_a_hum_lasts_as_long_as_a_listeners_signal(pitch, closed):
    x = voices.trimmed(hum(pitch, closed=closed))
    assert fit.HUM_S[0] <= len(x) / RATE <= fit.HUM_S[1]
    assert np.array_equal(hum(pitch, closed=closed), hum(pitch, closed=closed))


@pytest.mark.parametrize("text, heard, score", [
    ("Set the temperature to twenty-two degrees.", "Set the temperature to 22 degrees.", 1.0),
    ("Set the temperature to twenty-two degrees.", "set the temperature to 23°", 1 - 1 / 7),
    ("Turn on the passenger's seat heating.", "Turn on the passenger seat heating", 1.0),
    ("No, take me there.", "Now take me there.", 0.75),
    ("mm-hmm", "Mm-hmm.", 1.0), ("uh-huh", "Uh-huh.", 1.0), ("mm-hmm", "Muhammad.", 0.5),
    ("Find me [pause 0.7] a pharmacy.", "Find me, a pharmacy.", 1.0), ("Stop.", "", 0.0),
])
def test_the_fit_is_the_share_of_words_with_numbers_exact(text, heard, score):
    assert fit.score(text, heard) == pytest.approx(score)


class Parrot:
    """A synthesiser and recogniser in one: take k of a voice is a tone k fifths of a second longer; take `good` is understood."""

    def __init__(self, good: int):
        self.good, self.made = good, 0

    def say(self, text, who, take):
        self.made += 1
        return voices.levelled(tone(0.5 + 0.2 * who.takes.index(take)))

    def transcribe(self, samples):
        take = int(((len(samples) - RATE) / RATE - 0.5) * 5 + 0.2)  # on the road it is 0.12 s longer
        return type("T", (), {"text": "hello there" if take == self.good else "yellow" if take else "hello"})()


def test_the_take_that_is_understood_is_kept_and_made_once(tmp_path):
    parrot = Parrot(good=2)
    cache = VoiceCache(tmp_path, parrot, parrot)
    first = cache.get("Hello there.", "marc")
    verdict = cache.verdict("Hello there.", "marc")
    assert (verdict.take, verdict.score, verdict.heard, parrot.made) == (2, 1.0, "hello there", 3)
    assert np.array_equal(cache.get("Hello there.", "marc"), first) and parrot.made == 3
    assert json.loads(next(tmp_path.glob("*.json")).read_text())["voice"] == "marc"


def test_the_best_of_bad_takes_is_kept(tmp_path):
    parrot = Parrot(good=99)
    assert VoiceCache(tmp_path, parrot, parrot).make("Hello there.", "marc").take == 0
    assert parrot.made == len(catalogue.VOICES["marc"].takes)


def test_a_torn_file_is_made_anew_and_the_cache_stays_bounded(tmp_path):
    parrot = Parrot(good=0)
    cache = VoiceCache(tmp_path, parrot, parrot, max_files=3)
    cache.get("one", "marc")
    next(tmp_path.glob("*.wav")).write_bytes(b"RIFF")
    assert len(cache.get("one", "marc")) > 4000
    for text in ("two", "three", "four", "five"):
        cache.get(text, "marc")
    assert len(list(tmp_path.glob("*.wav"))) == len(list(tmp_path.glob("*.json"))) == 3
    assert cache.has("five", "marc") and not cache.has("one", "marc")


def test_bench_lines_can_all_be_said():
    assert len({line.capability for line in bench_lines.VOICE}) >= 10 and sum(line.pause for line in bench_lines.VOICE) == 3
    for text, voice in bench_lines.every_line():
        catalogue.pieces(text), catalogue.voice(voice)


# ---- recordings of real persons --------------------------------------------------------------------------------------

def speech(rate: int) -> np.ndarray:
    """Two "utterances" of 1 s and 0.6 s with 2 s between, a pause of 0.8 s inside the first, all over faint noise."""
    parts = [np.zeros(rate // 2), tone(0.5, rate=rate), np.zeros(rate * 8 // 10), tone(0.5, rate=rate), np.zeros(2 * rate), tone(0.6, rate=rate), np.zeros(rate)]
    x = np.concatenate(parts)
    return x + 0.001 * np.random.default_rng(1).standard_normal(len(x))


@pytest.mark.parametrize("rate", [8000, 16_000, 22_050, 44_100, 48_000])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32", "float64"])
@pytest.mark.parametrize("channels", [1, 2])
def test_any_usual_wav_is_cut_at_its_long_pauses(tmp_path, rate, dtype, channels):
    x = speech(rate)
    if dtype == "uint8":
        data = np.clip(x * 127 + 128, 0, 255).astype(np.uint8)
    elif dtype.startswith("int"):
        data = (x * np.iinfo(dtype).max).astype(dtype)
    else:
        data = (x * 3).astype(dtype)  # beyond full scale, as some programs write it
    wavfile.write(tmp_path / "a.wav", rate, np.stack([data] * channels, axis=1) if channels == 2 else data)
    found = recording.utterances(tmp_path / "a.wav")
    assert [round(len(u) / RATE, 1) for u in found] == pytest.approx([2.0, 0.8], abs=0.11)
    assert all(u.dtype == np.int16 for u in found)


def test_a_quiet_recording_comes_at_the_level_of_normal_speech(tmp_path):
    wavfile.write(tmp_path / "a.wav", RATE, (speech(RATE) * 900).astype(np.int16))
    for u in recording.utterances(tmp_path / "a.wav"):
        assert 20 * np.log10(voices.active_rms(u) / 32768) == pytest.approx(-26, abs=1)


def write(path, rate, data):
    wavfile.write(path, rate, data)


@pytest.mark.parametrize("make, word", [
    (lambda p: p.write_bytes(b""), "not readable as WAV"),
    (lambda p: p.write_bytes(b"ID3 this is an mp3"), "not readable as WAV"),
    (lambda p: p.write_bytes(b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00"), "not readable as WAV"),
    (lambda p: p.mkdir(), "can't be read"),
    (lambda p: None, "can't be read"),
    (lambda p: write(p, 4000, np.ones(8000, np.int16)), "4000 Hz"),
    (lambda p: write(p, RATE, np.ones((8000, 3), np.int16)), "3 channels"),
    (lambda p: write(p, RATE, np.ones(800, np.int16)), "0.05 s long"),
    (lambda p: write(p, RATE, np.full(8000, np.nan, np.float32)), "no numbers"),
    (lambda p: write(p, RATE, np.zeros(16_000, np.int16)), "no speech"),
])
def test_a_wav_that_is_no_use_is_refused_by_name_with_what_is_allowed(tmp_path, make, word):
    path = tmp_path / "driver.wav"
    make(path)
    with pytest.raises(ConfigError) as err:
        recording.utterances(path)
    assert "driver.wav" in err.value.message and word in err.value.message
    assert word == "can't be read" or "allowed" in err.value.message
