"""The prompts (prompts.toml), and data as a model is shown it: JSON, cut to bounds, apart from the instructions."""
import functools
import json
from pathlib import Path
from typing import Any

from venus_edge.wording import Wording


@functools.cache
def _wording() -> Wording:
    return Wording(Path(__file__).with_name("prompts.toml"))


def prompt(key: str, lang: str, **fields: Any) -> str:
    """One text of prompts.toml in `lang`."""
    return _wording().say(key, lang, **fields).strip()


def data(**fields: Any) -> str:
    """One JSON object; empty fields are left out.

    Being JSON, no text in it can end the data; "<" is escaped, so that no spelled control token of the model can either.
    """
    text = json.dumps({k: v for k, v in fields.items() if v not in ("", None, (), [], {})}, ensure_ascii=False, default=str)
    return text.replace("<", "\\u003c")


def parsed(text: str) -> Any:
    """The JSON value of a model's text; raises ValueError, also for NaN, infinities and nesting beyond measure."""
    def no(name: str):
        raise ValueError(name)

    try:
        return json.loads(text, parse_constant=no)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def cut(value: Any, max_chars: int) -> Any:
    """`value` if its JSON is short enough, else as much of its text as is allowed, marked as cut."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return value if len(text) <= max_chars else text[:max_chars] + " …(cut)"
