"""A foreign bundle: described and run in locked processes only."""
from pathlib import Path
from typing import Literal, Optional

from pydantic import Field, field_validator

from harness.skill import Args, Effects, Result, Skill


class Warm(Skill):
    id = "foreign.warm"
    version = "1"
    summary = {"en": "Warms.", "zh": "加热。"}
    wording = Path(__file__).with_name("sandbox_wording.toml")
    effects = Effects(actuates=("Vehicle.Cabin.HVAC.**",))
    retries = 0
    derived = frozenset({"row"})

    class Args(Args):
        celsius: float = Field(ge=16, le=30)
        row: Literal["front", "rear"] = "front"
        seat: Optional[int] = Field(default=None, ge=1, le=3)

        @field_validator("celsius")
        @classmethod
        def halves(cls, value):
            if value * 2 % 1:
                raise ValueError("steps of a half")
            return value

    class Result(Result):
        celsius: float

    async def run(self, args, ctx):
        return self.Result(celsius=args.celsius)


SKILLS = [Warm]
