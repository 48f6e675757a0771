"""The client of an OpenAI-compatible endpoint: bounded in time, number and size; what it sends, counts, tells and never tells."""
import asyncio
import json
import logging
import subprocess
import sys
import time
import traceback
from email.utils import formatdate

import pytest

from harness.errors import Closed
from harness.llm import BadAnswer, EndpointRefused, EndpointUnavailable, LLMClient, LLMSettings, Usage
from harness.llm.client import Slots, _pause
from harness.llm.testing import KEY, Answer, FakeEndpoint, half, hang, in_turn, raw, reset, say, slow, status
from venus_edge.errors import BusyError, ConfigError
from venus_edge.metrics import METRICS
from venus_edge.testing import VirtualClock

WORDS = [{"role": "user", "content": "the secret words"}]


def client_of(endpoint, clock=None, **values):
    return LLMClient(endpoint.settings(**values), clock, environ=endpoint.environ, jitter=lambda: 0.5)


async def ask(client, timeout_s=5.0):
    return await client.chat(WORDS, timeout_s=timeout_s, max_tokens=50)


async def on(clock, work, step_s=0.05):
    """The result of `work`, with virtual time going on beside real network traffic."""
    task = asyncio.ensure_future(work)
    for _ in range(2000):
        await asyncio.sleep(0.002)
        if task.done():
            return await task
        await clock.advance(step_s)
    raise AssertionError("it never ended")


async def test_an_answer_comes_back_and_its_tokens_are_counted_once():
    """Cached tokens are part of the input tokens: the total is what the endpoint says, to the token."""
    usage = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020, "prompt_tokens_details": {"cached_tokens": 600}}
    async with FakeEndpoint(lambda r: say("Yes.", usage=usage)) as endpoint:
        client = client_of(endpoint)
        assert (await ask(client)).text == "Yes."
        await ask(client)
        assert client.usage == Usage(2, 2000, 1200, 40)
        assert client.usage.cost(2.0, 10.0, 0.5) == pytest.approx((800 * 2.0 + 1200 * 0.5 + 40 * 10.0) / 1e6)
        await client.aclose()


@pytest.mark.parametrize("usage, counted", [
    (None, Usage(1)), ({"prompt_tokens": "many"}, Usage(1)), ({"prompt_tokens": -3, "completion_tokens": True}, Usage(1)),
    ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}}, Usage(1, 5, 5, 0)),
    ({"prompt_tokens": 5, "prompt_tokens_details": None}, Usage(1, 5)),
])  # fmt: skip
async def test_odd_usage_is_never_counted_as_more_than_it_can_be(usage, counted):
    """What isn't a sane count is zero, and cached tokens never exceed the input."""
    body = {"choices": [{"message": {"content": "ok"}}], "usage": usage}
    async with FakeEndpoint(lambda r: raw(json.dumps(body).encode())) as endpoint:
        client = client_of(endpoint)
        await ask(client)
        assert client.usage == counted
        await client.aclose()


@pytest.mark.parametrize("first", [status(429), status(500), status(503), reset(), half(say("lost"))])
async def test_a_passing_fault_is_tried_again(first):
    """429, 5xx and lost connections: one more try, and the caller sees nothing of it."""
    async with FakeEndpoint(in_turn(first, say("There."))) as endpoint:
        client = client_of(endpoint)
        assert (await ask(client)).text == "There."
        assert endpoint.count == 2
        await client.aclose()


@pytest.mark.parametrize("answer, error, reason", [
    (status(400), EndpointRefused, "refused"), (status(401), EndpointRefused, "refused"), (status(404), EndpointRefused, "refused"),
    (status(429, error={"message": "x", "code": "insufficient_quota"}), EndpointRefused, "refused"),
    (raw(b"<html>no</html>"), BadAnswer, "not_json"), (raw(b"[1]"), BadAnswer, "not_json"), (raw(b'{"choices": []}'), BadAnswer, "no_choice"),
    (raw(b'{"choices": [{"message": null}]}'), BadAnswer, "no_choice"), (raw(b'{"error": {"message": "x"}}'), BadAnswer, "no_choice"),
    (raw(b"[" * 60_000), BadAnswer, "not_json"), (raw(b'{"a": "' + b"x" * 70_000 + b'"}'), BadAnswer, "too_large"),
])  # fmt: skip
async def test_what_a_retry_cannot_cure_is_not_tried_again(answer, error, reason):
    """Refusals and rubbish end the request at once, each with its reason."""
    async with FakeEndpoint(lambda r: answer) as endpoint:
        client = client_of(endpoint, max_answer_bytes=65_536)
        with pytest.raises(error) as caught:
            await ask(client)
        assert caught.value.reason == reason and endpoint.count == 1
        await client.aclose()


async def test_redirects_are_not_followed():
    """An endpoint can't send the words and the key elsewhere."""
    async with FakeEndpoint(lambda r: say("stolen")) as other:
        moved = Answer(status=307, headers={"Location": other.url + "/chat/completions"}, body=b"")
        async with FakeEndpoint(lambda r: moved) as endpoint:
            client = client_of(endpoint)
            with pytest.raises(EndpointRefused):
                await ask(client)
            assert other.count == 0
            await client.aclose()


async def test_retry_after_is_honoured_on_the_injected_clock():
    """The second try waits as long as the server asked, no less."""
    clock = VirtualClock()
    times = []

    def script(request):
        times.append(clock.now())
        return status(429, retry_after=2) if request.number == 0 else say("Now.")

    async with FakeEndpoint(script) as endpoint:
        client = client_of(endpoint, clock)
        assert (await on(clock, ask(client))).text == "Now."
        assert 2.0 <= times[1] - times[0] <= 2.3
        await client.aclose()


@pytest.mark.parametrize("retry_after", ["3", "86400", "inf"])
async def test_a_server_that_asks_for_too_long_a_pause_is_not_asked_again(retry_after):
    """Beyond the cap, or beyond the request's own time: no second try, neither early nor late."""
    for most_s, limit_s in ((1, 30.0), (60, 2.0)):
        async with FakeEndpoint(lambda r: status(503, retry_after=retry_after)) as endpoint:
            clock = VirtualClock()
            client = client_of(endpoint, clock, retry_after_max_s=most_s)
            with pytest.raises(EndpointUnavailable):
                await on(clock, ask(client, timeout_s=limit_s))
            assert endpoint.count == 1 and clock.now() < 1
            await client.aclose()


def test_retry_after_is_read_in_each_of_its_forms():
    """Seconds, milliseconds, a date; anything else is no wish at all."""
    clock = VirtualClock(wall=1_700_000_000)
    assert _pause({"retry-after": "1.5"}, clock) == 1.5
    assert _pause({"retry-after-ms": "250", "retry-after": "9"}, clock) == 0.25
    assert _pause({"retry-after": formatdate(1_700_000_007, usegmt=True)}, clock) == pytest.approx(7)
    assert _pause({"retry-after": formatdate(1_600_000_000, usegmt=True)}, clock) == 0
    assert _pause({"retry-after": "soon"}, clock) is None and _pause({}, clock) is None and _pause({"retry-after": "nan"}, clock) is None


async def test_all_tries_together_stay_within_the_time_limit():
    """A server that is slow at every try costs the limit, not a multiple of it; the first try leaves time for a second."""
    clock = VirtualClock()
    async with FakeEndpoint(lambda r: hang()) as endpoint:
        client = client_of(endpoint, clock, retries=3)
        with pytest.raises(EndpointUnavailable) as caught:
            await on(clock, ask(client, timeout_s=6.0))
        assert caught.value.reason == "timeout" and 5.9 <= clock.now() <= 6.3 and 2 <= endpoint.count <= 4
        await client.aclose()


async def test_a_slow_answer_within_the_limit_is_taken():
    clock = VirtualClock()
    async with FakeEndpoint(lambda r: slow(2.0, say("Late.")), clock=clock) as endpoint:
        client = client_of(endpoint, clock)
        assert (await on(clock, ask(client, timeout_s=6.0))).text == "Late."
        assert endpoint.count == 1
        await client.aclose()


async def test_cancelling_ends_the_request_at_once_and_the_connection_with_it():
    """The caller is free within 50 ms, and the endpoint sees the client go."""
    async with FakeEndpoint(lambda r: hang()) as endpoint:
        client = client_of(endpoint)
        task = asyncio.ensure_future(ask(client, timeout_s=60))
        while not endpoint.count:
            await asyncio.sleep(0.005)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 0.05
        for _ in range(100):
            await asyncio.sleep(0.01)
            if endpoint.left:
                break
        assert endpoint.left == 1 and client._slots.running == 0
        await client.aclose()


async def test_more_requests_than_places_wait_and_then_are_refused():
    """Never more than `concurrency` at the endpoint; one more than the queue holds is refused at once, naming the limit."""
    gate = asyncio.Event()

    async def script(request):
        await gate.wait()
        return say("Done.")

    async with FakeEndpoint(script) as endpoint:
        client = client_of(endpoint, concurrency=2, queue=3)
        tasks = [asyncio.ensure_future(ask(client)) for _ in range(5)]
        while endpoint.count < 2:
            await asyncio.sleep(0.005)
        busy = METRICS.get("venus_harness_llm_busy_total")
        with pytest.raises(BusyError, match="queue"):
            await ask(client)
        assert METRICS.get("venus_harness_llm_busy_total") == busy + 1
        gate.set()
        assert [r.text for r in await asyncio.gather(*tasks)] == ["Done."] * 5
        assert endpoint.most_open == 2 and client._slots.running == 0
        await client.aclose()


async def test_cancelled_waiters_lose_no_place():
    """Whoever is cancelled, waiting, served or in the moment of the hand-over, the places are all there in the end."""
    slots = Slots(2, 50)

    async def use():
        await slots.take()
        try:
            await asyncio.sleep(0)
        finally:
            slots.give()

    for cut in range(8):
        tasks = [asyncio.ensure_future(use()) for _ in range(12)]
        for _ in range(cut):
            await asyncio.sleep(0)
        for task in tasks[cut % 3::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert slots.running == 0 and not slots._waiting


async def test_an_endpoint_that_is_down_is_left_alone_for_a_while():
    """After three requests without an answer nobody waits for it until the pause is over; one answer ends the matter."""
    clock = VirtualClock()
    up = False
    async with FakeEndpoint(lambda r: say("Back.") if up else status(503)) as endpoint:
        client = client_of(endpoint, clock, retries=0, pause_after_failures=3, pause_s=15)
        for _ in range(3):
            with pytest.raises(EndpointUnavailable):
                await on(clock, ask(client))
        with pytest.raises(EndpointUnavailable) as caught:
            await ask(client)
        assert caught.value.reason == "paused" and endpoint.count == 3
        up = True
        await clock.advance(15.1)
        assert (await on(clock, ask(client))).text == "Back."
        await client.aclose()


async def test_neither_key_nor_words_nor_the_endpoints_text_get_out(caplog, monkeypatch):
    """Errors, tracebacks, logs at DEBUG and the objects themselves hold none of them, whatever the endpoint quotes."""
    caplog.set_level(logging.DEBUG)
    for name, value in {"OPENAI_API_KEY": "sk-other", "OPENAI_ORG_ID": "org-x", "OPENAI_PROJECT_ID": "proj-x", "OPENAI_LOG": "debug",
                        "OPENAI_CUSTOM_HEADERS": "X-Leak: leaked", "HTTP_PROXY": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}.items():
        monkeypatch.setenv(name, value)
    told = []
    for code in (400, 401, 429, 500):
        async with FakeEndpoint(lambda r: status(code, error={"message": f"{KEY}: the secret words", "code": "the secret words"})) as endpoint:
            client = client_of(endpoint, retries=0)
            try:
                await ask(client)
            except (EndpointRefused, EndpointUnavailable) as error:
                told += [str(error), repr(error), repr(error.as_dict()), "".join(traceback.format_exception(error)), repr(error.__context__)]
            told += [repr(client), repr(client.settings), repr(vars(client)), str(client.settings.model_dump())]
            assert KEY not in repr(vars(client._api)) and "sk-other" not in repr(vars(client._api))
            headers = endpoint.requests[0].headers
            assert headers["authorization"] == f"Bearer {KEY}"
            assert set(headers) <= {"host", "accept", "accept-encoding", "connection", "content-type", "content-length", "user-agent",
                                    "authorization", "x-stainless-raw-response"}
            await client.aclose()
    everything = "\n".join([*told, caplog.text])
    assert len(told) == 36
    for secret in (KEY, "secret words", "sk-other", "org-x", "leaked"):
        assert secret not in everything


async def test_a_closed_client_says_so():
    async with FakeEndpoint(lambda r: say("x")) as endpoint:
        client = client_of(endpoint)
        await client.aclose()
        with pytest.raises(Closed):
            await ask(client)


async def test_options_reach_the_endpoint_as_they_are_named_there():
    async with FakeEndpoint(lambda r: say("x")) as endpoint:
        client = client_of(endpoint, max_tokens_name="max_completion_tokens", temperature=None)
        await ask(client)
        body = endpoint.requests[0].body
        assert body == {"model": "scripted", "messages": WORDS, "max_completion_tokens": 50}
        await client.aclose()


@pytest.mark.parametrize("values, named", [
    ({"base_url": "ftp://x/v1"}, "base_url"), ({"base_url": "https://u:hidden@x/v1"}, "base_url"),
    ({"base_url": "https://x/v1?key=hidden"}, "base_url"),
    ({"base_url": "http://example.com/v1"}, "plain_http"), ({"base_url": "https://x:port/v1"}, "base_url"), ({"model": ""}, "model"),
    ({"plan_timeout_s": 0}, "plan_timeout_s"), ({"retries": 99}, "retries"), ({"concurrency": 0}, "concurrency"), ({"language": "fr"}, "language"),
    ({"api_key_env": "sk-hidden"}, "api_key_env"), ({"colour": 1}, "colour"), ({"max_tokens_name": "n"}, "max_tokens_name"),
])  # fmt: skip
def test_a_wrong_setting_is_named_and_its_value_is_not_shown(values, named):
    with pytest.raises(ConfigError) as caught:
        LLMSettings.load(**{"base_url": "https://x/v1", "model": "m", **values})
    assert named in str(caught.value) and "hidden" not in str(caught.value)


def test_settings_come_from_the_environment_and_the_key_never_becomes_one():
    env = {"VENUS_LLM_URL": "https://x/v1/", "VENUS_LLM_MODEL": "m", "VENUS_LLM_KEY": KEY, "VENUS_LLM_PLAN_TIMEOUT_S": "2.5",
           "VENUS_LLM_IMAGES": "true", "VENUS_LLM_TEMPERATURE": "none"}
    settings = LLMSettings.from_env(env)
    assert (settings.base_url, settings.plan_timeout_s, settings.images, settings.temperature) == ("https://x/v1", 2.5, True, None)
    assert settings.api_key(env) == KEY and KEY not in repr(settings)
    with pytest.raises(ConfigError, match="VENUS_LLM_MODEL"):
        LLMSettings.from_env({"VENUS_LLM_URL": "https://x/v1"})
    with pytest.raises(ConfigError, match="VENUS_LLM_RETRIES"):
        LLMSettings.from_env(env | {"VENUS_LLM_RETRIES": "many"})
    with pytest.raises(ConfigError, match="VENUS_LLM_KEY"):
        settings.api_key({})
    with pytest.raises(ConfigError, match="VENUS_LLM_KEY") as caught:
        settings.api_key({"VENUS_LLM_KEY": "two words"})
    assert "two words" not in str(caught.value)
    assert LLMSettings.from_env(env | {"VENUS_LLM_API_KEY_ENV": ""}).api_key({}) == ""
    assert LLMSettings.load(base_url="http://127.0.0.1:8000/v1", model="m").api_key({}) == ""


def test_importing_costs_nothing_and_a_missing_package_is_named():
    """Neither `import harness` nor `import harness.llm` brings the package in; without it one line names the extra."""
    code = ("import sys, harness, harness.llm, harness.llm.testing\n"
            "assert not {'openai', 'httpx2', 'aiohttp'} & set(sys.modules)\n"
            "sys.modules['openai'] = None\n"
            "from venus_edge.errors import ConfigError\n"
            "try: harness.llm.LLMClient(harness.llm.LLMSettings(base_url='http://localhost/v1', model='m'))\n"
            "except ConfigError as error: print(error)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "venus-edge[llm]" in done.stdout and len(done.stdout.splitlines()) == 1
