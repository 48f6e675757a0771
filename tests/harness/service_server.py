"""A delegation service of scripted skills over an SQLite journal, as a process that a test may kill:  service_server.py ADDR JOURNAL"""
import asyncio
import sys

from harness import SkillSpec
from harness.journal.sqlite import SqliteStore
from harness.service.testing import scripted_service
from harness.testing import Script
from venus_edge import process

SPECS = (SkillSpec("fan.set"), SkillSpec("slow.find", timeout_s=20.0))
SCRIPTS = {"fan.set": Script("The fan is at three."), "slow.find": Script("Found it.", after_s=0.5)}


async def main() -> None:
    async with scripted_service(SCRIPTS, specs=SPECS, store=SqliteStore(sys.argv[2]), addr=sys.argv[1]) as world:
        process.ready(addr=world.addr)
        await process.until_stopped()


if __name__ == "__main__":
    process.run(main)
