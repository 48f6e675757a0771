"""What decides which microphone audio leaves the device. Names are loaded on first use (the model needs onnxruntime)."""

from importlib import import_module

_HOME = {
    "SileroVad": "device_sdk.gates.silero",
    "SpeechDetector": "device_sdk.gates.speech",
    "AudioGate": "device_sdk.gates.audio",
    "GateMode": "device_sdk.gates.audio",
}
__all__ = sorted(_HOME)


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
