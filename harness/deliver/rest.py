"""Text of an interrupted reply: where to take it up again, and how to say the rest in short."""
import re

_BOUNDARY = re.compile(r"[,;:.!?](?=\s)|[，；：。！？、]")
_SENTENCE = re.compile(r".+?(?:[.!?](?=\s|$)|[。！？]|$)", re.S)
_VALUE = re.compile(r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|hundred|"
                    r"(?:twen|thir|for|fif|six|seven|eigh|nine)ty)\b|"
                    r"[零一二三四五六七八九十百千万两半](?:点|分|个|块|元|度|米|公里|千米|小时|分钟|号|楼|层|条|家|次|天|公斤|升|%)")
_NAME = re.compile(r"(?<=[\w,;:] )[A-Z]\w+|[《「“]")
_CHARS_A_WORD = 2
"""Chinese characters that count as one word."""


def unheard(text: str, at: int) -> str:
    """What of `text` is left from character `at` on, from the start of the word that was cut."""
    while 0 < at < len(text) and _in_word(text[at - 1]) and _in_word(text[at]):
        at -= 1
    return text[at:].strip()


def again(text: str, rest: str, back_words: int) -> str:
    """What to repeat before `rest`, the end of `text`, so that a resumption starts with its clause; "" where that is too much.

    The beginning of the text is no clause to go back to: who heard the first words knows what it is about.
    """
    at = len(text) - len(rest)
    if at <= 0 or not text.endswith(rest):
        return ""
    start = max((m.end() for m in _BOUNDARY.finditer(text, 0, at)), default=0)
    repeated = text[start:at].lstrip()
    return repeated if start and 0 < _words(repeated) <= back_words else ""


def goes_on(text: str, rest: str, heard: int) -> bool:
    """Whether `rest` is what follows the first `heard` characters of `text`: not a short form of it, nor other words."""
    return text.endswith(rest) and not text[heard:len(text) - len(rest)].strip()


def in_short(rest: str, brief: str) -> str:
    """`rest` in one sentence, never longer than it: `brief` where there is one, else its first sentence that carries a value or a
    name, else its first."""
    if brief and len(brief) <= len(rest):
        return brief
    sentences = sentences_of(rest)
    return next((s for s in sentences if _VALUE.search(s) or _NAME.search(s)), sentences[0])


def without(text: str, heard: str) -> str:
    """`text` without the sentences of it that are in `heard` already."""
    if text.startswith(heard):
        return text[len(heard):].strip()
    said = {_bare(s) for s in sentences_of(heard)}
    return "".join(s for s in _SENTENCE.findall(text) if _bare(s) not in said).strip()


def sentences_of(text: str) -> list[str]:
    return [s.strip() for s in _SENTENCE.findall(text) if s.strip()]


def _in_word(char: str) -> bool:
    return (char.isalnum() or char in "'’") and not "一" <= char <= "鿿"


def _words(text: str) -> int:
    chinese = sum("一" <= c <= "鿿" for c in text)
    return len(re.findall(r"[^\W一-鿿]+(?:['’.\-][^\W一-鿿]+)*", text)) + -(-chinese // _CHARS_A_WORD)


def _bare(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())
