"""The bytes on the wire are the contract: what an older release wrote is what this one writes, and reads back equal."""

from pathlib import Path

import numpy as np
import pytest
import wire_examples

from device_sdk import wire

GOLDEN = Path(__file__).parent / "golden"
ENCODED = wire_examples.encoded()


@pytest.mark.parametrize("name", sorted(ENCODED))
def test_bytes_are_the_golden_ones(name):
    """Every message is written byte for byte as the fixture says."""
    assert ENCODED[name] == (GOLDEN / name).read_bytes()


def test_every_fixture_and_every_type_is_covered():
    """No fixture without an example, and no message type without a fixture."""
    assert {p.name for p in GOLDEN.iterdir()} == set(ENCODED)
    assert {message.type for message in wire_examples.CTL.values()} == set(wire.CTL_TYPES)


def test_json_messages_read_back_equal():
    """Reading what was written gives the same message."""
    for table, decode in ((wire_examples.CTL, wire.decode_ctl), (wire_examples.REPORT, wire.decode_report)):
        for name, message in table.items():
            assert decode((GOLDEN / f"{name}.json").read_bytes()) == message
    for name, message in wire_examples.EFFECT.items():
        decode = wire.decode_effect_answer if name.startswith("answer") else wire.decode_effect_request
        assert decode((GOLDEN / f"{name}.json").read_text()) == message


def test_mic_packets_read_back_equal():
    """A packet keeps positions, flags and every sample."""
    for name, packet in wire_examples.MIC.items():
        read = wire.MicPacket.unpack((GOLDEN / f"{name}.bin").read_bytes())
        assert (read.seq, read.boot, read.pos, read.gap, read.preroll) == (packet.seq, packet.boot, packet.pos, packet.gap, packet.preroll)
        assert read.samples.dtype == np.int16 and np.array_equal(read.samples, packet.samples)
        assert read.end == packet.pos + len(packet.samples)


def test_boot_text_and_number_are_inverse():
    """Mic packets carry the boot as a number, JSON as text: one identity."""
    for boot in (0, 35, 36, 33_921_333, 2**32 - 1):
        assert wire.boot_number(wire.boot_text(boot)) == boot
    with pytest.raises(wire.BadField):
        wire.boot_text(2**32)
