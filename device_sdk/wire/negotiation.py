"""Version negotiation: the agent picks the newest protocol that both sides speak."""

from collections.abc import Sequence

from device_sdk.errors import BadVersion
from device_sdk.wire.ctl import Error, Hello, Welcome
from device_sdk.wire.topics import PROTOCOLS


def negotiate(offered: Sequence[int], supported: Sequence[int] = PROTOCOLS) -> int:
    """The highest common version; raises BadVersion that names what is allowed."""
    common = set(offered) & set(supported)
    if not common:
        allowed = ", ".join(str(v) for v in sorted(supported))
        raise BadVersion("field protocols: no version in common", "protocols", allowed)
    return max(common)


def answer_hello(hello: Hello, session: str, unit_ms: int, *, mic_packet_ms: int = 20, report_ms: int = 100) -> Welcome | Error:
    """What an agent answers: a welcome, or the error that says what it would accept. Never raises."""
    try:
        protocol = negotiate(hello.protocols)
    except BadVersion as err:
        return Error(code=err.code, message=err.message, allowed=err.allowed, re="hello")
    for name, modes in (("mic", hello.mic), ("playout", hello.playout)):
        if "stamped" not in modes:
            return Error(code="bad_field", message=f"field {name}: no mode in common", allowed="stamped", re="hello")
    return Welcome(protocol=protocol, session=session, unit_ms=unit_ms, mic_packet_ms=mic_packet_ms, report_ms=report_ms)
