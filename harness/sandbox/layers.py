"""Which layers hold on this machine, found by locking a process and asking it."""
from dataclasses import replace

from harness.execute.pool import ProcessPool
from harness.execute.registry import RegistrySpec
from harness.sandbox.policy import Layer, Sandbox


async def layers(sandbox: Sandbox | None = None) -> tuple[Layer, ...]:
    """Every layer of a sandbox (default: of untrusted skills), active or with the reason why not. Starts a process for it, and ends it."""
    pool = ProcessPool(RegistrySpec(), None, replace(sandbox or Sandbox(), allow_missing=True))
    try:
        await pool.start()
        return pool.layers
    finally:
        await pool.close()
