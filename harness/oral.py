"""Spoken text: what may be said of an outcome, and which part of it was heard."""
import re

_TAGS = re.compile(r"<\|[^<>]*\|>|</?[A-Za-z][^<>]*>")
_CODE = re.compile(r"```.*?(?:```|\Z)", re.S)
_TRACE = re.compile(r"Traceback \(most recent call last\).*", re.S)
_PATHS = re.compile(r"(?<![\w.])(?:[A-Za-z]:\\|~?/)[\w.\-]+(?:[/\\][\w.\-]+)+")
_MARKS = re.compile(r"^\s*(?:[-*+]|#{1,6}|>)\s+|[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}(?!\w)", re.M)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_SENTENCE_END = re.compile(r"[.!?。！？](?=\s|$)|[。！？]")


def spoken(text: str, max_chars: int) -> str:
    """`text` without control tokens, tags, code, stack traces, file paths and markup, in at most `max_chars`.

    Removal is repeated until nothing is left to remove, so that tags can't be assembled from their remains.
    """
    before = None
    while before != text:
        before = text
        for pattern in (_CONTROL, _CODE, _TRACE, _TAGS, _PATHS, _MARKS):
            text = pattern.sub("", text)
    text = " ".join(text.split())
    if not re.search(r"\w", text):
        return ""
    if len(text) <= max_chars:
        return text
    ends = [m.end() for m in _SENTENCE_END.finditer(text, 0, max_chars)]
    return text[:ends[-1]] if ends else text[:max_chars].rsplit(" ", 1)[0]


def heard_chars(text: str, heard: str, unheard: str) -> int:
    """How many characters of `text` were heard, given the words the device confirmed and those it did not.

    Letters and digits are compared, nothing else. Where the words differ from `text` (a front end may write numbers out),
    the share heard counts, down to the start of a word. What is in neither string was never said.
    """
    bare, said, missing = (_letters(t) for t in (text, heard, unheard))
    exact = True
    if bare.startswith(said):
        count = len(said)
    elif missing and bare.endswith(missing):
        count = len(bare) - len(missing)
    else:
        count, exact = int(len(bare) * len(said) / max(len(said) + len(missing), len(bare))), False
    if count >= len(bare):
        return len(text)
    at = 0
    for at, char in enumerate(text):
        if char.isalnum():
            if count == 0:
                break
            count -= 1
    return at if exact else text.rfind(" ", 0, at + 1) + 1


def _letters(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())
