"""Attacks that a malicious skill may try, each a function that does it and tells what it got; harmless where they succeed.

The same function runs twice: in a plain child process, to show that it works (`python -m simulators.sandbox_attacks NAME TARGET`), and
as a skill inside the sandbox. Where an attack can't tell by itself (it never returns), the evaluation looks from the outside.
"""
import json
import platform
from dataclasses import asdict, dataclass
from typing import Callable

ARM = platform.machine() == "aarch64"


@dataclass(frozen=True)
class Target:
    """What an attack aims at; made by the evaluation for each attack anew."""

    secret_file: str
    """A file that this user may read, and no skill."""
    folder: str
    """A folder that skills may read; `link` in it leads to the secret file."""
    outside: str
    """A folder that this user may write to, and no skill."""
    port: int
    """A listener on 127.0.0.1"""
    abstract: str
    """The name of a listener on an abstract Unix socket"""
    victim: int
    """Process id of a process of this user"""
    host: int
    """Process id of the evaluation"""
    variable: str
    """Name of an environment variable that the evaluation has"""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Target":
        return cls(**json.loads(text))


@dataclass(frozen=True)
class Attack:
    """One attack: `run(target)` returns what it got, "" for nothing, and may raise whatever refuses it."""

    name: str
    run: Callable[[Target], str]
    ends: bool = True
    """False: it never ends by itself; it has won when it can't be ended."""


ATTACKS: dict[str, Attack] = {}


def attack(function: Callable[[Target], str] | None = None, *, ends: bool = True):
    """Register a function as the attack of its name."""
    if function is None:
        return lambda f: attack(f, ends=ends)
    ATTACKS[function.__name__] = Attack(function.__name__, function, ends)
    return function


def load() -> dict[str, Attack]:
    """All attacks by name."""
    from simulators.sandbox_attacks import files, kernel, processes, resources, sockets  # noqa: F401  they register themselves

    return ATTACKS
