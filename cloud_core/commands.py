"""`venus up` and `venus token`."""
import argparse
import asyncio
import json
import os
import signal
import sys
from datetime import datetime
from pathlib import Path

from venus_edge import bind
from venus_edge.errors import ConfigError
from venus_edge.paths import cache_dir, out_dir
from venus_edge.settings import Settings
from venus_edge.stack import Stack
from venus_edge.supervisor import Supervisor
from venus_edge.tokens import mint, parse_ttl


def state_file() -> Path:
    """Where a running `venus up` leaves how to join it (mode 0600: it holds the key)."""
    return cache_dir() / "run" / "up.json"


def up(argv: list[str]) -> int:
    """Start the system without the car and the people; print the room, URL, health and how to join."""
    parser = argparse.ArgumentParser(
        prog="venus up", description=up.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n  venus up\n  VENUS_LIVEKIT_PORT=7880 venus up --json\n  venus say \"Set the temperature to twenty-two degrees\"   (from another terminal)")
    parser.add_argument("--config", metavar="FILE", help="settings file")
    parser.add_argument("--json", action="store_true", help="print one JSON object when it serves, then nothing")
    args = parser.parse_args(argv)
    return asyncio.run(_up(Settings.load(args.config), args.json))


async def _up(settings: Settings, as_json: bool) -> int:
    from aiohttp import web

    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for sig in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sig, stop.set)
    host, port = bind.check_bind(settings.health_addr, "health_addr")
    if port:
        bind.check_free(port, "health_addr")  # before ten seconds of starting
    if (other := running()) is not None:
        raise ConfigError(f"another `venus up` is running (pid {other['pid']}); stop it, or choose another VENUS_CACHE")

    def event(what: str, child) -> None:
        if not as_json:
            print(f"{what:>8}  {child.name}{f'  (restart {child.restarts})' if child.restarts else ''}", flush=True)

    run_dir = out_dir() / datetime.now().strftime("up-%Y%m%d-%H%M%S")
    async with Supervisor(on_event=event) as sup:
        stack = Stack(settings, sup, run_dir, restart=True)
        starting = asyncio.create_task(stack.start())
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            return 130
        starting.result()

        async def healthz(_):
            states = {c.name: c.state for c in sup.children.values()}
            good = all(s == "serving" for s in states.values())
            return web.json_response({"ok": good, "processes": states, "restarts": sum(c.restarts for c in sup.children.values())},
                                     status=200 if good else 503)

        async def metrics(_):
            return web.Response(text="".join(f"{k} {v:g}\n" for k, v in sorted(stack.metrics().items())))

        app = web.Application()
        app.add_routes([web.get("/healthz", healthz), web.get("/metrics", metrics)])
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as err:
            raise ConfigError(f"health_addr: port {port} is busy on {host}; choose another, or 0 for a free one") from err
        health = f"http://{host}:{site._server.sockets[0].getsockname()[1]}"
        state = {"room": settings.room, "url": stack.url, "health": f"{health}/healthz", "metrics": f"{health}/metrics", "key": stack.key,
                 "secret": stack.secret, "bus_addr": stack.bus_addr, "bus_read_token": stack.bus_read_token, "pid": os.getpid(),
                 "processes": {c.name: c.proc.pid for c in sup.children.values()}}
        path = state_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(f".{os.getpid()}")
        half.unlink(missing_ok=True)
        with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as f:
            json.dump(state, f)
        os.replace(half, path)  # whole or not at all, and never with the wider mode of an older file
        try:
            if as_json:
                print(json.dumps({k: v for k, v in state.items() if k not in ("secret", "bus_read_token")}), flush=True)
            else:
                print(f"\nroom     {settings.room}\nurl      {stack.url}\nhealth   {health}/healthz\nmetrics  {health}/metrics\nlogs     {os.path.relpath(run_dir)}\n"
                      f"join     venus token --identity my-device --ttl 10m\nsay      venus say \"How fast are we going?\"\nstop     Ctrl-C\n", flush=True)
            await stop.wait()
        finally:
            if (running() or {}).get("pid") == os.getpid():
                path.unlink(missing_ok=True)
            await runner.cleanup()
    if not as_json:
        print("stopped", flush=True)
    return 0


def running() -> dict | None:
    """What a running `venus up` left, or None."""
    try:
        state = json.loads(state_file().read_text())
        os.kill(state["pid"], 0)
        return state
    except (OSError, ValueError, KeyError):
        return None


def token(argv: list[str]) -> int:
    """Make a least-privilege join token for a device."""
    parser = argparse.ArgumentParser(
        prog="venus token", description=token.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n  venus token --identity device-42 --ttl 10m\n  venus token --identity device-42 --json\n"
               "The key and secret are those of the running `venus up`, else livekit_key and livekit_secret of the settings.")
    parser.add_argument("--identity", required=True, help="the device's identity, unique in the room: letters, digits, '.', '_', '-'")
    parser.add_argument("--ttl", default="10m", help="how long it may be used to join: 10s to 1h (default 10m)")
    parser.add_argument("--role", default="device", choices=("device", "observer"), help="default: device")
    parser.add_argument("--config", metavar="FILE", help="settings file")
    parser.add_argument("--json", action="store_true", help="one JSON object with url, room, identity, token")
    args = parser.parse_args(argv)
    settings = Settings.load(args.config)
    state = running()
    secret = settings.livekit_secret or (state or {}).get("secret", "")
    if not secret:
        raise ConfigError("livekit_secret: not set, and no `venus up` is running; set VENUS_LIVEKIT_SECRET (32 characters or more)")
    ttl = parse_ttl(args.ttl)
    key = settings.livekit_key if settings.livekit_secret else state["key"]
    room = settings.room if settings.livekit_secret else state["room"]
    made = mint(key, secret, identity=args.identity, room=room, role=args.role, ttl_s=ttl)
    if args.json:
        print(json.dumps({"url": settings.livekit_url or (state or {}).get("url", ""), "room": room, "identity": args.identity, "ttl_s": ttl, "token": made}))
    else:
        print(made)
    return 0


if __name__ == "__main__":
    sys.exit(up(sys.argv[1:]))
