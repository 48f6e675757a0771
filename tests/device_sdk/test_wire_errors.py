"""Hostile or broken messages: one WireError that names the field, never another exception, never the value."""

import json
import struct

import numpy as np
import pytest
import wire_examples
from hypothesis import given, settings
from hypothesis import strategies as st

from device_sdk import wire


@pytest.mark.parametrize(
    "payload, kind, field",
    [
        (b"{", wire.WireError, "payload"),
        (b"\xff\xfe", wire.WireError, "payload"),
        (b"[]", wire.BadField, "payload"),
        (b'{"v":1}', wire.UnknownType, "type"),
        (b'{"v":1,"type":"reboot"}', wire.UnknownType, "type"),
        (b'{"v":2,"type":"ping","n":1}', wire.BadVersion, "ping.v"),
        (b'{"v":1,"type":"ping"}', wire.BadField, "ping.n"),
        (b'{"v":1,"type":"ping","n":"1"}', wire.BadField, "ping.n"),
        (b'{"v":1,"type":"ping","n":-1}', wire.BadField, "ping.n"),
        (b'{"v":1,"type":"gate","open":1,"pos":3}', wire.BadField, "gate.open"),
        (b'{"v":1,"type":"volume","level":1.5}', wire.BadField, "volume.level"),
        (b'{"v":1,"type":"reflex","action":"explode","reason":"vad","pos":1}', wire.BadField, "reflex.action"),
        (b'{"v":1,"type":"hello","protocols":[],"boot":"a","pos":0,"t":0}', wire.BadField, "hello.protocols"),
        (b'{"v":1,"type":"hello","protocols":[1],"boot":"A!","pos":0,"t":0}', wire.BadField, "hello.boot"),
        (b'{"v":1,"type":"bye","reason":"' + b"x" * 9000 + b'"}', wire.TooLarge, "size"),
    ],
)
def test_bad_control_message_names_the_field(payload, kind, field):
    """The error says which field; its code is one of the tree's."""
    with pytest.raises(kind) as caught:
        wire.decode_ctl(payload)
    assert type(caught.value) is kind and caught.value.field == field
    assert caught.value.message.startswith(("field ", "payload", "message of"))


def test_errors_list_the_allowed_types():
    """An unknown type is answered with the types there are."""
    with pytest.raises(wire.UnknownType) as caught:
        wire.decode_ctl(b'{"v":1,"type":"reboot"}')
    assert all(name in caught.value.allowed for name in wire.CTL_TYPES)


def test_error_never_quotes_the_value():
    """A refused value may hold somebody's words, so it appears in no error."""
    with pytest.raises(wire.WireError) as caught:
        wire.decode_ctl(b'{"v":1,"type":"ping","n":"my secret words"}')
    assert "secret" not in str(caught.value.as_dict())


def test_unknown_extra_fields_are_ignored():
    """A later minor revision may add optional fields."""
    assert wire.decode_ctl(b'{"v":1,"type":"ping","n":1,"later":{}}') == wire.Ping(n=1)


def test_report_must_add_up():
    """played + buf = rx, else the report is refused."""
    good = json.loads(wire.encode_report(wire_examples.REPORT["report_progress"]))
    with pytest.raises(wire.BadField, match="played"):
        wire.decode_report(json.dumps({**good, "buf": 1}).encode())
    with pytest.raises(wire.BadField, match="st"):
        wire.decode_report(json.dumps({**good, "st": "dancing"}).encode())


def test_effect_needs_what_its_operation_needs():
    """get needs paths, actuate needs path and value, an answer exactly one content."""
    for payload in ('{"v":1,"key":"k","op":"get"}', '{"v":1,"key":"k","op":"actuate","path":"A.B"}', '{"v":1,"key":"","op":"get","paths":["A"]}'):
        with pytest.raises(wire.BadField):
            wire.decode_effect_request(payload)
    for payload in ('{"v":1,"ok":true}', '{"v":1,"ok":true,"error":{"code":"x"}}', '{"v":1,"ok":false,"signals":{}}'):
        with pytest.raises(wire.BadField):
            wire.decode_effect_answer(payload)


def header(magic=b"VM", version=1, flags=0, seq=1, boot=2, pos=3, n=2, reserved=0):
    return struct.pack("<2sBBIIQHH", magic, version, flags, seq, boot, pos, n, reserved)


@pytest.mark.parametrize(
    "payload, field",
    [
        (b"", "size"),
        (header()[:-1], "size"),
        (header(magic=b"XX") + b"\0" * 4, "magic"),
        (header(version=2) + b"\0" * 4, "version"),
        (header(flags=4) + b"\0" * 4, "flags"),
        (header(reserved=1) + b"\0" * 4, "reserved"),
        (header(n=0), "n"),
        (header(n=4801) + b"\0" * 9600, "n"),
        (header(n=2) + b"\0" * 3, "n"),
        (header(n=2) + b"\0" * 6, "n"),
        (header(n=4800) + b"\0" * 9602, "size"),
    ],
)
def test_bad_mic_packet_names_the_field(payload, field):
    """Every byte of the header is checked before a sample is used."""
    with pytest.raises(wire.WireError) as caught:
        wire.MicPacket.unpack(payload)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "packet, field",
    [
        (wire.MicPacket(-1, 0, 0, np.zeros(1, np.int16)), "seq"),
        (wire.MicPacket(0, 2**32, 0, np.zeros(1, np.int16)), "boot"),
        (wire.MicPacket(0, 0, 2**64, np.zeros(1, np.int16)), "pos"),
        (wire.MicPacket(0, 0, 0, np.zeros(0, np.int16)), "n"),
        (wire.MicPacket(0, 0, 0, np.zeros(4801, np.int16)), "n"),
        (wire.MicPacket(0, 0, 0, np.zeros(4, np.float32)), "samples"),
    ],
)
def test_bad_mic_packet_is_not_written(packet, field):
    """What could not be read is not written either."""
    with pytest.raises(wire.WireError) as caught:
        packet.pack()
    assert caught.value.field == field


SEEDS = sorted(wire_examples.encoded().values())


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SEEDS), st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=6), st.integers(0, 40))
def test_damaged_messages_raise_nothing_but_wire_errors(payload, damage, cut):
    """Any damage to any message ends in a message or a WireError."""
    data = bytearray(payload)
    for at, value in damage:
        data[at % len(data)] = value
    data = bytes(data[:len(data) - cut] if cut < len(data) else data)
    for decode in (wire.decode_ctl, wire.decode_report, wire.decode_effect_request, wire.decode_effect_answer, wire.MicPacket.unpack):
        try:
            decode(data)
        except wire.WireError as err:
            assert err.field and err.code
