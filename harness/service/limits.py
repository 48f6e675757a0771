"""The delegation service's limits, each with its unit in the name; frozen and validated."""
from pydantic import BaseModel, ConfigDict, Field


class ServiceLimits(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    max_message_bytes: int = Field(1 << 20, ge=4096, le=16 << 20)
    """Larger messages are refused before they are read; pages of tasks are cut below half of it."""
    sessions_per_tenant: int = Field(256, ge=1)
    streams_per_session: int = Field(8, ge=1)
    """Watch streams of one session at a time."""
    waits_per_session: int = Field(64, ge=1)
    """Submit calls of one session that wait for their result at a time."""
    watch_backlog: int = Field(256, ge=1)
    """Transitions kept for a slow reader; then the oldest are lost to it and a snapshot follows."""
    marks_backlog: int = Field(64, ge=1)
    """Marks of one delivery stream that wait for a client which doesn't read; one more ends the stream."""
    idle_ttl_s: float = Field(900.0, gt=0)
    """A session without a call or a stream for so long is closed, and its records are dropped."""
    sweep_s: float = Field(5.0, gt=0)
    """How often idle sessions are looked for."""
    open_wait_s: float = Field(5.0, gt=0)
    """How long a delivery stream may stay silent before its `open`."""
    held_reply_s: float = Field(60.0, gt=0)
    """How long a client that came back with a reply in its hands may take to tell what became of it."""
    linger_s: float = Field(1.0, ge=0)
    """How long a delivery stream is held open after its last message, for the client to end it."""
    cancel_flush_s: float = Field(0.03, ge=0)
    """A cancellation is acknowledged after so long even if the store has not confirmed its record yet."""
