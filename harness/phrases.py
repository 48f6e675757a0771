"""The harness's own sentences (wording.toml), filled with what a task is about."""
import functools
import re
from pathlib import Path
from typing import Any

from harness.task import SkillCatalog, Task
from venus_edge.wording import Wording

MAX_TOPIC_CHARS = 60
_RESERVED = ("key", "lang")
"""Parameter names of Wording.say."""
_ARTICLE = re.compile(r"^(?:a|an|the|some|any)\s+", re.I)


@functools.cache
def _wording() -> Wording:
    """Parsed once a process: a thousand sessions share the sentences and take their variants in turn."""
    return Wording(Path(__file__).with_name("wording.toml"))


def has(key: str) -> bool:
    return _wording().has(key)


def say(key: str, lang: str, **fields: Any) -> str:
    """The sentence for `key`, its first letter capitalised."""
    text = _wording().say(key, lang, **fields)
    return text[:1].upper() + text[1:]


def join(sentences: list[str], lang: str) -> str:
    """Sentences after each other; empty ones are left out."""
    return ("" if lang == "zh" else " ").join(filter(None, sentences))


class Words:
    """Sentences about tasks: the skill's own where it has one, else the harness's."""

    def __init__(self, catalog: SkillCatalog):
        self._catalog = catalog

    def topic(self, task: Task, lang: str = "") -> str:
        """What a task is about ("the window"), in its own language or `lang`; a general phrase where nothing better is known."""
        lang = lang or task.lang
        fields = {name: _ARTICLE.sub("", value) if name == "query" and isinstance(value, str) else value
                  for name, value in task.arguments.items() if name not in _RESERVED}
        text, key = self._own(task, "topic", fields, lang), f"topic.{task.capability}"
        if not text and has(key):
            try:
                text = _wording().say(key, lang, **fields)
            except KeyError:  # an argument that the phrase names was not given
                text = ""
        return text if 0 < len(text) <= MAX_TOPIC_CHARS else _wording().say("topic.other", lang)

    def ack(self, task: Task) -> str:
        return self._own(task, "ack", task.arguments) or say("late.ack", task.lang)

    def about(self, key: str, task: Task, lang: str = "", **fields: Any) -> str:
        """One of the harness's sentences, with the task's topic in it; in `lang`, where the user speaks another now than then."""
        return say(key, lang or task.lang, topic=self.topic(task, lang), **fields)

    def failure(self, task: Task, code: str) -> str:
        """A failure in words, by its code; an unknown code is an internal one."""
        return self._own(task, code, {}) or self.about(f"error.{code}" if has(f"error.{code}") else "error.internal", task)

    def _own(self, task: Task, outcome: str, fields: dict, lang: str = "") -> str:
        return self._catalog.say(task.capability, outcome, lang or task.lang, fields) if self._catalog.has(task.capability) else ""
