"""Device and agent agree on the newest protocol that both speak, or say what would be allowed."""

import pytest

from device_sdk import wire


def hello(**changed):
    return wire.Hello(**{"protocols": [1], "boot": "k3f9", "pos": 0, "t": 0, **changed})


def test_the_newest_common_version_wins():
    assert wire.negotiate([1, 2, 3], [1, 2]) == 2
    assert wire.negotiate([3, 1], [2, 1, 3]) == 3


def test_no_common_version_names_the_allowed_ones():
    with pytest.raises(wire.BadVersion) as caught:
        wire.negotiate([7], [1, 2])
    assert caught.value.field == "protocols" and caught.value.allowed == "1, 2"


def test_hello_is_answered_with_a_welcome_or_a_reason():
    """A device that offers more than we know is welcomed with what we share; one that shares nothing learns why."""
    welcome = wire.answer_hello(hello(protocols=[1, 9]), "S-1", 200)
    assert isinstance(welcome, wire.Welcome) and welcome.protocol == 1 and welcome.session == "S-1" and welcome.unit_ms == 200
    refusal = wire.answer_hello(hello(protocols=[9]), "S-1", 200)
    assert isinstance(refusal, wire.Error) and (refusal.code, refusal.allowed, refusal.re) == ("bad_version", "1", "hello")
    refusal = wire.answer_hello(hello(mic=["track"]), "S-1", 200)
    assert isinstance(refusal, wire.Error) and "mic" in refusal.message
