"""Incoming speech streams, ours or a stock agent's: their attributes checked, and what a stock agent is told about them."""

import json
from dataclasses import dataclass

from device_sdk.errors import BadField
from device_sdk.playout import PlayoutEvent
from device_sdk.wire.topics import (
    ATTR_NUM_CHANNELS, ATTR_SAMPLE_RATE, ATTR_SEG, ATTR_START, RPC_PLAYBACK_FINISHED, RPC_PLAYBACK_STARTED, SEG_MAX_CHARS,
)


@dataclass(frozen=True)
class SpeechMeta:
    """`ours`: the sender knows segments and reads playout reports; a stock agent is told by RPC instead."""

    ours: bool


def check_stream(name: str, attributes: dict[str, str], out_rate: int) -> tuple[str, SpeechMeta]:
    """The segment id of a stream, and who sent it; raises BadField that names the attribute and what is allowed."""
    rate = attributes.get(ATTR_SAMPLE_RATE, "")
    if rate != str(out_rate):
        raise BadField(f"field {ATTR_SAMPLE_RATE}: {rate[:16]!r}", ATTR_SAMPLE_RATE, str(out_rate))
    if attributes.get(ATTR_NUM_CHANNELS, "1") != "1":
        raise BadField(f"field {ATTR_NUM_CHANNELS}: not mono", ATTR_NUM_CHANNELS, "1")
    start = attributes.get(ATTR_START, "0")
    if not (start.isascii() and start.isdigit() and len(start) <= 15):
        raise BadField(f"field {ATTR_START}: no sample number", ATTR_START, "0..10**15-1")
    ours = ATTR_SEG in attributes
    seg = attributes.get(ATTR_SEG, name)
    if not 1 <= len(seg) <= SEG_MAX_CHARS:
        raise BadField(f"field {ATTR_SEG}: {len(seg)} characters", ATTR_SEG, f"1..{SEG_MAX_CHARS} characters")
    if ours and seg != name:
        raise BadField(f"field {ATTR_SEG}: differs from the stream's name", ATTR_SEG, "the name of the stream")
    return seg, SpeechMeta(ours)


def stock_call(event: PlayoutEvent, rate: int) -> tuple[str, str]:
    """RPC method and payload that tell a stock agent of the first or the last sample heard."""
    if event.kind == "first":
        return RPC_PLAYBACK_STARTED, ""
    return RPC_PLAYBACK_FINISHED, json.dumps({
        "playback_position": event.played / rate, "interrupted": event.state != "ended", "synchronized_transcript": None})
