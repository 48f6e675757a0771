"""Recogniser and voice, with the real models."""
import numpy as np
import pytest

from cloud_core.speech import BadAudio, BadText, Cancelled, Recogniser, Voice, split_clauses
from cloud_core.speech.log_mel import log_mel


@pytest.fixture(scope="module")
def recogniser():
    return Recogniser()


@pytest.fixture(scope="module")
def voice():
    return Voice()


def at_16k(samples: np.ndarray) -> np.ndarray:
    size = len(samples) * 2 // 3
    return np.fft.irfft(np.fft.rfft(samples / 32768.0)[:size // 2 + 1], size).astype(np.float32) * (2 / 3)


def test_what_the_voice_says_the_recogniser_hears(voice, recogniser):
    """Invariant: the words survive synthesis and recognition, numbers included."""
    speech = voice.say("Set the temperature to twenty-two degrees.")
    heard = recogniser.transcribe(at_16k(speech.samples))
    assert "temperature" in heard.text.lower() and "22" in heard.text
    assert heard.confidence > 0.5 and heard.no_speech < 0.5


@pytest.mark.parametrize("text", ["It's set to 22 degrees.", "Turn left on Boulevard Princesse Charlotte, then right. You arrive at 3:45 PM.",
                                  "No.", "The A.C. costs $3.50 at 50%!"])
def test_spans_tile_the_samples_and_spell_the_text(voice, text):
    """Invariant: the spans' texts joined are the text, and their samples cover all of it in order without a gap."""
    speech = voice.say(text)
    assert "".join(s.text for s in speech.spans) == text
    assert speech.spans[0].start == 0 and speech.spans[-1].end == len(speech.samples)
    assert all(a.end == b.start and a.start <= a.end for a, b in zip(speech.spans, speech.spans[1:]))


def test_a_span_holds_its_own_word(voice, recogniser):
    """Invariant: cutting the audio at a word's end gives the words up to it (the alignment is the synthesiser's, not a guess)."""
    speech = voice.say("Open the rear left window and then drive to the airport.")
    assert voice.exact_alignment
    end = next(s.end for s in speech.spans if s.text.startswith("window"))
    heard = recogniser.transcribe(at_16k(speech.samples[:end])).text.lower()
    assert "window" in heard and "drive" not in heard


def test_speech_begins_at_once(voice):
    """Invariant: no more than 40 ms of silence before the first sound: it would be pure delay."""
    samples = np.abs(voice.say("Take me to the casino.").samples.astype(int))
    assert int(np.flatnonzero(samples > 300)[0]) < 0.04 * voice.rate


@pytest.mark.parametrize("text", ["Short.", "I found 3 charging stations; the nearest one is on Boulevard Princesse Charlotte, four minutes away.",
                                  "one two three four five six seven eight nine ten " * 12, "Mr. Smith is at St. Roman. He waits."])
def test_clauses_joined_are_the_text_and_the_first_is_short(text):
    """Invariant: splitting loses and adds nothing; the first piece can be made in about 30 ms."""
    pieces = split_clauses(text)
    assert " ".join(pieces) == " ".join(text.split())
    assert len(pieces[0]) <= 2 * 48


def test_streamed_clauses_spell_the_whole_text(voice):
    """Invariant: the spans of all clauses joined are the text, so heard text can be cut anywhere."""
    text = "I found three stations; the nearest is four minutes away, and two of its chargers are free. Shall I go there?"
    assert "".join(s.text for part in voice.stream(text) for s in part.spans) == text


@pytest.mark.parametrize("samples, word", [(np.zeros(100, np.float64), "dtype"), (np.zeros((2, 100), np.int16), "one-dimensional"),
                                           (np.full(100, np.nan, np.float32), "NaN"), (np.zeros(16_000 * 31, np.int16), "30 s")])
def test_bad_audio_is_refused_by_name(recogniser, samples, word):
    """Invariant: a wrong type, shape, value or length is one clear error, never a crash in native code."""
    with pytest.raises(BadAudio, match=word):
        recogniser.transcribe(samples)


def test_unknown_languages_are_refused_with_the_allowed_ones(recogniser, voice):
    """Invariant: the message names what is allowed."""
    with pytest.raises(BadText, match="en, zh"):
        recogniser.transcribe(np.zeros(1600, np.int16), "xx")
    with pytest.raises(BadText, match="en"):
        voice.say("你好", "zh")


def test_a_recognition_given_up_stops_before_it_decodes(recogniser):
    """Invariant: `cancelled` ends the work between its steps."""
    with pytest.raises(Cancelled):
        recogniser.transcribe(np.zeros(16_000, np.int16), cancelled=lambda: True)


def test_features_of_padded_sound_equal_those_of_sound_with_zeros():
    """Invariant: skipping the silent frames changes nothing."""
    sound = np.random.default_rng(0).normal(0, 0.1, 24_000).astype(np.float32)
    padded = np.zeros(80_000, np.float32)
    padded[:24_000] = sound
    assert np.abs(log_mel(sound, 80_000) - log_mel(padded)).max() < 1e-5
