"""One run of the whole system: every process started, a scenario played in the simulated car, everything stopped, the result judged."""
import asyncio
import contextlib
import json
import signal
import sys
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from simulators import timeline
from simulators.console import Console, show
from venus_edge.clock import Clock, SystemClock
from venus_edge.errors import ConfigError, VenusError
from venus_edge.paths import out_dir
from venus_edge.settings import Settings
from venus_edge.stack import Stack
from venus_edge.supervisor import Child, Supervisor

GRACE_S = 30.0
"""What a run may take beyond the scenario's own `max_s` before it is ended."""


class RunFailed(VenusError):
    """The run did not come to its end: a process died or hung. What was recorded until then stays."""

    code = "run"
    advice = "Look into the named log in the run's folder."


@dataclass
class Run:
    """What a run left: its folder, the cabin's figures, every process's last metrics."""

    run_dir: Path
    done: dict = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    started_s: float = 0.0

    def events(self) -> list[timeline.Event]:
        return timeline.load(self.run_dir)


def new_run_dir(parent: Path | None = None) -> Path:
    """out/<time>/, created; a suffix keeps two runs of one second apart."""
    base = (parent or out_dir()) / datetime.now().strftime("%Y%m%d-%H%M%S")
    for k in range(100):
        path = base if k == 0 else base.with_name(f"{base.name}-{k}")
        try:
            path.mkdir(parents=True)
            return path
        except FileExistsError:
            continue
    raise ConfigError(f"out: no free folder beside {base}")


async def play(settings: Settings, scenario_path: Path, run_dir: Path, *, drive: dict[str, Any], max_s: float, console: Console | None = None,
               driver_wav: Path | None = None, listen: bool = False, clock: Clock | None = None) -> Run:
    """Start the system and the car, play to the end, stop all. Raises RunFailed, StartError, ConfigError; leaves no process."""
    clock = clock or SystemClock()
    begin = clock.now()
    run = Run(run_dir)
    drive_file = run_dir / "drive.json"
    drive_file.write_text(json.dumps(drive))
    died: asyncio.Future = asyncio.get_running_loop().create_future()

    def event(what: str, child: Child) -> None:
        if what == "ended" and child.name != "cabin" and not died.done():
            died.set_exception(RunFailed(f"{child.name} ended during the run (log: {child.name}.log)"))

    stopped = asyncio.Event()
    async with Supervisor(clock, on_event=event) as sup:
        stack = Stack(settings, sup, run_dir, trace=True)
        shown = asyncio.create_task(show(run_dir, clock, console, stopped)) if console else None
        try:
            await stack.start(drive=str(drive_file), beside=lambda: _cabin(stack, scenario_path, run_dir, driver_wav, listen))
            run.started_s = clock.now() - begin
            cabin = sup.children["cabin"]
            ended = asyncio.create_task(cabin.exited.wait())
            try:
                await asyncio.wait_for(asyncio.wait({ended, died}, return_when=asyncio.FIRST_COMPLETED), max_s + GRACE_S)
            except asyncio.TimeoutError:
                raise RunFailed(f"cabin: still running {GRACE_S:.0f} s after the scenario's max_s of {max_s:.0f} s") from None
            finally:
                ended.cancel()
            if died.done():
                died.result()
            if cabin.done is None:
                raise RunFailed(f"cabin: {cabin.tail[-1] if cabin.tail else 'ended'} (log: cabin.log)")
            run.done = cabin.done
            run.metrics = stack.metrics()
        finally:
            if not died.done():
                died.cancel()
            stopped.set()
            if shown:
                with contextlib.suppress(Exception):
                    await asyncio.wait_for(shown, 2.0)
    return run


async def _cabin(stack: Stack, scenario_path: Path, run_dir: Path, driver_wav: Path | None, listen: bool) -> None:
    env = {"VENUS_LIVEKIT_URL": stack.url, "VENUS_DEVICE_TOKEN": stack.token("device-car"), "VENUS_SCENARIO": str(scenario_path),
           "VENUS_OUT": str(run_dir), "VENUS_BUS_ADDR": stack.bus_addr, "VENUS_BUS_READ_TOKEN": stack.bus_read_token}
    if driver_wav:
        env["VENUS_DRIVER_WAV"] = str(driver_wav)
    if listen:
        env["VENUS_LISTEN"] = "1"
    await stack.sup.start(stack.spec("cabin", "simulators.car.cabin", env=env, ready_s=90))


async def once(settings: Settings, plan, scenario_path: Path, run_dir: Path, *, max_s: float, console: Console | None = None,
               driver_wav: Path | None = None, listen: bool = False, mutate_kind: str | None = None) -> dict[str, Any]:
    """Play `plan` (of `scenario_path`), judge it, write summary.json and report.html; the summary. Raises as `play` does."""
    run = await play(settings, scenario_path, run_dir, drive=plan.drive.drive_file(), max_s=max_s, console=console, driver_wav=driver_wav,
                     listen=listen)
    from simulators import report  # the judge's tools are heavy: the conversation doesn't wait for them
    from simulators.judge import judge, real_recogniser

    judgement = judge(None if driver_wav else plan, run.events(), run_dir / "speaker.wav", real_recogniser(), metrics=run.metrics,
                      mutate_kind=mutate_kind)
    summary = judgement.summary() | {"scenario": plan.name, "cabin": run.done, "started_s": round(run.started_s, 2)}
    (run_dir / "summary.json").write_text(json.dumps(summary, indent=1, ensure_ascii=False))
    report.write_report(run_dir, summary, title=plan.name)
    return summary


def interruptible(main) -> int:
    """Run the coroutine `main`; Ctrl-C or SIGTERM cancels it, so that everything it started is stopped."""

    async def guarded():
        task = asyncio.current_task()
        for sig in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(sig, task.cancel)
        return await main

    try:
        return asyncio.run(guarded())
    except asyncio.CancelledError:
        print("interrupted", file=sys.stderr)
        return 130
