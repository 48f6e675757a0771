"""One request on its way through the deterministic planner's steps."""
import logging
import re
from typing import TYPE_CHECKING

from harness.plan import asks, elliptic, repairs
from harness.plan.address import aside_reason
from harness.plan.clauses import Cut, cuts
from harness.plan.compile import ACTIONS
from harness.plan.contracts import Aside, Plan, Planned, PlanRequest
from harness.plan.controlled import controlled, guessed
from harness.plan.correct import corrected, split_at_marks, without_hesitations
from harness.plan.filled import Filled
from harness.plan.lexicon import lexicon
from harness.plan.match import LIKELY, STRONG, Match, matches
from harness.plan.meant import asked_anyway, positive_end
from harness.plan.mood import COMMAND, COMPLAINT, FRAGMENT, QUESTION, STATEMENT, WISH, mood
from harness.plan.numerals import numbers_said
from harness.plan.residue import is_reference, reference_in
from harness.plan.spelling import spelled
from harness.plan.text import asked, clean, is_question, language, wake
from harness.values import unsaid_values

if TYPE_CHECKING:
    from harness.plan.rules import RulePlanner

log = logging.getLogger(__name__)
_TOLERATED = {COMMAND: 0.4, WISH: 0.2, QUESTION: 0.05, COMPLAINT: 0.2, FRAGMENT: 0.1, STATEMENT: -0.2}
"""How much liker to an aside than to the best capability (probe scores) a sentence of each mood may be and still be a request."""
_VAGUE = ACTIONS - {"#cancel", "#go", "#find", "#mute"} | {"#percent", "#level", "#speaker", "#all", "#how_much", "#see"}
"""Concepts that alone make no request."""
_DANGLING = re.compile(r"(?:(?<![\w'])(?:to|at|the|a|an|my|for|with|by|of|um|and|from|about|it called)|(?<=[A-Za-z] )去|调到|调成|设到|开到|设为|设成|改到|改成"
                       r"|给|把|跟|和|叫什么来着|那个什么|什么来着)$", re.I)
"""A sentence that breaks off."""
_ASKS_FACT = re.compile(r"(?:whose|who|what|which|how|when|where|why)(?:'s|\b)(?! (?:do you|are you|did you|was i|am i|did i|do i|have i))|.*(?:谁|什么"
                        r"|哪|多少|多[高大远长深]|为什么|怎么)", re.I)
_NOTHING = re.compile(r"(?:(?:in|on|up|the|a|an|it|oh|um|you know|about|for|to|something|一声|一下|一个|一条|个|条)[ ,.]*)+$", re.I)
"""A text to keep or to send that says nothing."""
_ASKS = re.compile(r"(?:who|what|why|how|did|does|was|were|has|have|is|are|am)\b|.*(?:吗|谁|为什么)", re.I)
_POINTING = re.compile(
    r"^(?:turn|switch|put|set|make|open|close|shut|adjust|change|start|do|move|get|find|give|crank|raise|lower|push|pull|fix|stop|play|send"
    r"|call)\b(?:.*\b(?:it|that|this|thing|one|ones|them|up|down|off|on|other)\b|$)"
    r"|^(?:把?(?:那个|这个|它|那边那个|那边).{0,4})?(?:调|弄|设|开|关|打开|关掉|换|搞|整|放|来|改|set|open|close|turn|change) ?(?:一下|下|个|大|小|高|低|起来|上|了|on|off|up"
    r"|down)?(?:那个|这个|它)?(?:一?点)?$|那个什么|\bthing\b|那个东西|那玩意", re.I)


class Decision:
    """One request on its way through the steps."""

    def __init__(self, planner: "RulePlanner", request: PlanRequest):
        self.planner, self.request = planner, request
        self.found = planner.compiled(request.contracts)
        self.whole, self.woken = wake(clean(without_hesitations(request.prose)))
        self.text = asked(self.whole)
        self.lang = language(request.prose, request.lang)
        self.known: dict[str, list[Match]] = {}

    def result(self) -> Planned:
        if not self.text:
            return Aside("nothing said")
        reason = aside_reason(self.whole, self.text, self.woken)
        planned = self._first(reason)
        if self.request.tasks and (isinstance(planned, Aside) or _weakly_new(self, planned)):
            return guessed(self, planned, reason) or planned
        return planned

    def _first(self, reason: str) -> Planned:
        control_plan = controlled(self, reason)
        if control_plan is not None:
            return control_plan
        if reason and not asked_anyway(self, reason):
            return Aside(reason)
        return self._new()

    def matches(self, text: str) -> list[Match]:
        if text not in self.known:
            self.known[text] = matches(self.found, text, self.planner.vector(text))
        return self.known[text]

    def best(self, text: str) -> Match | None:
        return next(iter(self.matches(text)), None)

    def probe_aside(self, text: str) -> float:
        """How much liker to an aside than to the best capability."""
        scores = self.found.probe.scores(self.planner.vector(text))
        return float(scores[-1] - max(scores[:-1], default=0.0))

    def last_value(self, text: str) -> tuple[int, int] | None:
        best = self.best(asked(text))
        if best is None:
            return None
        shift = text.find(asked(text))
        spans = [best.filled.spans[n] for n in best.filled.spans if best.contract.slots[n].role != "whole"]
        if not spans or shift < 0:
            return None
        start, end = max(spans)
        return start + shift, end + shift

    def _new(self) -> Planned:
        mended = self._mended(self.text, choices_only=True)
        if mended:
            return self.checked((mended,))
        text, changed = corrected(self.text, self.last_value)
        text = asked(text)
        if not changed:
            mended = self._mended(text)
            if mended:
                return self.checked((mended,))
        parts = self._parts(text)
        if len(parts) > 1:
            plans = tuple(Plan("new", m.contract.id, m.filled.arguments) for m in parts)
            return self.checked(plans)
        best = self._chosen(text)
        if best and not is_question(text) and _DANGLING.search(self.whole if self.whole.rstrip().endswith(text[-3:]) else text) and best.score >= 0.8:
            return asks.unclear(self.lang, "not finished")
        if best and self._points_only(text):
            return asks.which(self.lang)
        point = self._pointed(text, best)
        if point:
            return point
        if best is None:
            return Aside("no capability")
        return self._single(text, best)

    def _mended(self, text: str, choices_only: bool = False) -> Plan | None:
        """A correction that only makes sense together with the request before it ("the driver's window, no, the passenger's")."""
        for before, after in split_at_marks(text):
            best = self.best(asked(before))
            if best is None or best.contract.whole or best.score < LIKELY or not best.filled.arguments:
                continue
            got = elliptic.changes(best.contract, after, best.filled.arguments, free=False)
            arguments = {**best.filled.arguments, **got}
            if choices_only and (len(after) > 30 or any(best.contract.slots[n].role != "choice" for n in got) or best.score < STRONG):
                continue
            if got and elliptic.complete(best.contract, arguments):
                return Plan("new", best.contract.id, arguments)
        return None

    def _points_only(self, text: str) -> bool:
        """Whether the words name nothing that any capability deals with, only what is to be done with "it"."""
        telling = {h.name for h in lexicon().hits(text)} - ACTIONS - {"#speaker", "#all", "#level", "#see", "#speed"}
        known = {w for c in self.found.contracts for w in telling if w in c.frames or w.startswith("#") and c.words.get(w, 0.0) >= 0.3}
        return not known and not numbers_said(text) and not (self.request.memory or {}).get("offers") and bool(_POINTING.search(text))

    def _single(self, text: str, best: Match) -> Planned:
        aside = self.probe_aside(text)
        kind = mood(self.whole)
        points = any(isinstance(v, str) and is_reference(v) for v in best.filled.arguments.values())
        if best.contract.refers and best.filled.complete and self.request.memory and points:
            return self.checked((Plan("new", best.contract.id, best.filled.arguments),))
        if repairs.ender(self.found, text, best) and best.score >= STRONG:
            return self.checked((Plan("new", best.contract.id, best.filled.arguments),))
        if kind == QUESTION and best.contract.contract.kind == "direct":
            aside += -0.2 if _ASKS_FACT.match(text) else 0.15
        log.debug("mood %s aside %.2f score %.2f", kind, aside, best.score)
        if not self.woken and (aside > _TOLERATED[kind] + (0.15 if best.score >= 4.0 else 0.0) or kind == STATEMENT and not positive_end(self, best)):
            return Aside("like what is not meant for the assistant")
        if kind == QUESTION and best.contract.asks < 0.05 and not self.woken and _ASKS.match(text):
            return self._answered_by_another(text, aside)
        if not best.contract.whole and best.clues["strength"] < 0.2 and best.clues["probe"] < 0.35 and not best.clues["typed"] and not self.woken:
            return self._weak(text, best, aside)  # not a word of what the capability is about
        if best.contract.whole and kind in (STATEMENT, FRAGMENT) and not self.woken and best.score < STRONG:
            return Aside("asks for nothing")
        if best.filled.complete and best.score >= STRONG:
            return self.checked((Plan("new", best.contract.id, best.filled.arguments),))
        if best.score < LIKELY:
            return self._weak(text, best, aside)
        if best.filled.complete:
            return self.checked((Plan("new", best.contract.id, best.filled.arguments),))
        direct = self.found.of_kind("direct")
        untold = best.filled.missing and best.contract.slots[best.filled.missing[0]].role == "choice"
        if direct and direct.whole and is_question(text) and best.contract.asks >= 0.5 and untold:
            return self.checked((Plan("new", direct.id, {direct.whole.name: text}),))  # none of the things that it can tell
        return asks.lacking(best.contract, best.filled, self.lang)

    def _answered_by_another(self, text: str, aside: float) -> Planned:
        """A question whose words fit only what is never asked: another capability answers it, or it was none for us."""
        for m in self.matches(text)[1:4]:
            if m.contract.asks >= 0.05 and m.filled.complete and m.score >= STRONG and not m.contract.whole:
                return self.checked((Plan("new", m.contract.id, m.filled.arguments),))
        direct = self.found.of_kind("direct")
        if direct and direct.whole and aside < -0.5:
            return self.checked((Plan("new", direct.id, {direct.whole.name: text}),))
        return Aside("a question to nobody here")

    def _weak(self, text: str, best: Match, aside: float) -> Planned:
        """No capability stands out: a question may be answered at once, a wish without an object is asked about."""
        direct = self.found.of_kind("direct")
        if direct and is_question(text) and aside < 0.0 and len(text) > 8:
            return self.checked((Plan("new", direct.id, {direct.whole.name: text} if direct.whole else {}),))
        if _POINTING.search(text) and aside < 0.5:
            return asks.which(self.lang)
        if best.score >= 1.0 and aside < -0.1 and (best.clues["strength"] >= 0.2 or best.clues["probe"] >= 0.3):
            if best.filled.complete:
                return self.checked((Plan("new", best.contract.id, best.filled.arguments),))
            return asks.lacking(best.contract, best.filled, self.lang)
        return asks.unclear(self.lang) if self.woken else Aside("no capability fits")

    def _chosen(self, text: str) -> Match | None:
        """The best match; of near equals of one group the one whose arguments are complete."""
        ranked = self.matches(text)
        if not ranked:
            return None
        first = ranked[0]
        if not first.filled.complete:
            for other in ranked[1:4]:
                group = other.contract.contract.group and other.contract.contract.group == first.contract.contract.group
                if other.filled.complete and other.clues["core"] < 1.0 and (group and other.score > first.score - 0.9) and not first.filled.outside:
                    return other
        return first

    def _pointed(self, text: str, best: Match | None) -> Planned | None:
        """"The second one", with places just offered."""
        clear = (best is not None and best.score >= STRONG and best.filled.complete and not best.contract.whole
                 and (best.clues["frame"] >= 0.75 or best.contract.refers))
        if clear or not (self.request.memory or {}).get("offers"):
            return None
        point = reference_in(text) or ((0, len(text)) if is_reference(text) else None)
        taker = next((c for c in self.found.contracts if c.refers), None)
        if not point or not taker or len(text) > 60 or is_question(text):
            return None
        slot = next(s for s in taker.slots.values() if s.role == "name")
        return (Plan("new", taker.id, {slot.name: text[point[0]:point[1]]}),)

    def _parts(self, text: str, depth: int = 0) -> list[Match]:
        """The requests that the text is made of, each a strong match by itself; one entry, or none, where it is one request."""
        whole = self.best(text)
        if depth > 2:
            return [whole] if whole else []
        for cut in cuts(text):
            if not self._hopeful(cut.left) or not self._hopeful(cut.right):
                continue
            a = self.best(asked(cut.left))
            if not _stands(a):
                continue
            rest = self._parts(asked(cut.right), depth + 1)
            if not rest or not all(_stands(m) for m in rest):
                continue
            if whole and whole.filled.complete and self._one_request(whole, [a, *rest], cut):
                continue
            return [a, *rest]
        return [whole] if whole else []

    def _hopeful(self, part: str) -> bool:
        """Worth a sentence vector: some word of it belongs to a capability."""
        return any(h.name in self.found.weight and h.name not in _VAGUE for h in lexicon().hits(part))

    def _one_request(self, whole: Match, parts: list[Match], cut: Cut) -> bool:
        """Whether the halves are better read as one ("find a charger and take me there", a text to send with "and" in it)."""
        ids = {p.contract.id for p in parts}
        if whole.contract.whole:
            return True
        if len(ids) == 1 and whole.contract.id in ids:
            if cut.weak:
                return True
            same = [p.filled.arguments for p in parts]
            return all(a == same[0] for a in same) or whole.contract.contract.kind != "skill"
        if whole.contract.id not in ids:
            return whole.score >= max(p.score for p in parts) - 0.2
        inside = [whole.filled.spans[n] for n, s in whole.contract.slots.items() if s.role == "body" and n in whole.filled.spans]
        if cut.weak and any(cut.at > start and cut.at < end for start, end in inside):
            return True  # a text may have commas of its own
        if cut.weak and whole.contract.asks >= 0.5 and is_question(cut.right):
            return True
        weaker = min(parts, key=lambda p: p.score)
        return weaker.score < STRONG + (0.2 if weaker.clues["frame"] >= 0.7 else 0.5) or not weaker.clues["example"]

    def checked(self, plans: tuple[Plan, ...]) -> Planned:
        """Values must be among the words of the user (now, before, of the target or in memory); else it is asked."""
        for p in plans:
            c = self.found.get(p.capability)
            if p.operation not in ("new", "update", "continue") or not c:
                continue
            empty = {n for n, s in c.slots.items() if s.role == "body" and p.operation == "new" and _NOTHING.match(str(p.arguments.get(n, "-")))}
            missing = [n for n in c.required if n not in p.arguments or n in empty]
            if missing and (p.operation != "continue" or p.arguments):
                return asks.lacking(c, Filled(missing=missing), self.lang)
            if c.contract.kind != "skill":
                continue
            task = next((t for t in self.request.tasks if t.id == p.target), None)
            fresh = {k: v for k, v in p.arguments.items() if not task or task.arguments.get(k) != v}
            free = tuple(n for n, s in c.slots.items() if s.free or s.role in ("when", "date", "clock", "spell"))
            words = " ".join([self.request.prose, self.whole, *self.request.said, task.prose if task else ""])
            mended = {n for n, v in fresh.items()
                      if task and c.slots[n].role == "spell" and _mended_id(str(task.arguments.get(n, "")), str(v), words)}
            unsaid = unsaid_values(fresh, words, c.contract.derived | mended, words=free)
            if unsaid:
                return asks.unsaid(unsaid, self.lang)
        return plans


def _mended_id(old: str, new: str, words: str) -> bool:
    """An id of which only some characters were said again ("it ends in eight")."""
    return bool(old) and set(new) <= set(old) | {char for run in spelled(words) for char in run.chars}


def _weakly_new(d: "Decision", planned: Planned) -> bool:
    """One new task, for words that do not fit its capability well."""
    if not isinstance(planned, tuple) or len(planned) != 1 or planned[0].operation != "new":
        return False
    best = d.best(d.text)
    return best is None or best.clues["example"] < 0.6 or best.contract.whole is not None


def _stands(m: Match | None) -> bool:
    """A request by itself, whatever stands beside it."""
    return (m is not None and m.filled.complete and m.score >= STRONG and m.clues["frame"] >= 0.5 and m.clues["core"] < 0.9
            and not m.contract.whole)
