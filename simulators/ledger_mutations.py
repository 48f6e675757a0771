"""Switches one guard of the harness off, to show that the ledger evaluation can fail. Nothing here is ever on in the product.

    with mutated("fresh"):
        ...        # outcomes never expire

Where the product guards a promise in several places (the table, the ledger's guard, the desk), a mutation switches off all of them: it
is the promise that must be missed, not the line.
"""
import contextlib
import dataclasses
from typing import Any, Callable, Iterator
from unittest import mock

from harness import recovery, session
from harness.deliver import desk as delivery
from harness.deliver import outcomes, screen
from harness.deliver.desk import DeliveryDesk
from harness.deliver.gate import Gate
from harness.ledger import WITHDRAWN, Ledger
from harness.session import Session
from harness.task import Delivery as D
from harness.task import Execution as E


def _wrap(owner: type, name: str, make: Callable[[Callable], Callable]) -> Any:
    return mock.patch.object(owner, name, make(getattr(owner, name)))


def _keys():
    """The same idempotency key makes another task."""
    def accept(real):
        def accept(self, *, key, **more):
            self._keys.pop(key, None)
            return real(self, key=key, **more)
        return accept
    yield mock.patch.object(Ledger, "seen", lambda self, key: None)
    yield _wrap(Ledger, "accept", accept)


def _superseded():
    """A finished outcome that was corrected is told all the same."""
    yield _wrap(Ledger, "_supersede", lambda real: lambda self, old, new: real(self, old, new) if old.live else None)


def _fresh():
    """An outcome is never too old."""
    for name in ("accept", "bind"):
        yield _wrap(Ledger, name, lambda real: lambda self, *a, **more: real(self, *a, **{**more, "ttl_s": 1e9}))


def _cancelled():
    """What is cancelled after its work has ended is told all the same."""
    def cancel(real):
        def cancel(self, task_id, reason="cancelled"):
            task = self.ledger.get(task_id)
            return True if reason == "cancelled" and not task.live and task.untold else real(self, task_id, reason)
        return cancel
    yield _wrap(Session, "cancel", cancel)


def _air():
    """A reply is admitted while another is in the air."""
    def next_(real):
        def next_(self, *args):
            air, self._air = self._air, None
            reply = real(self, *args)
            if self._air is None:
                self._air = air
            return reply
        return next_
    yield _wrap(DeliveryDesk, "next", next_)


def _resume_once():
    """An interrupted outcome is taken up again and again."""
    def deliver(real):
        def deliver(self, task_id, to, reason="", **more):
            if self.get(task_id).resumes:
                self._tasks[task_id] = dataclasses.replace(self.get(task_id), resumes=0)
            return real(self, task_id, to, reason, **more)
        return deliver
    yield _wrap(Ledger, "deliver", deliver)


def _late_return():
    """The result of a run that comes back after its cancellation is taken."""
    def settle(real):
        def settle(self, task_id, outcome, how):
            task = self.ledger.get(task_id)
            if how == "done" and task.execution in (E.CANCELLING, E.SUPERSEDED):
                self.ledger._tasks[task_id] = dataclasses.replace(task, execution=E.RUNNING, superseded_by="")
            return real(self, task_id, outcome, how)
        return settle
    yield _wrap(Session, "_settle", settle)


def _durable_admission():
    """A reply leaves before its admission is in the store."""
    yield mock.patch.object(DeliveryDesk, "_release", _release_at_once(DeliveryDesk._release))


def _release_at_once(real):
    def release(self, now):
        self._held.recorded = 0  # as if it had been written before anything else
        return real(self, now)
    return release


def _durable_submit():
    """submit() returns before the request is in the store."""
    async def submit(self, request, evidence=None):
        return self.accept(request, evidence or session.Evidence.freeze(request.opened_pos, request.opened_seq))
    yield mock.patch.object(Session, "submit", submit)


def _flush_before_run():
    """Work that must not run twice starts before the store knows of it."""
    def run(real):
        async def run(self, task, spec):
            return await real(self, task, dataclasses.replace(spec, idempotent=True))
        return run
    yield _wrap(Session, "_run", run)


def _rerun_only_idempotent():
    """After a restart, work that must not run twice runs again."""
    def spec(real):
        def spec(self, capability):
            found = real(self, capability)
            return found and dataclasses.replace(found, idempotent=True)
        return spec

    def restore(real):
        def restore(*args, **more):
            with _wrap(Session, "_spec", spec):
                return real(*args, **more)
        return restore
    yield mock.patch.object(recovery, "_take_up", restore(recovery._take_up))


def _recovery_delivering():
    """After a restart, what was in the air is told again without asking the device."""
    def doubt(self, task):
        self._ledger.deliver(task.id, D.PENDING, WITHDRAWN)
        self._waiting_since[task.id] = self._clock.now()
    yield mock.patch.object(DeliveryDesk, "doubt", doubt)


def _heard_confirmed():
    """What was sent counts as heard."""
    yield mock.patch.object(delivery, "heard_chars", lambda text, heard, unheard: len(text))


def _resume_from_heard():
    """An interrupted outcome begins anew."""
    yield mock.patch.object(outcomes, "unheard", lambda text, at: text if at < len(text) else "")


def _floor():
    """The user has the floor, and a reply is admitted."""
    yield mock.patch.object(Gate, "user_busy", property(lambda self: False))


def _reports_end():
    """The end of a reply is waited for without bound."""
    def expire(real):
        def expire(self, now):
            air, self._air = self._air, None
            try:
                real(self, now)
            finally:
                self._air = air
        return expire
    yield _wrap(DeliveryDesk, "_expire", expire)


def _screen():
    """What is not spoken is not offered on the screen either."""
    yield mock.patch.object(screen.Screen, "_wanted", lambda self, task: False)


def _isolation():
    """The memory that skills share is shared by all sessions."""
    shared: dict = {}

    def remember(real):
        def remember(self, memory, sent):
            real(self, memory, sent)
            shared.update(self.memory)
            self.memory = shared
        return remember

    def run(real):
        async def run(self, task, spec):
            self.memory = shared
            return await real(self, task, spec)
        return run
    yield _wrap(Session, "_remember", remember)
    yield _wrap(Session, "_run", run)


GUARDS: dict[str, Callable[[], Iterator[Any]]] = {
    "keys": _keys, "superseded": _superseded, "fresh": _fresh, "cancelled": _cancelled, "air": _air, "resume_once": _resume_once,
    "late_return": _late_return, "durable_admission": _durable_admission, "durable_submit": _durable_submit,
    "flush_before_run": _flush_before_run, "rerun_only_idempotent": _rerun_only_idempotent, "recovery_delivering": _recovery_delivering,
    "heard_confirmed": _heard_confirmed, "resume_from_heard": _resume_from_heard, "floor": _floor, "reports_end": _reports_end,
    "screen": _screen, "isolation": _isolation}
MUST_SHOW = {
    "keys": "duplicate", "superseded": "obsolete_spoken", "fresh": "obsolete_spoken", "cancelled": "obsolete_spoken", "air": "over_assistant",
    "resume_once": "duplicate", "late_return": "obsolete_spoken", "durable_admission": "duplicate", "durable_submit": "lost",
    "flush_before_run": "duplicate", "rerun_only_idempotent": "duplicate", "recovery_delivering": "duplicate", "heard_confirmed": "lost",
    "resume_from_heard": "duplicate", "floor": "over_user", "reports_end": "nonterminal", "screen": "lost", "isolation": "leaked"}
"""The figure that must be above 0 with the guard off."""


@contextlib.contextmanager
def mutated(name: str) -> Iterator[None]:
    """The harness without one guard; "" changes nothing."""
    with contextlib.ExitStack() as stack:
        for patch in GUARDS[name]() if name else ():
            stack.enter_context(patch)
        yield


