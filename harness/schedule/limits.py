"""The scheduler's limits: of the process (`SchedulerLimits`) and of one session (`LaneLimits`). Frozen, validated; units in the names."""
from pydantic import BaseModel, ConfigDict, Field, model_validator


class LaneLimits(BaseModel):
    """What one session may use."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_running: int = Field(8, ge=1, le=1024)
    """Jobs of the session that run at once."""
    max_queued: int = Field(32, ge=0, le=4096)
    """Further jobs that wait; beyond them a job is refused (BusyError)."""
    queue_ttl_s: float = Field(20.0, gt=0)
    """A job that has waited this long for its first start has expired."""
    cancel_wait_s: float = Field(1.0, gt=0)
    """How long a cancelled run may take to end before it is abandoned."""


class SchedulerLimits(BaseModel):
    """What the whole process may use, and how it is shared out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_running: int = Field(64, ge=1, le=4096)
    """Jobs that run at once. Where one skill runner serves them all, no more than its own limit: it refuses the rest."""
    max_running_per_tenant: int = Field(32, ge=1, le=4096)
    max_queued: int = Field(4096, ge=0, le=1_000_000)
    """Waiting jobs of all sessions; beyond them a job is refused (BusyError)."""
    reserved_for_waiting: int | None = Field(None, ge=0)
    """Places of the process that only a session which runs nothing may take. None: an eighth (8 of 64)."""
    reserved_per_tenant: int | None = Field(None, ge=0)
    """The same within a tenant's places. None: an eighth (4 of 32)."""
    ageing_s: float = Field(5.0, gt=0)
    """A job that has waited this long in a lower class goes on waiting in the class `waiting`."""
    max_abandoned: int = Field(64, ge=1)
    """Runs that ignore their cancellation and live on. At this number, no new job of a capability that has any."""
    max_abandoned_per_capability: int = Field(32, ge=1)
    """At this number of them, no new job of the capability."""
    max_abandoned_per_tenant: int = Field(24, ge=1)
    """At this number of them, no new job of the tenant: below the capability's, so that one tenant can't close it for others."""
    max_abandoned_per_session: int = Field(12, ge=1)
    """At this number of them, no new job of the session."""
    busy_backoff_s: float = Field(0.05, gt=0)
    """First pause after a run was refused with BusyError; doubles up to `busy_backoff_cap_s`, ends early when a run ends."""
    busy_backoff_cap_s: float = Field(0.5, gt=0)
    busy_wait_s: float = Field(10.0, gt=0)
    """A job whose run has been refused for so long fails with the code `busy`."""

    @model_validator(mode="after")
    def _reserves_leave_room(self) -> "SchedulerLimits":
        for name, total in (("reserved_for_waiting", self.max_running), ("reserved_per_tenant", self.max_running_per_tenant)):
            value = getattr(self, name)
            if value is not None and value >= total:
                raise ValueError(f"{name} is {value}; allowed: 0 to {total - 1}, less than the places it is a part of")
        return self

    @property
    def process_reserve(self) -> int:
        return self.max_running // 8 if self.reserved_for_waiting is None else self.reserved_for_waiting

    @property
    def tenant_reserve(self) -> int:
        return self.max_running_per_tenant // 8 if self.reserved_per_tenant is None else self.reserved_per_tenant
