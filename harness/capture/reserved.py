"""The reserved table: every control token of the front end's tokenizer by name and id, and what makes its spelling harmless in text."""
import json
import re
import unicodedata
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Mapping

from venus_edge.errors import ConfigError

_PAIRS = ("tool_call tool_response think image ref box quad point slice image_id unit answer focus line perception source_image "
          "image_save_to delegate backend").split()
_BARS = ("endoftext im_start im_end object_ref_start object_ref_end box_start box_end quad_start quad_end vision_start vision_end "
         "vision_pad image_pad video_pad fim_prefix fim_middle fim_suffix fim_pad repo_name file_sep audio_start audio audio_end spk_bos "
         "spk spk_eos tts_bos tts_eos listen speak interrupt vad_start vad_end emotion_start emotion_end speed_start speed_end pitch_start "
         "pitch_end turn_bos turn_eos chunk_eos chunk_bos chunk_tts_bos chunk_tts_eos tts_pad").split() + [f"timbre_{i}" for i in range(7, 32)]

BRACKETS = {"<": "<", ">": ">"} | dict.fromkeys("＜﹤‹〈⟨❬〈", "<") | dict.fromkeys("＞﹥›〉⟩❭〉", ">")
"""Angle brackets and what looks like them."""
_LOOKALIKES = str.maketrans("∣│¦❘ǀ∕⁄аеорсхуіѕԁһӏԛԝ", "|||||//aeopcxyisdhlqw")
INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
                       "\ud800-\udfff\U000e0000-\U000e007f]")
"""Characters that are neither heard nor seen and can hide inside a spelled token; lone surrogates too."""
_OPENING = re.compile("[<＜﹤](?=[|/!A-Za-z｜／Ａ-Ｚａ-ｚ\U0001d400-\U0001d7ff])")
_CLOSING = re.compile("(‹[^<>‹›]{0,64})[>＞﹥]")


@dataclass(frozen=True)
class ReservedTable:
    """All special tokens of a tokenizer. `by_name`: ids, empty where only the names are known."""

    names: frozenset[str]
    by_name: Mapping[str, int] = field(default_factory=dict, compare=False)

    @cached_property
    def ids(self) -> frozenset[int]:
        return frozenset(self.by_name.values())

    @cached_property
    def bare(self) -> frozenset[str]:
        """The names as `bare_name` folds them: `<|Listen|>` is `listen`."""
        return frozenset(filter(None, map(bare_name, self.names)))

    @cached_property
    def odd(self) -> re.Pattern | None:
        """The names that do not begin with an angle bracket, such as `[PAD]`."""
        odd = sorted((name for name in self.names if name[0] not in "<＜" and len(name) > 1), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, odd))) if odd else None

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, int], where: str = "special tokens") -> "ReservedTable":
        """From name → id. Raises ConfigError, naming `where`, for an empty name or a bad or repeated id."""
        for name, number in mapping.items():
            if not isinstance(name, str) or not name or isinstance(number, bool) or not isinstance(number, int) or number < 0:
                raise ConfigError(f"{where}: {name!r}: {number!r} (needed: a name and a whole number from 0)")
        if len(set(mapping.values())) != len(mapping):
            raise ConfigError(f"{where}: two special tokens share an id (needed: one id each)")
        if not mapping:
            raise ConfigError(f"{where}: no special tokens (needed: at least one)")
        return cls(frozenset(mapping), MappingProxyType(dict(mapping)))

    @classmethod
    def from_tokenizer_json(cls, path: str | Path) -> "ReservedTable":
        """From `tokenizer.json` (`added_tokens`), `tokenizer_config.json` (`added_tokens_decoder`) or `added_tokens.json`.

        Every added token is reserved, also one not marked special: `<think>` often is not. Raises ConfigError naming the file.
        """
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"))
            if isinstance(found, dict) and "added_tokens" in found:
                pairs = [(token["content"], token["id"]) for token in found["added_tokens"]]
            elif isinstance(found, dict) and "added_tokens_decoder" in found:
                pairs = [(token["content"], int(number)) for number, token in found["added_tokens_decoder"].items()]
            else:
                pairs = list(found.items())
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ConfigError(f"{path}: no special tokens found ({type(error).__name__}); needed: tokenizer.json with added_tokens, "
                              "tokenizer_config.json with added_tokens_decoder, or added_tokens.json with name: id") from None
        if len({name for name, _ in pairs if isinstance(name, str)}) != len(pairs):
            raise ConfigError(f"{path}: a special token is listed twice or has no name (needed: one entry each)")
        return cls.from_mapping(dict(pairs), str(path))


def bare_name(body: str) -> str:
    """What a token or the inside of a tag is called, whatever the case, width, spaces, bars and attributes: "| Listen |" is `listen`."""
    if not body.isascii():
        body = unicodedata.normalize("NFKC", body).translate(_LOOKALIKES)
    words = body.strip("<>|/ \t\n").split(None, 1)
    return words[0].strip("|/").lower() if words else ""


DEFAULT = ReservedTable(frozenset(["<unk>", "<s>", "</s>", *(f"<{p}>" for p in _PAIRS), *(f"</{p}>" for p in _PAIRS),
                                   *(f"<|{b}|>" for b in _BARS)]))
"""Names of the MiniCPM-o 4.5 tokenizer and the four that Realtime-Venus adds; for use where no tokenizer is at hand."""


def inert(text: str, table: ReservedTable = DEFAULT) -> str:
    """`text` in which no control token is spelled any more and every word is still there: `<delegate>` becomes `‹delegate›`.

    For words on their way to a planner or worker. Comparisons ("a < 4") stay. Linear time.
    """
    text = INVISIBLE.sub("", text)
    if table.odd is not None:
        text = table.odd.sub(lambda m: f"{m[0][0]} {m[0][1:]}", text)
    opened = _OPENING.sub("‹", text)
    return _CLOSING.sub(r"\1›", opened) if opened is not text else text


def inert_values(value: Any, table: ReservedTable = DEFAULT) -> Any:
    """A JSON value, copied, with every string in it inert."""
    if isinstance(value, str):
        return inert(value, table)
    if isinstance(value, dict):
        return {inert(name, table) if isinstance(name, str) else name: inert_values(item, table) for name, item in value.items()}
    return [inert_values(item, table) for item in value] if isinstance(value, (list, tuple)) else value
