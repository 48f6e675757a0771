"""Errors of the harness itself. A skill's failure is an outcome (SkillOutcome), not one of these.

HarnessError(VenusError)
├── BadRequest         bad_request         a delegate request with a wrong field; the message names it and the allowed values
├── IllegalTransition  illegal_transition  a task can't move that way; the task is unchanged
├── UnknownTask        unknown_task        no such task, or it left the bounded history
├── CorruptJournal     corrupt_journal     a record contradicts the ones before it
└── Closed             closed              the session's harness was closed
"""
from venus_edge.errors import VenusError


class HarnessError(VenusError):
    code = "harness"


class BadRequest(HarnessError):
    code = "bad_request"
    advice = "Correct the named field of the delegate request."


class IllegalTransition(HarnessError):
    code = "illegal_transition"
    advice = "Look at the task's state first; a late return or a second report is ignored, not applied."


class UnknownTask(HarnessError):
    code = "unknown_task"
    advice = "Use an id that accept() returned within this session."


class CorruptJournal(HarnessError):
    code = "corrupt_journal"
    advice = "Restore the journal from a copy, or start with an empty one."


class Closed(HarnessError):
    code = "closed"
    advice = "Open a new session."
