"""What a device tells its program as it happens."""

from typing import TypedDict


class DeviceEvent(TypedDict, total=False):
    """What `on_event` gets; `ev` is vad | gate | reflex | segment | agent | welcome | link | error | bye."""

    ev: str
    pos: int
    on: bool
    open: bool
    withheld: int
    action: str
    reason: str
    seg: str
    played: int
    length: int
    state: str
    identity: str | None
    session: str
    code: str
    message: str
