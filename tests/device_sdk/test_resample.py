"""The streaming resampler: the same signal at another rate, without aliases, whatever the blocks."""

import numpy as np
import pytest

from device_sdk import AudioFormatError, Resampler

PAIRS = [(24_000, 16_000), (48_000, 16_000), (24_000, 48_000), (16_000, 48_000)]


def sine(rate, hz, seconds=1.0):
    return (10_000 * np.sin(2 * np.pi * hz * np.arange(round(rate * seconds)) / rate)).astype(np.int16)


def stream(resampler, x, block):
    return np.concatenate([resampler(x[i:i + block]) for i in range(0, len(x), block)])


@pytest.mark.parametrize("rate_in, rate_out", PAIRS)
def test_passes_speech_and_stops_what_would_alias(rate_in, rate_out):
    """Within 0.2 dB up to 0.4 of the lower rate; 70 dB down above its half."""
    low = min(rate_in, rate_out)
    for hz in (200, 0.2 * low, 0.4 * low):
        y = stream(Resampler(rate_in, rate_out), sine(rate_in, hz), rate_in // 100)[rate_out // 10:].astype(float)
        assert abs(20 * np.log10(np.sqrt(2 * (y**2).mean()) / 10_000)) < 0.2
    if rate_in > rate_out:
        y = stream(Resampler(rate_in, rate_out), sine(rate_in, 0.58 * low), rate_in // 100)[rate_out // 10:].astype(float)
        assert 20 * np.log10(np.sqrt(2 * (y**2).mean()) / 10_000 + 1e-9) < -70


@pytest.mark.parametrize("rate_in, rate_out", PAIRS)
def test_blocks_do_not_matter_and_delay_is_as_told(rate_in, rate_out):
    """Any split into blocks gives the same samples; a click comes out `delay_s` later."""
    x = sine(rate_in, 440, 0.3)
    whole = Resampler(rate_in, rate_out)(x)
    assert len(whole) == len(x) * rate_out // rate_in
    for block in (rate_in // 100, 3 * rate_in // 100):
        assert np.array_equal(stream(Resampler(rate_in, rate_out), x, block), whole)
    resampler = Resampler(rate_in, rate_out)
    click = np.zeros(rate_in // 10, np.int16)
    click[rate_in // 20] = 30_000
    peak = int(np.argmax(np.abs(resampler(click).astype(int))))
    assert abs(peak / rate_out - 0.05 - resampler.delay_s) < 1.0 / rate_out


def test_wrong_blocks_are_refused():
    with pytest.raises(AudioFormatError, match="multiple of 3"):
        Resampler(24_000, 16_000)(np.zeros(241, np.int16))
    with pytest.raises(AudioFormatError):
        Resampler(24_000, 16_000)(np.zeros(240, np.float32))
