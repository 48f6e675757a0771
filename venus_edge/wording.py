"""Spoken wording, in one format for every folder: TOML files with one table per key, one entry per language.

    [temperature.done]
    en = "It's set to {celsius} degrees."
    zh = "已设为{celsius}度。"

A language entry may be a list: the variants are used in turn, so that the assistant doesn't repeat itself.
"""
import tomllib
from pathlib import Path

from venus_edge.errors import ConfigError

LANGUAGES = ("en", "zh")


class Wording:
    """Sentences by dotted key and language, filled with the caller's fields."""

    def __init__(self, *paths: Path):
        self._table: dict[str, dict] = {}
        self._turn: dict[str, int] = {}
        for path in paths:
            with open(path, "rb") as f:
                self._walk(tomllib.load(f), "", path)

    def _walk(self, node: dict, prefix: str, path: Path) -> None:
        if any(k in LANGUAGES for k in node):
            missing = [lang for lang in LANGUAGES if lang not in node]
            if missing:
                raise ConfigError(f"{path}: '{prefix}' lacks the language(s) {', '.join(missing)}")
            self._table[prefix] = node
            return
        for key, value in node.items():
            if not isinstance(value, dict):
                raise ConfigError(f"{path}: '{prefix}.{key}' is not a table with the languages {', '.join(LANGUAGES)}")
            self._walk(value, f"{prefix}.{key}" if prefix else key, path)

    def has(self, key: str) -> bool:
        return key in self._table

    def keys(self) -> list[str]:
        return sorted(self._table)

    def say(self, key: str, lang: str = "en", **fields) -> str:
        """The sentence for `key`; raises KeyError for an unknown key or a missing field."""
        entry = self._table[key].get(lang) or self._table[key]["en"]
        if isinstance(entry, list):
            turn = self._turn.get(key, 0)
            self._turn[key] = turn + 1
            entry = entry[turn % len(entry)]
        return entry.format(**fields)
