"""The states of a device and the one table of allowed changes."""

from enum import StrEnum


class DeviceState(StrEnum):
    IDLE = "idle"
    """No room. Speech that is buffered still plays out."""
    CONNECTING = "connecting"
    """Joining, or in the room and not yet welcomed by an agent."""
    LISTENING = "listening"
    SPEAKING = "speaking"
    """The assistant is being heard; listening goes on."""
    RECONNECTING = "reconnecting"
    """The link is down and is being restored; the buffer plays on."""
    STOPPING = "stopping"


S = DeviceState
ALLOWED: dict[DeviceState, frozenset[DeviceState]] = {
    S.IDLE: frozenset({S.CONNECTING}),
    S.CONNECTING: frozenset({S.LISTENING, S.SPEAKING, S.RECONNECTING, S.STOPPING, S.IDLE}),
    S.LISTENING: frozenset({S.SPEAKING, S.CONNECTING, S.RECONNECTING, S.STOPPING}),
    S.SPEAKING: frozenset({S.LISTENING, S.CONNECTING, S.RECONNECTING, S.STOPPING}),
    S.RECONNECTING: frozenset({S.LISTENING, S.SPEAKING, S.CONNECTING, S.STOPPING}),
    S.STOPPING: frozenset({S.IDLE}),
}


class StateMachine:
    """`to(state)` applies one change; one that the table lacks raises ValueError. `changed` hears every change."""

    def __init__(self, changed):
        self.state = S.IDLE
        self._changed = changed

    def to(self, state: DeviceState) -> None:
        if state is self.state:
            return
        if state not in ALLOWED[self.state]:
            raise ValueError(f"state: {self.state} can't become {state}; allowed: {', '.join(sorted(ALLOWED[self.state]))}")
        self.state = state
        self._changed(state)
