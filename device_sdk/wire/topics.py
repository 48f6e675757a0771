"""Topics, attribute names and size limits of the device <-> cloud protocol (PROTOCOL.md)."""

PROTOCOL_VERSION = 1
PROTOCOLS = (1,)
"""Protocol versions that this side speaks, oldest first."""

MIC_RATE = 16_000
"""Samples per second of the microphone and of every device position `pos`."""

TOPIC_CTL = "venus.ctl"
TOPIC_MIC = "venus.mic"
TOPIC_PLAYOUT = "venus.playout"
TOPIC_SPEECH = "lk.audio_stream"
TOPIC_TRANSCRIPTION = "lk.transcription"

RPC_EFFECT = "venus.effect"
RPC_CLEAR_BUFFER = "lk.clear_buffer"
RPC_PLAYBACK_STARTED = "lk.playback_started"
RPC_PLAYBACK_FINISHED = "lk.playback_finished"

ATTR_SAMPLE_RATE = "sample_rate"
ATTR_NUM_CHANNELS = "num_channels"
ATTR_SEG = "venus.seg"
ATTR_START = "venus.start"

AGENT_IDENTITY = "venus-agent"
CAR_HOST_IDENTITY = "car-host"

CTL_MAX_BYTES = 8_192
REPORT_MAX_BYTES = 600
MIC_PACKET_MAX_SAMPLES = 4_800
MIC_HEADER_BYTES = 24
MIC_PACKET_MAX_BYTES = MIC_HEADER_BYTES + 2 * MIC_PACKET_MAX_SAMPLES
EFFECT_MAX_BYTES = 15_000
"""What one RPC payload may hold in LiveKit's first RPC version."""
SPEECH_AHEAD_S = 1.5
"""How far ahead of the device's `played` the cloud sends speech."""
SPEECH_STREAM_MAX_BYTES = 32 * 1024 * 1024
"""Cap of one incoming byte stream (about 11 minutes at 24 kHz)."""
SEG_MAX_CHARS = 64
