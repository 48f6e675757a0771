"""Two capabilities that an endpoint serves: an answer at once from the evidence, and a task of several steps with the skills as tools.

A failure is an outcome whose code finds its words in the harness; being cancelled ends both at the next instant, and the request with it.
"""
import base64
import io
import json
import logging
import re
import wave
from dataclasses import dataclass, field
from typing import Awaitable, Callable, Collection

from harness import phrases, schema
from harness.backend import ExecuteContext
from harness.errors import BadRequest
from harness.evidence import RATE, AudioClip, Evidence
from harness.llm import prompts
from harness.llm.client import LLMClient, Reply, ToolCall
from harness.llm.errors import EndpointRefused, EndpointUnavailable
from harness.llm.settings import LLMSettings
from harness.llm.strict import Inexpressible, strict, without_nulls
from harness.oral import spoken
from harness.plan.contracts import Contract
from harness.task import SkillCall, SkillOutcome
from venus_edge.errors import VenusError
from venus_edge.metrics import METRICS

log = logging.getLogger("harness.llm")
MAX_ANSWER_CHARS, MAX_PROGRESS_CHARS, MAX_RESULT_CHARS, MAX_FOUND, MAX_WORDS = 600, 160, 4000, 3, 12
MARGIN_S = 0.3
"""Kept back from the time limit, so that a partial result is told before the harness gives the task up."""

DIRECT = Contract(
    "direct.answer", {"en": "Answer a question about what is seen or heard, or from general knowledge, at once.",
                      "zh": "立刻回答关于看到听到的内容或常识的问题。"},
    {"type": "object", "additionalProperties": False, "required": ["question"], "properties": {
        "question": {"type": "string", "minLength": 1, "maxLength": 500, "description": "the user's question, in the user's words"}}},
    "direct", {"en": "Anything another capability knows or does: the car, places, the route. Work of several steps.",
               "zh": "其他能力知道或能做的事：车辆、地点、路线；多步骤的工作。"},
    {"en": (("What building is that over there?", {"question": "What building is that over there"}),),
     "zh": (("那边是什么楼", {"question": "那边是什么楼"}),)}, frozenset("*"))
GENERAL = Contract(
    "general.task", {"en": "Work that takes several steps: compare, plan, summarise, write.", "zh": "需要多个步骤的工作：比较、规划、总结、写作。"},
    {"type": "object", "additionalProperties": False, "required": ["objective"], "properties": {
        "objective": {"type": "string", "minLength": 1, "maxLength": 2000, "description": "what is wanted, in the user's words"}}},
    "general", {"en": "One fact answers it, or another capability does it in one step.", "zh": "一句话能答的，或有专门能力一步就能做的。"},
    {"en": (("Compare the two chargers and tell me which is better", {"objective": "Compare the two chargers and tell me which is better"}),),
     "zh": (("比较这两个充电站哪个更好", {"objective": "比较这两个充电站哪个更好"}),)}, frozenset("*"))

CallSkill = Callable[[str, dict, float], Awaitable[SkillOutcome]]
"""(capability, arguments, seconds it may take): runs one skill for the task. Given by the backend."""


@dataclass(frozen=True)
class Media:
    """Message parts of an evidence's media, and what of it could not be sent ("no_audio", "no_frames")."""

    parts: tuple[dict, ...] = ()
    missing: tuple[str, ...] = ()
    sent: dict = field(default_factory=dict)

    @classmethod
    def of(cls, evidence: Evidence, settings: LLMSettings) -> "Media":
        """The newest frames and the newest audio within the settings' limits. Copies what it sends: the evidence may be released."""
        clips = [m for m in evidence.media if isinstance(m, AudioClip)]
        frames = [m for m in evidence.media if not isinstance(m, AudioClip)]
        left, pictures, parts = settings.max_media_bytes, [], []
        try:
            for frame in reversed(frames[-settings.max_frames:] if settings.images else []):
                if len(frame.view) <= left:
                    left -= len(frame.view)
                    pictures.insert(0, f"data:{frame.mime};base64,{base64.b64encode(frame.view).decode()}")
            sound = _wav(clips, left) if settings.audio else b""
        except ValueError:  # a view of released memory: the task ended
            pictures, sound = [], b""
        parts += [{"type": "image_url", "image_url": {"url": url}} for url in pictures]
        if sound:
            parts.append({"type": "input_audio", "input_audio": {"data": base64.b64encode(sound).decode(), "format": "wav"}})
        missing = ("no_audio",) * bool(clips and not sound) + ("no_frames",) * bool(frames and not pictures)
        return cls(tuple(parts), missing, {"frames": len(pictures), "audio": bool(sound)})


class DirectAnswer:
    """`direct.answer`: the question, the words around it and, where the settings say the model takes them, frames and audio."""

    def __init__(self, client: LLMClient):
        self._client = client

    async def run(self, call: SkillCall, context: ExecuteContext) -> SkillOutcome:
        settings, media = self._client.settings, Media.of(context.evidence, self._client.settings)
        question = str(call.arguments.get("question") or context.prose).strip()
        if not question and not context.evidence.user and "no_audio" in media.missing and not media.parts:
            # Nothing but sound, and nobody there who could listen to it: that is the honest answer.
            return _said(False, "cannot_hear", prompts.prompt("spoken.cannot_hear", call.lang), code="needs_input", result=media.sent)
        words = {"type": "text", "text": prompts.data(question=question, **_words(context))}
        notes = "\n".join(prompts.prompt(f"direct.{name}", call.lang) for name in media.missing)
        messages = [{"role": "system", "content": prompts.prompt("direct.system", call.lang, media=notes)},
                    {"role": "user", "content": [words, *media.parts] if media.parts else words["text"]}]
        began = self._client.clock.now()
        try:
            reply = await self._client.chat(messages, timeout_s=_limit(call, settings.direct_timeout_s), max_tokens=settings.direct_max_tokens)
        except VenusError as error:
            return _failed(error, call)
        return _answered(reply, call, media.sent, self._client.clock.now() - began)


class GeneralTask:
    """`general.task`: the model calls skills, one after the other, until it has an answer or a limit is reached.

    Only contracts whose ids are in `allowed` are offered and run: list what reads, never what moves, unlocks, orders or pays. A call
    that was made once is not made again: its result is given again. Whatever goes wrong with a tool is told to the model as data.
    """

    def __init__(self, client: LLMClient, contracts: Callable[[], tuple[Contract, ...]], allowed: Collection[str] = ()):
        self._client, self._contracts, self._allowed = client, contracts, frozenset(allowed)

    async def run(self, call: SkillCall, context: ExecuteContext, call_skill: CallSkill) -> SkillOutcome:
        work = _Steps(self._client, call, context, call_skill, [c for c in self._contracts() if c.id in self._allowed and c.kind == "skill"])
        return await work.run()


class _Steps:
    """One general task under way."""

    def __init__(self, client: LLMClient, call: SkillCall, context: ExecuteContext, call_skill: CallSkill, contracts: list[Contract]):
        self._client, self._call, self._context, self._call_skill = client, call, context, call_skill
        self._settings, self._clock = client.settings, client.clock
        self._began = self._clock.now()
        self._deadline = self._began + max(0.1, _limit(call, self._settings.general_timeout_s) - MARGIN_S)
        self._contracts = {_tool_name(c.id): c for c in contracts}
        self._tools = [_tool(name, c, call.lang) for name, c in self._contracts.items()]
        self._done: dict[str, dict] = {}
        """Results by (capability, arguments) as JSON."""
        self._outcomes: list[SkillOutcome] = []
        self._told = ""
        objective = str(call.arguments.get("objective") or context.prose)
        self._messages: list[dict] = [{"role": "system", "content": prompts.prompt("general.system", call.lang)},
                                      {"role": "user", "content": prompts.data(objective=objective, **_words(context))}]

    async def run(self) -> SkillOutcome:
        try:
            for step in range(self._settings.max_steps):
                last = step == self._settings.max_steps - 1 or len(self._done) >= self._settings.max_calls
                reply = await self._step(last)
                if not reply.calls or last:
                    return self._finished(reply)
                await self._tell(reply.text)
                await self._use_tools(reply)
        except VenusError as error:
            return self._partial(_failed(error, self._call))
        return self._partial(SkillOutcome(False, "timeout", code="timeout"))

    async def _step(self, last: bool) -> Reply:
        left = self._deadline - self._clock.now()
        if left <= 0:
            raise EndpointUnavailable("the task's time is over", "timeout")
        messages = self._messages
        if last and self._tools:
            messages = [*messages, {"role": "user", "content": prompts.prompt("general.last", self._call.lang)}]
        METRICS.add("venus_harness_llm_steps_total")
        return await self._client.chat(messages, timeout_s=left, max_tokens=self._settings.general_max_tokens, tools=self._tools,
                                       tool_choice="none" if last else "auto")

    async def _tell(self, text: str) -> None:
        """The model's own short commentary as progress, made fit to be spoken; the same words only once."""
        text = spoken(text, MAX_PROGRESS_CHARS)
        if text and text != self._told:
            self._told = text
            self._context.progress("progress", text)

    async def _use_tools(self, reply: Reply) -> None:
        """Run the calls in order and answer every one of them: a call without a result makes the next request invalid."""
        self._messages.append({"role": "assistant", "content": reply.text or None, "tool_calls": [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in reply.calls]})
        for wanted in reply.calls:
            result = await self._use(wanted)
            text = prompts.data(**result)
            text = text if len(text) <= MAX_RESULT_CHARS else prompts.data(cut=True, beginning=text[:MAX_RESULT_CHARS])
            self._messages.append({"role": "tool", "tool_call_id": wanted.id, "content": text})

    async def _use(self, wanted: ToolCall) -> dict:
        contract = self._contracts.get(wanted.name)
        if contract is None:
            METRICS.add("venus_harness_llm_forbidden_tools_total")
            return {"succeeded": "no", "error": f"no such tool; allowed: {', '.join(self._contracts) or 'none'}"}
        try:
            arguments = without_nulls(contract.schema, prompts.parsed(wanted.arguments))
            if not isinstance(arguments, dict):
                raise ValueError
            schema.check(contract.schema, arguments)
        except BadRequest as error:
            return {"succeeded": "no", "error": f"invalid argument {error.data.get('field')}", "allowed": str(error.data.get("allowed") or "")}
        except (ValueError, Inexpressible):
            return {"succeeded": "no", "error": "the arguments are not the JSON object that the tool takes"}
        identity = f"{contract.id} {json.dumps(arguments, sort_keys=True)}"
        if identity in self._done:
            return {**self._done[identity], "note": "already called with these arguments; this is that result"}
        left = self._deadline - self._clock.now()
        if len(self._done) >= self._settings.max_calls or left <= 0:
            return {"succeeded": "no", "error": "no more calls"}
        try:
            outcome = await self._call_skill(contract.id, arguments, left)
        except Exception as error:
            log.error("task %s: a skill failed as a tool: %s", self._call.task_id, type(error).__name__)
            outcome = SkillOutcome(False, "internal", code="internal")
        self._outcomes.append(outcome)
        METRICS.add("venus_harness_llm_tool_calls_total")
        self._done[identity] = {"succeeded": "yes" if outcome.ok else "no", "code": outcome.code, "text": outcome.text, "result": outcome.result}
        return self._done[identity]

    def _finished(self, reply: Reply) -> SkillOutcome:
        outcome = _answered(reply, self._call, self._facts(), self._clock.now() - self._began)
        if not outcome.ok:
            return self._partial(outcome)
        if self._outcomes and not any(o.ok for o in self._outcomes):
            # Every tool failed: whatever the model makes of it, the task did not succeed.
            return SkillOutcome(False, "failed", outcome.text, result=outcome.result, code=self._outcomes[-1].code or "internal",
                                took_s=outcome.took_s)
        return outcome

    def _partial(self, failure: SkillOutcome) -> SkillOutcome:
        """What was found before it ended, said to be that; the failure itself where nothing was."""
        found = [spoken(o.text, MAX_ANSWER_CHARS // MAX_FOUND) for o in self._outcomes if o.ok][-MAX_FOUND:]
        found = list(dict.fromkeys(filter(None, found)))
        text = failure.text
        if found:
            text = prompts.prompt("spoken.partial", self._call.lang, found=phrases.join(found, self._call.lang))
        return SkillOutcome(False, "partial" if found else failure.outcome, text, code=failure.code, result=self._facts(),
                            took_s=self._clock.now() - self._began)

    def _facts(self) -> dict:
        return {"calls": len(self._done), "calls_failed": sum(not o.ok for o in self._outcomes)}


def _words(context: ExecuteContext) -> dict:
    """What was said before the question, oldest first."""
    evidence = context.evidence
    return {"said_before": [prompts.cut(w.text, 500) for w in evidence.user[-MAX_WORDS:] if w.text != context.prose],
            "heard_of_ours": " ".join(w.text for w in evidence.assistant)[-320:], "words": context.prose}


def _limit(call: SkillCall, most_s: float) -> float:
    return min(call.timeout_s, most_s) if call.timeout_s > 0 else most_s


def _answered(reply: Reply, call: SkillCall, result: dict, took_s: float) -> SkillOutcome:
    """An answer in words as an outcome; a truncated one up to its last whole sentence."""
    if reply.refused or reply.finish == "content_filter":
        return SkillOutcome(False, "refused", prompts.prompt("spoken.refused", call.lang), code="not_permitted", result=result, took_s=took_s)
    text = spoken(reply.text, MAX_ANSWER_CHARS)
    if reply.finish == "length":
        ends = [m.end() for m in re.finditer(r"[.!?](?=\s|$)|[。！？]", text)]
        text = text[:ends[-1]] if ends else ""
    if not text:
        return SkillOutcome(False, "internal", code="internal", result=result, took_s=took_s)
    return SkillOutcome(True, "done", text, fields={"text": text}, result=result, took_s=took_s)


def _said(ok: bool, outcome: str, text: str, *, code: str, result: dict) -> SkillOutcome:
    return SkillOutcome(ok, outcome, text, code=code, result=result)


def _failed(error: VenusError, call: SkillCall) -> SkillOutcome:
    log.info("task %s: %s (%s)", call.task_id, error.code, error.data.get("reason", ""))
    code = "timeout" if error.data.get("reason") == "timeout" else "internal" if isinstance(error, EndpointRefused) else "unavailable"
    return SkillOutcome(False, code, code=code)


def _wav(clips: list[AudioClip], max_bytes: int) -> bytes:
    """The newest sound in at most `max_bytes` as one WAV; b"" without any. Between two clips is silence, up to a second of it."""
    sound = b""
    for clip, later in zip(reversed(clips), [None, *reversed(clips)]):
        room = max_bytes - len(sound) - 44
        if room <= 0:
            break
        pause = b"" if later is None else bytes(2 * min(RATE, max(0, later.start - clip.end)))
        sound = (bytes(clip.view.cast("B")) + pause + sound)[-(max_bytes - 44) // 2 * 2:] if max_bytes > 44 else b""
    if not sound:
        return b""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes(sound)
    return file.getvalue()


def _tool_name(capability: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "__", capability)[:64]


def _tool(name: str, contract: Contract, lang: str) -> dict:
    text = contract.summary.get(lang) or contract.summary.get("en", "")
    try:
        return {"type": "function", "function": {"name": name, "description": text, "parameters": strict(contract.schema), "strict": True}}
    except Inexpressible:
        return {"type": "function", "function": {"name": name, "description": text, "parameters": contract.schema}}
