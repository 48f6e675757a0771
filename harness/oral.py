"""Spoken text: what may be said of an outcome, and which part of it was heard."""
import html
import re

from harness.capture.reserved import BRACKETS, DEFAULT, INVISIBLE, ReservedTable, bare_name, inert

__all__ = ["heard_chars", "inert", "spoken"]

_REASONING = frozenset("think thinking thought thoughts reasoning reflection analysis scratchpad".split())
_HIDDEN = _REASONING | {"tool_call", "tool_response", "script", "style"}
"""Elements that go with all they hold. Reasoning whose opening tag was in the prompt goes up to its closing tag."""
_ENTITY = re.compile(r"&(?:(?:amp;)+|(?=[a-z#]))((?:lt|gt|quot|apos|nbsp|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});)?")
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^\s<>]*)>")
_BRACKET = re.compile("[" + "".join(BRACKETS) + "]")
_TAG = re.compile(r"/?[A-Za-z]|[!?]")
_CODE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.S)
_TRACE = re.compile(r"(?:Traceback \(most recent call last\)|Exception in thread \"|thread '[^'\n]{0,64}' (?:\(\d+\) )?panicked at|"
                    r"goroutine \d{1,9} \[).*", re.S)
_TRACE_LINES = re.compile(r"\bat [\w$.<>/]{1,200}+ ?\([^()\n]{0,200}:\d+\)|\bFile \"[^\"\n]{1,200}\", line \d+(?:, in \w{1,80})?|"
                          r"(?<![\w.])(?:\w{1,64}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception)\b:?")
_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\([^()\s]{0,600}(?:\s\"[^\"\n]{0,100}\")?\)")
_URL = re.compile(r"(?<![\w+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}://([^\s<>\"'，。！？；、）]+)")
_HOST = re.compile(r"((?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24})(?::\d{1,5})?(?=[/?#.,;:!)\]]|\Z)")
_SECRET = re.compile(r"(?<!\S)[^\s:@/]{1,64}:[^\s:@/]{1,64}@\S+|\b(?:eyJ[\w-]{8,}(?:\.[\w-]+){0,2}|sk-[\w-]{16,}|gh[pousr]_\w{20,}|AKIA[A-Z0-9]{16})")
_PATHS = re.compile(r"(?<![\w.])(?:[A-Za-z]:\\[^\s<>|\"']*|\\\\[\w.$-]+\\[^\s<>|\"']*|~?/[\w.\-]++(?:[/\\][\w.\-]++)+/?|"
                    r"/(?:home|usr|tmp|var|etc|opt|root|mnt|srv|proc|dev|Users)\b/?)|"
                    r"(?<![\w./-])(?:[\w-][\w.-]*+/)+[\w.-]*\.(?:py|js|ts|java|kt|go|rs|c|cc|cpp|h|so|json|ya?ml|toml|log|sh|txt|md)\b(?::\d+)*")
_RULE = re.compile(r"^[ \t]*+[-|:=*_~][-|:=*_~ \t]{2,}$", re.M)
_MARKS = re.compile(r"^[ \t]*+(?:[-*+]|#{1,6}|>)[ \t]+|(?<![\w*_`])[*_`]{1,3}(?=[^\s*_`])|(?<=[^\s*_`])[*_`]{1,3}(?![\w*_`])|"
                    r"(?<![\d*])\*{2,3}|\*{2,3}(?![\d*])|[*_]{4,}|`+|~~", re.M)
_LOOSE = re.compile(r"<\||\|>")
_HARD = str.maketrans(dict.fromkeys("<>|*_`~#&\\/[]" + "".join(BRACKETS), " "))
_WORD = re.compile(r"\w")
_SENTENCE_END = re.compile(r"[.!?。！？](?=\s|$)|[。！？]")
_ROUNDS = 4


def spoken(text: str, max_chars: int, table: ReservedTable = DEFAULT) -> str:
    """`text` without control tokens, tags, reasoning, code, stack traces, paths, addresses, secrets and markup, in at most `max_chars`.

    Tokens are known by `table` whatever their case, width or nesting, others by their form. Removal is repeated until nothing is
    left to remove; what still changes after four rounds is rubbish and loses every bracket and mark. Linear time. A web address is
    said as its host, one with credentials not at all. "" where no word is left.
    """
    for _ in range(_ROUNDS):
        before, text = text, _clean(text, table)
        if text == before:
            break
    else:
        text = text.translate(_HARD)
        for _ in range(_ROUNDS):
            text = _clean(text, table)
    if not _WORD.search(text):
        return ""
    if len(text) <= max_chars:
        return text
    ends = [m.end() for m in _SENTENCE_END.finditer(text, 0, max_chars)]
    return text[:ends[-1]] if ends else text[:max_chars].rsplit(" ", 1)[0]


def _clean(text: str, table: ReservedTable) -> str:
    """One round, ending with one line."""
    text = INVISIBLE.sub("", text)
    if table.odd is not None:
        text = table.odd.sub(" ", text)
    if "&" in text:
        text = _ENTITY.sub(lambda m: html.unescape(f"&{m[1]}") if m[1] else "&", text)
    text = _without_tags(_AUTOLINK.sub(r" \1 ", text), table)
    text = _CODE.sub(" ", text)
    text = _TRACE_LINES.sub(" ", _TRACE.sub("", text))
    if "](" in text:
        text = _LINK.sub(lambda m: "" if m[0][0] == "!" else m[1], text)
    if "://" in text:
        text = _URL.sub(_host, text)
    text = _PATHS.sub("", _SECRET.sub("", text))
    text = _MARKS.sub("", _RULE.sub("", text))
    if "|" in text:
        text = _LOOSE.sub(" ", "\n".join(map(_row, text.split("\n"))))
    return " ".join(text.split())


def _host(match: re.Match) -> str:
    rest = match[1]
    host = None if "@" in re.split(r"[/?#]", rest, maxsplit=1)[0] else _HOST.match(rest)
    return host[1] + (rest[-1] if rest[-1] in ".!?" else "") if host else ""


def _row(line: str) -> str:
    """A table's row as a list of its cells."""
    bare = line.strip()
    if len(bare) < 3 or bare[0] != "|" or bare[-1] != "|":
        return line
    return ", ".join(cell for cell in map(str.strip, bare.split("|")) if cell)


def _without_tags(text: str, table: ReservedTable) -> str:
    """`text` without tags and control tokens, also those that only form once another is gone, in one pass.

    An opening bracket waits on a stack; a closing one makes a tag of the innermost, or rules out all that wait.
    """
    out: list[str] = []
    waiting: list[int] = []
    hidden: list[tuple[str, int]] = []
    at = 0
    for match in _BRACKET.finditer(text):
        if match.start() > at:
            out.append(text[at:match.start()])
        at = match.end()
        char = match[0]
        if BRACKETS[char] == "<":
            waiting.append(len(out))
            out.append(char)
            continue
        if not waiting:
            out.append(char)
            continue
        opened = waiting[-1]
        body = "".join(out[opened + 1:])
        name = bare_name(body) if len(body) <= 400 else ""
        piped = len(body) > 1 and body[0] in "|｜" and body[-1] in "|｜"
        if not (piped or name in table.bare or name in _HIDDEN or out[opened] + char == "<>" and _TAG.match(body)):
            out.append(char)
            waiting.clear()
            continue
        del out[opened:]
        waiting.pop()
        if name not in _HIDDEN:
            continue
        if not body.lstrip(" |").startswith(("/", "／")):
            hidden.append((name, opened))
            continue
        begun = next((i for i in range(len(hidden) - 1, -1, -1) if hidden[i][0] == name), None)
        if begun is None and name not in _REASONING:
            continue
        cut = hidden[begun][1] if begun is not None else 0
        del hidden[begun or 0:], out[cut:]
        while waiting and waiting[-1] >= cut:
            waiting.pop()
    out.append(text[at:])
    return "".join(out[:hidden[0][1]] if hidden else out)


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
