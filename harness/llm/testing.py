"""A real HTTP server on loopback that speaks the chat-completions protocol by script: for tests without a model and without a network.

    async with FakeEndpoint(lambda request: say("It is noon.")) as endpoint:
        client = LLMClient(endpoint.settings(), environ=endpoint.environ)
        ...
        assert endpoint.requests[0].user["question"] == "What time is it?"

A script is called once per request and returns an Answer (or awaits one): `say`, `plan`, `tool`, `refuse`, `status`, `raw`, `slow`, `hang`,
`reset`, `half`. Several answers in a row: `in_turn(...)`. Like the real thing, the server answers 400 to a request whose strict schema
breaks the rules of strict schemas. What a script answers says nothing about how well a model plans: a scripted run is a test of the
harness, never an evaluation of a model.
"""
import asyncio
import json
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any, Awaitable, Callable, Iterable, Mapping

from harness.llm.settings import LLMSettings
from venus_edge.clock import Clock, SystemClock

KEY = "sk-fake-0123456789"
MAX_REQUEST_BYTES = 32 << 20
_STRICT_KEYWORDS = frozenset({"type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "description"})


@dataclass(frozen=True)
class ChatRequest:
    """One request as it arrived. Header names are in lower case."""

    number: int
    path: str
    headers: Mapping[str, str]
    body: dict
    text: str
    """The body as sent."""

    @property
    def messages(self) -> list[dict]:
        return self.body["messages"]

    @property
    def system(self) -> str:
        return next((m["content"] for m in self.messages if m["role"] == "system"), "")

    @property
    def user(self) -> dict:
        """The JSON data of the first user message."""
        content = next(m["content"] for m in self.messages if m["role"] == "user")
        return json.loads(content if isinstance(content, str) else content[0]["text"])

    @property
    def parts(self) -> list[dict]:
        """The parts of the first user message after its text: pictures and sound."""
        content = next(m["content"] for m in self.messages if m["role"] == "user")
        return [] if isinstance(content, str) else content[1:]

    @property
    def schema(self) -> dict | None:
        return self.body.get("response_format", {}).get("json_schema", {}).get("schema")

    @property
    def tools(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.body.get("tools", [])]

    @property
    def results(self) -> list[dict]:
        """What the tools returned so far."""
        return [json.loads(m["content"]) for m in self.messages if m["role"] == "tool"]


@dataclass(frozen=True)
class Answer:
    """What the server does with one request. `fault`: "" | hang (never answers) | reset (drops the connection) | half (stops midway)."""

    message: dict = field(default_factory=dict)
    finish: str = "stop"
    usage: dict | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """Sent as it is, instead of a chat completion."""
    after_s: float = 0.0
    fault: str = ""


Script = Callable[[ChatRequest], Answer | Awaitable[Answer]]


def say(text: str, *, usage: dict | None = None, finish: str = "stop") -> Answer:
    """An answer in words; `finish="length"` makes it a truncated one. `usage` as in the protocol."""
    return Answer({"content": text}, finish, usage)


def plan(*plans: dict, ask: str | None = None, aside: bool = False) -> Answer:
    """A planner's answer. A plan is {"operation", "capability", "arguments", "target"}; what is left out is null."""
    rows = [{"capability": None, "target": None, **row} for row in plans]
    return say(json.dumps({"plans": rows, "ask": ask, "aside": aside}, ensure_ascii=False))


def tool(name: str, arguments: dict | str, text: str = "", *more: tuple[str, dict]) -> Answer:
    """Ask for tool calls; `arguments` as str is sent as it is. `text`: commentary beside them."""
    calls = [{"id": f"call-{i}", "type": "function", "function": {"name": n, "arguments": a if isinstance(a, str) else json.dumps(a)}}
             for i, (n, a) in enumerate([(name, arguments), *more])]
    return Answer({"content": text or None, "tool_calls": calls}, "tool_calls")


def refuse(text: str = "I can't help with that.") -> Answer:
    return Answer({"content": None, "refusal": text})


def status(code: int, *, retry_after: str | float | None = None, error: dict | None = None) -> Answer:
    """An HTTP error, with the error object of the protocol."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    body = {"error": error or {"message": "scripted", "type": "scripted", "code": None}}
    return Answer(status=code, headers=headers, body=json.dumps(body).encode())


def raw(body: bytes) -> Answer:
    """Status 200 with any bytes."""
    return Answer(body=body)


def slow(after_s: float, answer: Answer) -> Answer:
    """`answer` after so many seconds of the endpoint's clock."""
    return replace(answer, after_s=after_s)


def hang() -> Answer:
    return Answer(fault="hang")


def reset() -> Answer:
    return Answer(fault="reset")


def half(answer: Answer) -> Answer:
    """The head and half of the body, then the connection ends."""
    return replace(answer, fault="half")


def in_turn(*answers: Answer) -> Script:
    """One answer per request; the last one repeats."""
    return lambda request: answers[min(request.number, len(answers) - 1)]


class FakeEndpoint:
    """`requests` holds what arrived (newest 1,000); `left`: clients that went away before their answer."""

    def __init__(self, script: Script, *, clock: Clock | None = None, kept: int = 1000):
        self.script, self._clock = script, clock or SystemClock()
        self.requests: deque[ChatRequest] = deque(maxlen=kept)
        self.count = self.left = self.open = self.most_open = 0
        """Requests seen, clients gone early, requests under way, and the most of them at once."""
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task] = set()
        self.environ = {"VENUS_LLM_KEY": KEY}

    async def __aenter__(self) -> "FakeEndpoint":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_) -> None:
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}/v1"

    def settings(self, **values: Any) -> LLMSettings:
        """Settings that lead here; no pause between tries unless asked for."""
        return LLMSettings.load(**{"base_url": self.url, "model": "scripted", "retry_wait_s": 0.0, **values})

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._connection(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await self._read(reader):
                self.open += 1
                self.most_open = max(self.most_open, self.open)
                try:
                    if not await self._serve(request, reader, writer):
                        return
                finally:
                    self.open -= 1
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> ChatRequest | None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        except asyncio.IncompleteReadError:
            return None
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        length = int(headers.get("content-length", 0))
        if length > MAX_REQUEST_BYTES:
            raise ValueError("request too large")
        text = (await reader.readexactly(length)).decode()
        request = ChatRequest(self.count, head[0].split(" ")[1], headers, json.loads(text), text)
        self.count += 1
        self.requests.append(request)
        return request

    async def _serve(self, request: ChatRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; False ends the connection. A client that goes away meanwhile is noticed at once."""
        work = asyncio.ensure_future(self._answer(request))
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                self.left += 1
                return False
            answer = work.result()
        finally:
            work.cancel()
            gone.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)
        if answer.fault == "reset":
            writer.transport.abort()
            return False
        body = answer.body if answer.body is not None else json.dumps(_completion(request, answer), ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **answer.headers}
        lines = [f"HTTP/1.1 {answer.status} Scripted", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode() + (body[:len(body) // 2] if answer.fault == "half" else body))
        await writer.drain()
        return answer.fault != "half"

    async def _answer(self, request: ChatRequest) -> Answer:
        if request.path != "/v1/chat/completions":
            return status(404)
        if wrong := [text for schema in _strict_schemas(request.body) for text in strict_complaints(schema)]:
            return status(400, error={"message": f"Invalid schema: {wrong[0]}", "type": "invalid_request_error", "code": None})
        answer = self.script(request)
        if not isinstance(answer, Answer):
            answer = await answer
        if answer.fault == "hang":
            await asyncio.get_running_loop().create_future()
        if answer.after_s:
            await self._clock.sleep(answer.after_s)
        return answer


def strict_complaints(schema: Any, where: str = "schema", root: bool = True) -> Iterable[str]:
    """What an endpoint that enforces strict schemas would refuse (OpenAI's published rules for structured outputs)."""
    if not isinstance(schema, dict):
        yield f"{where}: not an object"
        return
    if root and schema.get("type") != "object":
        yield f"{where}: the root must be an object"
    for keyword in sorted(set(schema) - _STRICT_KEYWORDS):
        yield f"{where}: {keyword} is not permitted"
    if not {"type", "anyOf"} & set(schema):
        yield f"{where}: type or anyOf is needed"
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            yield f"{where}: additionalProperties must be false"
        if sorted(schema.get("required", [])) != sorted(schema.get("properties", {})):
            yield f"{where}: required must name every property"
        for name, item in schema.get("properties", {}).items():
            yield from strict_complaints(item, f"{where}.{name}", False)
    if schema.get("type") == "array":
        yield from strict_complaints(schema.get("items"), f"{where}[]", False)
    if "enum" in schema and not schema["enum"]:
        yield f"{where}: an empty enum"
    for number, branch in enumerate(schema.get("anyOf", [])):
        yield from strict_complaints(branch, f"{where}|{number}", False)


def _strict_schemas(body: dict) -> list[dict]:
    wanted = body.get("response_format", {}).get("json_schema")
    tools = [tool["function"] for tool in body.get("tools", [])]
    return ([wanted["schema"]] if wanted and wanted.get("strict") else []) + [tool["parameters"] for tool in tools if tool.get("strict")]


def _completion(request: ChatRequest, answer: Answer) -> dict:
    usage = answer.usage
    if usage is None:
        usage = {"prompt_tokens": len(request.text) // 4, "completion_tokens": len(json.dumps(answer.message)) // 4}
    return {"id": f"chatcmpl-{request.number}", "object": "chat.completion", "created": 0, "model": request.body.get("model"), "usage": usage,
            "choices": [{"index": 0, "finish_reason": answer.finish, "message": {"role": "assistant", **answer.message}}]}
