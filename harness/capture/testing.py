"""A whole little tokenizer for whoever tests or measures the capture: every word is one token, special tokens are apart.

    tokens = WordTokenizer()
    ids = [tokens["<delegate>"], *tokens.words("find a charger"), tokens["</delegate>"]]
    spans = SpanAssembler(tokens.control, tokens.decode)
"""
import re
from typing import Iterable

from harness.capture.reserved import DEFAULT
from harness.capture.tokens import ControlTokens

_PIECE = re.compile(r"\s*\S+|\s+")


class WordTokenizer:
    """Special tokens are the default table's names, numbered from `first_special`; words get the ids below it as they come."""

    def __init__(self, first_special: int = 150_000):
        self._first = first_special
        self._special = {name: first_special + i for i, name in enumerate(sorted(DEFAULT.names))}
        self._ids: dict[str, int] = {}
        self._pieces: list[str] = []
        self.control = ControlTokens.from_mapping(self._special)

    def __getitem__(self, name: str) -> int:
        """Id of a special token. KeyError for any other name."""
        return self._special[name]

    def words(self, text: str) -> list[int]:
        """Ordinary tokens whose pieces join to `text`, whatever tags it spells."""
        ids = []
        for piece in _PIECE.findall(text):
            if piece not in self._ids:
                if len(self._pieces) == self._first:
                    raise ValueError(f"more than {self._first} different words")
                self._ids[piece] = len(self._pieces)
                self._pieces.append(piece)
            ids.append(self._ids[piece])
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ordinary tokens. IndexError for any other id."""
        return "".join(self._pieces[i] for i in ids)
