"""Echo and voice activity with the real model and the real canceller: the device does not hear itself, and does hear people."""

import time
import wave

import numpy as np
import pytest

from device_sdk import AudioFormatError, Device, DeviceSettings, EchoCanceller
from device_sdk.gates import SileroVad
from device_sdk.testing import AudioLoop, EchoRoom, FakeCloud
from venus_edge.models import model_dir
from venus_edge.testing import VirtualClock
from venus_edge.trace import Trace


def recording(name, seconds=None):
    with wave.open(str(model_dir("people") / name)) as source:
        samples = np.frombuffer(source.readframes(source.getnframes()), np.int16)
        return samples[:round(seconds * source.getframerate())] if seconds else samples


async def overlap(near, near_at_s, *, echo_db=-6.0, aec=True, seconds=8.0):
    """The assistant speaks (a recorded person, 24 kHz) from 0.3 s on; somebody speaks at `near_at_s`. Returns loop and trace."""
    clock, cloud, rows = VirtualClock(), FakeCloud(), []
    trace = Trace("device", "", clock)
    trace.listeners.append(rows.append)
    device = Device(DeviceSettings(echo_cancellation=aec, boot=1), clock, trace, transport=cloud.transport)
    at, noise = round(near_at_s * 16_000), np.random.default_rng(5)

    def people(pos):
        i = pos - at
        voice = near[i:i + 160] if 0 <= i <= len(near) - 160 else 0
        return voice + noise.normal(0, 10, 160)

    loop = AudioLoop(device, clock, people, EchoRoom(gain_db=echo_db))
    await device.connect("memory://", "")
    await loop.run(0.3)
    cloud.say("s1", recording("endgame_nagg_nell.wav", seconds - 0.5))
    await loop.run(seconds)
    return loop, rows, cloud


async def test_own_speech_does_not_open_the_gate():
    """Seven seconds of its own voice at the microphone: with the canceller nothing opens, without it the same echo does."""
    loop, rows, cloud = await overlap(np.zeros(0, np.int16), 0)
    assert np.abs(loop.mic.astype(float)).max() > 5000, "there was an echo to cancel"
    assert not [r for r in rows if r["ev"] in ("vad.on", "duck", "gate.open")] and not cloud.mic
    assert cloud.ledger.get("s1").final
    _, rows, _ = await overlap(np.zeros(0, np.int16), 0, aec=False, seconds=3.0)
    assert [r for r in rows if r["ev"] == "vad.on"]


async def test_somebody_louder_is_heard_over_it():
    """A near talker 6 dB above the echo is noticed, and the speech ducked, before the second word is over."""
    near = np.clip(recording("beckett.wav").astype(np.float32) * 8, -32000, 32000)
    loop, rows, cloud = await overlap(near, 3.0, echo_db=-12.0, seconds=6.0)
    voice = SileroVad()
    clean = [voice(near[k:k + 512].astype(np.int16)) for k in range(0, 32_000, 512)]
    begins = 3 * 16_000 + 512 * next(k for k, p in enumerate(clean) if p >= 0.5)
    ducked = [r for r in rows if r["ev"] == "duck"]
    assert len(ducked) >= 1 and -512 <= ducked[0]["pos"] - begins <= 0.4 * 16_000
    assert cloud.mic and cloud.mic[0].preroll


def test_voice_activity_tells_speech_from_noise():
    """The model on a clean recording and on noise of the same level."""
    x = recording("beckett.wav")
    vad = SileroVad()
    voiced = np.array([vad(x[k:k + 512]) for k in range(0, len(x) - 511, 512)])
    vad.reset()
    noise = np.random.default_rng(0).normal(0, x.std(), len(x)).astype(np.int16)
    noisy = np.array([vad(noise[k:k + 512]) for k in range(0, len(noise) - 511, 512)])
    assert (voiced > 0.5).mean() > 0.4 and (noisy > 0.5).mean() < 0.02
    vad.reset()
    again = np.array([vad(x[k:k + 512].astype(np.float32) / 32768) for k in range(0, 16_000, 512)])
    assert np.allclose(again, voiced[:len(again)], atol=1e-5), "float and int16 frames, and a reset, give the same"
    with pytest.raises(AudioFormatError, match="512"):
        vad(x[:480])


def test_wrong_lengths_never_reach_the_native_module():
    """A wrong block would abort the process; here it is an exception, and the canceller goes on working."""
    canceller, block = EchoCanceller(0.05), np.zeros(160, np.int16)
    for mic, reference in ((block[:159], block), (block, np.zeros(161, np.int16)), (block.astype(np.float32), block), (block.reshape(1, 160), block)):
        with pytest.raises(AudioFormatError):
            canceller.process(mic, reference)
    with pytest.raises(AudioFormatError):
        canceller.set_delay(3.0)
    assert canceller.process(block, block).shape == (160,)


async def test_a_block_costs_little():
    """Render and capture together, everything on, gate open and speech playing: CPU time well under 1.5 ms per 10 ms block."""
    near = np.tile(recording("beckett.wav"), 2)
    clock, cloud = VirtualClock(), FakeCloud()
    device = Device(DeviceSettings(), clock, Trace("device", "", clock), transport=cloud.transport)
    await device.connect("memory://", "")
    cloud.say("s1", recording("endgame_nagg_nell.wav", 12))
    costs = []
    for i in range(800):
        block = near[i * 160:i * 160 + 160].copy()
        begun = time.thread_time()
        device.render(240)
        device.capture(block)
        costs.append(time.thread_time() - begun)
        await clock.advance(0.01)
    assert cloud.mic and cloud.reports
    assert np.mean(costs) < 1.5e-3, f"{np.mean(costs) * 1e3:.2f} ms"
