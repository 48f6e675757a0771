"""The device SDK: capture, gate, reflexes, player with an exact playout clock, and the messages to the cloud.

Names are loaded on first use, so that a program that needs only `device_sdk.wire` loads neither LiveKit nor onnxruntime.
"""

from importlib import import_module

_HOME = {
    "Device": "device_sdk.device",
    "DeviceEvent": "device_sdk.events",
    "DeviceSettings": "device_sdk.settings",
    "DeviceState": "device_sdk.states",
    "EchoCanceller": "device_sdk.echo",
    "LiveKitTransport": "device_sdk.transport",
    "Player": "device_sdk.playout",
    "PlayoutReporter": "device_sdk.playout_reports",
    "Reflex": "device_sdk.reflex",
    "Resampler": "device_sdk.resample",
    "SoundDeviceAudio": "device_sdk.audio_sounddevice",
    "Transport": "device_sdk.transport",
    "AudioFormatError": "device_sdk.errors",
    "BackendMissing": "device_sdk.errors",
    "NotConnected": "device_sdk.errors",
    "ProtocolRefused": "device_sdk.errors",
    "TokenRefused": "device_sdk.errors",
    "WireError": "device_sdk.errors",
}
__all__ = sorted(_HOME)


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
