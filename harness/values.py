"""Exact values: what a request's arguments hold must be among the words the user said.

Numbers in digits and in words (English and Chinese, large ones, decimals, halves, durations in other units), ids as spelled, and,
where asked for, the words of names, dates and texts.
"""
import json
import re
from typing import Any, Collection

from harness.plan.numerals import numbers_said
from harness.plan.spelling import spelled
from harness.plan.text import clean, pieces

_FILLING = frozenset("a an the of to at on in for and 的 了 个".split())


def numbers_in(prose: str) -> set[float]:
    """Every number said in `prose`, each as the longest reading ("twenty two point five" is 22.5 alone), with what else the
    same words can mean (half is also fifty per cent)."""
    return {reading for n in numbers_said(prose) for reading in (n.value, *n.other)}


def unsaid_values(arguments: dict[str, Any], prose: str, derived: Collection[str] = (), *, words: Collection[str] = (),
                  known: Collection[str] = ()) -> tuple[str, ...]:
    """Names of the arguments that hold something the user did not say.

    Numbers are looked at everywhere, those inside a string too (an id may have been spelled: "A 7 three" is A73); the sign is not
    compared: "two degrees cooler" is -2. Booleans are exempt, and so is what `derived` names, or all with "*". The strings that
    `words` names (see `free_text`) must consist of words that were said. `known`: further texts that count as said (what was
    said before, names in the session's memory).
    """
    if "*" in derived:
        return ()
    texts = (prose, *known)
    said = {reading for text in texts for n in numbers_said(text) for reading in n.readings}  # an hour is also sixty minutes
    runs = [run.chars for text in texts for run in spelled(text)]
    heard = {piece for text in texts for piece in pieces(clean(text))} | {piece for text in texts for piece in pieces(text)}
    joined = ["".join(pieces(text)) for text in texts]

    def unsaid(name: str, value: Any) -> bool:
        if isinstance(value, str) and _spelled_out(value, runs, joined):
            return False
        if any(abs(n) not in said for n in _numbers(value)):
            return True
        return name in words and isinstance(value, str) and not _words_said(value, heard, said)
    return tuple(name for name, value in arguments.items() if name not in derived and unsaid(name, value))


def values_in_words(arguments: dict[str, Any], prose: str, derived: Collection[str] = (), *, words: Collection[str] = (),
                    known: Collection[str] = ()) -> bool:
    """Whether everything exact in `arguments` is among the user's words."""
    return not unsaid_values(arguments, prose, derived, words=words, known=known)


def free_text(schema: dict) -> frozenset[str]:
    """The arguments of a JSON schema that hold the user's own words: strings without an enum."""
    def free(part: dict) -> bool:
        text = json.dumps(part)
        return '"string"' in text and '"enum"' not in text and '"const"' not in text
    return frozenset(name for name, part in schema.get("properties", {}).items() if free(part))


def _spelled_out(value: str, runs: list[str], joined: list[str]) -> bool:
    """Whether an id is a run of characters as somebody spelled them."""
    chars = re.sub(r"[\s\-./]", "", value).upper()
    return bool(re.search(r"\d", chars)) and (any(chars in run for run in runs) or any(chars.lower() in text for text in joined))


def _words_said(value: str, heard: set[str], said: set[float]) -> bool:
    """Every word (or Chinese character) of a value was heard; a number may have been said in another way."""
    for piece in pieces(value):
        number = re.fullmatch(r"\d+", piece)
        if piece not in heard and piece not in _FILLING and not (number and float(piece) in said):
            return False
    return True


def _numbers(value: Any) -> list[float]:
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, (int, float)):
        return [float(value)]
    if isinstance(value, str):
        return [float(n.replace(",", ".")) for n in re.findall(r"\d+(?:[.,]\d+)?", value)]
    if isinstance(value, dict):
        return [n for item in value.values() for n in _numbers(item)]
    return [n for item in value for n in _numbers(item)] if isinstance(value, (list, tuple)) else []
