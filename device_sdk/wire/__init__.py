"""The messages between device and cloud, both directions (PROTOCOL.md). Needs pydantic and numpy only."""

from device_sdk.errors import BadField, BadVersion, TooLarge, UnknownType, WireError
from device_sdk.wire.ctl import (
    CTL_TYPES, Ack, Bye, Ctl, Error, Flush, Gate, Hello, Ping, Pong, Reflex, Restore, Screen, Vad, Volume, Welcome, encode_ctl, decode_ctl,
)
from device_sdk.wire.effect import (
    EffectAnswer, EffectDone, EffectError, EffectRequest, SignalValue, TaskRef,
    decode_effect_answer, decode_effect_request, encode_effect,
)
from device_sdk.wire.mic_packet import MicPacket
from device_sdk.wire.models import boot_number, boot_text
from device_sdk.wire.negotiation import answer_hello, negotiate
from device_sdk.wire.playout_ledger import PlayoutLedger, PlayoutState
from device_sdk.wire.playout_report import PlayoutReport, PlayState, encode_report, decode_report
from device_sdk.wire.topics import (
    AGENT_IDENTITY, ATTR_NUM_CHANNELS, ATTR_SAMPLE_RATE, ATTR_SEG, ATTR_START, CAR_HOST_IDENTITY, CTL_MAX_BYTES, EFFECT_MAX_BYTES,
    MIC_HEADER_BYTES, MIC_PACKET_MAX_BYTES, MIC_PACKET_MAX_SAMPLES, MIC_RATE, PROTOCOL_VERSION, PROTOCOLS, REPORT_MAX_BYTES,
    RPC_CLEAR_BUFFER, RPC_EFFECT, RPC_PLAYBACK_FINISHED, RPC_PLAYBACK_STARTED, SPEECH_AHEAD_S, SPEECH_STREAM_MAX_BYTES,
    TOPIC_CTL, TOPIC_MIC, TOPIC_PLAYOUT, TOPIC_SPEECH, TOPIC_TRANSCRIPTION,
)

__all__ = [
    "AGENT_IDENTITY", "ATTR_NUM_CHANNELS", "ATTR_SAMPLE_RATE", "ATTR_SEG", "ATTR_START", "Ack", "BadField", "BadVersion", "Bye",
    "CAR_HOST_IDENTITY", "CTL_MAX_BYTES", "CTL_TYPES", "Ctl", "EFFECT_MAX_BYTES", "EffectAnswer", "EffectDone", "EffectError",
    "EffectRequest", "Error", "Flush", "Gate", "Hello", "MIC_HEADER_BYTES", "MIC_PACKET_MAX_BYTES", "MIC_PACKET_MAX_SAMPLES",
    "MIC_RATE", "MicPacket", "PROTOCOLS", "PROTOCOL_VERSION", "Ping", "PlayState", "PlayoutLedger", "PlayoutReport",
    "PlayoutState", "Pong", "REPORT_MAX_BYTES", "RPC_CLEAR_BUFFER", "RPC_EFFECT", "RPC_PLAYBACK_FINISHED", "RPC_PLAYBACK_STARTED",
    "Reflex", "Restore", "SPEECH_AHEAD_S", "SPEECH_STREAM_MAX_BYTES", "SignalValue", "TOPIC_CTL", "TOPIC_MIC", "TOPIC_PLAYOUT",
    "Screen", "TOPIC_SPEECH", "TOPIC_TRANSCRIPTION", "TaskRef", "TooLarge", "UnknownType", "Vad", "Volume", "Welcome", "WireError",
    "answer_hello", "boot_number", "boot_text", "encode_ctl", "encode_effect", "encode_report", "negotiate", "decode_ctl",
    "decode_effect_answer", "decode_effect_request", "decode_report",
]
