"""The harness: delegated requests in, prepared spoken replies out. Skills are in harness.skill, hosts in harness.host."""
from harness.delivery import PreparedReply
from harness.dispatch import Ask, AskBackPlanner, Plan, Planner
from harness.errors import BadRequest, Closed, CorruptJournal, HarnessError, IllegalTransition, UnknownTask
from harness.evidence import DelegateRequest, Evidence, HeardWords, UserWords
from harness.gate import Moment
from harness.harness import Harness
from harness.journal import Journal, MemoryJournal, Record, replay
from harness.ledger import Ledger, Transition
from harness.settings import HarnessSettings
from harness.task import (Delivery, Execution, SkillCall, SkillCatalog, SkillOutcome, SkillRunner, SkillSpec, Task)

__all__ = [
    "Ask", "AskBackPlanner", "BadRequest", "Closed", "CorruptJournal", "DelegateRequest", "Delivery", "Evidence",
    "Execution", "Harness", "HarnessError", "HarnessSettings", "HeardWords", "IllegalTransition", "Journal", "Ledger",
    "MemoryJournal", "Moment", "Plan", "Planner", "PreparedReply", "Record", "SkillCall", "SkillCatalog", "SkillOutcome",
    "SkillRunner", "SkillSpec", "Task", "Transition", "UnknownTask", "UserWords", "replay",
]
