"""What every process of the product does the same way: die with its parent, stop on SIGTERM, say when it is ready."""
import asyncio
import json
import logging
import os
import signal
import sys

from venus_edge.launch import die_with_parent


def ready(**fields) -> None:
    """Print the one line on standard output that the supervisor waits for: READY and a JSON object."""
    print("READY " + json.dumps(fields), flush=True)


def done(**fields) -> None:
    """Print the line that tells the supervisor of a planned end, with the process's figures."""
    print("DONE " + json.dumps(fields), flush=True)


async def heartbeat(period_s: float = 2.0) -> None:
    """Tell the supervisor this process's metrics every `period_s`; run it as a task for as long as the process lives."""
    from venus_edge.metrics import METRICS

    while True:
        await asyncio.sleep(period_s)
        print("METRICS " + json.dumps(METRICS.snapshot()), flush=True)


async def until_stopped(*tasks: asyncio.Task) -> None:
    """Wait for SIGTERM or SIGINT, or for the first of `tasks` to end; re-raises that task's error."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for sig in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sig, stop.set)
    waiter = asyncio.ensure_future(stop.wait())
    done, _ = await asyncio.wait({waiter, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    waiter.cancel()
    for task in done - {waiter}:
        task.result()


def run(main) -> None:
    """Run the coroutine function `main` as a whole process; a VenusError becomes one line and exit status 2."""
    from venus_edge.errors import VenusError

    if os.environ.get("VENUS_SUPERVISED"):
        die_with_parent()
    code = 0
    try:
        asyncio.run(main())
    except VenusError as err:
        print(f"{err.code}: {err.message}", file=sys.stderr, flush=True)
        code = 2
    except KeyboardInterrupt:
        code = 130
    leave(code)


def leave(code: int) -> None:
    """End this process with `code`. Where LiveKit's native threads run, the interpreter is not taken down around them: one that
    calls back into it at that moment aborts the whole process, and its exit status with it."""
    if "livekit.rtc" in sys.modules:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
