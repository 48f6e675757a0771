"""Capture: delegate spans out of token ids, with the evidence of the instant they opened.

    tokens.py    ids of the control tokens, by name from a tokenizer        spans.py   ids → visible ids and span events
    reserved.py  the reserved table; text in which no token is spelled      calls.py   a span's content → prose or typed calls
    media.py     the ring of consumed audio and frames                      bench.py   `venus bench parser`
"""
from harness.capture.calls import Prose, TypedCall, parse, requests
from harness.capture.media import Audio, EvidenceRing, MediaSnapshot, Picture, RingLimits
from harness.capture.reserved import DEFAULT, ReservedTable, inert
from harness.capture.spans import SpanAssembler, SpanClosed, SpanLimits, SpanOpened, SpanRejected
from harness.capture.tokens import ControlTokens

__all__ = [
    "DEFAULT", "Audio", "ControlTokens", "EvidenceRing", "MediaSnapshot", "Picture", "Prose", "ReservedTable", "RingLimits", "SpanAssembler",
    "SpanClosed", "SpanLimits", "SpanOpened", "SpanRejected", "TypedCall", "inert", "parse", "requests",
]
