"""`venus harness serve`: the installed skills behind the delegation service."""
import argparse
import asyncio
import os

from venus_edge import logs, process
from venus_edge.bind import check_bind
from venus_edge.clock import SystemClock
from venus_edge.errors import ConfigError
from venus_edge.launch import die_with_parent
from venus_edge.paths import cache_dir

RUNNING_PER_TENANT = 6
"""Of the eight skill processes that run at once."""


def serve(argv: list[str]) -> int:
    """The harness as a gRPC service, for front ends that are not ours."""
    parser = argparse.ArgumentParser(
        prog="venus harness serve", description=serve.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n  venus harness serve --listen 127.0.0.1:50561\n  venus harness serve --journal harness.db --tokens tokens.json\n"
               "  venus harness serve --listen 0.0.0.0:50561 --tokens tokens.json --tls-cert cert.pem --tls-key key.pem\n"
               "Prints READY and the address when it serves. Tokens: a JSON object {token: tenant}, in the file or in VENUS_DELEGATION_TOKENS.\n"
               "Skills that need a car answer that none is connected. exit status: 0 stopped; 2 bad input")
    parser.add_argument("--listen", metavar="HOST:PORT", default="127.0.0.1:50561", help="address (default %(default)s); port 0 takes a free one")
    parser.add_argument("--journal", metavar="STORE", default="memory",
                        help="where requests survive a crash: a file, redis://…, or memory for nowhere (default %(default)s)")
    parser.add_argument("--tokens", metavar="FILE", default="", help="who may call; without tokens everybody on this machine")
    parser.add_argument("--tls-cert", metavar="FILE", default="", help="certificate chain; needed beyond loopback")
    parser.add_argument("--tls-key", metavar="FILE", default="")
    parser.add_argument("--idle-ttl-s", metavar="SECONDS", type=float, default=900.0,
                        help="a session nobody comes to for so long is closed (default %(default)g)")
    args = parser.parse_args(argv)
    if bool(args.tls_cert) != bool(args.tls_key):
        raise ConfigError("--tls-cert, --tls-key: one without the other is no use; name both")
    if not 1 <= args.idle_ttl_s <= 86_400:
        raise ConfigError(f"--idle-ttl-s: {args.idle_ttl_s:g}, allowed: 1 to 86400")
    if os.environ.get("VENUS_SUPERVISED"):
        die_with_parent()
    asyncio.run(_serve(args))
    return 0


async def _serve(args: argparse.Namespace) -> None:
    from harness.service.access import Access
    from harness.journal.stores import open_store

    logs.setup("delegation")
    access, store = Access.load(args.tokens), open_store(args.journal)
    check_bind(args.listen, "--listen", tls=bool(args.tls_cert), token=access.guarded)  # all this before seconds of loading

    from harness.backend_skills import SkillBackend
    from harness.catalog import RegistryCatalog
    from harness.execute.registry import Registry
    from harness.execute.runner import CALLS_LIMIT, SkillRunner
    from harness.harness import Harness
    from harness.host.absent import AbsentVehicleBus
    from harness.schedule.limits import SchedulerLimits
    from harness.plan.rules import RulePlanner
    from harness.service import server
    from harness.service.limits import ServiceLimits

    registry, clock = Registry.from_entry_points(), SystemClock()
    catalog, bus = RegistryCatalog(registry), AbsentVehicleBus()
    runner = SkillRunner(registry, lambda call: bus, clock, cache_dir())
    harness = Harness(SkillBackend(catalog, runner, RulePlanner(), owns_runner=True), catalog, clock, store=store,
                      limits=SchedulerLimits(max_running=CALLS_LIMIT, max_running_per_tenant=RUNNING_PER_TENANT))
    serving, beat = None, None
    try:
        left = await harness.start()
        await runner.start()
        serving = await server.serve(harness, args.listen, access, limits=ServiceLimits(idle_ttl_s=args.idle_ttl_s), left=left,
                                     cert=args.tls_cert, key=args.tls_key, setting="--listen")
        if os.environ.get("VENUS_SUPERVISED"):
            beat = asyncio.ensure_future(process.heartbeat())
        process.ready(addr=serving.addr, skills=len(registry.ids()), tenants=len(access.tenants()))
        await process.until_stopped(*filter(None, (beat,)))
    finally:
        if beat is not None:
            beat.cancel()
        if serving is not None:
            await serving.stop()
        await harness.abandon()
