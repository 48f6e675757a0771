"""What is public is decided here; the messages alone load neither LiveKit nor onnxruntime."""

import json
import subprocess
import sys

import pytest

import device_sdk
from device_sdk import gates, wire


def test_public_names_are_these():
    assert device_sdk.__all__ == [
        "AudioFormatError", "BackendMissing", "Device", "DeviceEvent", "DeviceSettings", "DeviceState", "EchoCanceller",
        "LiveKitTransport", "NotConnected", "Player", "PlayoutReporter", "ProtocolRefused", "Reflex", "Resampler", "SoundDeviceAudio",
        "TokenRefused", "Transport", "WireError"]
    assert gates.__all__ == ["AudioGate", "GateMode", "SileroVad", "SpeechDetector"]
    for module in (device_sdk, gates, wire):
        for name in module.__all__:
            assert getattr(module, name) is not None
        with pytest.raises(AttributeError):
            module.nothing_of_that_name


def loaded_by(statement):
    code = f"{statement}; import sys, json; print(json.dumps([m for m in sys.modules]))"
    return set(json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout))


@pytest.mark.parametrize("statement", ["import device_sdk", "import device_sdk.wire", "from device_sdk.wire import MicPacket, PlayoutLedger"])
def test_the_messages_alone_are_light(statement):
    """A program that only reads messages pays for no transport and no model."""
    assert not {"livekit", "livekit.rtc", "onnxruntime"} & loaded_by(statement)


def test_the_gate_needs_no_transport():
    """The cloud uses the voice-activity model without joining any room."""
    modules = loaded_by("from device_sdk.gates import SileroVad")
    assert "onnxruntime" in modules and "livekit.rtc" not in modules
