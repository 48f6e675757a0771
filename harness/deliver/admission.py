"""What is admitted together, what is older than what the user wants now, and what waits for a newer answer."""
import os

from harness import phrases
from harness.dispatch import HARNESS_OWN
from harness.ledger import Ledger
from harness.phrases import Words
from harness.deliver.replies import InAir, compose, heard_to
from harness.deliver.rest import again, goes_on
from harness.settings import HarnessSettings
from harness.task import Task


def asked_elsewhere(ledger: Ledger, task: Task) -> bool:
    """Whether the user has asked for something else since: a later request, neither about this nor to the harness itself."""
    return any(t.turn > task.turn and t.lineage != task.lineage and t.capability not in HARNESS_OWN
               and not (task.group and t.group == task.group) for t in ledger.tasks())


def awaited(ledger: Ledger, newest_turn: int, since: float) -> bool:
    """Whether the newest question, accepted after `since`, is still being worked on: older matters let its answer go first."""
    return any(t.turn == newest_turn and t.accepted_at > since for t in ledger.live())


def pieces(ready: list[Task], newest_turn: int, words: Words, settings: HarnessSettings) -> list[tuple[str, str, str]]:
    """What one reply is made of, as (task id, introduction, body): the first of `ready`, and others as far as they fit."""
    first = ready[0]
    found = [(first.id, introduction(first, newest_turn, words, settings), first.rest)]
    size = len(found[0][1]) + len(found[0][2])
    for other in ready[1:] if not first.resumes and first.kind != "question" else ():
        if len(found) == settings.max_join or other.resumes or other.kind == "question" or other.lang != first.lang:
            continue
        lead = introduction(other, newest_turn, words, settings)
        if size + len(lead) + len(other.rest) + 1 <= settings.max_join_chars:
            size += len(lead) + len(other.rest) + 1
            found.append((other.id, lead, other.rest))
    return found


def introduction(task: Task, newest_turn: int, words: Words, settings: HarnessSettings) -> str:
    """What is said before an outcome: that it goes on, that it is short, what it is about, or nothing."""
    if task.resumes and task.rest != task.text:
        if not goes_on(task.text, task.rest, heard_to(task)):
            return phrases.say("reply.brief", task.lang)
        return phrases.say("reply.resume", task.lang) + again(task.text, task.rest, settings.resume_back_words)
    return words.about("reply.introduce", task) if task.turn < newest_turn and task.kind != "question" else ""


def revive(tasks: list[Task], said: str, words: Words, settings: HarnessSettings, now: float) -> InAir:
    """The reply that told of `tasks` before a restart, at least one: of those it can have been, the one that begins like `said`."""
    tasks = sorted(tasks, key=lambda t: (-t.turn, t.id))  # as they were chosen: within a turn in the order asked, which ids keep
    turns = sorted({t.turn for t in tasks} | {tasks[0].turn + 1})
    tried = [compose(tasks[0].reply, tasks[0], [(t.id, introduction(t, turn, words, settings), t.rest) for t in tasks], now, turn)
             for turn in turns]
    return max(tried, key=lambda air: len(os.path.commonprefix([_letters(air.reply.text), _letters(said)])))


def _letters(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())
