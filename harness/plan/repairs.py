"""Requests about requests: corrections, ends, "how far is it", "say that again", answers to an open question."""
import re

from harness.plan import control, elliptic
from harness.plan.compile import CompiledSet, Compiled
from harness.plan.contracts import LiveTask, Plan, PlanRequest
from harness.plan.lexicon import lexicon
from harness.plan.match import Match
from harness.plan.slots import fill

LIVE = control.LIVE
_AMOUNT = re.compile(r"(?:a (?:little|bit|touch) )?(?:less|more)\b(?! \w+er)(?:,|$)|(?:少|多)一?点", re.I)
"""A change of the step asked for, not of its direction."""
_PENDING = ("queued", "running", "ready")


def cancel(found: CompiledSet, request: PlanRequest, text: str, best: Match | None) -> tuple[Plan, ...] | None:
    """The tasks to end, or None where the words end something that is no task of ours."""
    tasks = request.tasks
    if control.says_both(text) and re.search(
            r"\bboth\b|\ball of\b|\ball that\b|\beverything\b|\bthe lot\b|\ball (?:two|three|four|five)\b|全都?|统统|两个都|都(?:取消|停|不要)", text, re.I):
        live = [t for t in tasks if t.state in _PENDING]
        if len(live) > 1:
            return tuple(Plan("cancel", t.capability, {}, t.id) for t in live)
    closing = ender(found, text, best)
    scored = control.named(found, text, tasks)
    live = [(t, p) for t, p in scored if t.state in _PENDING]
    if closing:
        group = closing.contract.contract.group
        mine = next((t for t, p in live if group and (c := found.get(t.capability)) and c.contract.group == group), None)
        return (Plan("cancel", mine.capability, {}, mine.id),) if mine else (Plan("new", closing.contract.id, closing.filled.arguments),)
    top = max((p for _, p in scored), default=0.0)
    if top >= 0.9:
        chosen = next((t for t, p in live if p >= top - 0.01), None) or next(t for t, p in scored if p >= top - 0.01)
        return (Plan("cancel", chosen.capability, {}, chosen.id),)
    if names_something(found, text):
        return None
    chosen = next((t for t, _ in live), None) or (tasks[0] if tasks else None)
    return (Plan("cancel", chosen.capability, {}, chosen.id),) if chosen else None


def ender(found: CompiledSet, text: str, best: Match | None) -> Match | None:
    """A capability that itself ends something ("cancel the route"), where the words name what it ends."""
    if not best or not best.filled.complete or "#cancel" not in best.contract.frames:
        return None
    mine = {h.name for h in lexicon().hits(text) if h.name.startswith("#")} - {"#cancel", "#off", "#need", "#go", "#up", "#on", "#speaker", "#down"}
    return best if mine & best.contract.frames else None


_POINTING = frozenset("#cancel #off #need #go #on #all #find #up #down #speaker #see #plan #level #when #driver".split())


def names_something(found: CompiledSet, text: str) -> bool:
    """Whether a cancellation names a thing that some capability deals with ("don't call her"), rather than just pointing."""
    telling = {h.name for h in lexicon().hits(text) if h.name.startswith("#")} - _POINTING
    return any(c.words.get(h, 0.0) >= 0.5 for c in found.contracts for h in telling)


def about_task(found: CompiledSet, request: PlanRequest, text: str, operation: str) -> tuple[Plan, ...] | None:
    """status, repeat and continue: the task named, else the newest one that the operation makes sense for."""
    states = {"status": _PENDING, "repeat": ("told", "ready", "failed"), "continue": ("told", "running", "ready", "queued")}[operation]
    pool = tuple(t for t in request.tasks if t.state in states) or request.tasks
    chosen = control.target(found, text, pool, states)
    return (Plan(operation, chosen.capability, dict(chosen.arguments) if operation == "continue" else {}, chosen.id),) if chosen else None


def answer(found: CompiledSet, request: PlanRequest, text: str, said: list[str]) -> tuple[Plan, ...] | None:
    """The open question answered: its task goes on with what was said filled in."""
    task = next((t for t in request.tasks if t.id == request.question_task), None)
    c = found.get(task.capability) if task else None
    if not task or not c:
        return None
    yes, no = "yes" in said, "no" in said
    ends = re.search(r"\bstop\b|\bcancel\b|\bgive up\b|\bdrop\b|\babort\b|停|取消|放弃|不(?:要|用)继续", request.question, re.I)
    go_on = re.search(r"\bgive up\b|\bstop\b|\bcancel\b|\bforget\b|取消|停|算了|别(?!的)", text, re.I)
    if yes and not go_on:
        return (Plan("cancel", task.capability, {}, task.id),) if ends else (Plan("continue", task.capability, dict(task.arguments), task.id),)
    if no and not elliptic.changes(c, elliptic.bare(text), task.arguments):
        return (Plan("continue", task.capability, dict(task.arguments), task.id),) if ends else (Plan("cancel", task.capability, {}, task.id),)
    wanted = elliptic.wanted_by(c, task.arguments, request.question)
    got = elliptic.changes(c, text, task.arguments, wanted)
    if not got:
        return None
    return (Plan("continue", task.capability, {**task.arguments, **got}, task.id),)


def update(found: CompiledSet, request: PlanRequest, text: str, best: Match | None, marked: bool) -> tuple[Plan, ...] | None:
    """A correction of one of the tasks: the whole new request of its kind, or a fragment that fits it."""
    tasks = [t for t in request.tasks if found.get(t.capability)]
    if not tasks:
        return None
    if best and best.filled.complete and not best.contract.whole and best.score >= 2.0 and not _AMOUNT.match(elliptic.bare(text)):
        for t in tasks:
            c = found.get(t.capability)
            same = best.contract.id == t.capability
            if same or c.contract.group and c.contract.group == best.contract.contract.group:
                base = _kept(best.contract, t) if same else {}
                arguments = {**base, **best.filled.arguments}
                if arguments != t.arguments or not same:
                    return (Plan("update", best.contract.id, _exclusive(best.contract, arguments, best.filled.arguments), t.id),)
    for t in _by_name(found, text, tasks):
        c = found.get(t.capability)
        got = elliptic.changes(c, text, t.arguments, free=marked)
        if got and any(t.arguments.get(k) != v for k, v in got.items()):
            other = _sibling(found, c, got, text)
            if other:
                return (Plan("update", other[0].id, other[1], t.id),)
            return (Plan("update", c.id, _exclusive(c, {**t.arguments, **got}, got), t.id),)
        sibling = _sibling(found, c, {}, text)
        if sibling:
            return (Plan("update", sibling[0].id, sibling[1], t.id),)
    return None


def _kept(c: Compiled, t: LiveTask) -> dict:
    """Of the old arguments those that a whole new request leaves as they were."""
    return {k: v for k, v in t.arguments.items() if k in c.slots}


def _exclusive(c: Compiled, arguments: dict, new: dict) -> dict:
    """Of arguments that exclude each other the new one."""
    for group in c.one_of:
        fresh = [n for n in group if new.get(n) is not None]
        if fresh:
            arguments = {k: v for k, v in arguments.items() if k not in group or k in fresh}
    return arguments


def _by_name(found: CompiledSet, text: str, tasks: list[LiveTask]) -> list[LiveTask]:
    """Tasks in the order in which a fragment is tried on them: the one named, then the newest."""
    scored = dict((t.id, p) for t, p in control.named(found, text, tuple(tasks)))
    top = max(scored.values())
    pair = elliptic.contrast(text)
    if pair:  # what it is not, says which task is meant
        mine = next((t for t in tasks if any(isinstance(v, str) and pair[1].lower() in v.lower() for v in t.arguments.values())), None)
        if mine:
            return [mine, *(t for t in tasks if t is not mine)]
    return sorted(tasks, key=lambda t: 0 if top >= 0.9 and scored[t.id] >= top - 0.01 else 1)


def _sibling(found: CompiledSet, c: Compiled, got: dict, text: str) -> tuple[Compiled, dict] | None:
    """Another capability of the same group that the fragment fits better: "no, just to 21" after a step of temperature."""
    if not c.contract.group:
        return None
    plain = elliptic.bare(text)
    signed = next((s for s in c.slots.values() if s.signed), None)
    for other in found.contracts:
        if other is c or other.contract.group != c.contract.group or not other.slots:
            continue
        filled = fill(other, plain)
        if not filled.complete:
            continue
        if signed and any(s.role == "number" and not s.signed for s in other.slots.values()) and re.search(r"\b(?:to|at)\b|到|设|成", text):
            return other, filled.arguments
        if not got and not any(s.free for s in other.slots.values()):
            return other, filled.arguments
    return None
