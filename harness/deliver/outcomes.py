"""What became of the outcomes that are to be told: each ends heard, merged, unspoken or dropped, and is never told twice.

The delivery desk (desk.py) decides what is said when; here the ledger is moved by what was heard of it.
"""
from typing import Callable, Iterable

from harness.dispatch import REPEAT
from harness.ledger import WITHDRAWN, Ledger
from harness.deliver.replies import InAir, Part, heard_to
from harness.deliver.rest import goes_on, in_short, unheard, without
from harness.deliver.screen import Screen, ScreenItem
from harness.settings import HarnessSettings
from harness.task import Delivery as D
from harness.task import Task
from venus_edge.clock import Clock
from venus_edge.metrics import METRICS

REMEMBERED_TOLD = 8


class Outcomes:
    """The untold and lately told outcomes of one session. `on_screen`: called once for each that was not spoken and may be shown."""

    __slots__ = ("_ledger", "_clock", "_settings", "_screen", "_not_before", "_waiting_since", "_briefs", "_told", "_question",
                 "_doubtful", "_doubt_until")

    def __init__(self, ledger: Ledger, clock: Clock, settings: HarnessSettings, on_screen: Callable[[ScreenItem], None] | None):
        self._ledger, self._clock, self._settings = ledger, clock, settings
        self._screen = Screen(clock, settings.screen_items, settings.screen_useful_s, on_screen)
        self._not_before: dict[str, float] = {}
        self._waiting_since: dict[str, float] = {}
        self._briefs: dict[str, str] = {}
        self._told: tuple[tuple[str, str], ...] = ()
        self._question: tuple[str, float] | None = None
        self._doubtful: tuple[str, ...] = ()
        """Tasks whose reply was in the air when the process or the front end before this one died."""
        self._doubt_until = 0.0

    # -- looking

    def last_told(self) -> tuple[Task, str] | None:
        """The newest outcome of which something was heard, that no correction or cancellation has made wrong."""
        for task_id, text in reversed(self._told):
            if self._ledger.knows(task_id) and not self._given_up(task := self._ledger.get(task_id)) \
                    and (task.delivery, task.delivery_reason) != (D.DROPPED, "cancelled"):
                return task, text
        return None

    def last_origin(self) -> str:
        """Id of the task whose outcome that was, also where it was told by a repetition; "" where there is none."""
        last = self.last_told()
        return "" if last is None else _repeats(last[0]) or last[0].id

    def last_question(self, within_s: float) -> Task | None:
        """The newest question among the outcomes of which something was heard within the last `within_s` seconds."""
        if self._question is None or self._clock.now() - self._question[1] > within_s or not self._ledger.knows(self._question[0]):
            return None
        return self._ledger.get(self._question[0])

    def screen(self) -> tuple[ScreenItem, ...]:
        """What was not spoken and may be shown, oldest first."""
        return self._screen.items(lambda task_id: self._ledger.knows(task_id) and bool(self._ledger.get(task_id).superseded_by))

    def forget(self, task_id: str) -> None:
        """Its delivery has ended, here or by a correction: no notes about it are needed."""
        for notes in (self._not_before, self._waiting_since, self._briefs):
            notes.pop(task_id, None)

    # -- what came of a reply

    def _landed(self, air: InAir, to: D, reason: str) -> None:
        """The reply ended whole, one way or the other."""
        for index, part in enumerate(air.parts):
            task = self._ledger.get(part.task_id)
            self._remember(task)
            if to is D.DELIVERED:
                self._heard(task, index, air, reason)
            else:
                self._give_up(task, to, reason)

    def _cut(self, air: InAir, reached: int, *, stopped: bool, confirmed: bool) -> None:
        """The reply ended after `reached` of its characters."""
        for index, part in enumerate(air.parts):
            self._interrupted(part, unheard(part.body, max(0, reached - part.at)), index, air, stopped, confirmed)

    def _interrupted(self, part: Part, rest: str, index: int, air: InAir, stopped: bool, confirmed: bool) -> None:
        task = self._ledger.get(part.task_id)
        share = 1.0 - len(rest) / len(task.text if goes_on(task.text, task.rest, heard_to(task)) else task.rest)
        some = rest != task.rest
        if some or rest != task.text:
            self._remember(task)
        if not rest:
            self._heard(task, index, air, "confirmed" if confirmed else "estimated")
            return
        task = self._ledger.deliver(task.id, D.INTERRUPTED, f"heard {share:.0%}", rest=rest)
        if unwanted := self._given_up(task):
            self._close(task, D.DROPPED, unwanted)
        elif share >= self._settings.enough_heard:
            self._close(task, D.DELIVERED, f"heard {share:.0%}")
        elif stopped:
            self._close(task, D.DROPPED, "stopped")
        elif task.kind == "question" and some:  # whoever talks over a question has understood it
            self._close(task, D.UNSPOKEN, "interrupted")
        elif task.resumes:
            self._close(task, D.UNSPOKEN, "interrupted_again")
        else:
            self._take_up(task, share)

    def _take_up(self, task: Task, share: float) -> None:
        """An interrupted outcome is to go on later: in short where much is left, or little of much was wanted."""
        s, reason = self._settings, "to_resume"
        if share > 0 and (len(task.rest) > s.summarise_over_chars or share < s.early_share and len(task.text) > s.summarise_over_chars):
            short = in_short(task.rest, self._briefs.get(task.id, ""))
            if len(short) < len(task.rest):
                self._ledger.reword(task.id, rest=short)
                reason = "to_summarise"
        self._ledger.deliver(task.id, D.PENDING, reason)
        self._waiting_since[task.id] = self._clock.now()

    def _refused(self, air: InAir) -> None:
        """The front end won't speak the reply: later once more, as often as the settings say."""
        for part in air.parts:
            task = self._ledger.get(part.task_id)
            if self._given_up(task) or task.declines >= self._settings.max_declines:
                self._give_up(task, D.UNSPOKEN, "declined")
            else:
                self._ledger.deliver(task.id, D.PENDING, "declined")
                self._not_before[task.id] = self._clock.now() + self._settings.retry_after_s

    def _withdrawn(self, task_ids: Iterable[str]) -> None:
        """The reply that told of these never reached the front end: they wait again, and that is no decline."""
        METRICS.add("venus_harness_replies_withdrawn_total")
        for task_id in task_ids:
            task = self._ledger.get(task_id)
            if task.delivery is not D.DELIVERING:
                continue
            if reason := self._unwanted(task):
                self._close(task, D.DROPPED, reason)
            else:
                self._ledger.deliver(task.id, D.PENDING, WITHDRAWN)

    def _heard(self, task: Task, index: int, air: InAir, reason: str) -> None:
        if index == 0:
            self._close(task, D.DELIVERED, reason)
        else:
            self._close(task, D.MERGED, f"told with {air.parts[0].task_id}")

    def _give_up(self, task: Task, to: D, reason: str) -> None:
        """It is not told any more; what nobody wants is dropped, not offered on the screen."""
        unwanted = self._given_up(task)
        self._close(task, D.DROPPED if unwanted else to, unwanted or reason)

    def _given_up(self, task: Task) -> str:
        """Why nobody wants the outcome any more, or ''. A repetition is wanted as long as what it repeats is."""
        of = _repeats(task)
        if task.superseded_by or of and self._ledger.knows(of) and self._ledger.get(of).superseded_by:
            return "superseded"
        return task.unwanted

    def _unwanted(self, task: Task) -> str:
        """Why an outcome must not be told now, or ''."""
        expired = task.ended_at is not None and self._clock.now() - task.ended_at > task.ttl_s
        return self._given_up(task) or ("expired" if expired else "")

    # -- after a restart

    def remember(self, tasks: Iterable[Task]) -> None:
        """What of these was heard before: it can be said again."""
        self._told = tuple((t.id, t.text) for t in tasks if t.heard)[-REMEMBERED_TOLD:]

    def take_up(self, task: Task) -> None:
        """An outcome of a restored ledger that waited to be told, or whose interruption was not dealt with yet."""
        if task.delivery is D.PENDING:
            self._waiting_since[task.id] = self._clock.now()
        elif unwanted := self._given_up(task):
            self._close(task, D.DROPPED, unwanted)
        elif task.resumes:
            self._close(task, D.UNSPOKEN, "interrupted_again")
        else:
            self._take_up(task, 1.0 - len(task.rest) / len(task.text))

    def doubt(self, task: Task) -> None:
        """An outcome of a restored ledger that was in the air: it may have been heard or not.

        For `reattach_wait_s` the device may tell (`reattach`), and nothing is admitted; then it is closed: never told twice.
        """
        if not self._doubtful:
            self._doubt_until = self._clock.now() + self._settings.reattach_wait_s
        self._doubtful = (*self._doubtful, task.id)

    def _unconfirmed(self, reason: str) -> None:
        """Nobody knows whether it was heard: it is not said again, but shown."""
        doubtful, self._doubtful = self._doubtful, ()
        METRICS.add("venus_harness_replies_unconfirmed_total")
        for task_id in doubtful:
            self._give_up(self._ledger.get(task_id), D.UNSPOKEN, reason)

    # -- small parts

    def _reworded(self, task: Task, text: str, kind: str | None) -> None:
        """An outcome that waits gets other words; what was heard of the old ones is left out of the new ones."""
        self._briefs.pop(task.id, None)
        heard = task.text[:heard_to(task)]
        left = without(text, heard)
        if not left:
            self._close(task, D.DROPPED, "already_heard")
        elif text.startswith(heard):
            self._ledger.reword(task.id, kind=kind, text=text, rest=left)
        else:
            self._ledger.reword(task.id, kind=kind, text=left)

    def _remember(self, task: Task) -> None:
        self._told = (*self._told, (task.id, task.text))[-REMEMBERED_TOLD:]
        if task.kind == "question":
            self._question = (task.id, self._clock.now())

    def _close(self, task: Task, to: D, reason: str) -> None:
        ended, unwanted = self._ledger.deliver(task.id, to, reason), self._given_up(task)
        self.forget(task.id)
        if not unwanted:
            self._screen.ended(ended)


def _repeats(task: Task) -> str:
    """Id of the task whose outcome this one says again, or ""."""
    return task.arguments.get("target", "") if task.capability == REPEAT else ""
