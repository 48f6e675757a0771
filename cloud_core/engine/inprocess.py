"""The engine client's interface over a front end in this process: a test option, never the default."""
from cloud_core.engine.errors import OptionsRefused, SessionFailed, UnitRefused
from cloud_core.front_end import Decision, FrontEnd, FrontEndInfo, FrontEndSession, SessionOptions, UnitInput


class InProcessSession:
    def __init__(self, session: FrontEndSession, info: FrontEndInfo):
        self._session, self.info = session, info
        self._dead: Exception | None = None

    async def step(self, unit: UnitInput) -> Decision:
        if self._dead is not None:
            raise self._dead
        try:
            return self._session.step(unit)
        except Exception as err:
            if getattr(err, "code", "") == UnitRefused.code:
                raise UnitRefused(err.message, **err.data) from None
            self._dead = SessionFailed(f"internal error ({type(err).__name__})")
            raise self._dead from err

    async def close(self) -> None:
        self._dead = self._dead or SessionFailed("step after close")
        self._session.close()


class InProcessEngine:
    """Same methods as EngineClient; the caller owns the front end."""

    def __init__(self, front_end: FrontEnd):
        self._front_end = front_end

    async def info(self) -> FrontEndInfo:
        return self._front_end.info

    async def open(self, options: SessionOptions, step_s: float = 0.0) -> InProcessSession:
        try:
            return InProcessSession(self._front_end.open(options), self._front_end.info)
        except Exception as err:
            if getattr(err, "code", "") == OptionsRefused.code:
                raise OptionsRefused(err.message, **err.data) from None
            raise

    async def close(self) -> None:
        return None
