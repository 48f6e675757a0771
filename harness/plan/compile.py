"""Contracts compiled for matching: what role each argument plays, which words frame it, what each value is said with, example vectors.

Everything comes from a contract's own schema, examples and texts, so a new capability needs no grammar.
"""
import json
import logging
import re
from collections import Counter
from dataclasses import dataclass, field
from math import log

import numpy as np

from harness.plan.bank import asides, kept_vectors, ready_texts, wishes
from harness.plan.contracts import Contract
from harness.plan.embed import Embedder
from harness.plan.lexicon import lexicon
from harness.plan.numerals import numbers_said
from harness.plan.probe import Probe
from harness.plan.spelling import spelled
from harness.plan.text import asked, clean, folded, is_question
from harness.plan.votes import ControlVote

log_ = logging.getLogger(__name__)
ATTACH = 0.35
"""How well a group of ready phrases must fit a capability to be given to it."""
NUMBER, FLAG, CHOICE, SPELL, WHEN, DATE, CLOCK, PERSON, BODY, WHOLE, NAME = (
    "number", "flag", "choice", "spell", "when", "date", "clock", "person", "body", "whole", "name")
FREE = (PERSON, BODY, NAME)
ACTIONS = frozenset("#open #shut #on #off #up #down #cancel #need #go #full #half #low #high #crack #mute #find".split())
"""Concepts that say what is to be done, not with what."""
_NAMED = {"when": WHEN, "date": DATE, "day": DATE, "time": CLOCK,
          "recipient": PERSON, "contact": PERSON, "person": PERSON, "callee": PERSON, "who": PERSON,
          "name": NAME, "text": BODY, "body": BODY, "message": BODY, "content": BODY, "note": BODY}


@dataclass(frozen=True)
class Slot:
    """One argument of a contract: its role, and what its values are said with."""

    name: str
    role: str
    schema: dict
    required: bool
    description: str = ""
    default: object = None
    low: float | None = None
    high: float | None = None
    signed: bool = False
    values: dict = field(default_factory=dict)
    """Value (as JSON) -> Counter of the concepts and words that say it, from the examples and the value's own name."""
    units: frozenset[str] = frozenset()
    """Words that stood right behind its number in an example."""
    leads: frozenset[str] = frozenset()
    """Words that stood right before its value in an example, articles apart."""

    @property
    def free(self) -> bool:
        return self.role in FREE


@dataclass(frozen=True)
class Example:
    text: str
    arguments: dict
    spans: dict
    """Slot name -> (start, end) where its value stands in `text`; values that stand nowhere are missing."""
    frame: Counter
    """Concepts and words outside the free values."""


@dataclass
class Compiled:
    contract: Contract
    slots: dict[str, Slot]
    examples: list[Example]
    words: Counter
    """Concept or word -> weight (1: in an example's frame, less: in the texts)."""
    frames: frozenset[str]
    """Concepts and words of the examples' frames: what leads to a free value or trails it."""
    vectors: np.ndarray
    """float32 [sentences, dim]: the examples, and the phrases attached."""
    kinds: frozenset[str] = frozenset()
    """Concepts of a free name's own name ("restaurant")."""
    heads: tuple[str, ...] = ()
    tails: tuple[str, ...] = ()
    """Chinese words right before and right behind a free value in an example: they are no part of it."""
    core: frozenset[str] = frozenset()
    """Concepts that (nearly) all examples have in common."""
    asks: float = 0.5
    """Share of the examples that are questions."""
    one_of: tuple[frozenset[str], ...] = ()
    """Sets of arguments of which exactly one must be given."""

    @property
    def id(self) -> str:
        return self.contract.id

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(s.name for s in self.slots.values() if s.required)

    @property
    def whole(self) -> Slot | None:
        """The argument that takes the user's words whole, where there is one."""
        return next((s for s in self.slots.values() if s.role == WHOLE), None)

    @property
    def refers(self) -> bool:
        """Whether it takes something just offered ("the second one", "there")."""
        return any(s.role == NAME and re.search(r"just offered|刚才提到|\bthe second one\b", s.description) for s in self.slots.values())


@dataclass
class CompiledSet:
    """All contracts of one request, and what tells them apart from each other and from asides."""

    contracts: list[Compiled]
    weight: dict[str, float]
    probe: Probe
    """Classes: the contracts in order, then asides."""
    asides: np.ndarray
    """float32 [sentences, dim]"""
    votes: ControlVote
    """Which operation on a task some words ask for."""

    def get(self, capability: str | None) -> Compiled | None:
        return next((c for c in self.contracts if c.id == capability), None)

    def of_kind(self, kind: str) -> Compiled | None:
        return next((c for c in self.contracts if c.contract.kind == kind), None)


def compile_contracts(contracts: tuple[Contract, ...], embedder: Embedder) -> CompiledSet:
    """Examples are embedded in one go (about 7 ms each, kept on disk); keep the result."""
    texts = [[asked(clean(text)) for rows in c.examples.values() for text, _ in rows] or [clean(s) for s in c.summary.values()] for c in contracts]
    flat = [t for ts in texts for t in ts]
    own = kept_vectors(flat, embedder)
    phrases = [(group, t) for group, ts in wishes().items() for t in ts]
    ready = kept_vectors(ready_texts(), embedder)
    told_apart = len(phrases) + sum(map(len, asides().values()))  # the sentences about tasks come last
    compiled, at = [], 0
    for c, mine in zip(contracts, texts):
        compiled.append(_compile(c, own[at:at + len(mine)]))
        at += len(mine)
    spread = Counter(w for c in compiled for w in c.words)
    weight = {w: log(1 + (len(compiled) + 0.5) / count) for w, count in spread.items()}
    if compiled:
        _attach(compiled, weight, phrases, ready)
        spread = Counter(w for c in compiled for w in c.words)
        weight = {w: log(1 + (len(compiled) + 0.5) / count) for w, count in spread.items()}
    aside_vectors = ready[len(phrases):told_apart]
    votes = ControlVote(ready[told_apart:], np.concatenate([own, ready[:len(phrases)]]), aside_vectors)
    vectors = np.concatenate([*(c.vectors for c in compiled), aside_vectors])
    labels = np.concatenate([np.full(len(c.vectors), i) for i, c in enumerate(compiled)] + [np.full(len(aside_vectors), len(compiled))]).astype(int)
    weight = {w: k * (0.6 if w in ACTIONS else 1.0) for w, k in weight.items()}
    return CompiledSet(compiled, weight, Probe(vectors, labels, len(compiled) + 1), aside_vectors, votes)


def _attach(compiled: list[Compiled], weight: dict, phrases: list[tuple[str, str]], vectors: np.ndarray) -> None:
    """Give each group of ready phrases to the capability that asks for the same, if there is one."""
    near = np.stack([(vectors[:len(phrases)] @ c.vectors.T).max(axis=1) for c in compiled])
    for group in dict.fromkeys(g for g, _ in phrases):
        rows = [i for i, (g, _) in enumerate(phrases) if g == group]
        named = [{h.name for h in lexicon().hits(phrases[i][1]) if h.name in weight} for i in rows]
        scores = []
        for k, c in enumerate(compiled):
            frame = [sum(weight[w] * c.words[w] for w in seen) / (sum(weight[w] for w in seen) or 1.0) for seen in named]
            asking = np.mean([is_question(phrases[i][1]) for i in rows])
            scores.append(float(np.mean(frame)) + 8.0 * float(np.mean(near[k][rows] - near[:, rows].mean(axis=0))) - 0.5 * abs(asking - c.asks))
        best = int(np.argmax(scores))
        log_.debug("phrases %s: %s (%.2f)", group, compiled[best].id, scores[best])
        if scores[best] < ATTACH:
            continue
        c = compiled[best]
        c.vectors = np.concatenate([c.vectors, vectors[rows]])
        for w, count in Counter(w for seen in named for w in seen if w.startswith("#")).items():
            if count >= 2:
                c.words[w] = max(c.words[w], min(0.4 if w in ACTIONS else 0.9, count / len(rows) * 2))


def _compile(c: Contract, vectors: np.ndarray) -> Compiled:
    rows = [(clean(text), args) for rows in c.examples.values() for text, args in rows]
    props = c.schema.get("properties", {})
    required = set(c.schema.get("required", ()))
    roles = {name: _role(name, schema, [(t, a[name]) for t, a in rows if name in a]) for name, schema in props.items()}
    examples = [_example(text, args, roles) for text, args in rows]
    slots = {name: _slot(name, schema, roles[name], name in required, examples) for name, schema in props.items()}
    words: Counter = Counter()
    for text in c.summary.values():
        for h in lexicon().hits(clean(text)):
            words[h.name] = max(words[h.name], 0.35)
    for slot in slots.values():
        for value, said in slot.values.items():
            for w in said:
                words[w] = max(words[w], 0.8)
    for name in (*re.split(r"[._]", c.id), *(p for name in props for p in name.split("_"))):
        for h in lexicon().hits(name):
            words[h.name] = max(words[h.name], 0.3)
    for e in examples:
        for w in e.frame:
            words[w] = 1.0
    for filler in ("#speaker", "#how_much"):
        if filler in words:
            words[filler] = min(words[filler], 0.35)
    frames = frozenset(w for e in examples for w in e.frame)
    one_of = tuple(frozenset(r for option in c.schema[key] for r in option.get("required", ())) for key in ("oneOf",) if key in c.schema)
    if not one_of and not required and len(props) > 1 and examples and all(len(e.arguments) == 1 for e in examples):
        one_of = (frozenset(props),)  # what the examples never leave out, and never give together
    asks = sum(is_question(e.text) for e in examples) / len(examples) if examples else 0.5
    shared = Counter(w for e in examples for w in set(e.frame) if w.startswith("#"))
    core = frozenset(w for w, count in shared.items() if count >= 0.8 * len(examples) and len(examples) > 2)
    edges = [_edges(e, slots) for e in examples]
    heads, tails = (tuple(sorted({x for pair in edges for x in pair[k] if x}, key=len, reverse=True)) for k in (0, 1))
    named = [part for n, s in slots.items() if s.role == NAME for part in n.split("_")]
    kinds = frozenset(h.name for part in named for h in lexicon().hits(part) if h.name.startswith("#")) - {"#destination", "#where"}
    return Compiled(c, slots, examples, words, frames, vectors, kinds, heads, tails, core, asks, one_of)


def _edges(e: Example, slots: dict[str, Slot]) -> tuple[set[str], set[str]]:
    """The runs of Chinese characters that touch a free value of an example, before and behind it."""
    before, behind = set(), set()
    for name, (start, end) in e.spans.items():
        if slots[name].free:
            others = [s for n, s in e.spans.items() if n != name]
            left = re.search(r"[㐀-鿿]{2,8}$", e.text[max((b for _, b in others if b <= start), default=0):start])
            right = re.match(r"[㐀-鿿]{2,8}", e.text[end:min((a for a, _ in others if a >= end), default=len(e.text))])
            before.add(left.group() if left else "")
            behind.add(right.group() if right else "")
    return before, behind


def _types(schema: dict) -> set[str]:
    if "anyOf" in schema:
        return set().union(*(_types(option) for option in schema["anyOf"]))
    types = schema.get("type", "string")
    return set(types if isinstance(types, list) else [types])


def _role(name: str, schema: dict, given: list[tuple[str, object]]) -> str:
    if "enum" in schema or any("enum" in option for option in schema.get("anyOf", ())):
        return CHOICE
    types = _types(schema)
    if "boolean" in types:
        return FLAG
    if types & {"number", "integer"}:
        return NUMBER
    strings = [(text, str(value)) for text, value in given if isinstance(value, str)]
    if strings and all(len(folded(v)) >= 0.7 * len(folded(t)) for t, v in strings):
        return WHOLE
    if strings and all(_spelled_in(t, v) for t, v in strings):
        return SPELL
    words = set(name.lower().split("_"))
    said = schema.get("description", "").lower()
    if words & {"id", "code", "pin", "plate", "serial", "tracking"} or "characters" in said:
        return SPELL
    for word, role in _NAMED.items():
        if word in words:
            return role
    if re.match(r"(?:the )?(?:when|time|date)\b", said):
        return WHEN
    if re.search(r"\bwho\b|\bperson\b", said):
        return PERSON
    if re.search(r"\bwords\b|\bsentence\b|\bwhat to\b(?! play)", said):
        return BODY
    return NAME


def _spelled_in(text: str, value: str) -> bool:
    """Whether an example's value is an id that its utterance spells out."""
    apart = folded(value) not in folded(text) and any(value.upper() in s.chars for s in spelled(text))
    return apart or value.upper() == value and bool(re.search(r"\d", value))


def _example(text: str, arguments: dict, roles: dict) -> Example:
    spans = {}
    for name, value in arguments.items():
        span = _find(text, value, roles[name])
        if span:
            spans[name] = span
    masked = [s for name, s in spans.items() if roles[name] in (*FREE, SPELL, WHEN, DATE, CLOCK)]
    masked += [(n.start, n.end) for n in numbers_said(text)]
    whole = WHOLE in (roles[name] for name in arguments)
    frame = Counter(h.name for h in lexicon().hits(text) if not any(h.start < end and start < h.end for start, end in masked)
                    and (not whole or h.name.startswith("#")))
    return Example(text, arguments, spans, frame)


def _find(text: str, value: object, role: str) -> tuple[int, int] | None:
    """Where the words of an example's value stand in its utterance."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return next(((n.start, n.end) for n in numbers_said(text) if abs(value) in n.readings), None)
    at = text.lower().find(str(value).lower())
    if at >= 0 and role != CHOICE:
        return at, at + len(str(value))
    if role in (SPELL, PERSON):
        return next(((s.start, s.end) for s in spelled(text) if s.chars == str(value).upper()), None)
    if role == NAME:
        tail = str(value).split()[-1].lower()
        at = text.lower().rfind(tail)
        first = next((n.start for n in numbers_said(text)), at)
        return (min(first, at), at + len(tail)) if at >= 0 else None
    return None


def _slot(name: str, schema: dict, role: str, required: bool, examples: list[Example]) -> Slot:
    options = [schema, *schema.get("anyOf", ())]
    def limit(key):
        return next((o[key] for o in options if key in o), None)
    low, high = limit("minimum"), limit("maximum")
    values: dict = {}
    units: set[str] = set()
    if role in (CHOICE, FLAG, NUMBER):
        known = next((o["enum"] for o in options if "enum" in o), [True, False] if role == FLAG else [])
        for value in known:
            values[json.dumps(value)] = Counter(_concepts_of(value)) if role == CHOICE else Counter()
        by_value: dict[str, list[Counter]] = {}
        for e in examples:
            if name in e.arguments and not (role == NUMBER and name in e.spans):
                by_value.setdefault(json.dumps(e.arguments[name]), []).append(e.frame)
        for value, frames in by_value.items():
            others = Counter(w for v, fs in by_value.items() if v != value for f in fs for w in f)
            without = Counter(w for e in examples if name not in e.arguments for w in e.frame)
            said = values.setdefault(value, Counter())
            for f in frames:
                for w in f:
                    if not others[w] and not without[w] and not (role == CHOICE and w in ACTIONS):
                        said[w] += 1
        if role == NUMBER:
            for e in examples:
                if name in e.spans:
                    after = re.match(r"[ -]*(个?人|[a-z]+|[㐀-鿿])", e.text[e.spans[name][1]:].lower())
                    if after:
                        units.add(after[1])
    before = (re.search(r"([a-z]+|[㐀-鿿]) ?(?:the |a |an |some )?$", e.text[:e.spans[name][0]].lower()) for e in examples if name in e.spans)
    return Slot(name, role, schema, required, str(schema.get("description", "")), schema.get("default"), low, high,
                low is not None and low < 0, values, frozenset(units), frozenset(m[1] for m in before if m))


def _concepts_of(value: object) -> dict[str, int]:
    """Concepts and words that an enum value's own name stands for: "rear_left" is #rear and #left."""
    found: dict[str, int] = {}
    for part in str(value).lower().split("_"):
        names = {h.name for h in lexicon().hits(part)} | ({"#" + part} if "#" + part in lexicon().phrases else set())
        for n in names:
            found[n] = 2
    return found
