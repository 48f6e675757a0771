"""The automotive skills in their real processes, on the real map, beside a hung skill."""
import asyncio
import tomllib
from pathlib import Path

import pytest

from harness.execute.registry import Registry
from harness.execute.runner import SkillRunner
from harness.execute.testing import MemoryBus
from harness.task import SkillCall

POINTS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["entry-points"]
NAVIGATION = "Vehicle.Cabin.Infotainment.Navigation.DestinationSet."


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    from skills_automotive.testing import build_map
    return build_map(tmp_path_factory.mktemp("cache"))


async def test_find_go_and_supersede_on_the_real_map_while_another_skill_hangs(cache):
    """The charger, then the casino instead, four calls at a time: real streets, right destination, memory carried over."""
    bus = MemoryBus({"Vehicle.CurrentLocation.Latitude": 43.7316, "Vehicle.CurrentLocation.Longitude": 7.4163,
                     "Vehicle.CurrentLocation.Heading": 90.0, "Vehicle.Speed": 50.0})
    registry = Registry.from_modules([*POINTS["venus.skills"].values(), "execute_skills"], POINTS["venus.providers"])
    runner = SkillRunner(registry, lambda call: bus, cache_dir=cache)
    await runner.start()

    async def ask(skill, arguments, memory=None):
        return await runner.run(SkillCall(skill, arguments, "t", 1, "en", "driver", memory or {}, 0.0))

    try:
        hung = asyncio.ensure_future(ask("test.hang", {}))
        found = await ask("navigation.find_and_go", {"query": "charging station"})
        assert found.ok and found.text.startswith("The nearest charging station is on ") and "minute" in found.text
        assert found.memory["destination"]["kind"] == "charging_station"
        instead = await ask("navigation.go", {"destination": "the casino"}, found.memory)
        assert instead.text.startswith("Taking you to the Casino de Monte Carlo by ")
        assert abs(bus.values[NAVIGATION + "Latitude"] - 43.73916) < 1e-4
        many = await asyncio.gather(*(ask("navigation.status", {"what": "eta"}, instead.memory) for _ in range(4)))
        assert len({outcome.text for outcome in many}) == 1 and many[0].text.startswith("We arrive at the Casino")
        assert (await hung).code == "timeout"
    finally:
        await runner.close()
