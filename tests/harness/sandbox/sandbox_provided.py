"""A skill that uses a provider, for the tests of the sandbox."""
from pathlib import Path

from harness.skill import Effects, Result, Skill


class Places:
    def __init__(self, path):
        self._file = open(path, encoding="utf-8")

    def text(self):
        self._file.seek(0)
        return self._file.read()


def open_places(cache_dir):
    return Places(cache_dir / "places")


class Provided(Skill):
    id = "box.provided"
    version = "1"
    summary = {"en": "For tests.", "zh": "测试用。"}
    wording = Path(__file__).with_name("sandbox_wording.toml")
    effects = Effects(uses=("places",))

    class Result(Result):
        value: str

    async def run(self, args, ctx):
        return self.Result(value=ctx.places.text())


SKILLS = [Provided]
