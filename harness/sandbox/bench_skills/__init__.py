"""The skills that `venus bench sandbox` calls: one that answers at once, and one that stays busy in a chosen way until it is killed."""
import asyncio
import os
import signal
import threading
import time
from pathlib import Path
from typing import Literal

from pydantic import Field

from harness.skill import Args, Result, Skill

WAYS = ("loop", "sleep", "deaf", "memory", "threads", "output", "wait")
FILLED = 100 << 20
"""Bytes that the `memory` way holds when it is killed."""


class _Bench(Skill):
    version = "1"
    summary = {"en": "Used by the sandbox's bench.", "zh": "供沙箱测速使用。"}
    wording = Path(__file__).with_name("wording.toml")


class Call(_Bench):
    id = "bench.call"

    class Args(Args):
        celsius: float = Field(default=21.0, ge=16, le=30)
        zone: Literal["driver", "passenger"] = "driver"

    class Result(Result):
        celsius: float
        zone: str

    async def run(self, args, ctx):
        return self.Result(celsius=args.celsius, zone=args.zone)


class Stay(_Bench):
    id = "bench.stay"
    timeout_s = 10.0

    class Args(Args):
        way: Literal[WAYS]

    async def run(self, args, ctx):
        if args.way == "deaf":
            for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(number, signal.SIG_IGN)
        if args.way == "memory":
            filled = bytearray(os.urandom(4096)) * (FILLED // 4096)
            ctx.progress("filled", size=len(filled))
        if args.way == "threads":
            for _ in range(16):
                threading.Thread(target=_spin, daemon=True).start()
        if args.way == "wait":
            await asyncio.sleep(60)
        while args.way == "output":
            ctx.progress("more", text="x" * 500)
            await asyncio.sleep(0.001)
        while args.way in ("sleep", "deaf"):
            try:
                time.sleep(60)
            except BaseException:
                continue
        _spin()


def _spin() -> None:
    while True:
        pass


SKILLS = [Call, Stay]
