"""The cabin's sound: levels, reverberation, noise by speed, positions; all without a clock."""
import time

import numpy as np
import pytest

from device_sdk import Resampler
from simulators.car.acoustics import (NOISE_FILTERS, NOISE_LENGTH, BLOCK, LENGTH, MIC_RATE, SEATS, SPEAKER_BLOCK, CabinSettings, Loudspeaker, RoadNoise, Seats,
                                      _compute, responses)
from simulators.people.voices import active_rms


def db(x: np.ndarray) -> float:
    return 20 * np.log10(np.sqrt(np.mean(np.square(x, dtype=np.float64))) / 32768 + 1e-12)


def speech(seconds: float, rate: int, dbfs: float, seed: int = 3) -> np.ndarray:
    """Noise with the long-term spectrum and the syllables of speech, as int16."""
    n = round(seconds * rate)
    hertz = np.fft.rfftfreq(n, 1 / rate)
    shape = np.where((hertz > 120) & (hertz < 7000), (550 / np.maximum(hertz, 550)) ** 1.5, 0)
    x = np.fft.irfft(np.fft.rfft(np.random.default_rng(seed).standard_normal(n)) * shape, n)
    x *= 0.55 + 0.45 * np.sin(2 * np.pi * 4 * np.arange(n) / rate)
    return (x / active_rms(x) * 32768 * 10 ** (dbfs / 20)).astype(np.int16)


def road(kmh: float, seconds: float = 4, seed: int = 1, settings: CabinSettings = CabinSettings()) -> np.ndarray:
    noise = RoadNoise(settings, seed)
    return np.concatenate([noise(kmh) for _ in range(round(seconds * 100))])


def echo(settings: CabinSettings, x: np.ndarray) -> np.ndarray:
    loudspeaker = Loudspeaker(settings)
    return np.concatenate([loudspeaker(b) for b in x[:len(x) // SPEAKER_BLOCK * SPEAKER_BLOCK].reshape(-1, SPEAKER_BLOCK)])


def test_the_cabin_rings_like_a_car():
    for name, response in ((n, r) for n, r in responses().items() if n not in NOISE_FILTERS):
        energy = np.cumsum(response[::-1] ** 2)[::-1]
        decay = 10 * np.log10(energy / energy[0] + 1e-12)
        rt60_ms = 3 * (np.argmax(decay < -25) - np.argmax(decay < -5)) / MIC_RATE * 1000
        assert 50 <= rt60_ms <= 101, (name, rt60_ms)


def test_cached_responses_are_the_computed_ones():
    fresh = _compute()
    for name, response in responses().items():
        assert response.shape == (NOISE_LENGTH if name in NOISE_FILTERS else LENGTH,) and np.allclose(response, fresh[name])


def test_noise_follows_the_speed_by_thirty_log_v():
    at = {v: db(road(v)) for v in (0, 50, 80, 100)}
    assert at[100] - at[50] == pytest.approx(30 * np.log10(2), abs=0.7)
    assert at[80] - at[50] == pytest.approx(30 * np.log10(1.6), abs=0.7)
    assert at[50] - at[0] > 15


def test_normal_speech_is_twelve_to_fifteen_db_above_the_road_at_fifty():
    voice = Seats(CabinSettings()).at_microphone(speech(3, MIC_RATE, -26), "driver")
    assert 12 <= 20 * np.log10(active_rms(voice) / 32768) - db(road(50)) <= 15


def test_noise_is_the_same_for_the_same_seed_and_another_for_another():
    assert np.array_equal(road(50, 1), road(50, 1)) and not np.array_equal(road(50, 1), road(50, 1, seed=2))


def test_noise_changes_without_a_jump_when_the_speed_jumps():
    noise = RoadNoise(CabinSettings(), 1)
    x = np.concatenate([noise(50 if k < 50 else 120) for k in range(100)])
    steps = np.abs(np.diff(x))
    assert steps[50 * BLOCK - 2:50 * BLOCK + 2].max() <= np.percentile(steps[60 * BLOCK:], 99.9)


def test_the_assistants_echo_is_about_as_loud_as_the_driver():
    voice = Seats(CabinSettings()).at_microphone(speech(3, MIC_RATE, -26), "driver")
    back = echo(CabinSettings(), speech(3, 24_000, -24.6))
    assert 20 * np.log10(active_rms(back) / active_rms(voice)) == pytest.approx(0, abs=2.5)
    louder = echo(CabinSettings(echo_db=6), speech(3, 24_000, -24.6))
    assert 20 * np.log10(active_rms(louder) / active_rms(back)) == pytest.approx(6, abs=0.1)


def test_echo_block_by_block_is_the_whole_convolution():
    """Overlap-add loses nothing at block borders and repeats nothing."""
    x = np.concatenate([np.zeros(2400, np.int16), speech(0.5, 24_000, -24), np.zeros(9600, np.int16)])
    back = echo(CabinSettings(), x)
    level = Loudspeaker.SATURATION / 32768
    pressed = np.tanh(Resampler(24_000, MIC_RATE)(x).astype(np.float64) * level) / level
    whole = np.convolve(pressed, responses()["loudspeaker"])[:len(back)]
    gain = back @ whole / (whole @ whole)
    assert np.abs(back - gain * whole).max() < 1e-3 * np.abs(back).max()


def test_a_silent_loudspeaker_makes_no_echo():
    assert not echo(CabinSettings(), np.zeros(2400, np.int16)).any()


def test_a_loud_loudspeaker_is_pressed_a_little():
    quiet = echo(CabinSettings(), speech(2, 24_000, -40))
    loud = echo(CabinSettings(), speech(2, 24_000, -12))
    assert 0.2 < 28 - 20 * np.log10(active_rms(loud) / active_rms(quiet)) < 3


def test_who_sits_farther_away_is_heard_later_and_quieter():
    seats, said = Seats(CabinSettings()), speech(1, MIC_RATE, -26)
    heard = {seat: seats.at_microphone(said, seat) for seat in SEATS}
    assert active_rms(heard["rear_left"]) < 0.8 * active_rms(heard["driver"])
    click = np.array([20_000], np.int16)
    first = {seat: int(np.argmax(np.abs(seats.at_microphone(click, seat)))) for seat in SEATS}
    assert 16 <= first["driver"] < first["rear_left"] <= 100


def test_ten_milliseconds_of_sound_cost_less_than_three_tenths_of_one():
    loudspeaker, noise = Loudspeaker(CabinSettings()), RoadNoise(CabinSettings())
    block = speech(0.01, 24_000, -20)
    spent = []
    for _ in range(300):
        begin = time.thread_time()
        loudspeaker(block), noise(50)
        spent.append(time.thread_time() - begin)
    assert np.mean(spent) < 0.0003
