"""Errors of the harness itself. A skill's failure is an outcome (SkillOutcome), not one of these.

HarnessError(VenusError)
├── BadRequest         bad_request         a delegate request with a wrong field; the message names it and the allowed values
├── MalformedSpan      malformed_span      the content of a delegate span is refused; `reason` says how
├── IllegalTransition  illegal_transition  a task can't move that way; the task is unchanged
├── UnknownSession     unknown_session     no such session is open here
├── UnknownTask        unknown_task        no such task, or it left the bounded history
├── CorruptJournal     corrupt_journal     a record contradicts the ones before it
├── JournalFault       journal             the store of the journal refuses, is too far behind, or is gone; retryable
└── Closed             closed              the session's harness was closed
"""
from venus_edge.errors import VenusError


class HarnessError(VenusError):
    code = "harness"


class BadRequest(HarnessError):
    code = "bad_request"
    advice = "Correct the named field of the delegate request."


class MalformedSpan(HarnessError):
    """`reason`: oversized, empty or malformed_call. The message holds none of the span's words."""

    code = "malformed_span"
    advice = "Release the span's evidence; nothing was asked for."

    def __init__(self, reason: str, message: str):
        super().__init__(message, reason=reason)
        self.reason = reason


class IllegalTransition(HarnessError):
    code = "illegal_transition"
    advice = "Look at the task's state first; a late return or a second report is ignored, not applied."


class UnknownTask(HarnessError):
    code = "unknown_task"
    advice = "Use an id that accept() returned within this session."


class UnknownSession(HarnessError):
    code = "unknown_session"
    advice = "Open the session first; it may have been closed."


class CorruptJournal(HarnessError):
    code = "corrupt_journal"
    advice = "Restore the journal from a copy, or start with an empty one."


class JournalFault(HarnessError):
    code = "journal"
    retryable = True
    advice = "Nothing was lost that was confirmed; look at the store (disk, server), then ask again."


class Closed(HarnessError):
    code = "closed"
    advice = "Open a new session."
