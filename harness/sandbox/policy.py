"""How far a skill's code is trusted, what it may read and use, and which layers must hold it.

| trust | its code is loaded | a worker | it refuses to run without |
|---|---|---|---|
| builtin | in the zygote | serves many calls, one at a time | – |
| signed | inside the lock | serves one call | no_new_privs, seccomp |
| untrusted | inside the lock | serves one call | pidns, no_new_privs, seccomp, landlock |
"""
import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

from harness.sandbox.errors import SandboxMissing
from venus_edge.errors import ConfigError


class Trust(StrEnum):
    BUILTIN = "builtin"
    SIGNED = "signed"
    UNTRUSTED = "untrusted"


LAYERS = {
    "bwrap": "bubblewrap around the zygote",
    "userns": "a user namespace of its own",
    "pidns": "no process to be seen but those of its own bundle, and all of them end together",
    "netns": "a network namespace without any interface",
    "view": "a file tree that holds nothing but the folders allowed",
    "env": "an empty environment",
    "fds": "no inherited descriptor but the socket",
    "rlimits": "memory, processor time, files, file size, threads, core dumps",
    "uid": "a user id that owns nothing",
    "caps": "no capability, now or later",
    "no_new_privs": "no program gives more rights",
    "landlock": "reads in the folders allowed, writes nowhere, no TCP, no signal or abstract socket to the outside",
    "seccomp": "only the system calls that a skill needs",
}
"""Every layer, from the outside in, and what it is."""
REQUIRED = {Trust.BUILTIN: (), Trust.SIGNED: ("no_new_privs", "seccomp"),
            Trust.UNTRUSTED: ("pidns", "no_new_privs", "seccomp", "landlock")}
LIMITS = {"memory_mb": (32, 4096), "open_files": (16, 1024), "threads": (1, 256), "cpu_s": (1, 3600)}


@dataclass(frozen=True)
class Layer:
    """One layer as a worker found it: `why` says what stands in its way when it is not active."""

    name: str
    active: bool
    why: str = ""


@dataclass(frozen=True)
class Sandbox:
    """The lock of one bundle of skills. Raises ConfigError for a wrong field."""

    trust: Trust = Trust.UNTRUSTED
    data: tuple[str, ...] = ()
    """Folders (or files) that may be read, absolute; no more than reading."""
    memory_mb: int = 256
    """Address space that a call may add to what its process was forked with."""
    open_files: int = 64
    threads: int = 32
    cpu_s: int = 125
    """Processor seconds of a one-shot worker; the deadline ends a call sooner."""
    off: frozenset[str] = field(default_factory=frozenset)
    """Layers left out on purpose: to show that an evaluation can fail, never in a product."""
    allow_missing: bool = False
    """Development only: run even where a required layer is missing; every start is logged as a warning."""

    def __post_init__(self):
        object.__setattr__(self, "data", tuple(str(path) for path in self.data))
        object.__setattr__(self, "off", frozenset(self.off))
        try:
            object.__setattr__(self, "trust", Trust(self.trust))
        except ValueError:
            raise ConfigError(f"sandbox: trust is {self.trust!r}; allowed: {', '.join(Trust)}") from None
        for name, (low, high) in LIMITS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise ConfigError(f"sandbox: {name} is {value!r}; allowed: {low} to {high}")
        for path in self.data:
            if not Path(path).is_absolute() or len(Path(path).resolve().parts) < 2:
                raise ConfigError(f"sandbox: data names {path!r}; allowed: absolute folders below /")
        if unknown := self.off - set(LAYERS):
            raise ConfigError(f"sandbox: off names {', '.join(sorted(unknown))}; allowed: {', '.join(LAYERS)}")

    @property
    def reuses(self) -> bool:
        """Whether one worker serves call after call."""
        return self.trust is Trust.BUILTIN

    @property
    def preloads(self) -> bool:
        """Whether the skills' code is loaded before the lock; only our own is."""
        return self.trust is Trust.BUILTIN

    def wants(self, layer: str) -> bool:
        return layer not in self.off

    def check(self, layers: list[Layer]) -> None:
        """Raises SandboxMissing when a layer that the trust level requires is not active, unless that is allowed."""
        found = {layer.name: layer for layer in layers}
        missing = [name for name in REQUIRED[self.trust] if name not in found or not found[name].active]
        if missing and not self.allow_missing:
            reasons = "; ".join(f"{name}: {found[name].why if name in found else 'not reported'}" for name in missing)
            raise SandboxMissing(f"{self.trust} skills are refused: {reasons}", missing=missing)

    def to_json(self) -> str:
        return json.dumps(asdict(self) | {"off": sorted(self.off)})

    @classmethod
    def from_json(cls, text: str) -> "Sandbox":
        return cls(**json.loads(text))
