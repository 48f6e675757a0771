"""The labelled set's contracts and one compiled planner for all planner tests (compiling takes a second, the first time ten)."""
from functools import lru_cache
from pathlib import Path

from harness.plan.contracts import LiveTask, PlanRequest
from harness.plan.evaluate import load_contracts
from harness.plan.rules import RulePlanner

DATA = Path(__file__).parents[1] / "data" / "planner"


@lru_cache(maxsize=1)
def contracts():
    return load_contracts(DATA / "capabilities.json")


@lru_cache(maxsize=1)
def planner() -> RulePlanner:
    return RulePlanner()


def decide(prose: str, *tasks: LiveTask, lang: str = "en", **context):
    return planner().decide(PlanRequest(prose, lang, contracts(), tasks, **context))


def task(task_id: str, capability: str, state: str = "running", prose: str = "", **arguments) -> LiveTask:
    return LiveTask(task_id, capability, arguments, prose or " ".join(map(str, arguments.values())), state, 4.0, 1)


def called(planned) -> list[tuple]:
    """(capability, arguments without nulls) of every plan."""
    assert isinstance(planned, tuple), planned
    return [(p.capability, {k: v for k, v in p.arguments.items() if v is not None}) for p in planned]
