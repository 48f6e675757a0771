"""The harness: delegated requests in, prepared spoken replies out. Skills are in harness.skill, hosts in harness.host."""
from harness.backend import DelegateBackend, ExecuteContext
from harness.backend_skills import AskBackPlanner, SkillBackend
from harness.deliver.desk import PreparedReply
from harness.errors import (BadRequest, Closed, CorruptJournal, HarnessError, IllegalTransition, JournalFault, UnknownSession,
                            UnknownTask)
from harness.evidence import DelegateRequest, Evidence, HeardWords, UserWords
from harness.deliver.gate import Moment
from harness.harness import Harness
from harness.journal import Journal, MemoryJournal, MemoryStore, Record, Store, replay
from harness.ledger import Ledger, Transition
from harness.schedule.limits import SchedulerLimits
from harness.plan.contracts import Ask, Aside, Contract, Plan, Planner, PlanRequest
from harness.deliver.screen import ScreenItem
from harness.session import Session
from harness.settings import HarnessSettings
from harness.journal.stores import open_store
from harness.task import (Delivery, Execution, SkillCall, SkillCatalog, SkillOutcome, SkillRunner, SkillSpec, Task)

__all__ = [
    "Ask", "AskBackPlanner", "Aside", "BadRequest", "Closed", "Contract", "CorruptJournal", "DelegateBackend", "DelegateRequest",
    "Delivery", "Evidence", "ExecuteContext", "Execution", "Harness", "HarnessError", "HarnessSettings", "HeardWords",
    "IllegalTransition", "Journal", "JournalFault", "Ledger", "MemoryJournal", "MemoryStore", "Moment", "Plan", "PlanRequest",
    "Planner", "PreparedReply", "Record", "SchedulerLimits", "ScreenItem", "Session", "SkillBackend", "SkillCall", "SkillCatalog",
    "SkillOutcome", "SkillRunner", "SkillSpec", "Store", "Task", "Transition", "UnknownSession", "UnknownTask", "UserWords",
    "open_store", "replay",
]
