"""What a text gives for one contract."""
from dataclasses import dataclass, field


@dataclass
class Filled:
    """Arguments found, where they stand in the text, and what is missing or out of range."""

    arguments: dict = field(default_factory=dict)
    spans: dict = field(default_factory=dict)
    missing: list = field(default_factory=list)
    outside: list = field(default_factory=list)
    """Slots whose number is out of range."""

    @property
    def complete(self) -> bool:
        return not self.missing and not self.outside

    def put(self, text: str, name: str, span: tuple[int, int]) -> None:
        self.arguments[name] = text[span[0]:span[1]]
        self.spans[name] = span


def inside(span: tuple[int, int], taken: list[tuple[int, int]]) -> bool:
    """Whether a span overlaps one that belongs to another slot."""
    return any(start < span[1] and span[0] < end for start, end in taken)
