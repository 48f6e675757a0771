"""Rewording a result: what says more than the result, less than a failure, or anything else than it, is not spoken."""
import asyncio
import time

import pytest

from harness.llm import LLMClient, LLMOralizer
from harness.llm.grounding import names, ungrounded
from harness.llm.testing import FakeEndpoint, hang, refuse, say, status
from harness.task import SkillOutcome, Task
from venus_edge.metrics import METRICS

FOUND = "The nearest charger is Ionity Menton, 340 metres away; Total Beausoleil is 900 metres away."
SHUT = "The tailgate only opens while the car is parked."
ZH_FOUND = "最近的充电站是南京路充电站，距离340米。"
ZH_FAILED = "抱歉，后备箱只能在停车时打开。"


def a_task(lang="en", capability="poi.find"):
    return Task("t1", "k", "t1", 1, capability, {}, "is there a charger", 1, lang, "driver", "", "h", 0.0)


GOOD = [
    ("en", True, FOUND, "Ionity Menton is the nearest one, 340 metres from here."),
    ("en", True, FOUND, "The nearest is Ionity Menton, 340 metres away. Total Beausoleil is 900 metres off."),
    ("en", True, "It's set to twenty-two degrees.", "Okay, 22 degrees it is."),
    ("en", True, "There are no chargers nearby.", "I found no charger nearby."),
    ("en", False, SHUT, "Sorry, the tailgate opens only while the car is parked."),
    ("en", False, "I couldn't find a pharmacy.", "I'm afraid there isn't a pharmacy I could find."),
    ("en", False, "I couldn't set it.", "That didn't work."),
    ("en", True, "The driver's window is open.", "Your driver's window is open now."),
    ("en", True, "Lunch at Bar Nice ends at 3:45.", "Bar Nice ends lunch at 3:45."),
    ("zh", True, ZH_FOUND, "南京路充电站最近，离这里340米。"),
    ("zh", True, "温度已设为二十二度。", "好的，温度是22度。"),
    ("zh", True, ZH_FOUND, "最近的充电站在340米外，是南京路充电站。"),
    ("zh", False, ZH_FAILED, "抱歉，停车时才能打开后备箱。"),
    ("zh", True, "附近没有充电站。", "附近没有找到充电站。"),
]
BAD = [
    ("en", True, FOUND, "Ionity Menton is 350 metres away.", "number"),
    ("en", True, FOUND, "Two chargers, the nearest 340 metres away.", "number"),
    ("en", True, FOUND, "Ionity Menton is 340 minutes away.", "unit"),
    ("en", True, FOUND, "Ionity Nice is 340 metres away.", "name"),
    ("en", True, FOUND, "Tesla has a charger 340 metres away.", "name"),
    ("en", True, FOUND, "Total Beausoleil is nearest, 340 metres away, and Ionity Menton is 900 metres away.", "order"),
    ("en", True, FOUND, "There's a charger 900 metres away: Total Beausoleil.", "order"),  # true, but it can't be told from a swap
    ("en", True, FOUND, "There's no charger: Ionity Menton is 340 metres away.", "negation"),
    ("en", True, "There are no chargers nearby.", "There are chargers nearby.", "negation"),
    ("en", False, SHUT, "The tailgate is open.", "failure"),
    ("en", False, SHUT, "Sorry, all set, only the tailgate is open.", "failure"),
    ("en", False, "I couldn't set it.", "It's set.", "negation"),
    ("en", False, "I couldn't set it.", "Done, nothing more to do.", "failure"),
    ("en", True, "The driver's window is open.", "Your driver's window is closed.", "opposite"),
    ("en", True, "The driver's window is open.", "The passenger window is open.", "opposite"),
    ("en", True, "The exit is on the left.", "The exit is on the right.", "opposite"),
    ("en", True, FOUND, "Ionity Menton is 340 metres away. Shall I take you there?", "question"),
    ("en", True, FOUND, "充电站在340米外。", "language"),
    ("zh", True, ZH_FOUND, "南京路充电站距离430米。", "number"),
    ("zh", True, ZH_FOUND, "最近的充电站是北京路充电站，距离340米。", "name"),
    ("zh", True, ZH_FOUND, "最近的充电站是Tesla，距离340米。", "name"),
    ("zh", True, ZH_FOUND, "340分钟后到南京路充电站。", "unit"),
    ("zh", False, ZH_FAILED, "后备箱打开了。", "failure"),
    ("zh", True, "车窗已打开。", "车窗已关闭。", "opposite"),
    ("zh", True, "附近没有充电站。", "附近有充电站。", "negation"),
    ("zh", True, ZH_FOUND, "The charger is 340 metres away.", "language"),
]  # fmt: skip


@pytest.mark.parametrize("lang, ok, text, sentence", GOOD)
def test_a_faithful_rewording_is_let_through(lang, ok, text, sentence):
    """A check that refuses everything would be safe and useless."""
    assert ungrounded(sentence, text, {}, ok=ok, lang=lang) == ""


@pytest.mark.parametrize("lang, ok, text, sentence, why", BAD)
def test_an_unfaithful_rewording_is_refused_for_its_reason(lang, ok, text, sentence, why):
    assert ungrounded(sentence, text, {}, ok=ok, lang=lang) == why


def test_fields_and_result_support_a_sentence_as_the_text_does():
    """Numbers and names of the data count; a key alone, or a flag, does not."""
    facts = {"fields": {"level": 80}, "result": {"places": [{"name": "Ionity Menton", "metres": 340, "open": True}]}}
    assert ungrounded("It's at 80 percent.", "The battery is fine, 80 percent.", facts, ok=True, lang="en") == ""
    assert ungrounded("Ionity Menton is 340 metres away.", "I found a charger some metres away.", facts, ok=True, lang="en") == ""
    assert ungrounded("There's 1 charger.", "I found a charger.", {"open": True}, ok=True, lang="en") == "number"


def test_the_first_word_of_a_sentence_is_no_name_if_it_is_a_common_one():
    assert names("The car is at Bar Nice. Then go on. I'm sure.") == ["Bar", "Nice"]
    assert names("Monaco is near.") == ["Monaco"]


async def oralized(answer, outcome, *, lang="en", template="", timeout=4.0, capability="poi.find"):
    async with FakeEndpoint(lambda r: answer) as endpoint:
        client = LLMClient(endpoint.settings(oralize_timeout_s=timeout), environ=endpoint.environ)
        text = await LLMOralizer(client).oralize(a_task(lang, capability), outcome, template)
        await client.aclose()
        return text, endpoint


async def test_a_grounded_sentence_is_spoken_without_its_markup():
    answer = say("**Ionity Menton** is the nearest one, 340 metres from here.<|im_end|>")
    text, endpoint = await oralized(answer, SkillOutcome(True, text=FOUND, result={"n": 2}))
    assert text == "Ionity Menton is the nearest one, 340 metres from here."
    assert endpoint.requests[0].user == {"text": FOUND, "succeeded": "yes", "asked_for": "is there a charger", "result": {"n": 2}}


@pytest.mark.parametrize("answer", [say("It is 12 metres away."), say(""), say("```x```"), say("word " * 200), refuse(), status(500), status(401),
                                    say("There. Ionity Menton. It is near. It is 340 metres away."), say("Ionity Menton is 340", finish="length")])
async def test_otherwise_the_template_is_spoken_and_counted(answer):
    """Ungrounded, empty, too long, cut off, refused, failed: the user hears the template."""
    before = METRICS.get("venus_harness_llm_templates_total")
    assert (await oralized(answer, SkillOutcome(True, text=FOUND)))[0] == FOUND
    assert METRICS.get("venus_harness_llm_templates_total") == before + 1


async def test_a_failure_stays_one_whatever_the_model_says():
    text, _ = await oralized(say("The tailgate is open."), SkillOutcome(False, code="unsafe_now"), template=SHUT)
    assert text == SHUT


async def test_a_slow_endpoint_costs_the_limit_and_no_text_asks_nothing():
    began = time.monotonic()
    text, _ = await oralized(hang(), SkillOutcome(True, text=FOUND), timeout=0.3)
    assert text == FOUND and time.monotonic() - began < 1.0
    text, endpoint = await oralized(say("Well done."), SkillOutcome(False, code="internal"))
    assert text == "" and endpoint.count == 0


async def test_cancelling_works_at_once():
    async with FakeEndpoint(lambda r: hang()) as endpoint:
        client = LLMClient(endpoint.settings(), environ=endpoint.environ)
        task = asyncio.ensure_future(LLMOralizer(client).oralize(a_task(), SkillOutcome(True, text=FOUND)))
        while not endpoint.count:
            await asyncio.sleep(0.005)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 0.05
        await client.aclose()
