"""Recognition and synthesis on a plain CPU. Imports nothing of ours but venus_edge, so that simulators may use it as a tool."""
from cloud_core.speech.errors import BadAudio, BadText, Cancelled, SpeechError
from cloud_core.speech.recogniser import Recogniser, Transcript
from cloud_core.speech.voice import Speech, TextSpan, Voice, split_clauses

__all__ = ["BadAudio", "BadText", "Cancelled", "Recogniser", "Speech", "SpeechError", "TextSpan", "Transcript", "Voice",
           "split_clauses"]
