"""What a journal costs: from `append` to the moment it is confirmed to be in the store, and how many records a second it takes."""
import time
from typing import Callable

from harness.journal import Record, Store, to_fields
from harness.task import Execution, Task
from venus_edge.bench import percentile
from venus_edge.ids import new_id

BURST = 256
"""Records appended at once where throughput is measured: a full queue of one worker."""


async def measure(store_factory: Callable[[], Store], n: int = 2000) -> dict[str, float]:
    """`p50_ms`, `p95_ms`: one append confirmed before the next; `records_per_s`: in bursts of BURST, each confirmed.

    `n` records of each kind go into a new session of the store that `store_factory` makes (opened and closed here), in the mix a task
    makes: its acceptance, three moves of the work and of the telling; the session is dropped afterwards.
    """
    store = store_factory()
    await store.open()
    try:
        session = new_id("bench")
        journal = store.session(session)
        records = _records(2 * n)
        times = []
        for record in records[:n]:
            begin = time.perf_counter()
            journal.append(record)
            await journal.flushed()
            times.append((time.perf_counter() - begin) * 1e3)
        begin = time.perf_counter()
        for start in range(n, 2 * n, BURST):
            for record in records[start:start + BURST]:
                journal.append(record)
            await journal.flushed()
        took = time.perf_counter() - begin
        store.drop(session)
        await store.flushed()
        return {"p50_ms": percentile(times, 50), "p95_ms": percentile(times, 95), "records_per_s": round(n / took)}
    finally:
        await store.close()


def _records(count: int) -> list[Record]:
    moves = [("execution", "queued", "running", {"execution": "running", "execution_reason": "", "started_at": 1.5}),
             ("execution", "running", "completed", {"execution": "completed", "execution_reason": "done", "ended_at": 2.5}),
             ("delivery", "none", "pending", {"delivery": "pending", "delivery_reason": "", "kind": "result",
                                              "text": "Two of them. One is near.", "rest": "Two of them. One is near."})]
    records: list[Record] = []
    while len(records) < count:
        task = new_id("task")
        fields = to_fields(Task(id=task, key=new_id(), lineage=task, version=1, capability="poi.find", turn=1, lang="en",
                                arguments={"category": "pharmacy", "near": "Casino"}, prose="find a pharmacy near the casino",
                                zone="driver", group="poi", evidence="0" * 64, accepted_at=1.0))
        for machine, src, dst, changes in [("accept", "", Execution.QUEUED, fields), *moves]:
            records.append(Record(len(records) + 1, 1.0, task, machine, src, dst, "", changes))
    return records[:count]
