"""The first step of a decision: requests about requests, where there is a task or an open question for them."""
import re
from typing import TYPE_CHECKING

from harness.plan import asks, control, elliptic, repairs
from harness.plan.address import ABOUT_PEOPLE, BROADCAST, NOT_WANTED, OTHER_PERSON, SMALL_TALK, SUPPOSED, THINKING
from harness.plan.clauses import cuts
from harness.plan.compile import ACTIONS, NUMBER
from harness.plan.contracts import Ask, Aside, Plan, Planned
from harness.plan.correct import corrected
from harness.plan.filled import Filled
from harness.plan.lexicon import lexicon
from harness.plan.match import LIKELY, STRONG, Match
from harness.plan.numerals import numbers_said
from harness.plan.text import asked, is_question

if TYPE_CHECKING:
    from harness.plan.decision import Decision

_PENDING = ("queued", "running", "ready")
_TOLD = ("told", "ready", "failed")


def controlled(d: "Decision", reason: str) -> Planned | None:
    """What the words ask of a task, None where they ask for something else. `reason`: the sign that they are not meant for us."""
    request = d.request
    said = control.controls(d.text)
    said += [name for name in control.controls(d.whole) if name not in said]
    if request.tasks and not set(said) & {"cancel", "status", "repeat", "continue", "yes", "no"}:
        said += [name for name in voted(d, reason) if name not in said]
    if not request.tasks:
        if "cancel" in said and not repairs.names_something(d.found, d.text):
            return Aside("nothing to cancel")
        return None
    if reason in (OTHER_PERSON, ABOUT_PEOPLE) and not request.question and _said_to_somebody(d):
        return None
    best = d.best(asked(corrected(d.text, d.last_value)[0]))
    strong = best is not None and best.filled.complete and best.score >= STRONG
    if request.question and request.question_task:
        plan = _answered(d, said, best, strong)
        if plan is not None:
            return plan if isinstance(plan, Ask) else d.checked(plan)
    if control.about_our_work(d.text) and _any(d, _PENDING):
        return repairs.about_task(d.found, request, d.text, "status")
    if reason == SMALL_TALK and not set(said) & {"cancel", "status", "repeat", "continue"}:
        return None
    if "repeat" in said and not (strong and best.contract.asks >= 0.5 and not _told(d, best.contract.id)) and _any(d, _TOLD):
        return repairs.about_task(d.found, request, d.text, "repeat")
    later = _after_cancel(d) if "cancel" in said else None
    if later:
        return later
    adjusted = _adjusted(d, best, said)
    if adjusted:
        return adjusted
    if "status" in said and best is not None and any(t.capability == best.contract.id and t.state in _PENDING for t in request.tasks):
        return repairs.about_task(d.found, request, d.text, "status")
    if "cancel" in said and not ("update" in said and elliptic.contrast(d.text)):
        plan = repairs.cancel(d.found, request, d.text, best)
        if plan:
            return d.checked(plan)
        return Aside(reason or "nothing of that kind to cancel")
    if "status" in said and _any(d, _PENDING) and not _other_question(d, best):
        return repairs.about_task(d.found, request, d.text, "status")
    other = strong and best.clues["example"] > 0.5 and best.contract.id not in {t.capability for t in request.tasks}
    if "continue" in said and (not other or re.match(r"and\b", d.whole, re.I)):
        return repairs.about_task(d.found, request, d.text, "continue")
    if reason == NOT_WANTED and "update" not in said and _any(d, _PENDING):
        plan = repairs.cancel(d.found, request, d.text, best)
        if plan:
            return d.checked(plan)
    if _about_running(d, best, strong):
        return repairs.about_task(d.found, request, d.text, "status")
    if reason in (SUPPOSED, ABOUT_PEOPLE, BROADCAST, NOT_WANTED, OTHER_PERSON, THINKING) and "update" not in said:
        return None
    half = best is not None and best.filled.missing and best.score >= LIKELY and any(t.capability == best.contract.id for t in request.tasks)
    if ("update" in said or half) and _rather_cancel(d):
        plan = repairs.cancel(d.found, request, d.text, best)
        if plan:
            return d.checked(plan)
    if "update" in said or half or elliptic.contrast(d.text) or re.search(r"\binstead\b", d.text, re.I):
        text = elliptic.bare(d.text)
        plan = repairs.update(d.found, request, d.text, _correction_match(d, text), True)
        if plan:
            return d.checked(plan)
    elif not strong and _fragment(d):
        plan = repairs.update(d.found, request, d.text, None, False)
        if plan:
            return d.checked(plan)
    return None


SURE = {"cancel": 0.42, "status": 0.42, "repeat": 0.42, "continue": 0.5, "update": 0.4}
"""The least score of a vote that counts like control words."""


def voted(d: "Decision", reason: str) -> list[str]:
    """The operation that the words are most alike to, where they are clearly no new request and not meant for somebody else."""
    scores = d.found.votes.scores(d.planner.vector(d.text))
    top = max(scores, key=scores.get)
    if top not in SURE or scores[top] < SURE[top] or scores[top] < max(scores["request"], scores["aside"]) + 0.1 or len(d.text) > 90:
        return []
    if reason in (OTHER_PERSON, SUPPOSED, BROADCAST) or top == "update" and reason:
        return []
    return [top]


_ANOTHER = re.compile(r"\b(?:also|another|too|as well|next|and then|then)\b|另外|再(?:帮|给|找|放|订|发|打|来|查|设|提醒)|还要|也", re.I)
_POINTS_AT = re.compile(r"\b(?:it|that|one|too|more|less|bit|up|down|only|just|instead|rather)\b|再|太|就行|就好|还是|一?点", re.I)


def _adjusted(d: "Decision", best: Match | None, said: list[str]) -> Planned | None:
    """Another value for the task in hand, said without naming it: "er, nineteen", "drop it to fifteen percent"."""
    numbers = numbers_said(d.text)
    settled = bool(numbers) and numbers[0].start == 0 and (m := _SO_BE_IT.match(d.text))
    if not numbers or _ANOTHER.search(d.text[m.end():] if settled else d.text) or is_question(d.text) or len(d.text) > 50 or d.request.question:
        return None
    t = d.request.tasks[0]
    c = d.found.get(t.capability)
    if c is None or c.whole or t.age_s > 120:
        return None
    telling = {h.name for h in lexicon().hits(d.text) if h.name.startswith("#")} - ACTIONS - _SCALE
    foreign = {h for h in telling if not c.words.get(h)}
    same = best is not None and (best.contract.id == c.id or c.contract.group and best.contract.contract.group == c.contract.group)
    if foreign or telling and t.state not in _PENDING and not _POINTS_AT.search(d.text) or not same and telling:
        return None
    if not telling and not settled and t.state not in _PENDING and not _POINTS_AT.search(d.text) and len(re.findall(r"[A-Za-z']+|[㐀-鿿]", d.text)) > 6:
        return None
    if any(s.free for s in c.slots.values()) and "update" not in said and t.state not in _PENDING:
        return None
    plan = repairs.update(d.found, d.request, d.text, best if same else None, False)
    return d.checked(plan) if plan and plan[0].target == t.id else None


_SCALE = frozenset("#percent #level #speaker #all #how_much #see #warm #cool #guests #number #driver #passenger #left #right #rear".split())
"""Concepts that say how much or for whom, not of what."""


def _rather_cancel(d: "Decision") -> bool:
    """Words that look like a correction but are much liker to an end, and give no value of any kind."""
    scores = d.found.votes.scores(d.planner.vector(d.text))
    return (scores["cancel"] >= 0.22 and scores["cancel"] > scores["update"] + 0.05 and _any(d, _PENDING)
            and not numbers_said(d.text) and not elliptic.contrast(d.text))


def _said_to_somebody(d: "Decision") -> bool:
    """Likest to what people say to each other, and no task is named."""
    scores = d.found.votes.scores(d.planner.vector(d.text))
    named = max((p for _, p in control.named(d.found, d.text, d.request.tasks)), default=0.0)
    return max(scores, key=scores.get) == "aside" and named < 0.9


def guessed(d: "Decision", planned: Planned, reason: str) -> Planned | None:
    """What words that led to nothing, or only weakly to something new, ask of a task in hand: by likeness alone. None where they don't."""
    scores = d.found.votes.scores(d.planner.vector(d.text))
    named = max((p for _, p in control.named(d.found, d.text, d.request.tasks)), default=0.0)
    bonus = 0.12 if named >= 1.5 else 0.0
    order = sorted(SURE, key=scores.get, reverse=True)
    top = order[0]
    if reason in (OTHER_PERSON, BROADCAST, SUPPOSED, SMALL_TALK) or len(d.text) > 90:
        return None
    if isinstance(planned, Aside) and _any(d, _PENDING) and scores["request"] < 0.3:
        if _NEED_MET.search(d.text):
            pending = tuple(t for t in d.request.tasks if t.state in _PENDING)
            chosen = control.target(d.found, d.text, pending, _PENDING)
            return d.checked((Plan("cancel", chosen.capability, {}, chosen.id),))
        if _NOT_DROPPED.search(d.text) and (named >= 0.9 or _POINTS_BACK.search(d.text)):
            return repairs.about_task(d.found, d.request, d.text, "status")
    if isinstance(planned, Aside):
        if scores[top] + bonus < GUESS or scores[top] + bonus < scores["aside"] - 0.12:
            return None
    elif scores[top] < 0.36 or scores[top] < scores["request"] + 0.05:
        return None
    if top == "update" or reason and top == "continue":
        if reason:
            return None
        plan = repairs.update(d.found, d.request, d.text, None, False)
        return d.checked(plan) if plan else None
    if top in ("cancel", "status") and not _any(d, _PENDING):
        return None
    if top == "repeat" and not _any(d, _TOLD):
        return None
    if top == "cancel" or top == "status" and control.says_cancel(d.text) and scores["cancel"] > 0.2:
        if control.says_cancel(d.text) and named < 0.9 and repairs.names_something(d.found, d.text):
            return None
        pending = tuple(t for t in d.request.tasks if t.state in _PENDING)
        chosen = control.target(d.found, d.text, pending, _PENDING)
        return d.checked((Plan("cancel", chosen.capability, {}, chosen.id),))
    return repairs.about_task(d.found, d.request, d.text, top)


_NEED_MET = re.compile(
    r"\b(?:i|we)(?:'ve| have| just|'ve just)? (?:can (?:already )?see|see|saw|found|found ourselves|spotted|got|got ourselves|already have|have)"
    r" (?:one|some|it|them|(?:a|my) \w+(?: \w+)?(?=,? (?:so )?(?:thanks|thank you|cheers|ta)\b))"
    r"(?:(?: over)? (?:there|here)| up ahead| already| now| myself| ourselves| on (?:the|our|my) \w+)?"
    r"(?:,? (?:so )?(?:thanks|thank you|cheers|ta)\b.*)?$"
    r"|^(?:我们?|这儿|这里|前面|那边)?(?:已经|自己)?(?:看到|看见|找到|找着|碰到|买到)(?:一[家个处]|了|它)了?[ ,]*(?:谢谢|谢了)?$", re.I)
"""What was looked for has been found without us: "we've got one, thanks"."""
_NOT_DROPPED = re.compile(r"\byou (?:haven't|have not|didn't|did not|aren't|won't) (?:forg\w+|lost|given up|dropped|stopped|abandon\w*)\b"
                          r"|(?:没|没有)(?:忘|落下|漏|丢).{0,10}(?:吧|吗|么)?$", re.I)
_POINTS_BACK = re.compile(r"\b(?:about|on) (?:it|that|us|me|my \w+)\b|(?:forgotten|stopped)$|我|这事|那事|那个", re.I)
"""A question whether work in hand has been dropped."""


GUESS = 0.3
"""The least score of a vote that is followed where nothing else is known of the words."""


def _correction_match(d: "Decision", text: str) -> Match | None:
    """How a correction reads as a whole request."""
    final, _ = corrected(text, d.last_value)
    pair = elliptic.contrast(text)
    return d.best(asked(pair[0] if pair else final))


def _answered(d: "Decision", said: list[str], best: Match | None, strong: bool) -> Planned | None:
    """The words as the answer to our open question; None where they are about something else."""
    request = d.request
    task = next((t for t in request.tasks if t.id == request.question_task), None)
    if task is None:
        return None
    if "cancel" in said and "no" not in said and not re.search(r"\d", d.text) and (control.says_cancel(d.text)):
        return (Plan("cancel", task.capability, {}, task.id),)
    other = strong and best.contract.id != task.capability and best.clues["example"] > 0.45 and best.clues["frame"] > 0.75
    if other and "yes" not in said and "no" not in said:
        c = d.found.get(task.capability)
        if not (c and c.contract.group and c.contract.group == best.contract.contract.group):
            return None
    if not set(said) & {"yes", "no"} and _rather_cancel(d):
        said = [*said, "no"]
    plan = repairs.answer(d.found, request, d.text, said)
    c = d.found.get(task.capability)
    if plan is None and c and numbers_said(d.text):
        lacking = [n for n in elliptic.wanted_by(c, task.arguments, request.question) if c.slots[n].role == NUMBER]
        if lacking:
            return asks.lacking(c, Filled(outside=lacking), d.lang)
    return plan


_ALL_OF_IT = re.compile(
    r"[ ,]*(?:both|all|every one|the (?:whole )?lot|all (?:of )?(?:it|them|that)|all (?:two|three|four|five|six)|both of them|全部|全都|两个都?)[ .!]*", re.I)
_SO_BE_IT = re.compile(r"[\w-]+(?: (?:percent|degrees|and|[\w-]*(?:ty|teen|hundred|one|two|three|four|five|six|seven|eight|nine)))* then\b", re.I)
"""A number accepted in place of another: "ninety then"."""


def _after_cancel(d: "Decision") -> Planned | None:
    """"Forget the museum, take me to the beach": the second half says what is wanted instead, or besides."""
    for left, right in ((cut.left, cut.right) for cut in cuts(d.text)):
        if "cancel" not in control.controls(left) or "cancel" in control.controls(asked(right)) or _ALL_OF_IT.fullmatch(right):
            continue
        best = d.best(asked(right))
        if best and best.filled.complete and best.score >= STRONG and not best.contract.whole:
            plan = repairs.update(d.found, d.request, right, best, True)
            if plan:
                return d.checked(plan)
            ended = repairs.cancel(d.found, d.request, left, d.best(left))
            return d.checked((*(ended or ()), Plan("new", best.contract.id, best.filled.arguments)))
    return None


def _any(d: "Decision", states: tuple[str, ...]) -> bool:
    return any(t.state in states for t in d.request.tasks)


def _told(d: "Decision", capability: str) -> bool:
    return any(t.capability == capability and t.state in ("told", "ready") for t in d.request.tasks)


def _other_question(d: "Decision", best: Match | None) -> bool:
    """A question to a capability rather than about our own work."""
    if best is None or re.search(r"\byou\b|你", d.text, re.I) or best.contract.whole:
        return False
    named = max((p for t, p in control.named(d.found, d.text, d.request.tasks) if t.state in _PENDING), default=0.0)
    return best.filled.complete and best.contract.asks >= 0.4 and best.score >= STRONG and best.clues["frame"] >= 0.6 and named < 2.0


def _about_running(d: "Decision", best: Match | None, strong: bool) -> bool:
    """A question that no capability answers better, and that names work in hand or what we do ("is my message out")."""
    if not is_question(d.text) or not _any(d, _PENDING) or strong and not best.contract.whole:
        return False
    named = max((p for t, p in control.named(d.found, d.text, d.request.tasks) if t.state in _PENDING), default=0.0)
    return named >= 1.5 and len(d.text) < 60


def _fragment(d: "Decision") -> bool:
    """A few words that are no request by themselves, soon after one."""
    words = re.findall(r"[A-Za-z']+|[㐀-鿿]|\d+", d.text)
    best = d.best(d.text)
    return len(words) <= 8 and best is not None and not is_question(d.text) and d.request.tasks[0].age_s < 60 and not (best.score >= LIKELY + 0.3)
