"""Weak points of the product around a harness: languages, logins, and a status question asked in plain words (Peer 27-35)."""
import asyncio
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from points_world import FIND, GO

import harness as package
from harness import BadRequest, DelegateRequest, HarnessSettings
from harness.plan.contracts import Contract
from harness.plan.rules import RulePlanner
from harness.testing import ListedCatalog, Script, scripted


def chinese(text):
    return any("一" <= c <= "鿿" for c in text)


@pytest.mark.parametrize("name", ["wording.toml", "llm/prompts.toml"])
def test_each_sentence_is_in_both_languages_and_in_its_own(name):
    """Peer 33: what is said in en has no Chinese in it, what is said in zh has, sentence by sentence and variant by variant."""
    seen = 0

    def walk(node, key=""):
        nonlocal seen
        if "en" not in node:
            for part, value in node.items():
                walk(value, f"{key}.{part}")
            return
        for lang, wanted in (("en", False), ("zh", True)):
            for text in node[lang] if isinstance(node[lang], list) else [node[lang]]:
                seen += 1
                assert chinese(text) is wanted or text.strip("{} .") in ("topic", "query", "media") or not text.strip(), (key, lang, text)
    walk(tomllib.loads((Path(package.__file__).parent / name).read_text(encoding="utf-8")))
    assert seen > 20


def test_errors_for_developers_are_in_one_language_and_name_the_field():
    """Peer 33: whatever the session's language."""
    for wrong in (dict(repair="撤销"), dict(prose=5), dict(lang="z" * 99)):
        with pytest.raises(BadRequest) as error:
            DelegateRequest(**({"key": "k", "turn": 1, "opened_pos": 0, "opened_seq": 0, "prose": "你好", "lang": "zh"} | wrong))
        assert next(iter(wrong)) in error.value.message and error.value.message.split(":")[0].isascii()
    with pytest.raises(ValueError, match="max_running"):
        HarnessSettings(max_running=0)


def test_a_harness_of_skills_needs_no_account_no_key_and_no_network():
    """Peer 32: a process without any variable of ours, in which every connection is refused, plans, runs and answers."""
    code = """
import asyncio, os, socket
os.environ.clear()
class Refused(socket.socket):
    def connect(self, *a): raise AssertionError("a connection was tried")
socket.socket = Refused
from harness import SkillSpec
from harness.plan.contracts import Plan
from harness.testing import Script, ScriptedPlanner, scripted
from venus_edge.testing import VirtualClock
async def main():
    clock = VirtualClock()
    planner = ScriptedPlanner(clock, {"find a charger": (Plan("new", "poi.find", {"query": "charger"}),)})
    world = scripted({"poi.find": Script("Two of them.")}, specs=[SkillSpec("poi.find")], planner=planner, clock=clock)
    world.talk.ask(None, prose="find a charger")
    await world.talk.run(2)
    print(*world.talk.texts)
    await world.harness.close()
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "Two of them.", done.stderr


@pytest.mark.parametrize("lang, asked, status, said", [("en", "find a charger", "how is it going?", "charger"), ("zh", "找充电站", "怎么样了？", "")])
async def test_a_spoken_question_how_far_it_is_starts_no_new_work(lang, asked, status, said):
    """Peer 27: with the default planner and nothing typed, a status question is answered from the ledger; what runs goes on, once."""
    contract = Contract("poi.find", {"en": "Find a place.", "zh": "找地方。"}, {"type": "object", "required": ["query"], "properties": {
        "query": {"type": "string"}}}, examples={"en": (("find a charger", {"query": "charger"}),), "zh": (("找充电站", {"query": "充电站"}),)})
    world = scripted({"poi.find": Script("Two of them.", 20)}, catalog=ListedCatalog(FIND, GO, contracts=[contract]), planner=RulePlanner())
    world.talk.ask("poi.find", {"query": "charger" if lang == "en" else "充电站"}, prose=asked, lang=lang)
    await world.talk.run(3)
    question = world.talk.ask(None, prose=status, lang=lang)
    async with asyncio.timeout(20):
        while world.session.ledger.get(question).execution == "queued":  # the planner thinks in a thread of its own: no virtual time
            await asyncio.sleep(0.01)
    await world.talk.run(4)
    kept = world.session.ledger.get(question)
    assert (kept.capability, kept.execution) == ("harness.status", "completed") and len(world.runner.calls) == 1
    assert any(said in text.lower() and chinese(text) is (lang == "zh") for text in world.talk.texts), world.talk.texts
