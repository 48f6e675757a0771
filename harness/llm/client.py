"""One client of an OpenAI-compatible endpoint: bounded in time, number and size, with its own retries and usage counters.

The official `openai` package does the talking and is imported when a client is made, never before. No more leaves the process than
the body that is passed in and the headers listed here; nothing of the endpoint's text gets into errors or logs.
"""
import asyncio
import json
import logging
import random
import sys
from collections import deque
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Awaitable, Callable, Mapping, Sequence, TypeVar

from harness.errors import Closed
from harness.llm.errors import BadAnswer, EndpointError, EndpointRefused, EndpointUnavailable
from harness.llm.settings import LLMSettings
from venus_edge.clock import Clock, SystemClock
from venus_edge.errors import BusyError, ConfigError
from venus_edge.metrics import METRICS

log = logging.getLogger("harness.llm")
T = TypeVar("T")

CONNECT_S = 2.0
TRY_SHARE = 0.6
"""Share of the remaining time that a try may take while another one could follow: a dead connection must not eat it all."""
_HEADERS = frozenset("""host accept accept-encoding connection content-length content-type user-agent transfer-encoding
x-stainless-raw-response""".split())
"""What may be sent besides the key (the last one is how the package tells itself not to parse the answer). The package would add
the operating system, the Python version and values of OPENAI_* variables."""


@dataclass(frozen=True)
class Usage:
    """Tokens as the endpoint counted them. `cached_tokens` are part of `input_tokens`, not in addition to them."""

    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.requests + other.requests, self.input_tokens + other.input_tokens,
                     self.cached_tokens + other.cached_tokens, self.output_tokens + other.output_tokens)

    def cost(self, input_price: float, output_price: float, cached_price: float | None = None) -> float:
        """In the currency of the prices, which are per million tokens; `cached_price` None: as `input_price`."""
        cached = input_price if cached_price is None else cached_price
        fresh = self.input_tokens - self.cached_tokens
        return (fresh * input_price + self.cached_tokens * cached + self.output_tokens * output_price) / 1e6


@dataclass(frozen=True)
class ToolCall:
    """A call the model asks for. `arguments`: JSON text as it came, unchecked."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Reply:
    """One answer. `finish`: stop | length | tool_calls | content_filter, or what else the endpoint says."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    refused: bool = False
    finish: str = "stop"
    usage: Usage = Usage()


async def within(clock: Clock, seconds: float, work: Awaitable[T]) -> T:
    """`work`, or TimeoutError after `seconds` of `clock`. Being cancelled cancels the work and doesn't wait for it."""
    task = asyncio.ensure_future(work)
    timer = asyncio.ensure_future(clock.sleep(seconds))
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise TimeoutError
    finally:
        timer.cancel()
        task.cancel()


class Slots:
    """At most `limit` at once and `queue` waiting in order; one more is refused."""

    def __init__(self, limit: int, queue: int):
        self._limit, self._queue = limit, queue
        self.running, self._waiting = 0, deque[asyncio.Future]()

    async def take(self) -> None:
        if self.running < self._limit:
            self.running += 1
            return
        if len(self._waiting) >= self._queue:
            METRICS.add("venus_harness_llm_busy_total")
            raise BusyError(f"concurrency: {self._limit} requests under way and {self._queue} waiting (queue) for the endpoint")
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the place was handed over in the very moment
                self.give()
            else:
                self._waiting.remove(turn)
            raise

    def give(self) -> None:
        """Hand the place to the next one."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.running -= 1


class LLMClient:
    """Made at start-up: it takes about a second to import the package. Raises ConfigError (no package, no key).

    All methods belong to one event loop.
    """

    def __init__(self, settings: LLMSettings, clock: Clock | None = None, *, environ: Mapping[str, str] | None = None,
                 jitter: Callable[[], float] = random.random):
        self.settings, self.clock, self.usage = settings, clock or SystemClock(), Usage()
        self._jitter = jitter
        self._slots = Slots(settings.concurrency, settings.queue)
        self._failures, self._paused_until, self._closed = 0, float("-inf"), False
        self._openai, self._httpx, self._api = _connect(settings, settings.api_key(environ))
        self._create = self._api.chat.completions.with_streaming_response.create

    async def chat(self, messages: Sequence[dict], *, timeout_s: float, max_tokens: int, schema: dict | None = None,
                   tools: Sequence[dict] = (), tool_choice: str = "auto") -> Reply:
        """Ask once (chat completions, not streamed), everything included within `timeout_s`.

        `schema`: a strict JSON schema named `answer` for the reply's text. Raises BusyError, EndpointUnavailable, EndpointRefused,
        BadAnswer (nothing usable came), Closed.
        """
        if self._closed:
            raise Closed("the client of the endpoint was closed")
        if self.clock.now() < self._paused_until:
            METRICS.add("venus_harness_llm_paused_total")
            raise EndpointUnavailable(f"the last {self.settings.pause_after_failures} requests brought no answer", "paused")
        body: dict[str, Any] = {"model": self.settings.model, "messages": list(messages), self.settings.max_tokens_name: max_tokens}
        if self.settings.temperature is not None:
            body["temperature"] = self.settings.temperature
        if schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
        if tools:
            body |= {"tools": list(tools), "tool_choice": tool_choice}
        fault: EndpointError | None = None
        try:
            raw = await within(self.clock, timeout_s, self._tries(body, self.clock.now() + timeout_s))
        except TimeoutError:
            fault = EndpointUnavailable(f"no answer within {timeout_s:g} s", "timeout")
        except EndpointError as error:
            fault = error
        if fault is None:
            self._failures = 0
            return self._read(raw)
        METRICS.add(f"venus_harness_llm_{fault.reason}_total")
        # A wait too short for anybody to answer says nothing about the endpoint.
        if isinstance(fault, EndpointUnavailable) and timeout_s >= 1:
            self._failures += 1
            if self._failures >= self.settings.pause_after_failures:
                self._paused_until = self.clock.now() + self.settings.pause_s
                log.warning("the endpoint is left alone for %g s (%s)", self.settings.pause_s, fault.reason)
        raise fault

    async def aclose(self) -> None:
        self._closed = True
        await self._api.close()

    async def _tries(self, body: dict, deadline: float) -> bytes:
        await self._slots.take()
        try:
            for left in range(self.settings.retries, -1, -1):
                remaining = deadline - self.clock.now()
                fault, wait_s = await self._try(body, remaining * (TRY_SHARE if left else 1.0))
                if isinstance(fault, bytes):
                    return fault
                if wait_s is None:
                    wait_s = self.settings.retry_wait_s * 2 ** (self.settings.retries - left) * (0.5 + self._jitter())
                elif wait_s > self.settings.retry_after_max_s:
                    break
                if not left or not fault.retryable or self.clock.now() + wait_s >= deadline:
                    break
                METRICS.add("venus_harness_llm_retries_total")
                await self.clock.sleep(wait_s)
            raise fault
        finally:
            self._slots.give()

    async def _try(self, body: dict, seconds: float) -> tuple[bytes | EndpointError, float | None]:
        """The answer's bytes, or a fault and the pause the server asked for."""
        METRICS.add("venus_harness_llm_requests_total")
        try:
            return await within(self.clock, seconds, self._once(body, seconds)), None
        except (TimeoutError, self._openai.APITimeoutError, self._httpx.TimeoutException):
            return EndpointUnavailable(f"no answer within {seconds:.2g} s", "timeout"), None
        except self._openai.APIStatusError as error:
            return _status_fault(error.status_code, error.code), _pause(error.response.headers, self.clock)
        except (self._openai.APIConnectionError, self._httpx.HTTPError):
            return EndpointUnavailable("the endpoint can't be reached, or the connection was lost", "connection"), None
        except BadAnswer as error:
            return error, None
        except self._openai.OpenAIError:  # the package itself will not send this
            return EndpointRefused("the request can't be sent with these settings", "refused"), None

    async def _once(self, body: dict, seconds: float) -> bytes:
        timeout = self._httpx.Timeout(seconds, connect=min(seconds, CONNECT_S))
        async with self._create(**body, timeout=timeout) as response:
            parts, size = [], 0
            async for part in response.iter_bytes():
                size += len(part)
                if size > self.settings.max_answer_bytes:
                    raise BadAnswer(f"an answer of more than {self.settings.max_answer_bytes} bytes (max_answer_bytes)", "too_large")
                parts.append(part)
            return b"".join(parts)

    def _read(self, raw: bytes) -> Reply:
        try:
            answer = json.loads(raw)
        except (ValueError, RecursionError):
            answer = None
        usage = _usage(answer.get("usage") if isinstance(answer, dict) else None)
        self.usage += usage
        METRICS.add("venus_harness_llm_input_tokens_total", usage.input_tokens)
        METRICS.add("venus_harness_llm_cached_tokens_total", usage.cached_tokens)
        METRICS.add("venus_harness_llm_output_tokens_total", usage.output_tokens)
        fault = "no_choice"
        if not isinstance(answer, dict):
            fault = "not_json"
        else:
            try:
                choice = answer["choices"][0]
                message = choice["message"]
                calls = tuple(ToolCall(str(call["id"]), str(call["function"]["name"]), call["function"].get("arguments") or "{}")
                              for call in message.get("tool_calls") or ())
                text, finish = _text(message.get("content")), choice.get("finish_reason") or "stop"
                return Reply(text, calls, bool(message.get("refusal")), str(finish), usage)
            except (KeyError, IndexError, TypeError, AttributeError):
                pass
        METRICS.add(f"venus_harness_llm_{fault}_total")
        raise BadAnswer("the endpoint's answer is no chat completion", fault)


def _connect(settings: LLMSettings, key: str) -> tuple[Any, Any, Any]:
    """(openai, httpx2, AsyncOpenAI). The key lives in the header hook alone, so that no object shows it."""
    try:
        import httpx2
        import openai
    except ImportError as error:
        missing = error.name or "openai"
        raise ConfigError(f"the package {missing!r} is missing: an OpenAI-compatible endpoint needs venus-edge[llm]") from None

    async def only_ours(request) -> None:
        for name in [name for name in request.headers if name.lower() not in _HEADERS]:
            del request.headers[name]
        request.headers["Accept-Encoding"] = "identity"  # so that the bound on an answer's size is one on memory too
        if key:
            request.headers["Authorization"] = f"Bearer {key}"

    http = httpx2.AsyncClient(
        follow_redirects=False, trust_env=settings.proxy_from_env, event_hooks={"request": [only_ours]},
        limits=httpx2.Limits(max_connections=settings.concurrency, max_keepalive_connections=settings.concurrency, keepalive_expiry=30.0))
    api = openai.AsyncOpenAI(api_key="set-per-request", base_url=settings.base_url, max_retries=0, http_client=http)
    return openai, httpx2, api


def _status_fault(status: int, code: str | None) -> EndpointError:
    if status >= 500:
        return EndpointUnavailable(f"the endpoint failed (HTTP {status})", "server", status=status)
    if status == 429 and code != "insufficient_quota":  # no pause refills an empty account
        return EndpointUnavailable("the endpoint is overloaded (HTTP 429)", "rate", status=status)
    hint = {401: "api_key_env: the key is not accepted", 403: "api_key_env: the key may not do this",
            404: "base_url or model: not known there"}.get(status, "the request is not accepted")
    return EndpointRefused(f"{hint} (HTTP {status})", "refused", status=status)


def _pause(headers: Mapping[str, str], clock: Clock) -> float | None:
    """Seconds the server asks to wait: Retry-After in seconds or as a date, or in milliseconds as OpenAI's own header has it."""
    try:
        if "retry-after-ms" in headers:
            value = float(headers["retry-after-ms"]) / 1000
        else:
            text = headers["retry-after"]
            try:
                value = float(text)
            except ValueError:
                value = parsedate_to_datetime(text).timestamp() - clock.wall()
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
    return max(0.0, value) if value == value else None


def _usage(raw: Any) -> Usage:
    def count(value: Any) -> int:
        return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < sys.maxsize else 0

    raw = raw if isinstance(raw, dict) else {}
    details = raw.get("prompt_tokens_details")
    given = count(raw.get("prompt_tokens"))
    cached = count(details.get("cached_tokens")) if isinstance(details, dict) else 0
    return Usage(1, given, min(cached, given), count(raw.get("completion_tokens")))


def _text(content: Any) -> str:
    """The text of a message; some endpoints send it as a list of parts."""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if isinstance(part, dict) and part.get("type") in ("text", "output_text"))
    return content if isinstance(content, str) else ""
