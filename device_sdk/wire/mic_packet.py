"""`venus.mic`: stamped microphone audio, a 24-byte little-endian header and int16 samples."""

import struct
from dataclasses import dataclass

import numpy as np

from device_sdk.errors import BadField, BadVersion, TooLarge, WireError
from device_sdk.wire.topics import MIC_HEADER_BYTES, MIC_PACKET_MAX_BYTES, MIC_PACKET_MAX_SAMPLES

MAGIC = b"VM"
FLAG_GAP = 1
"""First packet after samples that were not sent."""
FLAG_PREROLL = 2
"""Samples from before the gate opened, sent in one burst."""
_HEADER = struct.Struct("<2sBBIIQHH")
assert _HEADER.size == MIC_HEADER_BYTES


@dataclass(frozen=True, eq=False)
class MicPacket:
    """`samples`: int16 mono at 16 kHz, 1..4800 of them, the first one at device position `pos`."""

    seq: int
    boot: int
    pos: int
    samples: np.ndarray
    gap: bool = False
    preroll: bool = False

    def pack(self) -> bytes:
        """The packet as bytes; raises BadField or TooLarge on values that do not fit."""
        n = len(self.samples)
        if self.samples.dtype != np.int16 or self.samples.ndim != 1:
            raise BadField("field samples: must be one row of int16", "samples", "int16[1..4800]")
        if n > MIC_PACKET_MAX_SAMPLES:
            raise TooLarge(f"field n: {n} samples; at most {MIC_PACKET_MAX_SAMPLES}", "n", f"1..{MIC_PACKET_MAX_SAMPLES}")
        if n < 1:
            raise BadField("field n: a packet holds at least one sample", "n", f"1..{MIC_PACKET_MAX_SAMPLES}")
        for name, value, bits in (("seq", self.seq, 32), ("boot", self.boot, 32), ("pos", self.pos, 64)):
            if not 0 <= value < 2**bits:
                raise BadField(f"field {name}: must be 0..2**{bits}-1", name, f"0..2**{bits}-1")
        flags = (FLAG_GAP if self.gap else 0) | (FLAG_PREROLL if self.preroll else 0)
        return _HEADER.pack(MAGIC, 1, flags, self.seq, self.boot, self.pos, n, 0) + self.samples.astype("<i2").tobytes()

    @classmethod
    def unpack(cls, payload: bytes) -> "MicPacket":
        """Read one packet; raises WireError that names the field. Unknown flag bits and a used reserve are refused."""
        if len(payload) > MIC_PACKET_MAX_BYTES:
            raise TooLarge(f"mic packet of {len(payload)} bytes", "size", f"<= {MIC_PACKET_MAX_BYTES} bytes")
        if len(payload) < MIC_HEADER_BYTES:
            raise WireError(f"mic packet of {len(payload)} bytes", "size", f">= {MIC_HEADER_BYTES} bytes")
        magic, version, flags, seq, boot, pos, n, reserved = _HEADER.unpack_from(payload)
        if magic != MAGIC:
            raise BadField("field magic: not a mic packet", "magic", "VM")
        if version != 1:
            raise BadVersion(f"field version: {version}", "version", "1")
        if flags & ~(FLAG_GAP | FLAG_PREROLL):
            raise BadField(f"field flags: {flags}", "flags", "bits 0 and 1")
        if reserved:
            raise BadField("field reserved: not zero", "reserved", "0")
        if not 1 <= n <= MIC_PACKET_MAX_SAMPLES:
            raise BadField(f"field n: {n}", "n", f"1..{MIC_PACKET_MAX_SAMPLES}")
        if len(payload) != MIC_HEADER_BYTES + 2 * n:
            raise BadField(f"field n: {n} samples do not match {len(payload)} bytes", "n", "(size - 24) / 2")
        samples = np.frombuffer(payload, "<i2", n, MIC_HEADER_BYTES).astype(np.int16)
        return cls(seq, boot, pos, samples, bool(flags & FLAG_GAP), bool(flags & FLAG_PREROLL))

    @property
    def end(self) -> int:
        """Device position after the last sample."""
        return self.pos + len(self.samples)
