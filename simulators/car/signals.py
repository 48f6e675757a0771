"""The vehicle-signal server: VSS 6.0 over kuksa.val v1 + v2, with moving actuators and a drive.

    python -m simulators.car.signals

Environment: VENUS_BUS_ADDR (127.0.0.1:55555; port 0 = any), VENUS_BUS_TOKEN (everything), VENUS_BUS_READ_TOKEN (read
only), VENUS_BUS_CERT and VENUS_BUS_KEY (PEM files, for TLS), VENUS_DRIVE (drive file or inline JSON), VENUS_TRACE_DIR.
"""

import asyncio
import os
import signal
from typing import Mapping

import grpc
from kuksa.val.v1 import val_pb2_grpc as g1
from kuksa.val.v2 import val_pb2_grpc as g2

from simulators.car import vss
from simulators.car.actuators import ActuatorBank
from simulators.car.drive import Drive, DrivePublisher, read_drive
from simulators.car.signals_auth import AuthInterceptor, Tokens, check_bind, parse_addr
from simulators.car.signals_store import SignalStore
from simulators.car.signals_v1 import V1
from simulators.car.signals_v2 import V2
from venus_edge import loop_monitor, process
from venus_edge.clock import Clock, SystemClock
from venus_edge.errors import ConfigError
from venus_edge.logs import setup
from venus_edge.trace import Trace

DEFAULT_ADDR = "127.0.0.1:55555"


class SignalServer:
    """The server as an object: `await start()`, then `addr` is where it listens; `await stop()`."""

    def __init__(self, env: Mapping[str, str] | None = None, clock: Clock | None = None, trace: Trace | None = None):
        """Reads the settings; raises ConfigError naming the variable."""
        env = os.environ if env is None else env
        self.clock, self.trace = clock or SystemClock(), trace
        self.host, self.port = parse_addr(env.get("VENUS_BUS_ADDR") or DEFAULT_ADDR, "VENUS_BUS_ADDR")
        self.tokens = Tokens(env.get("VENUS_BUS_TOKEN", ""), env.get("VENUS_BUS_READ_TOKEN", ""))
        if self.tokens.read and not self.tokens.full:
            raise ConfigError("VENUS_BUS_READ_TOKEN is set without VENUS_BUS_TOKEN: nobody could actuate")
        if self.tokens.full and self.tokens.full == self.tokens.read:
            raise ConfigError("VENUS_BUS_READ_TOKEN and VENUS_BUS_TOKEN are equal: the read-only token would do everything")
        self._credentials = check_bind(self.host, self.tokens, env.get("VENUS_BUS_CERT", ""), env.get("VENUS_BUS_KEY", ""))
        self.drive_file = read_drive(env.get("VENUS_DRIVE", ""))
        try:
            specs = vss.load()
        except (OSError, ValueError) as err:
            raise ConfigError(f"the VSS tree {vss.TREE_FILE.name} can't be read: {err}") from None
        self.store = SignalStore(specs, self.clock, trace)
        self.actuators = ActuatorBank(self.store)
        self.drive = DrivePublisher(self.store, Drive(self.drive_file))
        self._server: grpc.aio.Server | None = None
        self._driving: asyncio.Task | None = None

    @property
    def addr(self) -> str:
        return f"{self.host}:{self.port}"

    async def start(self) -> None:
        """Publish the initial values, listen and drive; raises ConfigError where the port is taken."""
        self.drive.start()
        self.actuators.start(self.drive_file.initial)
        self.drive.publish(0.0)
        for path, fault in self.drive_file.faults.items():
            self.actuators.fail(path, fault)
        # without SO_REUSEPORT a second server on the port is an error, not a silent partner
        self._server = grpc.aio.server(interceptors=[AuthInterceptor(self.tokens)], options=[("grpc.so_reuseport", 0)])
        g1.add_VALServicer_to_server(V1(self.store, self.tokens), self._server)
        g2.add_VALServicer_to_server(V2(self.store), self._server)
        try:
            if self._credentials is None:
                self.port = self._server.add_insecure_port(self.addr)
            else:
                self.port = self._server.add_secure_port(self.addr, self._credentials)
        except RuntimeError:
            self.port = self.port or 0
            raise ConfigError(f"VENUS_BUS_ADDR={self.addr} can't be bound: the port is taken or the address isn't this machine's") from None
        await self._server.start()
        if self.drive_file.begin == "ready":
            self.drive.begin()
        self._driving = asyncio.create_task(self.drive.run())

    async def stop(self) -> None:
        if self._driving is not None:
            self._driving.cancel()
            await asyncio.gather(self._driving, return_exceptions=True)
        await self.actuators.close()
        if self._server is not None:
            await self._server.stop(0.2)

    @property
    def driving(self) -> asyncio.Task:
        """The task that publishes the drive; it ends only by a fault."""
        return self._driving


async def main() -> None:
    log = setup("signals")
    clock = SystemClock()
    trace = Trace("signals", clock=clock)
    server = SignalServer(clock=clock, trace=trace)
    monitor = asyncio.create_task(loop_monitor.watch("signals", trace))
    try:
        await server.start()
        if not server.tokens.full:
            log.warning("no VENUS_BUS_TOKEN: every process of this machine may actuate")
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, server.drive.begin)
        process.ready(addr=server.addr, signals=len(server.store.specs))
        await process.until_stopped(server.driving, asyncio.create_task(process.heartbeat()))
    finally:
        monitor.cancel()
        await server.stop()
        trace.close()


if __name__ == "__main__":
    process.run(main)
