"""What every process of the product does the same way: die with its parent, stop on SIGTERM, say when it is ready."""
import asyncio
import json
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
    try:
        asyncio.run(main())
    except VenusError as err:
        print(f"{err.code}: {err.message}", file=sys.stderr, flush=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
