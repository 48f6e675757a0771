"""`python -m harness.plan.warm`: the sentence vectors that the offline planner needs, computed once and kept in the cache folder.

A planner that finds them there is ready in about a second; one that doesn't computes them at its first plan (7 ms a sentence).
"""
import argparse
import sys
import time

import numpy as np

from harness.catalog import RegistryCatalog
from harness.execute.registry import Registry
from harness.plan.bank import ready_texts
from harness.plan.compile import compile_contracts
from harness.plan.contracts import Contract
from harness.plan.embed import Embedder, default_embedder
from venus_edge.errors import ConfigError


def warm(contracts: tuple[Contract, ...], embedder: Embedder, out=sys.stderr) -> int:
    """Compute and keep the vectors for `contracts` and for the planner's own phrases; the number of sentences. Progress goes to `out`."""
    own = sum(len(rows) or len(c.summary) for c in contracts for rows in [[r for rows in c.examples.values() for r in rows]])
    total = own + len(ready_texts())
    print(f"planner: {len(contracts)} capabilities, {total} sentences, {embedder.name}", file=out, flush=True)
    begin = time.perf_counter()
    compile_contracts(contracts, _Shown(embedder, total, out))
    print(f"planner: ready after {time.perf_counter() - begin:.1f} s", file=out, flush=True)
    return total


class _Shown:
    """An embedder that says how far it is; a few sentences at a time."""

    STEP = 64

    def __init__(self, inner: Embedder, total: int, out):
        self.name, self._inner, self._total, self._done, self._out = inner.name, inner, total, 0, out

    def embed(self, texts: list[str]) -> np.ndarray:
        parts = []
        for at in range(0, len(texts), self.STEP):
            part = texts[at:at + self.STEP]
            parts.append(self._inner.embed(part))
            self._done += len(part)
            print(f"planner: {self._done} of {self._total} sentences", file=self._out, flush=True)
        return np.concatenate(parts) if parts else self._inner.embed([])


def run(argv: list[str]) -> int:
    """Compute the offline planner's sentence vectors for the installed skills."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.plan.warm", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example:\n  python -m harness.plan.warm\nexit status: 0; 2 where the installed skills can't be loaded")
    parser.parse_args(argv)
    try:
        contracts = RegistryCatalog(Registry.from_entry_points()).contracts()
    except ConfigError as error:
        print(f"planner: {error}", file=sys.stderr)
        return 2
    warm(contracts, default_embedder())
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
