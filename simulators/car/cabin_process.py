"""The cabin as a process: joins the room as the device, plays a scenario (or a real driver's recording), records, ends by itself.

Settings: VENUS_LIVEKIT_URL, VENUS_DEVICE_TOKEN, VENUS_SCENARIO (path), VENUS_OUT (folder for the recordings), VENUS_BUS_ADDR and
VENUS_BUS_READ_TOKEN (speed; without them the scenario's own plan), VENUS_DRIVER_WAV (a recording in place of the script),
VENUS_LISTEN=1 (play live), VENUS_AGENT_WAIT_S, VENUS_TRACE_DIR.
"""
import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from device_sdk import Device, DeviceSettings
from simulators import scenario as scenarios
from simulators.car.acoustics import MIC_RATE, CabinSettings
from simulators.car.cabin import Cabin
from simulators.car.cabin_speed import BusSpeed
from simulators.car.listen import LiveOut
from simulators.car.script import ScriptedPeople, from_recording, from_scenario
from venus_edge import logs, loop_monitor, process
from venus_edge.clock import SystemClock
from venus_edge.errors import ConfigError, VenusError
from venus_edge.trace import Trace

AGENT_WAIT_S = 60.0


class CabinEnded(VenusError):
    """The room or the agent went away before the script was over."""

    code = "cabin"
    advice = "Look into the worker's and the server's logs."


@dataclass(frozen=True)
class Options:
    """The process's settings, checked: a missing or wrong one raises ConfigError naming the variable."""

    url: str
    token: str
    scenario: scenarios.Scenario
    out: Path
    bus_addr: str = ""
    bus_token: str = ""
    driver_wav: Path | None = None
    listen: bool = False
    agent_wait_s: float = AGENT_WAIT_S

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "Options":
        def need(name: str, what: str) -> str:
            if not env.get(name):
                raise ConfigError(f"{name}: missing; set it to {what}")
            return env[name]

        wait = env.get("VENUS_AGENT_WAIT_S", str(AGENT_WAIT_S))
        try:
            seconds = float(wait)
        except ValueError:
            seconds = -1.0
        if not 0 < seconds <= 600:
            raise ConfigError(f"VENUS_AGENT_WAIT_S: {wait!r}; allowed: above 0 to 600 seconds")
        listen = env.get("VENUS_LISTEN", "")
        if listen not in ("", "0", "1"):
            raise ConfigError(f"VENUS_LISTEN: {listen!r}; allowed: 0, 1")
        wav = env.get("VENUS_DRIVER_WAV", "")
        return cls(need("VENUS_LIVEKIT_URL", "the room server's ws:// or wss:// URL"), need("VENUS_DEVICE_TOKEN", "a device token"),
                   scenarios.load(need("VENUS_SCENARIO", "a scenario file")), Path(need("VENUS_OUT", "the folder for the recordings")),
                   env.get("VENUS_BUS_ADDR", ""), env.get("VENUS_BUS_READ_TOKEN", ""), Path(wav) if wav else None,
                   listen == "1", seconds)


def _script(options: Options) -> ScriptedPeople:
    """Loads every line's sound; slow only where the voices were not prepared."""
    if options.driver_wav is not None:
        from simulators.people import recording

        lines = from_recording(recording.utterances(options.driver_wav))
    else:
        lines = from_scenario(options.scenario)
    return ScriptedPeople(lines, Trace("people"))


async def main() -> None:
    logs.setup("cabin")
    options, clock = Options.from_env(os.environ), SystemClock()
    plan = options.scenario.cabin
    settings = CabinSettings(plan.noise_db_at_50, plan.echo_db, plan.dac_delay_ms)
    live = LiveOut() if options.listen else None
    script = await asyncio.to_thread(_script, options)
    trace = Trace("device")
    device = Device(DeviceSettings(dac_delay_s=plan.dac_delay_ms / 1000), clock, trace)
    begun: list[int] = []
    tasks = [asyncio.create_task(process.heartbeat()), asyncio.create_task(loop_monitor.watch("cabin", trace))]
    if options.bus_addr:
        speed = BusSpeed(options.bus_addr, options.bus_token, clock)
        tasks.append(asyncio.create_task(speed.run()))
    else:
        def speed() -> float:
            return options.scenario.drive.kmh((device.pos - begun[0]) / MIC_RATE if begun else 0.0)
    cabin = await asyncio.to_thread(lambda: Cabin(device, script, settings, clock=clock, seed=options.scenario.seed, speed=speed,
                                                  out_dir=options.out, listen=live.play if live else None))
    lost: list[str] = []
    joined = asyncio.Event()

    def event(e) -> None:
        if joined.is_set() and (e["ev"] == "link" and e.get("state") == "lost" or e["ev"] == "bye"):
            lost.append(f"{e['ev']} {e.get('reason', '')}".strip())

    device.on_event = event
    try:
        await device.connect(options.url, options.token)
        def over() -> bool:
            played = begun and cabin.pos - begun[0] >= options.scenario.max_s * MIC_RATE
            return bool(lost or played or (begun and cabin.finished))

        sound = asyncio.create_task(cabin.run(options.agent_wait_s + options.scenario.max_s, over))
        tasks.append(sound)
        await _watched(device.wait_ready(options.agent_wait_s), tasks)
        joined.set()
        process.ready(pos=device.pos)
        begun.append(cabin.pos)
        cabin.begin()
        await process.until_stopped(sound, *tasks)
        if lost:
            raise CabinEnded(f"the session ended before the script: {lost[0]}")
    finally:
        cabin.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with contextlib.suppress(Exception):
            await asyncio.wait_for(device.close(), 1.0)
        if live is not None:
            live.close()
    process.done(**cabin.figures.row(), script_done=script.done, pos=cabin.pos)
    sys.stdout.flush()


async def _watched(waiting, tasks: list[asyncio.Task]) -> None:
    """Wait, but not longer than every task of `tasks` lives: one that fails (the bus refuses us) ends the wait with its error."""
    waiter = asyncio.ensure_future(waiting)
    await asyncio.wait({waiter, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        if task.done():
            waiter.cancel()
            task.result()
            raise CabinEnded("the sound loop ended before an agent came")
    await waiter
