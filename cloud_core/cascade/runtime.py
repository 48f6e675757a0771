"""The cascade as a front end: loads the models once, shares them among sessions. Entry point `venus.runtimes` → `cascade`."""
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from cloud_core.cascade.endpoint import EndpointSettings
from cloud_core.cascade.errors import BadOptions
from cloud_core.cascade.overlap import OverlapJudge, OverlapSettings
from cloud_core.cascade.session import CascadeSession
from cloud_core.cascade.smart_turn import SmartTurn
from cloud_core.cascade.understand import Policy, TemplatePolicy
from cloud_core.front_end import FrontEndInfo, SessionOptions
from cloud_core.speech import Recogniser, Voice
from venus_edge.clock import Clock, SystemClock
from venus_edge.wording import Wording

LANGUAGES = ("en",)


class CascadeSettings(BaseModel, extra="forbid"):
    """Options of the runtime; unknown names are refused."""

    unit_ms: int = Field(20, ge=20, le=200, multiple_of=20)
    """Every decision waits for the end of its unit, several times a turn: 20 ms answers 0.1 s sooner than 40 ms."""
    threads: int = Field(1, ge=1, le=16)
    """Threads of one recognition."""
    workers: int = Field(2, ge=1, le=16)
    """Recognitions at the same time, over all sessions: with one, a recognition given up delays the next."""
    speculate_ms: float = Field(64, ge=32, le=300)
    complete_ms: float = Field(240, ge=100, le=1000)
    may_go_on_ms: float = Field(440, ge=100, le=1500)
    finished_ms: float = Field(500, ge=200, le=2000)
    plain_ms: float = Field(900, ge=300, le=3000)
    broken_off_ms: float = Field(1400, ge=500, le=4000)
    long_ms: float = Field(720, ge=200, le=2000)
    hum_ms: float = Field(820, ge=200, le=2000)


@dataclass
class Parts:
    """What sessions share. Any of them may be replaced: the policy, the recogniser, the turn model, the pools."""

    recogniser: Recogniser
    voice: Voice
    smart_turn: SmartTurn
    policy: Policy
    wording: Wording
    hearing_pool: Executor
    speaking_pool: Executor
    clock: Clock
    unit_ms: int


class Cascade:
    """The front end. `close` ends the threads; open sessions then refuse further steps."""

    def __init__(self, parts: Parts, settings: CascadeSettings):
        self.parts, self.settings = parts, settings
        self.info = FrontEndInfo("cascade", settings.unit_ms, parts.voice.rate, LANGUAGES)
        self._sessions: list[CascadeSession] = []

    def open(self, options: SessionOptions) -> CascadeSession:
        """Raises BadOptions for a language that it can't hear and speak."""
        if options.lang not in LANGUAGES:
            raise BadOptions(f"lang: {options.lang!r}, allowed: {', '.join(LANGUAGES)}")
        if options.now_pos < 0:
            raise BadOptions(f"now_pos: {options.now_pos}, allowed: 0 or more")
        s = self.settings
        endpoint = EndpointSettings(s.speculate_ms, s.complete_ms, s.may_go_on_ms, s.finished_ms, s.plain_ms, s.broken_off_ms)
        session = CascadeSession(self.parts, options, endpoint, OverlapJudge(OverlapSettings(long_ms=s.long_ms, hum_ms=s.hum_ms)))
        self._sessions = [*(x for x in self._sessions if not x.closed), session]
        return session

    def close(self) -> None:
        for session in self._sessions:
            session.close()
        for pool in (self.parts.hearing_pool, self.parts.speaking_pool):
            pool.shutdown(wait=False, cancel_futures=True)


def create(settings: dict | None = None, clock: Clock | None = None) -> Cascade:
    """Load the cascade. Raises BadOptions (naming the setting) and the errors of a missing or altered model."""
    try:
        chosen = CascadeSettings(**(settings or {}))
    except ValidationError as err:
        first = err.errors()[0]
        name = ".".join(str(p) for p in first["loc"])
        allowed = ", ".join(CascadeSettings.model_fields) if first["type"] == "extra_forbidden" else first["msg"]
        raise BadOptions(f"cascade setting {name}: {first.get('input')!r}, allowed: {allowed}") from None
    parts = Parts(Recogniser(threads=chosen.threads, workers=chosen.workers), Voice(), SmartTurn(), TemplatePolicy(),
                  Wording(Path(__file__).with_name("wording.toml")), ThreadPoolExecutor(chosen.workers, "hear"),
                  ThreadPoolExecutor(1, "speak"), clock or SystemClock(), chosen.unit_ms)
    return Cascade(parts, chosen)
