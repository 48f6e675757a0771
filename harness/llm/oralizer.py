"""Rewords an outcome into one or two spoken sentences; what isn't grounded in the outcome, or comes too late, is not used."""
import logging
import re

from harness.llm import prompts
from harness.llm.client import LLMClient
from harness.llm.grounding import ungrounded
from harness.oral import spoken
from harness.task import SkillOutcome, Task
from venus_edge.errors import VenusError
from venus_edge.metrics import METRICS

log = logging.getLogger("harness.llm")
MAX_CHARS, MAX_SENTENCES, MAX_DATA_CHARS = 280, 2, 4000
_SENTENCE_END = re.compile(r"[.!?]+(?=\s|$)|[。！？]+")


class LLMOralizer:
    """Costs up to `oralize_timeout_s` before the template is spoken, so it is an option, off by default."""

    def __init__(self, client: LLMClient, max_chars: int = MAX_CHARS):
        self._client, self._max_chars = client, max_chars

    async def oralize(self, task: Task, outcome: SkillOutcome, template: str = "") -> str:
        """The rewording, or `template` (else the outcome's own text) unchanged. Never raises.

        Without a template there is nothing to hold a rewording against, and nothing is asked.
        """
        template = template or outcome.text
        if not template.strip():
            return template
        settings = self._client.settings
        facts = {"fields": outcome.fields, "result": outcome.result}
        words = prompts.data(text=template, succeeded="yes" if outcome.ok else "no", asked_for=prompts.cut(task.prose, 500),
                             **{name: prompts.cut(value, MAX_DATA_CHARS) for name, value in facts.items()})
        messages = [{"role": "system", "content": prompts.prompt("oralize.system", task.lang)}, {"role": "user", "content": words}]
        why = "unavailable"
        try:
            reply = await self._client.chat(messages, timeout_s=settings.oralize_timeout_s, max_tokens=settings.oralize_max_tokens)
            why, sentence = self.check(reply.text, template, outcome, task.lang)
            if reply.refused or reply.finish != "stop" or reply.calls:
                why = "incomplete"
            if not why:
                METRICS.add("venus_harness_llm_oralized_total")
                return sentence
        except VenusError as error:
            log.info("task %s is told by its template: %s", task.id, error.code)
        except Exception as error:
            log.error("rewording task %s failed: %s", task.id, type(error).__name__)
        METRICS.add("venus_harness_llm_templates_total")
        METRICS.add(f"venus_harness_llm_template_{why}_total")
        return template

    def check(self, text: str, template: str, outcome: SkillOutcome, lang: str) -> tuple[str, str]:
        """(why it may not be spoken or "", the sanitised sentence)."""
        sentence = spoken(text, 4 * self._max_chars)
        if not sentence:
            return "empty", ""
        if len(sentence) > self._max_chars or len(_SENTENCE_END.findall(sentence.rstrip())) > MAX_SENTENCES:
            return "too_long", sentence
        return ungrounded(sentence, template, {"fields": outcome.fields, "result": outcome.result}, ok=outcome.ok, lang=lang), sentence
