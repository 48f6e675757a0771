"""`venus eval sandbox`: attacks of a malicious skill, each first shown to work outside the sandbox, then tried inside, as root and as an
ordinary user. What counts is what happened: the attack's own account, and beside it what is seen from the outside after each one (the
secret, a victim process, files left, processes left, effects on the car, the host's memory, whether the call ended when it had to).

Figures: `attacks` (kinds of attack), `escaped` (attack and user), `untried` (did not work even outside for no user: shows nothing).
"""
import argparse
import asyncio
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from harness.execute.describe import described
from harness.execute.registry import RegistrySpec
from harness.execute.runner import GRACE_S, HOST_CALLS_LIMIT, SkillRunner
from harness.execute.testing import MemoryBus
from harness.sandbox.policy import LAYERS, Sandbox, Trust
from harness.skill import SkillContext
from harness.task import SkillCall, SkillOutcome
from simulators.sandbox_attacks import Target, load
from simulators.sandbox_users import NOBODY
from venus_edge import bench
from venus_edge.errors import ConfigError

VARIABLE = "VENUS_SANDBOX_SECRET_OF_THE_EVALUATION"
HOST_WAYS = ("flood", "undeclared", "output", "argument")
IMPORT_WAYS = ("import", "unlock")
CONTROL_S, ENDLESS_S, LATE_S = 20.0, 0.5, 1.5
HOST_MEMORY = 96 << 20
"""Bytes by which the host may grow over one attack."""
TOGETHER = {"landlock": {"landlock", "view"}, "netns": {"netns", "seccomp"}, "fds": {"fds"}}
"""Layers that keep the same promise fall together: it is the promise that must be missed."""
MUTATIONS = ("seccomp", "landlock", "pidns", "rlimits", "env")


def run(argv: list[str]) -> int:
    """Attacks on the skill sandbox, each shown to work outside first; counts those that work inside."""
    parser = argparse.ArgumentParser(
        prog="venus eval sandbox", description=run.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n  venus eval sandbox --json\n  venus eval sandbox --only fork_bomb,proc\n"
               "  venus eval sandbox --mutate seccomp     (one layer off: must report escapes)\n"
               "exit status: 0 nothing escaped and everything was tried (--mutate: something escaped); 1 otherwise; 2 bad input")
    parser.add_argument("--users", choices=("all", "self"), default="all",
                        help="all: root and an ordinary user; self: only who runs this (default all)")
    parser.add_argument("--only", metavar="ATTACKS", help="names, separated by commas")
    parser.add_argument("--mutate", metavar="LAYER", help=f"switch a layer off, and those that back it up: {', '.join(LAYERS)}")
    parser.add_argument("--json", action="store_true", help="print one JSON line and nothing else")
    args = parser.parse_args(argv)
    names = [*load(), *(f"host_{way}" for way in HOST_WAYS), *(f"code_{way}" for way in IMPORT_WAYS)]
    chosen = args.only.split(",") if args.only else names
    for name in chosen:
        if name not in names:
            raise ConfigError(f"--only: {name!r} is not one of {', '.join(names)}")
    if args.mutate and args.mutate not in LAYERS:
        raise ConfigError(f"--mutate: {args.mutate!r} is not one of {', '.join(LAYERS)}")
    began = time.monotonic()
    logger = logging.getLogger("harness")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # every attack ends as a failed skill
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # also then nothing is left behind
    try:
        figures = asyncio.run(_evaluate(chosen, args.mutate or ""))
    finally:
        signal.signal(signal.SIGTERM, before)
        logger.setLevel(level)
    if args.users == "all" and os.geteuid() == 0:
        _join(figures, _as_ordinary_user(argv))
    elif args.users == "all":
        figures["not_tried"] = ["root: this was not started as root"]
    untried = [name for name in chosen if not any(user["control"].get(name) for user in figures["users"].values())]
    escapes = sum(found["result"] == "escaped" for user in figures["users"].values() for found in user["attacks"].values())
    line = bench.line("eval.sandbox", {"attacks": len(chosen), "escaped": escapes, "untried": untried,
                                       **({"mutate": args.mutate} if args.mutate else {}), "took_s": round(time.monotonic() - began, 1), **figures})
    _print(line, args.json)
    if args.mutate:
        return 0 if escapes else 1
    return 1 if escapes or untried else 0


async def _evaluate(names: list[str], mutate: str) -> dict:
    """{"users": {this user: {"layers", "without", "control", "attacks"}}}"""
    sandbox = dict(trust=Trust.UNTRUSTED, off=frozenset(TOGETHER.get(mutate, {mutate} if mutate else ())), allow_missing=bool(mutate))
    control, results = {}, {}
    with World() as world:
        lock = Sandbox(data=(str(world.readable),), **sandbox)
        registries = [await described(RegistrySpec((f"simulators.sandbox_attacks.{module}:SKILLS",)), lock) for module in ("skills", "at_import")]
        runners = [SkillRunner(registry, lambda call: world.bus, sandbox=lock) for registry in registries]
        await asyncio.gather(*(runner.start() for runner in runners))
        try:
            for number, name in enumerate(names):
                if number % 10 == 0:
                    print(f"as user {os.geteuid()}: {number} of {len(names)} attacks", file=sys.stderr)
                world.renew()
                control[name] = await asyncio.to_thread(_control, name, world)
                world.renew()
                results[name] = await _inside(name, world, runners[name.startswith("code_")])
            layers = runners[0].layers
        finally:
            await asyncio.gather(*(runner.close() for runner in runners))
    return {"users": {str(os.geteuid()): {
        "layers": [layer.name for layer in layers if layer.active],
        "without": [f"{layer.name}: {layer.why}" for layer in layers if not layer.active], "control": control, "attacks": results}}}


class World:
    """What attacks aim at, made anew for each of them; everything goes when it is left."""

    def __enter__(self) -> "World":
        os.environ[VARIABLE] = "leaked"
        self.folder = Path(tempfile.mkdtemp(prefix="venus-attacks-"))
        self.readable, self.outside = self.folder / "readable", self.folder / "outside"
        for folder in (self.readable, self.outside):
            folder.mkdir()
        self.secret = self.folder / "secret"
        self.secret.write_text("a secret of this user")
        self.secret.chmod(0o600)
        (self.readable / "open").write_text("for everyone")
        (self.readable / "link").symlink_to(self.secret)
        self.abstract = self.folder.name
        self._listeners = [_listen(socket.AF_INET, ("127.0.0.1", 0)), _listen(socket.AF_UNIX, "\0" + self.abstract)]
        self.victim = subprocess.Popen(["sleep", "120"])
        self.bus = MemoryBus()
        return self

    def __exit__(self, *_) -> None:
        self.victim.kill()
        self.victim.wait()
        for listener in self._listeners:
            listener.shutdown(socket.SHUT_RDWR)  # a thread waits in it: closing alone would leave it there
            listener.close()
        del os.environ[VARIABLE]
        shutil.rmtree(self.folder)

    def renew(self) -> None:
        if self.victim.poll() is not None:
            self.victim = subprocess.Popen(["sleep", "120"])
        for path in self.outside.iterdir():
            path.unlink()
        self.secret.chmod(0o600)
        self.bus = _CountingBus({"Vehicle.Speed": 0.0, "Vehicle.Cabin.Door.Row1.DriverSide.IsOpen": False})

    def target(self) -> Target:
        return Target(str(self.secret), str(self.readable), str(self.outside), self._listeners[0].getsockname()[1], self.abstract, self.victim.pid,
                      os.getpid(), VARIABLE)

    def damage(self) -> list[str]:
        """What an attack did that can be seen from here."""
        found = []
        if self.victim.poll() is not None:
            found.append("the victim was ended")
        found += [f"left {path.name}" for path in self.outside.iterdir()]
        if self.bus.actuated:
            found.append("the car was moved")
        if self.bus.read > HOST_CALLS_LIMIT:
            found.append(f"{self.bus.read} host calls reached the car")
        return found


class _CountingBus(MemoryBus):
    read = 0

    async def get(self, *paths):
        self.read += 1
        return await super().get(*paths)


def _listen(family: int, address) -> socket.socket:
    """A service that greets whoever connects, until it is closed."""
    listener = socket.socket(family)
    listener.bind(address)
    listener.listen(8)

    def serve() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with sock:
                sock.sendall(b"reached")

    threading.Thread(target=serve, daemon=True).start()
    return listener


def _control(name: str, world: World) -> str:
    """What the attack gets in a plain process of this user; "" when it gets nothing there either."""
    if name.startswith("host_"):
        return asyncio.run(_careless(name.removeprefix("host_"), world))
    attack = None if name.startswith("code_") else load()[name]
    child = subprocess.Popen([sys.executable, "-m", "simulators.sandbox_attacks", name, world.target().to_json()], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    try:
        if attack is None or attack.ends:
            return child.communicate(timeout=CONTROL_S)[0].removeprefix("ready\n").strip()
        child.stdout.readline()
        time.sleep(ENDLESS_S)
        if name == "deaf":
            child.terminate()
            time.sleep(ENDLESS_S)
        return "goes on" if child.poll() is None else ""
    except subprocess.TimeoutExpired:
        return ""
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


async def _careless(way: str, world: World) -> str:
    """The same skill on a host that checks and counts nothing."""
    from simulators.sandbox_attacks.skills import Host

    async def nowhere():
        return None

    bus = MemoryBus(world.bus.values)
    context = SkillContext("t", 1, "en", "driver", nowhere, bus, None, None, lambda outcome, **fields: None, {})
    return (await Host().run(Host.Args(way=way), context)).got


async def _inside(name: str, world: World, runner: SkillRunner) -> dict:
    """{"result": "held" | "escaped", "how": why, "code": the call's outcome}"""
    kind, _, way = name.partition("_")
    endless = name in load() and not load()[name].ends
    target = json.loads(world.target().to_json())
    skill, arguments = {"host": ("attack.host", {"way": way}), "code": ("attack.imported", {"way": way, "target": target})}.get(
        kind, ("attack.run", {"name": name, "target": target}))
    call = SkillCall(skill, arguments, name, 1, "en", "driver", {}, ENDLESS_S if endless else 0.0)
    before, pids, began = _resident(), {process.pid for process in runner._pool._zygote.idle}, time.monotonic()
    outcome: SkillOutcome = await runner.run(call)
    took = time.monotonic() - began
    limit = (ENDLESS_S if endless else runner.registry.get(call.skill_id).timeout_s) + GRACE_S + LATE_S
    got = outcome.result.get("got", "") if outcome.ok else ""
    await asyncio.sleep(0.1)
    found = [*([f"got {got}"] if got else []), *world.damage()]
    if took > limit:
        found.append(f"ended only after {took:.1f} s")
    taken = pids - {process.pid for process in runner._pool._zygote.idle}
    if alive := [pid for pid in taken if _lives(pid)]:
        found.append(f"process {alive[0]} goes on")
    if (grown := _resident() - before) > HOST_MEMORY:
        found.append(f"the host grew by {grown >> 20} MB")
    return {"result": "escaped" if found else "held", **({"how": "; ".join(found)} if found else {}), "code": outcome.code or outcome.outcome}


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _as_ordinary_user(argv: list[str]) -> dict:
    """The same evaluation in a child process that runs as nobody; raises ConfigError with what stopped it."""
    rest = [word for word in argv if word != "--json"]
    done = subprocess.run([sys.executable, "-m", "simulators.sandbox_users", str(NOBODY), "-m", "simulators.eval_sandbox", *rest, "--json"],
                          stdout=subprocess.PIPE, text=True, check=False, timeout=600)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise ConfigError(f"the evaluation as user {NOBODY} ended with status {done.returncode}; see the lines above") from None


def _join(figures: dict, other: dict) -> None:
    figures["users"] |= other["users"]


def _print(line: dict, as_json: bool) -> None:
    if as_json:
        print(json.dumps(line))
        return
    users = line["users"]
    for user, found in users.items():
        print(f"user {user}: {', '.join(found['layers'])}; without {'; '.join(found['without']) or 'none'}")
    for name in next(iter(users.values()))["attacks"]:
        cells = [f"{found['attacks'][name]['result']:8} ({'works' if found['control'][name] else 'fails'} outside)" for found in users.values()]
        print(f"{name:18} {'  '.join(cells)}")
    untried = f"; shown to work for no user: {', '.join(line['untried'])}" if line["untried"] else ""
    print(f"{line['attacks']} attacks, {line['escaped']} escaped{untried}")


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
