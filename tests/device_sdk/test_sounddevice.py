"""The bridge between an audio callback's thread and the device keeps blocks in order, bounded, and the playout count exact."""

import asyncio
import builtins

import numpy as np
import pytest

from device_sdk import BackendMissing, Device, DeviceSettings
from device_sdk.audio_sounddevice import BLOCK, MAX_WAITING, DuplexBridge, SoundDeviceAudio
from device_sdk.testing import FakeCloud, ScriptedVad
from venus_edge.testing import VirtualClock


def make():
    cloud, clock = FakeCloud(), VirtualClock()
    device = Device(DeviceSettings(echo_cancellation=False), clock, transport=cloud.transport, vad=ScriptedVad())
    return device, cloud, DuplexBridge(device, asyncio.get_running_loop())


async def test_every_rendered_block_reaches_the_callback_in_order():
    """Late pumps repeat nothing and lose nothing: the speech comes out whole, and `render` ran once per block consumed."""
    device, cloud, bridge = make()
    await device.connect("memory://", "")
    cloud.say("s", np.full(24_000, 8000, np.int16))
    out = []
    for i in range(150):
        out.append(bridge.callback(np.zeros(BLOCK, np.int16), 0.02))
        if i % 7 != 3:  # now and then the event loop is late
            await asyncio.sleep(0)
            bridge.pump()
    y = np.concatenate(out)
    assert abs(np.count_nonzero(y > 4000) - 48_000) < 200 and np.abs(y).max() < 9500
    assert device.player.get("s").played == 24_000 and device.pos >= 149 * 160


async def test_a_stalled_event_loop_drops_old_microphone_blocks():
    device, _, bridge = make()
    for _ in range(MAX_WAITING + 30):
        assert len(bridge.callback(np.zeros(BLOCK, np.int16), 0.02)) == BLOCK
    bridge.pump()
    assert device.pos == MAX_WAITING * 160


async def test_the_measured_delay_is_followed():
    device, _, bridge = make()
    for _ in range(60):
        bridge.callback(np.zeros(BLOCK, np.int16), 0.1)
        bridge.pump()
    assert device.player.delay == round(0.12 * 24_000)


async def test_a_missing_package_names_the_extra(monkeypatch):
    """One line that says what to install."""
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "sounddevice":
            raise ImportError("No module named 'sounddevice'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    device, _, _ = make()
    with pytest.raises(BackendMissing, match=r"venus-edge\[device-audio\]"):
        SoundDeviceAudio(device)
