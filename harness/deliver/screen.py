"""The screen channel: outcomes that were not spoken, for a display to show. Never what a correction or a cancellation made wrong."""
import logging
from dataclasses import dataclass
from typing import Callable

from harness.task import Delivery, Execution, Task
from venus_edge.clock import Clock
from venus_edge.ids import new_id
from venus_edge.metrics import METRICS

log = logging.getLogger("harness.deliver.screen")


@dataclass(frozen=True, slots=True)
class ScreenItem:
    """One outcome to show. `reason`: why it was not spoken; `at`: wall-clock seconds at which the work had ended."""

    id: str
    task_id: str
    task_version: int
    kind: str
    text: str
    reason: str
    lang: str
    at: float


class Screen:
    """The newest `most` items of a session; `on_item` is called once for each, as it comes."""

    __slots__ = ("_clock", "_most", "_useful_s", "_on_item", "_items")

    def __init__(self, clock: Clock, most: int, useful_s: float, on_item: Callable[[ScreenItem], None] | None = None):
        self._clock, self._most, self._useful_s, self._on_item = clock, most, useful_s, on_item
        self._items: tuple[ScreenItem, ...] = ()

    def ended(self, task: Task) -> None:
        """The telling of a task ended: offer it where it belongs on the screen. Called once a task."""
        if not self._wanted(task):
            return
        age = self._clock.now() - task.ended_at if task.ended_at is not None else 0.0
        item = ScreenItem(new_id("item"), task.id, task.version, task.kind, task.text, task.delivery_reason, task.lang,
                          self._clock.wall() - age)
        METRICS.add("venus_harness_screen_items_total")
        if len(self._items) >= self._most:
            METRICS.add("venus_harness_screen_overflow_total")
        self._items = (*self._items, item)[-self._most:]
        if self._on_item is None:
            return
        try:
            self._on_item(item)
        except Exception as error:  # a display's fault must not stop a delivery half-way; the item stays in `items`
            log.error("the screen took no item of task %s: %s", task.id, type(error).__name__)
            METRICS.add("venus_harness_screen_faults_total")

    def _wanted(self, task: Task) -> bool:
        if task.superseded_by or not task.text:
            return False
        if task.delivery is Delivery.UNSPOKEN:
            return True
        if task.delivery is not Delivery.DROPPED or task.execution is not Execution.COMPLETED or task.kind != "result":
            return False
        return task.delivery_reason == "topic_changed" or (
            task.delivery_reason == "expired" and self._clock.now() - (task.ended_at or 0.0) <= self._useful_s)

    def items(self, obsolete: Callable[[str], bool] = lambda task_id: False) -> tuple[ScreenItem, ...]:
        """What a screen may show now, oldest first; what has become obsolete is left out for good."""
        self._items = tuple(item for item in self._items if not obsolete(item.task_id))
        return self._items
