"""Ids of the control tokens that the span assembler acts on, looked up by name in a tokenizer's special tokens; never hard-coded."""
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping

from harness.capture.reserved import ReservedTable
from venus_edge.errors import ConfigError

NEEDED = {
    "delegate_open": "<delegate>", "delegate_close": "</delegate>", "backend_open": "<backend>", "backend_close": "</backend>",
    "unit_open": "<unit>", "unit_close": "</unit>", "image_open": "<image>", "image_close": "</image>", "listen": "<|listen|>",
    "speak": "<|speak|>", "chunk_eos": "<|chunk_eos|>", "turn_eos": "<|turn_eos|>",
}
"""Field of ControlTokens → name in the tokenizer."""
PACING = ("<unit>", "</unit>", "<|speak|>", "<|chunk_eos|>", "<|chunk_bos|>", "<|chunk_tts_bos|>", "<|chunk_tts_eos|>", "<|tts_bos|>",
          "<|tts_eos|>", "<|tts_pad|>")
"""They only say how speech is cut into units, so a span runs through them. The last six need not exist."""


@dataclass(frozen=True)
class ControlTokens:
    delegate_open: int
    delegate_close: int
    backend_open: int
    backend_close: int
    unit_open: int
    unit_close: int
    image_open: int
    image_close: int
    listen: int
    speak: int
    chunk_eos: int
    turn_eos: int
    pacing: frozenset[int]
    table: ReservedTable

    @classmethod
    def from_table(cls, table: ReservedTable) -> "ControlTokens":
        """Raises ConfigError naming the tokens that the table has no id for."""
        missing = [name for name in NEEDED.values() if name not in table.by_name]
        if missing:
            raise ConfigError(f"tokenizer: no {', '.join(missing)} (needed: {' '.join(NEEDED.values())})")
        pacing = frozenset(table.by_name[name] for name in PACING if name in table.by_name)
        return cls(**{key: table.by_name[name] for key, name in NEEDED.items()}, pacing=pacing, table=table)

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, int]) -> "ControlTokens":
        """From name → id of all special tokens, as in `added_tokens.json`."""
        return cls.from_table(ReservedTable.from_mapping(mapping))

    @classmethod
    def from_tokenizer_json(cls, path: str | Path) -> "ControlTokens":
        return cls.from_table(ReservedTable.from_tokenizer_json(path))

    @property
    def reserved(self) -> frozenset[int]:
        """Every special token: none of them is ever visible."""
        return self.table.ids
