"""Errors of recognition and synthesis.

SpeechError(VenusError)
├── BadAudio    bad_audio   samples of a wrong type or shape; the message names the field
├── BadText     bad_text    a language or text that the voice or the recogniser can't handle
└── Cancelled   cancelled   the caller no longer wants the result
"""
from venus_edge.errors import VenusError


class SpeechError(VenusError):
    code = "speech"


class BadAudio(SpeechError):
    code = "bad_audio"
    advice = "Pass mono int16 or float32 samples at 16 kHz."


class BadText(SpeechError):
    code = "bad_text"
    advice = "Use one of the languages that the message names."


class Cancelled(SpeechError):
    code = "cancelled"
    advice = "Nothing to do: the result was given up."
