"""Skills for the tests of the sandbox; imported by locked processes."""
import asyncio
import os
import signal
import socket
import threading
from pathlib import Path
from typing import Any

from harness.skill import Args, Result, Skill

COUNT = [0]


class Anything(Result):
    value: Any = None


class _Base(Skill):
    version = "1"
    summary = {"en": "For tests.", "zh": "测试用。"}
    wording = Path(__file__).with_name("sandbox_wording.toml")
    Result = Anything
    timeout_s = 3.0
    retries = 0


class Count(_Base):
    """How often this very process was called."""

    id = "box.count"

    class Args(Args):
        leave: str = ""

    async def run(self, args, ctx):
        COUNT[0] += 1
        if args.leave == "thread":
            threading.Thread(target=threading.Event().wait, daemon=True).start()
        elif args.leave == "task":
            asyncio.ensure_future(asyncio.sleep(60))
        elif args.leave == "error":
            raise KeyError("a word of the user")
        return self.Result(value=COUNT[0])


class Loop(_Base):
    id = "box.loop"
    timeout_s = 0.3

    async def run(self, args, ctx):
        while True:
            pass


class Look(_Base):
    """What a locked process can see and do."""

    id = "box.look"

    class Args(Args):
        data: str

    async def run(self, args, ctx):
        import colorsys  # nobody has it loaded: the library can be read

        def refused(what, *arguments):
            try:
                what(*arguments)
            except OSError as err:
                return type(err).__name__
            return ""

        return self.Result(value={
            "pid": os.getpid(), "parent": os.getppid(), "environment": sorted(os.environ), "library": colorsys.__name__,
            "data": Path(args.data).read_text(), "passwd": refused(open, "/etc/passwd"), "write": refused(open, args.data, "w"),
            "socket": refused(socket.socket), "fork": refused(os.fork), "chmod": refused(os.chmod, args.data, 0o777),
            "root": refused(os.listdir, "/"), "descriptors": [n for n in range(3, 64) if not refused(os.fstat, n)]})


class Siblings(_Base):
    """Signals every process that it can name."""

    id = "box.siblings"

    async def run(self, args, ctx):
        sent = []
        for pid in [*range(1, 200), -1]:
            if pid == os.getpid():
                continue
            try:
                os.kill(pid, signal.SIGKILL)
                sent.append(pid)
            except OSError:
                continue
        return self.Result(value=sent)


class Wait(_Base):
    id = "box.wait"

    class Args(Args):
        seconds: float

    async def run(self, args, ctx):
        await asyncio.sleep(args.seconds)
        return self.Result(value="waited")


class EndTemplate(_Base):
    id = "box.leave"

    async def run(self, args, ctx):
        os._exit(3)


SKILLS = [Count, Loop, Look, Siblings, Wait, EndTemplate]
